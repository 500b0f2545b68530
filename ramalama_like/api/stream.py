"""An answer while it comes."""

from __future__ import annotations

from ramalama_like.api.values import Answer, Usage
from ramalama_like.chat.answers import Ending
from ramalama_like.errors import AppError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Any

    from ramalama_like.api.connection import Connection
    from ramalama_like.chat.answers import Piece
    from ramalama_like.chat.client import Exchange


class Stream:
    """Iterate for the pieces of an answer; ``answer`` is all of it.

    The question is sent with the first piece that is asked for, and errors come from there. ``close`` (or leaving a
    ``with`` block, or the end of the last reference) stops the server's work on it.
    """

    def __init__(self, connection: Connection, path: str, body: Mapping[str, Any]) -> None:
        self._exchange: Exchange | None = None
        self._closed = False
        self._taken: list[Piece] = []
        self._ending: Ending | None = None
        self._pieces: Iterator[Piece] = connection.stream(path, body, self._opened)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Piece:
        if self._closed:
            raise StopIteration
        try:
            piece = next(self._pieces)
        except AppError:
            if self._closed:  # the connection was ended by ourselves
                raise StopIteration from None
            raise
        self._taken.append(piece)
        self._ending = piece.ending or self._ending
        return piece

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop the answer; from any thread. Harmless when it has ended."""
        self._closed = True
        if self._exchange is not None:
            self._exchange.cancel()

    @property
    def answer(self) -> Answer:
        """The whole answer: what has not been read yet is waited for. Of a stream that was closed, what came."""
        for _ in self:
            pass
        ending = self._ending or Ending()
        return Answer(
            "".join(piece.text for piece in self._taken), "".join(piece.reasoning for piece in self._taken),
            ending.calls, ending.reason, Usage(ending.prompt_tokens, ending.tokens), ending.timings,
            tuple(entry for piece in self._taken for entry in piece.logprobs), ending.model,
        )  # fmt: skip

    def _opened(self, exchange: Exchange) -> None:
        self._exchange = exchange
        if self._closed:
            exchange.cancel()
