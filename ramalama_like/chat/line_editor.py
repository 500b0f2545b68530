"""Typing at the terminal: line editing, a history that is kept and can be searched, and pasted lines as one text."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

MOST_KEPT = 1000  # lines


class LineEditor:
    """Line editing by Python's readline, where this Python has it. The history is written when ``with`` ends.

    ``history_path`` may be empty: then nothing is kept. A history that cannot be read or written costs only that.
    """

    def __init__(self, history_path: str) -> None:
        self._path = history_path
        try:
            import readline
        except ImportError:
            self._readline = None
            return
        self._readline = readline
        if "libedit" not in (readline.__doc__ or ""):
            # A paste comes as one text, its line ends included, and nothing in it is taken for a key.
            readline.parse_and_bind("set enable-bracketed-paste on")
        readline.clear_history()
        readline.set_completer(None)

    def __enter__(self) -> LineEditor:
        if self._readline and self._path:
            try:
                self._readline.read_history_file(self._path)
            except (OSError, ValueError):
                self._readline.clear_history()
            self._readline.set_history_length(MOST_KEPT)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if not self._readline or not self._path or not self._readline.get_current_history_length():
            return
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            # What was asked is nobody else's business, also before the first line is in the file.
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._readline.write_history_file(self._path)
        except OSError:
            return

    def read(self, prompt: str) -> str:
        """Show a prompt and give the line that is typed. Raises EOFError at the end of the input."""
        return input(prompt)
