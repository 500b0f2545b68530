"""``df``: what the models take on the disk, and what can be had back."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.launch import Outline
from ramalama_like.models.names import size_text
from ramalama_like.models.usage import find_usage
from ramalama_like.stored import open_store
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request

HEADING = ("NAME", "SIZE", "FREED BY RM")


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    opened = open_store(request)
    for warning in opened.loaded.warnings:
        ui.warn(warning)
    usage = find_usage(opened.store)
    if opened.loaded.settings.json.value:
        import json

        ui.write(json.dumps(to_plain(usage), indent=2) + "\n")
        return 0
    largest_first = sorted(usage.models, key=lambda model: (-model.size_bytes, model.name))
    if largest_first:
        rows = [(model.name, size_text(model.size_bytes), size_text(model.own_bytes)) for model in largest_first]
        ui.table(HEADING, rows, flexible=("NAME",))
        ui.write("\n")
    count = len(usage.models)
    rest = [("in the store", usage.stored, f"{count} model{'' if count == 1 else 's'}, each file once"),
            ("used in place", usage.in_place, "files that lie elsewhere"),
            ("no model uses", usage.unused, "ramalama-like prune --older-than 0 frees them"),
            ("unfinished", usage.unfinished, "downloads that the next pull goes on with")]  # fmt: skip
    lines = [(what, size, why) for what, size, why in rest if size or what == "in the store"]
    if usage.disk_free >= 0:
        lines.append(("free", usage.disk_free, usage.store))
    ui.write("".join(f"{what:<14} {size_text(size):>10}  {ui.one_line(why)}\n" for what, size, why in lines))
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: look, and start nothing. Raises AppError."""
    return Outline(open_store(request).loaded)
