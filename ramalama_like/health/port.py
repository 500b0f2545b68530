"""There is a free port for the API."""

from __future__ import annotations

from ramalama_like.health import ELSEWHERE, Case, Finding, fail, ok, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def check(case: Case) -> Iterator[Finding]:
    """A port that was asked for has to be free; of others the next one will do."""
    seen = case.observed
    if seen is None or seen.port_free is None:
        yield ELSEWHERE
        return
    port, host = case.settings.port, case.settings.host.value
    who = f"ss -ltnp sport = :{port.value}"
    if seen.port_free:
        yield ok(f"port {port.value} is free on {host}")
    elif seen.next_port is None:
        yield fail(f"no port from {port.value} is free on {host}", "serve has nowhere to listen; is the address right?",
                   "ip address")  # fmt: skip
    elif not port.is_default:
        yield fail(f"port {port.value} ({port.origin}) is taken on {host}", f"{seen.next_port} is free", who)
    else:
        yield warn(f"port {port.value} is taken on {host}", f"serve will use {seen.next_port}", who)
