"""``chat``: talk to a server that is running: one question, standard input, or a conversation at the terminal."""

from __future__ import annotations

import os

from ramalama_like import settings, ui
from ramalama_like.chat.client import list_models, parse_address, plain_address, wait_healthy
from ramalama_like.chat.display import PlainDisplay, SilentDisplay, TerminalDisplay
from ramalama_like.chat.session import Session
from ramalama_like.chat.wishes import attachments_of, parameters_of
from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.chat.mcp import Toolbox
    from ramalama_like.chat.session import Answer
    from ramalama_like.launch import Outline
    from ramalama_like.options import Settings
    from ramalama_like.request import Request


TERMINAL = "/dev/tty"  # where permission is asked, whatever the standard streams are


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    asked = loaded.settings
    for warning in loaded.warnings:
        ui.warn(warning)
    address = parse_address(asked.url.value)
    if asked.dryrun.value:
        from ramalama_like.launch import show_outline

        show_outline(request, outline(request))
        return 0
    # Everything that can be wrong is looked at before a server is waited for.
    session = Session(address, api_key=asked.api_key.value, model=asked.model.value, parameters=parameters_of(asked),
                      summarize_after=asked.summarize_after.value)  # fmt: skip
    session.system = asked.system.value
    session.waiting = attachments_of(asked, _expanded)
    if asked.wait.value:
        wait_healthy(address, asked.wait.value)
    if asked.list_models.value:
        ui.write("".join(f"{ui.one_line(name)}\n" for name in list_models(address, asked.api_key.value)))
        return 0
    if asked.mcp.value:
        session.toolbox = _toolbox(asked.mcp.value)
        session.allow = _ask_permission
    prompt = _prompt(request)
    if prompt is None or asked.interactive.value:
        _converse(session, asked, prompt)
        return 0
    if not prompt.strip():
        raise ValueProblem("nothing was asked: the prompt is empty", "write it at the end of the line, or pipe it in")
    if asked.answer_json.value:
        _write_json(session, session.ask(prompt, SilentDisplay()))
    elif ui.is_terminal(1):
        session.ask(prompt, _display(asked))
    else:
        session.ask(prompt, _display(asked) if asked.color.value == "always" else PlainDisplay(ui.write))
    return 0


def _converse(session: Session, asked: Settings, prompt: str | None) -> None:
    from ramalama_like.chat.conversation import Conversation
    from ramalama_like.chat.line_editor import LineEditor

    if asked.answer_json.value:
        raise ValueProblem("--json is for one answer, not for a conversation", "give the question on the command line")
    _reopen_terminal()
    display = _display(asked)
    with LineEditor(settings.chat_history_file()) as editor:
        prefix = asked.prefix.value or "> "
        talk = Conversation(session, display, say=ui.say, read_line=editor.read, prefix=prefix, expand=_expanded,
                            tell_error=ui.error)  # fmt: skip
        talk.loop(prompt or "")


def _toolbox(urls: tuple[str, ...]) -> Toolbox:
    from ramalama_like import __version__
    from ramalama_like.chat.mcp import Toolbox, ToolServer

    return Toolbox([ToolServer(url, "ramalama-like", __version__) for url in urls])


def _ask_permission(name: str, where: str, arguments: str) -> bool:
    """Whether a tool may be called; where nobody can be asked, it may not."""
    ui.say(f"The model wants to call {ui.one_line(name)} at {ui.one_line(where)} with {ui.one_line(arguments)}")
    try:
        descriptor = os.open(TERMINAL, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        ui.say("It was not allowed: there is no terminal to ask at.")
        return False
    with os.fdopen(descriptor, "rb", buffering=0) as terminal:
        os.write(descriptor, b"Allow it? [y/N] ")
        return terminal.readline().strip().lower() in (b"y", b"yes")


def _expanded(path: str) -> str:
    from ramalama_like.checks import with_home

    return with_home(path, settings.home_dir())


def _display(asked: Settings) -> TerminalDisplay:
    """How answers are shown to a person. Styles need a terminal that nobody told to be without."""
    styled = asked.color.value == "always" or (
        asked.color.value == "auto" and ui.is_terminal(1) and not settings.no_color()
    )

    def width() -> int:  # each time anew: windows change
        return ui.terminal_width() if ui.is_terminal(1) else 0

    return TerminalDisplay(ui.write, width=width, styled=styled, unicode=ui.speaks_unicode(),
                           thoughts=asked.thoughts.value)  # fmt: skip


def _write_json(session: Session, answer: Answer) -> None:
    import json
    from math import isfinite

    ending = answer.ending
    # A number that is none has no place in JSON.
    timings = {key: each for key, each in ending.timings.items() if not isinstance(each, float) or isfinite(each)}
    counts = {"prompt_tokens": ending.prompt_tokens, "completion_tokens": ending.tokens}
    usage = {name: count for name, count in counts.items() if count is not None}
    if len(usage) == len(counts):
        usage["total_tokens"] = sum(usage.values())
    plain = {"text": answer.text, "reasoning": answer.reasoning, "model": session.model,
             "finish_reason": ending.reason, "usage": usage, "timings": timings}  # fmt: skip
    ui.write(json.dumps(plain, indent=2) + "\n")


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
            terminal = os.open(TERMINAL, os.O_RDONLY)
        except OSError:
            raise ValueProblem("--interactive needs a terminal", "leave it out to get one answer") from None
        os.dup2(terminal, 0)


def _shown_line(request: Request, program: tuple[str, ...]) -> list[str]:
    line = [*program, request.command]
    for given in request.given.values():
        if given.flag in ("--dryrun", "--dry-run") or given.flag == "--api-key":
            continue  # a key is never shown: the variable RAMALAMA_API_KEY carries it
        if isinstance(given.value, bool):
            line.append(given.flag)
        elif isinstance(given.value, tuple | list):
            line += [f"{given.flag}={plain_address(str(each))}" for each in given.value]
        elif given.flag.startswith("--"):
            value = plain_address(str(given.value)) if given.flag == "--url" else given.value
            line.append(f"{given.flag}={value}")
        else:
            line += [given.flag, str(given.value)]
    return line + (["--", *request.arguments] if request.arguments else [])
