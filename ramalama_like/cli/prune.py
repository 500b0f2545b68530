"""``prune``: remove files of the store that no model uses, and downloads that nobody goes on with."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.checks import duration_seconds
from ramalama_like.launch import Outline, show_if_dry
from ramalama_like.models.names import size_text
from ramalama_like.models.store import Damaged
from ramalama_like.stored import open_store, removal_lines
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request
    from ramalama_like.stored import Opened


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    opened = open_store(request)
    if show_if_dry(request, _outline(opened)):
        return 0
    removed = opened.store.prune(duration_seconds(opened.loaded.settings.older_than.value))
    if opened.loaded.settings.json.value:
        import json

        ui.write(json.dumps(to_plain(removed), indent=2) + "\n")
    else:
        ui.write("".join(f"{ui.one_line(each.path)}\n" for each in removed))
    ui.say(f"Freed {size_text(sum(each.size_bytes for each in removed))}")
    if any(isinstance(each, Damaged) for each in opened.store.records()):
        ui.say("Note: an entry of the store is damaged, so no model's files were removed: see ramalama-like fsck")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    return _outline(open_store(request))


def _outline(opened: Opened) -> Outline:
    unused = opened.store.find_unused(duration_seconds(opened.loaded.settings.older_than.value))
    return Outline(opened.loaded, None, removal_lines([each.path for each in unused]), "files")
