"""A model's file as a map: nothing of it is read before it is looked at."""

from __future__ import annotations

import os
from contextlib import contextmanager
from stat import S_ISREG

from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap


@contextmanager
def mapped_file(path: str) -> Iterator[mmap]:
    """The content of a file, for reading. Raises ValueProblem where there is none, it is empty or cannot be read."""
    try:
        # Without blocking, since a pipe would otherwise wait for somebody to write into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ValueProblem(f"{path}: {error.strerror}", _open_hint(error)) from None
    try:
        status = os.fstat(descriptor)
        if not S_ISREG(status.st_mode):
            raise ValueProblem(f"{path}: not a file", "give the path of a GGUF file")
        if not status.st_size:
            raise ValueProblem(f"{path}: the file is empty", "download the model again")
        from mmap import ACCESS_READ, mmap

        try:
            with mmap(descriptor, 0, access=ACCESS_READ) as data:
                yield data
        except OSError as error:
            raise ValueProblem(f"{path}: cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _open_hint(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "let your user read the file, or copy it"
    return "check the path; 'demo' is a model that is always there"
