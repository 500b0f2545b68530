"""The header of a GGUF file on a web server, read by range requests: enough to know what the model needs.

The first MiB holds the header of most models; a big vocabulary takes more, so the range grows until the header is
whole. A server that ignores ranges sends the file from its start, which is read no further than the header goes.
"""

from __future__ import annotations

from time import monotonic

from ramalama_like.errors import AppError, TimedOut, ValueProblem
from ramalama_like.model import Model, ModelFile
from ramalama_like.models.failures import plain_url
from ramalama_like.models.gguf import GgufHeader, read_gguf_prefix
from ramalama_like.models.shapes import make_shape
from ramalama_like.models.sources.file import split_part
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from requests import Response, Session

FIRST_BYTES = 1 << 20
MOST_BYTES = 64 << 20  # the largest vocabularies take about 20 MiB
MOST_PARTS = 200
PATIENCE_S = 30.0
_CHUNK = 1 << 16
_UNKNOWN = 1 << 62  # stands for the size of a file that the server does not tell


def resolve_remote(url: str, patience_s: float = PATIENCE_S) -> Model:
    """The model behind a URL, as far as its header tells. Nothing is kept. Raises AppError."""
    headers = [read_remote_gguf(part, patience_s=patience_s) for part in _parts(url)]
    architecture = headers[0].text("general.architecture")
    if architecture == "clip":
        raise ValueProblem(f"{plain_url(url)}: is a projector, not a language model", "give the model's own file")
    name = plain_url(url).rpartition("/")[2]
    stem = name[:-5] if name.lower().endswith(".gguf") else name
    return Model(
        reference=plain_url(url), alias=stem or "model", files=(ModelFile("model", plain_url(url), name),),
        why="the header was read from the web", size_bytes=sum(header.size_bytes for header in headers),
        architecture=architecture, context_length=headers[0].number(f"{architecture}.context_length"),
        shape=make_shape(headers),
    )  # fmt: skip


def read_remote_gguf(url: str, *, patience_s: float = PATIENCE_S) -> GgufHeader:
    """The header of the file behind an http or https URL.

    Raises ValueProblem where there is no usable file, TimedOut where the whole takes longer than ``patience_s``,
    AppError (exit code 5) where the server or the network fails.
    """
    import requests
    from urllib3.exceptions import HTTPError, ReadTimeoutError

    name = plain_url(url)
    deadline = monotonic() + patience_s
    try:
        with requests.Session() as session:
            return _Reading(session, url, name, deadline, patience_s).run()
    except (requests.exceptions.Timeout, ReadTimeoutError):
        raise _late(name, patience_s) from None
    except requests.exceptions.SSLError:
        raise AppError(f"{name}: the server's certificate cannot be trusted", "check the address and the clock",
                       exit_code=5) from None  # fmt: skip
    except requests.exceptions.ProxyError:
        raise AppError(f"{name}: the proxy cannot be reached", "check the variables HTTPS_PROXY and NO_PROXY",
                       exit_code=5) from None  # fmt: skip
    except requests.exceptions.ConnectionError:
        raise AppError(f"{name}: the server cannot be reached", "check the address and the network",
                       exit_code=5) from None  # fmt: skip
    except requests.exceptions.TooManyRedirects:
        raise ValueProblem(f"{name}: leads round in circles", "give the file's own address") from None
    except HTTPError:  # of the layer below requests, while the body is read
        raise _cut(name) from None
    except (requests.exceptions.RequestException, UnicodeError, ValueError):
        raise ValueProblem(f"{name}: is no address that can be read", "write https://HOST/PATH/model.gguf") from None


class _Reading:
    """One file that is being read from its start."""

    def __init__(self, session: Session, url: str, name: str, deadline: float, patience_s: float) -> None:
        self.session = session
        self.url = url
        self.name = name
        self.deadline = deadline
        self.patience_s = patience_s
        self.data = bytearray()
        self.size = 0  # of the file; 0: the server does not tell

    def run(self) -> GgufHeader:
        """Ask for more until the header is whole."""
        wanted = FIRST_BYTES
        while True:
            with self._ask(wanted) as response:
                header = self._whole(response) if response.status_code == 200 else self._piece(response, wanted)
            if header is not None:
                return self._checked(header)
            wanted *= 2
            if wanted > MOST_BYTES:
                raise self._endless()

    def _ask(self, wanted: int) -> Response:
        left = self.deadline - monotonic()
        if left <= 0:
            raise _late(self.name, self.patience_s)
        headers = {"Range": f"bytes={len(self.data)}-{wanted - 1}", "Accept-Encoding": "identity"}
        response = self.session.get(self.url, headers=headers, stream=True, timeout=left)
        if response.status_code not in (200, 206):
            response.close()
            raise self._refused(response)
        return response

    def _piece(self, response: Response, wanted: int) -> GgufHeader | None:
        """The next range, added to what is there."""
        begin, size = _content_range(response.headers.get("Content-Range", ""))
        if begin != len(self.data) or (self.size and size != self.size):
            raise AppError(f"{self.name}: the server sent another part of the file than it was asked for",
                           "try again, or download the file", exit_code=5)  # fmt: skip
        self.size = size
        expected = min(wanted, size or wanted)
        for chunk in self._chunks(response):
            self.data += chunk
            if len(self.data) >= wanted:
                break
        if len(self.data) < expected:
            raise _cut(self.name)
        return self._parse()

    def _whole(self, response: Response) -> GgufHeader | None:
        """The file from its start, from a server that knows no ranges: no more of it than is needed."""
        self.data.clear()
        length = response.headers.get("Content-Length", "")
        self.size = int(length) if length.isascii() and length.isdigit() and len(length) < 18 else 0
        step = 4096
        for chunk in self._chunks(response):
            self.data += chunk
            if len(self.data) >= step:
                step = len(self.data) * 2  # so that all attempts together take no longer than the last two
                header = self._parse()
                if header is not None:
                    return header
            if len(self.data) > MOST_BYTES:
                raise self._endless()
        if len(self.data) < self.size:
            raise _cut(self.name)
        self.size = len(self.data)
        return self._parse()

    def _chunks(self, response: Response) -> Iterator[bytes]:
        # What has arrived, however little: a server that sends a byte now and then would otherwise be waited for.
        while chunk := response.raw.read1(_CHUNK, decode_content=True):
            yield chunk
            if monotonic() > self.deadline:
                raise _late(self.name, self.patience_s)

    def _parse(self) -> GgufHeader | None:
        return read_gguf_prefix(self.name, bytes(self.data), self.size or _UNKNOWN)

    def _checked(self, header: GgufHeader) -> GgufHeader:
        needed = header.needed_bytes
        if not self.size:
            if needed is None:
                raise ValueProblem(
                    f"{self.name}: neither the server nor the header tells the size", "download the file"
                )
            return replace(header, size_bytes=needed)
        if needed is not None and self.size < needed:
            raise ValueProblem(f"{self.name}: truncated: {self.size} bytes of {needed} are there",
                               "get the model from elsewhere")  # fmt: skip
        return header

    def _endless(self) -> ValueProblem:
        return ValueProblem(f"{self.name}: the header does not end within {MOST_BYTES >> 20} MiB", "check the address")

    def _refused(self, response: Response) -> AppError:
        code = response.status_code
        if code in (401, 403):
            return ValueProblem(f"{self.name}: the server wants to know who asks (HTTP {code})",
                                "download the file, and give its path")  # fmt: skip
        if code in (404, 410):
            return ValueProblem(f"{self.name}: there is no such file (HTTP {code})", "check the address")
        if code == 416:
            return ValueProblem(f"{self.name}: the header is damaged or cut off", "get the model from elsewhere")
        if code == 429:
            return AppError(f"{self.name}: the server is asked too often (HTTP 429)", "try again later", exit_code=5)
        if code >= 500:
            return AppError(f"{self.name}: the server failed (HTTP {code})", "try again later", exit_code=5)
        return ValueProblem(f"{self.name}: the server answered with HTTP {code}", "check the address")


def _content_range(text: str) -> tuple[int, int]:
    """First byte and size of ``bytes 0-1048575/4683073184``; size 0 for ``*``, first byte -1 for anything else."""
    unit, _, rest = text.strip().partition(" ")
    span, _, size = rest.partition("/")
    begin = span.partition("-")[0]
    if unit != "bytes" or not _is_number(begin) or not (_is_number(size) or size == "*"):
        return -1, 0
    return int(begin), 0 if size == "*" else int(size)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18


def _parts(url: str) -> list[str]:
    """The addresses of all parts of a split model; only the one where it is not split."""
    address, mark, query = url.partition("?")
    split = split_part(address)
    if split is None:
        return [url]
    stem, _, count = split
    if count > MOST_PARTS:
        raise ValueProblem(f"{plain_url(url)}: has {count} parts, more than {MOST_PARTS}", "check the address")
    ending = address[-5:]
    return [f"{stem}-{number:05}-of-{count:05}{ending}{mark}{query}" for number in range(1, count + 1)]


def _late(name: str, patience_s: float) -> TimedOut:
    return TimedOut(f"{name}: the header was not there within {patience_s:g} seconds",
                    "try again, or wait longer with --timeout")  # fmt: skip


def _cut(name: str) -> AppError:
    return AppError(f"{name}: the connection was cut", "try again", exit_code=5)
