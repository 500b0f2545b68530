"""``info``: what is known about this machine, and what would be chosen on it, as JSON."""

from __future__ import annotations

from ramalama_like import __version__, pipeline, settings, ui
from ramalama_like.accelerator import choose_accelerator, gpu_variables
from ramalama_like.errors import AppError
from ramalama_like.facts import facts_to_plain
from ramalama_like.image import choose_image
from ramalama_like.options import Setting
from ramalama_like.probe import probe
from ramalama_like.value import replace, to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramalama_like.facts import EngineFacts, HostFacts
    from ramalama_like.options import Settings
    from ramalama_like.request import Request

# The dialect names the accelerator by vendor stack, not by backend.
STACKS = {"rocm": "hip", "cuda": "cuda", "sycl": "intel", "openvino": "intel", "cann": "cann", "musa": "musa"}
VENDOR_STACKS = {"amd": "hip", "nvidia": "cuda", "intel": "intel", "ascend": "cann", "moore-threads": "musa",
                 "apple-asahi": "asahi"}  # fmt: skip


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    import json

    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    if loaded.settings.shortnames.value:
        return 0  # there are none in this version
    merged = loaded.settings
    facts = probe(merged.host_facts.value or "/")
    try:
        engine = pipeline.find_engine(merged, facts)
        engine_info: dict[str, Any] = {"Name": engine.kind, "Info": to_plain(engine)}
    except AppError as error:
        from ramalama_like.facts import EngineFacts

        engine = EngineFacts(kind="none", why=error.message)
        engine_info = {"Name": "", "Info": error.message}
    report = {
        **_choices(merged, facts, engine),
        "Config": {"settings": {"config_files": list(loaded.files)}},
        "Engine": engine_info,
        "HostFacts": facts_to_plain(facts),
        "RagImage": merged.rag_image.value,
        "Runtimes": {"Available": ["llama.cpp"], "Default": merged.runtime.value},
        "Selinux": merged.selinux.value,
        "Shortnames": {"Files": [], "Names": {}, "Sources": {}},
        "Store": merged.store.value or settings.default_store(),
        "ToolsImage": "",
        "Tables": {"Files": list(loaded.tables)},
        "UseContainer": engine.kind != "none",
        "Version": __version__,
    }
    ui.write(json.dumps(report, indent=4, sort_keys=True) + "\n")
    return 0


def _choices(merged: Settings, facts: HostFacts, engine: EngineFacts) -> dict[str, Any]:
    """What `auto` would choose here, and the image that each backend would get."""
    environment = settings.collect_gpu_environment(gpu_variables())

    def chosen(backend: Setting[str]) -> tuple[Any, Any]:
        accelerator = choose_accelerator(
            backend=backend, devices=merged.device, keep_groups=merged.keep_groups, gpus=merged.gpu, facts=facts,
            engine=engine, family=merged.image_family.value, environment=environment,
        )  # fmt: skip
        image = choose_image(
            accelerator=accelerator, facts_arch=facts.arch, family=merged.image_family, explicit=merged.image,
            overrides=merged.images, default_image=merged.default_image,
        )  # fmt: skip
        return accelerator, image

    accelerator, image = chosen(merged.backend)
    images = {}
    for candidate in accelerator.candidates:
        _, other = chosen(Setting(candidate.backend, "info"))
        images[candidate.backend] = {"Ref": other.ref, "Why": other.why, "Chosen": candidate.chosen,
                                     "Reason": candidate.why}  # fmt: skip
    vendors = [VENDOR_STACKS[gpu.vendor] for gpu in facts.gpus if gpu.vendor in VENDOR_STACKS]
    stack = STACKS.get(accelerator.backend) or (vendors[0] if accelerator.backend == "vulkan" and vendors else "none")
    return {"Accelerator": stack, "Accelerators": to_plain(replace(accelerator)), "Image": image.ref, "Images": images}
