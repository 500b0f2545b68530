"""A small Llama model with random weights as Hugging Face's repositories hold them: no library is needed to make it.

``tokenizer.model`` is a SentencePiece model, written as the protobuf that it is: one piece for each byte, and a few
words. Everything follows from the seed.
"""

from __future__ import annotations

import json
import random
import struct
from array import array
from pathlib import Path

HIDDEN, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 4, 128, 128
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
PIECES = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), *((f"<0x{n:02X}>", BYTE) for n in range(256)),
          *((letter, NORMAL) for letter in "▁abcdefghijklmnopqrstuvwxyz.,!?"),
          *((word, NORMAL) for word in ("▁a", "▁t", "he", "▁the"))]  # fmt: skip


def make_safetensors(folder: Path, seed: int = 1) -> Path:
    """Put the model's files into a new folder; returns it."""
    folder.mkdir(parents=True)
    vocabulary = len(PIECES)
    shapes = {"model.embed_tokens.weight": [vocabulary, HIDDEN], "lm_head.weight": [vocabulary, HIDDEN],
              "model.norm.weight": [HIDDEN]}  # fmt: skip
    for layer in range(LAYERS):
        inside = f"model.layers.{layer}"
        for name in "qkvo":
            shapes[f"{inside}.self_attn.{name}_proj.weight"] = [HIDDEN, HIDDEN]
        for name in ("gate", "up"):
            shapes[f"{inside}.mlp.{name}_proj.weight"] = [INNER, HIDDEN]
        shapes[f"{inside}.mlp.down_proj.weight"] = [HIDDEN, INNER]
        for name in ("input", "post_attention"):
            shapes[f"{inside}.{name}_layernorm.weight"] = [HIDDEN]
    (folder / "model.safetensors").write_bytes(weights(shapes, random.Random(seed)))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "rms_norm_eps": 1e-5,
        "vocab_size": vocabulary, "max_position_embeddings": CONTEXT, "hidden_act": "silu", "rope_theta": 10000.0,
        "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32", "tie_word_embeddings": False,
    }))  # fmt: skip
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "LlamaTokenizer", "add_bos_token": True})
    )
    (folder / "tokenizer.model").write_bytes(sentencepiece())
    return folder


def make_gguf(path: Path) -> Path:
    """A model of the same shape and vocabulary as a GGUF file in F16, which needs no converter."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_file_type(1)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([piece.encode() for piece, _ in PIECES])
    writer.add_token_scores([-float(number) for number in range(len(PIECES))])
    writer.add_token_types([kind for _, kind in PIECES])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    numbers = np.random.default_rng(1)
    shapes = {"token_embd": (len(PIECES), HIDDEN), "output": (len(PIECES), HIDDEN), "output_norm": (HIDDEN,)}
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes[f"blk.{layer}.{name}"] = (HIDDEN, HIDDEN)
        shapes |= {f"blk.{layer}.ffn_gate": (INNER, HIDDEN), f"blk.{layer}.ffn_up": (INNER, HIDDEN),
                   f"blk.{layer}.ffn_down": (HIDDEN, INNER), f"blk.{layer}.attn_norm": (HIDDEN,),
                   f"blk.{layer}.ffn_norm": (HIDDEN,)}  # fmt: skip
    for name, shape in shapes.items():
        values = numbers.standard_normal(shape) * 0.1
        writer.add_tensor(
            f"{name}.weight", np.ones(shape, np.float32) if len(shape) == 1 else values.astype(np.float16)
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def weights(shapes: dict[str, list[int]], numbers: random.Random) -> bytes:
    """A safetensors file: the length of a header in JSON, the header, and the tensors one after the other."""
    header, data = {}, bytearray()
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = array("f", [numbers.gauss(0, 0.1) for _ in range(count)] if len(shape) > 1 else [1.0] * count)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(data)


def sentencepiece() -> bytes:
    """The vocabulary as a protobuf: pieces (field 1), and the trainer's choices (field 2)."""
    out = b""
    for number, (piece, kind) in enumerate(PIECES):
        text = piece.encode()
        inner = (
            b"\x0a" + varint(len(text)) + text + b"\x15" + struct.pack("<f", -float(number)) + b"\x18" + varint(kind)
        )
        out += b"\x0a" + varint(len(inner)) + inner
    # model_type BPE (3), vocab_size (4), byte_fallback (35)
    trainer = b"\x18\x02" + b"\x20" + varint(len(PIECES)) + varint(35 << 3) + b"\x01"
    return out + b"\x12" + varint(len(trainer)) + trainer


def varint(number: int) -> bytes:
    """A number in seven-bit pieces, the lowest first."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
