"""How many processors and how much memory a server may use, and how many threads follow from that.

``--cpus`` and ``--memory`` are the container engines' own limits, enforced by the kernel's cgroups. A server that
does not know of its quota starts a thread for each core that it sees, and these then wait for each other most of the
time: so the quota decides its threads too.
"""

from __future__ import annotations

from ramalama_like.fit import Limit
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.facts import EngineFacts, HostFacts
    from ramalama_like.options import Settings

FALLBACK_THREADS = 4
UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


@value
class Threads:
    """How many threads compute, and why."""

    count: int
    why: str
    origin: str
    warnings: tuple[str, ...] = ()


def choose_threads(settings: Settings, facts: HostFacts) -> Threads:
    """As many threads as were asked for, else one for each physical core that may be used within ``--cpus``."""
    asked, cpus = settings.threads, settings.cpus
    granted = None if cpus.value is None else max(1, int(cpus.value))
    if asked.value is not None:
        warnings: tuple[str, ...] = ()
        if granted is not None and asked.value > granted:
            warnings = (f"{asked.origin}: {asked.value} threads share {_plain(cpus.value)} processors "
                        f"({cpus.origin}), and wait for each other",)  # fmt: skip
        return Threads(asked.value, "as asked", asked.origin, warnings)
    cores = facts.physical_cores
    if granted is not None and (cores is None or granted < cores):
        count = min(granted, facts.cpus or granted)
        return Threads(count, f"whole processors within {_plain(cpus.value)}", cpus.origin)
    if cores:
        return Threads(cores, "physical cores that may be used", "default")
    return Threads(FALLBACK_THREADS, "the number of cores is unknown", "default")


def warn_of_limits(
    settings: Settings, facts: HostFacts, engine: EngineFacts, *, model_bytes: int = 0, on_cpu: bool = True
) -> tuple[str, ...]:
    """What to tell about limits that will not do what they seem to. ``model_bytes`` is the size of all weights."""
    found = []
    cpus, memory = settings.cpus, settings.memory
    if cpus.value is not None and facts.cpus is not None and cpus.value > facts.cpus:
        found.append(f"{cpus.origin}: {_plain(cpus.value)} processors are more than the {facts.cpus} that may be used "
                     "here")  # fmt: skip
    if memory.value is not None:
        size = show_size(memory.value)
        if facts.memory_bytes is not None and memory.value > facts.memory_bytes:
            found.append(f"{memory.origin}: {size} is more than the {show_size(facts.memory_bytes)} of this machine")
        if memory.value < model_bytes:
            which = "weights" if on_cpu else "weights that no accelerator holds"
            found.append(f"{memory.origin}: {size} is less than the model's {show_size(model_bytes)}, so {which} will "
                         "be read from the disk again and again")  # fmt: skip
    origins = [limit.origin for limit in (cpus, memory) if limit.value is not None]
    if origins and _ignores_limits(facts, engine):
        # podman-run(1): not supported on cgroups V1 rootless systems.
        found.append(f"{' and '.join(dict.fromkeys(origins))}: podman without root cannot limit on cgroup version 1, "
                     "and will ignore it")  # fmt: skip
    if memory.value is not None and engine.kind == "none":
        found.append(f"{memory.origin}: memory is only limited in a container")
    return tuple(found)


def container_limit(settings: Settings, facts: HostFacts, engine: EngineFacts) -> Limit | None:
    """The memory that the container may use; None where nothing limits it."""
    memory = settings.memory
    if memory.value is None or engine.kind == "none" or _ignores_limits(facts, engine):
        return None
    return Limit(memory.value, memory.origin)


def _ignores_limits(facts: HostFacts, engine: EngineFacts) -> bool:
    return engine.kind == "podman" and engine.rootless is True and facts.cgroup_version == 1


def show_size(size_bytes: int) -> str:
    """A size for people: 512 MiB, 1.5 GiB."""
    for unit, factor in UNITS:
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size_bytes} bytes"


def _plain(number: float | None) -> str:
    return repr(number).removesuffix(".0")
