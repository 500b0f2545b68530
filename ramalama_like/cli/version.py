"""``version``: which version this is."""

from __future__ import annotations

from ramalama_like import __version__, ui

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.launch import Outline
    from ramalama_like.request import Request


def execute(request: Request) -> int:
    """Run the command; its exit code."""
    if request.given.get("json"):
        ui.write(f'{{"version": "{__version__}"}}\n')
    else:
        ui.write(f"{__version__}\n" if request.given.get("quiet") else f"ramalama-like version {__version__}\n")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: print, and start nothing. Raises AppError."""
    from ramalama_like.launch import Outline
    from ramalama_like.settings import load_settings

    return Outline(load_settings(request))
