"""The cards' drivers and instruction sets are what the images are built for."""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.health import Case, Finding, fail, install_command, ok, skip, warn
from ramalama_like.suitability import dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def check(case: Case) -> Iterator[Finding]:
    """By the tables: what an image of the user's own needs is not known."""
    images = load_table("images")["families"][case.settings.image_family.value]["images"]
    if case.engine.kind == "none":
        yield skip("not checked: no image is used")
        return
    if not case.settings.image.is_default:
        yield skip(f"not checked: what {case.settings.image.value} needs is not known")
        return
    backend = case.plan.accelerator.backend if case.plan is not None else ""
    found = [*_nvidia(case, images["cuda"], backend), *_amd(case, images["rocm"], backend)]
    yield from found or [skip("nothing to check: no card's driver has to fit an image")]


def _nvidia(case: Case, image: dict[str, Any], backend: str) -> Iterator[Finding]:
    driver, oldest = case.facts.nvidia_driver, image.get("driver_minimum")
    if not driver or not oldest:
        return
    if dotted(driver) < dotted(oldest):
        judge = fail if backend == "cuda" else warn
        yield judge(f"the NVIDIA driver {driver} is older than {oldest}",
                    f"{image['contains']} in the image does not run on it",
                    install_command("nvidia-driver", _system(case)))  # fmt: skip
    elif dotted(driver) < dotted(image.get("driver_full", oldest)):
        yield ok(f"the NVIDIA driver {driver} runs {image['contains']} by minor-version compatibility")
    else:
        yield ok(f"the NVIDIA driver {driver} runs {image['contains']}")


def _amd(case: Case, image: dict[str, Any], backend: str) -> Iterator[Finding]:
    known = image.get("gfx", ())
    sets = dict.fromkeys(gpu.gfx for gpu in case.facts.gpus if gpu.vendor == "amd" and gpu.gfx)
    for gfx in sets:
        if gfx in known:
            yield ok(f"the image {image['name']} has code for {gfx}")
        elif backend == "rocm":
            yield fail(f"the image {image['name']} has no code for {gfx}", "the server would die at the first token",
                       "ramalama-like run --backend vulkan MODEL")  # fmt: skip
        else:
            yield ok(f"{gfx} is not in the image {image['name']}, and {backend or 'nothing'} does not need it")


def _system(case: Case) -> str:
    return case.observed.system if case.observed is not None else ""
