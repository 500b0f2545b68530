"""Names in archives of images: which file each of them finally is, and none that leads out of the archive. Pure.

Layers lie over each other: a later one replaces files and removes them by marks (OCI image specification, "whiteouts").
Links are kept as names of other names in the archive, never as links of this machine.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.models.record_files import is_file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Generic, TypeVar

    T = TypeVar("T")
else:
    T = object

    class Generic:
        """Only for type checkers."""

        def __class_getitem__(cls, _: object) -> type:
            return object


LONGEST_NAME = 4096  # as in Linux
MOST_LINKS = 40  # one after the other, as in Linux
_HARM = "do not use it: its maker means harm, or its program is faulty"
_MARK, _ALL = ".wh.", ".wh..wh..opq"


def plain_name(name: str, archive: str) -> str:
    """A name within an archive, without what means nothing. Raises ValueProblem for one that leads out of it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueProblem(f"{archive}: holds a file with the name {name!r}, which leads out of the archive",
                           _HARM)  # fmt: skip
    if "\0" in name or any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        raise ValueProblem(f"{archive}: holds a file with control characters in its name: {name!r}",
                           _HARM)  # fmt: skip
    plain = "/".join(parts)
    if len(plain) > LONGEST_NAME:
        raise ValueProblem(f"{archive}: holds a file with a name of {len(plain)} letters", _HARM)
    return plain


def _parts(name: str) -> list[str]:
    return name.split("/") if name else []


def check_kept(name: str, archive: str) -> str:
    """The plain name itself, if its last part can be that of a file in the store. Raises ValueProblem."""
    if not is_file_name(name.rpartition("/")[2]):
        raise ValueProblem(f"{archive}: holds a file with the name {name!a}, which is too long or holds characters "
                           "that cannot be seen", _HARM)  # fmt: skip
    return name


class Layers(Generic[T]):
    """The names of all layers so far, each with what it stands for: a file, or a link to another name."""

    def __init__(self, archive: str) -> None:
        self.archive = archive
        self._files: dict[str, T] = {}
        self._links: dict[str, str] = {}
        # Folders within folders, so that what lies below a name is found without looking at all the others; under
        # the empty name stands the whole name of what is a file or link itself.
        self._tree: dict[str, Any] = {}

    def add_file(self, name: str, file: T) -> None:
        """A file replaces whatever had its name."""
        self.remove(name)
        self._plant(name)
        self._files[name] = file

    def add_link(self, name: str, target: str, *, hard: bool) -> None:
        """A link to ``target``: hard ones name it from the root of the archive, others from their own folder."""
        self.remove(name)
        folder = name.rpartition("/")[0]
        end = self._joined("" if hard or target.startswith("/") else folder, target, name)
        self._plant(name)
        self._links[name] = end

    def mark(self, name: str) -> bool:
        """Whether this is the mark of something that a layer removes from those below; then it is removed."""
        folder, _, last = name.rpartition("/")
        if not last.startswith(_MARK):
            return False
        if last == _ALL:
            self.remove(folder, itself=False)
        else:
            self.remove(f"{folder}/{last.removeprefix(_MARK)}".lstrip("/"))
        return True

    def remove(self, name: str, *, itself: bool = True) -> None:
        """Remove a name and everything below it."""
        found: Any = self._tree
        for part in _parts(name):
            above, found = found, found.get(part)
            if found is None:
                return
        if itself and name:
            del above[name.rpartition("/")[2]]
            doomed = [found]
        else:
            doomed = [found.pop(part) for part in [part for part in found if part or itself]]
        while doomed:
            each = doomed.pop()
            if isinstance(each, str):
                self._files.pop(each, None)
                self._links.pop(each, None)
            else:
                doomed.extend(each.values())

    def _plant(self, name: str) -> None:
        place = self._tree
        for part in _parts(name):
            place = place.setdefault(part, {})
        place[""] = name

    def files(self) -> dict[str, T]:
        """The names of files, links left out."""
        return dict(self._files)

    def links(self) -> dict[str, str]:
        """Names of links that lead to a file in the end, each with that file's name."""
        return {name: end for name in self._links if (end := self.follow(name)) in self._files}

    def follow(self, name: str) -> str:
        """Where a name leads to, links of folders included; empty where it goes round in circles."""
        for _ in range(MOST_LINKS):
            if name in self._files:
                return name
            head = self._first_link(name)
            if not head:
                return name
            name = (self._links[head] + name[len(head) :]).lstrip("/")
        return ""

    def _first_link(self, name: str) -> str:
        """The first link on the way to a name; empty where there is none."""
        place: Any = self._tree
        for part in _parts(name):
            place = place.get(part)
            if place is None:
                return ""
            if place.get("") in self._links:
                return str(place[""])
        return ""

    def _joined(self, folder: str, target: str, name: str) -> str:
        parts = _parts(folder)
        if len(target) > LONGEST_NAME:
            raise ValueProblem(f"{self.archive}: holds the link {name!r} to a name of {len(target)} letters", _HARM)
        for part in target.split("/"):
            if part == "..":
                if not parts:
                    raise ValueProblem(
                        f"{self.archive}: holds the link {name!r} to {target!r}, which leads out of the archive", _HARM
                    )
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return "/".join(parts)
