"""``convert`` with real engines: a model is made, served, sent to a real registry and comes back as it was."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from made_safetensors import make_gguf, make_safetensors

from engine.conftest import Engine, refuse
from engine.registries import run_registry
from engine.test_commands import User
from ramalama_like.models.gguf import read_gguf
from ramalama_like.models.store import Store

FILE_TYPES = {"": 1, "Q4_0": 2, "Q8_0": 7}  # general.file_type: F16 where nothing was asked for
WITHIN_S = 90


@pytest.fixture
def user(engine: Engine, world: Path) -> User:
    """A user of each engine in turn."""
    return User(engine, world / "user")


@pytest.fixture
def tools(engine: Engine) -> str:
    """The image with the converter, which takes minutes to build: `prepare.sh --tools` does that."""
    image = os.environ.get("ENGINE_TEST_TOOLS_IMAGE", "")
    if not image:
        pytest.skip("ENGINE_TEST_TOOLS_IMAGE is not set: run test/engine/prepare.sh --tools")
    if engine.run("image", "inspect", image).returncode:
        refuse(f"{engine.name} has no image {image}")
    return image


def complete(user: User, model: str, store: str) -> str:
    """One completion of a model that is served for it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    server = user.starts("--store", store, "serve", "--port", port, "-c", "64", model)
    try:
        deadline = time.monotonic() + WITHIN_S
        body = json.dumps({"prompt": "the cat", "n_predict": 4, "temperature": 0, "ignore_eos": True}).encode()
        while True:
            assert server.poll() is None and time.monotonic() < deadline
            try:
                # A port that is not ready yet may be held by the engine, which never answers.
                answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/completion", body, timeout=5)
            except urllib.error.HTTPError as error:
                assert error.code == 503, error.read()  # while it loads
                time.sleep(0.1)
                continue
            except OSError:
                time.sleep(0.1)
                continue
            with answer:
                found = json.load(answer)
            assert found["tokens_predicted"] == 4
            return str(found["content"])
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)


def check(user: User, source: str, quantization: str, *words: str, registry: bool = False) -> None:
    """Convert into the store, look at what was made, serve it; push it, and pull it into another store."""
    one, two = str(user.folder / "one"), str(user.folder / "two")
    gguf = ("--gguf", quantization) if quantization else ()
    with run_registry(user.folder / "registry") if registry else contextlib.nullcontext() as running:
        target = f"oci://{running.place}/made/tiny:1" if running else "hf://made/tiny:1"
        done = user.types("--store", one, "convert", *words, *gguf, source, target)
        assert done.returncode == 0, done.stderr
        record = Store(one).find_record(target)
        assert record and len(record.files) == 1
        made = Path(Store(one).blob_path(record.files[0].sha256))
        assert read_gguf(str(made)).number("general.file_type") == FILE_TYPES[quantization]
        assert hashlib.sha256(made.read_bytes()).hexdigest() == record.files[0].sha256
        assert os.listdir(f"{one}/ramalama-like/partial") == []
        assert len(complete(user, target, one)) > 0
        if running:
            assert done.stdout.startswith(f"oci://{running.place}/made/tiny@sha256:")
            pulled = user.types("--store", two, "pull", target)
            assert pulled.returncode == 0, pulled.stderr
            back = Path(Store(two).blob_path(record.files[0].sha256))
            assert back.read_bytes() == made.read_bytes()


@pytest.mark.parametrize("quantization", ["Q4_0", "Q8_0"])
def test_quantizing(user: User, quantization: str) -> None:
    """In the image that serves, which holds the quantizer."""
    source = make_gguf(user.folder / "tiny.gguf")
    check(user, str(source), quantization, registry=quantization == "Q4_0")


@pytest.mark.parametrize("quantization", ["", "Q4_0", "Q8_0"])
def test_safetensors(user: User, tools: str, quantization: str) -> None:
    source = make_safetensors(user.folder / "tiny")
    check(user, str(source), quantization, "--tools-image", tools, registry=quantization != "Q4_0")


def test_what_the_converter_says_reaches_people(user: User, tools: str) -> None:
    source = make_safetensors(user.folder / "tiny")
    (source / "config.json").write_text(json.dumps({"architectures": ["NobodyKnowsIt"], "model_type": "llama"}))
    done = user.types("--store", str(user.folder / "one"), "convert", "--tools-image", tools, str(source), "a.gguf")
    assert (done.returncode, done.stdout) == (1, "")
    assert "NobodyKnowsIt" in done.stderr.splitlines()[-2], done.stderr
    assert not (user.folder / "a.gguf").exists()
    assert os.listdir(user.folder / "one" / "ramalama-like" / "partial") == []


def test_ctrl_c_leaves_nothing(user: User, tools: str) -> None:
    """While the converter is at work: neither its container nor its folder stays."""
    source = make_safetensors(user.folder / "tiny")
    one = user.folder / "one"
    child = user.starts("--store", str(one), "convert", "--tools-image", tools, str(source), "a.gguf")
    deadline = time.monotonic() + WITHIN_S
    while not user.engine.run("ps", "-q", "--filter", "name=ramalama-convert-").stdout.strip():
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert os.listdir(one / "ramalama-like" / "partial") == []
    assert not (user.folder / "a.gguf").exists()
