"""Every test runs in a world of its own: empty folders, no variables of this program, no files of the machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import hypothesis
import numpy as np
import pytest
from harness import ENGINES, ROOT, Recorder, free_usual_ports, short_folder

from ramalama_like import settings
from ramalama_like.accelerator import gpu_variables
from ramalama_like.data import use_tables
from ramalama_like.settings import LoadedSettings, load_settings

# Machines of all speeds, and with other work, run these tests: no example has a deadline, the time that drawing takes
# is no fault, and none leaves a file in the source tree.
hypothesis.settings.register_profile(
    "suite", deadline=None, database=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")

FOLDERS = {"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run"}
UNSET = ("NO_COLOR", "CLICOLOR", "FORCE_COLOR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
         "XDG_CONFIG_DIRS", "XDG_DATA_DIRS", "HF_HOME", "HF_TOKEN", "CONTAINER_HOST", "DOCKER_HOST")  # fmt: skip


@pytest.fixture(autouse=True, scope="session")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pytest keeps its own folders: made before any test has a TMPDIR of its own, which goes with it."""
    return tmp_path_factory.getbasetemp()


@pytest.fixture(autouse=True)
def world(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The folder that holds HOME, TMPDIR and all that this program may read or write."""
    # Real engines are configured by variables, and find their images by HOME.
    with_engine = request.node.get_closest_marker("engine") is not None
    with pytest.MonkeyPatch.context() as patch, short_folder() as folder:
        kept = "ENGINE_TEST_" if with_engine else "\0"
        names = [name for name in os.environ if name.startswith("RAMALAMA_") and not name.startswith(kept)]
        for name in (*names, *gpu_variables()):
            patch.delenv(name, raising=False)
        patch.setenv("COLUMNS", "80")
        patch.setenv("PYTHONPATH", str(ROOT))
        if not with_engine:
            for name in UNSET:
                patch.delenv(name, raising=False)
            for name, below in FOLDERS.items():
                (folder / below).mkdir(mode=0o700)
                patch.setenv(name, str(folder / below))
            patch.setattr(tempfile, "tempdir", None)

        def load(request: settings.Request, environ: None = None, root: str = "") -> LoadedSettings:
            # Those who only call the module see no configuration of this machine.
            return load_settings(request, environ, root or f"{folder}/system")

        patch.setattr(settings, "load_settings", load)
        yield folder
        use_tables({})


@pytest.fixture
def fake_engine(world: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Recorder]:
    """Install a recording engine, ``podman-4.9`` for instance, as the only one on PATH."""

    def install(which: str, **behaviour: str) -> Recorder:
        kind, version = ENGINES[which]
        free_usual_ports(monkeypatch)  # a recorder opens none, whatever else this machine is doing
        recorder = Recorder.install(world / which, kind, "ramalama-like", kind=kind)
        monkeypatch.setenv("PATH", recorder.path)
        monkeypatch.setenv("FAKE_RECORDS", str(recorder.folder / "records"))
        monkeypatch.setenv("FAKE_VERSION", version)
        for name, text in behaviour.items():
            monkeypatch.setenv(f"FAKE_{name.upper()}", text)
        return recorder

    return install


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama model of a few hundred kilobytes that real servers load, alone in its folder."""
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    tokens = [b"<unk>", b"<s>", b"</s>", *(bytes([code]) for code in range(33, 126))]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(512)
    writer.add_embedding_length(64)
    writer.add_block_count(2)
    writer.add_feed_forward_length(128)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([2, 3, 3] + [1] * (len(tokens) - 3))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    random = np.random.default_rng(0)

    def noise(name: str, *shape: int) -> None:
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) * 0.1).astype(np.float32))

    noise("token_embd", len(tokens), 64)
    noise("output", len(tokens), 64)
    writer.add_tensor("output_norm.weight", np.ones(64, np.float32))
    for block in range(2):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            noise(f"blk.{block}.{name}", 64, 64)
        noise(f"blk.{block}.ffn_gate", 128, 64)
        noise(f"blk.{block}.ffn_up", 128, 64)
        noise(f"blk.{block}.ffn_down", 64, 128)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{block}.{name}.weight", np.ones(64, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
