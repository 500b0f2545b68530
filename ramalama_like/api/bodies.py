"""What is sent: keywords of this API in the servers' words. Pure.

OpenAI's names where OpenAI has one, else llama-server's; a server that does not know a name ignores or refuses it.
"""

from __future__ import annotations

import os
from typing import TypedDict

from ramalama_like.chat.attachments import image_url, read_attachment
from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import Any

    Image = bytes | str | PathLike[str]  # content, path or http(s) and data address
    Messages = str | Sequence[Mapping[str, Any]]  # one question, or a conversation in OpenAI's form


class Sampling(TypedDict, total=False):
    """How tokens are chosen, and what else goes with a question. None means not given: the server's default."""

    max_tokens: int | None
    temperature: float | None  # 0: always the likeliest token
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    seed: int | None
    stop: str | Sequence[str] | None  # texts before which the answer ends
    presence_penalty: float | None
    frequency_penalty: float | None
    repeat_penalty: float | None
    repeat_last_n: int | None  # tokens that the penalties look back at
    logit_bias: Mapping[int | str, float | bool] | None  # by token or text: added to its logit; False: never
    logprobs: int | None  # how many of the likeliest tokens to report at each place
    grammar: str | None  # GBNF that the answer must follow (llama.cpp)
    json_schema: Mapping[str, Any] | None  # that the answer must follow
    cache_prompt: bool | None  # whether what the slot holds of the prompt already is used again
    slot: int | None  # the server's slot to use, as after restore_state
    adapters: Mapping[int, float] | None  # scale of each adapter for this answer, by its number
    progress: bool | None  # pieces tell how much of the prompt has been read
    extra: Mapping[str, Any] | None  # whatever else the server understands


# Keywords that the servers call otherwise.
NAMES = {"typical_p": "typ_p", "slot": "id_slot", "progress": "return_progress"}


def chat_body(messages: Messages, model: str, images: Sequence[Image], tools: Sequence[Mapping[str, Any]] | None,
              tool_choice: str | Mapping[str, Any] | None, template_arguments: Mapping[str, Any] | None,
              sampling: Sampling) -> dict[str, Any]:  # fmt: skip
    """The body of a chat completion. Raises ValueProblem."""
    body: dict[str, Any] = {"messages": _with_images(as_messages(messages), images)}
    given = {"tools": tools, "tool_choice": tool_choice, "chat_template_kwargs": template_arguments}
    body |= {name: wanted for name, wanted in given.items() if wanted is not None}
    logprobs, schema = sampling.get("logprobs"), sampling.get("json_schema")
    if logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": logprobs}
    if schema is not None:
        wrapped = {"name": "answer", "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wrapped}
    return _sampled(body, model, sampling)


def completion_body(prompt: str | Sequence[int], model: str, sampling: Sampling) -> dict[str, Any]:
    """The body of a completion of a text or of tokens. Raises ValueProblem."""
    body: dict[str, Any] = {"prompt": prompt if isinstance(prompt, str) else list(prompt)}
    logprobs, schema = sampling.get("logprobs"), sampling.get("json_schema")
    if logprobs is not None:
        body["logprobs"] = logprobs
    if schema is not None:
        body["json_schema"] = schema
    return _sampled(body, model, sampling)


def as_messages(messages: Messages) -> list[dict[str, Any]]:
    """A conversation from one question or from messages. Raises ValueProblem for what is neither."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    found = [dict(each) for each in messages if isinstance(each, dict)]
    if not found or len(found) < len(messages):
        raise ValueProblem("messages must be a text or a list of dicts", 'such as {"role": "user", "content": "…"}')
    return found


def _sampled(body: dict[str, Any], model: str, sampling: Sampling) -> dict[str, Any]:
    if sampling.get("grammar") is not None and sampling.get("json_schema") is not None:
        raise ValueProblem("grammar and json_schema cannot be had together", "choose one")
    known = Sampling.__annotations__
    for name, wanted in sampling.items():
        if name not in known:
            raise ValueProblem(f"there is no parameter {name}", "give what only the server knows with extra={…}")
        if wanted is None or name in ("logprobs", "json_schema", "extra", "adapters", "logit_bias", "stop"):
            continue
        body[NAMES.get(name, name)] = wanted
    stop, bias, adapters = sampling.get("stop"), sampling.get("logit_bias"), sampling.get("adapters")
    if stop is not None:
        body["stop"] = [stop] if isinstance(stop, str) else list(stop)
    if bias is not None:
        body["logit_bias"] = [[token, amount] for token, amount in bias.items()]
    if adapters is not None:
        body["lora"] = adapter_list(adapters)
    if model:
        body["model"] = model
    return {**body, **(sampling.get("extra") or {})}


def adapter_list(scales: Mapping[int, float]) -> list[dict[str, float]]:
    """Adapters as the server lists them."""
    return [{"id": number, "scale": scale} for number, scale in scales.items()]


def _with_images(messages: list[dict[str, Any]], images: Sequence[Image]) -> list[dict[str, Any]]:
    """Put images in front of the last question's text."""
    if not images:
        return messages
    last = messages[-1]
    content = last.get("content") or ""
    texts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    parts = [{"type": "image_url", "image_url": {"url": _address_of(image)}} for image in images]
    return [*messages[:-1], {**last, "content": [*parts, *texts]}]


def _address_of(image: Image) -> str:
    if isinstance(image, bytes):
        return image_url(image, "the image")
    path = os.fspath(image)
    if path.startswith(("http://", "https://", "data:")):
        return path
    return read_attachment(path, image=True).image_url
