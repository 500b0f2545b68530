"""What a model's file says of itself, no more of it read than was asked for.

Two formats: GGUF (ggml's docs/gguf.md) and safetensors (a JSON header after its length in 8 bytes).
"""

from __future__ import annotations

from contextlib import contextmanager

from ramalama_like.errors import ValueProblem
from ramalama_like.models.gguf_entries import Array, DamagedError, Entries, read_text
from ramalama_like.models.mapped import mapped_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap
    from typing import Any

_LONGEST_HEADER = 100 << 20  # bytes of JSON, the limit of the safetensors library
_MOST = 1_000_000  # pairs or tensors; more is no model but a damaged or hostile file
_MOST_DIMENSIONS = 8
_MANY = 1024  # members of an array from which on it is a vocabulary


class InspectedGguf:
    """The header of a GGUF file of either byte order."""

    format = "GGUF"

    def __init__(self, path: str, data: mmap) -> None:
        from struct import unpack_from

        self._path = path
        self._data = data
        # A version is a small number: its bytes tell in which order they stand.
        self._order = ">" if len(data) >= 8 and data[4:6] == b"\0\0" else "<"
        with self._whole():
            self.version, self.tensor_count, self.metadata_count = unpack_from(f"{self._order}IQQ", data, 4)
            if max(self.tensor_count, self.metadata_count) > _MOST:
                raise DamagedError

    @property
    def is_big_endian(self) -> bool:
        """Whether it is for machines of that byte order, which are few."""
        return self._order == ">"

    def first_scalars(self) -> dict[str, object]:
        """The numbers and texts that stand before the vocabulary."""
        found: dict[str, object] = {}
        with self._whole():
            for key, member in self._entries():
                if not isinstance(member, Array):
                    found[key] = member
                elif member.count > _MANY:
                    break
        return found

    def metadata(self) -> dict[str, object]:
        """Every pair, arrays built."""
        with self._whole():
            entries = self._entries()
            return {key: entries.members(each) if isinstance(each, Array) else each for key, each in entries}

    def member(self, wanted: str) -> object:
        """The value of one key. Raises KeyError where there is none."""
        with self._whole():
            entries = self._entries()
            for key, member in entries:
                if key == wanted:
                    return entries.members(member) if isinstance(member, Array) else member
        raise KeyError(wanted)

    def tensors(self) -> list[dict[str, Any]]:
        """Name, shape, type number and offset in the data of each tensor."""
        from struct import unpack_from

        with self._whole():
            entries, order, data = self._entries(), self._order, self._data
            for _ in entries:
                pass
            position, found = entries.position, []
            for _ in range(self.tensor_count):
                name, position = read_text(data, position, order)
                (count,) = unpack_from(f"{order}I", data, position)
                if count > _MOST_DIMENSIONS:
                    raise DamagedError
                shape = unpack_from(f"{order}{count}Q", data, position + 4)
                kind, offset = unpack_from(f"{order}IQ", data, position + 4 + 8 * count)
                position += 16 + 8 * count
                found.append({"name": name, "n_dimensions": count, "dimensions": list(shape), "type": kind,
                              "offset": offset})  # fmt: skip
            return found

    def _entries(self) -> Entries:
        return Entries(self._data, 24, self.metadata_count, self._order)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        from struct import error as struct_error

        try:
            yield
        except (IndexError, DamagedError, OverflowError, struct_error):
            raise ValueProblem(f"{self._path}: the header is damaged or cut off", "download the model again") from None


class InspectedSafetensors:
    """The header of a safetensors file."""

    format = "Safetensors"

    def __init__(self, path: str, data: mmap) -> None:
        import json

        problem = ValueProblem(f"{path}: neither a GGUF nor a safetensors file", "get the model as GGUF")
        length = int.from_bytes(data[:8], "little")
        if not 2 <= length <= min(_LONGEST_HEADER, len(data) - 8) or data[8:9] != b"{":
            raise problem
        try:
            header = json.loads(data[8 : 8 + length])
        except (ValueError, RecursionError):
            raise problem from None
        self.header: dict[str, Any] = header
        metadata = header.get("__metadata__")
        self.metadata: dict[str, Any] = metadata if isinstance(metadata, dict) else {}

    @property
    def tensor_count(self) -> int:
        """Tensors in this file."""
        return len(self.header) - ("__metadata__" in self.header)


@contextmanager
def inspected(path: str) -> Iterator[InspectedGguf | InspectedSafetensors]:
    """A model's file, opened. Raises ValueProblem where it is none of the formats or damaged."""
    with mapped_file(path) as data:
        yield InspectedGguf(path, data) if data[:4] == b"GGUF" else InspectedSafetensors(path, data)
