"""A conversation at a terminal, against a small server of OpenAI's form: what is seen, and what is sent."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from harness import run_cli
from terminal import Terminal

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


class Server:
    """Answers with what ``answer`` gives for the body of a request: events, an error (status and object), or both."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], list[object] | tuple[int, object]] = lambda body: said(
            f"You said: {text_of(body)}"
        )
        self.hold = threading.Event()  # while it is not set, an answer stays open after its events
        self.hold.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._json(200, {"data": [{"id": "one"}, {"id": "two"}]} if "models" in self.path else {})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.bodies.append(body)
                answer = outer.answer(body)
                if isinstance(answer, tuple):
                    self._json(*answer)
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                for event in answer:
                    self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                    self.wfile.flush()
                outer.hold.wait(60)
                self.wfile.write(b"data: [DONE]\n\n")

            def _json(self, status: int, data: object) -> None:
                text = json.dumps(data).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass  # clients that go away in the middle are part of the tests

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def asked(self) -> list[list[tuple[str, Any]]]:
        """Role and content of each message of each request."""
        return [[(each["role"], each["content"]) for each in body["messages"]] for body in self.bodies]


def text_of(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else f"{len(content)} parts"


def said(*texts: str, reasoning: str = "") -> list[object]:
    """The events of an answer."""
    deltas: list[dict[str, str]] = [{"reasoning_content": reasoning}] if reasoning else []
    deltas += [{"content": text} for text in texts]
    ending = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5},
             "timings": {"prompt_per_second": 100.0, "predicted_per_second": 50.5}}  # fmt: skip
    return [*({"choices": [{"delta": delta}]} for delta in deltas), ending, usage]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.hold.set()
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "RAMALAMA_CONFIG": os.devnull, "XDG_STATE_HOME": str(tmp_path / "state")}


def start(server: Server, env: dict[str, str], *words: str, width: int = 80) -> Terminal:
    terminal = Terminal("chat", "--url", server.url, *words, env=env, width=width)
    if "-i" not in words:
        terminal.see(">")
    return terminal


def test_a_whole_session(server: Server, home: dict[str, str], tmp_path: Path) -> None:
    note, picture, kept = tmp_path / "note.txt", tmp_path / "p.png", tmp_path / "kept.json"
    note.write_text("a **note**\n")
    picture.write_bytes(PNG)
    with start(server, home) as at:
        at.type("hello\r")
        at.see("You said: hello")
        at.see(">", 2)
        at.type("one\\\r")
        at.type("two\r")
        at.see("You said: one")
        at.see(">", 3)
        at.type('"""\rfirst\rsecond\r"""\r')
        at.see("You said: first\nsecond")
        at.see(">", 4)
        at.type("/system Be short.\r")
        at.see("System prompt: Be short.")
        at.type("/set temperature 0.5\r")
        at.see("temperature = 0.5")
        at.type("/model two\r")
        at.see("Asking two from now on.")
        at.type(f"/file {note}\r")
        at.see("note.txt goes with the next question.")
        at.type(f"/image '{picture}'\r")
        at.see("p.png goes with the next question.")
        at.type("what is it?\r")
        at.see("You said: 2 parts")
        at.type("/stats\r")
        at.see("answer: 5 tokens, 50.5 tokens a second")
        at.type(f"/save {kept}\r")
        at.see("Saved 8 messages.")
        at.type("/clear\r")
        at.see("The conversation is forgotten.")
        at.type("alone\r")
        at.see("You said: alone")
        at.type(f"/load {kept}\r")
        at.see("Loaded 8 messages.")
        at.type("/retry\r")
        at.see("You said: 2 parts", 2)
        at.type("/bye\r")
        assert at.wait() == 0
    asked = server.asked()
    assert asked[0] == [("user", "hello")]
    assert asked[2] == [("user", "hello"), ("assistant", "You said: hello"), ("user", "one\ntwo"),
                        ("assistant", "You said: one\ntwo"), ("user", "first\nsecond")]  # fmt: skip
    assert asked[3][0] == ("system", "Be short.")
    assert asked[3][-1] == ("user", [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAAAAAAAAAAAAAAAAAAAAAAAAA=="}},
        {"type": "text", "text": "File note.txt:\n```\na **note**\n```\n\nwhat is it?"},
    ])  # fmt: skip
    assert (server.bodies[3]["temperature"], server.bodies[3]["model"]) == (0.5, "two")
    assert asked[4] == [("system", "Be short."), ("user", "alone")]
    assert asked[5] == asked[3]
    assert os.stat(kept).st_mode & 0o777 == 0o600
    history = tmp_path / "state" / "ramalama-like" / "chat_history"
    assert history.read_text().splitlines()[:2] == ["hello", "one\\"]
    assert history.stat().st_mode & 0o777 == 0o600


def test_the_history_is_there_again(server: Server, home: dict[str, str]) -> None:
    with start(server, home) as at:
        at.type("remember the river\r")
        at.see("You said: remember the river")
        at.see(">", 2)
        at.type("\x04")
        assert at.wait() == 0
    with start(server, home) as at:
        at.type("\x12river")  # Ctrl-R
        at.see("remember the river")
        at.type("\r")
        at.see("You said: remember the river")
        at.type("\x1b[A\r")  # up
        at.see("You said: remember the river", 2)
        at.type("/bye\r")
        assert at.wait() == 0


def test_ctrl_c_stops_the_answer_alone(server: Server, home: dict[str, str]) -> None:
    with start(server, home) as at:
        server.hold.clear()
        server.answer = lambda _: said("It begins")[:1]
        at.type("a long one\r")
        at.see("It begins")
        at.type("\x03")
        at.see("(stopped)")
        server.hold.set()
        server.answer = lambda _: said("done")
        at.see(">", 2)
        at.type("half a line\x03")
        at.see("(Ctrl-D or /bye leaves)")
        at.type("next\r")
        at.see("done")
        at.see(">", 4)
        at.type("\x04")
        assert at.wait() == 0
    assert server.asked()[-1] == [("user", "next")]  # what was stopped is forgotten


def test_pasted_lines_are_one_question(server: Server, home: dict[str, str]) -> None:
    with start(server, home) as at:
        at.type("\x1b[200~first line\n/bye\n\x1b[31mthird\x1b[201~\r")
        at.see("You said: first line")
        at.type("/bye\r")
        assert at.wait() == 0
    [[(_, content)]] = server.asked()
    assert content in ("first line\n/bye\n[31mthird", "first line\n/bye\n^[[31mthird")


def test_marks_and_thoughts_in_colour(server: Server, home: dict[str, str]) -> None:
    server.answer = lambda _: said("# Title\n", "some **bold** and `code`", reasoning="Let me think.\n")
    with start(server, home) as at:
        at.type("go\r")
        at.see("some bold and code")
        lines = at.lines()
        row = next(number for number, line in enumerate(lines) if line.startswith("some bold"))
        assert lines[row - 3 : row + 1] == ["Let me think.", "", "Title", "some bold and code"]
        assert [at.screen.buffer[row][column].bold for column in (0, 5, 9)] == [False, True, False]
        assert at.screen.buffer[row - 1][0].bold and at.screen.buffer[row][14].fg == "cyan"
        at.type("/think fold\r")
        at.see("Thoughts are folded")
        at.type("go\r")
        at.see("(thought 14 letters: /think shows them)")
        at.type("/think\r")
        at.see("Let me think.", 2)
        at.type("/bye\r")
        assert at.wait() == 0
    # The question is what the model's template makes of it, without its thoughts.
    assert server.asked()[-1][1] == ("assistant", "# Title\nsome **bold** and `code`")


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_without_colour(server: Server, home: dict[str, str], env: dict[str, str]) -> None:
    server.answer = lambda _: said("some **bold**", reasoning="Hm.")
    with start(server, {**home, **env}) as at:
        at.type("go\r")
        at.see("some **bold**")
        at.type("/bye\r")
        assert at.wait() == 0
        for code in (b"\x1b[2m", b"\x1b[1m", b"\x1b[0;1m", b"\x1b[0m"):
            assert code not in at.raw


def test_a_narrow_terminal(server: Server, home: dict[str, str]) -> None:
    server.answer = lambda _: said("The quick brown fox jumps over the lazy dog and goes home")
    with start(server, home, width=30) as at:
        at.type("go\r")
        at.see("home")
        assert [line for line in at.lines() if "fox" in line or "dog" in line or "home" in line] == [
            "The quick brown fox jumps", "over the lazy dog and goes", "home"]  # fmt: skip
        at.type("/bye\r")
        assert at.wait() == 0


def test_mistakes_cost_nothing(server: Server, home: dict[str, str]) -> None:
    with start(server, home) as at:
        for typed, seen in {
            "/hlep": "did you mean /help?", "/set colour 1": "/set colour: is no setting",
            "/file /none": "No such file",
            "/set seed x": "/set seed: x is no whole number", "/load /none": "/none: No such file",
            "/set temperature nan": "nan is no number", "/image": "No file goes with the next question.",
            "/retry": "Nothing was asked yet.", "/stats": "Nothing was answered yet.", "?": "/image PATH",
            "/save": "/save needs the name of a file",
        }.items():  # fmt: skip
            at.type(f"{typed}\r")
            at.see(seen)
        at.type("/etc/passwd is a file\r")
        at.see("You said: /etc/passwd is a file")
        at.type("exit\r")
        assert at.wait() == 0


def test_a_context_that_is_full(server: Server, home: dict[str, str]) -> None:
    full = (400, {"error": {"message": "request (99 tokens) exceeds the available context size (64 tokens)",
                            "type": "exceed_context_size_error"}})  # fmt: skip
    server.answer = lambda body: full if len(body["messages"]) > 4 else said("fine")
    with start(server, home) as at:
        for number in (1, 2):
            at.type("more\r")
            at.see("fine", number)
        at.type("more\r")
        at.see("Forget its older half and ask again? [Y/n]")
        at.type("n\r")
        at.see("request (99 tokens) exceeds")
        at.type("more\r")
        at.see("[Y/n]", 2)
        at.type("\r")
        at.see("Forgot 2 messages.")
        at.see("fine", 3)
        at.type("/bye\r")
        assert at.wait() == 0
    assert [len(each) for each in server.asked()] == [1, 3, 5, 5, 3]


def test_a_server_that_dies_ends_the_conversation(server: Server, home: dict[str, str]) -> None:
    with start(server, home) as at:
        at.type("hello\r")
        at.see("You said: hello")
        server.http.shutdown()
        server.http.server_close()
        at.type("are you there?\r")
        assert at.wait() == 5
        assert "no answer from the server: Connection refused" in at.text.replace("\n", "")


def test_long_histories_are_summarized(server: Server, home: dict[str, str]) -> None:
    with start(server, home, "--summarize-after", "10") as at:
        for number in range(1, 7):
            at.type(f"question {number}\r")
            at.see(f"You said: question {number}")
        at.see("(summarizing the conversation so far)")
        at.type("/bye\r")
        assert at.wait() == 0
    asked = server.asked()
    assert len(asked) == 7
    summarizing, following = asked[5], asked[6]
    assert summarizing[:-1] == asked[4][:8] and summarizing[-1][1].startswith("Summarize this conversation")
    assert following == [
        ("user", "question 1"), ("assistant", f"Summary of the conversation so far: You said: {summarizing[-1][1]}"),
        ("user", "question 5"), ("assistant", "You said: question 5"), ("user", "question 6"),
    ]  # fmt: skip


def test_one_answer_as_json(server: Server, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object"}')
    server.answer = lambda _: said('{"a": 1}', reasoning="Hm.")
    shown = run_cli("chat", "--url", server.url, "--json", "--schema", str(schema), "-m", "one", "--temp", "0", "go")
    assert (shown.code, shown.err) == (0, "")
    assert json.loads(shown.out) == {
        "text": '{"a": 1}', "reasoning": "Hm.", "model": "one", "finish_reason": "stop",
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
        "timings": {"prompt_per_second": 100.0, "predicted_per_second": 50.5},
    }  # fmt: skip
    assert server.bodies == [{
        "messages": [{"role": "user", "content": "go"}], "model": "one", "temperature": 0.0, "return_progress": True,
        "response_format": {"type": "json_schema",
                            "json_schema": {"name": "answer", "strict": True, "schema": {"type": "object"}}},
        "stream": True, "stream_options": {"include_usage": True},
    }]  # fmt: skip


def test_pipes_get_the_text_alone(server: Server, tmp_path: Path) -> None:
    grammar = tmp_path / "g.gbnf"
    grammar.write_text('root ::= "x"')
    server.answer = lambda _: said("**x**", reasoning="Hm.")
    shown = run_cli(
        "chat", "--url", server.url, "--grammar", str(grammar), "--system", "Be.", "--file", str(grammar), "go"
    )
    assert (shown.code, shown.out, shown.err) == (0, "**x**\n", "")
    assert server.bodies[0]["grammar"] == 'root ::= "x"'
    assert server.asked() == [[("system", "Be."), ("user", 'File g.gbnf:\n```\nroot ::= "x"\n```\n\ngo')]]


REFUSED = {
    ("--schema", "SCHEMA", "--grammar", "TEXT"): "--schema and --grammar cannot be had together",
    ("--schema", "TEXT"): "--schema TEXT: holds no JSON object",
    ("--file", "/none"): "/none: No such file or directory",
    ("--file", "BINARY"): "BINARY: is neither a text in UTF-8 nor an image",
    ("--file", "EMPTY"): "EMPTY: is empty",
    ("--file", "."): ".: not a file",
    ("--json", "-i"): "--json is for one answer, not for a conversation",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_is_refused(words: tuple[str, ...], server: Server, tmp_path: Path) -> None:
    files = {"SCHEMA": b"{}", "TEXT": b"text", "BINARY": b"\0\xff", "EMPTY": b" \n"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    given = [str(tmp_path / word) if word in files else word for word in words]
    shown = run_cli("chat", "--url", server.url, *given, "go")
    message = REFUSED[words]
    for name in files:
        message = message.replace(name, str(tmp_path / name)) if name in words else message
    assert (shown.code, shown.err.splitlines()[0], server.bodies) == (22, f"Error: {message}", [])


def test_only_thoughts_are_no_answer(server: Server) -> None:
    length = {"choices": [{"delta": {}, "finish_reason": "length"}]}
    server.answer = lambda _: [{"choices": [{"delta": {"reasoning_content": "Hm"}}]}, length]
    shown = run_cli("chat", "--url", server.url, "go")
    assert (shown.code, shown.out) == (22, "")
    assert shown.err.endswith("Hint: it was still thinking when --max-tokens was reached: allow more\n")


def test_the_first_answer_can_be_stopped(server: Server, home: dict[str, str]) -> None:
    server.hold.clear()
    server.answer = lambda _: said("It begins")[:1]
    with start(server, home, "-i", "go on") as at:
        at.see("It begins")
        at.type("\x03")
        at.see("(stopped)")
        server.hold.set()
        server.answer = lambda _: (500, {"error": {"message": "out\nof luck"}})
        at.see(">")
        at.type("again\r")
        at.see("out\\nof luck")
        at.see(">", 2)
        at.type("\x04")
        assert at.wait() == 0


def test_odd_numbers_of_a_server(server: Server, home: dict[str, str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    huge = {"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}],
            "timings": {"predicted_per_second": 10**400, "prompt_per_second": float("nan")},
            "usage": {"completion_tokens": 3}}  # fmt: skip
    server.answer = lambda _: [huge]
    with start(server, home, width=200) as at:
        at.type("go\r")
        at.see("ok")
        at.type("/stats\r")
        at.see("answer: 3 tokens\n")
        at.type(f"/load {tmp_path}/pipe\r")
        at.see("pipe: not a file")
        at.type("/bye\r")
        assert at.wait() == 0
    shown = run_cli("chat", "--url", server.url, "--json", "go")
    assert json.loads(shown.out, parse_constant=pytest.fail)["timings"] == {"predicted_per_second": 10**400}
    for odd in (float("inf"), "x", [1], -(10**400)):
        server.answer = lambda _, odd=odd: [{"choices": [{"delta": {"tool_calls": [{"index": odd}]}}]}]  # type: ignore[misc]
        shown = run_cli("chat", "--url", server.url, "go")
        assert (shown.code, shown.out) == (22, "")
        assert "a fault in this program" not in shown.err


def test_turned_writing_is_left_out(server: Server) -> None:
    server.answer = lambda _: said("a\u202eb\u2066c")
    assert run_cli("chat", "--url", server.url, "go").out == "abc\n"
