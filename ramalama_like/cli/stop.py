"""``stop``: end this program's containers and remove them."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.containers import engine_failed, find_container, list_containers, need_engine, no_such_container
from ramalama_like.errors import UsageError
from ramalama_like.launch import show_lines
from ramalama_like.process import capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request

GRACE_S = 10  # before the engine kills what does not end by itself


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    names = list(request.arguments)
    if bool(names) == bool(request.given.get("all")):
        raise UsageError("stop needs a name or --all, and not both", "see the names with: ramalama-like ps",
                         exit_code=22)  # fmt: skip
    engine, loaded = need_engine(request)
    asked = loaded.settings
    ours = list_containers(engine, asked.timeout.value)
    chosen = []
    for name in names or [container.name for container in ours]:
        found = find_container(ours, name)
        if found:
            chosen.append(found)
        elif not asked.ignore.value:
            raise no_such_container(ours, name)
    lines = [(engine.program, verb, *words, name) for name in chosen
             for verb, words in (("stop", ("-t", str(GRACE_S))), ("rm", ("-f",)))]  # fmt: skip
    if asked.dryrun.value:
        show_lines(request, lines, asked.dryrun.value)
        return 0
    for line in lines:
        done = capture(line, GRACE_S + asked.timeout.value)
        # One that removes itself when it ends is gone before it can be removed.
        if done.code and "no such container" not in done.stderr.lower() and "in progress" not in done.stderr.lower():
            raise engine_failed(engine, done.stderr, f"{line[1]} {line[-1]}")
        if line[1] == "rm":
            ui.write(f"{ui.one_line(line[-1])}\n")
    return 0
