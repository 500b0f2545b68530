"""Locks between processes. The kernel frees them when their holder ends, however it ends, so none is ever stale."""

from __future__ import annotations

import os

from ramalama_like.errors import AppError
from ramalama_like.models.disk import open_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

PAUSE_S = 0.02  # between two looks at a lock that somebody else holds
GLANCES = 10  # before a lock counts as held: others take it for a moment to see whether it is


class Busy(AppError):
    """Somebody else holds a lock, and the caller did not want to wait any longer."""

    exit_code = 5


class FileLock:
    """A lock on a file, which is made (with the folder above it) where it is missing. Used in ``with``.

    ``waiting`` is called about fifty times a second for as long as somebody else holds the lock, and may raise to give
    up; without it ``Busy`` is raised after a fifth of a second. A lock is of the object, not of the thread: two objects
    exclude each other within a process too.
    """

    def __init__(self, path: str, *, shared: bool = False, waiting: Callable[[], None] | None = None) -> None:
        self.path = path
        self._shared = shared
        self._waiting = waiting
        self._descriptor = -1

    def __enter__(self) -> FileLock:
        import fcntl

        how = (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        while True:
            descriptor = _open(self.path)
            try:
                self._take(descriptor, how)
                # Whoever held it may have removed the file meanwhile: then this lock excludes nobody.
                if _same_file(descriptor, self.path):
                    self._descriptor, descriptor = descriptor, -1
                    return self
            finally:
                if descriptor >= 0:
                    os.close(descriptor)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        os.close(self._descriptor)  # which frees it
        self._descriptor = -1

    def _take(self, descriptor: int, how: int) -> None:
        import fcntl
        from time import sleep

        glances = 0
        while True:
            try:
                fcntl.flock(descriptor, how)
                return
            except BlockingIOError:
                glances += 1
                if self._waiting is not None:
                    self._waiting()
                elif glances > GLANCES:
                    raise Busy(f"{self.path}: somebody else is using it", "try again when they have finished") from None
                sleep(PAUSE_S)


def is_locked(path: str) -> bool:
    """Whether somebody holds a lock on a file; False for one that does not exist, and for what
    is no plain file: a link, a pipe, a folder. Nothing is made or kept."""
    import fcntl

    try:
        descriptor = open_plain(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def patient(what: str, seconds: float) -> Callable[[], None]:
    """A ``waiting`` that gives up after so many seconds. Raises Busy."""
    from time import monotonic

    deadline = monotonic() + seconds

    def waiting() -> None:
        if monotonic() > deadline:
            raise Busy(f"{what}: somebody else has held it for {seconds:g} seconds", "end the program that holds it")

    return waiting


def _open(path: str) -> int:
    while True:
        try:
            return open_plain(path, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except PermissionError:
            # Somebody else's file in a store that several people share: a lock needs no right to write.
            return open_plain(path, os.O_RDONLY)


def _same_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
