"""The user's own rows for the tables: ``ramalama-like/tables/NAME.toml`` below /etc and the configuration folder."""

from __future__ import annotations

import os

from ramalama_like import data, toml_files
from ramalama_like.data import overlay
from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FOLDER = "ramalama-like/tables"
FAMILY_KEY = "default_family"


def read_tables(folders: Sequence[str], warnings: list[str]) -> tuple[tuple[str, ...], str]:
    """Lay the tables of ``folders`` (the weakest first) over the built-in ones.

    Returns the files that were read, and where one names the default family of images (empty: none does).
    Raises ValueProblem for one that cannot be used, by file and line.
    """
    names = tuple(overlay.OPEN)
    merged: dict[str, dict[str, Any]] = {}
    lines: dict[str, list[tuple[str, dict[tuple[str | int, ...], int]]]] = {}
    read: list[str] = []
    for folder in folders:
        for entry in _entries(folder):
            path, name = f"{folder}/{entry}", entry.removesuffix(".toml")
            if name not in names:
                warnings.append(f"{path} has no effect: the tables are {', '.join(names)}")
                continue
            text = toml_files.read_text(path)
            if text is None:
                continue
            content, found = toml_files.parse_with_lines(path, text)
            lines.setdefault(name, []).append((path, found))
            base = merged.get(name) or data.built_in(name)
            merged[name] = overlay.merge_table(name, base, content, lambda place: _place([lines[name][-1]], place))  # noqa: B023
            read.append(path)
    if read:
        for name in ("accelerators", "images"):
            merged[name] = dict(merged.get(name) or data.built_in(name))
        overlay.complete_names(merged, lambda name, place: _place(lines.get(name, []), place))
    data.use_tables(merged)
    named = any((FAMILY_KEY,) in places for _, places in lines.get("images", ()))
    return tuple(read), _place(lines["images"], (FAMILY_KEY,)) if named else ""


def _entries(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".toml") and name[0] != ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if not os.path.isdir(folder):
            return []
        raise toml_files.unreadable(folder, error) from None


def _place(files: Sequence[tuple[str, dict[tuple[str | int, ...], int]]], place: tuple[str | int, ...]) -> str:
    """File and line of a key, or of the nearest table above it that a file names."""
    while place:
        for path, lines in reversed(files):
            line = lines.get(place) or lines.get((*place[:-1], f"{place[-1]}+"))
            if line:
                return f"{path}:{line}"
        place = place[:-1]
    if not files:
        raise ValueProblem("the built-in tables do not fit each other")
    return files[-1][0]
