"""Everything that is on this machine under some name: our own store, and those of other programs."""

from __future__ import annotations

import os

from ramalama_like.models.list_index import Entry, list_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ramalama_like.models.caches import Places
    from ramalama_like.models.store import Store
    from ramalama_like.record import Record


def take_inventory(store: Store, cache_dir: str, shortnames: Mapping[str, str], elsewhere: Places | None = None
                   ) -> list[Entry]:  # fmt: skip
    """Every model. ``shortnames`` are names for canonical names; ``elsewhere`` leads to the other programs' stores."""
    found = list_records(store, cache_dir)
    for entry in found:
        if entry.placed:
            entry.problem = _problem_of_texts(entry.placed)
    if elsewhere:
        from ramalama_like.models.caches import every_elsewhere

        for other in every_elsewhere(elsewhere):
            record = other.record
            found.append(Entry(record.name, record.pulled_s, record.size_bytes, store=other.store))
    if shortnames:
        for entry in found:
            entry.shortname = shortnames.get(entry.name, "")
    return found


def problem_of(record: Record) -> str:
    """What is wrong with the files that a record uses in place; empty where nothing is."""
    return next(filter(None, (_problem_of_file(file.path, file.size_bytes, file.changed_ns)
                              for file in record.files if file.path)), "")  # fmt: skip


def _problem_of_texts(placed: Sequence[str]) -> str:
    return next(filter(None, (_problem_of_file(placed[at], int(placed[at + 1]), int(placed[at + 2]))
                              for at in range(0, len(placed), 3))), "")  # fmt: skip


def _problem_of_file(path: str, size_bytes: int, changed_ns: int) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return f"{path} is gone"
    return "" if (status.st_size, status.st_mtime_ns) == (size_bytes, changed_ns) else f"{path} has changed"


def sort_entries(entries: Iterable[Entry], by: str, *, descending: bool) -> list[Entry]:
    """Entries by ``name``, ``size`` or ``modified``; those that are alike by name."""
    keys = {"name": lambda each: each.name, "size": lambda each: (each.size_bytes, each.name),
            "modified": lambda each: (each.modified_s, each.name)}  # fmt: skip
    return sorted(entries, key=keys[by], reverse=descending)


def age_text(seconds: float) -> str:
    """How long ago something was: ``1 minute ago``, ``3 weeks ago``."""
    for unit, length in (("year", 31_536_000), ("month", 2_592_000), ("week", 604_800), ("day", 86_400),
                         ("hour", 3_600), ("minute", 60), ("second", 1)):  # fmt: skip
        count = int(seconds // length)
        if count >= 1:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
