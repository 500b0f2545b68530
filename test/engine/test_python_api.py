"""The Python API over real engines: everything that it wraps, with the same results as over the embedded server."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openai
import pytest
from api_checks import (
    GRAMMAR,
    PROMPT,
    SCHEMA,
    check_asked_in_many_ways,
    check_many_streams,
    fits_grammar,
    fits_schema,
    write_adapter,
)
from demo_model.corpus import FIXED_ANSWER, FIXED_PROMPT

from ramalama_like import Model
from ramalama_like.errors import ChildFailed

if TYPE_CHECKING:
    from engine.conftest import Engine


@pytest.fixture
def runtime(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of our own, short enough for a socket's path."""
    for name, below in {"HOME": "user", "XDG_RUNTIME_DIR": "run"}.items():
        (world / below).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(world / below))
    return world / "run" / "ramalama-like"


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    path = tmp_path / "lora.gguf"
    write_adapter(path)
    return path


@pytest.fixture
def leaves_nothing(runtime: Path) -> Iterator[None]:
    yield
    assert not runtime.exists() or list(runtime.iterdir()) == []


def ask_everything(engine: str, adapter: Path, states: Path) -> dict[str, Any]:
    states.mkdir()
    with Model("demo", engine=engine, lora=f"{adapter}:0", slot_save_path=states, threads=1,
               runtime_args=["--parallel", "2"]) as model:  # fmt: skip
        return check_asked_in_many_ways(model, states)


def vectors(engine: str) -> tuple[list[float], list[tuple[int, float]]]:
    with Model("demo", engine=engine, embedding=True, runtime_args="--pooling mean", threads=1) as embedder:
        vector = embedder.embed("a text")
    # This model is no reranker: what it gives depends on what is computed together, so that is nothing here.
    with Model("demo", engine=engine, rerank=True, threads=1, runtime_args="--parallel 1") as ranker:
        ranked = ranker.rerank("containers", ["make demo", "podman runs containers", "a cat"])
    return vector, [(each.index, each.score) for each in ranked]


def test_the_same_results_as_over_the_embedded_server(
    engine: Engine, adapter: Path, tmp_path: Path, leaves_nothing: None
) -> None:
    contained = ask_everything(engine.name, adapter, tmp_path / "contained")
    assert contained == ask_everything("none", adapter, tmp_path / "embedded")


def test_the_same_vectors_and_rankings(engine: Engine, leaves_nothing: None) -> None:
    (vector, ranked), (expected, expected_ranked) = vectors(engine.name), vectors("none")
    assert max(abs(a - b) for a, b in zip(vector, expected, strict=True)) < 1e-3
    assert [index for index, _ in ranked] == [index for index, _ in expected_ranked]
    assert max(abs(a[1] - b[1]) for a, b in zip(ranked, expected_ranked, strict=True)) < 1e-2


def test_constraints_streams_and_the_client_of_openai(engine: Engine, tmp_path: Path, leaves_nothing: None) -> None:
    template = tmp_path / "template.jinja"
    template.write_text("{% for m in messages %}<|user|> {{ m.content }}<|end|>{% endfor %}<|assistant|>")
    with Model("demo", engine=engine.name, port=0, threads=1, chat_template=template) as model:
        assert model.apply_template("hi") == "<|user|> hi<|end|><|assistant|>"
        schema = [model.chat(PROMPT, json_schema=SCHEMA, seed=n, temperature=1.5) for n in range(100)]
        assert [answer.text for answer in schema if not fits_schema(answer.json())] == []
        grammar = [model.chat(PROMPT, grammar=GRAMMAR, seed=n, temperature=1.5).text for n in range(100)]
        assert [text for text in grammar if not fits_grammar(text)] == []
        assert check_many_streams(model, 64) == []
        with openai.OpenAI(base_url=model.base_url, api_key="none") as client:
            messages: Any = [{"role": "user", "content": FIXED_PROMPT}]
            pieces = client.chat.completions.create(model="demo", messages=messages, temperature=0, stream=True)
            assert "".join(each.choices[0].delta.content or "" for each in pieces if each.choices) == FIXED_ANSWER


def test_a_container_that_is_killed_is_the_reason(engine: Engine, leaves_nothing: None) -> None:
    for _ in range(3):
        with Model("demo", engine=engine.name, threads=1) as model:
            assert model.plan.container
            stream = model.complete("a", stream=True, max_tokens=100000, extra={"ignore_eos": True})
            next(stream)
            subprocess.run([engine.program, "kill", model.plan.container.name], check=True, capture_output=True)
            began = time.monotonic()
            with pytest.raises(ChildFailed, match="the server was killed"):
                for _ in stream:
                    pass
            assert time.monotonic() - began < 30  # a bound for hanging, not a measurement
