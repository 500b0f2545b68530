"""``logs``: what a container has printed."""

from __future__ import annotations

from ramalama_like.containers import find_container, list_containers, need_engine, no_such_container
from ramalama_like.launch import show_lines
from ramalama_like.process import hand_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    engine, loaded = need_engine(request)
    asked = loaded.settings
    name = request.arguments[0]
    line = [engine.program, "logs"]
    line += ["-f"] if asked.follow.value else []
    line += [] if asked.tail.value is None else ["--tail", str(asked.tail.value)]
    line.append(name)
    if asked.dryrun.value:
        show_lines(request, [line], asked.dryrun.value)
        return 0
    found = list_containers(engine, asked.timeout.value)
    if not find_container(found, name):
        raise no_such_container(found, name)
    return hand_over(line)
