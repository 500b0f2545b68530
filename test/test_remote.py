"""Headers of models on web servers: a real server on this machine, and everything that can be wrong with one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from harness import Result, error_text, gguf_bytes, gguf_pair, gguf_tensor, projector, run_cli

from ramalama_like.errors import AppError
from ramalama_like.models import remote
from ramalama_like.models.remote import read_remote_gguf, resolve_remote
from ramalama_like.reference import plain_url

PATIENCE_S = 20.0


def model_file(vocabulary: int = 4, *, data: int = 0, layers: int = 2) -> bytes:
    """A whole file of a language model; its data are not looked at."""
    numbers = {"block_count": layers, "embedding_length": 64, "context_length": 512, "feed_forward_length": 128,
               "attention.head_count": 2, "attention.head_count_kv": 2}  # fmt: skip
    pairs = [gguf_pair("general.architecture", "text", "llama")]
    pairs += [gguf_pair(f"llama.{key}", "u32", number) for key, number in numbers.items()]
    pairs.append(gguf_pair("tokenizer.ggml.tokens", "[text]", ["x" * 100] * vocabulary))
    tensors = [gguf_tensor(f"blk.{number}.attn_k.weight", [data // layers // 4], 0, number * (data // layers))
               for number in range(layers)]  # fmt: skip
    return gguf_bytes(*pairs, tensors=tensors, data=data)


Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers as the test wants, and writes down what it was asked."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Range", "")))
        self.server.answer(self)

    def log_message(self, *_: object) -> None:
        pass

    def send(self, code: int, body: bytes, **headers: str) -> None:
        """A whole answer."""
        self.send_response(code)
        headers.setdefault("Content_Length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.write(body)

    def write(self, body: bytes) -> None:
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def send_range(self, content: bytes, **more: Any) -> None:
        """What was asked for, as servers do it."""
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        if int(first) >= len(content):
            self.send(416, b"", Content_Range=f"bytes */{len(content)}")
            return
        body = content[int(first) : int(last) + 1]
        size = more.get("size", str(len(content)))
        self.send(206, body, Content_Range=f"bytes {first}-{int(first) + len(body) - 1}/{size}")


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str]] = []
        self.answer: Answer = lambda handler: handler.send(500, b"")

    def handle_error(self, *_: object) -> None:
        """Clients that go away in the middle are what some tests are about."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_the_first_mib_is_enough_for_most(server: Server) -> None:
    content = model_file(data=4 << 20)
    server.answer = lambda handler: handler.send_range(content)
    header = read_remote_gguf(f"{server.url}/a/x.gguf", patience_s=PATIENCE_S)
    assert (header.size_bytes, header.needed_bytes, header.tensor_count) == (len(content), len(content), 2)
    assert server.asked == [("/a/x.gguf", "bytes=0-1048575")]


def test_a_long_header_is_asked_for_piece_by_piece(server: Server) -> None:
    content = model_file(30_000, data=4 << 20)
    server.answer = lambda handler: handler.send_range(content)
    header = read_remote_gguf(f"{server.url}/x.gguf", patience_s=PATIENCE_S)
    assert (header.size_bytes, header.length("tokenizer.ggml.tokens")) == (len(content), 30_000)
    assert [span for _, span in server.asked] == [
        "bytes=0-1048575", "bytes=1048576-2097151", "bytes=2097152-4194303",
    ]  # fmt: skip


def test_a_small_file_is_read_whole(server: Server) -> None:
    content = model_file()
    server.answer = lambda handler: handler.send_range(content)
    assert read_remote_gguf(f"{server.url}/x", patience_s=PATIENCE_S).size_bytes == len(content)


def test_a_size_that_is_not_told_is_computed(server: Server) -> None:
    content = model_file(data=4 << 20)
    server.answer = lambda handler: handler.send_range(content, size="*")
    assert read_remote_gguf(f"{server.url}/x", patience_s=PATIENCE_S).size_bytes == len(content)


def test_a_small_file_whose_size_is_not_told(server: Server) -> None:
    content = model_file(data=64)
    server.answer = lambda handler: handler.send_range(content, size="*")
    assert read_remote_gguf(f"{server.url}/x", patience_s=PATIENCE_S).size_bytes == len(content)
    server.answer = lambda handler: handler.send_range(content[:100], size="*")  # which ends within the header
    with pytest.raises(AppError) as caught:
        read_remote_gguf(f"{server.url}/x", patience_s=PATIENCE_S)
    assert caught.value.message == f"{server.url}/x: the header is damaged or cut off"


def test_no_size_anywhere(server: Server) -> None:
    content = gguf_bytes(gguf_pair("general.architecture", "text", "llama"),
                         tensors=[gguf_tensor("blk.0.attn_k.weight", [8], 99)], data=32)  # fmt: skip
    server.answer = lambda handler: handler.send_range(content, size="*")
    said = f"{server.url}/x: neither the server nor the header tells the size"
    assert run_cli("fit", f"{server.url}/x") == Result(22, "", error_text(said, "download the file"))


def test_what_is_asked_for(server: Server) -> None:
    asked: list[dict[str, str]] = []

    def answer(handler: Handler) -> None:
        asked.append({name.lower(): text for name, text in handler.headers.items()})
        handler.send_range(content)

    content, server.answer = model_file(data=4096), answer
    read_remote_gguf(server.url.replace("http://", "HTTP://me:secret@") + "/x", patience_s=PATIENCE_S)
    assert (asked[0]["accept-encoding"], asked[0]["range"]) == ("identity", "bytes=0-1048575")
    assert asked[0]["authorization"].startswith("Basic ")
    assert run_cli("fit", f"{server.url.replace('http', 'Http')}/x", "--backend", "cpu").code == 0


def test_a_password_does_not_follow_to_another_host(server: Server) -> None:
    content = model_file()
    told: list[tuple[str, str | None, str | None]] = []

    def answer(handler: Handler) -> None:
        host = handler.headers["Host"].partition(":")[0]
        told.append((host, handler.headers.get("Authorization"), handler.headers.get("Referer")))
        if host == "127.0.0.1":
            handler.send(302, b"", Location=f"http://localhost:{server.server_address[1]}/there")
        else:
            handler.send_range(content)

    server.answer = answer
    url = server.url.replace("//", "//me:secret@")
    assert read_remote_gguf(f"{url}/x?sig=secret", patience_s=PATIENCE_S).size_bytes == len(content)
    assert [(host, bool(key), referer) for host, key, referer in told] == [
        ("127.0.0.1", True, None), ("localhost", False, None),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["..", "a/../..-00001-of-00001.gguf", "..-00001-of-00001.gguf", "%2e%2e", ""])
def test_names_that_lead_up(name: str, server: Server) -> None:
    content = model_file(data=4096)
    server.answer = lambda handler: handler.send_range(content)
    done = run_cli("fit", f"{server.url}/{name}", "--backend", "cpu", "--json")
    if name in ("", "..") or "/" in name:  # whatever a server means by it, it names no file
        assert (done.code, done.out, done.err.count("Error: ")) == (22, "", 1)
    else:
        assert (done.code, json.loads(done.out)["size_bytes"]) == (0, len(content))


def test_a_lone_part_is_told(server: Server, tmp_path: Path) -> None:
    content = gguf_bytes(gguf_pair("general.architecture", "text", "llama"), gguf_pair("split.count", "u16", 3))
    server.answer = lambda handler: handler.send_range(content)
    hint = "give it the name that it had, as in model-00001-of-00003.gguf"
    for url in (f"{server.url}/get?file=x-00001-of-00003.gguf", f"{server.url}/get"):
        said = f"{server.url}/get: is one of 3 parts of a model"
        assert run_cli("fit", url) == Result(22, "", error_text(said, hint))
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    assert run_cli("fit", str(path)) == Result(22, "", error_text(f"{path}: is one of 3 parts of a model", hint))


@pytest.mark.parametrize("length", [True, False])
def test_a_server_that_knows_no_ranges_is_read_no_further_than_needed(server: Server, length: bool) -> None:
    content = model_file(30_000, data=1024)
    sent = []

    def answer(handler: Handler) -> None:
        headers = {"Content_Length": str(len(content) + (1 << 40))} if length else {"Connection": "close"}
        handler.send_response(200)
        for name, text in headers.items():
            handler.send_header(name.replace("_", "-"), text)
        handler.end_headers()
        handler.close_connection = True
        handler.write(content)
        try:
            while True:
                handler.wfile.write(bytes(1 << 16))
                sent.append(1 << 16)
        except OSError:
            pass

    server.answer = answer
    header = read_remote_gguf(f"{server.url}/x", patience_s=PATIENCE_S)
    assert header.size_bytes == len(content) + ((1 << 40) if length else 0)
    assert len(server.asked) == 1
    assert sum(sent) < 64 << 20  # what the two ends of the connection hold, and the rest of the last doubling


def test_redirects_are_followed(server: Server) -> None:
    content = model_file()

    def answer(handler: Handler) -> None:
        if handler.path == "/there":
            handler.send_range(content)
        else:
            handler.send(302, b"", Location="/there")

    server.answer = answer
    assert read_remote_gguf(f"{server.url}/here", patience_s=PATIENCE_S).size_bytes == len(content)


def no_part(handler: Handler) -> None:
    handler.send(206, b"GGUF", Content_Range="bytes 5-8/100")


def no_range(handler: Handler) -> None:
    handler.send(206, b"GGUF")


def short(handler: Handler) -> None:
    handler.send(206, model_file()[:50], Content_Range=f"bytes 0-999/{1 << 30}", Content_Length="1000")
    handler.close_connection = True


def shorter_than_asked(handler: Handler) -> None:
    handler.send(206, model_file()[:50], Content_Range=f"bytes 0-49/{1 << 30}")


def short_stream(handler: Handler) -> None:
    handler.send(200, model_file()[:50], Content_Length="1000")
    handler.close_connection = True


def ended_stream(handler: Handler) -> None:
    handler.send(200, model_file()[:50], Connection="close", Content_Length="50")


def changing(handler: Handler) -> None:
    count = len(handler.server.asked)
    content = model_file(30_000)
    handler.send_range(content, size=str(len(content) + count))


def hang_up(handler: Handler) -> None:
    handler.close_connection = True
    handler.connection.close()


def gibberish(handler: Handler) -> None:
    handler.write(b"\x00\x01\x02 nonsense\r\n\r\n")
    handler.close_connection = True


def round_in_circles(handler: Handler) -> None:
    handler.send(302, b"", Location=handler.path)


def elsewhere(handler: Handler) -> None:
    handler.send(302, b"", Location="file:///etc/passwd")


def status(code: int) -> Answer:
    return lambda handler: handler.send(code, b"<html>no</html>")


def page(handler: Handler) -> None:
    handler.send(200, b"<!DOCTYPE html><html>sign in</html>")


def packed(handler: Handler) -> None:
    handler.send(200, b"not gzip", Content_Encoding="gzip")


def packed_part(handler: Handler) -> None:
    handler.send(206, b"x" * 10, Content_Encoding="br", Content_Range="bytes 0-9/100")


def backwards(handler: Handler) -> None:
    handler.send(206, b"GGUF", Content_Range="bytes 0-9/5")


AGAIN = "download the model again"
CUT = ("the connection was cut", "try again", 5)
FAULTS: dict[str, tuple[Answer, tuple[str, str, int]]] = {
    "400": (status(400), ("the server answered with HTTP 400", "check the address", 22)),
    "401": (status(401), ("the server wants to know who asks (HTTP 401)", "download the file, and give its path", 22)),
    "403": (status(403), ("the server wants to know who asks (HTTP 403)", "download the file, and give its path", 22)),
    "404": (status(404), ("there is no such file (HTTP 404)", "check the address", 22)),
    "429": (status(429), ("the server is asked too often (HTTP 429)", "try again later", 5)),
    "503": (status(503), ("the server failed (HTTP 503)", "try again later", 5)),
    "416": (status(416), ("the header is damaged or cut off", "get the model from elsewhere", 22)),
    "204": (status(204), ("the server answered with HTTP 204", "check the address", 22)),
    "web page": (page, ("not a GGUF file", f"this looks like a web page or an error message: {AGAIN}", 22)),
    "another part": (no_part, ("the server sent another part of the file than it was asked for",
                               "try again, or download the file", 5)),
    "no range told": (no_range, ("the server sent another part of the file than it was asked for",
                                 "try again, or download the file", 5)),
    "the file changes": (changing, ("the server sent another part of the file than it was asked for",
                                    "try again, or download the file", 5)),
    "short": (short, CUT),
    "shorter than asked": (shorter_than_asked, CUT),
    "short stream": (short_stream, CUT),
    "a file that ends": (ended_stream, ("the header is damaged or cut off", AGAIN, 22)),
    "packed": (packed, ("the server sends the file packed (gzip), though asked not to",
                        "download the file, and give its path", 22)),
    "a packed part": (packed_part, ("the server sends the file packed (br), though asked not to",
                                    "download the file, and give its path", 22)),
    "a range that ends before it begins": (backwards, ("the server sent another part of the file than it was asked "
                                                       "for", "try again, or download the file", 5)),
    "hangs up": (hang_up, ("the server cannot be reached", "check the address and the network", 5)),
    "gibberish": (gibberish, ("the server cannot be reached", "check the address and the network", 5)),
    "circles": (round_in_circles, ("leads round in circles", "give the file's own address", 22)),
    "leads to a file": (elsewhere, ("is no address that can be read", "write https://HOST/PATH/model.gguf", 22)),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str, server: Server) -> None:
    server.answer, (message, hint, code) = FAULTS[name]
    url = f"{server.url}/x.gguf"
    assert run_cli("fit", url) == Result(code, "", error_text(f"{url}: {message}", hint))


def test_a_truncated_file(server: Server) -> None:
    content = model_file(data=4096)[:-1]
    server.answer = lambda handler: handler.send_range(content)
    url = f"{server.url}/x.gguf"
    said = f"{url}: truncated: {len(content)} bytes of {len(content) + 1} are there"
    assert run_cli("fit", url) == Result(22, "", error_text(said, "get the model from elsewhere"))


def test_an_endless_header(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MOST_BYTES", 2 << 20)
    content = model_file(1)
    endless = content[:24] + gguf_pair("x", "[text]", [])[:-8] + b"\xff\xff\xff\xff\x00\x00\x00\x00" + bytes(8 << 20)
    server.answer = lambda handler: handler.send_range(endless)
    url = f"{server.url}/x.gguf"
    said = error_text(f"{url}: the header does not end within 2 MiB", "check the address")
    assert run_cli("fit", url) == Result(22, "", said)
    server.answer = lambda handler: handler.send(200, endless)
    assert run_cli("fit", url) == Result(22, "", said)


@pytest.mark.parametrize("drip", [True, False])
def test_patience_ends(server: Server, drip: bool) -> None:
    over = threading.Event()

    def answer(handler: Handler) -> None:
        if drip:
            handler.send_response(206)
            handler.send_header("Content-Range", "bytes 0-1048575/9999999")
            handler.send_header("Content-Length", "1048576")
            handler.end_headers()
            handler.close_connection = True
        for letter in b"GGUF" * 1000:
            if over.wait(0.05):
                return
            if drip:
                handler.write(bytes([letter]))

    server.answer = answer
    url, began = f"{server.url}/x.gguf", time.monotonic()
    said = f"{url}: the header was not there within 0.6 seconds"
    assert run_cli("fit", url, "--timeout", "0.6") == Result(
        110, "", error_text(said, "try again, or wait longer with --timeout")
    )
    assert time.monotonic() - began < 5
    over.set()


def test_nobody_listens(server: Server) -> None:
    url = server.url.replace("http", "https")
    done = run_cli("fit", f"{url}/x.gguf", "--timeout", "5")
    assert (done.code, done.out, done.err.count("\n")) == (5, "", 2)
    server.server_close()
    done = run_cli("fit", f"{server.url}/x.gguf")
    said = error_text(f"{server.url}/x.gguf: the server cannot be reached", "check the address and the network")
    assert done == Result(5, "", said)


@pytest.mark.parametrize(
    "url", ["http://", "http://[::1/x", "https://:x/", "http://a b/", "http://\udcff/", "http://*/"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(AppError) as caught:
        read_remote_gguf(url, patience_s=5)
    assert caught.value.exit_code in (5, 22)
    assert caught.value.message.startswith(url)


def test_secrets_in_an_address_are_not_shown(server: Server) -> None:
    server.answer = status(404)
    done = run_cli("fit", f"{server.url.replace('//', '//me:secret@')}/x.gguf?token=secret")
    assert done.err == error_text(f"{server.url}/x.gguf: there is no such file (HTTP 404)", "check the address")
    assert server.asked == [("/x.gguf?token=secret", "bytes=0-1048575")]
    assert plain_url("https://me:pw@host/a?b#c") == "https://host/a"
    assert plain_url("https://host") == "https://host"


# Models.


def test_fit_of_a_remote_model(server: Server) -> None:
    content = model_file(data=4 << 20)
    server.answer = lambda handler: handler.send_range(content)
    done = run_cli("fit", f"{server.url}/models/big-Q4_K_M.gguf?download=true", "--backend", "cpu", "--json")
    found = json.loads(done.out)
    assert (done.code, done.err, found["alias"], found["size_bytes"]) == (0, "", "big-Q4_K_M", len(content))
    assert found["places"][0]["weights_bytes"] == 4 << 20
    assert found["model"] == f"{server.url}/models/big-Q4_K_M.gguf"


def test_all_parts_of_a_split_model_count(server: Server) -> None:
    parts = {
        f"/x-0000{number}-of-00003.gguf?a=b": gguf_bytes(
            *([gguf_pair("general.architecture", "text", "llama"), gguf_pair("llama.block_count", "u32", 3),
               gguf_pair("llama.embedding_length", "u32", 64)] if number == 1 else []),
            tensors=[gguf_tensor(f"blk.{number - 1}.attn_k.weight", [256 * number])], data=1024 * number,
        )
        for number in (1, 2, 3)
    }  # fmt: skip
    server.answer = lambda handler: handler.send_range(parts[handler.path])
    model = resolve_remote(f"{server.url}/x-00002-of-00003.gguf?a=b")
    assert model.size_bytes == sum(map(len, parts.values()))
    assert model.shape is not None
    assert [layer.weight_bytes for layer in model.shape.layers] == [1024, 2048, 3072]
    assert [path for path, _ in server.asked] == list(parts)


def test_too_many_parts(server: Server) -> None:
    done = run_cli("fit", f"{server.url}/x-00001-of-09999.gguf")
    assert (done.code, server.asked) == (22, [])


def test_a_remote_projector_is_no_model(server: Server) -> None:
    server.answer = lambda handler: handler.send_range(projector())
    assert run_cli("fit", f"{server.url}/x.gguf").code == 22
