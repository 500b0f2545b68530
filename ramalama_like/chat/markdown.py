"""Markdown shown on a terminal while it comes, letter by letter: no line is held back until it is whole.

What is understood: headings, lists, quotes, code (inline and fenced), bold and italic. Everything else is shown as it
was written, so nothing is ever lost; marks that were understood are left out. Long lines are broken between words.
"""

from __future__ import annotations

BOLD, ITALIC, CODE, DIM, HEADING = "bold", "italic", "code", "dim", "heading"
_CODES = {BOLD: "1", ITALIC: "3", CODE: "36", DIM: "2", HEADING: "1;4"}
_BLOCK = frozenset(" \t#>-*+`~0123456789.)")  # what a line's mark is made of
_FENCES = ("```", "~~~")
_NARROWEST = 20  # columns; a terminal that is narrower breaks lines by itself


class Markdown:
    """A text that comes in pieces. ``feed`` gives what to write for a piece, ``end`` what is still to be written."""

    def __init__(self, width: int = 0, *, bullet: str = "•", bar: str = "│") -> None:
        self._out: list[str] = []
        self._width = width - 1 if width >= _NARROWEST else 0  # the last column makes terminals wait or wrap
        self._bullet = bullet
        self._bar = bar
        self._column = 0
        self._word: list[str] = []  # since the last blank, with its styles
        self._word_width = 0
        self._word_styles: tuple[str, ...] = ()
        self._styles: tuple[str, ...] = ()
        self._head: str | None = ""  # the beginning of a line while it may be a mark; None within the line
        self._held = ""  # a mark within the line that the next letter decides about
        self._fence = ""  # the mark that ends the block of code that we are in
        self._escaped = False

    def feed(self, text: str) -> str:
        """What to write for the next piece of the text."""
        for letter in text:
            self._take(letter)
        return self._taken()

    def end(self) -> str:
        """What is still to be written, the terminal back in its usual style."""
        if self._head is not None:
            self._end_head("")
        self._release("")
        self._style(())
        return self._taken()

    def _taken(self) -> str:
        text = "".join(self._out)
        self._out.clear()
        return text

    # The beginning of a line.

    def _take(self, letter: str) -> None:
        if self._head is None:
            self._inline(letter)
            return
        fence = self._is_fence(self._head)
        if letter != "\n" and (fence or self._may_be_mark(letter)):
            self._head += letter
            return
        self._end_head(letter)

    def _may_be_mark(self, letter: str) -> bool:
        head = f"{self._head}{letter}"
        if self._fence:  # only its end is looked for
            stripped = head.lstrip(" ")
            return stripped == "" or self._fence.startswith(stripped) or stripped.startswith(self._fence)
        if letter not in _BLOCK or len(head) > 40:
            return False
        stripped = self._head.lstrip(" ") if self._head else ""
        # A blank after a mark ends it, one before it does not.
        return not (letter == " " and stripped)

    def _is_fence(self, head: str) -> bool:
        mark = head.lstrip(" ")
        # Backticks behind the mark make it code within a line.
        return mark.startswith(self._fence or _FENCES) and not (mark[0] == "`" and "`" in mark.lstrip("`"))

    def _end_head(self, letter: str) -> None:
        head, self._head = self._head or "", None
        mark = head.lstrip(" ")
        indent = head[: len(head) - len(mark)]
        if self._is_fence(head):
            self._style(())
            # What follows the mark names a language, which nobody needs to see.
            self._fence = "" if self._fence else mark[:3]
            self._head = ""
            return
        if self._fence:
            self._style((CODE,))
            self._put(head)
        elif letter == " " and 1 <= len(mark) <= 6 and mark.strip("#") == "":
            self._put(indent)
            self._style((HEADING,))
            return
        elif letter == " " and mark in ("-", "*", "+"):
            self._put(f"{indent}{self._bullet}")
        elif mark and mark.strip("> ") == "" and letter != "\n":
            self._style((DIM,))
            self._put(f"{indent}{self._bar * mark.count('>')}")
        elif (len(mark) >= 3 and letter == "\n" and mark.strip("-") == "") or (
            mark.strip("*") == "" and len(mark) >= 3
        ):
            self._style((DIM,))
            self._put("-" * (min(self._width, 40) or 40))
        else:
            for each in head:
                self._inline(each)
        if letter:
            self._inline(letter)

    # Within a line.

    def _inline(self, letter: str) -> None:
        if letter == "\n":
            self._release(letter)
            self._style(())
            self._put(letter)
            self._head = ""
        elif self._fence:
            self._put(letter)
        elif self._escaped:
            self._escaped = False
            # A backslash counts before punctuation only.
            self._put(letter if not letter.isalnum() and not letter.isspace() else f"\\{letter}")
        elif letter == "*" and CODE not in self._styles:
            if self._held:
                self._held = ""
                self._toggle(BOLD)
            else:
                self._held = "*"
        else:
            self._release(letter)
            if letter == "`":
                self._toggle(CODE)
            elif letter == "\\" and CODE not in self._styles:
                self._escaped = True
            else:
                self._put(letter)

    def _release(self, following: str) -> None:
        """A single asterisk that was held: emphasis where it stands as one, else itself."""
        if self._escaped and not following.strip():
            self._escaped = False
            self._put("\\")
        if not self._held:
            return
        self._held = ""
        if ITALIC in self._styles or following.strip():
            self._toggle(ITALIC)
        else:
            self._put("*")

    def _toggle(self, style: str) -> None:
        styles = self._styles
        self._style(tuple(each for each in styles if each != style) if style in styles else (*styles, style))

    # Writing.

    def _style(self, styles: tuple[str, ...]) -> None:
        if styles == self._styles:
            return
        self._styles = styles
        self._emit(_sgr(styles))

    def _put(self, text: str) -> None:
        for letter in text:
            if letter == "\n":
                self._column = 0
                self._new_word()
                self._out.append(letter)
                continue
            wide = _columns(letter)
            if self._width and self._column + wide > self._width and not self._fence:
                self._break_line(letter)
                if letter == " ":
                    continue
            self._column += wide
            if letter == " " or wide == 2:
                self._out.append(letter)
                self._new_word()
            else:
                self._word_width += wide
                self._emit(letter)

    def _emit(self, text: str) -> None:
        self._out.append(text)
        self._word.append(text)

    def _break_line(self, letter: str) -> None:
        """Go to the next line, and take the word that has begun along, where it is shorter than a line."""
        if letter != " " and 0 < self._word_width < self._width // 2:
            word = "".join(self._word)
            self._out.append(f"\x1b[{self._word_width}D\x1b[K\n{_sgr(self._word_styles)}{word}")
            self._column = self._word_width
        else:
            self._out.append("\n")
            self._column = 0
            self._new_word()

    def _new_word(self) -> None:
        self._word = []
        self._word_width = 0
        self._word_styles = self._styles


def _sgr(styles: tuple[str, ...]) -> str:
    return f"\x1b[{';'.join(['0', *(_CODES[style] for style in styles)])}m"


def _columns(letter: str) -> int:
    if letter.isascii():
        return 1
    from unicodedata import category, east_asian_width

    if category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(letter) in ("W", "F") else 1
