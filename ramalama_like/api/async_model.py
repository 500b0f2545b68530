"""``AsyncModel``: the same names as ``Model`` for asyncio. Each piece of work has a thread of its own, so that any
number of answers come at once; the event loop never waits for a server."""

from __future__ import annotations

import asyncio
from threading import Thread

from ramalama_like.api.model import Model
from ramalama_like.errors import AppError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Literal, Self, TypeVar, Unpack, overload

    from ramalama_like.api.bodies import Image, Messages, Sampling
    from ramalama_like.api.start_options import StartOptions
    from ramalama_like.api.stream import Stream
    from ramalama_like.api.values import Answer, Ranked
    from ramalama_like.chat.answers import Piece
    from ramalama_like.plan import Plan

    T = TypeVar("T")


async def in_thread(work: Callable[[], T], cancel: Callable[[], None] = lambda: None) -> T:
    """Do work in a thread of its own. ``cancel`` is called where the task that waits for it is cancelled."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            result = work()
        except AppError as error:  # whatever else is a fault of this program, and told by threading's hook
            _tell(loop, settle, None, error)
        except BaseException as fault:
            _tell(loop, settle, None, fault)
            raise
        else:
            _tell(loop, settle, result, None)

    Thread(target=run, daemon=True, name="a request to a model").start()
    try:
        return await done
    except asyncio.CancelledError:
        cancel()
        raise


class AsyncStream:
    """``async for`` gives the pieces of an answer; ``await stream.answer()`` all of it. See ``Stream``."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._pieces: asyncio.Queue[Piece | BaseException | None] = asyncio.Queue()
        self._started = self._ended = False

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Piece:
        if self._ended:
            raise StopAsyncIteration
        if not self._started:
            self._started = True
            Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True, name="an answer").start()
        try:
            piece = await self._pieces.get()
        except asyncio.CancelledError:
            await self.close()
            raise
        if piece is None or isinstance(piece, BaseException):
            self._ended = True
            raise piece or StopAsyncIteration
        return piece

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        _: TracebackType | None) -> None:  # fmt: skip
        await self.close()

    async def close(self) -> None:
        """Stop the answer. Harmless when it has ended."""
        self._stream.close()

    async def answer(self) -> Answer:
        """The whole answer: what has not been read yet is waited for."""
        async for _ in self:
            pass
        return self._stream.answer

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        end: BaseException | None = None
        try:
            for piece in self._stream:
                if not _tell(loop, self._pieces.put_nowait, piece):
                    self._stream.close()
        except AppError as error:
            end = error
        finally:
            _tell(loop, self._pieces.put_nowait, end)


class AsyncModel:
    """``Model`` for asyncio: the same names and arguments, awaited. ``async with`` starts and ends the server."""

    def __init__(self, model: str, **options: Unpack[StartOptions]) -> None:
        """Decide how ``model`` is run, which takes milliseconds and starts nothing. Raises AppError."""
        self._model = Model(model, **options)

    @classmethod
    def attach(cls, url: str, *, api_key: str = "", model: str = "") -> Self:
        """Use a server that runs already. See ``Model.attach``."""
        self = cls.__new__(cls)
        self._model = Model.attach(url, api_key=api_key, model=model)
        return self

    async def start(self) -> Self:
        """Start the server and wait until it answers. See ``Model.start``."""
        await in_thread(self._model.start, self._model.close)
        return self

    async def close(self) -> None:
        """End the server. See ``Model.close``."""
        await in_thread(self._model.close)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        _: TracebackType | None) -> None:  # fmt: skip
        await self.close()

    @property
    def plan(self) -> Plan:
        """Everything that was decided. See ``Model.plan``."""
        return self._model.plan

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands that are executed. See ``Model.commands``."""
        return self._model.commands

    def explain(self) -> str:
        """Every decision with its reason. See ``Model.explain``."""
        return self._model.explain()

    @property
    def base_url(self) -> str:
        """The address for other clients. See ``Model.base_url``."""
        return self._model.base_url

    if TYPE_CHECKING:

        @overload
        async def chat(self, messages: Messages, *, stream: Literal[False] = False, images: Sequence[Image] = (),
                       tools: Sequence[Mapping[str, Any]] | None = None,
                       tool_choice: str | Mapping[str, Any] | None = None,
                       template_arguments: Mapping[str, Any] | None = None,
                       **sampling: Unpack[Sampling]) -> Answer: ...  # fmt: skip
        @overload
        async def chat(self, messages: Messages, *, stream: Literal[True], images: Sequence[Image] = (),
                       tools: Sequence[Mapping[str, Any]] | None = None,
                       tool_choice: str | Mapping[str, Any] | None = None,
                       template_arguments: Mapping[str, Any] | None = None,
                       **sampling: Unpack[Sampling]) -> AsyncStream: ...  # fmt: skip

    async def chat(self, messages: Messages, *, stream: bool = False, images: Sequence[Image] = (),
                   tools: Sequence[Mapping[str, Any]] | None = None,
                   tool_choice: str | Mapping[str, Any] | None = None,
                   template_arguments: Mapping[str, Any] | None = None,
                   **sampling: Unpack[Sampling]) -> Answer | AsyncStream:  # fmt: skip
        """Answer a question or go on with a conversation. See ``Model.chat``."""
        answer = self._model.chat(messages, stream=True, images=images, tools=tools, tool_choice=tool_choice,
                                  template_arguments=template_arguments, **sampling)  # fmt: skip
        return AsyncStream(answer) if stream else await in_thread(lambda: answer.answer, answer.close)

    if TYPE_CHECKING:

        @overload
        async def complete(self, prompt: str | Sequence[int], *, stream: Literal[False] = False,
                           **sampling: Unpack[Sampling]) -> Answer: ...  # fmt: skip
        @overload
        async def complete(self, prompt: str | Sequence[int], *, stream: Literal[True],
                           **sampling: Unpack[Sampling]) -> AsyncStream: ...  # fmt: skip

    async def complete(self, prompt: str | Sequence[int], *, stream: bool = False, **sampling: Unpack[Sampling]
                       ) -> Answer | AsyncStream:  # fmt: skip
        """Go on with a text, or with tokens. See ``Model.complete``."""
        answer = self._model.complete(prompt, stream=True, **sampling)
        return AsyncStream(answer) if stream else await in_thread(lambda: answer.answer, answer.close)

    if TYPE_CHECKING:

        @overload
        async def embed(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
            self, texts: str, *, normalize: bool = True
        ) -> list[float]: ...
        @overload
        async def embed(self, texts: Sequence[str], *, normalize: bool = True) -> list[list[float]]: ...

    async def embed(self, texts: str | Sequence[str], *, normalize: bool = True) -> list[float] | list[list[float]]:
        """The vectors of texts. See ``Model.embed``."""
        return await in_thread(lambda: self._model.embed(texts, normalize=normalize))

    async def rerank(self, query: str, documents: Sequence[str], *, top_n: int | None = None) -> list[Ranked]:
        """Documents by relevance. See ``Model.rerank``."""
        return await in_thread(lambda: self._model.rerank(query, documents, top_n=top_n))

    async def tokenize(self, text: str, *, special: bool = False, parse_special: bool = True) -> list[int]:
        """The tokens of a text. See ``Model.tokenize``."""
        return await in_thread(lambda: self._model.tokenize(text, special=special, parse_special=parse_special))

    async def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of tokens. See ``Model.detokenize``."""
        return await in_thread(lambda: self._model.detokenize(tokens))

    async def apply_template(self, messages: Messages) -> str:
        """The text of a conversation. See ``Model.apply_template``."""
        return await in_thread(lambda: self._model.apply_template(messages))

    async def adapters(self) -> list[dict[str, Any]]:
        """The adapters that were loaded. See ``Model.adapters``."""
        return await in_thread(self._model.adapters)

    async def set_adapters(self, scales: Mapping[int, float]) -> None:
        """Set the scale of adapters. See ``Model.set_adapters``."""
        await in_thread(lambda: self._model.set_adapters(scales))

    async def save_state(self, name: str, *, slot: int = 0) -> int:
        """Keep what a slot holds. See ``Model.save_state``."""
        return await in_thread(lambda: self._model.save_state(name, slot=slot))

    async def restore_state(self, name: str, *, slot: int = 0) -> int:
        """Bring it back. See ``Model.restore_state``."""
        return await in_thread(lambda: self._model.restore_state(name, slot=slot))

    async def erase_state(self, *, slot: int = 0) -> int:
        """Forget what a slot holds. See ``Model.erase_state``."""
        return await in_thread(lambda: self._model.erase_state(slot=slot))

    async def properties(self) -> dict[str, Any]:
        """What llama-server tells of itself. See ``Model.properties``."""
        return await in_thread(self._model.properties)

    async def models(self) -> list[str]:
        """The names of the server's models. See ``Model.models``."""
        return await in_thread(self._model.models)


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[..., object], *arguments: object) -> bool:
    try:
        loop.call_soon_threadsafe(what, *arguments)
    except RuntimeError:  # the loop has been closed: nobody waits any more
        return False
    return True
