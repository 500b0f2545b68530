"""Memory of the machine and of its cards, and how much of it a model may fill."""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.health import Case, Finding, fail, gigabytes, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "ps -eo rss,args --sort=-rss | head"


def check(case: Case) -> Iterator[Finding]:
    """The limit of the cgroup counts, not what is installed."""
    limits = load_table("health")["memory"]
    total = case.facts.memory_bytes
    if total is None:
        yield skip("not checked: the machine does not tell how much memory it has")
        return
    available = case.observed.memory_available_bytes if case.observed is not None else None
    usable = total if available is None else min(total, available)
    told = f"{gigabytes(total)} of main memory"
    if available is not None:
        told += f", {gigabytes(usable)} of it free to use"
    told += "".join(f"; {gigabytes(gpu.usable_bytes)} on {gpu.name or gpu.pci_address or gpu.vendor}"
                    for gpu in case.facts.gpus if gpu.usable_bytes)  # fmt: skip
    # A card may hold the model in the place of main memory.
    most = max([usable, *(gpu.usable_bytes or 0 for gpu in case.facts.gpus)])
    if usable < limits["least_bytes"]:
        yield fail(told, f"less than {gigabytes(limits['least_bytes'])} will not do for any model", COMMAND)
    elif most < limits["enough_bytes"]:
        yield warn(told, f"a model of 8 billion parameters needs some {gigabytes(limits['enough_bytes'])}", COMMAND)
    else:
        yield ok(told)
