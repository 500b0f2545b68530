"""Bytes that are partly in memory and partly in files, read as one: what is uploaded is never copied first."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Pieces:
    """A readable, seekable whole of pieces: bytes, or paths of files.

    Raises OSError where a file cannot be read, ValueError where it has become shorter.
    """

    def __init__(self, pieces: Sequence[bytes | str]) -> None:
        self._pieces = [(piece, len(piece) if isinstance(piece, bytes) else os.stat(piece).st_size) for piece in pieces]
        self.size = sum(size for _, size in self._pieces)
        self._progress: Callable[[int], None] | None = None
        self._place = 0
        self._end = self.size  # a part of the whole may be read as if there were nothing behind it
        self._file: tuple[str, int] | None = None  # path and descriptor of the file that was read last

    def watch(self, progress: Callable[[int], None]) -> None:
        """Tell ``progress`` the place after each read from now on."""
        self._progress = progress

    def limit(self, begin: int, end: int) -> None:
        """Read from ``begin``, and no further than ``end``."""
        self._place, self._end = begin, min(end, self.size)

    def tell(self) -> int:
        """The place from the start of the whole."""
        return self._place

    def seek(self, place: int, whence: int = 0) -> int:
        """Go to a place."""
        self._place = place + (0, self._place, self.size)[whence]
        return self._place

    def seekable(self) -> bool:
        """Always."""
        return True

    def read(self, count: int = -1) -> bytes:
        """At most so many bytes; empty at the end."""
        count = self._end - self._place if count < 0 else min(count, self._end - self._place)
        begin = 0
        for piece, size in self._pieces:
            if begin <= self._place < begin + size and count > 0:
                inside = self._place - begin
                found = piece[inside : inside + count] if isinstance(piece, bytes) else self._of_file(
                    piece, min(count, size - inside), inside)  # fmt: skip
                if not found:
                    raise ValueError(f"{piece!r} has become shorter")
                self._place += len(found)
                if self._progress is not None:
                    self._progress(self._place)
                return found
            begin += size
        return b""

    def _of_file(self, path: str, count: int, place: int) -> bytes:
        if self._file is None or self._file[0] != path:
            self.close()
            self._file = (path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        return os.pread(self._file[1], count, place)

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            os.close(self._file[1])
            self._file = None

    def digest(self) -> str:
        """sha256:… of the whole."""
        from hashlib import sha256

        total = sha256()
        self.limit(0, self.size)
        while piece := self.read(1 << 20):
            total.update(piece)
        self.limit(0, self.size)
        return f"sha256:{total.hexdigest()}"
