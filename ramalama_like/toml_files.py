"""Reading the user's TOML files: each way in which one can be wrong becomes an error that names file and line."""

from __future__ import annotations

import os
from errno import EFBIG, EINVAL, ENXIO

from ramalama_like.errors import ValueProblem
from ramalama_like.files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST_BYTES = 1 << 20  # more is no configuration, and would be parsed for minutes


def read_text(path: str) -> str | None:
    """The text of a file; None where there is no such file. Raises ValueProblem for one that cannot be read."""
    try:
        content = read_file(path, LARGEST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise ValueProblem(f"{path} is a folder, not a configuration file") from None
    except OSError as error:
        if not os.path.lexists(path):
            return None
        if error.errno == EFBIG:
            raise _too_large(path) from None
        if error.errno in (EINVAL, ENXIO):
            said = "is not a file" if error.errno == ENXIO else error.strerror  # ENXIO: a socket
            raise ValueProblem(f"{path} {said}") from None
        raise unreadable(path, error) from None
    try:
        return content.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueProblem(f"{path}:{line}: not UTF-8 text", "save the file in UTF-8") from None


def _too_large(path: str) -> ValueProblem:
    return ValueProblem(f"{path}: is larger than {LARGEST_BYTES >> 20} MiB", "name another file, or make it smaller")


def unreadable(path: str, error: OSError) -> ValueProblem:
    """The error for a file or folder that is there but may not be read."""
    hint = "make it readable, or let RAMALAMA_CONFIG name the only file to read"
    return ValueProblem(f"{path}: {(error.strerror or str(error)).lower()}", hint, exit_code=5)


def parse(path: str, text: str) -> dict[str, Any]:
    """What a TOML text holds. Raises ValueProblem naming the line."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said, _, place = str(error).partition(" (at ")
        number = place.removeprefix("line ").partition(",")[0]
        line = int(number) if number.isdigit() else len(text.rstrip().splitlines())
        raise ValueProblem(f"{path}:{line}: {said[:1].lower()}{said[1:]}", "the file must be TOML") from None
    except ValueError:  # Python reads no number of more than some thousand digits
        raise ValueProblem(f"{path}:{_line_of_digits(text)}: a number of thousands of digits") from None
    except RecursionError:
        raise _too_deep(path) from None


def _line_of_digits(text: str) -> int:
    """The line with most digits."""
    lines = text.split("\n")
    return max(range(len(lines)), key=lambda number: sum(map(str.isdigit, lines[number]))) + 1


def parse_with_lines(path: str, text: str) -> tuple[dict[str, Any], dict[tuple[str | int, ...], int]]:
    """As ``parse``, with the line of every key. Raises ValueProblem naming the line."""
    from ramalama_like.toml_lines import key_lines

    content = parse(path, text)
    try:
        return content, key_lines(text)
    except RecursionError:
        raise _too_deep(path) from None


def _too_deep(path: str) -> ValueProblem:
    return ValueProblem(f"{path}: nested too deeply", "write it without so many brackets")
