"""``shortnames``: the short names of models, what they stand for, and which file says so."""

from __future__ import annotations

from ramalama_like import settings, ui
from ramalama_like.launch import Outline
from ramalama_like.models.shortnames import read_shortnames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request

HEADING = ("NAME", "TARGET", "FILE")


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    known = read_shortnames(settings.shortname_files())
    for warning in (*loaded.warnings, *known.warnings):
        ui.warn(warning)
    found = [known.names[name] for name in sorted(known.names)]
    if loaded.settings.json.value:
        import json

        rows = [{"name": each.name, "target": each.target, "file": each.source} for each in found]
        ui.write(json.dumps(rows, indent=2) + "\n")
    elif loaded.settings.quiet.value:
        ui.write("".join(f"{ui.one_line(each.name)}\n" for each in found))
    else:
        ui.table(HEADING, [(each.name, each.target, each.source) for each in found], flexible=("TARGET", "FILE"))
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: look, and start nothing. Raises AppError."""
    return Outline(settings.load_settings(request))
