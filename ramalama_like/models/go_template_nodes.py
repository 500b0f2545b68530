"""The template language of Go's ``text/template``, read into nodes: as much of it as templates of models use.

Pure. What is not understood raises ``Unsupported``; nothing is guessed.
"""

from __future__ import annotations

import re

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Unsupported(Exception):
    """A construct that cannot be converted; the text names it."""


@value
class Text:
    """Characters that stand for themselves, white space already trimmed."""

    text: str


@value
class Literal:
    """A string, number, true, false or nil."""

    value: str | int | float | bool | None


@value
class Path:
    """``.A.B``, ``$.A``, ``$name.A`` or ``(…).A``: fields of something."""

    base: str | Call | Path  # "." the cursor, "$" the whole input, "$name" a variable
    names: tuple[str, ...] = ()


@value
class Call:
    """A function with its arguments."""

    function: str
    arguments: tuple[Expression, ...]


@value
class Output:
    """An expression whose value is printed."""

    expression: Expression


@value
class Assign:
    """``$name := …`` (declares) or ``$name = …``."""

    name: str
    expression: Expression
    declares: bool


@value
class If:
    """``if``, and ``with``, which moves the cursor to what it found."""

    condition: Expression
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()
    moves: bool = False


@value
class Range:
    """A loop; ``key`` and ``item`` are names of variables, or empty."""

    over: Expression
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()
    key: str = ""
    item: str = ""


@value
class Jump:
    """``break`` or ``continue``."""

    word: str


if TYPE_CHECKING:
    Expression = Literal | Path | Call
    Node = Text | Output | Assign | If | Range | Jump

MOST_DEPTH = 60
_KEYWORDS = ("if", "else", "end", "range", "with", "break", "continue", "define", "template", "block")
_TOKEN = re.compile(r"""
    (?P<space>[ \t\r\n]+)
  | (?P<string>"(?:[^"\\\n]|\\.)*" | `[^`]*`)
  | (?P<number>[+-]?[0-9]+(?:\.[0-9]+)?(?![\w.]))
  | (?P<field>(?:\.[^\W\d]\w*)+)
  | (?P<variable>\$\w*)
  | (?P<word>[^\W\d]\w*)
  | (?P<mark>:=|=|,|\||\(|\)|\.)
""", re.VERBOSE)  # fmt: skip
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))")
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"'}


def parse_template(text: str) -> tuple[Node, ...]:
    """The nodes of a template. Raises Unsupported."""
    reader = _Reader(_pieces(text))
    nodes, ended = reader.nodes(0)
    if ended:
        raise Unsupported(f"{ended} without a beginning")
    return nodes


def _pieces(text: str) -> list[tuple[bool, str]]:
    """The template cut into text (False) and actions (True), white space trimmed as the marks ask."""
    found: list[tuple[bool, str]] = []
    place, trims = 0, False
    while True:
        begin = text.find("{{", place)
        plain = text[place:] if begin < 0 else text[place:begin]
        if trims:
            plain = plain.lstrip(" \t\r\n")
        if begin < 0:
            found.append((False, plain))
            return found
        inside = begin + 2
        if text[inside : inside + 1] == "-" and text[inside + 1 : inside + 2] in (" ", "\t", "\r", "\n"):
            plain = plain.rstrip(" \t\r\n")
            inside += 1
        found.append((False, plain))
        action, place = _action(text, inside)
        trims = action.endswith(tuple(f"{space}-" for space in " \t\r\n"))
        action = (action[:-1] if trims else action).strip(" \t\r\n")
        if not (action.startswith("/*") and action.endswith("*/")):
            found.append((True, action))


def _action(text: str, begin: int) -> tuple[str, int]:
    """The inside of the action from ``begin``, and where the text goes on. Marks within strings do not count."""
    if text[begin:].lstrip(" \t\r\n").startswith("/*"):
        closed = text.find("*/", begin)
        end = text.find("}}", closed)
        if closed < 0 or end < 0:
            raise Unsupported("a comment without an end")
        return text[begin:end], end + 2
    place = begin
    while place < len(text):
        if text.startswith("}}", place):
            return text[begin:place], place + 2
        if text[place] in '"`':
            quoted = _TOKEN.match(text, place)
            if quoted is None:
                raise Unsupported("a string without an end")
            place = quoted.end()
        else:
            place += 1
    raise Unsupported("an action without an end")


class _Reader:
    """Goes through the pieces once."""

    def __init__(self, pieces: list[tuple[bool, str]]) -> None:
        self.pieces = pieces
        self.place = 0

    def nodes(self, depth: int) -> tuple[tuple[Node, ...], str]:
        """Nodes up to an ``else``, an ``end`` (its action is returned too) or the end of the text."""
        if depth > MOST_DEPTH:
            raise Unsupported("blocks are nested too deeply")
        found: list[Node] = []
        while self.place < len(self.pieces):
            is_action, text = self.pieces[self.place]
            self.place += 1
            if not is_action:
                if text:
                    found.append(Text(text))
                continue
            word = text.partition(" ")[0].partition("(")[0].strip()
            if word in ("else", "end"):
                return tuple(found), " ".join(text.split())
            found.append(self.node(text, word, depth))
        return tuple(found), ""

    def node(self, text: str, word: str, depth: int) -> Node:
        if word in ("break", "continue") and text == word:
            return Jump(word)
        if word in ("if", "with"):
            return self.condition(text[len(word) :], depth, moves=word == "with")
        if word == "range":
            return self.loop(text[len(word) :], depth)
        if word in _KEYWORDS:
            raise Unsupported(word)
        names, declares, expression = _parse_pipe(text)
        if names:
            if len(names) > 1:
                raise Unsupported("two variables outside of range")
            return Assign(names[0], expression, declares)
        return Output(expression)

    def condition(self, text: str, depth: int, *, moves: bool) -> If:
        names, _, expression = _parse_pipe(text)
        if names:
            raise Unsupported("a variable in a condition")
        body, ended = self.nodes(depth + 1)
        return If(expression, body, self.otherwise(ended, depth), moves)

    def otherwise(self, ended: str, depth: int) -> tuple[Node, ...]:
        """What follows the body of a condition or loop, whose last action was ``ended``."""
        if ended == "end":
            return ()
        if ended == "else":
            nodes, ended = self.nodes(depth + 1)
            if ended != "end":
                raise Unsupported("else twice" if ended else "a block without an end")
            return nodes
        for word in ("if", "with"):
            begin = f"else {word}"
            if ended.startswith(begin) and ended[len(begin) : len(begin) + 1] in (" ", "("):
                if depth > MOST_DEPTH:
                    raise Unsupported("blocks are nested too deeply")
                # The action as it was written: joining its words may have changed a string.
                action = self.pieces[self.place - 1][1]
                rest = action[action.index(word, len("else")) + len(word) :]
                return (self.condition(rest, depth + 1, moves=word == "with"),)
        raise Unsupported(ended or "a block without an end")

    def loop(self, text: str, depth: int) -> Range:
        names, declares, over = _parse_pipe(text)
        if names and not declares:
            raise Unsupported("range over variables that are there already")
        body, ended = self.nodes(depth + 1)
        key, item = (("", ""), ("", *names), names)[len(names)]
        return Range(over, body, self.otherwise(ended, depth), key, item)


def _parse_pipe(text: str) -> tuple[tuple[str, ...], bool, Expression]:
    """Variables that are set (at most two), whether they are declared, and the expression."""
    words = _words(text)
    names: list[str] = []
    declares = False
    for place, (kind, word) in enumerate(words):
        if word in (":=", "=") and kind == "mark":
            head = words[:place]
            if [kind for kind, _ in head] not in (["variable"], ["variable", "mark", "variable"]):
                raise Unsupported(f"an assignment to {' '.join(word for _, word in head)}")
            names = [word for kind, word in head if kind == "variable"]
            declares = word == ":="
            words = words[place + 1 :]
            break
    parser = _Expressions(words)
    expression = parser.pipe(0)
    if parser.place < len(words):
        raise Unsupported(f"{words[parser.place][1]} at an unexpected place")
    return tuple(names), declares, expression


def _words(text: str) -> list[tuple[str, str]]:
    """Tokens. White space is kept as one where it matters: before a field (``$x .Y`` are two, ``$x.Y`` is one)."""
    found: list[tuple[str, str]] = []
    place, spaced = 0, True
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise Unsupported(f"{text[place : place + 10]!r}")
        kind, word = match.lastgroup or "", match.group()
        place = match.end()
        if kind != "space":
            attached = kind == "field" and not spaced and found and (found[-1][0] == "variable" or found[-1][1] == ")")
            found.append(("of" if attached else kind, word))
        spaced = kind == "space"
    return found


class _Expressions:
    """The grammar of pipelines: commands separated by bars, operands separated by white space."""

    def __init__(self, words: list[tuple[str, str]]) -> None:
        self.words = words
        self.place = 0

    def pipe(self, depth: int) -> Expression:
        if depth > MOST_DEPTH:
            raise Unsupported("parentheses are nested too deeply")
        found = self.command(None, depth)
        while self.here() == ("mark", "|"):
            self.place += 1
            found = self.command(found, depth)
        return found

    def here(self) -> tuple[str, str]:
        return self.words[self.place] if self.place < len(self.words) else ("", "")

    def command(self, piped: Expression | None, depth: int) -> Expression:
        kind, word = self.here()
        if kind == "word" and word not in ("true", "false", "nil"):
            self.place += 1
            arguments = self.operands(depth)
            return Call(word, (*arguments, piped) if piped is not None else tuple(arguments))
        if piped is not None:
            raise Unsupported("a bar before something that is no function")
        operands = self.operands(depth)
        if len(operands) != 1:
            raise Unsupported("arguments for something that is no function" if operands else "an empty action")
        return operands[0]

    def operands(self, depth: int) -> list[Expression]:
        found: list[Expression] = []
        while True:
            kind, word = self.here()
            if kind == "mark" and word == "(":
                self.place += 1
                inner = self.pipe(depth + 1)
                if self.here() != ("mark", ")"):
                    raise Unsupported("an open parenthesis")
                self.place += 1
                names = self.names()
                if names and isinstance(inner, Literal):
                    raise Unsupported("a field of a constant")
                found.append(Path(inner, names) if names and not isinstance(inner, Literal) else inner)
                continue
            reads: Callable[[str], Expression] | None = _OPERANDS.get(kind)
            if reads is None and not (kind == "mark" and word == "."):
                return found
            self.place += 1
            if kind == "variable":
                found.append(Path(word, self.names()))
            elif reads is None:
                found.append(Path("."))
            else:
                found.append(reads(word))

    def names(self) -> tuple[str, ...]:
        kind, word = self.here()
        if kind != "of":
            return ()
        self.place += 1
        return tuple(word[1:].split("."))


def _string(word: str) -> Literal:
    if word[0] == "`":
        return Literal(word[1:-1])
    inside = word[1:-1]
    if "\\" in _ESCAPE.sub("", inside):
        raise Unsupported("an unknown escape in a string")

    def plain(match: re.Match[str]) -> str:
        letter, hexadecimal, short, long, octal = match.groups()
        if letter:
            return _PLAIN[letter]
        number = int(hexadecimal or short or long or octal, 8 if octal else 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000 or ((hexadecimal or octal) and number > 0x7F):
            raise Unsupported("a byte that is no character in a string")
        return chr(number)

    return Literal(_ESCAPE.sub(plain, inside))


def _number(word: str) -> Literal:
    return Literal(float(word) if "." in word else int(word))


def _word(word: str) -> Literal | Call:
    return Literal({"true": True, "false": False, "nil": None}[word]) if word in ("true", "false", "nil") else Call(
        word, ()
    )  # fmt: skip


def _field(word: str) -> Path:
    return Path(".", tuple(word[1:].split(".")))


def _variable(word: str) -> Path:
    return Path(word)


_OPERANDS: dict[str, Callable[[str], Expression]] = {
    "string": _string, "number": _number, "word": _word, "field": _field, "variable": _variable,
}  # fmt: skip
