"""Tools: MCP servers of both forms of answer, the permission for each call, and what the model is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from harness import run_cli
from test_conversation import Server, home, said, server, start  # noqa: F401 - fixtures

from ramalama_like.chat.client import ServerSaid
from ramalama_like.chat.mcp import Toolbox, ToolServer
from ramalama_like.reference import plain_url

ADD = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}}}


class Tools:
    """A tool server with ``add`` on two pages, that demands its session's id; answers as events or as JSON."""

    def __init__(self, *, events: bool = False) -> None:
        self.requests: list[dict[str, Any]] = []
        self.broken: bytes | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append({"path": self.path, "session": self.headers.get("Mcp-Session-Id"), **message})
                if outer.broken is not None:
                    self._send(200, outer.broken, "application/json")
                elif "id" not in message:
                    self._send(202, b"", "application/json")
                else:
                    answer = {"jsonrpc": "2.0", "id": message["id"], **outer.answer(message)}
                    if events:
                        notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
                        text = "".join(f"event: message\ndata: {json.dumps(each)}\n\n" for each in (notice, answer))
                        self._send(200, text.encode(), "text/event-stream")
                    else:
                        self._send(200, json.dumps(answer).encode(), "application/json")

            def _send(self, status: int, data: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Mcp-Session-Id", "session-1")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/tools?key=1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        method, given = message["method"], message["params"]
        if method == "initialize":
            return {"result": {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "t"}}}
        if method == "tools/list":
            if "cursor" in given:
                return {"result": {"tools": [{"name": "fail"}]}}
            return {"result": {"tools": [ADD], "nextCursor": "2"}}
        if given["name"] == "fail":
            return {"result": {"isError": True, "content": [{"type": "text", "text": "no luck"}]}}
        if set(given["arguments"]) != {"a", "b"}:
            return {"error": {"code": -32602, "message": "a and b are needed"}}
        total = given["arguments"]["a"] + given["arguments"]["b"]
        return {"result": {"content": [{"type": "text", "text": str(total)}, {"type": "image", "data": ""}]}}


@pytest.fixture(params=[False, True], ids=["json", "events"])
def tools(request: pytest.FixtureRequest) -> Iterator[Tools]:
    made = Tools(events=request.param)
    yield made
    made.http.shutdown()
    made.http.server_close()


def test_a_tool_server(tools: Tools) -> None:
    box = Toolbox([ToolServer(tools.url, "me", "1")])
    assert box.described() == [
        {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": ADD["inputSchema"]}},
        {"type": "function", "function": {"name": "fail", "description": "", "parameters": {"type": "object"}}},
    ]
    assert box.call("add", '{"a": 2, "b": 3}') == "5\n(image)"
    assert box.call("fail", "") == "Error: no luck"
    assert box.call("add", "{}") == f"Error: {plain_url(tools.url)}: tools/call: a and b are needed"
    assert box.call("add", "[1]") == "Error: the arguments are no JSON object"
    assert box.call("add", "[" * 100_000) == "Error: the arguments are no JSON object"
    assert box.call("other", "{}") == "Error: there is no tool other"
    assert [(each["path"], each["session"], each["method"]) for each in tools.requests[:4]] == [
        ("/tools?key=1", None, "initialize"), ("/tools?key=1", "session-1", "notifications/initialized"),
        ("/tools?key=1", "session-1", "tools/list"), ("/tools?key=1", "session-1", "tools/list")]  # fmt: skip


def test_tools_of_one_name(tools: Tools) -> None:
    box = Toolbox([ToolServer(tools.url, "me", "1"), ToolServer(tools.url, "me", "1")])
    assert list(box.tools) == ["1_add", "1_fail", "2_add", "2_fail"]
    assert box.call("2_add", '{"a": 1, "b": 1}') == "2\n(image)"


@pytest.mark.parametrize("broken", [b"", b"x", b"[]", b'{"result": 5}', b'{"error": {"message": "go away"}}'], ids=str)
def test_what_is_no_tool_server(tools: Tools, broken: bytes) -> None:
    tools.broken = broken
    with pytest.raises(ServerSaid) as caught:
        ToolServer(tools.url, "me", "1")
    assert caught.value.message in (f"{plain_url(tools.url)}: does not answer as a tool server does",
                                    f"{plain_url(tools.url)}: initialize: go away")  # fmt: skip


def wants(name: str, arguments: str) -> list[object]:
    """The events of an answer that calls a tool, its arguments in two pieces."""
    first = {"index": 0, "id": "c1", "function": {"name": name, "arguments": arguments[:3]}}
    second = {"index": 0, "function": {"arguments": arguments[3:]}}
    return [{"choices": [{"delta": {"tool_calls": [first]}}]}, {"choices": [{"delta": {"tool_calls": [second]}}]},
            {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}]  # fmt: skip


def calling(body: dict[str, Any]) -> list[object]:
    last = body["messages"][-1]
    return said(f"It is {last['content']}.") if last["role"] == "tool" else wants("add", '{"a": 2, "b": 3}')


@pytest.mark.parametrize(("reply", "text"), [("y", "5\n(image)"), ("n", "Error: the user did not allow this call")])
def test_each_call_is_asked_for(reply: str, text: str, tools: Tools, server: Server, home: dict[str, str]) -> None:  # noqa: F811
    server.answer = calling
    with start(server, home, "--mcp", tools.url, "-i", width=120) as at:
        at.see("/help")
        at.see(">")
        at.type("add them\r")
        at.see("The model wants to call add at")
        at.see("Allow it? [y/N]")
        at.type(f"{reply}\r")
        at.see(f"It is {text.splitlines()[0]}")
        at.see(">", 2)
        at.type("/bye\r")
        assert at.wait() == 0
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}
    assert server.bodies[-1]["messages"] == [
        {"role": "user", "content": "add them"}, {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]  # fmt: skip
    assert server.bodies[-1]["tools"][0]["function"]["name"] == "add"


def test_where_nobody_can_be_asked(tools: Tools, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from ramalama_like.cli import chat

    server.answer = calling
    monkeypatch.setattr(chat, "TERMINAL", "/nonexistent/tty")
    shown = run_cli("chat", "--url", server.url, "--mcp", tools.url, "add them")
    assert (shown.code, shown.out) == (0, "It is Error: the user did not allow this call.\n")
    assert "It was not allowed: there is no terminal to ask at." in shown.err


def test_a_model_that_never_stops_calling(tools: Tools, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from ramalama_like.cli import chat

    server.answer = lambda _: wants("none", "{}")
    monkeypatch.setattr(chat, "TERMINAL", "/nonexistent/tty")
    shown = run_cli("chat", "--url", server.url, "--mcp", tools.url, "go")
    assert (shown.code, shown.out) == (22, "")
    assert shown.err.splitlines()[0] == "Error: the model called tools 16 times without an answer"
