"""``chat``: talk to a server that is running: one prompt, standard input, or a plain loop."""

from __future__ import annotations

import os
from contextlib import suppress

from ramalama_like import settings, ui
from ramalama_like.chat.client import list_models, parse_address, plain_address, wait_healthy
from ramalama_like.chat.session import Session
from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.launch import Outline
    from ramalama_like.request import Request


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    asked = loaded.settings
    for warning in loaded.warnings:
        ui.warn(warning)
    address = parse_address(asked.url.value)
    api_key = asked.api_key.value
    if asked.dryrun.value:
        from ramalama_like.launch import show_outline

        show_outline(request, outline(request))
        return 0
    if asked.wait.value:
        wait_healthy(address, asked.wait.value)
    if asked.list_models.value:
        ui.write("".join(f"{ui.one_line(name)}\n" for name in list_models(address, api_key)))
        return 0
    colored = asked.color.value == "always" or (
        asked.color.value == "auto" and ui.is_terminal(1) and not settings.no_color()
    )
    session = Session(
        address, write=ui.write, say=ui.say, model=asked.model.value, max_tokens=asked.max_tokens.value,
        temperature=None if asked.temp.is_default else asked.temp.value, api_key=api_key, colored=colored,
    )  # fmt: skip
    prompt = _prompt(request)
    if prompt is None or asked.interactive.value:
        if prompt:
            session.ask(prompt)
        _reopen_terminal()
        session.loop(_read_line, asked.prefix.value or "> ")
        return 0
    if not prompt.strip():
        raise ValueProblem("nothing was asked: the prompt is empty", "write it at the end of the line, or pipe it in")
    session.ask(prompt)
    return 0


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    from ramalama_like.launch import Outline
    from ramalama_like.pipeline import own_program

    loaded = settings.load_settings(request)
    parse_address(loaded.settings.url.value)
    return Outline(loaded, lines=(_shown_line(request, own_program()),), kind="chat")


def _prompt(request: Request) -> str | None:
    """The prompt from the arguments and standard input together; None where a person sits at the terminal."""
    words = " ".join(request.arguments)
    if ui.is_terminal(0):
        return words or None
    try:
        with os.fdopen(os.dup(0), "rb") as standard_input:
            piped = standard_input.read().decode(errors="replace")
    except OSError as error:
        raise ValueProblem(f"standard input cannot be read: {error.strerror}") from None
    return f"{words}\n\n{piped}".rstrip("\n") if words and piped.strip() else words or piped.rstrip("\n")


def _reopen_terminal() -> None:
    # After a piped prompt the loop still wants a person.
    if not ui.is_terminal(0):
        try:
            terminal = os.open("/dev/tty", os.O_RDONLY)
        except OSError:
            raise ValueProblem("--interactive needs a terminal", "leave it out to get one answer") from None
        os.dup2(terminal, 0)


def _read_line(prefix: str) -> str:
    with suppress(ImportError):
        import readline  # noqa: F401 - importing it gives input() line editing
    return input(prefix)


def _shown_line(request: Request, program: tuple[str, ...]) -> list[str]:
    line = [*program, request.command]
    for given in request.given.values():
        if given.flag in ("--dryrun", "--dry-run") or given.flag == "--api-key":
            continue  # a key is never shown: the variable RAMALAMA_API_KEY carries it
        if isinstance(given.value, bool):
            line.append(given.flag)
        elif given.flag.startswith("--"):
            value = plain_address(str(given.value)) if given.flag == "--url" else given.value
            line.append(f"{given.flag}={value}")
        else:
            line += [given.flag, str(given.value)]
    return line + (["--", *request.arguments] if request.arguments else [])
