"""What an answer is shown on: plain text for pipes, a terminal with marks and dimmed thoughts for people."""

from __future__ import annotations

from ramalama_like.chat.markdown import Markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ramalama_like.chat.answers import Piece

DIM, PLAIN, CLEAR_LINE = "\x1b[2m", "\x1b[0m", "\r\x1b[K"
# What turns the direction of writing, by which a text can look like another one.
TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
SHOW, FOLD = "show", "fold"
_SLOW = 512  # tokens of a prompt from which on it is worth telling how far the server is


def printable(text: str) -> str:
    """A model's text without control characters: no model may move the cursor or rename the terminal."""
    return "".join(
        "\ufffd" if "\ud800" <= letter <= "\udfff" else letter
        for letter in text
        if letter in "\n\t" or not (ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in TURNING)
    )


class PlainDisplay:
    """The answer's text and nothing else, ending with the line."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._last = ""

    def take(self, piece: Piece) -> None:
        """Show the next piece."""
        text = printable(piece.text)
        if text:
            self._write(text)
            self._last = text

    def end(self) -> None:
        """The answer is over, whole or not."""
        if self._last and not self._last.endswith("\n"):
            self._write("\n")
        self._last = ""


class SilentDisplay:
    """Nothing is shown while the answer comes."""

    def take(self, piece: Piece) -> None:
        """Show nothing."""

    def end(self) -> None:
        """Show nothing."""


class TerminalDisplay:
    """For a person: marks become styles, thoughts are dimmed or folded into one line, waiting is explained."""

    def __init__(self, write: Callable[[str], None], *, width: Callable[[], int], styled: bool,
                 unicode: bool = True, thoughts: str = SHOW) -> None:  # fmt: skip
        self._write = write
        self._width = width
        self._styled = styled
        self._unicode = unicode
        self.thoughts = thoughts
        self._text: Markdown | None = None
        self._last = ""
        self._thinking = 0  # letters of thoughts so far
        self._status = False  # a line that will be written over

    def take(self, piece: Piece) -> None:
        """Show the next piece."""
        if piece.progress and piece.progress[1] >= _SLOW and piece.progress[0] < piece.progress[1]:
            self._tell(f"reading the question: {100 * piece.progress[0] // piece.progress[1]} %")
        if piece.reasoning:
            self._think(printable(piece.reasoning))
        if piece.text:
            self._answer(printable(piece.text))

    def end(self) -> None:
        """The answer is over, whole or not."""
        self._clear()
        if self._text is not None:
            self._put(self._text.end())
        elif self._thinking and self._styled:
            self._put(PLAIN)
        if self._last and not self._last.endswith("\n"):
            self._write("\n")
        self._text, self._last, self._thinking = None, "", 0

    def _think(self, text: str) -> None:
        before, self._thinking = self._thinking, self._thinking + len(text)
        if self.thoughts == FOLD:
            self._tell(f"thinking: {self._thinking} letters")
            return
        self._clear()
        if not before and self._styled:
            self._put(DIM)
        self._put(text.lstrip("\n") if not before else text)

    def _answer(self, text: str) -> None:
        self._clear()
        if not self._last and not self._text:
            text = text.lstrip("\n")
        if self._text is None and self._thinking:
            if self.thoughts == FOLD:
                self._put(self._dim(f"(thought {self._thinking} letters: /think shows them)\n\n"))
            else:
                self._put((PLAIN if self._styled else "") + ("\n" if self._last.endswith("\n") else "\n\n"))
            text = text.lstrip("\n")
        if not self._styled:
            self._put(text)
            return
        if self._text is None:
            marks = ("•", "│") if self._unicode else ("*", "|")
            self._text = Markdown(self._width(), bullet=marks[0], bar=marks[1])
        self._put(self._text.feed(text))

    def _dim(self, text: str) -> str:
        return f"{DIM}{text}{PLAIN}" if self._styled else text

    def _put(self, text: str) -> None:
        if text:
            self._write(text)
            self._last = text.removesuffix(PLAIN) or self._last

    def _tell(self, text: str) -> None:
        if self._styled:  # else there is no way to write over it
            self._write(f"{CLEAR_LINE}{DIM}{text[: self._width() - 1]}{PLAIN}")
            self._status = True

    def _clear(self) -> None:
        if self._status:
            self._write(CLEAR_LINE)
            self._status = False
