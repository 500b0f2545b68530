"""Run language models in containers: one plan, shown exactly as it will run.

For programs: ``ramalama_like.Model`` and ``ramalama_like.AsyncModel`` (docs/python.md). They are loaded when they are
first named, so that the command line starts without them.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.api import Answer, AsyncModel, AsyncStream, Model, Piece, Ranked, Stream, ToolCall, Usage

__version__ = "0.1.0"
__all__ = [
    "Answer", "AsyncModel", "AsyncStream", "Model", "Piece", "Ranked", "Stream", "ToolCall", "Usage", "__version__",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'ramalama_like' has no attribute {name!r}")
    found: object = getattr(__import__("ramalama_like.api", fromlist=[name]), name)
    globals()[name] = found
    return found
