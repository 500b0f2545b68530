"""``list``: the models on this machine."""

from __future__ import annotations

from ramalama_like import settings, ui
from ramalama_like.measurement import size_text
from ramalama_like.models.inventory import age_text, sort_entries, take_inventory
from ramalama_like.models.shortnames import read_shortnames
from ramalama_like.models.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramalama_like.launch import Outline
    from ramalama_like.models.list_index import Entry
    from ramalama_like.request import Request

HEADING = ("SHORTNAME", "NAME", "MODIFIED", "SIZE")


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    asked = loaded.settings
    elsewhere = settings.find_places(asked) if asked.all_stores.value else None
    cache = "" if asked.dryrun.value else settings.user_cache_dir()
    known = read_shortnames(settings.shortname_files()).by_model()
    found = take_inventory(Store(settings.find_store(asked)), cache, known, elsewhere)
    entries = sort_entries(found, asked.sort.value, descending=asked.order.value == "desc")
    if asked.json.value:
        import json

        shown = [_plain(entry, with_store=asked.all_stores.value) for entry in entries]
        ui.write(json.dumps(shown, indent=2) + "\n")
    elif asked.quiet.value:
        ui.write("".join(f"{ui.one_line(entry.name)}\n" for entry in entries))
    else:
        _table(entries, show_heading=not asked.noheading.value, with_store=asked.all_stores.value)
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: look, and start nothing. Raises AppError."""
    from ramalama_like.launch import Outline

    return Outline(settings.load_settings(request))


def _table(entries: list[Entry], *, show_heading: bool, with_store: bool) -> None:
    from time import time

    now = time()
    rows = []
    for entry in entries:
        name = f"{entry.name} ({entry.problem})" if entry.problem else entry.name
        age = age_text(max(0.0, now - entry.modified_s)) if entry.modified_s else "-"
        size = size_text(entry.size_bytes) if entry.size_bytes else "-"
        rows.append((entry.shortname or "-", name, age, size, *((entry.store or "-",) if with_store else ())))
    heading = (*HEADING, "STORE") if with_store else HEADING
    if rows or show_heading:
        ui.table(heading, rows, show_heading=show_heading, flexible=("NAME",))


def _plain(entry: Entry, *, with_store: bool) -> dict[str, Any]:
    from datetime import datetime

    modified = datetime.fromtimestamp(entry.modified_s).astimezone().isoformat()
    plain: dict[str, Any] = {"shortname": entry.shortname, "name": entry.name, "modified": modified,
                             "size": entry.size_bytes}  # fmt: skip
    if with_store:
        plain["store"] = entry.store
    if entry.problem:
        plain["problem"] = entry.problem
    return plain
