"""The fault this project was born from: a wish for a back end must reach the image, whoever utters it and wherever."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import HOSTS, Recorder, language_model, run_cli

from ramalama_like import pipeline
from ramalama_like.options import COMMANDS
from ramalama_like.probe import probe
from ramalama_like.value import replace

STARTERS = [name for name, command in COMMANDS.items() if command.starts]
VULKAN, ROCM, OWN = "quay.io/ramalama/ramalama:0.25", "quay.io/ramalama/rocm:0.25", "example.org/own:1"
# Words before the command, before the model and after it; variables; the configuration file; the image.
WISHES: dict[str, tuple[list[str], list[str], dict[str, str], str, str]] = {
    "nothing": ([], [], {}, "", VULKAN),
    "flag before the model": (["--backend", "rocm"], [], {}, "", ROCM),
    "flag after the model": ([], ["--backend", "rocm"], {}, "", ROCM),
    "joined flag after the model": ([], ["--backend=rocm"], {}, "", ROCM),
    "variable of the runtime": ([], [], {"RAMALAMA_RUNTIMES__LLAMA_CPP__BACKEND": "rocm"}, "", ROCM),
    "variable": ([], [], {"RAMALAMA_BACKEND": "rocm"}, "", ROCM),
    "configuration": ([], [], {}, '[ramalama.runtimes.llama_cpp]\nbackend = "rocm"\n', ROCM),
    "configuration, named with a dot": ([], [], {}, '[ramalama.runtimes."llama.cpp"]\nbackend = "rocm"\n', ROCM),
    "image": ([], ["--image", OWN], {}, "", OWN),
    "image before the model": (["--image", OWN], [], {}, "", OWN),
    "image and flag": (["--backend", "rocm"], ["--image", OWN], {}, "", OWN),
    "image and variable": ([], ["--image", OWN], {"RAMALAMA_BACKEND": "rocm"}, "", OWN),
    "image of a variable": ([], [], {"RAMALAMA_IMAGE": OWN, "RAMALAMA_BACKEND": "rocm"}, "", OWN),
    "flag over variable": ([], ["--backend", "rocm"], {"RAMALAMA_BACKEND": "cuda"}, "", ROCM),
    "variable over configuration": (
        [], [], {"RAMALAMA_BACKEND": "rocm"}, '[ramalama.runtimes.llama_cpp]\nbackend = "cuda"\n', ROCM
    ),
    "flag for vulkan over configuration": (
        ["--backend", "vulkan"], [], {}, '[ramalama.runtimes.llama_cpp]\nbackend = "rocm"\n', VULKAN
    ),
    "image of the configuration for the back end": (
        ["--backend", "rocm"], [], {}, f'[ramalama.images]\nrocm = "{OWN}"\nvulkan = "example.org/not:1"\n', OWN
    ),
}  # fmt: skip

CASES = [("radeon-890m", wish) for wish in WISHES]
CASES += [("rx-7900-xtx-and-igpu", wish) for wish in ("nothing", "flag after the model", "variable", "image and flag")]


@pytest.mark.parametrize(("host", "wish"), CASES)
@pytest.mark.parametrize("command", STARTERS)
def test_the_image_follows_the_wish(
    host: str,
    command: str,
    wish: str,
    world: Path,
    fake_engine: Callable[[str], Recorder],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after, variables, configuration, image = WISHES[wish]
    recorder = fake_engine("podman-5.4")
    recorder.make_known()
    model, text = world / "m.gguf", world / "text.txt"
    model.write_bytes(language_model())
    text.write_text("text")
    for name, given in variables.items():
        monkeypatch.setenv(name, given)
    conf = world / "home" / ".config" / "ramalama" / "ramalama.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(configuration)
    line = [command, *before, str(model), *after, *(["--file", str(text)] if command == "perplexity" else [])]
    # Somebody else's machine.
    dry = run_cli("--dryrun", "--host-facts", str(HOSTS / host), *line)
    assert dry.code == 0
    assert images(shlex.split(dry.out.split("\n")[0])) == [image]
    # The same one, as that which the program runs on.
    facts = replace(probe(str(HOSTS / host)), root="/")
    monkeypatch.setattr(pipeline, "probe", lambda _root: facts)
    dry = run_cli("--dryrun", *line)
    run_cli(*line)
    (executed,) = recorder.take_runs()
    assert images(executed) == [image]
    assert shlex.split(dry.out.split("\n")[0]) == executed


def images(call: list[str]) -> list[str]:
    """All words of a command line that could be an image's reference."""
    return [word for word in call if word.startswith(("quay.io/", "example.org/"))]
