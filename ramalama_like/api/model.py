"""``Model``: a server that was started for this program, or one that runs already, and what can be asked of it."""

from __future__ import annotations

from ramalama_like.api.bodies import adapter_list, as_messages, chat_body, completion_body
from ramalama_like.api.connection import Connection
from ramalama_like.api.keeper import Keeper, decide
from ramalama_like.api.start_options import make_request
from ramalama_like.api.stream import Stream
from ramalama_like.api.values import Ranked
from ramalama_like.chat.client import parse_address, wait_healthy
from ramalama_like.errors import ValueProblem
from ramalama_like.render.argv import render_steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Any, Literal, Self, Unpack, overload

    from ramalama_like.api.bodies import Image, Messages, Sampling
    from ramalama_like.api.start_options import StartOptions
    from ramalama_like.api.values import Answer
    from ramalama_like.pipeline import Decided
    from ramalama_like.plan import Plan

NOT_STARTED = "use it in a with block, or call start()"


class Model:
    """A model, over any engine and over none.

    Making one decides everything (``plan``, ``explain()``, ``commands``) and starts nothing; the ``with`` block, or
    ``start``, does. Errors are those of the command line: ``ramalama_like.errors.AppError`` with ``message``,
    ``hint`` and ``exit_code``. Every method may be called from several threads at once.
    """

    def __init__(self, model: str, **options: Unpack[StartOptions]) -> None:
        """Decide how ``model`` (a path, a name, ``demo``) is run. Raises AppError."""
        request = make_request(model, options)
        self._decided: Decided | None = decide(request)
        self._keeper: Keeper | None = Keeper(request, self._decided)
        self._connection: Connection | None = None

    @classmethod
    def attach(cls, url: str, *, api_key: str = "", model: str = "", wait_s: float = 0.0) -> Self:
        """Use a server that runs already, of any program: ``http://HOST:PORT/v1`` or ``unix:///PATH``.

        ``model`` is the name to ask for, where it has several; ``wait_s``: wait so many seconds until it is ready.
        It is not ended by ``close``. Raises ValueProblem for an address that is none, TimedOut.
        """
        address = parse_address(url)
        if wait_s:
            wait_healthy(address, wait_s)
        self = cls.__new__(cls)
        self._decided = self._keeper = None
        self._connection = Connection(address, api_key, model, lambda: None)
        return self

    # Its life

    def start(self) -> Self:
        """Start the server and wait until it answers. Raises AppError; then nothing is left running."""
        if self._connection is None and self._keeper is not None:
            self._decided = self._keeper.start()
            endpoint = self.plan.endpoint
            if endpoint is None:
                raise ValueProblem("this plan starts no server")
            self._connection = Connection(parse_address(endpoint.url), "", self.plan.model.alias,
                                          self._keeper.check_alive)  # fmt: skip
        return self

    def close(self) -> None:
        """End the server and remove whatever it left; answers in progress end with an error."""
        if self._keeper is not None:
            self._connection = None
            self._keeper.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    # What was decided

    @property
    def plan(self) -> Plan:
        """Everything that was decided, as a frozen value. Raises ValueProblem for an attached server."""
        return self._own().plan

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands that are executed: what a dry run shows."""
        return tuple(step.argv for step in render_steps(self.plan))

    def explain(self) -> str:
        """Every decision with its reason and origin, as ``ramalama-like explain`` prints it."""
        from ramalama_like.cli.explain import as_text, explain_decided

        return as_text(explain_decided(self._own()))

    @property
    def base_url(self) -> str:
        """The address for other clients, such as OpenAI's. Raises ValueProblem where the server has only a socket."""
        address = self._connected().address
        if address.scheme == "unix":
            raise ValueProblem(f"the server is reached over a Unix socket, {address.text}, and has no address",
                               "ask for a port: Model(…, port=0) takes any that is free")  # fmt: skip
        return address.text

    # Answers

    if TYPE_CHECKING:

        @overload
        def chat(self, messages: Messages, *, stream: Literal[False] = False, images: Sequence[Image] = (),
                 tools: Sequence[Mapping[str, Any]] | None = None,
                 tool_choice: str | Mapping[str, Any] | None = None,
                 template_arguments: Mapping[str, Any] | None = None,
                 **sampling: Unpack[Sampling]) -> Answer: ...  # fmt: skip
        @overload
        def chat(self, messages: Messages, *, stream: Literal[True], images: Sequence[Image] = (),
                 tools: Sequence[Mapping[str, Any]] | None = None,
                 tool_choice: str | Mapping[str, Any] | None = None,
                 template_arguments: Mapping[str, Any] | None = None,
                 **sampling: Unpack[Sampling]) -> Stream: ...  # fmt: skip

    def chat(self, messages: Messages, *, stream: bool = False, images: Sequence[Image] = (),
             tools: Sequence[Mapping[str, Any]] | None = None, tool_choice: str | Mapping[str, Any] | None = None,
             template_arguments: Mapping[str, Any] | None = None, **sampling: Unpack[Sampling]
             ) -> Answer | Stream:  # fmt: skip
        """Answer a question or go on with a conversation; with ``stream=True``, piece by piece.

        ``images`` (bytes, paths, addresses) go with the last message; ``tools`` are functions in OpenAI's form, and
        the answer's ``calls`` those that the model wants; ``template_arguments`` reach the chat template. Raises
        ServerSaid where the server refuses, ServerGone where it is lost, ChildFailed where it died.
        """
        connection = self._connected()
        body = chat_body(messages, connection.model, images, tools, tool_choice, template_arguments, sampling)
        answer = Stream(connection, "/chat/completions", body)
        return answer if stream else answer.answer

    if TYPE_CHECKING:

        @overload
        def complete(self, prompt: str | Sequence[int], *, stream: Literal[False] = False,
                     **sampling: Unpack[Sampling]) -> Answer: ...  # fmt: skip
        @overload
        def complete(self, prompt: str | Sequence[int], *, stream: Literal[True],
                     **sampling: Unpack[Sampling]) -> Stream: ...  # fmt: skip

    def complete(self, prompt: str | Sequence[int], *, stream: bool = False, **sampling: Unpack[Sampling]
                 ) -> Answer | Stream:  # fmt: skip
        """Go on with a text, or with tokens; no chat template. Raises as ``chat`` does."""
        connection = self._connected()
        answer = Stream(connection, "/completions", completion_body(prompt, connection.model, sampling))
        return answer if stream else answer.answer

    # Other work

    if TYPE_CHECKING:

        @overload
        def embed(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
            self, texts: str, *, normalize: bool = True
        ) -> list[float]: ...
        @overload
        def embed(self, texts: Sequence[str], *, normalize: bool = True) -> list[list[float]]: ...

    def embed(self, texts: str | Sequence[str], *, normalize: bool = True) -> list[float] | list[list[float]]:
        """The vector of a text, or one for each of several; of length 1 unless ``normalize=False``.

        llama-server gives them when started so: ``Model(…, embedding=True)``. Raises as ``chat`` does.
        """
        connection = self._connected()
        body: dict[str, Any] = {"input": texts if isinstance(texts, str) else list(texts)}
        if connection.model:
            body["model"] = connection.model
        if not normalize:
            body["embd_normalize"] = -1
        data = connection.call("POST", "/embeddings", body)
        try:
            ordered = sorted(data["data"], key=lambda each: int(each["index"]))
            vectors = [[float(number) for number in each["embedding"]] for each in ordered]
            return vectors[0] if isinstance(texts, str) else vectors
        except (KeyError, TypeError, ValueError, IndexError):
            raise connection.foreign("/embeddings") from None

    def rerank(self, query: str, documents: Sequence[str], *, top_n: int | None = None) -> list[Ranked]:
        """Documents by their relevance to a query, the most relevant first, at most ``top_n``.

        llama-server does it when started so: ``Model(…, rerank=True)``. Raises as ``chat`` does.
        """
        connection = self._connected()
        body: dict[str, Any] = {"query": query, "documents": list(documents)}
        if connection.model:
            body["model"] = connection.model
        if top_n is not None:
            body["top_n"] = top_n
        data = connection.call("POST", "/rerank", body)
        try:
            ranked = [Ranked(int(each["index"]), float(each["relevance_score"]), documents[int(each["index"])])
                      for each in data["results"]]  # fmt: skip
        except (KeyError, TypeError, ValueError, IndexError):
            raise connection.foreign("/rerank") from None
        return sorted(ranked, key=lambda each: -each.score)

    def tokenize(self, text: str, *, special: bool = False, parse_special: bool = True) -> list[int]:
        """The tokens of a text; ``special`` adds those of its beginning and end, ``parse_special`` reads what is
        written as such (``<|im_end|>``) as one. llama-server only."""
        body = {"content": text, "add_special": special, "parse_special": parse_special}
        data = self._native("POST", "/tokenize", body)
        try:
            return [int(token) for token in data["tokens"]]
        except (KeyError, TypeError, ValueError):
            raise self._connected().foreign("/tokenize") from None

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of tokens. llama-server only."""
        data = self._native("POST", "/detokenize", {"tokens": list(tokens)})
        try:
            return str(data["content"])
        except (KeyError, TypeError):
            raise self._connected().foreign("/detokenize") from None

    def apply_template(self, messages: Messages) -> str:
        """The text that the model's chat template makes of a conversation. llama-server only."""
        data = self._native("POST", "/apply-template", {"messages": as_messages(messages)})
        try:
            return str(data["prompt"])
        except (KeyError, TypeError):
            raise self._connected().foreign("/apply-template") from None

    # The server's state

    def adapters(self) -> list[dict[str, Any]]:
        """The adapters (LoRA) that were loaded: number, path and scale of each. llama-server only."""
        found: list[dict[str, Any]] = self._native("GET", "/lora-adapters")
        return found

    def set_adapters(self, scales: Mapping[int, float]) -> None:
        """Set the scale of adapters, by number, for all questions from now on; the others' becomes 0."""
        data = self._connected().call("POST", "/lora-adapters", adapter_list(scales), native=True)
        if not data:
            raise self._connected().foreign("/lora-adapters")

    def save_state(self, name: str, *, slot: int = 0) -> int:
        """Keep what a slot holds (its prompt and answer, read) in a file of the folder that ``slot_save_path=``
        named; how many tokens that were. Ask with ``slot=`` to know which slot is used. llama-server only."""
        return self._slot(slot, "save", "n_saved", {"filename": name})

    def restore_state(self, name: str, *, slot: int = 0) -> int:
        """Bring back what ``save_state`` kept, also into another server of the same model; how many tokens."""
        return self._slot(slot, "restore", "n_restored", {"filename": name})

    def erase_state(self, *, slot: int = 0) -> int:
        """Forget what a slot holds; how many tokens that were."""
        return self._slot(slot, "erase", "n_erased", {})

    def properties(self) -> dict[str, Any]:
        """What llama-server tells of itself: default sampling, chat template, abilities (``/props``)."""
        found: dict[str, Any] = self._native("GET", "/props")
        return found

    def models(self) -> list[str]:
        """The names of the server's models."""
        data = self._connected().call("GET", "/models")
        try:
            return [str(each["id"]) for each in data["data"]]
        except (KeyError, TypeError):
            raise self._connected().foreign("/models") from None

    # Within

    def _slot(self, slot: int, action: str, counted: str, body: Mapping[str, Any]) -> int:
        data = self._native("POST", f"/slots/{int(slot)}?action={action}", body)
        try:
            return int(data[counted])
        except (KeyError, TypeError, ValueError):
            raise self._connected().foreign("/slots") from None

    def _native(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._connected().call(method, path, body, native=True)

    def _own(self) -> Decided:
        if self._decided is None:
            raise ValueProblem("this server was not started here, so there is no plan of it")
        return self._decided

    def _connected(self) -> Connection:
        if self._connection is None:
            raise ValueProblem("the model is not running", NOT_STARTED)
        return self._connection
