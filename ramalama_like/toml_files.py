"""Reading the user's TOML files: each way in which one can be wrong becomes an error that names file and line."""

from __future__ import annotations

import os

from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST_BYTES = 1 << 20  # more is no configuration, and would be parsed for minutes


def read_text(path: str) -> str | None:
    """The text of a file; None where there is no such file. Raises ValueProblem for one that cannot be read."""
    other = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    if other and os.path.realpath(path) != os.devnull:  # which is how one says "no file"
        raise ValueProblem(f"{path} is not a file")  # a pipe would be waited for
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise ValueProblem(f"{path} is a folder, not a configuration file") from None
    except OSError as error:
        if not os.path.lexists(path):
            return None
        raise unreadable(path, error) from None
    if len(content) > LARGEST_BYTES:
        raise ValueProblem(f"{path}: is larger than {LARGEST_BYTES >> 20} MiB", "name another file, or make it smaller")
    try:
        return content.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueProblem(f"{path}:{line}: not UTF-8 text", "save the file in UTF-8") from None


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
    except RecursionError:
        raise _too_deep(path) from None


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
