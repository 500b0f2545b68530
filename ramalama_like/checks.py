"""Checking values. One arrives as text (from a flag or variable) or as TOML typed it, and leaves as its kind demands.

All origins pass through here, so that a mistake is refused in the same words wherever it was made.
"""

from __future__ import annotations

import os.path
import sys

from ramalama_like.errors import ValueProblem
from ramalama_like.options import FALSE_WORDS, TRUE_WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ramalama_like.options import Option

    # A raw value, its origin, its name in messages, and the folder that its relative paths start from (None: a flag).
    Found = tuple[object, str, str, str | None]

LARGEST = 2**63 - 1  # beyond it no program that we start could read the number
SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
DURATION_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def checked(option: Option, found: Found, home: str) -> Any:
    """The value of one layer, as its option's kind demands. ``home`` is what ``~`` stands for.

    Raises ValueProblem naming the layer.
    """
    raw, _, name, folder = found
    try:
        if option.kind == "path" or (option.kind == "output" and raw != "-"):
            return _path(_text(raw), folder, home)
        if folder == "" and option.kind in ("list", "table"):
            raw = _structured(option.kind, _text(raw))
        fit = _CHECKS[option.kind](raw, option)
        for word in str(fit).split(",") if option.kind == "names" else (fit,):
            if option.choices and word not in option.choices and (word or option.kind not in ("dryrun", "optional")):
                raise _no_choice(word, option.choices)
    except ValueProblem as why:
        # Where nothing better is known, what the option is for helps most.
        raise ValueProblem(f"{name}: {why}", why.hint or f"{option.help[0].lower()}{option.help[1:]}") from None
    return fit


def _no_choice(word: object, choices: tuple[str, ...]) -> ValueProblem:
    from difflib import get_close_matches

    near = get_close_matches(str(word), choices, 1)
    return ValueProblem(f"{quoted(word)} is not one of {', '.join(_nearest_first(word, choices))}",
                        f"did you mean {near[0]}?" if near else "")  # fmt: skip


def _text(raw: object, *_: object) -> str:
    if not isinstance(raw, str):
        raise ValueProblem("not text: put it in quotes")  # the value is not shown, it may be an API key
    if "\0" in raw:
        raise ValueProblem("a NUL byte cannot be passed on to any program")
    if not raw.isascii():
        try:
            os.fsencode(raw)
        except UnicodeEncodeError:  # JSON can spell it; no program can be given it
            raise ValueProblem("half of a surrogate pair is no text") from None
    return raw


def _whole(raw: object, option: Option) -> int:
    if isinstance(raw, str):
        digits = raw[1:] if raw[:1] in ("-", "+") else raw
        if not (digits.isascii() and digits.isdigit()):
            raise ValueProblem(f"{quoted(raw)} is not a whole number")
        # Python refuses, with an exception of its own, to read thousands of digits.
        raw = int(raw) if len(digits.lstrip("0")) < 20 else LARGEST + 1
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise ValueProblem(f"{shown(raw)} is not a whole number")
    if abs(raw) > LARGEST:
        raise ValueProblem("the number is too large")
    _within(raw, option)
    return raw


def _number(raw: object, option: Option) -> float:
    if isinstance(raw, str):
        try:
            # float() also takes forms that are no numbers to anyone else: 1_0, blanks around it, digits of any script.
            number = float(raw if raw.isascii() and "_" not in raw and raw == raw.strip() else "")
        except ValueError:
            raise ValueProblem(f"{quoted(raw)} is not a number") from None
    elif isinstance(raw, int | float) and not isinstance(raw, bool):
        number = float(raw) if abs(raw) <= sys.float_info.max else float("inf")
    else:
        raise ValueProblem(f"{shown(raw)} is not a number")
    if number - number != 0:  # neither infinity nor NaN passes
        raise ValueProblem(f"{shown(raw)} is not a finite number")
    _within(number, option)
    return number


def _within(number: float, option: Option) -> None:
    low, high = option.minimum, option.maximum
    if low is not None and high is not None and not low <= number <= high:
        raise ValueProblem(f"{number} is not between {low} and {high}", f"give a number from {low} to {high}")
    if low is not None and number < low:
        raise ValueProblem(f"{number} is less than {low}", f"give a number from {low} up")
    if high is not None and number > high:
        raise ValueProblem(f"{number} is more than {high}", f"give a number up to {high}")


def _size(raw: object, option: Option) -> int:
    """Bytes: a number, or text such as 8g, 512m, 1.5GiB. Units are binary multiples, as engines read them."""
    if isinstance(raw, str):
        text = raw.strip().lower()
        letters = text.lstrip("0123456789.")
        digits = text[: len(text) - len(letters)]
        factor = SIZE_UNITS.get(letters.removesuffix("b").removesuffix("i") if len(letters) > 1 else letters)
        whole, _, fraction = digits.partition(".")
        if factor is None or "." in fraction or not whole or not text.isascii() or len(digits) > 18:
            raise ValueProblem(f"{quoted(raw)} is not a size", "write it like 8g or 512m")
        size = int(float(digits) * factor) if fraction else int(whole) * factor
    elif isinstance(raw, int) and not isinstance(raw, bool):
        size = raw
    else:
        raise ValueProblem(f"{shown(raw)} is not a size", 'write it like "8g" or "512m"')
    if size > LARGEST:
        raise ValueProblem("the size is too large")
    if option.minimum is not None and size < option.minimum:
        raise ValueProblem(f"{shown(raw)} is less than {int(option.minimum) >> 20}m, the least that engines take",
                           "write it like 8g or 512m")  # fmt: skip
    return size


def _truth(raw: object, *_: object) -> bool:
    word = raw.lower() if isinstance(raw, str) else raw
    if isinstance(word, bool):
        return word
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueProblem(f"{shown(raw)} is neither {TRUE_WORDS[0]} nor {FALSE_WORDS[0]}", "write on or off")


def _texts(raw: object, *_: object) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple):
        raise ValueProblem(f"{shown(raw)} is not a list")
    return tuple(_text(member) for member in raw)


def _names(raw: object, *_: object) -> str:
    """One name or several, each once, without the blanks around them."""
    return ",".join(dict.fromkeys(name.strip() for name in _text(raw).split(",")))


def _words(raw: object, *_: object) -> tuple[str, ...]:
    return tuple(word for text in _texts(raw) for word in split_words(text))


def _table(raw: object, *_: object) -> dict[str, str]:
    if not isinstance(raw, dict):
        raise ValueProblem(f"{shown(raw)} is not a table")
    return {_text(key): _text(member) for key, member in raw.items()}


def _layers(raw: object, option: Option) -> str:
    if raw in ("all", "auto"):
        return str(raw)
    if isinstance(raw, str) and not (raw.isascii() and raw.lstrip("+-").isdigit()):
        raise ValueProblem(f"{quoted(raw)} is neither a number nor all nor auto")
    number = _whole(raw, option)
    if number < -1:
        raise ValueProblem(f"{number} is less than -1")
    return "all" if number == -1 else str(number)


def _form(raw: object, *_: object) -> str:
    """The form of a dry run: the flag names it; the variable may also say yes or no."""
    text = _text(raw)
    return "text" if text.lower() in TRUE_WORDS else "" if text.lower() in FALSE_WORDS else text


def _optional(raw: object, *_: object) -> str:
    return _text(raw).upper()  # as the choices are spelled


def _duration(raw: object, *_: object) -> str:
    text = _text(raw)
    duration_seconds(text)
    return text


def duration_seconds(text: str) -> int:
    """The length of ``30``, ``90s``, ``5m``, ``1h``, ``2d`` or ``1w``; 0 for the empty string."""
    if not text:
        return 0
    digits = text[:-1] if text[-1] in DURATION_UNITS else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        raise ValueProblem(f"{quoted(text)} is not a duration such as 30, 90s, 5m, 1h, 2d or 1w")
    return int(digits) * DURATION_UNITS.get(text[-1], 1)


def _path(text: str, folder: str | None, home: str) -> str:
    if not text:
        raise ValueProblem("the path is empty")
    # The shell has expanded what stands in a flag already; nobody has expanded a file or a variable.
    expanded = text if folder is None else with_home(text, home)
    try:
        return os.path.abspath(os.path.join(folder or "", expanded))
    except FileNotFoundError:
        raise ValueProblem(f"{quoted(text)} is relative, and the current folder no longer exists") from None


def with_home(text: str, home: str) -> str:
    """A path with ``~`` and ``~name`` replaced."""
    if text == "~" or text[:2] == "~/":
        return home + text[1:]
    return os.path.expanduser(text) if text[:1] == "~" else text


def _structured(kind: str, text: str) -> object:
    """A list or a table in a variable: separated by commas, or JSON."""
    if kind == "list":
        return [member.strip() for member in text.split(",") if member.strip()]
    import json

    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueProblem('the value is not JSON such as {"cuda": "IMAGE"}') from None
    return parsed


_CHECKS: Mapping[str, Callable[[object, Option], object]] = {
    "str": _text,
    "output": _text,
    "int": _whole,
    "float": _number,
    "size": _size,
    "bool": _truth,
    "flag": _truth,
    "list": _texts,
    "names": _names,
    "args": _words,
    "table": _table,
    "layers": _layers,
    "duration": _duration,
    "dryrun": _form,
    "optional": _optional,
}


def quoted(text: object) -> str:
    """Text in quotes, for a message."""
    return f"'{text}'" if str(text).isprintable() else repr(text)


def shown(raw: object) -> str:
    """A value in an error message, as its file spells it."""
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, list | tuple):
        return "a list"
    if isinstance(raw, dict):
        return "a table"
    if isinstance(raw, int) and abs(raw) > LARGEST:
        return "a number of very many digits"  # which Python may refuse to spell
    return quoted(raw) if isinstance(raw, str) else str(raw)


def _nearest_first(word: object, known: Iterable[str]) -> list[str]:
    from difflib import SequenceMatcher

    return sorted(known, key=lambda k: -SequenceMatcher(None, str(word), k).ratio())


def split_words(text: str) -> list[str]:
    """Split text as a POSIX shell would, with quotes and backslashes but without expanding anything.

    The same as ``shlex.split``, whose import alone takes several milliseconds.
    """
    words: list[str] = []
    word: str | None = None
    quote = ""
    characters = iter(text)
    for character in characters:
        if quote == "'" or (quote and character not in ("\\", quote)):
            if character == quote:
                quote = ""
            else:
                word = (word or "") + character
        elif quote and character == quote:
            quote = ""
        elif character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise ValueProblem(f"a backslash at the end of {text!r} escapes nothing")
            word = (word or "") + (character if quote and escaped not in ("\\", quote) else "") + escaped
        elif character in "'\"":
            quote, word = character, word or ""
        elif character in " \t\r\n":
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + character
    if quote:
        raise ValueProblem(f"a quotation is not closed in {text!r}")
    return words if word is None else [*words, word]
