"""The clock is right enough for certificates."""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.health import ELSEWHERE, Case, Finding, fail, ok, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WHY = "certificates seem expired or not yet valid, so nothing can be fetched"
COMMAND = "sudo timedatectl set-ntp true"


def check(case: Case) -> Iterator[Finding]:
    """Compared with when this program was made, and with the clocks of the services that answered."""
    seen = case.observed
    if seen is None:
        yield ELSEWHERE
        return
    limits = load_table("health")["clock"]
    others = [reply.clock for reply in (seen.registry, seen.hub) if reply is not None and reply.clock is not None]
    behind = others[0] - seen.now if others else 0.0
    if abs(behind) > limits["fail_s"]:
        yield fail(f"the clock is {_days(abs(behind))} {'behind' if behind > 0 else 'ahead'}", WHY, COMMAND)
    elif abs(behind) > limits["warn_s"]:
        yield warn(f"the clock is {abs(behind) / 60:.0f} minutes {'behind' if behind > 0 else 'ahead'}",
                   "tokens and certificates are valid for a limited time", COMMAND)  # fmt: skip
    elif seen.now < _seconds(limits["earliest"]) and not others:
        yield fail("the clock stands before the day on which this program was made", WHY, COMMAND)
    elif seen.image is not None and seen.image.created is not None and seen.image.created > seen.now + limits["fail_s"]:
        yield warn("the image is made later than the clock says it is now", "one of the two clocks is wrong", COMMAND)
    else:
        yield ok("the clock agrees with the registry's" if others else "the clock is plausible; nobody could be asked")


def _days(seconds: float) -> str:
    days = int(seconds // 86400)
    return "1 day" if days == 1 else f"{days} days"


def _seconds(day: str) -> float:
    from datetime import UTC, datetime

    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
