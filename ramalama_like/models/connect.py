"""From a host's name to a socket that is ready for HTTP: addresses, proxy, TLS.

A host often has addresses of both families, one of which may lead nowhere. They are tried in turn, each a quarter of
a second after the one before unless that has failed, and the first that answers wins (RFC 8305, "happy eyeballs").
"""

from __future__ import annotations

import socket
from time import monotonic

from ramalama_like.models import failures
from ramalama_like.models.proxies import choose_proxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from ssl import SSLContext
    from typing import Any

    Address = tuple[int, Any]  # family and what connect() takes
    Resolve = Callable[[str, int], Sequence[Address]]

CONNECT_S = 10.0
HEAD_START_S = 0.25  # RFC 8305's recommendation


class Connector:
    """Makes connections as the user's variables want them."""

    def __init__(self, variables: Mapping[str, str], *, verify: bool, timeout_s: float,
                 resolve: Resolve | None = None) -> None:  # fmt: skip
        self.variables = variables
        self.verify = verify
        self.timeout_s = timeout_s
        self.resolve = resolve or look_up
        self._context: SSLContext | None = None

    def proxy_for(self, scheme: str, host: str, port: int) -> str:
        """The proxy's address; empty where there is none. Raises ValueProblem for a kind that cannot be used."""
        proxy = choose_proxy(scheme, host, port, self.variables)
        if proxy and not proxy.lower().startswith("http://"):
            raise failures.proxy_unknown(proxy)
        return proxy

    def connect(self, scheme: str, host: str, port: int, proxy: str, url: str) -> socket.socket:
        """A socket to a service, through its proxy and with TLS where these are wanted.

        Raises OSError (``ssl.SSLError`` is one), or AppError where a proxy refuses.
        """
        to_host, to_port = proxy_place(proxy) if proxy else (host, port)
        link = race(self.resolve(to_host, to_port), min(CONNECT_S, self.timeout_s))
        try:
            link.settimeout(self.timeout_s)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if scheme == "https":
                if proxy:
                    _tunnel(link, host, port, proxy, url)
                return self._tls().wrap_socket(link, server_hostname=host)
        except BaseException:
            link.close()
            raise
        return link

    def _tls(self) -> SSLContext:
        if self._context is None:
            self._context = make_context(self.variables, verify=self.verify)
        return self._context


def look_up(host: str, port: int) -> Sequence[Address]:
    """The addresses of a host, families taking turns, as the system prefers them. Raises socket.gaierror."""
    found = [(family, place) for family, _, _, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    first = [entry for entry in found if entry[0] == found[0][0]]
    other = [entry for entry in found if entry[0] != found[0][0]]
    mixed = [entry for pair in zip(first, other, strict=False) for entry in pair]
    return mixed + first[len(other) :] + other[len(first) :]


def race(addresses: Sequence[Address], timeout_s: float) -> socket.socket:
    """Connect to the first address that answers. Raises OSError: the first failure, or TimeoutError."""
    from selectors import EVENT_WRITE, DefaultSelector

    waiting = list(addresses)
    failure: OSError | None = None
    deadline = monotonic() + timeout_s
    next_start = 0.0
    with DefaultSelector() as selector:
        try:
            while True:
                running = len(selector.get_map())
                if waiting and (not running or monotonic() >= next_start):
                    family, place = waiting.pop(0)
                    try:
                        link = socket.socket(family, socket.SOCK_STREAM)
                    except OSError as error:  # a family that this system does not have
                        failure = failure or error
                        continue
                    link.setblocking(False)
                    code = link.connect_ex(place)
                    next_start = monotonic() + HEAD_START_S
                    selector.register(link, EVENT_WRITE)
                    if code not in _UNDER_WAY:
                        failure = failure or OSError(code, _reason(code))
                        selector.unregister(link)
                        link.close()
                    continue
                if not running and not waiting:
                    raise failure or TimeoutError
                left = deadline - monotonic()
                if left <= 0:
                    raise TimeoutError
                for key, _ in selector.select(min(left, max(0.0, next_start - monotonic())) if waiting else left):
                    link = key.fileobj  # type: ignore[assignment]
                    code = link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    selector.unregister(link)
                    if not code:
                        link.setblocking(True)
                        return link
                    failure = failure or OSError(code, _reason(code))
                    link.close()
        finally:
            for key in list(selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]


def proxy_place(proxy: str) -> tuple[str, int]:
    """Host and port of a proxy's address. Raises ValueProblem."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(proxy)
        if parts.hostname:
            return parts.hostname, parts.port or 80
    except ValueError:
        pass
    raise failures.proxy_unknown(proxy)


def basic_password(url: str) -> str:
    """The text of a header that proves who asks; empty where the address holds no user."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    if parts.username is None:
        return ""
    from base64 import b64encode

    return "Basic " + b64encode(f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()).decode()


def _tunnel(link: socket.socket, host: str, port: int, proxy: str, url: str) -> None:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    password = basic_password(proxy)
    line = f"Proxy-Authorization: {password}\r\n" if password else ""
    link.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{line}\r\n".encode("ascii"))
    head = b""
    while not head.endswith(b"\r\n\r\n"):  # byte by byte: what follows belongs to TLS
        piece = link.recv(1)
        if not piece or len(head) > 1 << 16:
            raise failures.proxy_refused(502, url, proxy)
        head += piece
    words = head.split(b"\r\n", 1)[0].split()
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 502
    if not 200 <= status < 300:
        raise failures.proxy_refused(status, url, proxy)


def make_context(variables: Mapping[str, str], *, verify: bool) -> SSLContext:
    """What TLS trusts: the authorities of the variables that other programs know, else the system's."""
    import ssl

    named = next((variables[name] for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
                  if variables.get(name)), "")  # fmt: skip
    folder = variables.get("SSL_CERT_DIR", "")
    import os.path

    if named and os.path.isdir(named):
        named, folder = "", named
    try:
        context = ssl.create_default_context(cafile=named or None, capath=folder or None)
    except OSError as error:
        from ramalama_like.errors import ValueProblem

        raise ValueProblem(f"{named}: no file with certificates: {error.strerror or 'unreadable'}",
                           "check the variables SSL_CERT_FILE and REQUESTS_CA_BUNDLE") from None  # fmt: skip
    if not (named or folder or context.cert_store_stats()["x509_ca"] or _has_folder(ssl)):
        _add_bundled(context)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _has_folder(ssl: Any) -> bool:
    # Authorities in a folder are read when they are needed, and so are not counted.
    import os

    path = ssl.get_default_verify_paths().capath
    try:
        return bool(path and os.listdir(path))
    except OSError:
        return False


def _add_bundled(context: SSLContext) -> None:
    """A Python without any authorities (python.org's for macOS) gets those that come with requests."""
    try:
        from certifi import where
    except ImportError:
        return
    context.load_verify_locations(where())


def _under_way() -> tuple[int, ...]:
    from errno import EINPROGRESS, EINTR, EWOULDBLOCK

    return 0, EINPROGRESS, EWOULDBLOCK, EINTR


def _reason(code: int) -> str:
    from os import strerror

    return strerror(code)


_UNDER_WAY = _under_way()
