"""``ps``: this program's containers."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.containers import LABEL, list_command, list_containers, need_engine
from ramalama_like.launch import show_lines
from ramalama_like.process import hand_over
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request

HEADING = ("NAME", "MODEL", "PORT", "STATUS", "IMAGE")


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    engine, loaded = need_engine(request)
    asked = loaded.settings
    form = asked.ps_format.value
    if form and form != "json":
        # A template is the engine's own language, so the engine's own output is handed through.
        line = [engine.program, "ps", "-a", "--filter", f"label={LABEL}", "--format", form]
        line += ["--no-trunc"] if asked.no_trunc.value else []
        if asked.dryrun.value:
            show_lines(request, [line], asked.dryrun.value)
            return 0
        return hand_over(line)
    if asked.dryrun.value:
        show_lines(request, [list_command(engine)], asked.dryrun.value)
        return 0
    found = list_containers(engine, asked.timeout.value)
    if form == "json" or asked.json.value:
        import json

        ui.write(json.dumps([to_plain(container) for container in found], indent=2) + "\n")
        return 0
    rows = [(each.name, each.model, each.port or "-", each.status or each.state, each.image) for each in found]
    if found or not asked.noheading.value:
        ui.table(HEADING, rows, show_heading=not asked.noheading.value)
    return 0
