"""Proof of use: where a server says that it computes, and why not on a GPU where one was planned.

Pure: the server's log lines and the plan's accelerator go in, a ``Proof`` comes out. The proof is the *weights*: a
device computes a layer where that layer's weights are. llama-server's own count of offloaded layers proves nothing,
since it says the same with ``--device none`` (build 11669), when all of them stay in main memory.

A log in words that are not known here proves nothing either way, and nothing is claimed then.

A model's own texts (its name, its tokens, its chat template) stand in that log too, line breaks included, so a model
can write lines that look like the server's. It can only add lines, never take one away: so what it could have added
(a loading too many, a device of two names) makes the log prove nothing.
"""

from __future__ import annotations

from ramalama_like.causes import find_cause
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.server_log import before_model, messages
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ramalama_like.accelerator import Accelerator

MIB = 1024 * 1024
NO_REASON = "the server gives no reason"
SEE_LOG = "see its whole log with --debug"
FORGEABLE = "its log holds lines that the model itself may have written"
# What only llama.cpp writes about weights and devices: a model whose texts hold it could forge a proof.
MARKS = ("load_tensors:", " buffer size =", ": using device ")


@value
class Device:
    """A device that holds weights and so computes."""

    name: str  # the server's: Vulkan0
    description: str = ""  # the driver's, without what it adds in brackets: AMD Radeon 890M
    software: bool = False  # not a GPU in truth: the processor computes


@value
class Proof:
    """Where the server computes, as far as it says."""

    on_gpu: bool | None  # None: it does not say
    sentence: str = ""  # for people; empty where nothing can be claimed
    cause: str = ""  # why no GPU computes, or why that is not known
    hint: str = ""  # the next step then
    devices: tuple[Device, ...] = ()  # besides the CPU
    buffers: tuple[tuple[str, int], ...] = ()  # bytes in each device's memory, main memory's kinds included
    layers: int | None = None  # that the server counts as offloaded
    layers_total: int | None = None


@value
class _Load:
    """One model's loading as the log tells it."""

    begin: int  # the number of its first line
    weights: dict[str, int]  # bytes by the buffer's name
    ratios: list[tuple[int, int]]  # layers that are said to be offloaded, of how many


def make_proof(accelerator: Accelerator, lines: Sequence[str], *, models: int = 1, complete: bool = True) -> Proof:
    """Compare what was planned with what a server's log says.

    ``models`` are loaded: two with a draft model. Where the log is not there from its beginning to the moment at
    which the server is ready (``complete``), it proves nothing.
    """
    told = messages(lines)
    loads = _loads(told)
    real = [load for load in loads if sum(load.weights.values())]
    if not real:
        return Proof(None)
    load, first = real[0], before_model(told)
    offered, chosen = _offered(first), _chosen(told)
    known = offered or {name: descriptions[0] for name, descriptions in chosen.items()}
    devices = tuple(
        Device(name, known.get(name, ""), software=_is_software(known.get(name, "")))
        for name in dict.fromkeys(
            name
            for buffer, size in load.weights.items()
            if size and not _is_host(buffer)
            for name in _devices_of(buffer, known)
        )
    )
    if (
        not complete
        or len(real) > models
        or not sum(loads[-1].weights.values())  # the server's trials come before the loading
        or len(set(load.ratios)) > 1
        or any(_contradict(name, chosen.get(name, []), offered) for name in {*chosen, *(it.name for it in devices)})
    ):
        return unproved()
    layers, total = load.ratios[0] if load.ratios else (None, None)
    proof = Proof(
        on_gpu=any(not device.software for device in devices),
        devices=devices,
        buffers=tuple(_all_buffers(told[load.begin :]).items()),
        layers=layers,
        layers_total=total,
    )
    return _with_words(proof, accelerator, first, offered, chosen)


def unproved() -> Proof:
    """Where the log may be the model's word instead of the server's."""
    hint = "use a model from a source that you trust"
    return Proof(None, f"Where it runs is not known: {FORGEABLE}", FORGEABLE, hint)


def _contradict(name: str, descriptions: Sequence[str], offered: Mapping[str, str]) -> bool:
    """Whether a device is called by different names, or the server has listed none at its start but the CPU."""
    if name.startswith("RPC"):  # other machines, which are listed under other names
        return False
    if offered and all(_is_host(listed) for listed in offered):
        return True
    return len({*descriptions, *([offered[name]] if name in offered else [])}) > 1


def proof_of_bench(accelerator: Accelerator, results: Sequence[Mapping[str, object]]) -> Proof:
    """The same from llama-bench's results: ``gpu_info`` names the GPUs that it used, unless no layer went there."""
    first = results[0] if results else {}
    told = first.get("gpu_info")
    if not isinstance(told, str):
        return Proof(None)
    unused = first.get("devices") == "none" or first.get("n_gpu_layers") == 0
    # A comma may also stand within a name, in brackets: "llvmpipe (LLVM 21.1.8, 256 bits)".
    names = () if unused else tuple(name for name in told.split(", ") if name and name.count("(") >= name.count(")"))
    devices = tuple(Device(_plain(name), _plain(name), _is_software(name)) for name in names)
    if any(not device.software for device in devices):
        return Proof(on_gpu=True, devices=devices)
    if accelerator.backend == "cpu" or devices:
        cause, hint = _cause(Proof(on_gpu=False, devices=devices), accelerator, (), {}, {})
    elif unused:
        cause, hint = "no layer was offloaded", "see --ngl and what --runtime-args says of devices"
    else:
        cause, hint = "llama-bench found no GPU", "see why with `ramalama-like run --require-gpu`"
    return Proof(on_gpu=False, cause=cause, hint=hint, devices=devices)


def refuse_cpu_plan(accelerator: Accelerator, origin: str) -> None:
    """Raise ValueProblem where a GPU is demanded and the plan has none: before anything is started."""
    if accelerator.backend == "cpu":
        raise ValueProblem(
            f"{origin}: no GPU would compute: {accelerator.why}",
            "see what was found with `ramalama-like info`, or leave --require-gpu out",
        )


def demand_gpu(proof: Proof, origin: str) -> None:
    """Raise ValueProblem where a GPU is demanded and none was seen to compute."""
    if proof.on_gpu is None:
        why = f": {proof.cause}" if proof.cause else ""
        raise ValueProblem(f"{origin}: it could not be confirmed that a GPU computes{why}", proof.hint or SEE_LOG)
    if not proof.on_gpu:
        raise ValueProblem(f"{origin}: no GPU computes: {proof.cause}", proof.hint)


# Words


def _with_words(proof: Proof, accelerator: Accelerator, lines: Sequence[str], offered: Mapping[str, str],
                chosen: Mapping[str, list[str]]) -> Proof:  # fmt: skip
    share = "" if proof.layers_total is None else f", {proof.layers}/{proof.layers_total} layers"
    if not proof.devices:
        share = ""
    where = " and ".join(_spelled(device) for device in proof.devices) or "CPU"
    cause = hint = ""
    if not proof.on_gpu:
        cause, hint = _cause(proof, accelerator, lines, offered, chosen)
    sentence = f"Running on {where}{share}"
    if not proof.devices:
        sentence += f" because {cause}"
    elif not proof.on_gpu:
        sentence += ": software, so the CPU computes"
    elif proof.layers is not None and proof.layers_total is not None and proof.layers < proof.layers_total:
        sentence += "; the CPU computes the rest"
    return Proof(proof.on_gpu, sentence, cause, hint, proof.devices, proof.buffers, proof.layers, proof.layers_total)


def _spelled(device: Device) -> str:
    return f"{device.name} ({device.description})" if device.description else device.name


def _cause(proof: Proof, accelerator: Accelerator, lines: Sequence[str], offered: Mapping[str, str],
           chosen: Mapping[str, list[str]]) -> tuple[str, str]:  # fmt: skip
    """Why no GPU computes, and what to do: the likeliest reason that anything speaks for.

    ``lines`` are those from before the model was read, so that it is not the model that tells.
    """
    if proof.devices:
        names = " and ".join(device.description for device in proof.devices)
        return f"{names} is a software device", "use a driver of the GPU's own, and see that the GPU is passed"
    if accelerator.backend == "cpu":
        return accelerator.why, "see what was found with `ramalama-like info`"
    if chosen and proof.layers == 0:
        return "no layer was offloaded", "raise --ngl, or leave it out"
    found = find_cause(lines, about_gpus=True)
    if found:
        return found
    unused = [*chosen] or [name for name in offered if not _is_host(name)]
    if unused:
        return f"the server does not use {' or '.join(unused)}", "see --ngl and what --runtime-args says of devices"
    begin = "load_backend: loaded "
    loaded = [line.removeprefix(begin).partition(" ")[0] for line in lines if line.startswith(begin)]
    name = load_table("proof")["loaded_as"].get(accelerator.backend)
    if name and any(loaded) and name not in loaded:
        return f"the {name} backend is not in the image, or finds no driver there", "choose another image with --image"
    if offered:
        return "the server knows no device but the CPU", "use a server that is built for GPUs, or an image with one"
    return NO_REASON, SEE_LOG


# Reading the log


def _loads(lines: Sequence[str]) -> list[_Load]:
    """Each loading of a model, in order. Trials without memory (how the server fits a model) show as zero bytes.

    The lines about buffers follow each other, so nothing that stands elsewhere gets into a loading.
    """
    found: list[_Load] = []
    is_open = False
    for number, line in enumerate(lines):
        function, _, rest = line.partition(" ")
        if not function.endswith("load_tensors:"):
            is_open = is_open and not found[-1].weights
            continue
        if not is_open or rest.startswith("loading model tensors"):
            found.append(_Load(number, {}, []))
            is_open = True
        ratio = _ratio(rest.removeprefix("offloaded ").partition(" layers to GPU")[0])
        if ratio and rest.startswith("offloaded "):
            found[-1].ratios.append(ratio)
        name, kind, size = _buffer(line)
        if name and kind == "model":
            found[-1].weights[name] = found[-1].weights.get(name, 0) + size
    return [load for load in found if load.weights]


def _ratio(text: str) -> tuple[int, int] | None:
    first, _, second = text.partition("/")
    return (int(first), int(second)) if _is_number(first) and _is_number(second) else None


def _buffer(line: str) -> tuple[str, str, int]:
    """A buffer's name, kind and bytes: ``load_tensors:      Vulkan0 model buffer size =     2.13 MiB``."""
    head, _, tail = line.partition(" buffer size = ")
    words, size = head.split(), tail.split()
    if len(words) not in (2, 3) or not words[0].endswith(":") or len(size) != 2 or size[1] != "MiB":
        return "", "", 0
    whole, _, part = size[0].partition(".")
    if not (_is_number(whole) and (_is_number(part) or not part)):
        return "", "", 0
    # Builds before 2025 leave the kind of weights out.
    kind = words[2] if len(words) == 3 else "model" if words[0].endswith("load_tensors:") else "other"
    return words[1], kind, int(float(size[0]) * MIB)


def _all_buffers(lines: Iterable[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for line in lines:
        name, _, size = _buffer(line)
        if size:
            sizes[name] = sizes.get(name, 0) + size
    return sizes


def _chosen(lines: Iterable[str]) -> dict[str, list[str]]:
    """Devices that the server chose: ``using device Vulkan0 (AMD Radeon 890M (RADV GFX1150)) (0000:c1:00.0) - …``."""
    found: dict[str, list[str]] = {}
    for line in lines:
        function, _, rest = line.partition(": using device ")
        name, _, rest = rest.partition(" ")
        if name and rest.startswith("(") and " " not in function:
            found.setdefault(name, []).append(_plain(_first_group(rest)))
    return found


def _offered(lines: Iterable[str]) -> dict[str, str]:
    """Devices that the server could use, the CPU included: ``common_param:   - Vulkan0 : AMD Radeon … (8 MiB, …``."""
    found: dict[str, str] = {}
    for line in lines:
        name, _, description = line.partition("common_param:   - ")[2].partition(" : ")
        if name.strip():
            found[name.strip()] = _plain(description)
    return found


def _first_group(text: str) -> str:
    """What stands between the first bracket and the one that closes it."""
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:index]
    return text[1:]


def _plain(description: str) -> str:
    """A device's name without what its driver adds at the end: ``(RADV GFX1150)``, ``(LLVM 21.1.8, 256 bits)``."""
    return description.partition(" (")[0].strip() or description


def _devices_of(buffer: str, described: Mapping[str, str]) -> list[str]:
    """The devices that a buffer belongs to: ``CUDA0``; ``CUDA_Split`` to all of that kind; ``MTL0_Mapped``."""
    base = buffer.partition("_")[0]
    if buffer in described or base in described:
        return [buffer if buffer in described else base]
    return [name for name in described if name.startswith(base)] or [base]


def _is_host(buffer: str) -> bool:
    table = load_table("proof")
    return buffer.startswith(table["host_beginnings"]) or buffer.endswith(table["host_endings"])


def _is_software(description: str) -> bool:
    return any(name in description.lower() for name in load_table("proof")["software"])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12
