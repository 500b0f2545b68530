"""Models of chosen shapes for measuring: weights are zeros, but real servers load them and reserve their memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from ramalama_like.memory import Part

MIB = 1 << 20
WIDTH, VOCABULARY, CONTEXT = 512, 4096, 4096


class _Writer:
    def __init__(self, path: Path, architecture: str, layers: int, width: int) -> None:
        tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{code:02X}>".encode() for code in range(256))]
        tokens += [f"t{number}".encode() for number in range(len(tokens), VOCABULARY)]
        self.gguf = gguf.GGUFWriter(path, architecture)
        self.gguf.add_context_length(CONTEXT)
        self.gguf.add_embedding_length(width)
        self.gguf.add_block_count(layers)
        self.gguf.add_layer_norm_rms_eps(1e-5)
        self.gguf.add_tokenizer_model("llama")
        self.gguf.add_token_list(tokens)
        self.gguf.add_token_scores([0.0] * VOCABULARY)
        self.gguf.add_token_types([2, 3, 3] + [6] * 256 + [1] * (VOCABULARY - 259))
        self.gguf.add_bos_token_id(1)
        self.gguf.add_eos_token_id(2)
        self.gguf.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")

    def zeros(self, name: str, *shape: int, kind: Any = np.float16, ending: str = ".weight") -> None:
        self.gguf.add_tensor(name + ending, np.zeros(shape, kind))

    def quantized(self, name: str, rows: int, columns: int) -> None:
        blocks = np.zeros((rows, columns // 32 * 34), np.uint8)
        self.gguf.add_tensor(f"{name}.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)

    def close(self) -> None:
        self.gguf.write_header_to_file()
        self.gguf.write_kv_data_to_file()
        self.gguf.write_tensors_to_file()
        self.gguf.close()


def make_model(
    path: Path, *, architecture: str = "llama", layers: int = 4, forward: int = 1024, cached_heads: int = 8,
    experts: int = 0, window: int = 0, quantized: bool = False, name: str = "",
) -> Path:  # fmt: skip
    """A model with attention: 8 heads of 64, and whatever else is asked for."""
    out = _Writer(path, architecture, layers, WIDTH)
    matrix = out.quantized if quantized else out.zeros
    if name:
        out.gguf.add_name(name)
    out.gguf.add_feed_forward_length(forward)
    out.gguf.add_head_count(8)
    out.gguf.add_head_count_kv(cached_heads)
    out.gguf.add_rope_dimension_count(64)
    if experts:
        out.gguf.add_expert_count(experts)
        out.gguf.add_expert_used_count(2)
    if window:
        out.gguf.add_sliding_window(window)
    out.zeros("token_embd", VOCABULARY, WIDTH)
    out.zeros("output_norm", WIDTH, kind=np.float32)
    if architecture != "gemma3":  # which uses its embeddings again
        out.zeros("output", VOCABULARY, WIDTH)
    for number in range(layers):
        here = f"blk.{number}."
        for name, rows in (("q", 512), ("k", cached_heads * 64), ("v", cached_heads * 64), ("output", 512)):
            matrix(f"{here}attn_{name}", rows, WIDTH)
        if experts:
            out.zeros(f"{here}ffn_gate_inp", experts, WIDTH, kind=np.float32)
            for name, rows, columns in (("gate", forward, WIDTH), ("up", forward, WIDTH), ("down", WIDTH, forward)):
                out.zeros(f"{here}ffn_{name}_exps", experts, rows, columns)
        else:
            for name, rows, columns in (("gate", forward, WIDTH), ("up", forward, WIDTH), ("down", WIDTH, forward)):
                matrix(f"{here}ffn_{name}", rows, columns)
        norms = {"attn_norm": WIDTH, "ffn_norm": WIDTH}
        if architecture == "gemma3":
            norms |= {"post_attention_norm": WIDTH, "post_ffw_norm": WIDTH, "attn_q_norm": 64, "attn_k_norm": 64}
        for name, size in norms.items():
            out.zeros(here + name, size, kind=np.float32)
    out.close()
    return path


def make_recurrent(path: Path, *, layers: int = 4, width: int = 256, inner: int = 512, state: int = 16) -> Path:
    """A Mamba model: no context cache, a state of the same size for every conversation."""
    out, step = _Writer(path, "mamba", layers, width), 16
    out.gguf.add_feed_forward_length(0)
    out.gguf.add_head_count(0)
    out.gguf.add_ssm_conv_kernel(4)
    out.gguf.add_ssm_inner_size(inner)
    out.gguf.add_ssm_state_size(state)
    out.gguf.add_ssm_time_step_rank(step)
    out.zeros("token_embd", VOCABULARY, width)
    out.zeros("output_norm", width, kind=np.float32)
    for number in range(layers):
        here = f"blk.{number}."
        out.zeros(f"{here}attn_norm", width, kind=np.float32)
        out.zeros(f"{here}ssm_in", 2 * inner, width)
        out.zeros(f"{here}ssm_conv1d", inner, 4, kind=np.float32)
        out.zeros(f"{here}ssm_conv1d", inner, kind=np.float32, ending=".bias")
        out.zeros(f"{here}ssm_x", step + 2 * state, inner)
        out.zeros(f"{here}ssm_dt", inner, step)
        out.zeros(f"{here}ssm_dt", inner, kind=np.float32, ending=".bias")
        out.zeros(f"{here}ssm_a", inner, state, kind=np.float32, ending="")
        out.zeros(f"{here}ssm_d", inner, kind=np.float32, ending="")
        out.zeros(f"{here}ssm_out", width, inner)
    out.close()
    return path


# What makes each model.
MODELS: Mapping[str, Mapping[str, Any]] = {
    "dense": {},
    "grouped": {"cached_heads": 2},
    "experts": {"cached_heads": 2, "experts": 4, "forward": 512},
    "narrow experts": {"cached_heads": 2, "experts": 16, "forward": 64},
    "window": {"architecture": "gemma3", "cached_heads": 2, "layers": 6, "window": 512},
    "quantized": {"quantized": True},
    "two layers": {"layers": 2, "forward": 3072},
    "recurrent": {},
}

# Model, and the server's own options.
MEASURED: list[tuple[str, tuple[str, ...]]] = [
    *((name, ()) for name in MODELS),
    ("dense", ("-c", "1000")),
    ("dense", ("-c", "300")),
    ("dense", ("-np", "1")),
    ("dense", ("-np", "3", "-c", "1000")),
    ("dense", ("-np", "2")),
    ("dense", ("-np", "2", "-kvu", "-c", "2048")),
    ("dense", ("-ub", "256")),
    ("dense", ("-fa", "off")),
    ("grouped", ("-fa", "off", "-c", "2048")),
    ("dense", ("-ctk", "q8_0")),
    ("dense", ("-ctk", "q8_0", "-ctv", "q8_0")),
    ("dense", ("-ctk", "q4_0", "-ctv", "q5_1")),
    ("experts", ("-ctk", "q8_0", "-ctv", "q8_0", "-c", "8192")),
    ("window", ("-np", "1")),
    ("window", ("-np", "2")),
    ("window", ("--swa-full",)),
    ("window", ("-c", "1024")),
    ("window", ("-ub", "128")),
    ("window", ("-ctk", "q8_0", "-ctv", "q8_0")),
    ("recurrent", ("-np", "1")),
]

# The same on a device.
MEASURED_ON_DEVICE: list[tuple[str, tuple[str, ...]]] = [
    ("dense", ()),
    ("dense", ("-ngl", "2")),
    ("experts", ("-ngl", "99", "-ncmoe", "2")),
    ("window", ()),
    ("window", ("-ngl", "3", "-ctk", "q8_0", "-ctv", "q8_0")),
    ("quantized", ("-nkvo",)),
]


def make_measured(folder: Path) -> dict[str, Path]:
    """All of ``MODELS`` in a folder."""
    paths = {name: folder / f"{name.replace(' ', '-')}.gguf" for name in MODELS}
    for name, path in paths.items():
        if name == "recurrent":
            make_recurrent(path)
        else:
            make_model(path, **MODELS[name])
    return paths


def read_report(log: str) -> tuple[Part, Part]:
    """What a server says that it has reserved, on devices and in main memory (``-lv 4``, or ``-v``)."""
    sums = {(place, kind): 0.0 for place in ("device", "main") for kind in ("weights", "cache", "overhead")}
    kinds = {"model": "weights", "KV": "cache", "RS": "cache", "compute": "overhead", "output": "overhead"}
    # With -fit on the server counts first, without reserving anything: only its last report is true.
    text = log[log.rfind("print_info: file format") :]
    for line in text.splitlines():
        before, found, after = line.partition(" buffer size = ")
        words = before.split()
        if found and len(words) > 2 and words[-1] in kinds:
            place = "device" if words[-2][-1:].isdigit() else "main"
            sums[place, kinds[words[-1]]] += float(after.split()[0])
    parts = [
        Part(*(round(sums[place, kind] * MIB) for kind in ("weights", "cache", "overhead")))
        for place in ("device", "main")
    ]
    return parts[0], parts[1]
