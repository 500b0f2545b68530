"""The recorded machines: what each is called, and what would be chosen on it, written for people.

``docs/machines.md`` and ``golden/hosts/*.txt`` are made here from the folders in ``hosts``; ``test_machines.py``
compares them. After a wanted change: ``UPDATE_GOLDEN=1 python -m pytest test/test_machines.py``, then review.
"""

from __future__ import annotations

from collections.abc import Iterator

from test_accelerator import ENGINES, choose, host, image_of

from ramalama_like.accelerator import Accelerator
from ramalama_like.data import load_table
from ramalama_like.facts import HostFacts
from ramalama_like.image import Image
from ramalama_like.options import BACKENDS
from ramalama_like.value import replace

# Folder, and what people call the machine; in the order of the document.
MACHINES = {
    "no-gpu": "A server without a GPU",
    "simpledrm": "A server with only the firmware's display (simpledrm)",
    "radeon-890m": "Radeon 890M, integrated (gfx1150)",
    "rx-7900-xtx-and-igpu": "Radeon RX 7900 XTX (gfx1100) and a Ryzen's integrated graphics (gfx1036)",
    "rx-580": "Radeon RX 580, Polaris (gfx803)",
    "two-mi300x": "Two Instinct MI300X (gfx942)",
    "ten-mi50-and-mi100": "Nine Instinct MI50 (gfx906) and one MI100 (gfx908), two CPUs",
    "arm64-rx-6700-xt": "Radeon RX 6700 XT (gfx1031) in an arm64 machine",
    "amd-and-nvidia": "GeForce RTX 4090 and Radeon RX 7900 XTX",
    "rtx-4090": "GeForce RTX 4090, driver 570, with a CDI specification",
    "rtx-4090-without-cdi": "GeForce RTX 4090, driver 570, without a CDI specification",
    "gtx-1080-driver-470": "GeForce GTX 1080, driver 470, with a CDI specification",
    "gtx-1080-nouveau": "GeForce GTX 1080 on nouveau, the kernel's own driver",
    "two-rtx-3090": "Two GeForce RTX 3090",
    "eight-h100": "Eight H100",
    "laptop-nvidia-and-intel": "Laptop with an NVIDIA card and Intel's integrated graphics",
    "jetson-agx-orin": "Jetson AGX Orin",
    "wsl-nvidia": "Windows (WSL2) with an NVIDIA card and a CDI specification",
    "wsl-without-nvidia": "Windows (WSL2) with a card of another vendor",
    "arc-a770-xe": "Intel Arc A770 on xe, with a device number that no list has",
    "two-flex-170": "Two Intel Data Center GPU Flex 170",
    "core-ultra-with-npu": "Intel Core Ultra with integrated graphics and NPU",
    "ascend-910b": "Two Ascend 910B in an arm64 server",
    "mtt-s80": "Moore Threads MTT S80",
    "asahi-m1": "MacBook with M1 under Asahi Linux",
    "mac-podman-libkrun": "Mac with Apple's processor, podman machine on libkrun",
    "mac-podman-applehv": "Mac with Apple's processor, podman machine on applehv",
    "s390x": "IBM Z (s390x)",
    "toolbox": "Inside a toolbox on a laptop with a Radeon 890M",
}
# Besides no variable at all.
SCENARIOS = {
    "two-rtx-3090": [{"CUDA_VISIBLE_DEVICES": "1"}, {"CUDA_VISIBLE_DEVICES": "1,0"}],
    "rx-7900-xtx-and-igpu": [{"HIP_VISIBLE_DEVICES": "1"}, {"GGML_VK_VISIBLE_DEVICES": "0"}],
    "radeon-890m": [{"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}],
    "no-gpu": [{"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": ""}],
    "eight-h100": [{"CUDA_VISIBLE_DEVICES": "6,2"}],
    "ten-mi50-and-mi100": [{"HIP_VISIBLE_DEVICES": "9"}],
}
Decision = tuple[Accelerator, Image]


def decide(facts: HostFacts, wish: str, engine: str, environment: dict[str, str] | None = None) -> Decision:
    """What is chosen for one wish and one engine. Who may open the nodes there is not known: see test_access.py."""
    accelerator = replace(choose(facts, wish, ENGINES[engine], environment), access=())
    return accelerator, image_of(accelerator, facts)


def decide_by_engine(facts: HostFacts, wish: str, engines: list[str]) -> Iterator[tuple[list[str], Decision]]:
    """The same for several engines; those with equal results come together."""
    found: list[tuple[list[str], Decision]] = []
    for engine in engines:
        decision = decide(facts, wish, engine)
        for names, other in found:
            if other == decision:
                names.append(engine)
                break
        else:
            found.append(([engine], decision))
    yield from found


# Golden files.


def golden(name: str) -> str:
    """Every decision for a recorded host, each backend with each engine."""
    facts = host(name)
    blocks = []
    for wish in BACKENDS:
        if wish == "intel":  # only another word: test_image.py
            continue
        for engines, decision in decide_by_engine(facts, wish, list(ENGINES)):
            blocks.append(_block(f"{wish}: {', '.join(engines)}", *decision, losers=wish == "auto"))
    for environment in SCENARIOS.get(name, ()):
        given = " ".join(f"{key}={text}" for key, text in environment.items())
        for engine in ("podman", "docker"):
            blocks += [
                _block(f"{wish}: {engine}, {given}", *decide(facts, wish, engine, environment))
                for wish in (("auto", "vulkan", "rocm") if "HIP" in given or "HSA" in given else ("auto", "vulkan"))
            ]
    return "\n".join(blocks)


def _block(title: str, accelerator: Accelerator, image: Image, *, losers: bool = False) -> str:
    lines = [f"== {title}", f"{accelerator.backend} on {accelerator.name}", f"  why      {accelerator.why}"]
    lines.append(f"  image    {image.ref}: {image.why}")
    lines += [f"  device   {path}" for path in (*accelerator.device_nodes, *accelerator.cdi_devices)]
    if accelerator.docker_gpus:
        lines.append(f"  gpus     {accelerator.docker_gpus}")
    if accelerator.oci_runtime:
        lines.append(f"  runtime  {accelerator.oci_runtime}")
    lines += [f"  group    {group}" for group in accelerator.groups]
    lines += ["  groups   are kept"] if accelerator.keep_groups else []
    lines += [f"  env      {name}={text}" for name, text in accelerator.env]
    lines += [f"  warning  {text}" for text in (*accelerator.warnings, *image.warnings)]
    if losers:
        lines += [
            f"  lost     {candidate.backend}: {candidate.why}"
            for candidate in accelerator.candidates
            if not candidate.chosen
        ]
        lines += [f"  ignored  {sentence}" for sentence in accelerator.ignored]
    return "\n".join(lines) + "\n"


# The document.

CONTAINERS = [name for name in ENGINES if name != "none"]
HEAD = """# What would be chosen on your machine

Made from the machines that the tests know, so it says what the program does. For your own machine ask it:
`ramalama-like explain run MODEL`, or `--dryrun`.

- **asked for**: `auto`, or what `--backend` names, where `auto` does not come to the same. Other backends can be asked
  for as well; they are obeyed, with a warning.
- **engine**: *docker with CDI* is one that lists folders for CDI specifications (28 and newer, or so configured).
- **image**: below `quay.io/ramalama/`, with the tag TAG, unless another registry is named.
- **passed**: devices and variables that reach the container.

Below each table is the program's own reason, and its warnings.

"""


def document() -> str:
    """The whole of docs/machines.md."""
    tag = load_table("images")["families"]["ramalama"]["tag"]
    contents = [f"- [{title}](#{_anchor(title)})" for title in MACHINES.values()]
    sections = [_section(name, title) for name, title in MACHINES.items()]
    return HEAD.replace("TAG", tag) + "\n".join([*contents, "", *sections])


def _section(name: str, title: str) -> str:
    facts = host(name)
    rows: list[str] = []
    reasons: dict[str, dict[str, list[str]]] = {}  # a sentence, and the wishes and engines with which it is said
    auto = {engine: decide(facts, "auto", engine)[0].backend for engine in ENGINES}
    for wish in _wishes(facts):
        engines = [engine for engine in CONTAINERS if wish != auto[engine]]
        for names, (accelerator, image) in decide_by_engine(facts, wish, engines):
            asked = f"auto: **{accelerator.backend}**" if wish == "auto" else wish
            rows.append(f"| {asked} | {_engines(names)} | {_code([_short(image.ref)])} | {_passed(accelerator)} |")
            said = [accelerator.why] if wish == "auto" else []
            # That a card is unused, and why, stands in the reason already.
            said += [text for text in accelerator.warnings if wish != "auto" or " is unused: " not in text]
            said += image.warnings or ([image.why] if "has no" in image.why else [])
            for sentence in said:
                reasons.setdefault(sentence.removeprefix(f"{wish}: "), {}).setdefault(wish, []).extend(names)
    native, _ = decide(facts, "auto", "none")
    lines = [f"## {title}", "", "| asked for | engine | image | passed |", "|---|---|---|---|", *rows, ""]
    lines += [f"- {_cases(cases)}: *{sentence}*" for sentence, cases in reasons.items()]
    lines += [f"- without a container: **{native.backend}**", ""]
    return "\n".join(lines)


def _wishes(facts: HostFacts) -> list[str]:
    """``auto`` and the backends that are made for the cards of a machine."""
    table = load_table("accelerators")
    vendors = dict.fromkeys(card.vendor for card in facts.gpus if card.vendor in table["vendors"])
    return ["auto", *dict.fromkeys(name for vendor in vendors for name in table["vendors"][vendor]["preference"])]


def _cases(cases: dict[str, list[str]]) -> str:
    """Wishes, each with its engines unless they are all."""
    return "; ".join(
        wish if set(names) >= set(CONTAINERS) else f"{wish} with {_engines(names)}" for wish, names in cases.items()
    )


def _engines(names: list[str]) -> str:
    names = [name for name in CONTAINERS if name in names]
    if {"docker", "docker with CDI"} <= set(names):
        names.remove("docker with CDI")
        return ", ".join(names)
    return ", ".join("docker without CDI" if name == "docker" else name for name in names)


def _passed(accelerator: Accelerator) -> str:
    words = [*accelerator.device_nodes, *accelerator.cdi_devices]
    words += [f"--gpus {accelerator.docker_gpus}"] if accelerator.docker_gpus else []
    words += [f"--runtime {accelerator.oci_runtime}"] if accelerator.oci_runtime else []
    words += [f"{name}={text}" for name, text in accelerator.env]
    return _code(words) or "nothing"


def _code(words: list[str]) -> str:
    return " ".join(f"`{word}`" for word in words)


def _short(ref: str) -> str:
    return ref.removeprefix("quay.io/ramalama/").partition(":")[0] if ref.startswith("quay.io/ramalama/") else ref


def _anchor(title: str) -> str:
    kept = "".join(character for character in title.lower() if character.isalnum() or character in " -_")
    return kept.replace(" ", "-")
