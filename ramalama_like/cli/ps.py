"""``ps``: this program's containers."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.containers import LABEL, check_here, list_command, list_containers, need_engine
from ramalama_like.launch import Outline, show_outline
from ramalama_like.process import hand_over
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.facts import EngineFacts
    from ramalama_like.options import Settings
    from ramalama_like.request import Request

HEADING = ("NAME", "MODEL", "PORT", "STATUS", "IMAGE")


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    engine, loaded = need_engine(request)
    asked = loaded.settings
    if asked.dryrun.value:
        show_outline(request, outline(request))
        return 0
    check_here(request, loaded)
    form = asked.ps_format.value
    if form and form != "json":
        return hand_over(_line(engine, asked))
    found = list_containers(engine, asked.timeout.value)
    if form == "json" or asked.json.value:
        import json

        ui.write(json.dumps([to_plain(container) for container in found], indent=2) + "\n")
        return 0
    rows = [(each.name, each.model, each.port or "-", each.status or each.state, each.image) for each in found]
    if found or not asked.noheading.value:
        ui.table(HEADING, rows, show_heading=not asked.noheading.value)
    return 0


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    engine, loaded = need_engine(request)
    return Outline(loaded, engine, (_line(engine, loaded.settings),))


def _line(engine: EngineFacts, asked: Settings) -> tuple[str, ...]:
    form = asked.ps_format.value
    if not form or form == "json":
        return list_command(engine)
    # A template is the engine's own language, so the engine's own output is handed through.
    shortened = () if not asked.no_trunc.value else ("--no-trunc",)
    return (engine.program, "ps", "-a", "--filter", f"label={LABEL}", "--format", form, *shortened)
