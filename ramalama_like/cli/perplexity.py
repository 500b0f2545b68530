"""``perplexity``: how well a model predicts a text, measured by llama-perplexity."""

from __future__ import annotations

from ramalama_like.execute import run_tool, with_free_name
from ramalama_like.launch import prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    return with_free_name(request, _measure)


def _measure(request: Request) -> int:
    from ramalama_like import ui

    decided = prepare(request)
    if decided is None:
        return 0
    ui.write(run_tool(decided.plan, keep_output=True).decode(errors="replace"))
    return 0
