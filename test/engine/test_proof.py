"""Where the server computes, as it says itself: real engines, and Vulkan on Mesa's software device.

lavapipe needs no device node, and llama.cpp leaves processors out that call themselves Vulkan devices unless one is
chosen by GGML_VK_VISIBLE_DEVICES. Compiling its shaders takes half a minute on two cores; without optimization and in
shorter vectors, a third of that.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from made_models import make_model

from engine.test_commands import User, port, user  # noqa: F401 - fixtures

VULKAN = os.environ.get("ENGINE_TEST_VULKAN_IMAGE", "localhost/ramalama-like/vulkan:dev")
DRIVERLESS = os.environ.get("ENGINE_TEST_DRIVERLESS_IMAGE", "localhost/ramalama-like/vulkan-without-driver:dev")
SOFTWARE = ("--env", "GGML_VK_VISIBLE_DEVICES=0", "--env", "GALLIVM_PERF=nopt", "--env", "LP_NATIVE_VECTOR_WIDTH=128")
NO_CARD = "Warning: vulkan: no card that Vulkan can use was found"
NO_DRIVER = "the Vulkan backend is not in the image, or finds no driver there"
NO_GPU = "the image's Vulkan drivers found no GPU"
HINT = "Hint: choose another image with --image"


def needs(user: User, image: str) -> None:  # noqa: F811
    """Fail early, with the remedy, where the image is missing."""
    found = user.engine.run("image", "inspect", image, timeout=60)
    assert found.returncode == 0, f"{user.engine.name} has no {image}: run test/engine/prepare.sh"


def told(text: str) -> list[str]:
    """What the program says after the line about memory, without the server's own log (which begins with a time)."""
    lines = [line for line in text.splitlines() if not line[0].isdigit()]
    memory = [line for line in lines if line.startswith("Needs ")]
    assert len(memory) == 1, text
    lines.remove(memory[0])
    return lines


def test_vulkan_is_passed_used_and_proved(user: User, port: int) -> None:  # noqa: F811
    needs(user, VULKAN)
    line = ("serve", "-d", "demo", "--port", str(port), "--backend", "vulkan", "--image", VULKAN, *SOFTWARE)
    shown = user.types("--dryrun=json", *line)
    plan = json.loads(shown.stdout)
    assert (plan["accelerator"]["backend"], plan["image"]["ref"]) == ("vulkan", VULKAN)
    done = user.types(*line)
    stopped = user.types("stop", "--all")
    assert done.returncode == 0, done.stderr
    assert told(done.stderr)[:2] == [
        NO_CARD,
        "Running on Vulkan0 (llvmpipe), 4/4 layers: software, so the CPU computes",
    ]
    assert stopped.returncode == 0, stopped.stderr


def test_the_same_without_the_driver_runs_on_the_cpu(user: User, port: int) -> None:  # noqa: F811
    needs(user, DRIVERLESS)
    line = ("serve", "-d", "demo", "--port", str(port), "--backend", "vulkan", "--image", DRIVERLESS, *SOFTWARE)
    done = user.types(*line)
    assert user.types("stop", "--all").returncode == 0
    assert done.returncode == 0, done.stderr
    assert told(done.stderr)[:2] == [NO_CARD, f"Running on CPU because {NO_DRIVER}"]
    quiet = user.types(*line, "--quiet")
    assert user.types("stop", "--all").returncode == 0
    assert (quiet.returncode, quiet.stderr) == (0, "")


@pytest.mark.parametrize("command", [("run",), ("serve",), ("serve", "-d")])
def test_a_gpu_that_is_required_and_not_used_is_an_error(
    user: User,  # noqa: F811
    command: tuple[str, ...],
    port: int,  # noqa: F811
) -> None:
    needs(user, DRIVERLESS)
    before = user.engine.containers()
    line = [*command, "demo", "--require-gpu", "--backend", "vulkan", "--image", DRIVERLESS]
    # `run` with podman talks over a socket, which has to be gone afterwards too.
    line += ["hello"] if command == ("run",) else []
    line[1:1] = [] if line[0] == "run" and user.engine.name == "podman" else ["--port", str(port)]
    done = user.types(*line)
    assert (done.returncode, done.stdout) == (22, "")
    assert told(done.stderr) == [
        NO_CARD, f"Running on CPU because {NO_DRIVER}", f"Error: --require-gpu: no GPU computes: {NO_DRIVER}", HINT
    ]  # fmt: skip
    assert user.engine.containers() == before
    assert user.leftovers() == []


def test_a_driver_without_a_gpu(user: User, port: int) -> None:  # noqa: F811
    needs(user, VULKAN)
    line = ("serve", "-d", "demo", "--port", str(port), "--backend", "vulkan", "--image", VULKAN)
    done = user.types(*line, "--require-gpu")
    assert (done.returncode, done.stdout) == (22, "")
    assert told(done.stderr)[1] == f"Running on CPU because {NO_GPU}"
    assert told(done.stderr)[2] == f"Error: --require-gpu: no GPU computes: {NO_GPU}"


def test_a_model_cannot_say_that_it_is_on_a_gpu(user: User, port: int, tmp_path: Path) -> None:  # noqa: F811
    needs(user, DRIVERLESS)
    loading = ("load_tensors: loading model tensors", "load_tensors:      Vulkan0 model buffer size =    28.00 MiB")
    name = "\n".join(["x", *(f"0.00.100.000 I {line}" for line in loading)])
    model = make_model(tmp_path / "forged.gguf", layers=1, name=name)
    tmp_path.chmod(0o755)
    line = ("serve", "-d", str(model), "--port", str(port), "--backend", "vulkan", "--image", DRIVERLESS)
    done = user.types(*line, "--require-gpu")
    assert (done.returncode, done.stdout) == (22, "")
    why = "its log holds lines that the model itself may have written"
    assert told(done.stderr)[1:] == [
        f"Where it runs is not known: {why}",
        f"Error: --require-gpu: it could not be confirmed that a GPU computes: {why}",
        "Hint: use a model from a source that you trust",
    ]


def test_bench_that_requires_a_gpu(user: User) -> None:  # noqa: F811
    needs(user, DRIVERLESS)
    small = ("--runtime-args", "-p 4 -n 2 -r 1")
    done = user.types("bench", "demo", "--require-gpu", "--backend", "vulkan", "--image", DRIVERLESS, *small)
    assert (done.returncode, done.stdout) == (22, "")
    assert done.stderr.splitlines()[-2] == "Error: --require-gpu: no GPU computes: llama-bench found no GPU"


def test_the_report_is_not_in_the_users_log(user: User, port: int) -> None:  # noqa: F811
    server = user.starts("serve", "demo", "--port", str(port), "--backend", "cpu")
    assert server.stderr
    seen = []
    for line in server.stderr:
        seen.append(line)
        if "is served at" in line:
            break
    server.terminate()
    server.communicate(timeout=30)
    assert "Running on CPU because" in seen[-2]
    assert seen[0].startswith("Needs ")
    log = [re.sub(r"^[\d.]+ [IW] +\w+ +", "", line) for line in seen[1:-2]]
    assert len(log) == 7, seen
    assert log[0] == "llama_server: initializing ...\n"
