"""The folder that stands for ``/``: the only way in which the probes read.

Every read is capped, never blocks, never leaves the folder, and never fails: what cannot be read is None, and where
that is not simply because the file does not exist, ``notes`` gets a sentence.
"""

from __future__ import annotations

import os
from errno import ELOOP

from ramalama_like.facts import MOST, MOST_BYTES

SMALL = 64 * 1024  # more than any file of sysfs and proc that is read here
PAGE = 4096  # a file of sysfs has no more
MOST_NAMES = 8192  # of a folder: more than any machine has devices or processors
LARGE = 4 * 1024 * 1024  # a CDI spec of a machine with 16 cards has about 1 MiB


class Tree:
    """The files below a root. Paths are relative to it and do not start with a slash."""

    def __init__(self, root: str = "/") -> None:
        self.root = root
        self.real = root == "/"  # whether this is the machine that the program runs on
        self.notes: list[str] = []
        self._base = "/" if self.real else os.path.realpath(root) + "/"
        self._folders: dict[str, str | None] = {"": self._base[:-1]}
        self._walked: dict[str, bool] = {}  # folders that something led back from
        self._steps: dict[str, str | None] = {}  # where each folder, file or link really is

    def read(self, path: str, limit: int = SMALL) -> str | None:
        """The text of a file, or None. Undecodable bytes are replaced, so that one of them costs only its own fact."""
        data = self.read_bytes(path, limit)
        return None if data is None else data.decode("utf-8", "replace")

    def read_bytes(self, path: str, limit: int = SMALL) -> bytes | None:
        """The bytes of a file, or None where it is missing, unreadable or larger than ``limit``."""
        try:
            handle = self._open(path)
        except OSError as error:
            self._note_error(path, error)
            return None
        except ValueError:  # a null byte in a name that came out of another file
            return None
        if handle is None:
            return None
        try:
            data = os.read(handle, min(limit + 1, PAGE))
            # Files of proc come in pieces.
            while data and len(data) <= limit:
                more = os.read(handle, limit + 1 - len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            self._note_error(path, error)
            return None
        finally:
            os.close(handle)
        if len(data) > limit:
            self.note(path, f"is larger than {limit} bytes")
            return None
        return data

    def _open(self, path: str) -> int | None:
        """A descriptor of a file, or None where a link leads out of the root. Raises OSError, ValueError."""
        # O_NONBLOCK: a named pipe that nobody writes to would wait for ever.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        if not self.real:
            # Hardly any file is a link itself, and to find out by opening it saves one call for each.
            above, name = self._above(path)
            if above is None:
                return None
            try:
                return os.open(f"{above}/{name}", flags | os.O_NOFOLLOW) if name != ".." else None
            except OSError as error:
                if error.errno != ELOOP:
                    raise
        found = self.locate(path)
        return None if found is None else os.open(found, flags)

    def number(self, path: str) -> int | None:
        """The decimal number that a file holds, or None. A file that holds something else is noted."""
        text = self.read(path)
        if text is None:
            return None
        found = to_number(text)
        if found is None:
            self.note(path, "does not hold a number")
        return found

    def size(self, path: str) -> int | None:
        """The number of bytes that a file tells, or None, also for more than any machine has."""
        found = self.number(path)
        if found is not None and found > MOST_BYTES:
            self.note(path, "does not hold a number")
            return None
        return found

    def word(self, path: str) -> str:
        """The first line of a file without surrounding space; empty where there is none."""
        text = self.read(path)
        return text.strip().partition("\n")[0].strip() if text else ""

    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted; none where it is missing or unreadable."""
        found = self.locate(path)
        if found is None:
            return []
        try:
            names = sorted(os.listdir(found))
        except OSError as error:
            self._note_error(path, error)
            return []
        if len(names) > MOST_NAMES:
            self.note(path, f"holds more than {MOST_NAMES} names")
        return names[:MOST_NAMES]

    def link_name(self, path: str) -> str:
        """Last part of what a symbolic link points to, which need not exist; empty where there is no link."""
        try:
            target = os.readlink(self._base + path)
        except (OSError, ValueError):
            return ""
        name = os.path.basename(target)
        return os.path.basename(os.path.realpath(self._base + path)) if name in ("", ".", "..") else name

    def exists(self, path: str) -> bool:
        """Whether there is a file, folder or device node."""
        found = self.locate(path)
        return found is not None and os.path.exists(found)

    def locate(self, path: str) -> str | None:
        """Where a file is, or None where a link leads out of the root."""
        if self.real:
            return self._base + path
        above, name = self._above(path)
        return None if above is None else self._step(path, above, name, 0)

    def _above(self, path: str) -> tuple[str | None, str]:
        """Where the folder of a file is (None: out of the root), and the file's name."""
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            # More than 64 folders is nothing that is read here; a hostile file may name it.
            self._folders[folder] = self.locate(folder) if folder.count("/") < 64 else None
        return self._folders[folder], name

    def _step(self, path: str, above: str, name: str, links: int) -> str | None:
        """Where ``name`` in the folder ``above`` is; ``above`` holds no link, and neither does the result.

        os.path.realpath would look at every folder again for each file: most of the time that probing took.
        """
        if name in ("", ".", ".."):
            # The kernel goes nowhere from what is missing or no folder, not even back.
            if not self._is_folder(above):
                return None
            return self._inside(path, above.rpartition("/")[0]) if name == ".." else above
        here = f"{above}/{name}"
        if here in self._steps:
            return self._steps[here]
        try:
            target = os.readlink(here)
        except OSError:
            found: str | None = here  # the usual case: no link
        except ValueError:
            return None
        else:
            if target.startswith("/") or links > 40:
                found = self._inside(path, os.path.realpath(here))
                if found is not None and os.path.exists(found) and not os.path.exists(here):
                    found = None  # a/missing/../b is b only in writing
            else:
                found = self._follow(path, above, target, links + 1)
        self._steps[here] = found
        return found

    def _follow(self, path: str, above: str, target: str, links: int) -> str | None:
        """Where a relative link in the folder ``above`` leads. The folders of one are mostly those of the next."""
        folder, slash, name = target.rpartition("/")
        if slash:
            key = f"{above}/{folder}/"
            if key not in self._steps:
                here: str | None = above
                for part in folder.split("/"):
                    here = None if here is None else self._step(path, here, part, links)
                self._steps[key] = here
            where = self._steps[key]
            if where is None:
                return None
            above = where
        return self._step(path, above, name, links)

    def _is_folder(self, here: str) -> bool:
        if here not in self._walked:
            self._walked[here] = os.path.isdir(here)
        return self._walked[here]

    def _inside(self, path: str, here: str) -> str | None:
        if f"{here}/".startswith(self._base):
            return here
        self.note(path, "leads out of the folder")
        return None

    def note(self, path: str, what: str) -> None:
        """Remember that a file could not be used."""
        sentence = f"/{path} {what}"
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _note_error(self, path: str, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            self.note(path, f"cannot be read: {error.strerror or error}")


def to_number(text: str, base: int = 10, most: int = MOST) -> int | None:
    """A number up to ``most``, or None. Python's own grammar is wider: it takes 1_000 and Arabic digits."""
    text = text.strip()
    digits = text[2:] if base == 16 and text.startswith(("0x", "0X")) else text
    if not 0 < len(digits) <= 20 or not digits.isascii() or not digits.isalnum():
        return None
    try:
        number = int(digits, base)
    except ValueError:
        return None
    return number if number <= most else None


def pci_address(text: str) -> str:
    """A PCI address in the kernel's spelling, 0000:c4:00.0; empty where the text is none."""
    parts = text.strip().lower().split(":")
    if len(parts) == 2:
        parts.insert(0, "0000")
    if len(parts) != 3 or "." not in parts[2]:
        return ""
    slot, _, function = parts[2].partition(".")
    numbers = [to_number(part, 16) for part in (parts[0], parts[1], slot, function)]
    if None in numbers or len(parts[0]) > 8:
        return ""
    domain, bus, device, unit = (number or 0 for number in numbers)
    return f"{domain:04x}:{bus:02x}:{device:02x}.{unit:x}"
