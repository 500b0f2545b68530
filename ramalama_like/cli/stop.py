"""``stop``: end this program's containers and remove them."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.containers import (
    check_here,
    engine_failed,
    find_container,
    is_elsewhere,
    list_containers,
    need_engine,
    no_such_container,
)
from ramalama_like.errors import UsageError
from ramalama_like.launch import Outline, show_outline
from ramalama_like.process import capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.containers import ListedContainer
    from ramalama_like.request import Request

GRACE_S = 10  # before the engine kills what does not end by itself


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    decided = outline(request)
    asked = decided.loaded.settings
    if asked.dryrun.value:
        show_outline(request, decided)
        return 0
    check_here(request, decided.loaded)
    for line in decided.lines:
        done = capture(line, GRACE_S + asked.timeout.value)
        # One that removes itself when it ends is gone before it can be removed.
        if done.code and "no such container" not in done.stderr.lower() and "in progress" not in done.stderr.lower():
            raise engine_failed(line[0], done.stderr, f"{line[1]} {line[-1]}")
        if line[1] == "rm":
            ui.write(f"{ui.one_line(line[-1])}\n")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do; containers are listed for that. Raises AppError."""
    names = list(request.arguments)
    if bool(names) == bool(request.given.get("all")):
        raise UsageError("stop needs a name or --all, and not both", "see the names with: ramalama-like ps",
                         exit_code=22)  # fmt: skip
    engine, loaded = need_engine(request)
    asked = loaded.settings
    if is_elsewhere(loaded):
        if not names:
            check_here(request, loaded)
        chosen = names  # taken at their word: the engine of another machine cannot be asked
    else:
        chosen = _existing(names, list_containers(engine, asked.timeout.value), ignore=asked.ignore.value)
    lines = [(engine.program, verb, *words, name) for name in chosen
             for verb, words in (("stop", ("-t", str(GRACE_S))), ("rm", ("-f",)))]  # fmt: skip
    return Outline(loaded, engine, tuple(lines))


def _existing(names: list[str], ours: list[ListedContainer], *, ignore: bool) -> list[str]:
    chosen = []
    for name in names or [container.name for container in ours]:
        found = find_container(ours, name)
        if found:
            chosen.append(found)
        elif not ignore:
            raise no_such_container(ours, name)
    return chosen
