"""What goes with every question, from the settings: sampling, a schema or grammar, files. Checked before a server is
started or waited for."""

from __future__ import annotations

from ramalama_like.chat.attachments import Attachment, read_attachment
from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ramalama_like.options import Settings


def attachments_of(asked: Settings, expand: Callable[[str], str]) -> tuple[Attachment, ...]:
    """The files that go with the first question. Raises ValueProblem."""
    return tuple(read_attachment(expand(path)) for path in asked.files.value)


def parameters_of(asked: Settings) -> dict[str, Any]:
    """What goes with every question, in the API's words. Raises ValueProblem."""
    found: dict[str, Any] = {}
    if not asked.temp.is_default:
        found["temperature"] = asked.temp.value
    if asked.max_tokens.value:
        found["max_tokens"] = asked.max_tokens.value
    if asked.schema.value and asked.grammar.value:
        raise ValueProblem("--schema and --grammar cannot be had together", "choose one")
    if asked.schema.value:
        schema = _json_schema(asked.schema.value)
        found["response_format"] = {"type": "json_schema",
                                    "json_schema": {"name": "answer", "strict": True, "schema": schema}}  # fmt: skip
    if asked.grammar.value:
        found["grammar"] = _text_file(asked.grammar.value, "--grammar")
    return found


def _json_schema(path: str) -> dict[str, Any]:
    import json

    try:
        schema = json.loads(_text_file(path, "--schema"))
    except (ValueError, RecursionError):
        schema = None
    if not isinstance(schema, dict):
        raise ValueProblem(f"--schema {path}: holds no JSON object", "give a JSON schema")
    return schema


def _text_file(path: str, flag: str) -> str:
    found = read_attachment(path)
    if not found.text:
        raise ValueProblem(f"{flag} {path}: is no text")
    return found.text
