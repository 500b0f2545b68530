"""From headers to shapes: windows, latent attention, shared and recurrent layers, and headers that mean nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from harness import HOSTS, PACKAGE, gguf_bytes, gguf_pair, gguf_tensor, run_cli
from hypothesis import HealthCheck, example, given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from ramalama_like.data import load_table
from ramalama_like.facts import HostFacts
from ramalama_like.fit import Place, main_place, make_fit
from ramalama_like.memory_options import MemoryOptions, read_memory_options, read_words
from ramalama_like.models.gguf import GgufHeader, read_gguf
from ramalama_like.models.shapes import make_shape
from ramalama_like.request import Given, Request
from ramalama_like.settings import load_settings
from ramalama_like.shape import Layer, Shape


def header(
    architecture: str, numbers: Mapping[str, Any], tensors: Sequence[tuple[str, int]] = (),
    arrays: Mapping[str, tuple[int, ...]] | None = None, layers: int = 6,
) -> GgufHeader:  # fmt: skip
    keys: dict[str, object] = {"general.architecture": architecture, f"{architecture}.block_count": layers}
    keys |= {f"{architecture}.{key}": number for key, number in numbers.items()}
    keys.setdefault(f"{architecture}.embedding_length", 512)
    arrays = {f"{architecture}.{key}": array for key, array in (arrays or {}).items()}
    keys |= {key: ("array", len(array)) for key, array in arrays.items()}
    tensors = tensors or [(f"blk.{number}.attn_k.weight", 1) for number in range(layers)]
    return GgufHeader(3, keys, len(tensors), 0, 0, arrays, tuple(tensors))


def layers_of(*args: Any, **more: Any) -> tuple[Layer, ...]:
    shape = make_shape([header(*args, **more)])
    assert shape is not None
    return shape.layers


def windowed(*args: Any, **more: Any) -> str:
    return "".join("w" if layer.windowed else "." for layer in layers_of(*args, **more))


def test_a_whole_shape() -> None:
    tensors = [
        ("token_embd.weight", 1000), ("output_norm.weight", 10), ("rope_freqs.weight", 1), ("blk.0.attn_q.weight", 20),
        ("blk.0.ffn_up_exps.weight", 300), ("blk.1.attn_k.weight", 40), ("blk.2.attn_k.weight", 5), ("blk.x.y", 6),
        ("blk.1", 7), ("blk.1.ffn_gate_shexp.weight", 8),
    ]  # fmt: skip
    numbers = {"attention.head_count": 8, "attention.head_count_kv": 2, "context_length": 4096,
               "feed_forward_length": 2048, "expert_count": 16, "expert_used_count": 4,
               "expert_feed_forward_length": 256, "vocab_size": 999}  # fmt: skip
    plain = (128, 128, False, 0)
    assert make_shape([header("qwen3moe", numbers, tensors, layers=2)]) == Shape(
        (Layer(320, 300, *plain), Layer(55, 0, *plain)), input_bytes=1000, output_bytes=10 + 1 + 5 + 6, tied_bytes=1000,
        trained_context=4096, vocabulary=999, window=0, width=512, attention_width=512, heads=8, forward_width=1024,
        expert_output_width=2048, recurrent_width=0,
    )  # fmt: skip


def test_parts_of_a_model_are_counted_together() -> None:
    first = header("llama", {}, [("blk.0.attn_k.weight", 1), ("output.weight", 3)], layers=2)
    second = GgufHeader(3, {}, 1, 0, 0, tensors=(("blk.1.attn_k.weight", 2), ("token_embd.weight", 9)))
    shape = make_shape([first, second])
    assert shape is not None
    assert [layer.weight_bytes for layer in shape.layers] == [1, 2]
    assert (shape.input_bytes, shape.output_bytes, shape.tied_bytes) == (9, 3, 0)


WINDOWS: dict[str, tuple[str, dict[str, int], dict[str, tuple[int, ...]], str]] = {
    "gemma3": ("gemma3", {"attention.sliding_window": 1024}, {}, "wwwww."),
    "gemma3 without a window": ("gemma3", {}, {}, "wwwwww".replace("w", ".")),
    "gemma2 does not name it": ("gemma2", {}, {}, "w.w.w."),
    "smallthinker begins with all": ("smallthinker", {"attention.sliding_window": 4096}, {}, ".www.w"),
    "a period of the file": ("gpt-oss", {"attention.sliding_window": 128, "attention.sliding_window_pattern": 3}, {},
                             "ww.ww."),
    "a pattern of the file": ("gemma4", {"attention.sliding_window": 512},
                              {"attention.sliding_window_pattern": (True, False, True, True)}, "w.ww.."),
    "llama4": ("llama4", {}, {}, "www.ww"),
    "llama4 without": ("llama4", {"attention.sliding_window": 0}, {}, "......"),
    "phi3 does not use it": ("phi3", {"attention.sliding_window": 2048}, {}, "......"),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    architecture, numbers, arrays, expected = WINDOWS[name]
    numbers = {"attention.head_count": 8, **numbers}
    assert windowed(architecture, numbers, arrays=arrays) == expected


def test_widths_of_windowed_layers() -> None:
    numbers = {"attention.head_count": 8, "attention.key_length": 512, "attention.value_length": 512,
               "attention.key_length_swa": 256, "attention.value_length_swa": 128, "attention.sliding_window": 512,
               "attention.shared_kv_layers": 1}  # fmt: skip
    arrays = {"attention.head_count_kv": (4, 1, 4), "attention.sliding_window_pattern": (True, False, True)}
    found = layers_of("gemma4", numbers, arrays=arrays, layers=3)
    assert [(layer.key_width, layer.value_width) for layer in found] == [(1024, 512), (512, 512), (0, 0)]


def test_latent_attention_has_no_cache_of_v() -> None:
    numbers = {"attention.head_count": 128, "attention.head_count_kv": 1, "attention.key_length": 576,
               "attention.value_length": 512, "attention.key_length_mla": 192, "attention.value_length_mla": 128,
               "nextn_predict_layers": 1}  # fmt: skip
    tensors = [(f"blk.{number}.attn_kv_a_mqa.weight", 1) for number in range(3)]
    assert [(layer.key_width, layer.value_width) for layer in layers_of("deepseek2", numbers, tensors, layers=3)] == [
        (576, 0), (576, 0), (0, 0),
    ]  # fmt: skip


STATES: dict[str, tuple[str, dict[str, int], list[str], dict[str, tuple[int, ...]], list[tuple[int, int]]]] = {
    "mamba": ("mamba", {"attention.head_count": 0, "ssm.conv_kernel": 4, "ssm.inner_size": 512, "ssm.state_size": 16},
              ["ssm_in", "ssm_in"], {}, [(0, 4 * (3 * 512 + 16 * 512))] * 2),
    "jamba": ("jamba", {"attention.head_count": 8, "ssm.conv_kernel": 4, "ssm.inner_size": 512, "ssm.state_size": 16},
              ["ssm_in", "attn_k"], {"attention.head_count_kv": (0, 2)}, [(0, 4 * (3 * 512 + 16 * 512)), (128, 0)]),
    "falcon-h1": ("falcon-h1", {"attention.head_count": 8, "attention.head_count_kv": 2, "ssm.conv_kernel": 4,
                                "ssm.inner_size": 512, "ssm.state_size": 16, "ssm.group_count": 1},
                  ["ssm_in attn_k"], {}, [(128, 4 * (3 * (512 + 32) + 16 * 512))]),
    "qwen3next": ("qwen3next", {"attention.head_count": 8, "attention.head_count_kv": 2, "ssm.conv_kernel": 4,
                                "ssm.inner_size": 4096, "ssm.state_size": 128, "ssm.group_count": 16},
                  ["ssm_a attn_qkv", "attn_k"], {}, [(0, 4 * (3 * (4096 + 4096) + 128 * 4096)), (128, 0)]),
    "lfm2": ("lfm2", {"attention.head_count": 8, "shortconv.l_cache": 3}, ["shortconv", "attn_k"],
             {"attention.head_count_kv": (0, 2)}, [(0, 4 * 512 * 2), (128, 0)]),
    "rwkv": ("rwkv7", {"attention.head_count": 0, "wkv.head_size": 64, "token_shift_count": 2}, ["time_mix_a"], {},
             [(0, 4 * (2 * 512 + 512 * 64))]),
    "kimi": ("kimi-linear", {"attention.head_count": 4, "kda.head_dim": 128, "ssm.conv_kernel": 4,
                             "attention.key_length": 576, "attention.key_length_mla": 192},
             ["ssm_a attn_q", "attn_kv_a_mqa"], {"attention.head_count_kv": (0, 1)},
             [(0, 4 * (3 * 3 * 512 + 128 * 128 * 4)), (576, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_recurrent_layers_have_a_state(name: str) -> None:
    architecture, numbers, kinds, arrays, expected = STATES[name]
    tensors = [(f"blk.{number}.{kind}.weight", 1) for number, line in enumerate(kinds) for kind in line.split()]
    found = layers_of(architecture, numbers, tensors, arrays=arrays, layers=len(kinds))
    assert [(layer.key_width, layer.state_bytes) for layer in found] == expected


def test_no_shape_where_the_header_does_not_tell() -> None:
    assert make_shape([header("llama", {}, layers=0)]) is None
    assert make_shape([header("llama", {}, layers=5000)]) is None
    assert make_shape([header("llama", {"embedding_length": 0})]) is None
    assert make_shape([header("llama", {}, [("output.weight", 1)])]) is None
    assert make_shape([GgufHeader(3, {}, 0, 0, 0)]) is None


NUMBERS = st.one_of(st.integers(-5, 5), st.sampled_from([1 << 31, 1 << 63, -1 << 63]), st.just("text"), st.booleans())
KEYS = st.sampled_from([
    "block_count", "embedding_length", "context_length", "feed_forward_length", "vocab_size", "expert_count",
    "expert_used_count", "attention.head_count", "attention.head_count_kv", "attention.key_length",
    "attention.key_length_mla", "attention.sliding_window", "attention.sliding_window_pattern", "ssm.inner_size",
    "attention.shared_kv_layers", "nextn_predict_layers", "wkv.head_size", "shortconv.l_cache", "kda.head_dim",
])  # fmt: skip
NAMES = st.sampled_from(["token_embd.weight", "output.weight", "blk.0.attn_k.weight", "blk.1.ssm_in.weight",
                         "blk.0.ffn_up_exps.weight", "blk.-1.x", "blk.\u0661.x",
                         "blk.99999999999.x", "blk", ""])  # fmt: skip


FACTS = HostFacts(memory_bytes=1 << 34)
CARD = Place("Card", "vulkan", 2, 1 << 33, 1 << 33)


@given(
    architecture=st.sampled_from(["llama", "gemma3", "mamba", "gemma3n", ""]),
    numbers=st.dictionaries(KEYS, NUMBERS, max_size=12),
    arrays=st.dictionaries(KEYS, st.lists(st.integers(-3, 1 << 62), max_size=6).map(tuple), max_size=3),
    tensors=st.lists(st.tuples(NAMES, st.integers(0, 1 << 62)), max_size=5),
    layers=st.integers(-1, 5),
)
def test_any_header_has_a_shape_or_none(
    architecture: str, numbers: dict[str, Any], arrays: dict[str, tuple[int, ...]], tensors: list[tuple[str, int]],
    layers: int,
) -> None:  # fmt: skip
    began = time.thread_time()
    shape = make_shape([header(architecture, numbers, tensors, arrays, layers)])
    for place in (main_place(FACTS), CARD) if shape is not None else ():
        assert shape is not None
        found = make_fit([shape], MemoryOptions(), place, FACTS, thorough=True)
        assert min(found.weights_bytes, found.cache_bytes, found.overhead_bytes, found.main_bytes) >= 0
        assert 0 <= (found.fitting_context or 0) <= max(found.context, 1 << 31)
        assert 0 < found.context <= 1 << 31
    assert time.thread_time() - began < 0.5


KINDS = {"u8": (0, 255), "i8": (-128, 127), "u32": (0, (1 << 32) - 1), "i32": (-1 << 31, (1 << 31) - 1),
         "u64": (0, (1 << 64) - 1), "i64": (-1 << 63, (1 << 63) - 1)}  # fmt: skip


@st.composite
def pair(draw: st.DrawFn) -> bytes:
    """A key that decides about memory, with a number or array of any kind."""
    key, kind = draw(KEYS), draw(st.sampled_from(sorted(KINDS)))
    least, most = KINDS[kind]
    number = st.sampled_from([least, most, 0, 1, 2, 7, 64]) | st.integers(least, most)
    if draw(st.booleans()):
        return gguf_pair(f"llama.{key}", f"[{kind}]", draw(st.lists(number, max_size=4)))
    return gguf_pair(f"llama.{key}", kind, draw(number))


@st.composite
def tensor(draw: st.DrawFn) -> bytes:
    size = st.sampled_from([0, 1, 64, 1 << 32, (1 << 64) - 1])
    return gguf_tensor(draw(NAMES), draw(st.lists(size, max_size=4)), draw(st.sampled_from([0, 2, 30, 99])),
                       draw(st.sampled_from([0, 32, 1 << 40, (1 << 64) - 1])))  # fmt: skip


@settings_of_hypothesis(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    pairs=[],
    tensors=[
        gguf_tensor("token_embd.weight", [], 99, 1 << 40),
        gguf_tensor("token_embd.weight", [], 99, (1 << 64) - 1),
    ],
    layers=1,
    words=(),
)
@given(pairs=st.lists(pair(), max_size=10), tensors=st.lists(tensor(), max_size=4), layers=st.integers(1, 3),
       words=st.sampled_from([(), ("-c", "0"), ("-c", str((1 << 63) - 1)), ("--ngl", "1")]))  # fmt: skip
def test_fit_of_any_file_has_sensible_figures_or_says_no(
    pairs: list[bytes], tensors: list[bytes], layers: int, words: tuple[str, ...], tmp_path: Path
) -> None:
    base = [gguf_pair("general.architecture", "text", "llama"), gguf_pair("llama.block_count", "u32", layers),
            gguf_pair("llama.embedding_length", "u32", 64)]  # fmt: skip
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf_bytes(*base, *pairs, tensors=[gguf_tensor("blk.0.attn_k.weight", [8]), *tensors], data=4096))
    done = run_cli("--nocontainer", "--host-facts", str(HOSTS / "no-gpu"), "fit", str(path), "--json", *words)
    assert done.code in (0, 22), done.err
    assert "a fault in this program" not in done.err
    if not done.out:
        assert done.err.count("Error: ") == 1
        return
    found = json.loads(done.out)
    place = found["places"][0]
    numbers = [found["context_length"], found["size_bytes"], *(n for n in place.values() if isinstance(n, int))]
    assert min(numbers) >= 0
    assert place["weights_bytes"] <= 4 * found["size_bytes"]  # tensors may lie on each other, five at most
    assert place["context"] < 1 << 31 or words == ("-c", str((1 << 63) - 1))
    assert run_cli("--host-facts", str(HOSTS / "no-gpu"), "--nocontainer", "fit", str(path), *words).code == done.code


NONSENSE = {
    "u32 of nothing": ("u32", 0),
    "a negative number": ("i32", -5),
    "more than llama.cpp can count": ("u64", 1 << 40),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_context_that_cannot_be_meant_is_unknown(name: str, tmp_path: Path) -> None:
    keys = {"block_count": ("u32", 1), "embedding_length": ("u32", 64), "attention.head_count": ("i32", -4),
            "attention.head_count_kv": ("i64", -1 << 63), "context_length": NONSENSE[name]}  # fmt: skip
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf_bytes(
        gguf_pair("general.architecture", "text", "llama"), *(gguf_pair(f"llama.{k}", *v) for k, v in keys.items()),
        tensors=[gguf_tensor("blk.0.attn_k.weight", [8])], data=32,
    ))  # fmt: skip
    words = ("--nocontainer", "--host-facts", str(HOSTS / "no-gpu"), "fit", str(path))
    told = "context of 256 tokens (its header does not tell what it was made for: name one with --ctx-size), cache f16"
    assert run_cli(*words).out.startswith(f"x: 1 layers, {told}\n")
    assert run_cli(*words, "-c", "512").out.startswith("x: 1 layers, context of 512 tokens, cache f16\n")
    assert json.loads(run_cli(*words, "--json").out)["context_length"] == 0


def test_the_demo_model() -> None:
    demo = read_gguf(str(PACKAGE / "data" / "demo" / "demo.gguf"))
    shape = make_shape([demo])
    assert shape is not None
    assert shape.weight_bytes == sum(size for _, size in demo.tensors)


def test_the_table_names_architectures_once() -> None:
    table = load_table("attention")
    assert set(table["first_full"]) | set(table["window"]) <= set(table["period"])
    assert min(table["period"].values()) > 1


# Options.


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", {}),
        ("-c 0 -np 0 -ub 0", {"context": 0}),
        ("-c 5 --ctx-size 7 -np 2", {"context": 7, "slots": 2}),
        ("--ctx_size=9 --parallel=3", {"context": 9, "slots": 3}),
        ("-ctk q8_0 --cache-type-v q4_0", {"key_type": "q8_0", "value_type": "q4_0"}),
        ("-fa off --fit off", {"flash": False, "adjusts": False}),
        ("-fa on -fit on", {"flash": True, "adjusts": True}),
        ("-ngl all", {"layers": 1 << 20}),
        ("-ngl auto", {"layers": None}),
        ("--n-gpu-layers 7", {"layers": 7}),
        ("-cmoe -nkvo --swa-full -no-kvu", {"expert_layers": 1 << 20, "cache_on_device": False, "whole_windows": True,
                                            "shared": False}),
        ("-fitt 512,256 -fitc 8192", {"margin_bytes": 512 << 20, "least_context": 8192}),
        ("-c -np -ctk", {}),
        ("-c x -np -1 -fitt x --foo 5", {}),
    ],
)  # fmt: skip
def test_words_for_the_server(words: str, found: dict[str, object]) -> None:
    read: dict[str, object] = {}
    read_words(words.split(), read)
    assert read == found


def test_settings_and_words_together() -> None:
    given_options = {"ctx_size": Given("8192", "-c"), "ngl": Given("9", "--ngl"), "ncmoe": Given("2", "--ncmoe"),
                     "runtime_args": Given(("-np 2 -c 4096",), "--runtime-args")}  # fmt: skip
    settings = load_settings(Request("serve", ("x",), given_options)).settings
    assert read_memory_options(settings, "serve") == MemoryOptions(context=4096, slots=2, layers=9, expert_layers=2)
    assert read_memory_options(settings, "bench").context == 4096
    plain = load_settings(Request("bench", ("x",), {})).settings
    assert read_memory_options(plain, "bench") == MemoryOptions(context=640, slots=1, adjusts=False)
    assert read_memory_options(plain, "perplexity") == MemoryOptions(context=2048, shared=True)
