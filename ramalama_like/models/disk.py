"""Writing so that a power failure, a kill or a full disk leaves the old state or the new one, never half of it."""

from __future__ import annotations

import os
from stat import S_ISREG

from ramalama_like.errors import AppError

UNFINISHED = ".new-"  # how the names of files begin that are being written


def write_file(path: str, content: bytes) -> None:
    """Put a file under its name at once: readers see all of it or what was there before. Raises OSError."""
    folder = os.path.dirname(path)
    unfinished = os.path.join(folder, f"{UNFINISHED}{os.getpid()}-{os.urandom(6).hex()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            rest = content
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(unfinished, path)
    except BaseException:
        remove_file(unfinished)
        raise
    sync_folder(folder)


def open_plain(path: str, flags: int) -> int:
    """An ``opener`` for files within the store: follows no link, and waits for nobody at a pipe. Raises OSError."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "is no file", path)
    return descriptor


def is_folder(path: str) -> bool:
    """Whether this is a folder itself, not a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def is_plain(path: str) -> bool:
    """Whether this is a file itself, not a link to one."""
    return os.path.isfile(path) and not os.path.islink(path)


def sync_file(path: str) -> None:
    """Have the content of a file on the disk. Raises OSError."""
    descriptor = open_plain(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """Have the names in a folder on the disk, where its file system can do that."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError:
        return  # some network file systems cannot: nothing is wrong with the name
    finally:
        os.close(descriptor)


def make_folder(path: str) -> None:
    """Make a folder and those above it, where missing. Raises OSError."""
    if not os.path.isdir(path):
        os.makedirs(path, exist_ok=True)
        sync_folder(os.path.dirname(path))


def remove_file(path: str) -> bool:
    """Remove a file; False where there was none. Raises OSError for any other reason."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def disk_problem(path: str, error: OSError) -> AppError:
    """The error for people when the disk refused something."""
    from errno import EACCES, EDQUOT, ENOSPC, EPERM, EROFS

    hints = {ENOSPC: "free some space: `ramalama-like df` tells what the models take", EDQUOT: "your quota is used up",
             EROFS: "its file system can only be read: name another folder with --store",
             EACCES: "name another folder with --store", EPERM: "name another folder with --store"}  # fmt: skip
    return AppError(f"{path}: {error.strerror or error}", hints.get(error.errno or 0, ""), exit_code=5)
