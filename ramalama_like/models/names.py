"""Names that hubs hand out: which of them may be used here, and which look like one that does not exist. Pure."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_LETTERS = 1024  # of a path
_MOST_LETTERS_OF_PART = 255  # what file systems take


def is_safe_path(path: object) -> bool:
    """Whether a path from a hub stays below the folder that it is put into, and can be shown.

    Absolute paths, empty parts, ``.``, ``..``, backslashes and control characters are refused.
    """
    if not isinstance(path, str) or not 0 < len(path) <= MOST_LETTERS:
        return False
    if not path.isprintable() or "\\" in path or any("\ud800" <= letter <= "\udfff" for letter in path):
        return False
    return all(
        part not in ("", ".", "..") and len(part.encode()) <= _MOST_LETTERS_OF_PART and part == part.strip()
        for part in path.split("/")
    )


def check_endpoint(address: str, name: str, example: str) -> str:
    """The address of a hub, without slashes at its end. Raises ValueProblem, naming the variable or key it is from."""
    scheme, mark, rest = address.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2]
    if not mark or scheme.lower() not in ("http", "https") or not host or not rest.isprintable() or " " in rest:
        shown = "".join(letter if letter.isprintable() else "?" for letter in address.rpartition("@")[2])
        raise ValueProblem(f"{name}: {shown} is no address of a hub", f"write it like {example}")
    return address.rstrip("/")


def is_sha256(text: object) -> bool:
    """Whether this is a sum as it is written everywhere here: 64 lower-case hexadecimal digits."""
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")


def nearest(name: str, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The names that look most like one, whatever their case; none that look quite different, or much less alike."""
    from difflib import SequenceMatcher, get_close_matches

    spelled: dict[str, str] = {}
    for known in names:
        spelled.setdefault(known.lower(), known)
    wanted = name.lower()
    found = get_close_matches(wanted, spelled, most, 0.6)
    likeness = [SequenceMatcher(None, key, wanted).ratio() for key in found]  # the best is the first
    return tuple(spelled[key] for key, ratio in zip(found, likeness, strict=True) if ratio > likeness[0] - 0.2)


def size_text(size_bytes: int) -> str:
    """A size as people say it, in decimal units as hubs show it; nothing where it is not known (negative)."""
    if size_bytes < 0:
        return ""
    size = float(size_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 999.5 or (unit != "bytes" and size < 999.95):
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
