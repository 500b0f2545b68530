"""Answers of OpenAI-style servers, piece by piece as they come: text, reasoning, calls of tools, and how it ended.

``reasoning_content`` is what llama-server, vLLM and DeepSeek call the thinking before an answer; ``timings`` and
``prompt_progress`` are llama-server's own additions.
"""

from __future__ import annotations

from ramalama_like.chat.client import Exchange, ServerGone, ServerSaid, kind_of, message_of
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ramalama_like.chat.client import Address

LONGEST_LINE = 16 << 20  # bytes of one event
FOREIGN = "is this an OpenAI-style server?"


@value
class ToolCall:
    """A function that the model wants to be called."""

    id: str
    name: str
    arguments: str  # JSON as the model wrote it, which may be none


@value
class Ending:
    """How an answer ended, as far as the server tells."""

    reason: str = ""  # stop, length, tool_calls
    calls: tuple[ToolCall, ...] = ()
    prompt_tokens: int | None = None
    tokens: int | None = None  # of the answer
    timings: Mapping[str, Any] = {}
    model: str = ""  # as the server calls it


@value
class Piece:
    """What one event adds. The last one has the ending."""

    text: str = ""
    reasoning: str = ""
    progress: tuple[int, int] | None = None  # tokens of the prompt that are read, and all of them
    ending: Ending | None = None
    logprobs: tuple[Mapping[str, Any], ...] = ()  # of the tokens of the text, where they were asked for


def stream_answer(address: Address, body: Mapping[str, Any], api_key: str = "", *, path: str = "/chat/completions",
                  opened: Callable[[Exchange], None] | None = None) -> Iterator[Piece]:  # fmt: skip
    """Ask and give the answer piece by piece; the last piece has the ending. Raises ServerGone or ServerSaid.

    ``body`` is that of OpenAI's chat completions, or of the completions at another ``path``; streaming is added here.
    ``opened`` is told the exchange, by which it can be cancelled.
    """
    import json

    text = json.dumps({**body, "stream": True, "stream_options": {"include_usage": True}})
    state = _State()
    with Exchange(address, "POST", f"{address.base}{path}", text, api_key, opened=opened) as response:
        for event in _events(response, address):
            if event == "[DONE]":
                state.finished = True
                break
            try:
                data = json.loads(event)
                if isinstance(data, dict) and "error" in data:
                    raise ServerSaid(f"the server stopped the answer: {message_of(data, '')}", kind=kind_of(data))
                piece = state.take(data)
            except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
                raise ServerSaid(f"{address.text}: an event of the answer is not of OpenAI's form", FOREIGN) from None
            if piece:
                yield piece
    if not state.finished:
        raise ServerGone(f"{address.text}: the connection was lost in the middle of the answer",
                         "see the server's log")  # fmt: skip
    yield Piece(ending=state.ending())


def ask_answer(address: Address, body: Mapping[str, Any], api_key: str = "") -> tuple[str, Ending]:
    """Ask and wait for the whole answer: its text and its ending. Raises ServerGone or ServerSaid."""
    pieces, ending = [], Ending()
    for piece in stream_answer(address, body, api_key):
        pieces.append(piece.text)
        ending = piece.ending or ending
    return "".join(pieces), ending


class _State:
    """What the events of one answer add up to. ``take`` raises TypeError for an event of another form."""

    def __init__(self) -> None:
        self.finished = False
        self.reason = ""
        self.calls: dict[int, list[str]] = {}
        self.usage: dict[str, Any] = {}
        self.timings: dict[str, Any] = {}
        self.model = ""

    def take(self, data: object) -> Piece | None:
        if not isinstance(data, dict):
            raise TypeError(data)
        for kept, name in ((self.usage, "usage"), (self.timings, "timings")):
            if isinstance(data.get(name), dict):
                kept.update(data[name])
        choices = data.get("choices")
        if not isinstance(choices, list | None):
            raise TypeError(choices)
        self.model = self.model or _text(data.get("model"))
        text = reasoning = ""
        logprobs: tuple[Mapping[str, Any], ...] = ()
        for choice in choices or ():
            delta = choice.get("delta") or {}
            text += _text(delta.get("content")) + _text(choice.get("text"))  # the latter is that of completions
            logprobs += tuple((choice.get("logprobs") or {}).get("content") or ())
            reasoning += _text(delta.get("reasoning_content") or delta.get("reasoning"))
            for call in delta.get("tool_calls") or ():
                self._take_call(call)
            if choice.get("finish_reason"):
                self.reason, self.finished = str(choice["finish_reason"]), True
        progress = _progress(data.get("prompt_progress"))
        something = text or reasoning or progress or logprobs
        return Piece(text, reasoning, progress, logprobs=logprobs) if something else None

    def _take_call(self, call: dict[str, Any]) -> None:
        parts = self.calls.setdefault(int(call.get("index") or 0), ["", "", ""])
        function = call.get("function") or {}
        parts[0] = _text(call.get("id")) or parts[0]
        parts[1] += _text(function.get("name"))
        parts[2] += _text(function.get("arguments"))

    def ending(self) -> Ending:
        calls = tuple(ToolCall(*self.calls[number]) for number in sorted(self.calls))
        return Ending(self.reason, calls, _count(self.usage.get("prompt_tokens")),
                      _count(self.usage.get("completion_tokens")), self.timings, self.model)  # fmt: skip


def _text(found: object) -> str:
    if not isinstance(found, str | None):
        raise TypeError(found)
    return found or ""


def _count(found: object) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _progress(found: object) -> tuple[int, int] | None:
    if not isinstance(found, dict):
        return None
    done, whole = _count(found.get("processed")), _count(found.get("total"))
    return (done, whole) if done is not None and whole else None


def _events(response: Any, address: Address) -> Iterator[str]:
    """The data of each server-sent event."""
    while raw := response.readline(LONGEST_LINE + 1):
        if len(raw) > LONGEST_LINE:
            raise ServerSaid(f"{address.text}: a line of the answer has no end", FOREIGN)
        line = raw.decode(errors="replace").rstrip("\r\n")
        if line.startswith("data:"):
            yield line[5:].strip()
        elif line.startswith("error:"):
            raise ServerSaid(f"{address.text}: {message_of(line[6:], '')}", kind=kind_of(line[6:]))
