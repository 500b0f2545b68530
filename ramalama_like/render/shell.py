"""Argument lists as text that a POSIX shell reads back as the very same lists."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ramalama_like.plan import Step


def render_line(argv: Sequence[str]) -> str:
    """One command as one shell line. A newline inside an argument stays inside its quotes."""
    from shlex import join

    return join(argv)


def render_shell(steps: Iterable[Step]) -> str:
    """All commands, one line each."""
    return "".join(render_line(step.argv) + "\n" for step in steps)
