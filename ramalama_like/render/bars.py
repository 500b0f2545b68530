"""Horizontal bars for a terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EIGHTHS = " ▏▎▍▌▋▊▉"  # by how many eighths of a column are filled
GREEN, PLAIN = "\x1b[32m", "\x1b[0m"
SHORTEST = 10  # columns of the longest bar, however narrow the terminal


def render_bars(
    title: str, bars: Sequence[tuple[str, float]], *, width: int = 80, letters: str = "unicode", color: bool = False
) -> str:
    """A title and one bar for each pair of name and number, none of them negative; the largest number is in green.

    ``letters`` is ``unicode`` or ``ascii``.
    """
    most = max((number for _, number in bars), default=0.0)
    told = [f"{number:.1f}" for _, number in bars]
    names = max((len(name) for name, _ in bars), default=0)
    room = max(SHORTEST, width - names - max((len(text) for text in told), default=0) - 4)
    lines = [title]
    for (name, number), text in zip(bars, told, strict=True):
        filled = _filled(number / most * room if most else 0.0, letters)
        if color and number == most:
            filled = f"{GREEN}{filled}{PLAIN}"
        lines.append(f"  {name:<{names}} {filled} {text}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def _filled(columns: float, letters: str) -> str:
    if letters == "ascii":
        return "#" * max(1, round(columns))
    whole, eighth = divmod(round(columns * 8), 8)
    return "█" * whole + (EIGHTHS[eighth] if eighth else "") or EIGHTHS[1]
