"""A conversation with one server: its history, its settings, and each answer as it comes.

It prints through the display that it is given, and knows no terminal; ``commands.py`` is what people can say to it.
"""

from __future__ import annotations

from ramalama_like.chat.answers import Ending, Piece, stream_answer
from ramalama_like.chat.attachments import Attachment, with_attachments
from ramalama_like.chat.client import ServerSaid
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from ramalama_like.chat.answers import ToolCall
    from ramalama_like.chat.client import Address
    from ramalama_like.chat.mcp import Toolbox

    class Display(Protocol):
        """What an answer is shown on."""

        def take(self, piece: Piece) -> None:
            """Show the next piece."""

        def end(self) -> None:
            """The answer is over, whole or not."""


LOOPBACK = ("127.0.0.1", "localhost", "::1")
FEWEST_SUMMARIZED = 10  # messages; a shorter history is nothing to shorten (the dialect's number)
MOST_ROUNDS = 16  # of calls of tools for one question
KEPT_AT_END = 2  # messages that a summary leaves as they are
SUMMARIZE = "Summarize this conversation in at most 200 words. Keep names, numbers, decisions and open questions."
SUMMARY = "Summary of the conversation so far: "


@value
class Answer:
    """An answer as it was: text, thinking, and how it ended."""

    text: str
    reasoning: str
    ending: Ending
    seconds: float  # from the question to the end
    first_s: float | None  # from the question to the first piece


class Session:
    """The history of one conversation with one server."""

    def __init__(self, address: Address, *, api_key: str = "", model: str = "",
                 parameters: Mapping[str, Any] | None = None, summarize_after: int = 0) -> None:  # fmt: skip
        self.address = address
        self.api_key = api_key
        self.model = model
        self.parameters: dict[str, Any] = dict(parameters or {})
        self.summarize_after = summarize_after
        self.system = ""
        self.messages: list[dict[str, Any]] = []
        self.waiting: tuple[Attachment, ...] = ()  # go with the next question
        self.last: Answer | None = None
        self.toolbox: Toolbox | None = None
        self.allow: Callable[[str, str, str], bool] = lambda name, where, arguments: False  # each call is asked for
        self._since_summary = 0

    def ask(self, prompt: str, display: Display) -> Answer:
        """Put a question and show the answer as it comes. One that was stopped or failed is forgotten, and so is its
        question. Raises ServerGone or ServerSaid."""
        before = len(self.messages)
        self.messages.append({"role": "user", "content": with_attachments(prompt, self.waiting)})
        try:
            answer = self._answer(display)
        except BaseException:
            del self.messages[before:]
            raise
        self.waiting = ()
        self._since_summary += 1
        return answer

    def again(self, display: Display) -> Answer | None:
        """The last question once more, its answer forgotten; None where there was none."""
        questions = [place for place, each in enumerate(self.messages) if each["role"] == "user"]
        if not questions:
            return None
        before = self.messages
        self.messages = before[: questions[-1] + 1]
        try:
            return self._answer(display)
        except BaseException:
            self.messages = before
            raise

    def _answer(self, display: Display) -> Answer:
        """Stream answers until one is no wish for a tool; the history grows by all of it."""
        for _ in range(MOST_ROUNDS):
            answer = self._stream(self.body(), display)
            calls = answer.ending.calls if self.toolbox else ()
            message: dict[str, Any] = {"role": "assistant", "content": answer.text}
            if calls:
                message["tool_calls"] = [{"id": call.id, "type": "function",
                                          "function": {"name": call.name, "arguments": call.arguments}}
                                         for call in calls]  # fmt: skip
            self.messages.append(message)
            if not calls:
                self.last = answer
                return answer
            self.messages += [self._tool_result(call, self.toolbox) for call in calls if self.toolbox]
        raise ServerSaid(f"the model called tools {MOST_ROUNDS} times without an answer", "ask for less at once")

    def _tool_result(self, call: ToolCall, toolbox: Toolbox) -> dict[str, Any]:
        if call.name in toolbox.tools and not self.allow(call.name, toolbox.where(call.name), call.arguments):
            text = "Error: the user did not allow this call"
        else:
            text = toolbox.call(call.name, call.arguments)
        return {"role": "tool", "tool_call_id": call.id, "content": text}

    def clear(self) -> None:
        """Forget the conversation; settings stay."""
        self.messages.clear()
        self.waiting = ()
        self._since_summary = 0

    def forget_oldest(self) -> int:
        """Forget the older half of the exchanges; how many messages that were."""
        count = max(2, len(self.messages) // 4 * 2) if len(self.messages) >= 2 else 0
        del self.messages[:count]
        return count

    def body(self) -> dict[str, Any]:
        """What is sent with the next question."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        body: dict[str, Any] = {"messages": [*system, *self.messages], **self.parameters}
        if self.model:
            body["model"] = self.model
        if self.toolbox and self.toolbox.tools:
            body["tools"] = self.toolbox.described()
        if self.address.scheme == "unix" or self.address.host in LOOPBACK:
            body["return_progress"] = True  # llama-server's own; servers elsewhere may refuse what they do not know
        return body

    def needs_summary(self) -> bool:
        """Whether the history has become long enough for a summary."""
        return 0 < self.summarize_after <= 2 * self._since_summary and len(self.messages) >= FEWEST_SUMMARIZED

    def summarize(self) -> None:
        """Replace the middle of the history by a summary of it, made by the model. Raises ServerGone or ServerSaid."""
        from ramalama_like.chat.answers import ask_answer

        first, middle, rest = self.messages[:1], self.messages[1:-KEPT_AT_END], self.messages[-KEPT_AT_END:]
        self._since_summary = 0
        body = {**self.body(), "messages": [*first, *middle, {"role": "user", "content": SUMMARIZE}]}
        text, _ = ask_answer(self.address, body, self.api_key)
        if text.strip():
            # As an exchange: many chat templates take a system message nowhere but at the beginning.
            self.messages = [*first, {"role": "assistant", "content": f"{SUMMARY}{text.strip()}"}, *rest]

    def _stream(self, body: Mapping[str, Any], display: Display) -> Answer:
        from time import monotonic

        began, first = monotonic(), None
        texts: list[str] = []
        thoughts: list[str] = []
        ending = Ending()
        try:
            for piece in stream_answer(self.address, body, self.api_key):
                if first is None and (piece.text or piece.reasoning):
                    first = monotonic() - began
                texts.append(piece.text)
                thoughts.append(piece.reasoning)
                ending = piece.ending or ending
                display.take(piece)
        finally:
            display.end()
        text = "".join(texts)
        if not text and not (ending.calls and self.toolbox):
            raise ServerSaid("the server gave an empty answer", _why_empty(ending, thoughts))
        return Answer(text, "".join(thoughts), ending, monotonic() - began, first)


def _why_empty(ending: Ending, thoughts: Sequence[str]) -> str:
    if ending.reason == "length" and any(thoughts):
        return "it was still thinking when --max-tokens was reached: allow more"
    return "ask again, or in other words"
