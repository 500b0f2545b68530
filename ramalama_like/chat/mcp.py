"""A client for tool servers: MCP over streamable HTTP (Model Context Protocol, revision 2025-03-26).

JSON-RPC 2.0 by POST; a server answers with JSON or with server-sent events, and may give a session's id in a header
that every later request repeats. Only tools are used: no resources, prompts or sampling.
"""

from __future__ import annotations

from ramalama_like.chat.client import Address, Exchange, ServerSaid, parse_address
from ramalama_like.reference import plain_url
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from http.client import HTTPResponse
    from typing import Any

PROTOCOL = "2025-03-26"
MOST_PAGES = 20
MOST_BYTES = 16 << 20  # of an answer
SESSION = "Mcp-Session-Id"


@value
class Tool:
    """A function that a tool server offers."""

    name: str  # as the model is told; several servers' tools of one name get the server's number
    description: str
    schema: Mapping[str, Any]  # JSON schema of its arguments
    server: int  # number of the server that has it
    own_name: str  # as its server calls it


class ToolServer:
    """One tool server. Making it starts a session. Raises ServerGone or ServerSaid, as every call does."""

    def __init__(self, url: str, program: str, version: str) -> None:
        from urllib.parse import urlsplit

        self.url = plain_url(url)  # as it is shown
        parts = urlsplit(url if "://" in url else f"http://{url}")
        address = parse_address(url)
        path = (parts.path or "/mcp") + (f"?{parts.query}" if parts.query else "")
        self._address = Address(address.scheme, address.host, address.port, path)
        self._session = ""
        self._number = 0
        self._ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {},
                                 "clientInfo": {"name": program, "version": version}})  # fmt: skip
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"}, wants_answer=False)

    def list_tools(self, number: int) -> list[Tool]:
        """The tools of the server; ``number`` is how the server is told from others."""
        found: list[Tool] = []
        cursor: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            result = self._ask("tools/list", cursor)
            tools = result.get("tools")
            if not isinstance(tools, list):
                raise self._odd()
            for each in tools:
                if not isinstance(each, dict) or not isinstance(each.get("name"), str):
                    raise self._odd()
                schema = each.get("inputSchema")
                found.append(Tool(each["name"], str(each.get("description") or ""),
                                  schema if isinstance(schema, dict) else {"type": "object"}, number, each["name"])
                             )  # fmt: skip
            if not isinstance(result.get("nextCursor"), str):
                break
            cursor = {"cursor": result["nextCursor"]}
        return found

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool gives, as text; what is no text is named."""
        result = self._ask("tools/call", {"name": name, "arguments": dict(arguments)})
        content = result.get("content")
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        text = "\n".join(str(part.get("text", f"({part.get('type', 'something')})")) for part in parts)
        return f"Error: {text}" if result.get("isError") else text

    def _ask(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": dict(parameters)}
        answer = self._send(request)
        if isinstance(answer.get("error"), dict):
            raise ServerSaid(f"{self.url}: {method}: {answer['error'].get('message') or answer['error']}"[:300])
        result = answer.get("result")
        if not isinstance(result, dict):
            raise self._odd()
        return result

    def _send(self, message: Mapping[str, Any], *, wants_answer: bool = True) -> dict[str, Any]:
        import json

        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": PROTOCOL}
        if self._session:
            headers[SESSION] = self._session
        with Exchange(self._address, "POST", self._address.base, json.dumps(message), "", headers=headers,
                      fine=(200, 202, 204)) as response:  # fmt: skip
            self._session = response.headers.get(SESSION) or self._session
            if not wants_answer:
                return {}
            return self._answer_in(response, message["id"])

    def _answer_in(self, response: HTTPResponse, number: int) -> dict[str, Any]:
        """The message that answers ours, in either form; others, such as notices of progress, are passed over."""
        import json

        try:
            if "text/event-stream" not in (response.headers.get("Content-Type") or ""):
                answer = json.loads(response.read(MOST_BYTES))
                if isinstance(answer, dict):
                    return answer
                raise self._odd()
            data: list[str] = []
            for raw in response:
                line = raw.decode(errors="replace").rstrip("\r\n")
                if line.startswith("data:"):
                    data.append(line[5:].strip())
                elif not line and data:
                    message = json.loads("\n".join(data))
                    data = []
                    if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                        return message
        except (ValueError, RecursionError):
            raise self._odd() from None
        raise self._odd()

    def _odd(self) -> ServerSaid:
        return ServerSaid(f"{self.url}: does not answer as a tool server does", "give the address of an MCP server")


class Toolbox:
    """The tools of several servers, under names of their own."""

    def __init__(self, servers: Sequence[ToolServer]) -> None:
        self._servers = list(servers)
        listed = [tool for number, server in enumerate(servers) for tool in server.list_tools(number)]
        names = [tool.own_name for tool in listed]
        self.tools: dict[str, Tool] = {}
        for tool in listed:
            name = f"{tool.server + 1}_{tool.own_name}" if names.count(tool.own_name) > 1 else tool.own_name
            self.tools[name] = Tool(name, tool.description, tool.schema, tool.server, tool.own_name)

    def described(self) -> list[dict[str, Any]]:
        """The tools as the chat API takes them."""
        return [{"type": "function", "function": {"name": tool.name, "description": tool.description,
                                                  "parameters": dict(tool.schema)}}
                for tool in self.tools.values()]  # fmt: skip

    def where(self, name: str) -> str:
        """The address of the server that has a tool."""
        return self._servers[self.tools[name].server].url

    def call(self, name: str, arguments: str) -> str:
        """Call a tool with arguments as the model wrote them; what goes wrong is told to the model as text."""
        import json

        tool = self.tools.get(name)
        if tool is None:
            return f"Error: there is no tool {name}"
        try:
            parsed = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, dict):
            return "Error: the arguments are no JSON object"
        try:
            return self._servers[tool.server].call(tool.own_name, parsed)
        except ServerSaid as error:
            return f"Error: {error.message}"
