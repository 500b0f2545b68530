"""Folders for API sockets: which are in use. A lock on a file inside tells, and ends with whoever holds it."""

from __future__ import annotations

import os

LOCK = "lock"


def folder_is_free(folder: str) -> bool:
    """Whether no running program holds ``folder``. A folder that a killed one left behind is free."""
    import fcntl

    try:
        descriptor = os.open(os.path.join(folder, LOCK), os.O_RDONLY)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
