"""Names of files that others chose, before they become paths here. Pure."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem

LONGEST_PART = 255  # bytes that file systems allow for one name
LONGEST_PATH = 2048


def check_path(path: str, source: str) -> str:
    """``path`` itself, if it stays within whatever folder it is put into. Raises ValueProblem, naming ``source``.

    Refused are absolute paths, steps upwards or to nowhere (``..``, ``.``, empty), control characters and others
    that cannot be seen, backslashes, halves of characters, and names that no file system takes. Links are not a
    matter of names: whoever opens a file in the store does not follow them.
    """
    reason = _reason(path)
    if reason:
        raise ValueProblem(f"{source}: offers a file named {path!a}, which is refused: {reason}", "get it elsewhere")
    return path


def check_name(name: str, source: str) -> str:
    """As ``check_path``, for the name of one file: no folders. Raises ValueProblem."""
    if "/" in name:
        raise ValueProblem(f"{source}: offers a file named {name!a}, which is refused: it names a folder too",
                           "get it elsewhere")  # fmt: skip
    return check_path(name, source)


def _reason(path: str) -> str:
    if not path:
        return "it has no name"
    if path.startswith("/"):
        return "it is an absolute path"
    try:
        if len(path.encode()) > LONGEST_PATH or any(len(part.encode()) > LONGEST_PART for part in path.split("/")):
            return "it is too long"
    except UnicodeEncodeError:
        return "it holds half a character"
    if any(ord(letter) < 32 or ord(letter) == 127 or 128 <= ord(letter) < 160 for letter in path):
        return "it holds control characters"
    if not path.isprintable():
        return "it holds characters that cannot be seen"
    if "\\" in path:
        return "it holds a backslash"
    if any(part in ("", ".", "..") for part in path.split("/")):
        return "it leads out of its folder"
    return ""
