"""What the siblings share: looking into folders that may hold anything, and making records of files in place."""

from __future__ import annotations

import os
from stat import S_ISREG

from ramalama_like.errors import AppError
from ramalama_like.listing import Listing, RemoteFile
from ramalama_like.models.choices import choose, every_choice
from ramalama_like.record import Record, StoredFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ramalama_like.reference import Reference

_MOST_BYTES = 4 << 20  # of a manifest; a larger one is no manifest
_DEEPEST = 6  # folders below a repository


def names_in(folder: str) -> list[str]:
    """The sorted names in a folder; none where it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):  # ValueError: a NUL character in a name from outside
        return []


def read_json(path: str) -> object:
    """The content of a JSON file; None where there is none, or nothing usable."""
    data = read_bytes(path)
    if data is None:
        return None
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def read_bytes(path: str) -> bytes | None:
    """The content of a small file; None for anything else."""
    try:
        # A pipe would otherwise wait for somebody to write into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        if not S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            return None
        return os.read(descriptor, _MOST_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def file_in_place(path: str, role: str, name: str = "") -> StoredFile | None:
    """A file where it lies, at the end of its links; None where it is none or cannot be read."""
    try:
        real = os.path.realpath(path, strict=True)
        status = os.stat(real)
        readable = os.access(real, os.R_OK)
    except (OSError, ValueError):
        return None
    if not S_ISREG(status.st_mode) or not readable:
        return None
    return StoredFile(role, name or os.path.basename(path), status.st_size, path=real, changed_ns=status.st_mtime_ns)


def files_below(folder: str, depth: int = _DEEPEST) -> Iterator[tuple[str, str]]:
    """Path below the folder, and whole path, of each file that is there, hidden ones aside."""
    for name in names_in(folder):
        path = f"{folder}/{name}"
        if name.startswith("."):
            continue
        if os.path.isdir(path):
            if depth and not os.path.islink(path):
                yield from ((f"{name}/{below}", whole) for below, whole in files_below(path, depth - 1))
        elif os.path.isfile(path):
            yield name, path


def find_in_repository(folder: str, reference: Reference, name: str, revision: str = "") -> Record | None:
    """The model that a name means among the files of a repository, where all of it is there. Raises AppError."""
    listing = _listing(folder, name, revision)
    try:
        choice = choose(listing, reference)
    except AppError:
        return None  # the hub may have what is not here
    return _record(folder, name, choice.files, revision)


def every_in_repository(folder: str, repository: str, revision: str = "") -> Iterator[Record]:
    """Each model among the files of a repository, named by its first file."""
    for choice in every_choice(_listing(folder, repository, revision)):
        record = _record(folder, f"{repository}/{choice.files[0].path}", choice.files, revision)
        if record:
            yield record


def _listing(folder: str, name: str, revision: str) -> Listing:
    files = tuple(RemoteFile(below, "", os.path.getsize(path)) for below, path in files_below(folder))
    return Listing(name, files, revision)


def _record(folder: str, name: str, files: Iterable[RemoteFile], revision: str) -> Record | None:
    stored = [file_in_place(f"{folder}/{file.path}", file.role, os.path.basename(file.path)) for file in files]
    return make_record(name, stored, revision)


def make_record(name: str, files: Iterable[StoredFile | None], revision: str = "") -> Record | None:
    """A record of files in place, as old as the youngest of them; None where one is missing."""
    there = []
    for file in files:
        if file is None:
            return None
        there.append(file)
    if not there:
        return None
    return Record(name, tuple(there), max(file.changed_ns for file in there) / 1e9, revision)
