"""How long a server wants to be left alone, read from the headers of its answer. Pure.

Retry-After (RFC 9110, section 10.2.3); RateLimit of the IETF draft "RateLimit header fields for HTTP", in its newer
form ("default";r=0;t=30) and its older ones (limit=9, remaining=0, reset=30, and three separate headers); the
X-RateLimit headers that many services had before, whose reset is a number of seconds or a moment.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_WAIT_S = 300.0  # a longer wait is for people to decide about


def wait_of(status: int, headers: Mapping[str, str], now: float) -> float:
    """Seconds until the next request is welcome; 0 where nothing is said. ``headers`` have lower-case names.

    ``now`` is Unix time, for servers that name a moment but not their own time.
    """
    told = headers.get("retry-after", "").strip()
    if told and (status == 429 or status >= 500):
        return (
            _number(told) if _number(told) >= 0 else max(0.0, _moment(told) - (_moment(headers.get("date", "")) or now))
        )
    remaining, reset = _limits(headers)
    if remaining > 0 and status != 429:
        return 0.0
    if remaining < 0 and status != 429:
        return 0.0  # not told how much is left
    if reset > 1e9:
        reset -= _moment(headers.get("date", "")) or now
    return max(0.0, reset)


def _limits(headers: Mapping[str, str]) -> tuple[float, float]:
    """What is left of the allowance (-1: not told), and when there is a new one (0: not told)."""
    remaining, reset = -1.0, 0.0
    for part in headers.get("ratelimit", "").replace(",", ";").split(";"):
        name, _, text = part.strip().partition("=")
        if name in ("r", "remaining"):
            remaining = _number(text)
        elif name in ("t", "reset"):
            reset = max(0.0, _number(text))
    for prefix in ("ratelimit-", "x-ratelimit-"):
        if remaining < 0:
            remaining = _number(headers.get(f"{prefix}remaining", "").partition(";")[0])
        if not reset:
            reset = max(0.0, _number(headers.get(f"{prefix}reset", "").partition(";")[0]))
    return remaining, reset


def _number(text: str) -> float:
    text = text.strip()
    whole, _, part = text.partition(".")
    fine = whole.isascii() and whole.isdigit() and len(whole) < 12 and (not part or (part.isascii() and part.isdigit()))
    return float(text) if fine else -1.0


def _moment(date: str) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
