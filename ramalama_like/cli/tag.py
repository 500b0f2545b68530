"""``tag``: give a model of the store another name. Nothing is copied."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.errors import ValueProblem
from ramalama_like.launch import Outline, show_if_dry
from ramalama_like.reference import canonical_name, parse_reference, plain_url
from ramalama_like.settings import find_lookup
from ramalama_like.stored import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request
    from ramalama_like.stored import Opened


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    opened = open_store(request)
    old, new = _names(request, opened)
    if show_if_dry(request, _outline(opened, old, new)):
        return 0
    opened.store.tag(old, new)
    ui.write(f"{ui.one_line(new)}\n")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    opened = open_store(request)
    return _outline(opened, *_names(request, opened))


def _outline(opened: Opened, old: str, new: str) -> Outline:
    return Outline(opened.loaded, None, (opened.own_line("tag", "--", old, new),), "self")


def _names(request: Request, opened: Opened) -> tuple[str, str]:
    old = opened.names().find(request.arguments[0])
    text = request.arguments[1]
    reference = parse_reference(text, find_lookup(opened.loaded.settings).transport)
    if reference.transport in ("file", "demo", "name", "http", "https"):
        raise ValueProblem(f"{plain_url(text)}: cannot be the name of a model in the store",
                           "write a name such as hf://OWNER/NAME:TAG or ollama://NAME:TAG")  # fmt: skip
    return old, canonical_name(reference)
