"""Ports that a server could take."""

from __future__ import annotations


def port_is_free(host: str, port: int) -> bool:
    """Whether a server could bind TCP ``port`` on the address ``host`` (IPv4 or IPv6, ``localhost``, or empty for all).

    A port that only waits for late packets of a closed connection counts as free, as it does for servers.
    False for an address that this machine does not have.
    """
    return _refusal(host, port) is None


def find_free_port(first: int, last: int, host: str, passed_over: tuple[int, ...] = ()) -> int | None:
    """The lowest free port from ``first`` to ``last``, both included, but for some; None where all are taken."""
    from errno import EACCES, EADDRINUSE

    for port in range(first, last + 1):
        if port in passed_over:
            continue
        refusal = _refusal(host, port)
        if refusal is None:
            return port
        if refusal not in (EADDRINUSE, EACCES):
            return None  # the address is at fault; to look a name up a hundred times could take minutes
    return None


def _refusal(host: str, port: int) -> int | None:
    """The error number of binding a port; None where it works, -1 where it could not even be tried."""
    try:
        import _socket as socket  # 0.5 ms instead of 3: the socket module adds nothing that is needed here
    except ImportError:
        import socket  # type: ignore[no-redef]

    bare = host.strip("[]")
    if bare == "localhost":
        bare = "127.0.0.1"
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    try:
        probe = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return -1
    try:
        # Two sockets may bind with this option as long as neither listens; one that listens keeps the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((bare, port))
    except OSError as error:
        return error.errno or -1
    except (OverflowError, TypeError):  # TypeError: a name that cannot even be looked up
        return -1
    finally:
        probe.close()
    return None
