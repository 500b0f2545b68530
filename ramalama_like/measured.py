"""Which backend is the faster one here, by what ``bench`` has measured on this machine.

Results count together only where they can be compared: the same machine, the same model, the same test with the same
options, the same family of images. Of each backend the newest counts. They speak for every model of about the size
of the one that was measured, since below a factor of two the order of backends does not depend on the size.

The measure is the time of an exchange, a prompt of 512 tokens and an answer of 256: generating decides, as it takes
most of the time everywhere, unless one backend reads prompts so slowly that one waits longer for the first word than
for all others. Less than 5 % is within what the same backend varies by, and decides nothing.
"""

from __future__ import annotations

from ramalama_like.measurement import size_text
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ramalama_like.facts import HostFacts
    from ramalama_like.measurement import Measurement

FRESH_DAYS = 180  # older results say little about the images and drivers of today
SIZE_FACTOR = 2.0
PROMPT_TOKENS, ANSWER_TOKENS = 512, 256
MARGIN = 1.05
CPU = "cpu"
# Arguments of llama-bench that keep a part of the model, or all of it, away from the accelerator; and ours that
# leaves cards out.
PARTIAL = ("-ngl", "--n-gpu-layers", "-ncmoe", "--n-cpu-moe", "-ot", "--override-tensor", "-nkvo", "--no-kv-offload",
           "-dev", "--device", "-nopo", "--no-op-offload", "--gpu")  # fmt: skip


@value
class Speed:
    """What one backend has reached."""

    backend: str
    generation_ts: float  # tokens per second
    prompt_ts: float  # 0: not measured, or not in the same way for all
    date: str  # 2026-11-30

    @property
    def seconds(self) -> float:
        """The time of an exchange."""
        reading = PROMPT_TOKENS / self.prompt_ts if self.prompt_ts else 0.0
        return reading + ANSWER_TOKENS / self.generation_ts


@value
class Measured:
    """The results that count for one model on one machine, the fastest backend first."""

    speeds: tuple[Speed, ...]
    why: str  # measured here on 2026-11-30: rocm 92 t/s, vulkan 71 t/s (8.1 GB model)
    notes: tuple[str, ...] = ()  # results that do not count, and why

    def speed(self, backend: str) -> Speed | None:
        """What is known of a backend."""
        return next((speed for speed in self.speeds if speed.backend == backend), None)

    def faster(self, backend: str, among: Iterable[str]) -> str:
        """The backend of some that is clearly faster than this one; empty where none is, or where this one has not
        been measured: it could be the fastest."""
        known, others = self.speed(backend), set(among)
        if known is None:
            return ""
        return next((speed.backend for speed in self.speeds
                     if speed.backend in others and speed.seconds * MARGIN < known.seconds), "")  # fmt: skip


def host_key(facts: HostFacts) -> str:
    """What the machine is, as far as speed is concerned: ``amd64 1002:150e gfx1150``. The same for twins."""
    return " + ".join([facts.arch or "unknown", *sorted(card_keys(facts))])


def card_keys(facts: HostFacts) -> tuple[str, ...]:
    """Every card by its PCI number and AMD's instruction set: never by a serial number or UUID."""
    return tuple(f"{gpu.pci_device or gpu.vendor} {gpu.gfx}".strip() for gpu in facts.gpus)


def driver_keys(facts: HostFacts) -> tuple[str, ...]:
    """The kernel's drivers of the cards, with a version where they have one of their own."""
    names = {gpu.driver for gpu in facts.gpus if gpu.driver}
    return tuple(f"{name} {facts.nvidia_driver}".strip() if name == "nvidia" else name for name in sorted(names))


def family_key(*, family: str, image: str, native: bool) -> str:
    """What stands for the program that is run: a family of images, one image without its tag, or what is on PATH."""
    if native:
        return "native"
    if not image:
        return family
    name = image.partition("@")[0]
    return name if ":" not in name.rpartition("/")[2] else name.rpartition(":")[0]


def prefer(
    records: Sequence[Measurement], *, host: str, drivers: tuple[str, ...], family: str, size_bytes: int, now: str
) -> Measured | None:
    """What the records say about a model of ``size_bytes`` on the machine ``host``; None where they say nothing.

    ``size_bytes`` is above 0, ``now`` a time as the records have it.
    """
    near = [record for record in records
            if record.host == host and record.test.startswith(("pp", "tg")) and "+" not in record.test
            and record.avg_ts > 0 and not set(record.options) & set(PARTIAL)
            and 1 / SIZE_FACTOR <= record.size_bytes / size_bytes <= SIZE_FACTOR]  # fmt: skip
    good: list[Measurement] = []
    notes: dict[str, None] = {}
    for record in sorted(near, key=lambda each: each.time):
        against = _against(record, drivers, family, now)
        if against:
            notes[f"{record.backend} of {record.time[:10]} does not count: {against}"] = None
        else:
            good.append(record)
    speeds, size = _best_group(good, size_bytes)
    if not speeds and not notes:
        return None
    return Measured(speeds, _why(speeds, size), tuple(notes))


def _against(record: Measurement, drivers: tuple[str, ...], family: str, now: str) -> str:
    """Why a result does not count; empty where it does."""
    if record.backend != CPU and not record.on_gpu:
        return "the processor computed it"
    if _days(now) - _days(record.time) > FRESH_DAYS:
        return f"it is older than {FRESH_DAYS} days"
    if record.image_family != family:
        return f"it is of {record.image_family or 'another image'}, not of {family}"
    before, today = _majors(record.drivers), _majors(drivers)
    if record.backend != CPU and before != today:
        return f"the driver was {', '.join(before) or 'none'}, and is {', '.join(today) or 'none'}"
    return ""


def _best_group(records: Sequence[Measurement], size_bytes: int) -> tuple[tuple[Speed, ...], int]:
    """The speeds of one model in one test, the fastest first, and the model's size.

    Of several models the one with results for most backends counts, then the one whose size is nearest.
    """
    found: list[tuple[int, float, str, tuple[Speed, ...], int]] = []
    for size, architecture in {(record.size_bytes, record.architecture) for record in records}:
        alike = [each for each in records if (each.size_bytes, each.architecture) == (size, architecture)]
        for test, options in {(each.test, each.options) for each in alike if each.test.startswith("tg")}:
            same = [each for each in alike if each.options == options]
            speeds = _speeds(same, test)
            distance = max(size, size_bytes) / min(size, size_bytes)
            found.append((len(speeds), -distance, max(speed.date for speed in speeds), speeds, size))
    if not found:
        return (), 0
    _, _, _, speeds, size = max(found, key=lambda each: (*each[:3], repr(each[3])))
    return speeds, size


def _speeds(records: Sequence[Measurement], test: str) -> tuple[Speed, ...]:
    generation = _newest(records, test)
    # Prompts count only where all backends have read the same, and as deep in the context.
    depth = test.partition("@")[2]
    prompts = {each.test for each in records if each.test.startswith("pp") and each.test.partition("@")[2] == depth}
    shared = [
        found for found in (_newest(records, name) for name in sorted(prompts)) if found.keys() >= generation.keys()
    ]
    prompt = max(shared, key=lambda found: max(each.time for each in found.values()), default=None)
    speeds = [
        Speed(backend, record.avg_ts, prompt[backend].avg_ts if prompt else 0.0, record.time[:10])
        for backend, record in generation.items()
    ]
    return tuple(sorted(speeds, key=lambda speed: (speed.seconds, speed.backend)))


def _newest(records: Sequence[Measurement], test: str) -> dict[str, Measurement]:
    """The newest result of each backend in one test. ``records`` are in order of time."""
    return {record.backend: record for record in records if record.test == test}


def _why(speeds: tuple[Speed, ...], size_bytes: int) -> str:
    if not speeds:
        return "nothing that was measured here counts"
    generations = [speed.generation_ts for speed in speeds]
    # Where reading the prompt has turned the order round, it has to be told.
    turned = generations != sorted(generations, reverse=True)
    told = [
        f"{speed.backend} {speed_text(speed.generation_ts)} t/s"
        + (f" (prompt {speed_text(speed.prompt_ts)} t/s)" if turned and speed.prompt_ts else "")
        for speed in speeds
    ]
    date = max(speed.date for speed in speeds)
    return f"measured here on {date}: {', '.join(told)} ({size_text(size_bytes)} model)"


def speed_text(tokens_per_second: float) -> str:
    """A speed without more digits than it deserves: 92, 7.1."""
    return f"{tokens_per_second:.0f}" if tokens_per_second >= 9.95 else f"{tokens_per_second:.1f}"


def _majors(drivers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(driver.partition(".")[0] for driver in drivers))


def _days(time: str) -> int:
    """Days since the beginning of the calendar; a day that no month has counts into the next one."""
    from datetime import date

    return date(max(int(time[:4]), 1), int(time[5:7]), 1).toordinal() + int(time[8:10]) - 1
