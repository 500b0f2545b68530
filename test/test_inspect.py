"""``inspect``: the header as it is, in the dialect's shapes, and no more of it read than was asked for."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from harness import run_cli

from ramalama_like.models.gguf_entries import Entries
from ramalama_like.models.inspected import InspectedGguf, inspected

WORDS = [f"w{number}" for number in range(2000)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    out = gguf.GGUFWriter(path, "llama")
    out.add_size_label("7B")
    out.add_context_length(4096)
    out.add_bool("llama.flag", True)
    out.add_array("llama.lengths", [1, 2, 3])
    out.add_token_list(WORDS)
    out.add_string("after", "tw\x1b[31mo\nlines")
    out.add_tensor("a.weight", np.zeros((4, 8), np.float32))
    out.add_tensor("b.weight", np.zeros((3,), np.float16))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


METADATA = {
    "general.architecture": "llama", "general.size_label": "7B", "llama.context_length": 4096, "llama.flag": True,
    "llama.lengths": [1, 2, 3], "tokenizer.ggml.tokens": WORDS, "after": "tw\x1b[31mo\nlines",
}  # fmt: skip
TENSORS = [
    {"name": "a.weight", "n_dimensions": 2, "dimensions": [8, 4], "type": 0, "offset": 0},
    {"name": "b.weight", "n_dimensions": 1, "dimensions": [3], "type": 1, "offset": 128},
]


def test_text(model: Path) -> None:
    shown = run_cli("inspect", str(model))
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == (
        f"Name:         {model}\nPath:         {model}\nRegistry:     file\nFormat:       GGUF\nVersion:      3\n"
        "Endianness:   little\nArchitecture: llama\nParameters:   7B\nContext:      4096 tokens\n"
        "Metadata:     7 entries\nTensors:      2 entries\n"
    )


def test_all_as_text(model: Path) -> None:
    rows = run_cli("inspect", "--all", str(model)).out.splitlines()
    assert rows[11:] == [
        "  general.architecture: llama", "  general.size_label: 7B", "  llama.context_length: 4096",
        "  llama.flag: True", "  llama.lengths: [1, 2, 3]",
        "  tokenizer.ggml.tokens: ['w0', 'w1', 'w2', 'w3', 'w4', 'w5', 'w6', 'w7', … 2000 in all]",
        "  after: tw\\x1b[31mo\\nlines", "  a.weight: 8 x 4, type 0", "  b.weight: 3, type 1",
    ]  # fmt: skip


def test_json_of_the_dialect(model: Path) -> None:
    common = {"Endianness": 0, "Files": [{"Path": str(model), "Role": "model", "Size": model.stat().st_size}],
              "Format": "GGUF", "Name": str(model), "Path": str(model), "Registry": "file", "Version": 3}  # fmt: skip
    shown = run_cli("inspect", "--json", str(model)).out
    assert shown == json.dumps({**common, "Metadata": 7, "Tensors": 2}, indent=4, sort_keys=True) + "\n"
    whole = json.loads(run_cli("inspect", "--json", "--all", str(model)).out)
    assert whole == {**common, "Metadata": {"data": METADATA}, "Tensors": TENSORS}


def test_one_member(model: Path) -> None:
    def get(*words: str) -> str:
        return run_cli("inspect", *words, str(model)).out

    assert get("--get", "general.architecture") == "llama\n"
    assert get("--get", "llama.lengths") == "[1, 2, 3]\n"
    assert get("--get", "after") == "tw\x1b[31mo\nlines\n"  # as it is: it may be a template that somebody wants
    assert json.loads(get("--get", "tokenizer.ggml.tokens", "--json")) == WORDS
    assert json.loads(get("--get", "all", "--json")) == METADATA
    assert get("--get", "all").splitlines()[2] == "llama.context_length: 4096"
    missing = run_cli("inspect", "--get", "no.such", str(model))
    assert missing.code == 22
    assert missing.err == (f"Error: {model}: has no metadata of the name no.such\n"
                           "Hint: inspect --all tells the names\n")  # fmt: skip


def test_the_other_byte_order(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    out = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG)
    out.add_context_length(512)
    out.add_array("x", ["a", "bc"])
    out.add_tensor("t", np.zeros((2, 3), np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    shown = json.loads(run_cli("inspect", "--all", "--json", str(path)).out)
    assert (shown["Endianness"], shown["Version"]) == (1, 3)
    assert shown["Metadata"]["data"] == {"general.architecture": "llama", "llama.context_length": 512, "x": ["a", "bc"]}
    assert shown["Tensors"] == [{"name": "t", "n_dimensions": 2, "dimensions": [3, 2], "type": 0, "offset": 0}]


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    header = {"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    data = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(data)) + data + bytes(4))
    with inspected(str(path)) as opened:
        assert (opened.format, opened.tensor_count) == ("Safetensors", 1)
    shown = json.loads(run_cli("inspect", "--json", "--all", f"file://{path}").out)
    assert shown["Header"] == header


DAMAGED = {
    "cut": b"GGUF\3\0\0\0\1\0\0", "many": b"GGUF\3\0\0\0" + b"\xff" * 16,
    "pairs": b"GGUF\3\0\0\0" + struct.pack("<QQ", 0, 5),
    "nested": b"GGUF\3\0\0\0" + struct.pack("<QQQsIIQ", 0, 1, 1, b"k", 9, 9, 1),
    "kind": b"GGUF\3\0\0\0" + struct.pack("<QQQsI", 0, 1, 1, b"k", 99),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("words", [(), ("--all",), ("--get", "x"), ("--json",)], ids=" ".join)
def test_damaged_headers(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(DAMAGED[name])
    shown = run_cli("inspect", *words, str(path))
    if name in ("cut", "many") or words in (("--all",), ("--get", "x")) or words == ():
        assert (shown.code, shown.err) == (
            22, f"Error: {path}: the header is damaged or cut off\nHint: download the model again\n")  # fmt: skip
    else:
        assert shown.code == 0  # the counts are all that was asked for


def test_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for data in (b"<html>", b"\x10\0\0\0\0\0\0\0{not json at al", b"\xff" * 20):
        path.write_bytes(data)
        shown = run_cli("inspect", str(path))
        assert (shown.code, shown.err) == (22, (
            f"Error: {path}: neither a GGUF nor a safetensors file\nHint: get the model as GGUF\n"))  # fmt: skip


def test_the_vocabulary_is_not_looked_at(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    members = Entries.members
    monkeypatch.setattr(Entries, "members", lambda self, array: seen.append(array.count) or members(self, array))
    with inspected(str(model)) as opened:
        assert isinstance(opened, InspectedGguf)
        assert opened.first_scalars() == {"general.architecture": "llama", "general.size_label": "7B",
                                          "llama.context_length": 4096, "llama.flag": True}  # fmt: skip
        assert seen == []
        assert opened.member("llama.lengths") == [1, 2, 3]
        assert seen == [3]
