"""Everything that is on this machine under some name: our own store, and those of other programs."""

from __future__ import annotations

import os

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ramalama_like.models.caches import Places
    from ramalama_like.models.store import Store
    from ramalama_like.record import Record


@value
class Entry:
    """One line of ``list``."""

    name: str
    modified_s: float  # Unix time; 0 where it is not known
    size_bytes: int
    store: str = ""  # whose; empty for our own
    shortname: str = ""
    problem: str = ""  # why it cannot be run


def take_inventory(store: Store, shortnames: Mapping[str, str], elsewhere: Places | None = None) -> list[Entry]:
    """Every model. ``shortnames`` are names for canonical names; ``elsewhere`` leads to the other programs' stores."""
    from ramalama_like.models.store import Damaged

    found = []
    for each in store.records():
        if isinstance(each, Damaged):
            found.append(Entry(each.name, 0.0, 0, problem=each.problem))
        else:
            found.append(_entry(each, "", shortnames, problem_of(each)))
    if elsewhere:
        from ramalama_like.models.caches import every_elsewhere

        found += [_entry(each.record, each.store, shortnames, "") for each in every_elsewhere(elsewhere)]
    return found


def problem_of(record: Record) -> str:
    """What is wrong with the files that a record uses in place; empty where nothing is."""
    for file in record.files:
        if not file.path:
            continue
        try:
            status = os.stat(file.path)
        except OSError:
            return f"{file.path} is gone"
        if (status.st_size, status.st_mtime_ns) != (file.size_bytes, file.changed_ns):
            return f"{file.path} has changed"
    return ""


def _entry(record: Record, store: str, shortnames: Mapping[str, str], problem: str) -> Entry:
    return Entry(record.name, record.pulled_s, record.size_bytes, store, shortnames.get(record.name, ""), problem)


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
