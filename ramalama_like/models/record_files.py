"""How a record of the store is written: the name of its file, and the JSON in it."""

from __future__ import annotations

from ramalama_like.record import Record, StoredFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
LARGEST_RECORD = 16 << 20  # bytes; real ones have hundreds
ENDING = ".json"
LATEST_S = 253402300799  # the end of the year 9999, the last that dates can be shown of
MOST_BYTES = (1 << 63) - 1  # that a file system can say a file has
LONGEST = 200  # bytes of a file name; file systems take 255
# Characters that stand for themselves in file names everywhere. Capital letters do not: many file systems of macOS
# take A and a for the same.
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.:@+=,")
_QUOTED = {code: f"!{chr(code).lower()}" if chr(code).isupper() else f"%{code:02x}" for code in range(128)
           if chr(code) not in _PLAIN}  # fmt: skip
_HEX = frozenset("0123456789abcdef")


def is_sha256(text: object) -> bool:
    """Whether this is a SHA-256 sum as the store spells it: 64 lower-case hexadecimal digits."""
    return isinstance(text, str) and len(text) == 64 and _HEX.issuperset(text)


def is_file_name(text: object) -> bool:
    """Whether this can be the name of one file, in this folder and no other."""
    return (isinstance(text, str) and text not in ("", ".", "..") and "/" not in text and text.isprintable()
            and (len(text) < 64 or len(text.encode("utf-8", "surrogateescape")) <= 255))  # fmt: skip


def quote_name(name: str) -> str:
    """A model's name as a file name, without an ending: ``!a`` for A, ``%2f`` for /. Different names stay different,
    also where the file system takes capital letters for small ones; one that is too long ends in its hash."""
    quoted = name.translate(_QUOTED)
    if not name.isascii():
        quoted = "".join(c if c.isascii() else "".join(f"%{b:02x}" for b in c.encode("utf-8", "surrogateescape"))
                         for c in quoted)  # fmt: skip
    if quoted[:1] == ".":  # what begins with a dot is not listed
        quoted = f"%2e{quoted[1:]}"
    if len(quoted) <= LONGEST:
        return quoted
    from hashlib import sha256

    return f"{quoted[: LONGEST - 65]}~{sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()}"


def unquote_name(quoted: str) -> str:
    """The name that a file name stands for; the text itself where it is none that ``quote_name`` makes in full."""
    raw, at = bytearray(), 0
    while at < len(quoted):
        character = quoted[at]
        if character == "%":
            digits = quoted[at + 1 : at + 3]
            if len(digits) != 2 or not _HEX.issuperset(digits):
                return quoted
            raw.append(int(digits, 16))
            at += 3
        elif character == "!":
            raw += quoted[at + 1 : at + 2].upper().encode("utf-8", "surrogateescape")
            at += 2
        else:
            raw += character.encode("utf-8", "surrogateescape")
            at += 1
    name = raw.decode("utf-8", "surrogateescape")
    return name if quote_name(name) == quoted else quoted


def record_to_bytes(record: Record) -> bytes:
    """The content of a record's file."""
    from json import dumps

    files = [{name: member for name, member in vars(file).items() if member not in ("", 0) or name == "size_bytes"}
             for file in record.files]  # fmt: skip
    plain = {"version": VERSION, "name": record.name, "pulled_s": record.pulled_s, "revision": record.revision,
             "source": record.source, "files": files}  # fmt: skip
    return (dumps(plain, ensure_ascii=True) + "\n").encode()


def checked_bytes(record: Record) -> bytes:
    """As ``record_to_bytes``, if the record can be read again. Raises ValueError with the reason where it cannot."""
    from json import loads

    content = record_to_bytes(record)
    record_from_plain(loads(content))
    record.name.encode("utf-8", "surrogateescape")
    if len(content) > LARGEST_RECORD:
        raise ValueError("is too large")
    return content


def record_from_plain(plain: Any) -> Record:
    """The record in a parsed file. Raises ValueError with the reason where it is none."""
    if not isinstance(plain, dict):
        raise ValueError("is no JSON object")
    if plain.get("version") != VERSION:
        raise ValueError(f"has the version {plain.get('version')!r}, which this program does not know")
    name, pulled, listed = plain.get("name"), plain.get("pulled_s"), plain.get("files")
    texts = (name, plain.get("revision", ""), plain.get("source", ""))
    if not name or not all(isinstance(text, str) for text in texts):
        raise ValueError("has no name")
    if isinstance(pulled, bool) or not isinstance(pulled, int | float):
        raise ValueError("does not tell when it was made")
    if not 0 <= pulled <= LATEST_S:  # nor is NaN
        raise ValueError("was made at a time that is none")
    if not isinstance(listed, list) or not listed:
        raise ValueError("names no files")
    return Record(texts[0], tuple(map(_file_from_plain, listed)), float(pulled), texts[1], texts[2])  # type: ignore[arg-type]


def _can_be_asked_for(path: str) -> bool:
    from os import fsencode

    try:
        fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _file_from_plain(plain: Any) -> StoredFile:
    if not isinstance(plain, dict):
        raise ValueError("names a file that is none")
    get = plain.get
    role, name, size = get("role"), get("name"), get("size_bytes")
    sha256, path, changed = get("sha256", ""), get("path", ""), get("changed_ns", 0)
    if not isinstance(role, str) or not isinstance(name, str) or not is_file_name(name):
        raise ValueError("names a file that has no proper name")
    if type(size) is not int or not 0 <= size <= MOST_BYTES:
        raise ValueError(f"does not tell the size of {name}")
    if type(changed) is not int or abs(changed) > MOST_BYTES:
        raise ValueError(f"does not tell when {name} was changed")
    if not isinstance(path, str) or (path and path[0] != "/") or "\0" in path or not _can_be_asked_for(path):
        raise ValueError(f"gives {name} a path that is none")
    if not (is_sha256(sha256) or (path and sha256 == "")):
        raise ValueError(f"gives {name} no proper hash")
    return StoredFile(role, name, size, sha256, path, changed)
