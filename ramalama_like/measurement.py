"""One result of ``bench``, as it is kept: what was measured, on what, with what."""

from __future__ import annotations

from ramalama_like.value import fields_of, value

FORMAT = 1  # of a line in the file; a line of a later one is left alone


@value
class Measurement:
    """One test of one run of llama-bench. The tests of a run share its ``id``.

    No serial number, no UUID and no name of a host: but for the model's path, twins are not told apart.
    """

    id: str  # of the run: eight hexadecimal digits
    time: str  # its end, UTC: 2026-11-30T18:05:00Z
    model: str  # as it was asked for
    backend: str
    test: str  # pp512: reading a prompt of 512 tokens; tg128: generating 128
    avg_ts: float  # tokens per second
    host: str  # what the machine is, see measured.host_key
    stddev_ts: float = 0.0
    alias: str = ""
    architecture: str = ""  # of the model
    quantization: str = ""
    size_bytes: int = 0  # of the model's files
    n_params: int = 0
    accelerator: str = ""  # as the plan names it
    device: str = ""  # as llama-bench names it
    on_gpu: bool = False  # whether anything but the processor computed
    gpus: tuple[str, ...] = ()  # every card of the machine: PCI number, AMD's instruction set
    drivers: tuple[str, ...] = ()  # nvidia 570.86.15, amdgpu
    kernel: str = ""
    engine: str = ""
    engine_version: str = ""
    image: str = ""
    image_family: str = ""  # results are compared only within one, see measured.family_key
    image_digest: str = ""  # of the manifest, sha256:…; empty for an image that no registry has seen (docker)
    image_id: str = ""  # of the image's configuration
    threads: int = 0
    ngl: int = -1  # layers that were asked to be on the accelerator; -1: as many as fit
    options: tuple[str, ...] = ()  # what the user asked for besides: arguments of llama-bench, and --gpu
    build_commit: str = ""
    build_number: int = 0
    program_version: str = ""
    format: int = FORMAT


def measurement_from_plain(data: object) -> Measurement | None:
    """A measurement from what JSON made of its line; None where that is none. Unknown keys are ignored."""
    if not isinstance(data, dict):
        return None
    given: dict[str, object] = {}
    for name in fields_of(Measurement):
        if name in data:
            member = _checked(Measurement.__annotations__[name], data[name])
            if member is None:
                return None
            given[name] = member
    try:
        found = Measurement(**given)  # type: ignore[arg-type]
    except TypeError:  # something is missing
        return None
    sane = found.format == FORMAT and found.avg_ts >= 0 and found.size_bytes >= 0 and found.id
    return found if sane and _is_time(found.time) else None


def size_text(size_bytes: int) -> str:
    """A size for people: 8.1 GB, 638 MB, 2.6 MB."""
    if size_bytes >= 10**9:
        return f"{size_bytes / 1e9:.1f} GB"
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes < 10**8 else f"{size_bytes / 1e6:.0f} MB"


# By the text of the annotation, which `from __future__ import annotations` leaves as it was written.
_KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def _checked(annotation: str, item: object) -> object | None:
    if annotation == "tuple[str, ...]":
        texts = isinstance(item, list) and all(isinstance(member, str) for member in item)
        return tuple(item) if texts else None  # type: ignore[arg-type]
    kinds = _KINDS[annotation]
    if not isinstance(item, kinds) or (isinstance(item, bool) and bool not in kinds):
        return None
    if annotation == "int" and abs(item) >= 2**63:  # type: ignore[arg-type]
        return None
    if annotation == "float":
        try:
            number = float(item)  # type: ignore[arg-type]
        except OverflowError:
            return None
        return number if number - number == 0 else None  # neither infinity nor NaN
    return item


def _is_time(text: str) -> bool:
    if len(text) != 20 or not text.isascii():
        return False
    shape = "".join("0" if letter.isdigit() else letter for letter in text)
    return shape == "0000-00-00T00:00:00Z" and "01" <= text[5:7] <= "12" and "01" <= text[8:10] <= "31"
