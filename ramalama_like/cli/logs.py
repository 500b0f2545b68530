"""``logs``: what a container has printed."""

from __future__ import annotations

from ramalama_like.containers import check_here, find_container, list_containers, need_engine, no_such_container
from ramalama_like.launch import Outline, show_outline
from ramalama_like.process import hand_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.facts import EngineFacts
    from ramalama_like.options import Settings
    from ramalama_like.request import Request


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    engine, loaded = need_engine(request)
    asked = loaded.settings
    name = request.arguments[0]
    if asked.dryrun.value:
        show_outline(request, outline(request))
        return 0
    check_here(request, loaded)
    found = list_containers(engine, asked.timeout.value)
    if not find_container(found, name):
        raise no_such_container(found, name)
    return hand_over(_line(request, engine, asked))


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    engine, loaded = need_engine(request)
    return Outline(loaded, engine, (_line(request, engine, loaded.settings),))


def _line(request: Request, engine: EngineFacts, asked: Settings) -> tuple[str, ...]:
    follow = ("-f",) if asked.follow.value else ()
    tail = () if asked.tail.value is None else ("--tail", str(asked.tail.value))
    return (engine.program, "logs", *follow, *tail, request.arguments[0])
