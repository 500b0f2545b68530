"""The requests of the API to a server, and its errors as this program's own."""

from __future__ import annotations

import json

from ramalama_like.chat.answers import stream_answer
from ramalama_like.chat.client import Exchange, ServerGone, ServerSaid
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ramalama_like.chat.answers import Piece
    from ramalama_like.chat.client import Address

FOREIGN = "is this a llama-server?"
OTHER_WORDS = {  # hints of the command line -> the same for those who write Python
    "give the server's key in RAMALAMA_API_KEY": "give the server's key with Model.attach(url, api_key=…)",
    "does the address end in /v1?": "does the address end in /v1, and has the server this endpoint?",
}
GONE = "what the server said before is in the log ramalama_like.server (level DEBUG)"


@value
class Connection:
    """Where a server is, and how it is asked."""

    address: Address
    api_key: str
    model: str  # name to ask for; empty: the server has one
    check_alive: Callable[[], None]  # raises the reason where the server is ours and has died

    def call(self, method: str, path: str, body: object = None, *, native: bool = False) -> Any:
        """One request with an answer in JSON. ``native`` paths are llama-server's own, beside ``/v1``.

        Raises ServerGone, ServerSaid, ChildFailed.
        """
        base = self.address.base.removesuffix("/v1") if native else self.address.base
        text = None if body is None else json.dumps(body)
        try:
            with Exchange(self.address, method, f"{base}{path}", text, self.api_key) as response:
                answer = response.read()
        except (ServerGone, ServerSaid) as error:
            raise self.explained(error) from None
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise self.foreign(path) from None

    def stream(self, path: str, body: Mapping[str, Any], opened: Callable[[Exchange], None]) -> Iterator[Piece]:
        """An answer piece by piece. Raises as ``call`` does."""
        try:
            yield from stream_answer(self.address, body, self.api_key, path=path, opened=opened)
        except (ServerGone, ServerSaid) as error:
            raise self.explained(error) from None

    def explained(self, error: ServerGone | ServerSaid) -> ServerGone | ServerSaid:
        """The error for those who write Python. Raises ChildFailed where the reason is that the server has died."""
        if isinstance(error, ServerSaid):
            return ServerSaid(error.message, OTHER_WORDS.get(error.hint, error.hint), error.kind)
        self.check_alive()
        return ServerGone(error.message, GONE)

    def foreign(self, path: str) -> ServerSaid:
        """The error for an answer of another form than is known."""
        return ServerSaid(f"{self.address.text}{path}: the answer is of an unknown form", FOREIGN)
