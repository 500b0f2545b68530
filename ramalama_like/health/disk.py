"""There is room for models and for images."""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.health import ELSEWHERE, Case, Finding, fail, gigabytes, ok, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.observed import Room


def check(case: Case) -> Iterator[Finding]:
    """An image that is here already needs no more room."""
    seen = case.observed
    if seen is None:
        yield ELSEWHERE
        return
    limits = load_table("health")["disk"]
    if seen.store is not None:
        yield _judge("models", seen.store, limits["store_least_bytes"], limits["store_enough_bytes"],
                     f"du -sh {seen.store.folder}")  # fmt: skip
    if seen.images is not None:
        there = seen.image is not None and seen.image.present
        least = 0 if there else limits["image_least_bytes"]
        yield _judge("images", seen.images, least, limits["image_enough_bytes"],
                     f"{case.engine.program} image prune")  # fmt: skip


def _judge(what: str, room: Room, least: int, enough: int, command: str) -> Finding:
    free = room.free_bytes
    if free is None:
        return warn(f"the disk for {what} ({room.folder}) cannot be looked at", "it may be full", command)
    told = f"{gigabytes(free)} are free for {what} in {room.folder}"
    if free < least:
        return fail(told, f"at least {gigabytes(least)} are needed", command)
    if free < enough:
        return warn(told, f"{gigabytes(enough)} are soon used", command)
    return ok(told)
