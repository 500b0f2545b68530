"""What is foreseen against what the real llama-server of the image reports, in a container of each engine."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from made_models import MEASURED, MEASURED_ON_DEVICE, make_measured, read_report
from test_fit_measured import ROUNDING, compare, foreseen

from ramalama_like.facts import HostFacts
from ramalama_like.fit import main_place, make_fit
from ramalama_like.memory import Part
from ramalama_like.memory_options import MemoryOptions, read_words
from ramalama_like.models.gguf import read_gguf
from ramalama_like.models.shapes import make_shape

if TYPE_CHECKING:
    from engine.conftest import Engine

# Starts a server for each line of arguments and stops it as soon as it listens.
SCRIPT = """
measure() {
    echo "=== start"
    rm -f /tmp/s.sock
    : > /tmp/log  # the last one would say that this one listens
    timeout 60 llama-server --host /tmp/s.sock --no-warmup -lv 4 -t 1 "$@" > /tmp/log 2>&1 & server=$!
    while kill -0 $server 2> /dev/null; do
        grep -q 'listening on' /tmp/log && break
        sleep 0.05
    done
    kill $server 2> /dev/null
    wait $server
    cat /tmp/log
}
"""


Report = tuple[Path, tuple[str, ...], str]
# An image whose server has Mesa's software Vulkan driver, where one was made.
VULKAN_IMAGE = os.environ.get("ENGINE_TEST_VULKAN_IMAGE", "")


def run_all(
    engine: Engine, folder: Path, cases: list[tuple[str, tuple[str, ...]]], image: str, *more: str
) -> list[Report]:
    """Every model that is measured, its options, and the log of the server."""
    models = make_measured(folder)
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    script = SCRIPT + "".join(
        f"measure {shlex.join(['-m', f'/models/{models[name].name}', *words])}\n" for name, words in cases
    )
    (folder / "measure.sh").write_text(script, "utf-8")
    done = engine.run(
        "run", "--rm", "--label", "ai.ramalama", "--network", "none", "--cap-drop=all", *more, "--volume",
        f"{folder}:/models:ro", image, "sh", "/models/measure.sh", timeout=300, check=True,
    )  # fmt: skip
    logs = done.stdout.split("=== start\n")[1:]
    assert len(logs) == len(cases)
    return [(models[name], words, log) for (name, words), log in zip(cases, logs, strict=True)]


@pytest.fixture(scope="module")
def reports(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    """Of the image that the tests of engines have: its server knows no device."""
    return run_all(engine, tmp_path_factory.mktemp("made"), MEASURED, engine.image)


def test_the_server_of_the_image_takes_what_was_foreseen(
    reports: list[Report],
) -> None:
    for path, words, log in reports:
        device, main = read_report(log)
        assert device == Part(), log
        told = foreseen(path, words)[1]
        try:
            compare(told, main)
        except AssertionError:
            pytest.fail(f"{path.stem} {' '.join(words)}: foreseen {told}, the server says {main}")


def test_the_server_itself_projects_the_same(reports: list[Report]) -> None:
    """``-fit`` counts before it loads; its "projected to use N MiB" is the sum that the verdict rests on."""
    seen = 0
    for path, words, log in reports:
        projected = re.search(r"projected to use (\d+) MiB of host memory", log)
        if projected:
            seen += 1
            # It leaves the scores of the next tokens out, and cuts digits off.
            assert int(projected[1]) == pytest.approx(foreseen(path, words)[1].total / (1 << 20), rel=0.1, abs=1)
    assert seen == len(MEASURED)


@pytest.mark.skipif(not VULKAN_IMAGE, reason="ENGINE_TEST_VULKAN_IMAGE names no image with a Vulkan device")
def test_a_device_and_main_memory_share_as_foreseen(engine: Engine, tmp_path: Path) -> None:
    if engine.run("image", "inspect", VULKAN_IMAGE, timeout=60).returncode:
        pytest.skip(f"{engine.name} has no image {VULKAN_IMAGE}")
    # llama.cpp leaves out devices that are the CPU in disguise, unless they are asked for.
    asked = ("--env", "GGML_VK_VISIBLE_DEVICES=0")
    for path, words, log in run_all(engine, tmp_path, MEASURED_ON_DEVICE, VULKAN_IMAGE, *asked):
        told, real = foreseen(path, words, devices=1), read_report(log)
        shown = f"{path.stem} {' '.join(words)}: foreseen {told}, the server says {real}"
        for mine, its in zip(told, real, strict=True):
            assert its.total > 0, log
            assert abs(mine.weights - its.weights) <= ROUNDING, shown
            assert abs(mine.cache - its.cache) <= ROUNDING, shown
            assert abs(mine.total - its.total) <= its.total * 0.1, shown


def test_the_server_shortens_the_context_as_foreseen(engine: Engine, tmp_path: Path) -> None:
    """``-fitt`` makes memory scarce: what is left is less than the whole context takes, and more than a part of it."""
    ((_, _, log),) = run_all(engine, tmp_path, [("dense", ())], engine.image)
    total = re.search(r"vs\. (\d+) MiB of total host memory", log)
    assert total is not None
    memory = int(total[1])
    words = ("-fitt", str(memory - 60), "-fitc", "256")
    ((path, _, log),) = run_all(engine, tmp_path, [("dense", words)], engine.image)
    served = re.search(r"llama_context: n_ctx += (\d+)", log)
    assert served is not None
    shape = make_shape([read_gguf(str(path))])
    assert shape is not None
    options: dict[str, object] = {}
    read_words(words, options)
    facts = HostFacts(memory_bytes=memory << 20)
    found = make_fit([shape], MemoryOptions(**options), main_place(facts), facts)  # type: ignore[arg-type]
    assert found.verdict == "fits with a shorter context"
    assert int(served[1]) == pytest.approx(found.served_context, rel=0.15)
