"""Machines, engines, back ends and choices of the user in every combination, against an oracle of its own.

The oracle knows nothing of the program's rules. It knows how CUDA, HIP, ROCr, Vulkan, CANN and MUSA read their
variables, and what devices let into a container, and so says which cards the server would use. Those must be among the
cards that the user left, and be the ones that the reason names; or the choice is refused with a word about it.
"""

import pytest
from test_accelerator import ENGINES, amd, choose, host, machine, nvidia, spec

from ramalama_like.errors import ValueProblem
from ramalama_like.facts import DeviceNode, Gpu, KfdNode
from ramalama_like.value import replace

UNEQUAL = [nvidia(0, name="NVIDIA T4"), nvidia(1, name="NVIDIA L4"), nvidia(2, name="NVIDIA T4")]
UUIDS = tuple(card.nvidia_uuid for card in UNEQUAL)
KFD = tuple(KfdNode(number + 1, number, unique_id=f"GPU-{number}aaa-bbb") for number in range(3))
INTEL = [Gpu("intel", pci_address=f"0000:0{number}:00.0", driver="xe", integrated=False,
             render_node=f"/dev/dri/renderD{128 + number}") for number in (3, 4)]  # fmt: skip
DAVINCI = tuple(DeviceNode(f"/dev/{name}") for name in ("davinci0", "davinci1", "davinci_manager", "hisi_hdc"))
MTGPU = (DeviceNode("/dev/mtgpu0"), DeviceNode("/dev/mtgpu1"))


def green(*names, **more):
    return machine(*UNEQUAL, nvidia_driver="580.1", cdi=(spec(*names),) if names else (), **more)


MACHINES = {
    "nvidia": green("0", "1", "2", "all"),
    "nvidia by uuid": green(*UUIDS),
    "nvidia, all only": green("all"),
    "nvidia without cdi": green(),
    "nvidia, old driver": replace(green("0", "1", "2", "all"), nvidia_driver="470.1"),
    "nvidia, one asleep": machine(UNEQUAL[0], replace(UNEQUAL[1], nvidia_uuid=""), nvidia_driver="580.1",
                                  cdi=(spec("0", "1", "all"),)),
    "nvidia, one on vfio": machine(replace(UNEQUAL[0], driver="vfio-pci", nvidia_index=None, nvidia_uuid=""),
                                   replace(UNEQUAL[1], nvidia_index=0), nvidia_driver="580.1",
                                   cdi=(spec("0", "all"),)),
    "amd": machine(amd(0), amd(1), amd(2, gfx="gfx1036", integrated=True, vram_bytes=1 << 29), kfd_nodes=KFD),
    "amd, one unfit": machine(amd(0), amd(1, gfx="gfx1150"), kfd_nodes=KFD[:2]),
    "amd and nvidia": machine(amd(0, pci_address="0000:21:00.0"), amd(1, pci_address="0000:22:00.0"), *UNEQUAL,
                              nvidia_driver="580.1", cdi=(spec("0", "1", "2", "all"),), kfd_nodes=KFD[:2]),
    "amd and nvidia without cdi": machine(amd(0, pci_address="0000:21:00.0"), *UNEQUAL, nvidia_driver="580.1"),
    "intel": machine(*INTEL),
    "ascend": machine(Gpu("ascend", pci_address="0000:01:00.0"), Gpu("ascend", pci_address="0000:02:00.0"),
                      nodes=DAVINCI, arch="arm64"),
    "ascend by nodes": machine(*(Gpu("ascend", own_node=node.path) for node in DAVINCI[:2]), nodes=DAVINCI,
                               arch="arm64"),
    "moore threads": machine(*(Gpu("moore-threads", pci_address=f"0000:0{number}:00.0") for number in (1, 2)),
                             nodes=MTGPU),
}  # fmt: skip
RECORDED = ["wsl-nvidia", "two-rtx-3090", "two-mi300x", "rx-7900-xtx-and-igpu", "laptop-nvidia-and-intel",
            "radeon-890m", "jetson-agx-orin", "two-flex-170", "mac-podman-libkrun", "mtt-s80", "ascend-910b",
            "amd-and-nvidia", "gtx-1080-nouveau", "toolbox", "no-gpu"]  # fmt: skip
MACHINES |= {name: host(name) for name in RECORDED}

VALUES = ["0", "1", "0,1", "1,0", "2,0", "9", "x", "²", "٣", "0,0", "0,,1", ",", "-1", "0,-1,1", " 1", "1,", "0,9",
          "9,0", "all", "none", "void", "NoDevFiles", "GPU-1aaa-bbb", "GPU-1", "GPU-", "0,GPU-1aaa-bbb", "MIG-1", " ",
          "01", "0-1", "1-0", "0.0", "+1", "99999999999999999999999"]  # fmt: skip
VENDOR_VARIABLES = {
    "nvidia": ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"],
    "amd": ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES"],
    "intel": ["ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"],
    "ascend": ["ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES"],
    "moore-threads": ["MUSA_VISIBLE_DEVICES", "MTHREADS_VISIBLE_DEVICES"],
}
BACKENDS = {"nvidia": ["cuda", "vulkan"], "amd": ["rocm", "vulkan"], "intel": ["sycl", "openvino", "vulkan"],
            "ascend": ["cann"], "moore-threads": ["musa"], "apple": ["vulkan", "metal"]}  # fmt: skip
PAIRS = [
    {"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"},
    {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"},
    {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"},
    {"HIP_VISIBLE_DEVICES": "0,1", "GPU_DEVICE_ORDINAL": "1"},
    {"HIP_VISIBLE_DEVICES": "0", "GPU_DEVICE_ORDINAL": "1"},
    {"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "-1"},
    {"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0"},
    {"ROCR_VISIBLE_DEVICES": "1,0", "CUDA_VISIBLE_DEVICES": "0"},
    {"HIP_VISIBLE_DEVICES": "-1", "CUDA_VISIBLE_DEVICES": "-1"},
    {"HIP_VISIBLE_DEVICES": "1", "GGML_VK_VISIBLE_DEVICES": "0"},
    {"CUDA_VISIBLE_DEVICES": "-1", "GGML_VK_VISIBLE_DEVICES": "0"},
    {"CUDA_VISIBLE_DEVICES": "1", "GGML_VK_VISIBLE_DEVICES": "-1"},
    {"CUDA_VISIBLE_DEVICES": "1,0", "NVIDIA_VISIBLE_DEVICES": "0,1"},
    {"CUDA_VISIBLE_DEVICES": "1", "NVIDIA_VISIBLE_DEVICES": "0"},
    {"CUDA_VISIBLE_DEVICES": "MIG-1", "NVIDIA_VISIBLE_DEVICES": "0"},
    {"CUDA_VISIBLE_DEVICES": "1,0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
    {"CUDA_VISIBLE_DEVICES": "1,0", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"},
    {"ASCEND_RT_VISIBLE_DEVICES": "1", "ASCEND_VISIBLE_DEVICES": "0,1"},
    {"MUSA_VISIBLE_DEVICES": "1", "MTHREADS_VISIBLE_DEVICES": "1"},
    {"MUSA_VISIBLE_DEVICES": "0", "MTHREADS_VISIBLE_DEVICES": "1"},
    {"GGML_OPENVINO_DEVICE": "GPU.1"},
    {"GGML_OPENVINO_DEVICE": "NPU"},
]
HIDING = ("-1", "none", "void", "nodevfiles")


# How the vendors' own software reads its variables.


class Unclear(Exception):
    """A text that the oracle does not judge: which card it means stands in no file."""


def listed(text, seen, names, *, strip=False):
    """Cards of ``seen`` that a text names, up to the first entry that names none; or all where it is unset."""
    if not text:
        return seen
    kept = []
    for entry in text.split(","):
        entry = entry.strip() if strip else entry
        found = [card for number, card in enumerate(seen) if entry and entry in names(number, card)]
        if not found:
            break
        kept += [card for card in found if card not in kept]
    return kept


def cuda_sees(cards, env):
    text = env.get("CUDA_VISIBLE_DEVICES", "")
    ordered = env.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({card.name for card in cards}) < 2
    counts = any(part.strip().isdecimal() for part in text.split(","))
    assert ordered or not counts, f"CUDA counts unlike cards fastest first: {text}"
    if text.upper().startswith("MIG-"):
        raise Unclear
    if len(text.split(",")) != len(set(text.split(","))):
        return []  # a card that is named twice: CUDA shows none

    def names(number, card):
        return [str(number), *(card.nvidia_uuid[:end] for end in range(4, len(card.nvidia_uuid) + 1))]

    ordered = sorted(cards, key=lambda card: card.nvidia_index)
    for entry in text.split(","):
        if entry.startswith("GPU-") and sum(card.nvidia_uuid.startswith(entry) for card in ordered) != 1:
            if not all(card.nvidia_uuid for card in ordered):
                raise Unclear
            return listed(text.partition(entry)[0].rstrip(","), ordered, names) if not text.startswith(entry) else []
    return listed(text, ordered, names)


def hip_sees(cards, env):
    unique = {number: f"GPU-{number}aaa-bbb" for number in range(3)}
    ordered = sorted(cards, key=lambda card: card.hip_index)
    left = listed(env.get("ROCR_VISIBLE_DEVICES"), ordered, lambda number, card: [str(number), unique[card.hip_index]]
                  if card.hip_index in unique else [str(number)])  # fmt: skip
    text = env.get("HIP_VISIBLE_DEVICES") or env.get("CUDA_VISIBLE_DEVICES")
    return listed(text, left, lambda number, _: [str(number)])


def vulkan_sees(cards, env):
    text = env.get("GGML_VK_VISIBLE_DEVICES")
    if text is None:
        return cards
    numbers = text.split(",")
    if text.lower() in HIDING:
        return []  # ggml then leaves the whole back end out
    assert all(number.isascii() and number.isdecimal() and int(number) < len(cards) for number in numbers), text
    return cards if len(cards) == 1 else None  # in an order that nobody knows


def by_position(variable):
    return lambda cards, env: listed(env.get(variable), cards, lambda number, _: [str(number)])


SEES = {"cuda": cuda_sees, "rocm": hip_sees, "vulkan": vulkan_sees, "cann": by_position("ASCEND_RT_VISIBLE_DEVICES"),
        "musa": by_position("MUSA_VISIBLE_DEVICES")}  # fmt: skip
OWNERS = {"cuda": ["nvidia"], "rocm": ["amd"], "vulkan": ["nvidia", "amd", "intel", "apple-asahi", "apple"],
          "sycl": ["intel"], "openvino": ["intel"], "cann": ["ascend"], "musa": ["moore-threads"], "metal": ["apple"],
          "cpu": []}  # fmt: skip


def inside(found, facts, engine):
    """The cards that are in the container."""
    held = [card for card in facts.gpus if card.vendor == "nvidia" and card.driver == "nvidia"]
    seen = []
    for name in (text.partition("=")[2] for text in found.cdi_devices):
        seen += [card for card in held if name in ("all", str(card.nvidia_index), card.nvidia_uuid)]
    for name in found.docker_gpus.removeprefix("device=").split(",") if found.docker_gpus else ():
        seen += [card for card in held if name in ("all", str(card.nvidia_index), card.nvidia_uuid)]
    nodes = [node.path for node in facts.nodes if node.path.rstrip("0123456789.") in ("/dev/davinci", "/dev/mtgpu")]
    own = [card for card in facts.gpus if card.vendor in ("ascend", "moore-threads")]
    if found.oci_runtime:
        text = dict(found.env)["MTHREADS_VISIBLE_DEVICES"]
        seen += own if text == "all" else [own[int(number)] for number in text.split(",")]
    seen += [card for node, card in zip(nodes, own, strict=False) if node in found.device_nodes]
    seen += [card for card in facts.gpus if card.render_node and card.render_node in found.device_nodes]
    seen += [card for card in facts.gpus if card.vendor == "apple" and "/dev/dri" in found.device_nodes]
    return [card for card in facts.gpus if card in seen]


def used(found, facts, engine, environment):
    """The cards that the server would compute on; None where nobody can tell which of those inside."""
    if engine == "none":
        env, seen = {**environment, **dict(found.env)}, list(facts.gpus)
        seen = [card for card in seen if card.driver != "vfio-pci"]
    else:
        env, seen = dict(found.env), inside(found, facts, engine)
    seen = [card for card in seen if card.vendor in OWNERS[found.backend]]
    if found.backend == "rocm":
        seen = [card for card in seen if card.hip_index is not None]
    if not seen:
        return []
    return SEES.get(found.backend, lambda cards, _: cards)(seen, env)


# What the user left.


def plain(text):
    """A text without what every reader forgives, or that people write for the same: ranges, spaces, a last comma."""
    parts = [part.strip() for part in text.removesuffix(",").split(",")]
    spread = []
    for part in parts:
        first, dash, last = part.partition("-")
        if dash and first.isdecimal() and last.isdecimal():
            spread += map(str, range(int(first), int(last) + 1))
        else:
            spread.append(part)
    return ",".join(dict.fromkeys(spread))


def left(facts, environment, backend):
    """The cards that the user's variables leave on the host."""
    env = {name: plain(text) for name, text in environment.items()}
    green = [card for card in facts.gpus if card.vendor == "nvidia" and card.nvidia_index is not None]
    red = [card for card in facts.gpus if card.vendor == "amd" and card.hip_index is not None]
    ordered = {**env, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    kept = {card.pci_address or card.own_node or card.vendor for card in facts.gpus}

    def drop(cards, allowed):
        kept.difference_update(
            card.pci_address or card.own_node or card.vendor for card in cards if card not in allowed
        )

    def limited(name):
        return name in env and env[name].lower() != "all"

    if "CUDA_VISIBLE_DEVICES" in env:
        drop(green, cuda_sees(green, ordered))
    if limited("NVIDIA_VISIBLE_DEVICES") and not facts.in_container:
        drop(green, cuda_sees(green, {**ordered, "CUDA_VISIBLE_DEVICES": env["NVIDIA_VISIBLE_DEVICES"]}))
    own = {name: env[name] for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES") if name in env}
    borrowed = env.get("CUDA_VISIBLE_DEVICES", "")
    number = {f"GPU-{card.hip_index}aaa-bbb": str(card.hip_index) for card in red}
    alone = backend == "rocm" and not any(card.vendor == "nvidia" for card in facts.gpus)
    if alone and "HIP_VISIBLE_DEVICES" not in env and borrowed.lower() not in HIDING:
        own["CUDA_VISIBLE_DEVICES"] = ",".join(number.get(part, part) for part in borrowed.split(","))
    if red:
        for name in ("HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"):
            if name in env:
                text = ",".join(number.get(part, part) for part in env[name].split(","))
                drop(red, hip_sees(red, {**own, "HIP_VISIBLE_DEVICES": text}))
        drop(red, hip_sees(red, {key: text for key, text in own.items() if key != "HIP_VISIBLE_DEVICES"})
             if "HIP_VISIBLE_DEVICES" in own else hip_sees(red, own))  # fmt: skip
    for vendor, names in VENDOR_VARIABLES.items():
        for name in names if vendor in ("ascend", "moore-threads") else ():
            cards = [card for card in facts.gpus if card.vendor == vendor]
            if limited(name):
                drop(cards, by_position(name)(cards, env))
    return kept


def keys(cards):
    return {card.pci_address or card.own_node or card.vendor for card in cards}


def cases(name):
    facts = MACHINES[name]
    vendors = list(dict.fromkeys(card.vendor for card in facts.gpus)) or ["nvidia", "amd"]
    variables = list(dict.fromkeys(name for vendor in vendors for name in VENDOR_VARIABLES.get(vendor, ())))
    backends = ["auto", *dict.fromkeys(name for vendor in vendors for name in BACKENDS.get(vendor, ()))]
    numbers = [(), *((f"{vendor}:{number}",) for vendor in vendors[:2] for number in (0, 1))]
    environments = [{}, *({variable: text} for variable in (*variables, "GGML_VK_VISIBLE_DEVICES") for text in VALUES)]
    environments += [pair for pair in PAIRS if set(pair) & {*variables, "GGML_OPENVINO_DEVICE"}]
    for environment in environments:
        for gpus in numbers:
            for backend in backends:
                for engine in ENGINES:
                    yield environment, gpus, backend, engine


@pytest.mark.parametrize("name", MACHINES)
def test_the_server_uses_only_cards_that_the_user_left_and_those_that_the_reason_names(name):
    facts = MACHINES[name]
    by_selector = {}
    for vendor in dict.fromkeys(card.vendor for card in facts.gpus):
        cards = [card for card in facts.gpus if card.vendor == vendor]
        numbered = [card for card in cards if card.nvidia_index is not None or card.hip_index is not None]
        cards = [*numbered, *(card for card in cards if card not in numbered)]
        by_selector |= {f"{vendor}:{number}": card for number, card in enumerate(cards)}
    wrong, done, refused = [], 0, 0
    for environment, gpus, backend, engine in cases(name):
        label = f"{backend} {engine} {environment} {gpus}"
        try:
            found = choose(facts, backend, ENGINES[engine], environment, gpus=gpus)
        except ValueProblem as problem:
            refused += 1
            said = f"{problem.message} {problem.hint}"
            if problem.exit_code != 22 or not any(word in said for word in (*environment, *gpus)):
                wrong.append(f"{label}: {said}")
            continue
        done += 1
        try:
            computing = used(found, facts, engine, environment)
            allowed = left(facts, environment, found.backend)
        except Unclear:
            continue
        except AssertionError as error:
            wrong.append(f"{label}: {found.backend}: {error}")
            continue
        asked = keys(by_selector[selector] for selector in gpus)
        if computing is None:
            # Numbers in an unknown order mean the same only if all cards are there and none is hidden otherwise.
            counted = keys(card for card in facts.gpus if card.vendor in OWNERS["vulkan"] and card.driver != "vfio-pci")
            seen = counted if engine == "none" else keys(inside(found, facts, engine))
            if seen != counted or not counted <= allowed or gpus:
                wrong.append(f"{label}: numbers of Vulkan among {seen} of {counted}, left {allowed}")
            continue
        if not keys(computing) <= allowed:
            wrong.append(f"{label}: {found.backend} uses {keys(computing)}, left {allowed} | {found.env}")
        if gpus and keys(computing) != asked & allowed:
            wrong.append(f"{label}: {found.backend} uses {keys(computing)}, asked {asked}")
        # Without a container nothing keeps Vulkan and the like from cards that only we would not have chosen.
        told = engine != "none" or found.backend in ("cuda", "rocm", "cann", "musa")
        told = told and not any(text.startswith(f"{found.backend}: ") for text in found.warnings)
        if found.cards and told and keys(found.cards) != keys(computing):
            wrong.append(f"{label}: {found.backend} uses {keys(computing)}, said {keys(found.cards)} | {found.env}")
    assert not wrong, f"{len(wrong)} of {done + refused}:\n" + "\n".join(wrong[:: max(1, len(wrong) // 25)])
    assert done > 0
