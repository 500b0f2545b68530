"""The file in which the results of ``bench`` are kept: one JSON object a line, only ever added to.

Whoever adds takes a lock and writes all lines of a run at once, so two programs at the same moment, or one that is
killed, spoil at most their own line; and a line that is spoilt costs no other.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from ramalama_like.errors import AppError
from ramalama_like.measurement import Measurement, measurement_from_plain
from ramalama_like.value import to_plain, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

RECENT_BYTES = 128 * 1024  # what a start looks at: the last 160 or so results, read in 7 ms
ALL_BYTES = 64 * 1024 * 1024  # more has no terminal to show it
PATIENCE_S = 2.0  # for somebody else who is writing


@value
class Kept:
    """What the file holds, in its order, and how many of its lines could not be understood."""

    records: tuple[Measurement, ...] = ()
    damaged: int = 0


def read_results(path: str, limit: int = ALL_BYTES) -> Kept:
    """The results in the last ``limit`` bytes of the file; none where there is no such file.

    Raises AppError where there is one that cannot be read.
    """
    try:
        data = _read_end(path, limit)
    except (FileNotFoundError, NotADirectoryError):
        return Kept()
    except OSError as error:
        raise AppError(f"{path}: {error.strerror}", "see [ramalama.benchmarks] storage_folder", exit_code=5) from None
    if not data.strip():
        return Kept()
    from json import loads

    records: list[Measurement] = []
    damaged = 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            record = measurement_from_plain(loads(line.decode("utf-8")))
        except (ValueError, RecursionError):  # no JSON, no UTF-8, a number of thousands of digits, brackets without end
            record = None
        if record is None:
            damaged += 1
        else:
            records.append(record)
    return Kept(tuple(records), damaged)


def recent_results(path: str) -> tuple[Measurement, ...]:
    """The latest results, for choosing a backend: a file that is missing or unusable only means that there are none."""
    try:
        return read_results(path, RECENT_BYTES).records
    except AppError:
        return ()


def add_results(path: str, records: Sequence[Measurement]) -> None:
    """Add the results of a run to the file. Raises AppError; the file is then as it was."""
    from json import dumps

    lines = "".join(f"{dumps(to_plain(record), ensure_ascii=True)}\n" for record in records).encode()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            status = os.fstat(descriptor)
            if not S_ISREG(status.st_mode):
                raise AppError(f"{path}: is not a file", exit_code=5)
            _lock(path, descriptor)
            _append(path, descriptor, lines)
        finally:
            os.close(descriptor)  # which ends the lock
    except OSError as error:
        raise AppError(f"{path}: {error.strerror}", exit_code=5) from None


def _append(path: str, descriptor: int, lines: bytes) -> None:
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":  # somebody was killed in the middle of a line
        lines = b"\n" + lines
    written = -1
    try:
        written = os.write(descriptor, lines)
    finally:
        if written != len(lines):
            os.ftruncate(descriptor, size)
    if written != len(lines):
        raise AppError(f"{path}: the disk is full", exit_code=5)


def _lock(path: str, descriptor: int) -> None:
    import fcntl
    from time import monotonic, sleep

    deadline = monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if monotonic() > deadline:
                raise AppError(f"{path}: somebody else is holding it", exit_code=5) from None
            sleep(0.02)


def _read_end(path: str, limit: int) -> bytes:
    # Without blocking, since a pipe would otherwise wait for somebody to write into it.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not S_ISREG(status.st_mode):
            raise OSError(0, "is not a file")
        start = max(0, status.st_size - limit)
        if start:
            start -= 1
        file.seek(start)
        data = file.read(limit + 1) or b""
    # What begins in the middle of a line is no line.
    return data.partition(b"\n")[2] if start else data
