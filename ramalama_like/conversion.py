"""Making a GGUF file: which containers do it, one after the other, decided once. Pure, like the planner.

Safetensors go through llama.cpp's converter first, which keeps the precision that they have; a quantization is made of
that, or of a GGUF file. The converter may run code that a model brings along, so it is locked in like a server: no
network, no capability, a read-only root, the source mounted read-only, and one private folder to write to.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import MODEL, SHARD
from ramalama_like.plan import Container, Mount, Security
from ramalama_like.planner import MODELS, words_after
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.image import Image
    from ramalama_like.model import Convertible
    from ramalama_like.options import Settings

CONVERTER = "llama-convert-hf-to-gguf"  # as the dialect's images call convert_hf_to_gguf.py
QUANTIZER = "llama-quantize"
OUTPUT = "/output"
WHOLE, RESULT = "whole.gguf", "model.gguf"  # in the folder for the output: before a quantization, and at the end
SPACE_FACTOR = 2  # times the source's size: a converted file and a quantized one are there together


@value
class ConversionStep:
    """One container that runs to its end."""

    container: Container
    image: Image
    command: tuple[str, ...]  # what follows the image


@value
class Conversion:
    """Everything that turns the source into ``RESULT`` in the folder for the output."""

    source: Convertible
    quantization: str  # empty: the precision stays as it is
    steps: tuple[ConversionStep, ...]  # none where the source is what is wanted


def make_conversion(source: Convertible, quantization: str, *, settings: Settings, tools: Image, image: Image,
                    name: str, work: str, user: str) -> Conversion:  # fmt: skip
    """Decide which containers run. ``work`` is the private folder for the output, ``user`` who writes to it (docker).

    Raises ValueProblem where a source cannot be quantized, NotBuiltYet where an image is known to lack a program.
    """
    if quantization and source.quantized:
        raise ValueProblem(f"{source.reference}: is quantized already ({source.quantized}), and would lose even more",
                           "quantize the model in F16, BF16 or F32, or its safetensors")  # fmt: skip
    steps: list[ConversionStep] = []
    inside = f"{MODELS}/{source.alias}"
    if source.folder:
        mounts = [Mount(source.folder, inside)]
    else:
        used = [file for file in source.files if source.safetensors or file.role in (MODEL, SHARD)]
        mounts = [Mount(file.path, f"{inside}/{file.name}") for file in used]
    output = Mount(work, OUTPUT, read_only=False)
    before = f"{inside}/{source.files[0].name}" if source.files else ""
    if source.safetensors:
        before = f"{OUTPUT}/{WHOLE if quantization else RESULT}"
        command: tuple[str, ...] = (CONVERTER, "--outtype", "auto", "--outfile", before, inside)
        container = _container(settings, source, f"{name}-1", (*mounts, output), user)
        steps.append(ConversionStep(container, tools, words_after(tools.ref, command)))
        mounts = []  # what is quantized is in the folder for the output
    if quantization:
        command = (QUANTIZER, before, f"{OUTPUT}/{RESULT}", quantization)
        container = _container(settings, source, f"{name}-2", (*mounts, output), user)
        steps.append(ConversionStep(container, image, words_after(image.ref, command)))
    return Conversion(source, quantization, tuple(steps))


def _container(settings: Settings, source: Convertible, name: str, mounts: tuple[Mount, ...], user: str) -> Container:
    return Container(
        name=name,
        labels=(("ai.ramalama", ""), ("ai.ramalama.model", source.reference), ("ai.ramalama.command", "convert")),
        network=settings.network.value or "none",
        mounts=mounts,
        # Neither the converter nor what it is built on is to look for anything at a hub.
        env=(("HOME", "/tmp"), ("HF_HUB_OFFLINE", "1")),  # noqa: S108 - in the container
        security=Security(separate_labels=settings.selinux.value),
        cpus=settings.cpus.value,
        memory_bytes=settings.memory.value,
        oci_runtime=settings.oci_runtime.value,
        pull=settings.pull.value,
        tls_verify=settings.tls_verify.value,
        authfile=settings.authfile.value,
        # A docker daemon's root may not write to a folder of somebody else without the capability for it.
        engine_args=(*(("--user", user) if user else ()), *settings.engine_args.value),
    )
