"""A model of a hub in a real container: pulled at its first use, and used without a network from then on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hubs.huggingface import HuggingFaceHub

from engine.conftest import Engine
from engine.test_commands import User

DEMO = Path(__file__).parents[2] / "ramalama_like" / "data" / "demo" / "demo.gguf"
PROMPT = "What is ramalama-like?"


@pytest.fixture
def hub() -> Iterator[HuggingFaceHub]:
    with HuggingFaceHub() as running:
        running.add("o/demo-GGUF", {"demo-Q8_0.gguf": DEMO.read_bytes(), "README.md": b"demo"})
        yield running


@pytest.fixture
def user(engine: Engine, world: Path, hub: HuggingFaceHub) -> User:
    found = User(engine, world / "user")
    found.environment["HF_ENDPOINT"] = hub.url
    found.environment["RAMALAMA_STORE"] = str(world / "store")
    return found


def test_the_first_use_pulls_and_the_second_needs_nobody(user: User, hub: HuggingFaceHub, world: Path) -> None:
    planned = user.dry_run("run", "hf://o/demo-GGUF", PROMPT)
    first = user.types("run", "--temp", "0", "hf://o/demo-GGUF", PROMPT)
    assert (first.returncode, "ramalama-like" in first.stdout) == (0, True), first.stderr
    assert "Pulling hf://o/demo-GGUF\n" in first.stderr
    total = hashlib.sha256(DEMO.read_bytes()).hexdigest()
    blob = world / "store" / "ramalama-like" / "blobs" / f"sha256-{total}"
    assert any(str(blob) in word for word in planned[0])
    asked = hub.count()
    again = user.types("--offline", "run", "--temp", "0", "hf://o/demo-GGUF:Q8_0", PROMPT)
    assert again.returncode == 5, "another name has not been pulled"
    again = user.types("--offline", "run", "--temp", "0", "o/demo-GGUF", PROMPT)
    assert (again.returncode, again.stdout, hub.count()) == (0, first.stdout, asked), again.stderr
    assert user.dry_run("run", "hf://o/demo-GGUF", PROMPT) == planned
    # What is mounted cannot be changed, neither from inside nor by mistake.
    assert blob.stat().st_mode & 0o222 == 0
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == total


def test_a_cache_with_links_is_used_where_it_lies(user: User, hub: HuggingFaceHub, world: Path) -> None:
    commit = hub.repositories["o/demo-GGUF"].refs["main"]
    cache = user.folder / ".cache" / "huggingface" / "hub" / "models--o--demo-GGUF"
    (cache / "blobs").mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / "snapshots" / commit).mkdir(parents=True)
    (cache / "refs" / "main").write_text(commit)
    (cache / "blobs" / "one").write_bytes(DEMO.read_bytes())
    (cache / "snapshots" / commit / "demo-Q8_0.gguf").symlink_to("../../blobs/one")
    answered = user.types("run", "--temp", "0", "hf://o/demo-GGUF", PROMPT)
    assert (answered.returncode, "ramalama-like" in answered.stdout) == (0, True), answered.stderr
    assert hub.count() == 0
    assert not (world / "store").exists()
