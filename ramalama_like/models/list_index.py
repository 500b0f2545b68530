"""What ``list`` shows of the store, in one file: reading 5,000 records one by one would take half a second.

It is a cache of the user, kept outside the store, and tells which state of the folder of records it was made from.
Each change of a record is a rename in that folder, so its time of change tells whether the index still holds.
"""

from __future__ import annotations

import os

from ramalama_like.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.models.store import Damaged, Store

FEW = 64  # records that are read as quickly
# A change within the same tick of the file system's clock leaves the time as it was; two seconds is the longest tick
# in use (FAT).
_SETTLED_NS = 2_000_000_000
_VERSION = "1"


class Entry:
    """One line of ``list``; no ``@value``, since 5,000 of them would cost 30 ms more."""

    __slots__ = ("modified_s", "name", "placed", "problem", "shortname", "size_bytes", "store")

    def __init__(self, name: str, modified_s: float, size_bytes: int, placed: Sequence[str] = (), store: str = "",
                 problem: str = "") -> None:  # fmt: skip
        self.name = name
        self.modified_s = modified_s  # Unix time; 0 where it is not known
        self.size_bytes = size_bytes
        self.placed = placed  # of each file that is used where it lies: path, size, time of change in ns, as text
        self.store = store  # whose; empty for our own
        self.problem = problem  # why it cannot be run
        self.shortname = ""


def list_records(store: Store, cache_dir: str) -> list[Entry]:
    """A line for each record of the store, sorted by name. Nothing is kept where ``cache_dir`` is empty.

    Raises AppError where the store cannot be listed.
    """
    folder = os.path.join(store.folder, "refs")
    stamp = _stamp(folder) if cache_dir else ""
    path = f"{cache_dir}/list-{_short(store.folder)}.tsv"
    if stamp:
        found = _read(path, stamp)
        if found is not None:
            return found
    entries = [_entry(each) for each in store.records()]
    if stamp and len(entries) >= FEW and stamp == _stamp(folder) and _is_settled(folder):
        _write(path, stamp, entries)
    return entries


def _entry(record: Record | Damaged) -> Entry:
    if not isinstance(record, Record):
        return Entry(record.name, 0.0, 0, problem=f"damaged: {record.reason}")
    placed = [text for file in record.files if file.path
              for text in (file.path, str(file.size_bytes), str(file.changed_ns))]  # fmt: skip
    return Entry(record.name, record.pulled_s, record.size_bytes, placed)


def _stamp(folder: str) -> str:
    try:
        status = os.stat(folder)
    except OSError:
        return ""
    return f"{_VERSION}\t{folder}\t{status.st_dev}\t{status.st_ino}\t{status.st_mtime_ns}"


def _is_settled(folder: str) -> bool:
    from time import time_ns

    return time_ns() - os.stat(folder).st_mtime_ns > _SETTLED_NS


def _short(text: str) -> str:
    from zlib import crc32

    return f"{crc32(text.encode('utf-8', 'surrogateescape')):08x}"


def _read(path: str, stamp: str) -> list[Entry] | None:
    """The lines of the index; None where it is another folder's, an older one, or none at all."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            lines = file.read().split("\n")
        if lines[0] != stamp or lines[-1] != "":
            return None
        found = []
        for line in lines[1:-1]:
            name, pulled_s, size_bytes, *placed = line.split("\t")
            found.append(Entry(name, float(pulled_s), int(size_bytes), placed))
    except (OSError, ValueError):
        return None
    return found


def _write(path: str, stamp: str, entries: Sequence[Entry]) -> None:
    """A cache that cannot be written costs only that. Of a damaged record none is kept: it may become whole again
    without a trace in the folder."""
    lines = [stamp]
    for each in entries:
        if each.problem:
            return
        cells = [each.name, repr(each.modified_s), str(each.size_bytes), *each.placed]
        if any("\t" in cell or "\n" in cell for cell in cells):
            return
        lines.append("\t".join(cells))
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            file.write("\n".join(lines) + "\n")
        os.replace(temporary, path)
    except OSError:
        return
