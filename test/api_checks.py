"""Checks of the Python API that hold for every server: the embedded one here, real ones in test/engine."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from demo_model.corpus import FIXED_ANSWER, FIXED_PROMPT
from harness import PACKAGE

from ramalama_like import Model
from ramalama_like.chat.client import ServerSaid
from ramalama_like.errors import AppError

PROMPT = "What is ramalama-like?"
BEGINNING = "A plan is"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "kind": {"enum": ["cat", "dog"]},
    },
    "required": ["name", "age", "kind"],
    "additionalProperties": False,
}
GRAMMAR = 'root ::= ("yes" | "no") " " [0-9] [0-9]'


def fits_schema(found: Any) -> bool:
    """Whether an answer follows SCHEMA."""
    return (
        isinstance(found, dict)
        and set(found) == {"name", "age", "kind"}
        and isinstance(found["name"], str)
        and len(found["name"]) <= 12
        and isinstance(found["age"], int)
        and 0 <= found["age"] <= 150
        and found["kind"] in ("cat", "dog")
    )


def fits_grammar(text: str) -> bool:
    """Whether an answer follows GRAMMAR."""
    word, _, number = text.partition(" ")
    return word in ("yes", "no") and len(number) == 2 and number.isascii() and number.isdigit()


def check_many_streams(model: Model, count: int) -> list[str]:
    """Ask ``count`` times at once, in pieces; the answers that are not what they must be."""
    wrong: list[str] = []

    def ask() -> None:
        try:
            text = "".join(piece.text for piece in model.chat(FIXED_PROMPT, temperature=0, stream=True))
        except AppError as error:
            text = repr(error)
        if text != FIXED_ANSWER:
            wrong.append(text)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def check_asked_in_many_ways(model: Model, states: Path) -> dict[str, Any]:
    """Ask everything that the API wraps, but for embeddings and rankings; what must be the same on every server."""
    found: dict[str, Any] = {"answer": model.chat(FIXED_PROMPT, temperature=0).text}
    plain = model.complete(BEGINNING, temperature=0, max_tokens=16)
    found["completion"] = plain.text
    tokens = model.tokenize(PROMPT)
    found["tokens"] = tokens
    assert model.detokenize(tokens) == PROMPT
    assert model.complete(model.tokenize(BEGINNING, special=True), temperature=0, max_tokens=16).text == plain.text
    found["template"] = model.apply_template([{"role": "user", "content": "hi"}])
    assert model.models() == ["demo"]
    assert model.properties()["chat_template"]

    # How tokens are chosen.
    likely = model.chat(FIXED_PROMPT, temperature=0, max_tokens=3, logprobs=2)
    assert [len(entry["top_logprobs"]) for entry in likely.logprobs] == [2, 2, 2]
    assert "".join(entry["token"] for entry in likely.logprobs) == likely.text == FIXED_ANSWER[: len(likely.text)]
    found["logprobs"] = [entry["token"] for entry in likely.logprobs]
    assert len(model.complete(BEGINNING, temperature=0, max_tokens=2, logprobs=1).logprobs) == 2
    first = model.tokenize(likely.logprobs[0]["token"])[0]
    for never in ({first: False}, {first: -100.0}):
        assert model.chat(FIXED_PROMPT, temperature=0, max_tokens=1, logit_bias=never).text != found["logprobs"][0]
    stop = FIXED_ANSWER.split()[2]
    assert model.chat(FIXED_PROMPT, temperature=0, stop=stop).text == FIXED_ANSWER.partition(stop)[0]
    found["penalized"] = model.chat(FIXED_PROMPT, temperature=0, max_tokens=60, repeat_penalty=2.0, presence_penalty=2,
                                    frequency_penalty=2, repeat_last_n=64).text  # fmt: skip
    assert found["penalized"] != FIXED_ANSWER[: len(found["penalized"])]
    draws = [model.chat(PROMPT, seed=5, temperature=1.2, top_k=20, top_p=0.9, min_p=0.01, max_tokens=8, slot=0,
                        cache_prompt=False).text for _ in range(2)]  # fmt: skip
    assert draws[0] == draws[1]

    # Constraints.
    assert fits_schema(model.chat(PROMPT, json_schema=SCHEMA, temperature=0).json())
    # Between values this small model may choose blanks for ever, where a server allows them: here there are none.
    assert model.complete(PROMPT, json_schema={"enum": ["cat", "dog"]}, temperature=0).json() in ("cat", "dog")
    found["grammar"] = model.complete(PROMPT, grammar=GRAMMAR, temperature=0).text
    assert fits_grammar(found["grammar"])
    with pytest.raises(ServerSaid):
        model.chat(PROMPT, grammar="no grammar")

    # The cache of a prompt, and the state of a slot.
    model.erase_state(slot=1)
    fresh = model.chat(FIXED_PROMPT, temperature=0, max_tokens=4, slot=1)
    again = model.chat(FIXED_PROMPT, temperature=0, max_tokens=4, slot=1)
    assert again.timings["cache_n"] > fresh.timings["cache_n"]
    uncached = model.chat(FIXED_PROMPT, temperature=0, max_tokens=4, slot=1, cache_prompt=False)
    assert uncached.timings["cache_n"] == 0 and uncached.text == again.text
    saved = model.save_state("kept.bin", slot=1)
    assert (states / "kept.bin").stat().st_size > 0
    assert model.erase_state(slot=1) == saved > 0
    assert model.restore_state("kept.bin", slot=1) == saved
    restored = model.chat(FIXED_PROMPT, temperature=0, max_tokens=4, slot=1)
    assert restored.timings["cache_n"] > 0 and restored.text == again.text

    # Adapters.
    assert [(each["id"], each["scale"]) for each in model.adapters()] == [(0, 0.0)]
    changed = model.chat(FIXED_PROMPT, temperature=0, max_tokens=12, adapters={0: 40.0}).text
    assert changed != FIXED_ANSWER[: len(changed)]
    model.set_adapters({0: 0.5})
    assert model.adapters()[0]["scale"] == 0.5
    model.set_adapters({0: 0.0})
    found["with adapter"] = changed

    # An image, which this model cannot see.
    with pytest.raises(ServerSaid) as refused:
        model.chat("What is this?", images=[b"\x89PNG\r\n\x1a\n" + bytes(20)])
    assert "image" in refused.value.message or "mmproj" in refused.value.message
    return found


def write_adapter(path: Path) -> None:
    """A LoRA adapter of rank 2 with random weights for the demo model."""
    reader = gguf.GGUFReader(PACKAGE / "data" / "demo" / "demo.gguf")
    architecture = str(reader.fields["general.architecture"].contents())
    random = np.random.default_rng(3)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 2.0)
    for tensor in reader.tensors:
        if tensor.name.endswith("attn_output.weight"):
            columns, rows = (int(length) for length in tensor.shape)
            writer.add_tensor(f"{tensor.name}.lora_a", random.standard_normal((2, columns)).astype(np.float32))
            writer.add_tensor(f"{tensor.name}.lora_b", random.standard_normal((rows, 2)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
