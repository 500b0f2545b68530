"""The chat client against servers that do as they should, and against odd ones: one clear error, never a fault."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from harness import run_cli

from ramalama_like.chat.client import parse_address
from ramalama_like.chat.display import printable
from ramalama_like.errors import ValueProblem

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@contextmanager
def server(answer: bytes) -> Iterator[str]:
    """A server that answers every request with the same bytes and closes the connection; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def work() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    # Bytes of the request that are still unread would reset the connection, and the answer with it.
                    while connection.recv(65536):
                        pass

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def event(data: object) -> bytes:
    """One server-sent event."""
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def piece(text: object, finish: str | None = None) -> bytes:
    """An event in OpenAI's form."""
    return event({"choices": [{"delta": {"content": text}, "finish_reason": finish}]})


def test_an_answer_in_pieces() -> None:
    with server(HEAD + piece("Hel") + piece("lo") + piece(None, "stop") + event(b"[DONE]")) as url:
        done = run_cli("chat", "--url", url, "hi")
    assert (done.code, done.out, done.err) == (0, "Hello\n", "")


ODD = {
    "a list": event([]), "a number": event(5), "null": event(None), "a text": event("x"), "no JSON": event(b"{"),
    "choices no list": event({"choices": 5}), "a choice no object": event({"choices": [1]}), "content": piece(5),
    "content a list": piece([1]), "delta": event({"choices": [{"delta": "x"}]}), "nesting": event(b"[" * 100_000),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_events_of_another_form(name: str) -> None:
    with server(HEAD + ODD[name]) as url:
        done = run_cli("chat", "--url", url, "hi")
    assert (done.code, done.out) == (22, "")
    assert done.err.splitlines()[0] == f"Error: {url}: an event of the answer is not of OpenAI's form"


ENDS = {
    "nothing at all": (b"", 5), "no HTTP": (b"garbage\r\n\r\n", 5), "half an answer": (HEAD + piece("Hel"), 5),
    "an empty answer": (HEAD + piece("", "stop") + event(b"[DONE]"), 22), "only the end": (HEAD + event(b"[DONE]"), 22),
    "an error": (b'HTTP/1.1 500 X\r\nConnection: close\r\n\r\n{"error": {"message": "out of luck"}}', 22),
    "an error in between": (HEAD + event({"error": {"message": "out of luck"}}), 22),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_only_an_answer_is_a_success(name: str) -> None:
    answer, code = ENDS[name]
    with server(answer) as url:
        done = run_cli("chat", "--url", url, "hi")
    assert done.code == code
    assert done.err.startswith("Error: ") and "a fault in this program" not in done.err


def test_no_model_moves_the_cursor() -> None:
    assert printable("a\x1b[31mb\x9b1mc\x07\r\n\td\x7f") == "a[31mb1mc\n\td"
    # Two bytes that were no UTF-8 would be one control character together.
    assert printable("\udcc2\udc9b31m") == "\ufffd\ufffd31m"


def test_a_key_that_cannot_be_sent_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMALAMA_API_KEY", "sekrit\n")
    done = run_cli("chat", "hi")
    assert done.code == 22 and "sekrit" not in done.err + done.out


def test_the_dry_run_of_chat_is_what_was_asked() -> None:
    line = run_cli("chat", "--dryrun", "-m", "foo", "--nocontainer", "hi there").out
    assert line.endswith(" chat -m foo --nocontainer -- 'hi there'\n")


@pytest.mark.parametrize("url", ["", "unix:x", "ftp://h", "http://", "http://[::1", "http://h:99999"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ValueProblem):
        parse_address(url)
