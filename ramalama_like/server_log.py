"""The lines of llama-server's log: which it prints at its own level, and when its report is over. Pure."""

from __future__ import annotations

from ramalama_like.data import load_table


def is_complete(line: str) -> bool:
    """Whether a server has told all of its report with this line."""
    return any(text in line for text in load_table("proof")["complete"])


class OwnLevel:
    """Tells the lines apart that llama-server prints at its own level from those that were asked for as a report."""

    def __init__(self) -> None:
        self._last = True

    def shows(self, line: str) -> bool:
        """Whether the line would also be there without the report. Call it with every line, in order."""
        if line[:1] in (" ", "\t"):  # goes on with the line before
            return self._last
        words = line.split(None, 2)
        level = words[1] if len(words) > 2 and words[0].count(".") == 3 and words[0][0].isdigit() else ""
        self._last = (
            level in ("", "W", "E")  # other programs' lines, and other builds', are never hidden
            or (level == "I" and any(text in line for text in load_table("proof")["own_level"]))
        )
        return self._last
