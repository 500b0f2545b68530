"""Answers of hubs in JSON, read with suspicion: what is not as documented is nonsense, never a traceback."""

from __future__ import annotations

from ramalama_like.models import failures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramalama_like.models.client import Answer

# Statuses of a question that only helps to explain a failure: none of them is worth another try.
ANY_FAILURE = (400, 401, 403, 404, 405, 408, 410, 429, 500, 502, 503, 504)


def object_of(answer: Answer) -> dict[str, Any]:
    """The object in an answer. Raises AppError where there is none."""
    found = _parsed(answer)
    if not isinstance(found, dict):
        raise failures.nonsense(answer.url, "something else than it is known for")
    return found


def list_of(answer: Answer) -> list[dict[str, Any]]:
    """The objects of the list in an answer; what is none is passed over. Raises AppError where there is no list."""
    found = _parsed(answer)
    if not isinstance(found, list):
        raise failures.nonsense(answer.url, "something else than a list")
    return [item for item in found if isinstance(item, dict)]


def _parsed(answer: Answer) -> object:
    import json

    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        raise failures.nonsense(answer.url, "something else than JSON") from None


def size_of(item: object) -> int:
    """A size in bytes; -1 for what is none, or more than any file can have."""
    return item if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1 << 63 else -1


def texts_of(items: object, key: str) -> list[str]:
    """The texts under a key of each object in a list, of whatever may come."""
    if not isinstance(items, list):
        return []
    return [item[key] for item in items if isinstance(item, dict) and isinstance(item.get(key), str)]
