"""A client for OpenAI-style servers, over TCP or a Unix socket, on the standard library alone.

The protocol is OpenAI's chat completions with server-sent events; ``/health`` is llama-server's (200 when ready, 503
while the model loads).
"""

from __future__ import annotations

from itertools import count

from ramalama_like.errors import AppError, TimedOut, ValueProblem
from ramalama_like.reference import plain_url
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from http.client import HTTPConnection, HTTPResponse
    from typing import Any

CONNECT_TIMEOUT_S = 10.0
LOOK_UP_MS = 200
LARGEST_ANSWER = 64 << 20  # bytes of what is read at once
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.010, 0.200
FIRST_PATIENCE_S, LONGEST_PATIENCE_S = 0.050, 2.0


class ServerGone(AppError):
    """The server cannot be reached, or stopped answering."""

    exit_code = 5


class ServerSaid(AppError):
    """The server answered with an error. ``kind`` is its type, where the server gives one."""

    exit_code = 22

    def __init__(self, message: str, hint: str = "", kind: str = "") -> None:
        super().__init__(message, hint)
        self.kind = kind


@value
class Address:
    """Where a server is."""

    scheme: str  # http, https, unix
    host: str  # or the socket's path
    port: int
    base: str  # path before /chat/completions

    @property
    def text(self) -> str:
        """The address for people."""
        if self.scheme == "unix":
            return f"unix://{self.host}"
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}{self.base}"


def preload() -> None:
    """Import now what the first exchange will need."""
    import json  # noqa: F401
    from http.client import HTTPConnection  # noqa: F401


def parse_address(url: str) -> Address:
    """Take a base address apart. Raises ValueProblem for one that names no server."""
    if url.startswith("unix:"):
        path = url.removeprefix("unix://").removeprefix("unix:")
        if not path.startswith("/"):
            raise ValueProblem(f"--url {url}: a socket's path must begin with /", "write unix:///PATH/TO/SOCKET")
        return Address("unix", path, 0, "/v1")
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    # A host of that name is a scheme whose slashes are missing, and what follows may be a password.
    if parts.scheme not in ("http", "https") or not host or host in ("http", "https"):
        raise ValueProblem(
            f"--url {plain_address(url)}: not the address of a server", "write http://HOST:PORT/v1 or unix:///PATH"
        )
    default = 443 if parts.scheme == "https" else 80
    return Address(parts.scheme, host, port or default, parts.path.rstrip("/") or "/v1")


def plain_address(url: str) -> str:
    """A base address as far as ``parse_address`` looks at it: without user, password and query."""
    if url.startswith("unix:") or "://" in url:
        return plain_url(url)
    return plain_url(f"http://{url}").removeprefix("http://")


def is_healthy(address: Address, timeout_s: float = 2.0) -> bool:
    """Whether the server answers and is ready. Never raises: not yet is an answer too."""
    words = _peek(address, "/health", timeout_s, 64).split()
    # 404: a server that has no such page, but is there.
    return len(words) > 1 and words[0].startswith(b"HTTP/") and words[1] in (b"200", b"404")


def serves_model(address: Address, alias: str, timeout_s: float = 2.0) -> bool:
    """Whether the server names ``alias`` among its models. On a port, somebody else may have been quicker than ours."""
    import json

    return json.dumps(alias).encode() in _peek(address, f"{address.base}/models", timeout_s, 1 << 20)


def _peek(address: Address, path: str, timeout_s: float, most_bytes: int) -> bytes:
    """The first bytes of an answer; empty where there is none.

    Written for being asked often while the server starts: it needs no HTTP library, whose import would take time
    from the engine on a small machine.
    """
    import socket

    answer = b""
    try:
        if address.scheme == "unix":
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(timeout_s)
        else:
            connection = socket.create_connection((address.host, address.port), timeout_s)
        with connection:
            if address.scheme == "unix":
                connection.connect(address.host)
            elif address.scheme == "https":
                import ssl

                connection = ssl.create_default_context().wrap_socket(connection, server_hostname=address.host)
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            while len(answer) < most_bytes and (more := connection.recv(most_bytes - len(answer))):
                answer += more
    except (OSError, UnicodeError):
        return answer
    return answer


def wait_healthy(address: Address, timeout_s: float) -> None:
    """Wait until the server is ready. Raises TimedOut after ``timeout_s`` seconds."""
    from time import monotonic, sleep

    deadline = monotonic() + timeout_s
    for patience, pause in polling():
        if is_healthy(address, patience):
            return
        if monotonic() > deadline:
            raise TimedOut(f"{address.text}: not ready within {timeout_s:g} seconds", "see the server's log")
        sleep(pause)


def polling() -> Iterator[tuple[float, float]]:
    """How long to wait for an answer to each attempt, and before the next one, in seconds, without end.

    While podman sets up a published port, it holds the port with a listener that never answers, so the first attempts
    must be given up soon; a busy server may need longer, so patience grows.
    """
    patience, pause = FIRST_PATIENCE_S, FIRST_PAUSE_S
    for number in count():
        yield patience, pause
        if number > 50:
            patience, pause = min(patience * 1.2, LONGEST_PATIENCE_S), min(pause * 1.2, LONGEST_PAUSE_S)


def list_models(address: Address, api_key: str = "") -> list[str]:
    """The names of the server's models. Raises ServerGone or ServerSaid."""
    import json

    with Exchange(address, "GET", f"{address.base}/models", None, api_key) as response:
        try:
            data = json.loads(response.read(LARGEST_ANSWER))
            return [str(model["id"]) for model in data["data"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ServerSaid(f"{address.text}: the answer is no list of models", "is this an OpenAI-style server?"
                             ) from None  # fmt: skip


@value
class Completion:
    """A whole answer, and how fast it came by the server's own timing."""

    text: str
    tokens: int | None = None
    tokens_per_second: float | None = None  # of what was generated; None where the server does not tell


def complete_chat(
    address: Address, messages: Sequence[Mapping[str, str]], *, model: str = "", max_tokens: int = 0, api_key: str = ""
) -> Completion:
    """Ask for an answer and wait for all of it. Raises ServerGone or ServerSaid."""
    import json

    body: dict[str, object] = {"messages": list(messages), "stream": False}
    if model:
        body["model"] = model
    if max_tokens:
        body["max_tokens"] = max_tokens
    with Exchange(address, "POST", f"{address.base}/chat/completions", json.dumps(body), api_key) as response:
        try:
            data = json.loads(response.read(LARGEST_ANSWER))
            text = str(data["choices"][0]["message"]["content"] or "")
            timings = data.get("timings") or {}  # llama-server's own addition
            speed, count = timings.get("predicted_per_second"), timings.get("predicted_n")
            return Completion(text, None if count is None else int(count), None if speed is None else float(speed))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError):
            raise ServerSaid(f"{address.text}: the answer is not of OpenAI's form", "is this an OpenAI-style server?"
                             ) from None  # fmt: skip


class Exchange:
    """One request and its response; every fault of it becomes an error for people."""

    def __init__(self, address: Address, method: str, path: str, body: str | None, api_key: str, *,
                 headers: Mapping[str, str] | None = None, fine: Sequence[int] = (200,),
                 opened: Callable[[Exchange], None] | None = None) -> None:  # fmt: skip
        """``opened`` is called as soon as there is a connection, from when on ``cancel`` works."""
        self.address = address
        self.fine = fine
        headers = {**({"Content-Type": "application/json"} if body is not None else {}), **(headers or {})}
        if api_key:
            if not (api_key.isascii() and api_key.isprintable()):
                raise ValueProblem("the API key holds characters that no key can have",  # and is not shown
                                   "check RAMALAMA_API_KEY for a line end or a blank")  # fmt: skip
            headers["Authorization"] = f"Bearer {api_key}"
        self.connection = _connect(address, CONNECT_TIMEOUT_S)
        try:
            self.connection.connect()
            # A long prompt may take minutes before the first token: only connecting is limited.
            self._socket = self.connection.sock
            self._socket.settimeout(None)
            if opened is not None:
                opened(self)
            self.connection.response_class = _attentive_response()
            self.connection.request(method, path, body and body.encode(), headers)
            self.response: HTTPResponse = self.connection.getresponse()
        except (OSError, ValueError, _http_error()) as error:  # ValueError: a host or path that cannot be encoded
            self.connection.close()
            raise self._gone(error) from None

    def cancel(self) -> None:
        """End the exchange from another thread: whoever reads sees the end of the connection."""
        import socket

        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it has ended already

    def __enter__(self) -> HTTPResponse:
        if self.response.status not in self.fine:
            try:
                text = self.response.read(65536).decode(errors="replace")
            except (OSError, _http_error()) as error:
                raise self._gone(error) from None
            finally:
                self.connection.close()
            raise ServerSaid(f"{self.address.text}: {message_of(text, self.response.reason)} "
                             f"(HTTP {self.response.status})", _hint_of(self.response.status), kind_of(text)
                             )  # fmt: skip
        return self.response

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self.connection.close()
        if isinstance(error, OSError | ValueError | _http_error()):
            raise self._gone(error) from None

    def _gone(self, error: BaseException) -> ServerGone:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ServerGone(f"{self.address.text}: no answer from the server: {why}",
                          "start one with `ramalama-like serve MODEL`, or name it with --url")  # fmt: skip


def message_of(answer: object, otherwise: str) -> str:
    """What a server says of an error, in whatever form; ``otherwise`` where it says nothing."""
    import json

    data = answer
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            return data.strip()[:300] or otherwise
    if isinstance(data, dict):
        error = data.get("error", data)
        if isinstance(error, dict):
            return str(error.get("message") or otherwise or error)[:300]
        return str(error)[:300]
    return otherwise or str(data)[:300]


def kind_of(answer: object) -> str:
    """The type that a server gives an error, such as ``exceed_context_size_error``; empty where it gives none."""
    import json

    data = answer
    try:
        data = json.loads(data) if isinstance(data, str) else data
    except (ValueError, RecursionError):
        return ""
    error = data.get("error") if isinstance(data, dict) else None
    return str(error.get("type") or "") if isinstance(error, dict) else ""


def _hint_of(status: int) -> str:
    key = "give the server's key in RAMALAMA_API_KEY"
    hints = {401: key, 403: key, 404: "does the address end in /v1?", 503: "the model is still loading: try again"}
    return hints.get(status, "")


def _connect(address: Address, timeout_s: float) -> HTTPConnection:
    import socket
    from http.client import HTTPConnection, HTTPSConnection

    if address.scheme == "https":
        return HTTPSConnection(address.host, address.port, timeout=timeout_s)
    if address.scheme == "http":
        return HTTPConnection(address.host, address.port, timeout=timeout_s)

    class UnixConnection(HTTPConnection):
        def connect(self) -> None:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(timeout_s)
            self.sock.connect(address.host)

    return UnixConnection("localhost", timeout=timeout_s)


def _attentive_response() -> type[HTTPResponse]:
    """A response whose reader looks up several times a second.

    A signal that comes between Python's last look for one and the system call would otherwise be noticed only when the
    server says something next, which may be never: Ctrl-C would be lost.
    """
    from http.client import HTTPResponse
    from io import BufferedReader, RawIOBase
    from select import POLLIN, poll

    class Attentive(RawIOBase):
        def __init__(self, connection: Any) -> None:
            self.raw = connection.makefile("rb", buffering=0)
            self.pending = getattr(connection, "pending", None)  # TLS: decrypted and not yet read
            self.poll = poll()
            self.poll.register(connection.fileno(), POLLIN)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> Any:
            while not (self.pending and self.pending()) and not self.poll.poll(LOOK_UP_MS):
                pass
            return self.raw.readinto(buffer)

        def close(self) -> None:
            self.raw.close()
            super().close()

    class Response(HTTPResponse):
        def __init__(self, sock: Any, *args: Any, **named: Any) -> None:
            super().__init__(sock, *args, **named)
            attentive: Any = BufferedReader(Attentive(sock))
            self.fp.close()
            self.fp = attentive

    return Response


def _http_error() -> type[Exception]:
    from http.client import HTTPException

    return HTTPException
