"""Which proxy a request goes through: the variables that most programs know. Pure.

Small letters count before capitals; HTTP_PROXY in capitals is a proxy too, since this is no CGI program. NO_PROXY holds
host names (with all that is below them), addresses, networks, each perhaps with a port, or ``*``. This machine itself
is never asked for through a proxy: nobody else could reach it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def choose_proxy(scheme: str, host: str, port: int, variables: Mapping[str, str]) -> str:
    """The address of the proxy for a service; empty where there is none."""
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    proxy = next((variables[name].strip() for name in names if variables.get(name, "").strip()), "")
    if not proxy or is_loopback(host):
        return ""
    exceptions = variables.get("no_proxy", "") or variables.get("NO_PROXY", "")
    if any(_matches(entry, host.lower(), port) for entry in exceptions.replace(",", " ").split()):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    name = host.lower().rstrip(".")
    parts = name.split(".")
    return (
        name in ("localhost", "::1")
        or name.endswith(".localhost")
        or (len(parts) == 4 and parts[0] == "127" and all(part.isdigit() for part in parts))
    )


def _matches(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    name, mark, number = entry.lower().rpartition(":")
    if mark and number.isdigit() and (":" not in name or name.endswith("]")):
        if int(number) != port:
            return False
        entry = name
    entry = entry.lower().strip("[]").removeprefix("*").lstrip(".").rstrip(".")
    host = host.rstrip(".")
    if not entry:
        return False
    return host == entry or host.endswith(f".{entry}") or _in_network(entry, host)


def _in_network(entry: str, host: str) -> bool:
    if "/" not in entry and ":" not in entry:
        return False  # names and IPv4 addresses have been compared as text
    from ipaddress import ip_address, ip_network

    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        return False
