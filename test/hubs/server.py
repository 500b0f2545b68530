"""A web server for tests: pages with ranges and validators, and a fault for each thing that can go wrong with them.

    with HubServer() as hub:
        hub.put("/model.gguf", data, faults=[status(503), drop_after(1000)])   # one fault for each request, then none
        hub.put("/other.gguf", data, always=slow_drip())
        hub.route("/api/", answer)                                             # answer(seen) -> Reply
        ... hub.url + "/model.gguf" ...
        assert hub.count("/model.gguf") == 3

A fault is a function that spoils a ``Reply`` before it is sent; several may be chained with ``both``. Nothing here
waits for a time: a server that hangs does so until the other side goes away or the test ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import urlsplit


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    target: str  # as in the request line: with its query; a whole address where the server is used as a proxy
    headers: dict[str, str]  # lower-case names
    body: bytes = b""
    status: int = 0  # that it was answered with
    sent: int = 0  # bytes of the body that went out

    @property
    def path(self) -> str:
        """The path without the query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> str:
        """What follows the question mark."""
        return urlsplit(self.target).query


@dataclass
class Reply:
    """What is about to be sent. ``headers`` without Content-Length get one that fits ``body``."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None  # bytes of the body after which the connection is closed
    hang_after: int | None = None  # bytes of the body after which nothing more comes
    piece: int = 1 << 20  # bytes that are sent at once
    chunked: bool = False
    raw: bytes | None = None  # sent in place of all that, then the connection is closed


Fault = Callable[[Seen, Reply], None]


@dataclass
class Page:
    """Something that can be fetched."""

    body: bytes
    headers: dict[str, str]
    faults: list[Fault]
    always: Fault | None
    ranges: bool
    status: int


class HubServer:
    """A server in threads of this process, on a port that the kernel chose."""

    def __init__(self, host: str = "127.0.0.1", certificate: str = "") -> None:
        self.pages: dict[str, Page] = {}
        self.routes: list[tuple[str, Callable[[Seen], Reply]]] = []
        self.requests: list[Seen] = []
        self.most_at_once = 0  # requests that were being answered at the same time
        self.tunnels: dict[str, int] = {}  # HOST:PORT that CONNECT asks for -> port on this machine
        self.connections = 0  # that were accepted
        self._busy = 0
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        hub = self

        class Handler(_Handler):
            owner = hub

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

            def process_request(self, request: object, client_address: object) -> None:
                assert isinstance(request, socket.socket)
                with hub._lock:
                    hub._open.add(request)
                    hub.connections += 1
                super().process_request(request, client_address)

            def shutdown_request(self, request: object) -> None:
                assert isinstance(request, socket.socket)
                super().shutdown_request(request)
                with hub._lock:
                    hub._open.discard(request)

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that goes away is what many tests are about."""

        self.server = Server((host, 0), Handler)
        self.port = self.server.server_address[1]
        self.netloc = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.url = f"http{'s' if certificate else ''}://{self.netloc}"
        if certificate:  # a file that holds a key and its certificate
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # The handshake is for the connection's own thread: one that hangs must not keep others waiting.
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False)  # fmt: skip
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.server.shutdown()
        with self._lock:
            still = list(self._open)
        for connection in still:  # wakes handlers that wait for more
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server.server_close()
        self._thread.join()

    def put(self, path: str, body: bytes = b"", *, headers: Mapping[str, str] | None = None, etag: str | None = None,
            faults: Sequence[Fault] = (), always: Fault | None = None, ranges: bool = True,
            status: int = 200) -> str:  # fmt: skip
        """Offer ``body`` at ``path``; its address comes back. ``etag`` is that of the bytes unless it is given."""
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"' if etag is None else etag
        known = {"ETag": tag} if tag else {}
        self.pages[path] = Page(body, known | dict(headers or {}), list(faults), always, ranges, status)
        return self.url + path

    def route(self, prefix: str, answer: Callable[[Seen], Reply]) -> None:
        """Let a function answer what begins with ``prefix``; the longest prefix wins, and pages win over routes."""
        self.routes.append((prefix, answer))
        self.routes.sort(key=lambda route: -len(route[0]))

    def seen(self, path: str, method: str = "") -> list[Seen]:
        """The requests for a path so far."""
        with self._lock:
            return [one for one in self.requests if one.path == path and method in ("", one.method)]

    def count(self, path: str = "", method: str = "") -> int:
        """How many requests there were for a path; for anything where it is empty."""
        with self._lock:
            return sum(1 for one in self.requests if path in ("", one.path) and method in ("", one.method))

    def sent(self, path: str) -> int:
        """Bytes of bodies that went out for a path."""
        return sum(one.sent for one in self.seen(path))

    def answer(self, seen: Seen) -> Reply:
        """What is sent for a request, before and after its fault."""
        with self._lock:
            self.requests.append(seen)
            page = self.pages.get(seen.path)
            fault = page.faults.pop(0) if page and page.faults else page.always if page else None
        if page is None:
            for prefix, function in self.routes:
                if seen.path.startswith(prefix):
                    return function(seen)
            return Reply(404, b"no such page")
        reply = page_reply(seen, page.body, page.headers, ranges=page.ranges, status=page.status)
        if fault is not None:
            fault(seen, reply)
        return reply

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Count what is going on at once."""
        with self._lock:
            self._busy += 1
            self.most_at_once = max(self.most_at_once, self._busy)
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1


def page_reply(seen: Seen, body: bytes, headers: Mapping[str, str], *, ranges: bool = True, status: int = 200) -> Reply:
    """The right answer for a page: all of it, or the range that was asked for (RFC 9110, section 14)."""
    reply = Reply(status, body, dict(headers))
    if not ranges:
        return reply
    reply.headers["Accept-Ranges"] = "bytes"
    wanted = seen.headers.get("range", "")
    condition = seen.headers.get("if-range", "")
    if not wanted.startswith("bytes=") or status != 200 or (condition and condition != headers.get("ETag")):
        return reply
    first, _, last = wanted[6:].partition("-")
    begin = int(first) if first else max(0, len(body) - int(last))
    end = min(int(last), len(body) - 1) if first and last else len(body) - 1
    if begin >= len(body) or begin > end:
        return Reply(416, b"", {**headers, "Content-Range": f"bytes */{len(body)}"})
    reply.status, reply.body = 206, body[begin : end + 1]
    reply.headers["Content-Range"] = f"bytes {begin}-{end}/{len(body)}"
    return reply


# Faults.


def both(*faults: Fault) -> Fault:
    """Several faults at once."""

    def spoil(seen: Seen, reply: Reply) -> None:
        for fault in faults:
            fault(seen, reply)

    return spoil


def fine(seen: Seen, reply: Reply) -> None:
    """No fault: for a list in which a later request is the spoilt one."""


def status(code: int, body: bytes = b"not now", **headers: str) -> Fault:
    """Another status; underscores in the names of headers stand for hyphens."""

    def spoil(seen: Seen, reply: Reply) -> None:
        reply.status, reply.body = code, body
        reply.headers = {name.replace("_", "-"): text for name, text in headers.items()}

    return spoil


def redirect(url: str, code: int = 302, **headers: str) -> Fault:
    """Look elsewhere."""
    return status(code, b"", Location=url, **headers)


def short_body(missing: int) -> Fault:
    """The length is promised, the last bytes never come, the connection is closed."""

    def spoil(seen: Seen, reply: Reply) -> None:
        reply.cut_after = max(0, len(reply.body) - missing)

    return spoil


def drop_after(count: int) -> Fault:
    """The connection is closed after so many bytes of the body."""

    def spoil(seen: Seen, reply: Reply) -> None:
        reply.cut_after = min(count, len(reply.body))

    return spoil


def hang_after(count: int) -> Fault:
    """Nothing comes after so many bytes, but the connection stays."""

    def spoil(seen: Seen, reply: Reply) -> None:
        reply.hang_after = min(count, len(reply.body))

    return spoil


def slow_drip(piece: int = 1) -> Fault:
    """A slow loris: the body comes in tiny pieces."""

    def spoil(seen: Seen, reply: Reply) -> None:
        reply.piece = piece

    return spoil


def header(name: str, text: str) -> Fault:
    """One header is another, or is missing (empty ``text``)."""

    def spoil(seen: Seen, reply: Reply) -> None:
        reply.headers.pop(name, None)
        if text:
            reply.headers[name] = text

    return spoil


def wrong_range(shift: int) -> Fault:
    """The range is not the one that was asked for, and says so."""

    def spoil(seen: Seen, reply: Reply) -> None:
        if reply.status == 206:
            span, _, size = reply.headers["Content-Range"][6:].partition("/")
            first, _, last = span.partition("-")
            reply.headers["Content-Range"] = f"bytes {int(first) + shift}-{int(last) + shift}/{size}"

    return spoil


def chunked(seen: Seen, reply: Reply) -> None:
    """The body comes in chunks, without a length."""
    reply.chunked = True


def garbage(text: bytes = b"SSH-2.0-nonsense\r\n") -> Fault:
    """No HTTP at all."""

    def spoil(seen: Seen, reply: Reply) -> None:
        reply.raw = text

    return spoil


def refused_range(seen: Seen, reply: Reply) -> None:
    """416 whatever the range."""
    if "range" in seen.headers:
        reply.status, reply.body = 416, b""
        reply.headers.pop("Content-Range", None)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class _Handler(BaseHTTPRequestHandler):
    owner: HubServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_any(self) -> None:
        names = {name.lower(): text for name, text in self.headers.items()}
        body = self._body(names)
        seen = Seen(self.command, self.path, names, body)
        with self.owner.busy():
            reply = self.owner.answer(seen)
            seen.status = reply.status
            self._send(seen, reply)

    def do_CONNECT(self) -> None:
        """As a proxy: pass bytes on in both directions."""
        seen = Seen("CONNECT", self.path, {name.lower(): text for name, text in self.headers.items()})
        port = self.owner.tunnels.get(self.path)
        seen.status = 200 if port else 502
        with self.owner._lock:
            self.owner.requests.append(seen)
        self.close_connection = True
        if not port:
            self.send_error(502)
            return
        self.send_response_only(200)
        self.end_headers()
        with socket.create_connection(("127.0.0.1", port)) as other:
            back = threading.Thread(target=_pass_on, args=(other, self.connection), daemon=True)
            back.start()
            _pass_on(self.connection, other)
            back.join()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_any

    def _body(self, names: dict[str, str]) -> bytes:
        if "chunked" in names.get("transfer-encoding", ""):
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(names.get("content-length", "0")))

    def _send(self, seen: Seen, reply: Reply) -> None:
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, text in reply.headers.items():
            self.send_header(name, text)
        bodiless = self.command == "HEAD" or reply.status in (204, 304)
        lengths = {"content-length", "transfer-encoding"} & {name.lower() for name in reply.headers}
        if reply.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif not lengths and reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if bodiless:
            return
        stops = [n for n in (reply.cut_after, reply.hang_after) if n is not None]
        end = min([len(reply.body), *stops])
        for begin in range(0, end, reply.piece):
            piece = reply.body[begin : min(begin + reply.piece, end)]
            seen.sent += len(piece)  # before it goes out: whoever has got it may look at once
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if reply.chunked else piece)
        if reply.hang_after is not None:
            self.connection.recv(1)  # until the other side gives up
        if stops:
            self.close_connection = True
        elif reply.chunked:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
