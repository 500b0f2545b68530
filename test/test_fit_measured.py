"""What is foreseen against what a real llama-server (the embedded one) reports that it has reserved, part by part."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from harness import ROOT
from made_models import MEASURED, make_measured, read_report

from ramalama_like.memory import Part, count_cells, make_need
from ramalama_like.memory_options import MemoryOptions, read_words
from ramalama_like.models.gguf import read_gguf
from ramalama_like.models.shapes import make_shape

ROUNDING = 32 << 10  # bytes; the report has two digits of a MiB, for up to four buffers in a part
WITHIN_S = 30.0


def foreseen(path: Path, words: Sequence[str], *, devices: int = 0) -> tuple[Part, Part]:
    """What the program says before the start: on devices, in main memory."""
    shape = make_shape([read_gguf(str(path))])
    assert shape is not None
    found: dict[str, object] = {}
    read_words(words, found)
    options = MemoryOptions(**found)  # type: ignore[arg-type]
    layers = len(shape.layers) + 1 if options.layers is None else options.layers
    need = make_need(shape, options, count_cells(shape, options), devices=devices, layers=layers)
    return need.device, need.main


def compare(told: Part, real: Part) -> None:
    """Weights and cache to the last digit of the report, the rest and the total within 10 %."""
    assert abs(told.weights - real.weights) <= ROUNDING
    assert abs(told.cache - real.cache) <= ROUNDING
    assert abs(told.overhead - real.overhead) <= real.overhead * 0.1 + ROUNDING
    assert abs(told.total - real.total) <= real.total * 0.1
    assert real.total


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_measured(tmp_path_factory.mktemp("made"))


def log_of_a_start(path: Path, words: Sequence[str]) -> str:
    """What the embedded server says until it serves; then it is stopped."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    line = [sys.executable, "-m", "ramalama_like.embedded", "--model", str(path), "--host", "127.0.0.1", "--port",
            str(port), "--no-warmup", "-lv", "4", "-t", "1", *words]  # fmt: skip
    lines = []
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        clock = threading.Timer(WITHIN_S, server.kill)
        clock.start()
        assert server.stderr is not None
        for text in server.stderr:
            lines.append(text)
            if "sched_reserve: reserve took" in text and "warm" not in text:
                server.send_signal(signal.SIGTERM)
        clock.cancel()
    return "".join(lines)


@pytest.mark.parametrize(
    ("name", "words"), MEASURED, ids=lambda part: part if isinstance(part, str) else " ".join(part)
)
def test_the_embedded_server_takes_what_was_foreseen(
    name: str, words: tuple[str, ...], models: dict[str, Path]
) -> None:
    log = log_of_a_start(models[name], words)
    device, main = read_report(log)
    assert device == Part(), log
    compare(foreseen(models[name], words)[1], main)
