"""The header of a GGUF file: enough to know what the file is and that all of it is there.

Layout from the GGUF specification (ggml's docs/gguf.md, version 3): magic, version, counts, key-value pairs, tensor
descriptions, then aligned data. The file is mapped, long arrays are skipped without being built, and the end of the
data is computed from the tensor descriptions, so a truncated download is noticed before a server is started.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.models.gguf_entries import Array, DamagedError, Entries, read_text
from ramalama_like.models.mapped import mapped_file
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from mmap import mmap

# ggml type -> (elements in a block, bytes of a block), from ggml's type table. A type that is not listed makes the
# end of the data unknown, which only costs the check.
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip
_MOST_KEYS = 1_000_000  # more is no model but a damaged or hostile file
_MOST_TENSORS = 1_000_000
_LONGEST_ARRAY = 1024  # numbers; one for each layer is read, one for each token is not
_WHOLE = {0, 1, 2, 3, 4, 5, 7, 10, 11}  # whole numbers and truth values


@value
class GgufHeader:
    """What the header says."""

    version: int
    metadata: Mapping[str, object]  # scalars and texts; an array is its length, as ("array", n)
    tensor_count: int
    needed_bytes: int | None  # size that the file must have; None where a tensor's type is unknown
    size_bytes: int
    arrays: Mapping[str, tuple[int, ...]] = {}  # short arrays of whole numbers, such as one for each layer
    tensors: tuple[tuple[str, int], ...] = ()  # name and bytes of each, in the order of the file
    header_bytes: int = 0  # how long the header is: all texts stand in it

    def text(self, key: str) -> str:
        """A text of the metadata; empty where it is missing or no text."""
        found = self.metadata.get(key)
        return found if isinstance(found, str) else ""

    def number(self, key: str) -> int:
        """A whole number of the metadata; 0 where it is missing or no number."""
        found = self.metadata.get(key)
        return found if isinstance(found, int) and not isinstance(found, bool) else 0

    def length(self, key: str) -> int:
        """The number of members of an array; 0 where it is missing or no array."""
        found = self.metadata.get(key)
        return found[1] if isinstance(found, tuple) else 0


def read_gguf(path: str) -> GgufHeader:
    """Read the header of ``path``. Raises ValueProblem where the file cannot be used as a model, saying why."""
    with mapped_file(path) as data:
        return _read(path, data, len(data))


def header_mentions(path: str, texts: Sequence[str]) -> bool:
    """Whether one of ``texts`` stands anywhere in the header: in a name, a value, a token. Raises as ``read_gguf``."""
    with mapped_file(path) as data:
        end = _read(path, data, len(data)).header_bytes
        return any(data.find(text.encode(), 0, end) >= 0 for text in texts)


def read_gguf_prefix(name: str, data: bytes, size: int) -> GgufHeader | None:
    """The header from the first bytes of a file of ``size`` bytes; None where the header is longer than ``data``.

    Raises ValueProblem where the file cannot be used as a model, whatever follows. ``name`` is what people call it.
    """
    try:
        return _parse(name, data, size)
    except IndexError:
        if len(data) < size:
            return None
        raise _damaged(name) from None


def _read(path: str, data: mmap, size: int) -> GgufHeader:
    try:
        header = _parse(path, data, size)
    except IndexError:
        raise _damaged(path) from None
    needed = header.needed_bytes
    if needed is not None and size < needed:
        raise ValueProblem(f"{path}: truncated: {size} bytes of {needed} are there", "download the model again")
    return header


def _damaged(path: str) -> ValueProblem:
    return ValueProblem(f"{path}: the header is damaged or cut off", "download the model again")


def _parse(path: str, data: mmap | bytes, size: int) -> GgufHeader:
    """The header, whether or not the rest of the file is there. Raises IndexError where ``data`` ends too early."""
    magic = data[:4]
    if magic != b"GGUF":
        raise ValueProblem(f"{path}: not a GGUF file", _other_format(magic))
    from struct import error as struct_error
    from struct import unpack_from

    try:
        (version,) = unpack_from("<I", data, 4)
        if version & 0xFFFF == 0:
            raise ValueProblem(f"{path}: a big-endian GGUF file, which this machine cannot use",
                               "get the little-endian file of the same model")  # fmt: skip
        if version not in (2, 3):
            raise ValueProblem(f"{path}: GGUF version {version} is not known", "get a file made for llama.cpp today")
        tensor_count, key_count = unpack_from("<QQ", data, 8)
        if key_count > _MOST_KEYS or tensor_count > _MOST_TENSORS:
            raise ValueProblem(f"{path}: the header is damaged", "download the model again")
        metadata, arrays, position = _read_metadata(data, 24, key_count)
        tensors, needed, position = _read_tensors(data, position, tensor_count, _alignment(metadata), size)
    except struct_error as problem:
        raise IndexError(str(problem)) from None
    except (DamagedError, OverflowError):
        raise _damaged(path) from None
    return GgufHeader(version, metadata, tensor_count, needed, size, arrays, tensors, position)


def _other_format(magic: bytes) -> str:
    if magic in (b"ggjt", b"ggml", b"ggmf", b"lmgg", b"tjgg", b"fmgg"):
        return "this is an old GGML file: get the model as GGUF"
    if magic[:2] == b"PK":
        return "this looks like a PyTorch archive: get the model as GGUF"
    if magic[:1] in (b"<", b"{"):
        return "this looks like a web page or an error message: download the model again"
    return "get the model as GGUF"


def _alignment(metadata: Mapping[str, object]) -> int:
    alignment = metadata.get("general.alignment", 32)
    return alignment if isinstance(alignment, int) and 0 < alignment <= 1 << 20 else 32


def _read_metadata(
    data: mmap | bytes, position: int, key_count: int
) -> tuple[dict[str, object], dict[str, tuple[int, ...]], int]:
    metadata: dict[str, object] = {}
    arrays: dict[str, tuple[int, ...]] = {}
    entries = Entries(data, position, key_count)
    for key, found in entries:
        if isinstance(found, Array):
            metadata[key] = ("array", found.count)
            if found.kind in _WHOLE and found.count <= _LONGEST_ARRAY:
                arrays[key] = tuple(map(int, entries.numbers(found)))
        else:
            metadata[key] = found
    return metadata, arrays, entries.position


def _read_tensors(
    data: mmap | bytes, position: int, count: int, alignment: int, size: int
) -> tuple[tuple[tuple[str, int], ...], int | None, int]:
    """Each tensor's name and bytes, the size that the file must have (None where a type is unknown), and where the
    descriptions end."""
    from struct import unpack_from

    if not count:
        return (), position, position  # no data follows, so nothing has to be aligned: a first part may be like this
    tensors: list[tuple[str, int]] = []
    offsets: list[int] = []
    end: int | None = 0
    for _ in range(count):
        name, position = read_text(data, position)
        (dimension_count,) = unpack_from("<I", data, position)
        if dimension_count > 8:
            raise DamagedError(dimension_count)
        shape = unpack_from(f"<{dimension_count}Q", data, position + 4)
        kind, offset = unpack_from("<IQ", data, position + 4 + 8 * dimension_count)
        position += 4 + 8 * dimension_count + 12
        size_bytes = -1
        if kind not in _BLOCKS:
            end = None
        else:
            elements = 1
            for length in shape:
                elements *= length
            per_block, block_bytes = _BLOCKS[kind]
            size_bytes = -(-elements // per_block) * block_bytes
            if end is not None and offset + size_bytes > end:
                end = offset + size_bytes
        tensors.append((name, size_bytes))
        offsets.append(offset)
    start = -(-position // alignment) * alignment
    if end is None:
        room = max(0, size - start)
        if any(offset + max(0, taken) > room for (_, taken), offset in zip(tensors, offsets, strict=True)):
            raise DamagedError(room)  # what is known of it does not fit into the file
        return _with_gaps(tensors, offsets, room), None, position
    return tuple(tensors), start + end, position


def _with_gaps(tensors: list[tuple[str, int]], offsets: list[int], end: int) -> tuple[tuple[str, int], ...]:
    """Tensors of unknown type take the room up to the next one, or to the ``end`` of the data."""
    order = sorted({*offsets, end})
    following = {order[place]: order[place + 1] for place in range(len(order) - 1)}
    return tuple(
        (name, taken if taken >= 0 else max(0, following.get(offset, offset) - offset))
        for (name, taken), offset in zip(tensors, offsets, strict=True)
    )
