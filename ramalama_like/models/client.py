"""The door to hubs and registries: one HTTP client for everything below ``models/``.

Connections are kept and used again. Redirections are followed here, so that a token goes to nobody but the server
that it was meant for. A server that asks to be left alone is left alone, by all threads. Certificates and proxies are
those of the variables that are handed in; ``http.client`` is used since it takes a third of the time that urllib3
takes to import, and reads as fast.
"""

from __future__ import annotations

import contextlib
from threading import Lock, Semaphore
from time import monotonic, sleep, time

from ramalama_like.models import failures
from ramalama_like.models.connect import Connector, basic_password
from ramalama_like.models.failures import Passing
from ramalama_like.models.pauses import MOST_WAIT_S, wait_of
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from http.client import HTTPConnection, HTTPResponse
    from threading import Event
    from types import TracebackType
    from typing import BinaryIO

    from ramalama_like.models.connect import Resolve

AGENT = "ramalama-like"
MOST_REDIRECTS = 10
FIRST_WAIT_S = 0.5  # before the second try; twice as long before each further one
_REDIRECTS = (301, 302, 303, 307, 308)
_SECRET_HEADERS = ("authorization", "cookie", "proxy-authorization")


@value
class Answer:
    """All of an answer."""

    status: int
    headers: Mapping[str, str]  # lower-case names; several of one name are joined by ", "
    body: bytes
    url: str  # that it came from, after redirections


@value
class Origin:
    """A server: who may be shown a token, and whose connections can be used again."""

    scheme: str
    host: str
    port: int


class Client:
    """One for each command, for all of its threads. Close it, or use it in a ``with``.

    ``variables`` are those that name proxies and certificates. ``on_wait`` is told before a wait of more than two
    seconds: how many seconds, and for which host. ``now``, ``rest`` and ``resolve`` are for tests.
    """

    def __init__(self, *, offline: bool = False, verify: bool = True, timeout_s: float = 30.0, retries: int = 5,
                 per_host: int = 8, variables: Mapping[str, str] | None = None,
                 on_wait: Callable[[float, str], None] | None = None,
                 clock: Callable[[], float] = monotonic, rest: Callable[[float], None] | None = None,
                 resolve: Resolve | None = None) -> None:  # fmt: skip
        self.offline = offline
        self.timeout_s = timeout_s
        self.retries = retries
        self.per_host = per_host
        self.clock = clock
        self.on_wait = on_wait
        self._rest = rest
        self._connector = Connector(variables or {}, verify=verify, timeout_s=timeout_s, resolve=resolve)
        self._lock = Lock()
        self._idle: dict[Origin, list[HTTPConnection]] = {}
        self._not_before: dict[str, float] = {}  # host -> moment of the clock
        self._answered: set[Origin] = set()
        self._fresh: dict[str, tuple[str, Callable[[], str]]] = {}  # authorization -> its newest form, how to renew it
        self._renewing = Lock()
        self._slots: dict[str, Semaphore] = {}
        self._closed = False

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Close the connections that nobody uses; those in use are closed when they are given back."""
        with self._lock:
            self._closed = True
            links = [link for some in self._idle.values() for link in some]
            self._idle.clear()
        for link in links:
            link.close()

    def ask(self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None,
            authorization: str = "", body: bytes = b"", most_bytes: int = 64 << 20,
            allow: Collection[int] = ()) -> Answer:  # fmt: skip
        """Ask, and read all of the answer.

        Statuses in ``allow`` are handed back as they are, redirections among them are not followed; all others but
        2xx are AppErrors. What may be over soon is tried again. ``authorization`` is the text of that header; it is
        sent to the server of ``url`` alone, and so is ``body``: a redirection that would take it elsewhere is an error.
        """
        for attempt in range(self.retries + 1):
            try:
                with self._open(method, url, headers or {}, authorization, body, allow) as stream:
                    return Answer(stream.status, stream.headers, stream.read_all(most_bytes), stream.url)
            except Passing as failure:
                self.wait_before(attempt, url, failure)
        raise AssertionError  # wait_before has raised

    def stream(self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None,
               authorization: str = "", body: bytes | BinaryIO | None = None, allow: Collection[int] = (),
               retries: int | None = None, stop: Event | None = None) -> Stream:  # fmt: skip
        """Ask, and hand over an answer whose body is read piece by piece, within ``with``.

        Statuses are treated as ``ask`` does. Only what fails before the body begins is tried again, ``retries`` times
        (the client's own number by default). A file as ``body`` needs a Content-Length among the headers. Waiting ends
        when ``stop`` is set.
        """
        tries = self.retries if retries is None else retries
        payload = _Upload(body) if body is not None and not isinstance(body, bytes) else body or b""
        if isinstance(payload, _Upload) and not payload.can_rewind:
            tries = 0
        for attempt in range(tries + 1):
            try:
                return self._open(method, url, headers or {}, authorization, payload, allow, stop)
            except Passing as failure:
                self.wait_before(attempt, url, failure, tries, stop)
        raise AssertionError  # wait_before has raised

    def keep_fresh(self, authorization: str, renew: Callable[[], str]) -> None:
        """Let an authorization that runs out be renewed: whoever shows it shows from then on what ``renew`` gave.

        Tokens of registries live for minutes, downloads take longer. ``renew`` may ask, and raise AppError.
        """
        self._fresh.setdefault(authorization, (authorization, renew))

    def _renew(self, authorization: str, shown: str) -> bool:
        """Whether there is now another authorization to show than the one that was refused."""
        with self._renewing:  # all connections are refused in the same moment: one of them asks
            newest, renew = self._fresh.get(authorization, ("", None))
            if newest == shown and renew is not None:
                newest = renew()
                self._fresh[authorization] = (newest, renew)
        return newest not in ("", shown)

    def slots(self, host: str) -> Semaphore:
        """To be held for each connection to a host beyond the first of a file, so that not too many are open."""
        with self._lock:
            return self._slots.setdefault(host, Semaphore(self.per_host - 1))

    # Waiting.

    def wait_before(self, attempt: int, url: str, failure: Passing, tries: int | None = None,
                    stop: Event | None = None) -> None:  # fmt: skip
        """Wait before another try after attempt number ``attempt`` (from 0), or raise ``failure`` if it was the last.

        A server that has never answered gets one more try at most: it is probably not there.
        """
        tries = self.retries if tries is None else tries
        origin, _ = split_url(url)
        if origin not in self._answered:
            tries = min(tries, 1)
        if attempt >= tries or failure.wait_s > MOST_WAIT_S:
            raise failure
        if failure.wait_s:
            self.leave_alone(origin.host, failure.wait_s)
        else:
            self.rest(FIRST_WAIT_S * 2**attempt, origin.host, stop)

    def leave_alone(self, host: str, seconds: float) -> None:
        """Let no thread ask a host before so many seconds are over."""
        with self._lock:
            self._not_before[host] = max(self._not_before.get(host, 0.0), self.clock() + seconds)

    def rest(self, seconds: float, host: str, stop: Event | None = None) -> None:
        """Wait, at most until ``stop`` is set, and say so if it takes long."""
        if seconds > 2 and self.on_wait is not None:
            self.on_wait(seconds, host)
        if self._rest is not None:
            self._rest(seconds)
        elif stop is not None:
            stop.wait(seconds)
        else:
            sleep(seconds)

    def _honour(self, host: str, stop: Event | None) -> None:
        with self._lock:
            until = self._not_before.get(host)
            left = until - self.clock() if until is not None else 0.0
        if left > 0:
            self.rest(left, host, stop)
        if until is not None:
            with self._lock:
                if self._not_before.get(host) == until:
                    del self._not_before[host]

    # Asking.

    def _open(self, method: str, url: str, headers: Mapping[str, str], authorization: str, body: bytes | _Upload,
              allow: Collection[int], stop: Event | None = None) -> Stream:  # fmt: skip
        if self.offline:
            raise failures.offline(url)
        first, _ = split_url(url)
        authorization = authorization or password_in(url)
        authorized = bool(authorization)
        renewed = False
        for _ in range(MOST_REDIRECTS + 1):
            origin, target = split_url(url)
            mine = dict(headers)
            if origin != first:
                mine = {name: text for name, text in mine.items() if name.lower() not in _SECRET_HEADERS}
            elif authorization:
                shown = self._fresh[authorization][0] if authorization in self._fresh else authorization
                mine["Authorization"] = shown
            self._honour(origin.host, stop)
            if stop is not None and stop.is_set():
                raise failures.cut(url)
            stream = self._exchange(method, url, origin, target, mine, body)
            status = stream.status
            wait_s = wait_of(status, stream.headers, time())
            if status < 400 and 0 < wait_s <= MOST_WAIT_S:
                self.leave_alone(origin.host, wait_s)
            if status in allow:
                return stream
            location = stream.headers.get("location", "")
            if status in _REDIRECTS and location:
                stream.finish()
                if status == 303 or (status in (301, 302) and method == "POST"):
                    method, body = ("HEAD" if method == "HEAD" else "GET"), b""
                url = self._next_address(url, location, first if body else None)
                continue
            if status == 401 and authorized and origin == first and not renewed:
                stream.finish()
                renewed = True
                if self._renew(authorization, shown):
                    continue
            if not 200 <= status < 300:
                stream.finish()
                raise failures.refused(status, url, stream.headers, wait_s=wait_s,
                                       authorized=authorized and origin == first)  # fmt: skip
            return stream
        raise failures.circles(url)

    def _next_address(self, url: str, location: str, only: Origin | None) -> str:
        from urllib.parse import urljoin

        try:
            joined = urljoin(url, location)
        except ValueError:
            raise failures.no_address(location) from None
        if not joined.startswith("https://" if url.startswith("https://") else ("http://", "https://")):
            raise failures.downgraded(url, joined)
        if only is not None and split_url(joined)[0] != only:  # a body may hold a password
            raise failures.secret_elsewhere(url, joined)
        return joined

    def _exchange(self, method: str, url: str, origin: Origin, target: str, headers: Mapping[str, str],
                  body: bytes | _Upload) -> Stream:  # fmt: skip
        from http.client import HTTPException

        proxy = self._connector.proxy_for(origin.scheme, origin.host, origin.port)
        while True:
            link = self._take(origin)
            used = link is not None
            if link is None:
                link = self._connect(origin, proxy, url)
            try:
                _send(link, method, origin, target, headers, body, proxy)
                response = link.getresponse()
            except (OSError, HTTPException, ValueError) as error:
                link.close()
                # A kept connection that the server has closed meanwhile. Who appends (PATCH) must first ask how much
                # of it arrived.
                repeatable = method != "PATCH" and (isinstance(body, bytes) or body.can_rewind)
                if used and repeatable and isinstance(error, ConnectionError | HTTPException):
                    continue
                raise self._explained(error, url, proxy) from None
            except BaseException:
                link.close()
                raise
            with self._lock:
                self._answered.add(origin)
            return Stream(self, link, response, origin, url)

    def _connect(self, origin: Origin, proxy: str, url: str) -> HTTPConnection:
        from http.client import HTTPConnection

        try:
            connected = self._connector.connect(origin.scheme, origin.host, origin.port, proxy, url)
        except (OSError, UnicodeError) as error:
            raise self._explained(error, url, proxy) from None
        link = HTTPConnection(origin.host, origin.port, timeout=self.timeout_s, blocksize=1 << 18)
        link.auto_open = 0
        link.sock = connected
        return link

    def _explained(self, error: Exception, url: str, proxy: str) -> Exception:
        if isinstance(error, UnicodeError):
            return failures.no_address(url)
        return failures.broken(error, url, proxy=proxy)

    def _take(self, origin: Origin) -> HTTPConnection | None:
        while True:
            with self._lock:
                idle = self._idle.get(origin)
                link = idle.pop() if idle else None
            if link is None or not _has_ended(link):
                return link
            link.close()

    def give_back(self, origin: Origin, link: HTTPConnection) -> None:
        """Keep a connection whose answer has been read, for the next one who asks."""
        with self._lock:
            keep = not self._closed
            if keep:
                self._idle.setdefault(origin, []).append(link)
        if not keep:
            link.close()


class Stream:
    """An answer whose body is still to be read. Leaving the ``with`` gives its connection back, or closes it."""

    def __init__(self, client: Client, link: HTTPConnection, response: HTTPResponse, origin: Origin, url: str) -> None:
        self.status = response.status
        self.url = url
        self.headers: dict[str, str] = {}
        for name, text in response.headers.items():
            known = self.headers.get(name.lower())
            self.headers[name.lower()] = f"{known}, {text}" if known is not None else text
        # Bytes of the body that are still to come; -1: the server does not tell.
        self.left = response.length if response.length is not None else -1
        self._client = client
        self._link = link
        self._response = response
        self._origin = origin
        self.ended = self.left == 0  # nothing more will come
        self._open = True
        self._cut = False

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Give the connection back if all was read, else close it. More than once does nothing."""
        if not self._open:
            return
        self._open = False
        keep = self.ended and not self._cut and not self._response.will_close
        self._response.close()
        if keep:
            self._client.give_back(self._origin, self._link)
        else:
            self._link.close()

    def readinto(self, buffer: memoryview) -> int:
        """Read what has come, at most as much as fits, waiting only while there is nothing; 0 at the end.

        Raises Passing where the connection is cut, or silent for as long as the client's patience lasts.
        """
        if self.ended:
            return 0
        from http.client import HTTPException

        try:
            if self._response.chunked or self.left < 0:
                piece = self._response.read1(len(buffer))
                count = len(piece)
                buffer[:count] = piece
                # After the last chunk a connection can be used again, after an end by closing it cannot.
                self.ended = not count
            else:
                # Not through HTTPResponse, which waits until the buffer is full.
                count = self._response.fp.readinto1(buffer[: self.left])
                if not count:
                    raise failures.cut(self.url)
                self.left -= count
                self.ended = not self.left
        except (OSError, HTTPException, ValueError, AttributeError) as error:  # the last two: closed by ``cut``
            self._cut = True
            if isinstance(error, OSError):
                raise failures.broken(error, self.url) from None
            raise failures.cut(self.url) from None
        return count

    def read(self, count: int = 1 << 16) -> bytes:
        """At most so many bytes; empty at the end."""
        buffer = bytearray(count)
        return bytes(buffer[: self.readinto(memoryview(buffer))])

    def read_all(self, most_bytes: int = 64 << 20) -> bytes:
        """The whole body. Raises ValueProblem where it is longer than that."""
        if self.left > most_bytes:
            raise failures.too_long(self.url, most_bytes)
        parts, size = [], 0
        while piece := self.read(min(1 << 16, self.left) if self.left > 0 else 1 << 16):
            parts.append(piece)
            size += len(piece)
            if size > most_bytes:
                raise failures.too_long(self.url, most_bytes)
        return b"".join(parts)

    def finish(self) -> None:
        """Be done with an answer whose body does not matter: a short one is read, so that the connection is kept."""
        with self, contextlib.suppress(Passing):
            if 0 <= self.left <= 1 << 16:
                self.read_all()

    def cut(self) -> None:
        """Wake a thread that waits in ``readinto``, for good. May be called from any thread."""
        from socket import SHUT_RDWR

        link = self._link.sock if self._open else None
        self._cut = True
        if link is not None:
            with contextlib.suppress(OSError):
                link.shutdown(SHUT_RDWR)


class _Upload:
    """A file that is sent, from where it stood at first, however often."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.can_rewind = file.seekable()
        self._begin = file.tell() if self.can_rewind else 0

    def rewound(self) -> BinaryIO:
        """The file, where it stood at first if it can go back."""
        if self.can_rewind:
            self._file.seek(self._begin)
        return self._file


def split_url(url: str) -> tuple[Origin, str]:
    """The server of an address, and what it is asked for: path and query. Raises ValueProblem."""
    from urllib.parse import quote, urlsplit

    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode("ascii") if not (parts.hostname or "").isascii() else (
            parts.hostname or "")  # fmt: skip
    except ValueError:  # UnicodeError is one
        raise failures.no_address(url) from None
    if parts.scheme not in ("http", "https") or not host or not host.isprintable() or " " in host:
        raise failures.no_address(url)
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~", errors="surrogateescape")
    if parts.query:
        target += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~?[]{}|^", errors="surrogateescape")
    return Origin(parts.scheme, host, port or (443 if parts.scheme == "https" else 80)), target


def password_in(url: str) -> str:
    """The header's text for an address that holds a user and a password; empty for all others."""
    if "@" not in url.partition("://")[2].partition("/")[0]:
        return ""
    return basic_password(url)


def _send(link: HTTPConnection, method: str, origin: Origin, target: str, headers: Mapping[str, str],
          body: bytes | _Upload, proxy: str) -> None:  # fmt: skip
    place = f"[{origin.host}]" if ":" in origin.host else origin.host
    if origin.port != (443 if origin.scheme == "https" else 80):
        place = f"{place}:{origin.port}"
    plain_proxy = proxy and origin.scheme == "http"
    link.putrequest(method, f"http://{place}{target}" if plain_proxy else target, skip_host=True,
                    skip_accept_encoding=True)  # fmt: skip
    all_headers = {"Host": place, "User-Agent": AGENT, "Accept-Encoding": "identity", **headers}
    if plain_proxy and (password := basic_password(proxy)):
        all_headers["Proxy-Authorization"] = password
    if isinstance(body, bytes) and (body or method in ("POST", "PUT", "PATCH")):
        all_headers["Content-Length"] = str(len(body))
    for name, text in all_headers.items():
        link.putheader(name, text)
    link.endheaders(body.rewound() if isinstance(body, _Upload) else body or None)


def _has_ended(link: HTTPConnection) -> bool:
    """Whether a kept connection is of no more use: the other side has closed it, or talks without being asked."""
    from select import POLLIN, poll

    poller = poll()
    poller.register(link.sock, POLLIN)
    return bool(poller.poll(0))
