"""The key-value pairs of a GGUF header, one after the other, each read only when it is asked for.

An array is told by its kind, length and place; it is skipped when the next pair is wanted and built when its members
are. So what comes before a vocabulary of 150,000 words costs nothing of it.
"""

from __future__ import annotations

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

STRING, ARRAY = 8, 9
# Type number -> struct letter and size of the fixed-size metadata types.
FIXED = {0: ("B", 1), 1: ("b", 1), 2: ("H", 2), 3: ("h", 2), 4: ("I", 4), 5: ("i", 4), 6: ("f", 4), 7: ("?", 1),
         10: ("Q", 8), 11: ("q", 8), 12: ("d", 8)}  # fmt: skip
_LONGEST_TEXT = 1 << 24  # bytes; longer ones are skipped


class DamagedError(Exception):
    """More of the file would not help: what is there is wrong. Running out of bytes is an IndexError instead."""


@value
class Array:
    """Where an array is. ``position`` is that of its first member."""

    kind: int  # type number of its members
    count: int
    position: int


class Entries:
    """A walk over ``count`` pairs from ``position``. ``position`` is where the walk is; after its end, the tensors'.

    Raises IndexError or struct.error where ``data`` ends too early, DamagedError where it makes no sense.
    """

    def __init__(self, data: mmap | bytes, position: int, count: int, order: str = "<") -> None:
        self.data = data
        self.position = position
        self.count = count
        self.order = order  # as struct spells it

    def __iter__(self) -> Iterator[tuple[str, object]]:
        from struct import unpack_from

        data, order = self.data, self.order
        for _ in range(self.count):
            key, position = read_text(data, self.position, order)
            (kind,) = unpack_from(f"{order}I", data, position)
            position += 4
            if kind == STRING:
                text, self.position = read_text(data, position, order)
                yield key, text
            elif kind == ARRAY:
                element, count = unpack_from(f"{order}IQ", data, position)
                array = Array(element, count, position + 12)
                self.position = array.position
                yield key, array
                self.position = _end_of(data, array, order)
            else:
                letter, size = _fixed(kind)
                (number,) = unpack_from(f"{order}{letter}", data, position)
                self.position = position + size
                yield key, number

    def numbers(self, array: Array) -> tuple[int | float | bool, ...]:
        """The members of an array of numbers or truth values."""
        from struct import unpack_from

        letter, size = _fixed(array.kind)
        if array.count > (len(self.data) - array.position) // size:
            raise IndexError(array.position)
        return unpack_from(f"{self.order}{array.count}{letter}", self.data, array.position)

    def members(self, array: Array) -> list[object]:
        """The members of any array."""
        if array.kind == ARRAY:
            raise DamagedError(array.kind)
        if array.kind != STRING:
            return list(self.numbers(array))
        position, texts = array.position, []
        for _ in range(array.count):
            text, position = read_text(self.data, position, self.order)
            texts.append(text)
        return list(texts)


def read_text(data: mmap | bytes, position: int, order: str = "<") -> tuple[str, int]:
    """The text at ``position``, and where what follows it begins."""
    length = int.from_bytes(data[position : position + 8], "little" if order == "<" else "big")
    end = position + 8 + length
    if end > len(data):
        raise IndexError(position)
    if length > _LONGEST_TEXT:
        return "", end
    # A model's own text may be anything; it must not stop the program.
    return data[position + 8 : end].decode("utf-8", "replace"), end


def _fixed(kind: int) -> tuple[str, int]:
    if kind not in FIXED:
        raise DamagedError(kind)
    return FIXED[kind]


def _end_of(data: mmap | bytes, array: Array, order: str) -> int:
    kind, count, position = array.kind, array.count, array.position
    if kind == ARRAY:
        raise DamagedError(kind)  # the specification allows nesting, no model uses it
    if kind != STRING:
        position += _fixed(kind)[1] * count
    elif count > (len(data) - position) // 8:  # each text takes its length at least
        raise IndexError(position)
    else:
        from struct import Struct

        length_at = Struct(f"{order}Q").unpack_from
        for _ in range(count):
            position += 8 + length_at(data, position)[0]
    if position > len(data):
        raise IndexError(position)
    return position
