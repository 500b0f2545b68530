"""Reading and writing whole files whose names people give: whatever such a name turns out to be.

A name may stand for a file, for a link to one, or for something that is no file at all: a pipe, a terminal,
``/dev/null``. Reading never waits for somebody to write. Writing replaces a file at once or not at all, and never
takes the place of a link, a pipe or a device.
"""

from __future__ import annotations

import os
from errno import EACCES, EBUSY, EFBIG, EINVAL, EISDIR, EOPNOTSUPP, EPERM, EROFS, EXDEV
from stat import S_IMODE, S_ISDIR, S_ISREG

LONGEST_CHAIN = 40  # links after each other, as the kernel has it


def read_file(path: str, limit: int) -> bytes:
    """All bytes of a file. ``/dev/null`` is an empty one.

    Raises OSError where it is missing, unreadable, no regular file, or larger than ``limit`` bytes.
    """
    # Without blocking, since a pipe would otherwise wait for somebody to write into it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if S_ISDIR(status.st_mode):
            raise IsADirectoryError(EISDIR, "is a folder", path)
        if not S_ISREG(status.st_mode):
            if os.path.realpath(path) == os.devnull:  # which is how one says "no file"
                return b""
            raise OSError(EINVAL, "is not a file", path)
        pieces: list[bytes] = []
        room = limit + 1
        while room > 0 and (piece := file.read(room)):  # files of proc come in pieces
            pieces.append(piece)
            room -= len(piece)
        if room <= 0:
            raise OSError(EFBIG, f"is larger than {limit} bytes", path)
        return b"".join(pieces)


def write_file(path: str, data: bytes) -> None:
    """Let ``path`` hold ``data``; a file that was there before is whole at any moment, and keeps its rights.

    A link is followed and stays. What is no file (a pipe, a device, a descriptor of this program such as
    ``/dev/stdout``) is written into. Raises OSError; a file is then as it was.
    """
    target = _target(path)
    if target is None:
        _write_into(path, data)
        return
    try:
        status: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        status = None
    if status is not None and not os.access(target, os.W_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), path)  # to replace it would need only rights on its folder
    # Whoever killed an earlier try left a file of another name; and the name may be as long as names can be.
    temporary = os.path.join(os.path.dirname(target), f".{os.urandom(8).hex()}.part")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                if status is not None:
                    _keep_rights(descriptor, status)
                _write_all(file.fileno(), data)
                os.fsync(descriptor)  # some file systems tell only now that the disk is full
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        # The folder may be somebody else's, and a file that is mounted by itself cannot be replaced.
        if status is None or error.errno not in (EACCES, EPERM, EROFS, EBUSY, EXDEV):
            raise
        _overwrite(target, data, status.st_size)


def _target(path: str) -> str | None:
    """The file that a name stands for, which need not exist; None where what it stands for has to be written into."""
    here = path
    for _ in range(LONGEST_CHAIN):
        above = os.path.realpath(os.path.dirname(here) or ".")
        if above == "/dev/fd" or (above.startswith("/proc/") and above.endswith("/fd")):
            return None
        here = os.path.join(above, os.path.basename(here))
        if not os.path.islink(here):
            break
        here = os.path.join(above, os.readlink(here))
    try:
        status = os.stat(here)
    except FileNotFoundError:
        if not os.path.basename(here):  # "no-such-folder/"
            raise
        return here
    if S_ISDIR(status.st_mode):
        raise IsADirectoryError(EISDIR, "is a folder", path)
    return here if S_ISREG(status.st_mode) else None


def _write_into(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _keep_rights(descriptor: int, status: os.stat_result) -> None:
    try:
        os.fchown(descriptor, -1, status.st_gid)
        os.fchown(descriptor, status.st_uid, -1)
    except OSError:
        pass  # only root may give a file away; then it is the writer's
    os.fchmod(descriptor, S_IMODE(status.st_mode))


def _overwrite(target: str, data: bytes, size: int) -> None:
    """Write in place, once it is certain that there is room."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if len(data) > size:
            try:
                os.posix_fallocate(descriptor, 0, len(data))
            except AttributeError:
                pass  # macOS
            except OSError as error:
                os.ftruncate(descriptor, size)
                if error.errno not in (EINVAL, EOPNOTSUPP):
                    raise
        _write_all(descriptor, data)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)
