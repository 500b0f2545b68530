"""What the API gives back."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ramalama_like.chat.answers import ToolCall


@value
class Usage:
    """Tokens, as the server counted them; None where it did not tell."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    @property
    def total_tokens(self) -> int | None:
        """Both together."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


@value
class Answer:
    """A whole answer. ``str(answer)`` is its text."""

    text: str
    reasoning: str = ""  # what a reasoning model thought before it
    calls: tuple[ToolCall, ...] = ()  # tools that the model wants to be called
    reason: str = ""  # why it ended: stop, length, tool_calls
    usage: Usage = Usage()
    timings: Mapping[str, Any] = {}  # llama-server's own: milliseconds, tokens per second, tokens from the cache
    logprobs: tuple[Mapping[str, Any], ...] = ()  # of each token: token, logprob, top_logprobs (OpenAI's form)
    model: str = ""  # as the server calls it

    def __str__(self) -> str:
        return self.text

    @property
    def message(self) -> dict[str, Any]:
        """The answer as a message of a conversation, to be put behind the question for the next one."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = [{"id": call.id, "type": "function",
                                      "function": {"name": call.name, "arguments": call.arguments}}
                                     for call in self.calls]  # fmt: skip
        return message

    def json(self) -> Any:
        """The text read as JSON. Raises ValueProblem where it is none, as when ``max_tokens`` cut it off."""
        import json

        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            hint = "allow more with max_tokens=" if self.reason == "length" else "demand it with json_schema="
            raise ValueProblem("the answer is not JSON", hint) from None


@value
class Ranked:
    """A document with its relevance to a query."""

    index: int  # its place among the documents that were given
    score: float  # higher is more relevant; the scale is the model's own
    text: str
