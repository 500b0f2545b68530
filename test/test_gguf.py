"""The GGUF reader: what it reads, what it refuses, and that no damaged file makes it stumble or wait."""

from __future__ import annotations

import contextlib
import struct
import time
from pathlib import Path

import gguf
import pytest
from harness import gguf_bytes, gguf_pair, gguf_tensor, gguf_text, language_model
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ramalama_like.errors import ValueProblem
from ramalama_like.models.gguf import _BLOCKS, GgufHeader, read_gguf, read_gguf_prefix

AGAIN = "download the model again"
ELSE = "get the model as GGUF"


def read(content: bytes, folder: Path) -> GgufHeader:
    path = folder / "x"
    path.write_bytes(content)
    return read_gguf(str(path))


def refusal(content: bytes, folder: Path) -> tuple[str, str, int]:
    """Message without the path, hint and exit code."""
    with pytest.raises(ValueProblem) as caught:
        read(content, folder)
    assert caught.value.message.startswith(f"{folder}/x: ")
    return caught.value.message.removeprefix(f"{folder}/x: "), caught.value.hint, caught.value.exit_code


def test_every_kind_of_metadata(tmp_path: Path) -> None:
    pairs = {
        "u8": 255, "i8": -1, "u16": 65535, "i16": -2, "u32": 2**32 - 1, "i32": -3, "f32": 0.5, "bool": True,
        "u64": 2**64 - 1, "i64": -4, "f64": 0.25, "text": "é",
    }  # fmt: skip
    arrays = {f"[{kind}]": [given] * 3 for kind, given in pairs.items()}
    content = gguf_bytes(*(gguf_pair(kind, kind, given) for kind, given in {**pairs, **arrays}.items()))
    header = read(content, tmp_path)
    numbers = {key: tuple(array) for key, array in arrays.items() if key not in ("[f32]", "[f64]", "[text]")}
    assert header == GgufHeader(
        3, {**pairs, **dict.fromkeys(arrays, ("array", 3))}, 0, len(content), len(content), numbers, (), len(content)
    )
    assert (header.length("[text]"), header.length("text"), header.length("no")) == (3, 0, 0)
    assert (header.text("text"), header.text("u8"), header.text("no")) == ("é", "", "")
    assert (header.number("i64"), header.number("bool"), header.number("text"), header.number("no")) == (-4, 0, 0, 0)


def test_a_real_file(tiny_gguf: Path) -> None:
    header = read_gguf(str(tiny_gguf))
    reader = gguf.GGUFReader(tiny_gguf)
    assert header.size_bytes == header.needed_bytes == tiny_gguf.stat().st_size
    assert (header.version, header.tensor_count) == (3, len(reader.tensors))
    assert list(header.metadata) == [name for name in reader.fields if not name.startswith("GGUF.")]
    assert (header.text("general.architecture"), header.number("llama.context_length")) == ("llama", 512)
    assert header.tensors == tuple((tensor.name, int(tensor.n_bytes)) for tensor in reader.tensors)


def test_the_table_of_types_is_that_of_ggml() -> None:
    known = {int(kind): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    # The package still has the old size of Q8_1, which no file holds; ggml has made its two sums half as wide.
    known[gguf.GGMLQuantizationType.Q8_1] = (32, 36)
    assert {kind: known[kind] for kind in _BLOCKS} == _BLOCKS


def test_the_end_is_computed(tmp_path: Path) -> None:
    tensors = [gguf_tensor("a", [256, 2], 12), gguf_tensor("b", [3], 0, offset=288)]  # Q4_K and F32
    whole = gguf_bytes(tensors=tensors, data=300)
    assert read(whole, tmp_path).needed_bytes == len(whole)
    assert read(whole + b"more", tmp_path).needed_bytes == len(whole)
    said = f"truncated: {len(whole) - 1} bytes of {len(whole)} are there"
    assert refusal(whole[:-1], tmp_path) == (said, AGAIN, 22)
    wide = gguf_bytes(gguf_pair("general.alignment", "u32", 4096), tensors=tensors, data=300, alignment=4096)
    assert read(wide, tmp_path).needed_bytes == len(wide) == 4096 + 300


def test_an_unknown_type_leaves_the_end_open(tmp_path: Path) -> None:
    assert read(gguf_bytes(tensors=[gguf_tensor("a", [1 << 40], 999)]), tmp_path).needed_bytes is None


def test_tensors_of_unknown_type_take_the_room_up_to_the_next(tmp_path: Path) -> None:
    tensors = [gguf_tensor("a", [4], 999), gguf_tensor("b", [4], 0, offset=96), gguf_tensor("c", [4], 999, offset=128)]
    header = read(gguf_bytes(tensors=tensors, data=200), tmp_path)
    assert header.tensors == (("a", 96), ("b", 16), ("c", 72))


def test_arrays_with_a_number_for_each_token_are_not_built(tmp_path: Path) -> None:
    pairs = [gguf_pair("short", "[u32]", [1] * 1024), gguf_pair("long", "[u32]", [1] * 1025)]
    header = read(gguf_bytes(*pairs), tmp_path)
    assert list(header.arrays) == ["short"]
    assert header.metadata == {"short": ("array", 1024), "long": ("array", 1025)}


def test_the_beginning_of_a_file_is_enough_where_it_holds_the_header() -> None:
    whole = gguf_bytes(gguf_pair("tokens", "[text]", ["a", "", "bc"]), tensors=[gguf_tensor("a", [4])], data=16)
    header = len(whole) - 16
    heads = [read_gguf_prefix("x", whole[:length], len(whole)) for length in range(4, len(whole) + 1)]
    known = heads[-1]
    assert known == GgufHeader(
        3, {"tokens": ("array", 3)}, 1, len(whole), len(whole), tensors=(("a", 16),), header_bytes=114
    )
    # Padding before the data needs not be there.
    assert heads == [None] * heads.count(None) + [known] * (len(heads) - heads.count(None))
    assert header - 32 < heads.count(None) + 4 <= header
    with pytest.raises(ValueProblem, match="cut off"):
        read_gguf_prefix("x", whole[:40], 40)
    with pytest.raises(ValueProblem, match="damaged"):
        read_gguf_prefix("x", gguf_bytes(gguf_text(b"k") + struct.pack("<I", 99)), 10_000)


OTHER_FORMATS = {
    "PE program": (b"MZ\x90\0" + bytes(60), ("not a GGUF file", ELSE)),
    "zip": (b"PK\x03\x04" + bytes(60), ("not a GGUF file", f"this looks like a PyTorch archive: {ELSE}")),
    "html": (b"<!DOCTYPE html><html>",
             ("not a GGUF file", f"this looks like a web page or an error message: {AGAIN}")),
    "json": (b'{"error":"not found"}',
             ("not a GGUF file", f"this looks like a web page or an error message: {AGAIN}")),
    "ggml": (b"lmgg" + bytes(60), ("not a GGUF file", f"this is an old GGML file: {ELSE}")),
    "ggjt": (b"tjgg" + bytes(60), ("not a GGUF file", f"this is an old GGML file: {ELSE}")),
    "safetensors": (struct.pack("<Q", 1000) + b"{}" + bytes(60), ("not a GGUF file", ELSE)),
    "one byte": (b"G", ("not a GGUF file", ELSE)),
    "lower case": (b"gguf" + bytes(60), ("not a GGUF file", ELSE)),
    "nothing": (b"", ("the file is empty", AGAIN)),
    "big-endian": (b"GGUF" + struct.pack(">I", 3) + bytes(60),
                   ("a big-endian GGUF file, which this machine cannot use",
                    "get the little-endian file of the same model")),
    "version 1": (gguf_bytes(version=1), ("GGUF version 1 is not known", "get a file made for llama.cpp today")),
    "version 4": (gguf_bytes(version=4), ("GGUF version 4 is not known", "get a file made for llama.cpp today")),
    "only the magic": (b"GGUF", ("the header is damaged or cut off", AGAIN)),
    "too many keys": (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63), ("the header is damaged", AGAIN)),
    "too many tensors": (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0), ("the header is damaged", AGAIN)),
    "many keys, none there": (b"GGUF" + struct.pack("<IQQ", 3, 0, 999_999),
                              ("the header is damaged or cut off", AGAIN)),
    "unknown kind": (gguf_bytes(gguf_text(b"k") + struct.pack("<I", 99)), ("the header is damaged or cut off", AGAIN)),
    "array in array": (gguf_bytes(gguf_text(b"k") + struct.pack("<IIQ", 9, 9, 1)),
                       ("the header is damaged or cut off", AGAIN)),
    "endless text": (gguf_bytes(gguf_text(b"k") + struct.pack("<IQ", 8, 2**63)),
                     ("the header is damaged or cut off", AGAIN)),
    "endless array": (gguf_bytes(gguf_text(b"k") + struct.pack("<IIQ", 9, 4, 2**63)),
                      ("the header is damaged or cut off", AGAIN)),
    "endless array of texts": (gguf_bytes(gguf_text(b"k") + struct.pack("<IIQ", 9, 8, 2**63)),
                               ("the header is damaged or cut off", AGAIN)),
    "nine dimensions": (gguf_bytes(tensors=[gguf_tensor("a", [1] * 9)]), ("the header is damaged or cut off", AGAIN)),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_what_is_no_model_is_told_apart(name: str, tmp_path: Path) -> None:
    content, (message, hint) = OTHER_FORMATS[name]
    assert refusal(content, tmp_path) == (message, hint, 22)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ValueProblem) as caught:
        read_gguf(f"{tmp_path}/missing")
    assert (caught.value.message, caught.value.hint) == (
        f"{tmp_path}/missing: No such file or directory", "check the path; 'demo' is a model that is always there"
    )  # fmt: skip
    with pytest.raises(ValueProblem):
        read_gguf(str(tmp_path))


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    pairs = [gguf_pair("general.architecture", "text", "llama"), gguf_pair("tokens", "[text]", ["a", "", "bc"]),
             gguf_pair("scores", "[f32]", [1.0, 2.0])]  # fmt: skip
    whole = gguf_bytes(*pairs, tensors=[gguf_tensor("a", [4]), gguf_tensor("b", [4], 0, 32)], data=48)
    assert read(whole, tmp_path).needed_bytes == len(whole)
    messages = [refusal(whole[:length], tmp_path)[0].partition(":")[0] for length in range(len(whole))]
    header_ends = messages.index("truncated")
    assert messages == (
        ["the file is empty"] + ["not a GGUF file"] * 3 + ["the header is damaged or cut off"] * (header_ends - 4)
        + ["truncated"] * (len(whole) - header_ends)
    )  # fmt: skip


def read_quickly(content: bytes, folder: Path) -> GgufHeader | None:
    """The header, or None for what was refused; in either case in no time."""
    began = time.thread_time()
    with contextlib.suppress(ValueProblem):
        read_gguf_prefix("x", content[: len(content) // 2], len(content))
    try:
        return read(content, folder)
    except ValueProblem as problem:
        assert problem.exit_code == 22
        return None
    finally:
        assert time.thread_time() - began < 0.5


NUMBERS = st.one_of(st.sampled_from([0, 1, 2, 8, 9, 2**31, 2**32 - 1, 2**63, 2**64 - 1]), st.integers(0, 2**64 - 1))
PIECES = st.lists(st.one_of(
    st.binary(max_size=20),
    NUMBERS.map(lambda number: struct.pack("<Q", number)),
    st.integers(0, 13).map(lambda number: struct.pack("<I", number)),
    st.binary(max_size=6).map(gguf_text),
), max_size=12).map(b"".join)  # fmt: skip


@settings(max_examples=300)
@given(tail=PIECES, counts=st.one_of(st.none(), st.tuples(st.integers(0, 3), st.integers(0, 3))))
@example(tail=gguf_text(b"k") + struct.pack("<IIQ", 9, 0, 2**62), counts=(0, 1))
def test_random_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, tail: bytes, counts: object
                                          ) -> None:  # fmt: skip
    folder = tmp_path_factory.getbasetemp()
    head = b"GGUF" if counts is None else b"GGUF" + struct.pack("<IQQ", 3, *counts)
    read_quickly(head + tail, folder)


@settings(max_examples=200)
@given(data=st.data())
def test_a_flipped_byte_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(language_model(64, gguf_pair("tokens", "[text]", ["a", "b"]), gguf_pair("x", "[u64]", [1])))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    read_quickly(bytes(content), tmp_path_factory.getbasetemp())
