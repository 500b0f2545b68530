"""One file from a hub into the store: each byte once, verified, going on where an earlier try ended.

Nothing gets its final name before its size, its published sum and its header are right. See ``transfer.py`` for how
the bytes come, ``ranges.py`` for which come when, ``resume.py`` for what is remembered.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.models import failures
from ramalama_like.models.disk import is_folder, open_plain
from ramalama_like.models.failures import Passing
from ramalama_like.models.file_names import check_path
from ramalama_like.models.gguf import read_gguf, read_gguf_prefix
from ramalama_like.models.ranges import Ranges, piece_size
from ramalama_like.models.record_files import is_sha256
from ramalama_like.models.resume import Resumed, Version, forget, read_state, url_sum, validator_of, write_state
from ramalama_like.models.transfer import (
    UNKNOWN,
    ChangedError,
    DamagedError,
    NoRangesError,
    Transfer,
    content_range,
    range_headers,
)
from ramalama_like.reference import plain_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from ramalama_like.listing import RemoteFile
    from ramalama_like.models.client import Client, Stream
    from ramalama_like.models.store import Store

    class Unfinished(Protocol):
        """Where an unfinished download lies."""

        data_path: str
        state_path: str


CONNECTIONS = 8  # to one host at once
MOST_CHANGES = 2  # of a file at the hub while it is being fetched, before it is fetched over one connection
FIRST_BYTES = 24  # of a GGUF file, that tell what it is


def fetch(client: Client, file: RemoteFile, store: Store, *, authorization: str = "", connections: int = CONNECTIONS,
          progress: Callable[[int], None] | None = None, waiting: Callable[[], None] | None = None,
          verify_gguf: bool = True) -> tuple[str, int]:  # fmt: skip
    """Have a file in the store; returns its SHA-256 and its size in bytes.

    ``progress`` is called from this thread with the bytes that are here, again and again; it goes back where a file
    that has changed is begun anew. ``waiting`` is called while another process fetches the same file.

    Raises AppError; what has come is then kept for the next try, unless it was wrong.
    """
    check_path(file.path, plain_url(file.url))
    if file.sha256 and not is_sha256(file.sha256):
        raise failures.nonsense(file.url, "a sum that is no SHA-256")
    if file.sha256 and store.has_blob(file.sha256, file.size_bytes):
        return file.sha256, os.path.getsize(store.blob_path(file.sha256))
    job = _Job(client, file, authorization, connections, progress or _tell_nobody, verify_gguf)
    with store.partial(file.sha256 or f"url-{job.url_sum}", waiting or _wait_on) as partial:
        if file.sha256 and store.has_blob(file.sha256, file.size_bytes):
            return file.sha256, os.path.getsize(store.blob_path(file.sha256))  # the other process has finished it
        memory = f"{os.path.dirname(partial.data_path)}.done"
        if not is_folder(memory):
            forget(memory)  # a link would lead out of the store
        known = "" if file.sha256 else job.find_finished(memory, store)
        if known:
            return known, os.path.getsize(store.blob_path(known))
        sha256, version = job.run(partial)
        job.progress(version.size_bytes)
        store.adopt(partial.data_path, sha256)
        if not file.sha256 and version.validator:
            _remember(memory, version, sha256)
        return sha256, version.size_bytes


def _tell_nobody(done_bytes: int) -> None:
    """No progress is wanted."""


def _wait_on() -> None:
    """However long it takes."""


def _remember(folder: str, version: Version, sha256: str) -> None:
    # The next pull of a model whose other files failed need not fetch this one again; without the note it would.
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        write_state(f"{folder}/state.json", version, (), sha256)


class _Job:
    """One file that is wanted."""

    def __init__(self, client: Client, file: RemoteFile, authorization: str, connections: int,
                 progress: Callable[[int], None], verify_gguf: bool) -> None:  # fmt: skip
        self.client = client
        self.file = file
        self.authorization = authorization
        self.connections = max(1, connections)
        self.progress = progress
        self.verify_gguf = verify_gguf
        self.url_sum = url_sum(file.url)
        self.name = plain_url(file.url)

    def find_finished(self, memory: str, store: Store) -> str:
        """The sum of the very file that the hub offers now, if it is in the store already; else empty."""
        found = read_state(f"{memory}/state.json")
        if found is None or found.version.url_sum != self.url_sum or not found.sha256:
            return ""
        if not store.has_blob(found.sha256, found.version.size_bytes):
            return ""
        with self._open(0, 1) as stream:
            return found.sha256 if self._version_of(stream) == found.version else ""

    def run(self, partial: Unfinished) -> tuple[str, Version]:
        """Have the whole file, verified, at the partial's ``data_path``."""
        done = False  # sys.exc_info() would also tell of what a caller is handling
        try:
            found = self._try_until_done(partial)
            done = True
        finally:
            if not done and not os.path.exists(partial.state_path):
                forget(partial.data_path)  # nobody could go on with it
        return found

    def _try_until_done(self, partial: Unfinished) -> tuple[str, Version]:
        ranged, changes, failed = True, 0, 0
        resumed = read_state(partial.state_path)
        if resumed is not None and not self._is_of_this(resumed, partial.data_path):
            resumed = None
        while True:
            if resumed is None:
                _drop(partial)
            try:
                return self._attempt(partial, resumed, self.connections if ranged else 0)
            except ChangedError:
                changes += 1
                if changes > MOST_CHANGES:
                    ranged = False  # one answer is of one version
                if changes > 2 * MOST_CHANGES:
                    raise failures.nonsense(self.file.url, "another file each time") from None
            except NoRangesError:
                ranged = False
            except DamagedError as error:
                if resumed is None:
                    _drop(partial)
                    raise error.failure from None
                # What an earlier run left may be to blame.
            except Passing as failure:
                if ranged:
                    raise
                self.client.wait_before(failed, self.file.url, failure)
                failed += 1
            resumed = None

    def _is_of_this(self, resumed: Resumed, path: str) -> bool:
        version = resumed.version
        if (version.url_sum, version.sha256) != (self.url_sum, self.file.sha256) or not version.is_certain:
            return False
        try:
            return os.lstat(path).st_size == version.size_bytes
        except OSError:
            return False

    def _attempt(self, partial: Unfinished, resumed: Resumed | None, connections: int) -> tuple[str, Version]:
        descriptor = _open_data(partial.data_path)
        try:
            sha256, version = self._fill(descriptor, partial, resumed, connections)
        finally:
            os.close(descriptor)
        if self.file.sha256 and sha256 != self.file.sha256:
            raise DamagedError(failures.wrong_hash(self.file.url, sha256, self.file.sha256))
        if self.verify_gguf:
            try:
                read_gguf(partial.data_path)
            except ValueProblem as error:
                message = error.message.replace(partial.data_path, self.name)
                raise DamagedError(ValueProblem(message, error.hint)) from None
        return sha256, version

    def _fill(self, descriptor: int, partial: Unfinished, resumed: Resumed | None,
              connections: int) -> tuple[str, Version]:  # fmt: skip
        expected = self.file.size_bytes
        begin, end = 0, piece_size(expected if expected > 0 else UNKNOWN, max(1, connections), 0, 0)
        if resumed is not None:
            ranges = Ranges(resumed.version.size_bytes, resumed.done)
            if ranges.done_bytes == ranges.size and self.file.sha256:
                return _hash_all(descriptor, ranges.size), resumed.version
            begin = min(ranges.frontier, max(0, ranges.size - 1))
            end = begin + piece_size(max(1, ranges.unclaimed_bytes), max(1, connections), 0, 0)
        with self._open(begin, end if connections else 0) as stream:
            version = self._version_of(stream)
            if expected >= 0 and version.size_bytes not in (expected, -1):
                raise failures.wrong_size(self.file.url, version.size_bytes, expected)
            whole = stream.status == 200
            if resumed is not None and (version != resumed.version or not version.is_certain or whole):
                raise ChangedError
            first, last, _ = (0, UNKNOWN, 0) if whole else content_range(stream.headers)
            if first != begin or (not whole and stream.left not in (-1, last - first)):
                raise NoRangesError
            size = version.size_bytes if version.size_bytes >= 0 else UNKNOWN
            ranges = Ranges(size, resumed.done if resumed else ())
            self._make_room(descriptor, partial.data_path, size)
            if ranges.done_bytes == size:
                return _hash_all(descriptor, size), version
            transfer = Transfer(self.client, self.file.url, self.authorization, version, ranges, descriptor,
                                partial.state_path, self._early_check, lambda: _allocate(descriptor, size))  # fmt: skip
            try:
                sha256 = transfer.run(stream, first, last, connections, self.progress)
            except (AppError, KeyboardInterrupt) as error:
                if version.is_certain and not whole:
                    with suppress(OSError):
                        transfer.save()
                if whole and connections and isinstance(error, Passing):
                    raise NoRangesError from None  # to be tried again, from the start
                raise
        size = transfer.size_bytes
        os.ftruncate(descriptor, size)
        if expected >= 0 and size != expected:
            raise failures.wrong_size(self.file.url, size, expected)
        return sha256, Version(version.url_sum, size, version.validator, version.sha256)

    def _open(self, begin: int, end: int) -> Stream:
        """The first answer: it tells the size, the version, and where the bytes really are."""
        headers = range_headers(begin, end) if end else {}
        stream = self.client.stream(self.file.url, headers=headers, authorization=self.authorization, allow=(416,))
        if stream.status == 416:
            stream.finish()
            if not end:
                raise failures.refused(416, self.file.url, stream.headers, authorized=bool(self.authorization))
            raise NoRangesError if not begin else ChangedError
        encoding = stream.headers.get("content-encoding", "identity")
        fine = stream.status == 200 or (stream.status == 206 and end)
        if not fine or encoding.lower() not in ("identity", ""):
            stream.close()
            what = "it compressed" if fine else f"nothing to keep (HTTP {stream.status})"
            raise failures.nonsense(self.file.url, what)
        return stream

    def _version_of(self, stream: Stream) -> Version:
        size = content_range(stream.headers)[2] if stream.status == 206 else stream.left
        validator = validator_of(stream.headers, published=bool(self.file.sha256))
        return Version(self.url_sum, size, validator, self.file.sha256)

    def _early_check(self, first: bytes, size: int) -> bool:
        if not self.verify_gguf:
            return True
        if len(first) < min(FIRST_BYTES, size):
            return False
        try:
            read_gguf_prefix(self.name, first, max(size, len(first) + 1))
        except ValueProblem as error:
            raise DamagedError(error) from None
        return True

    def _make_room(self, descriptor: int, path: str, size: int) -> None:
        """Give the file its length, or say at once that there is too little space for it."""
        if size == UNKNOWN:
            return
        folder = os.path.dirname(path)
        try:
            status = os.fstat(descriptor)
            if status.st_size > size:
                os.ftruncate(descriptor, size)
            disk = os.fstatvfs(descriptor)
            needed, free = size - status.st_blocks * 512, disk.f_bavail * disk.f_frsize
            if needed > free:
                raise failures.no_space(folder, needed, free)
            if status.st_size < size:
                os.ftruncate(descriptor, size)
        except OSError as error:
            raise failures.disk(error, folder) from None


def _allocate(descriptor: int, size: int) -> None:
    """Take the disk space for all of the file, where its file system can do that. Raises OSError."""
    from errno import EDQUOT, ENOSPC

    if 0 < size < UNKNOWN:
        code = _fallocate(descriptor, size)
        if code in (ENOSPC, EDQUOT):
            raise OSError(code, os.strerror(code))


def _fallocate(descriptor: int, size: int) -> int:
    """Linux's call of this name; the error's number, 0 where there was none.

    Not ``os.posix_fallocate``: where the file system cannot do it, that writes a zero into each block, which would
    damage what is being written at the same time.
    """
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if call is None:
        return 0
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)
    return ctypes.get_errno() if call(descriptor, 0, 0, size) else 0


def _open_data(path: str) -> int:
    try:
        return open_plain(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise failures.disk(error, path) from None


def _drop(partial: Unfinished) -> None:
    forget(partial.state_path)
    forget(partial.data_path)


def _hash_all(descriptor: int, size: int) -> str:
    from hashlib import sha256

    found, at = sha256(), 0
    while at < size and (piece := os.pread(descriptor, min(1 << 20, size - at), at)):
        found.update(piece)
        at += len(piece)
    return found.hexdigest()
