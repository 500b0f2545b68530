"""``info``: what is known about this machine, and what would be chosen on it, as JSON.

It is asked where something is wrong, so nothing that is wrong may keep it from answering: a fault stands in the part
that it concerns.
"""

from __future__ import annotations

import os

from ramalama_like import __version__, pipeline, settings, ui
from ramalama_like.accelerator import choose_accelerator, gpu_variables
from ramalama_like.cards import card_name
from ramalama_like.errors import AppError, Interrupted, ValueProblem
from ramalama_like.examine.engine import ask_info, info_question
from ramalama_like.facts import EngineFacts, facts_to_plain
from ramalama_like.gpu_selectors import card_selectors
from ramalama_like.image import choose_image
from ramalama_like.launch import Outline, show_outline
from ramalama_like.models.shortnames import read_shortnames
from ramalama_like.options import Setting, all_options
from ramalama_like.probe import probe
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramalama_like.facts import HostFacts
    from ramalama_like.options import Settings
    from ramalama_like.request import Request

# The dialect names the accelerator by vendor stack, not by backend.
STACKS = {"rocm": "hip", "cuda": "cuda", "sycl": "intel", "openvino": "intel", "cann": "cann", "musa": "musa"}
VENDOR_STACKS = {"amd": "hip", "nvidia": "cuda", "intel": "intel", "ascend": "cann", "moore-threads": "musa",
                 "apple-asahi": "asahi"}  # fmt: skip
ENGINE_PATIENCE_S = 5.0


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    import json

    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    merged = loaded.settings
    known = read_shortnames(settings.shortname_files())
    if merged.shortnames.value:
        lines = [f"{each.name}={each.target} ({each.source})" for _, each in sorted(known.names.items())]
        ui.write("".join(f"{ui.one_line(line)}\n" for line in lines))
        return 0
    facts = probe(merged.host_facts.value or "/")
    if merged.host_facts_out.value:
        return _write_facts(request, facts, merged)
    engine, engine_info = _look_at_engine(merged, facts)
    report = {
        **_choices(merged, facts, engine),
        "Cards": {selector: card_name(card) for selector, card in card_selectors(facts).items()},
        "Config": {"settings": {"config_files": list(loaded.files)}, **_configured(merged)},
        "Engine": engine_info,
        "HostFacts": facts_to_plain(facts),
        "RagImage": merged.rag_image.value,
        "Runtimes": {"Available": ["llama.cpp"], "Default": merged.runtime.value},
        "Selinux": merged.selinux.value,
        "Shortnames": {
            "Files": list(known.files),
            "Names": {name: each.target for name, each in known.names.items()},
            "Sources": {name: each.source for name, each in known.names.items()},
        },
        "Store": merged.store.value or settings.default_store(),
        "ToolsImage": "",
        "Tables": {"Files": list(loaded.tables)},
        "UseContainer": engine.kind != "none",
        "Version": __version__,
    }
    ui.write(json.dumps(report, indent=4, sort_keys=True) + "\n")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: ask the engine about itself. Raises AppError."""
    loaded = settings.load_settings(request)
    merged = loaded.settings
    engine, _ = _find_engine(merged, probe(merged.host_facts.value or "/"))
    asked = engine.program and not (merged.shortnames.value or merged.host_facts_out.value)
    return Outline(loaded, engine, (info_question(engine),) if asked else ())


def _write_facts(request: Request, facts: HostFacts, merged: Settings) -> int:
    import json

    from ramalama_like.anonymous import anonymize
    from ramalama_like.probe.private import probe_private

    private = probe_private(merged.host_facts.value or "/", settings.home_dir())
    text = json.dumps(facts_to_plain(anonymize(facts, private)), indent=2) + "\n"
    target = merged.host_facts_out.value
    if target == "-":
        ui.write(text)
    elif merged.dryrun.value:
        show_outline(request, outline(request))
        ui.say(f"Note: the facts would be written to {target}")
    else:
        _replace_file(target, text)
        ui.say(f"Written to {target}: without serial numbers and names, so it can be passed on")
    return 0


def _replace_file(target: str, text: str) -> None:
    """Write a file at once or not at all."""
    temporary = f"{target}.{os.getpid()}.part"
    try:
        with open(temporary, "x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(temporary, target)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise ValueProblem(f"--host-facts-out: {target}: {error.strerror}", "name a file in a folder that you may write"
                           ) from None  # fmt: skip


def _find_engine(merged: Settings, facts: HostFacts) -> tuple[EngineFacts, str]:
    """The engine, or none with the problem in words."""
    try:
        return pipeline.find_engine(merged, facts), ""
    except Interrupted:
        raise
    except AppError as error:
        return EngineFacts(kind="none", why=error.message), error.message


def _look_at_engine(merged: Settings, facts: HostFacts) -> tuple[EngineFacts, dict[str, Any]]:
    """The engine, and what the dialect tells about it: its name and its own ``info``, or why there is none."""
    engine, problem = _find_engine(merged, facts)
    if problem:
        return engine, {"Name": merged.engine.value, "Info": problem}
    if engine.kind == "none":
        return engine, {"Name": None, "Why": engine.why}
    told: dict[str, Any] = {"Name": engine.kind, "Version": engine.version_text, "Why": engine.why}
    if not facts.is_this_machine:
        return engine, {**told, "Info": "not asked: another machine"}
    info, problem = ask_info(engine, ENGINE_PATIENCE_S)
    return engine, {**told, "Info": problem or info}


def _configured(merged: Settings) -> dict[str, Any]:
    """What files say, by table and key."""
    tables: dict[str, Any] = {}
    for name, option in all_options().items():
        setting: Setting[object] = getattr(merged, name)
        if not option.key or option.secret or not setting.origin.rpartition(":")[2].isdigit():
            continue
        *above, key = option.key.split(".")
        table = tables
        for word in above:
            table = table.setdefault(word, {})
        table[key] = to_plain(setting.value)
    return tables


def _choices(merged: Settings, facts: HostFacts, engine: EngineFacts) -> dict[str, Any]:
    """What `auto` would choose here, and the image that each backend would get."""
    environment = settings.collect_gpu_environment(gpu_variables())

    def chosen(backend: Setting[str], gpus: Setting[tuple[str, ...]]) -> tuple[Any, Any]:
        accelerator = choose_accelerator(
            backend=backend, devices=merged.device, keep_groups=merged.keep_groups, gpus=gpus, facts=facts,
            engine=engine, family=merged.image_family.value, environment=environment,
        )  # fmt: skip
        image = choose_image(
            accelerator=accelerator, facts_arch=facts.arch, family=merged.image_family, explicit=merged.image,
            overrides=merged.images, default_image=merged.default_image,
        )  # fmt: skip
        return accelerator, image

    images = {}
    try:
        accelerator, image = chosen(merged.backend, merged.gpu)
        for candidate in accelerator.candidates:
            if candidate.backend not in images or candidate.chosen:
                _, other = chosen(Setting(candidate.backend, "info"), Setting(()))
                images[candidate.backend] = {"Ref": other.ref, "Why": other.why, "Chosen": candidate.chosen,
                                             "Reason": candidate.why}  # fmt: skip
    except ValueProblem as problem:  # a variable that names a card which is not there
        return {"Accelerator": "none", "Accelerators": {"problem": problem.message, "hint": problem.hint},
                "Image": "", "Images": {}}  # fmt: skip
    vendors = [VENDOR_STACKS[gpu.vendor] for gpu in facts.gpus if gpu.vendor in VENDOR_STACKS]
    stack = STACKS.get(accelerator.backend) or (vendors[0] if accelerator.backend == "vulkan" and vendors else "none")
    return {"Accelerator": stack, "Accelerators": to_plain(accelerator), "Image": image.ref, "Images": images}
