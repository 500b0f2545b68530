"""What is remembered of a download between runs: how far it came, and of which state of the file.

A state counts only for the same address, size, published sum and validator (ETag, else the time of change): bytes of
two versions of a file must never be mixed. A finished file whose sum nobody published is remembered too, so that it
is not fetched again because another file of the model failed.
"""

from __future__ import annotations

import os

from ramalama_like.models.disk import open_plain
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LARGEST_STATE = 1 << 20  # bytes; real ones have hundreds


@value
class Version:
    """Which state of which file. ``url_sum`` stands for the address, which may hold something secret."""

    url_sum: str
    size_bytes: int
    validator: str = ""
    sha256: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether two equal versions are surely the same bytes."""
        return bool(self.validator or self.sha256)


@value
class Resumed:
    """What an earlier run left."""

    version: Version
    done: tuple[tuple[int, int], ...]  # as in ranges.py
    sha256: str = ""  # of the whole file, where that was finished


def url_sum(url: str) -> str:
    """A name for an address that tells nothing about it."""
    from hashlib import sha256

    return sha256(url.encode("utf-8", "surrogateescape")).hexdigest()


def validator_of(headers: Mapping[str, str], *, published: bool) -> str:
    """What changes when the file does. A weak ETag only counts beside a published sum: it allows other bytes."""
    tag = headers.get("etag", "")
    if tag and (published or not tag.startswith("W/")):
        return tag
    changed = headers.get("last-modified", "")
    return f"changed {changed}" if changed else ""


def read_state(path: str) -> Resumed | None:
    """The state in a file; None where there is none that can be used."""
    from json import loads

    try:
        with open(path, "rb", opener=open_plain) as file:
            plain = loads(file.read(LARGEST_STATE))
        version = Version(plain["url"], plain["size"], plain["validator"], plain["sha256"])
        done = tuple((begin, end) for begin, end in plain["done"])
        finished = plain["finished"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    texts = (version.url_sum, version.validator, version.sha256, finished)
    size = version.size_bytes
    whole = type(size) is int and all(
        type(begin) is int and type(end) is int and 0 <= begin < end <= size for begin, end in done)  # fmt: skip
    return Resumed(version, done, finished) if whole and all(isinstance(text, str) for text in texts) else None


def write_state(path: str, version: Version, done: Sequence[tuple[int, int]], finished: str = "") -> None:
    """Put a state under its name at once. Raises OSError. After a power failure it may be lost, or an older one."""
    from json import dumps

    plain = {"url": version.url_sum, "size": version.size_bytes, "validator": version.validator,
             "sha256": version.sha256, "done": [list(span) for span in done], "finished": finished}  # fmt: skip
    unfinished = f"{path}.new"  # one is enough: the download is locked
    try:
        with open(unfinished, "wb", opener=open_plain) as file:
            file.write(dumps(plain).encode())
        os.rename(unfinished, path)
    except OSError:
        forget(unfinished)
        raise


def forget(path: str) -> None:
    """Remove a file if it is there."""
    import contextlib

    with contextlib.suppress(OSError):
        os.unlink(path)
