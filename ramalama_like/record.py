"""What the store keeps of a model: which files make it up, and where they came from."""

from __future__ import annotations

from ramalama_like.value import value


@value
class StoredFile:
    """One file of a model: a blob of the store, or (``path`` set) a file that is used where it lies."""

    role: str  # as in listing.py
    name: str  # file name, without folders
    size_bytes: int
    sha256: str = ""  # of a blob
    path: str = ""  # absolute
    changed_ns: int = 0  # of a file in place: its time of change when it was noted, so that a change is noticed


@value
class Record:
    """A name in the store. ``name`` is canonical; two records may share blobs."""

    name: str
    files: tuple[StoredFile, ...]
    pulled_s: float  # Unix time
    revision: str = ""  # commit or digest of the manifest
    source: str = ""  # address that it was fetched from, without secrets

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)
