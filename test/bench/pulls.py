"""Downloads, ours and those of curl and aria2c, from a server of their own process on the loopback.

The files lie in memory where the machine has room there (/dev/shm): ours has its bytes on the disk for certain before
it gives them their name, the others leave that to the system, and a disk would be all that is measured.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
SLOW, SLOW_RATE = 128 << 20, 20_000_000  # bytes; bytes a second for each connection
FAST = 1 << 30
MOST_MB = 80
ROOM = 3 * FAST
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}


@functools.cache
def folder() -> Path:
    """Where the files go."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM
    made = Path(tempfile.mkdtemp(prefix="pulls-", dir=memory if roomy else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@functools.cache
def served(size: int, rate: int) -> str:
    """The address of a file of random bytes, from a server that runs until the end."""
    path = folder() / f"served-{size}"
    with open(path, "wb") as file:
        file.writelines(os.urandom(1 << 20) for _ in range(0, size, 1 << 20))
    server = subprocess.Popen([sys.executable, HERE / "hub.py", path, str(rate)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    atexit.register(server.stdin.close)
    return f"http://127.0.0.1:{int(server.stdout.readline())}/model.gguf"


def clean() -> Path:
    """A place for one download, empty."""
    place = folder() / "got"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    return place


def milliseconds(*argv: object) -> float:
    """How long a program takes, which must succeed."""
    began = time.perf_counter()
    subprocess.run([str(word) for word in argv], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                   env=ENVIRONMENT)  # fmt: skip
    return (time.perf_counter() - began) * 1000


def ours(size: int, rate: int = 0) -> float:
    """Our download, from the start of Python to the file in the store."""
    return milliseconds(sys.executable, HERE / "pull.py", served(size, rate), clean())


def ours_peak_mb() -> float:
    """The most memory that our download takes."""
    argv = [sys.executable, HERE / "pull.py", served(FAST, 0), clean()]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, env=ENVIRONMENT)
    return float(done.stdout)


def theirs_throttled() -> float:
    """aria2c with eight connections for one file, however small the pieces."""
    return milliseconds("aria2c", "-q", "-x8", "-s8", "-k1M", "--file-allocation=none", "-d", clean(), "-o", "got",
                        served(SLOW, SLOW_RATE))  # fmt: skip


def theirs_unthrottled() -> float:
    """The slower of fetching a file and computing its sum, by programs in C."""
    place = clean() / "got"
    fetched = milliseconds("curl", "-s", "-o", place, served(FAST, 0))
    return max(fetched, milliseconds("openssl", "dgst", "-sha256", place))


Measured = tuple[str, Callable[[], float], Callable[[], float], float]


def pulls() -> list[Measured]:
    """Name, theirs, ours and the limit of their ratio, of all that can be measured here; what cannot is said."""
    wanted: list[tuple[tuple[str, ...], Measured]] = [
        (("aria2c",), ("pull at 20 MB/s a line", theirs_throttled, lambda: ours(SLOW, SLOW_RATE), 1.3)),
        (("curl", "openssl"), ("pull of 1 GiB", theirs_unthrottled, lambda: ours(FAST), 1.5)),
        ((), ("pull, MB of 80", lambda: float(MOST_MB), ours_peak_mb, 1)),
    ]
    found = []
    for programs, row in wanted:
        absent = [program for program in programs if shutil.which(program) is None]
        if absent:
            print(f"left out, since {' and '.join(absent)} is not here: {row[0]}", file=sys.stderr)
        else:
            found.append(row)
    return found
