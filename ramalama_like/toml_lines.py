"""In which line of a TOML text each key stands, so that an error about a value can name its place."""

from __future__ import annotations


def key_lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of every key in a TOML text that ``tomllib`` accepts, by its path; members of arrays count from 0.

    ``tomllib`` forgets where it found a value, so this walks over the text once more. Since the text is known to be
    valid, the walk only has to tell keys, strings, brackets and comments apart.
    """
    return _KeyLines(text).lines


class _KeyLines:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n") + "\n"
        self.at = 0
        self.counted, self.number = 0, 1  # a place and its line, from which the next ones are counted
        self.lines: dict[tuple[str | int, ...], int] = {}
        self.lengths: dict[tuple[str | int, ...], int] = {}  # of arrays that are written as [[tables]]
        table: tuple[str | int, ...] = ()
        self.blanks(newlines=True)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.blanks(newlines=True)

    def blanks(self, *, newlines: bool) -> None:
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "#" and newlines:
                self.at = self.text.index("\n", self.at)
            elif character not in " \t\n" or (character == "\n" and not newlines):
                return
            else:
                self.at += 1

    def header(self) -> tuple[str | int, ...]:
        line = self.line()
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        path: tuple[str | int, ...] = ()
        parts = self.key()
        self.at += brackets
        for place, part in enumerate(parts, 1):
            path = (*path, part)
            self.lines.setdefault(path, line)
            if brackets == 2 and place == len(parts):
                self.lengths[path] = self.lengths.get(path, 0) + 1
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
                self.lines.setdefault(path, line)
        return path

    def line(self) -> int:
        self.number += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.number

    def pair(self, table: tuple[str | int, ...]) -> None:
        line = self.line()
        path = table
        for part in self.key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.at += 1  # the equals sign
        self.value(path)

    def key(self) -> list[str]:
        parts: list[str] = []
        while True:
            self.blanks(newlines=False)
            start = self.at
            if self.text[start] in "\"'":
                import tomllib

                self.string()
                parts += tomllib.loads(f"{self.text[start : self.at]} = 0")
            else:
                while self.text[self.at] not in " \t.=]":
                    self.at += 1
                parts.append(self.text[start : self.at])
            self.blanks(newlines=False)
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def value(self, path: tuple[str | int, ...]) -> None:
        self.blanks(newlines=False)
        first = self.text[self.at]
        if first in "\"'":
            self.string()
        elif first in "[{":
            self.at += 1
            self.members(path, "]" if first == "[" else "}")
        else:
            while self.text[self.at] not in ",]}#\n":
                self.at += 1

    def members(self, path: tuple[str | int, ...], end: str) -> None:
        index = 0
        while True:
            self.blanks(newlines=True)
            if self.text[self.at] in (end, ","):
                self.at += 1
                if self.text[self.at - 1] == end:
                    return
            elif end == "}":
                self.pair(path)
            else:
                self.lines.setdefault((*path, index), self.line())
                self.value((*path, index))
                index += 1

    def string(self) -> None:
        quote = self.text[self.at]
        ending = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(ending)
        while not self.text.startswith(ending, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(ending)
        # A string in three quotes may end in one or two more, which belong to it.
        while len(ending) == 3 and self.text[self.at] == quote:
            self.at += 1
