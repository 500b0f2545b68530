"""Variables for proxies do not catch what goes to this very machine."""

from __future__ import annotations

from ramalama_like.health import ELSEWHERE, Case, Finding, fail, ok, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LOOPBACK = ("127.0.0.1", "localhost")


def check(case: Case) -> Iterator[Finding]:
    """This program's own client uses no proxy; others that talk to its server do."""
    if case.observed is None:
        yield ELSEWHERE
        return
    proxies = dict(case.observed.proxies)
    catching = {name: text for name, text in proxies.items() if name.lower() in ("http_proxy", "all_proxy")}
    spelling = next((name for name in proxies if name.lower() == "no_proxy"), "no_proxy")
    exceptions = [entry.strip().lower() for entry in proxies.get(spelling, "").split(",") if entry.strip()]
    uncovered = [] if "*" in exceptions else [name for name in LOOPBACK if not _covers(exceptions, name)]
    nonsense = [name for name, text in proxies.items() if name.lower() != "no_proxy" and not _is_address(text)]
    if nonsense:
        yield fail(f"{nonsense[0]}={proxies[nonsense[0]]} is not the address of a proxy", "nothing can be fetched so",
                   f"unset {nonsense[0]}")  # fmt: skip
    elif catching and uncovered:
        name = next(iter(catching))
        yield warn(f"{name} is set, and {spelling} does not except {' and '.join(uncovered)}",
                   "programs that talk to a server on this machine send it to the proxy",
                   f"export {spelling}={','.join([*exceptions, *uncovered])}")  # fmt: skip
    else:
        yield ok("no proxy stands between this machine and itself" if catching else "no proxy is set for plain HTTP")


def _covers(exceptions: list[str], name: str) -> bool:
    return name in exceptions or (name == "127.0.0.1" and bool({"127.0.0.0/8", "127.0.0.0/16"} & set(exceptions)))


def _is_address(text: str) -> bool:
    scheme, mark, rest = text.rpartition("://")
    host = rest.rpartition("@")[2].strip("/")
    return bool(host) and " " not in text and (not mark or scheme in ("http", "https", "socks4", "socks4a", "socks5",
                                                                      "socks5h"))  # fmt: skip
