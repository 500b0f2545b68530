"""The bytes of a blob while they come from a registry: summed up, decompressed, and gone on with after a cut."""

from __future__ import annotations

import contextlib

from ramalama_like.errors import ValueProblem
from ramalama_like.models import failures
from ramalama_like.models.failures import Passing
from ramalama_like.reference import plain_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import IO, Any

    from ramalama_like.listing import RemoteFile
    from ramalama_like.models.client import Client, Stream

_PIECE = 1 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class BlobStream:
    """The bytes of a blob from the first to the last, summed up; connections that are cut are taken up again."""

    def __init__(
        self, client: Client, archive: RemoteFile, authorization: str, progress: Callable[[int], None]
    ) -> None:
        from hashlib import sha256

        self.place = 0
        self._client = client
        self._archive = archive
        self.url = archive.url
        self._authorization = authorization
        self._progress = progress
        self._sum = sha256()
        self._attempt = 0
        self._open = contextlib.ExitStack()
        self._stream = self._begin()

    def _begin(self) -> Stream:
        headers = {"Range": f"bytes={self.place}-"} if self.place else {}
        stream = self._open.enter_context(
            self._client.stream(self._archive.url, headers=headers, authorization=self._authorization)
        )
        if self.place and not (stream.status == 206 and
                               stream.headers.get("content-range", "").startswith(f"bytes {self.place}-")):  # fmt: skip
            # It begins anew: what is known already is read over.
            over = self.place
            while over:
                over -= len(stream.read(min(_PIECE, over)) or self._short())
        return stream

    def _short(self) -> bytes:
        raise failures.wrong_size(self._archive.url, self.place, self._archive.size_bytes)

    def read(self, count: int = _PIECE) -> bytes:
        """The next bytes; empty at the end."""
        while True:
            try:
                piece: bytes = self._stream.read(min(count, _PIECE))
                break
            except Passing as problem:
                self._open.close()
                self._client.wait_before(self._attempt, self._archive.url, problem)
                self._attempt += 1
                self._stream = self._begin()
        if piece:
            self._attempt = 0
            self.place += len(piece)
            self._sum.update(piece)
            self._progress(self.place)
            if 0 <= self._archive.size_bytes < self.place:
                raise failures.wrong_size(self._archive.url, self.place, self._archive.size_bytes)
        return piece

    def finish(self) -> None:
        """Read what is left, and compare all of it with its digest. Raises AppError."""
        while self.read():
            pass
        if 0 <= self._archive.size_bytes != self.place:
            raise failures.wrong_size(self._archive.url, self.place, self._archive.size_bytes)
        if self._sum.hexdigest() != self._archive.sha256:
            raise failures.wrong_hash(self._archive.url, self._sum.hexdigest(), self._archive.sha256)

    def __enter__(self) -> BlobStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self._open.__exit__(kind, error, trace)


def open_archive(source: BlobStream) -> IO[bytes]:
    """A reader of the archive itself, whatever it is packed with."""
    first = source.read()
    while 0 < len(first) < 4 and (more := source.read()):
        first += more
    if first.startswith(_ZSTD):
        raise ValueProblem(f"{plain_url(source.url)}: is packed with zstd, which this program cannot unpack",
                           "ask its maker for a layer packed with gzip, or push the model as an artifact")  # fmt: skip
    return _Unpacking(source, first, first.startswith(_GZIP))  # type: ignore[return-value]


class _Unpacking:
    """Reads like a file; gzip in any number of members is taken away."""

    def __init__(self, source: BlobStream, first: bytes, packed: bool) -> None:
        self._source = source
        self._ready = bytearray() if packed else bytearray(first)
        self._raw = first if packed else b""
        self._packed = packed
        self._member = _new_member() if packed else None

    def read(self, count: int) -> bytes:
        """Exactly so many bytes, fewer only at the end."""
        while len(self._ready) < count:
            piece = self._next() if self._packed else self._source.read()
            if not piece:
                break
            self._ready += piece
        found = bytes(self._ready[:count])
        del self._ready[:count]
        return found

    def _next(self) -> bytes:
        import zlib

        while self._member is not None:
            if not self._raw:
                self._raw = self._source.read(1 << 18)
                if not self._raw:
                    return b""
            if self._member.eof:
                # Another member, or the padding that some programs append.
                if not self._raw.startswith(_GZIP[: len(self._raw)]):
                    return b""
                self._member = _new_member()
            try:
                piece: bytes = self._member.decompress(self._raw, _PIECE)
            except zlib.error:
                from tarfile import ReadError

                raise ReadError("damaged compression") from None
            self._raw = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if piece:
                return piece
        return b""


def _new_member() -> Any:
    import zlib

    return zlib.decompressobj(31)
