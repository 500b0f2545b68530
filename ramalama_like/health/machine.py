"""On a Mac podman works in a virtual machine: which kind of it decides whether containers see the GPU."""

from __future__ import annotations

from ramalama_like.health import ELSEWHERE, Case, Finding, fail, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WHY = "only libkrun's machine gives containers the GPU (as Vulkan)"
REPAIR = "CONTAINERS_MACHINE_PROVIDER=libkrun podman machine init"


def check(case: Case) -> Iterator[Finding]:
    """Judged by variable and configuration: no machine is asked."""
    if case.facts.os != "darwin" or case.engine.kind != "podman":
        yield skip("not checked: only podman on a Mac needs a virtual machine")
    elif case.observed is None:
        yield ELSEWHERE
    elif case.observed.machine_provider == "libkrun":
        yield ok("podman's machine is libkrun's")
    elif case.facts.arch == "arm64" and case.observed.machine_provider in ("", "applehv"):
        which = "applehv" if case.observed.machine_provider else "the default, which may be applehv"
        yield warn(f"podman's machine is {which}", WHY, REPAIR)
    else:
        named = case.observed.machine_provider or "unknown"
        yield fail(f"podman's machine is of the kind {named}, which gives no GPU", WHY, REPAIR)
