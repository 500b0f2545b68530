"""The only door to people. Results go to standard output; everything else is talk, and goes to standard error."""

from __future__ import annotations

import os
import sys
from _thread import _local

from ramalama_like.errors import AppError, Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_quiet = False
_listeners = _local()  # one for each thread of a program that uses this one as a library


def set_quiet(quiet: bool) -> None:
    """Say nothing from now on but results and errors."""
    global _quiet  # noqa: PLW0603 - one terminal, one volume
    _quiet = quiet


def divert(listener: Callable[[str], None] | None) -> Callable[[str], None] | None:
    """Give ``listener`` each line that is told in this thread from now on, instead of standard error (None: no more).

    Returns the one before it.
    """
    before: Callable[[str], None] | None = getattr(_listeners, "here", None)
    _listeners.here = listener
    return before


def write(text: str) -> None:
    """Print a result exactly as it is: no newline is added, and bytes that are no UTF-8 come out as they came in.

    Raises AppError where standard output cannot be written; BrokenPipeError where its reader has gone.
    """
    try:
        _write_all(1, text.encode("utf-8", "surrogateescape"))
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise AppError(f"standard output cannot be written: {problem.strerror}", exit_code=5) from None


def say(text: str) -> None:
    """Tell something on standard error, on a line of its own."""
    if not _quiet:
        _tell("".join(f"{spelled(line)}\n" for line in text.split("\n")))


def rewrite(text: str) -> None:
    """Show a line on a terminal in place of the one that this function showed last; the empty text takes it away."""
    diverted = getattr(_listeners, "here", None) is not None
    if not _quiet and not diverted and is_terminal(2):
        try:
            _write_all(2, f"\r\x1b[K{one_line(text)}".encode("utf-8", "backslashreplace"))
        except OSError:
            return


def warn(text: str) -> None:
    """Warn, in one line."""
    say(f"Warning: {one_line(text)}")


def error(message: str, hint: str = "") -> None:
    """An error: one line, and one more where there is a next step."""
    _tell(f"Error: {one_line(message)}\n" + (f"Hint: {one_line(hint)}\n" if hint else ""))


def one_line(text: str) -> str:
    """Text from anywhere made safe for one line of a terminal: control characters are spelled out."""
    return spelled(text.strip())


def spelled(text: str) -> str:
    """Text with its control characters spelled out, but for tabs: nobody's log may move the cursor."""
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter == "\t"
        # A surrogate is a byte that was no UTF-8: two of them could make a control character again.
        else f"\\x{ord(letter) - 0xDC00:02x}"
        if "\udc80" <= letter <= "\udcff"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def table(heading: Sequence[str], rows: Iterable[Sequence[str]], *, show_heading: bool = True,
          flexible: Sequence[str] = ()) -> None:  # fmt: skip
    """Print rows in columns that fit the terminal, or unshortened where standard output is none.

    Columns of the names in ``flexible`` give way before any other is shortened.
    """
    cells = [[cell.strip() if cell.isprintable() else one_line(cell) for cell in row]  # inlined: there may be thousands
             for row in (*((heading,) if show_heading else ()), *rows)]  # fmt: skip
    terminal = os.isatty(1)
    plain = all("".join(row).isascii() for row in cells)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)] if plain else []
    if plain and not (terminal and sum(widths) + 2 * len(widths) - 2 > terminal_width()):
        # The layout that rich makes, without its 70 ms and its 0.1 ms a row.
        form = "  ".join(f"%-{width}s" for width in widths)
        write("".join([f"{(form % tuple(row)).rstrip()}\n" for row in cells]))
    else:
        _rich_table(heading, cells, show_heading=show_heading, flexible=flexible, terminal=terminal)


def _rich_table(heading: Sequence[str], cells: Sequence[Sequence[str]], *, show_heading: bool,
                flexible: Sequence[str], terminal: bool) -> None:  # fmt: skip
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=False, width=None if terminal else 10_000)
    grid = Table(box=None, pad_edge=False, show_header=show_heading, header_style="")
    for name in heading:
        grid.add_column(name, overflow="ellipsis" if terminal else "fold", no_wrap=terminal and name not in flexible)
    for row in cells[1:] if show_heading else cells:
        # The cells do not wrap either, though their column may be made narrower.
        grid.add_row(*(Text(cell, no_wrap=terminal, overflow="ellipsis") for cell in row))
    with console.capture() as captured:
        console.print(grid)
    write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def ask(prompt: str, *, hidden: bool = False) -> str:
    """Ask the person at the terminal for a line; what is typed is not shown where it is ``hidden``.

    Raises Interrupted at the end of the input.
    """
    try:
        if hidden:
            from getpass import getpass

            return getpass(one_line(prompt) + " ")
        _tell(one_line(prompt) + " ")
        return input()
    except EOFError:
        raise Interrupted("nothing was typed") from None


def is_terminal(descriptor: int) -> bool:
    """Whether a person is at the other end."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def terminal_width() -> int:
    """Columns of the terminal, or 80 where standard output is none."""
    from shutil import get_terminal_size

    return get_terminal_size((80, 24)).columns


def speaks_unicode() -> bool:
    """Whether standard output takes more than ASCII."""
    encoding = sys.stdout.encoding if sys.stdout else ""
    return "utf" in (encoding or "").lower()


def _tell(text: str) -> None:
    listener = getattr(_listeners, "here", None)
    if listener is not None:
        for line in text.splitlines():
            listener(line)
        return
    try:
        _write_all(2, text.encode("utf-8", "backslashreplace"))
    except OSError:
        return  # talk that nobody can hear is no reason to fail


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
