"""Specifications of devices (CDI) for cards that reach containers only by them."""

from __future__ import annotations

from ramalama_like.cards import Case as Decision
from ramalama_like.cards import cdi_names, cdi_repair, takes_docker_gpus, through_cdi
from ramalama_like.data import load_table
from ramalama_like.health import Case, Finding, fail, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.facts import CdiSpec


def check(case: Case) -> Iterator[Finding]:
    """The choice of the accelerator goes by the same functions."""
    decision = Decision(case.facts, case.engine, case.settings.image_family.value, {}, case.settings.gpu)
    if decision.native:
        yield skip("not checked: no engine is used")
        return
    vendors = dict.fromkeys(gpu.vendor for gpu in case.facts.gpus if through_cdi(decision, gpu))
    if not vendors:
        yield skip("nothing to check: no card here needs it")
    for vendor in vendors:
        row = load_table("accelerators")["vendors"][vendor]
        names, problem = cdi_names(decision, vendor)
        if not problem:
            yield ok(f"{row['cdi_kind']} is specified: {', '.join(names)}")
            continue
        what = problem.partition("; run: ")[0]
        command = cdi_repair(decision, vendor).removeprefix("run: ")
        why = f"without it no container gets a {row['title']}"
        specs = [spec for spec in case.facts.cdi if spec.kind == row["cdi_kind"]]
        double = _double(specs)
        stranger = _of_wrong_kind(case.facts.cdi, row["cdi_kind"], vendor)
        if double:
            # Whatever the repairing command writes is to stay.
            command = f"sudo rm {next((file for file in double if file not in command), double[-1])}"
            why = f"engines refuse every device of {row['cdi_kind']} then"
        elif not specs and stranger:
            what = f"{stranger.file} names the kind {stranger.kind}, not {row['cdi_kind']}"
        if takes_docker_gpus(decision, vendor):
            yield warn(what, "docker's --gpus is used in its place", command)
        else:
            yield fail(what, why, command)


def _double(specs: list[CdiSpec]) -> list[str]:
    """Files of one folder that define the same name."""
    owners: dict[tuple[str, str], str] = {}
    for spec in specs:
        folder = spec.file.rpartition("/")[0]
        for name in spec.names:
            other = owners.setdefault((folder, name), spec.file)
            if other != spec.file:
                return [other, spec.file]
    return []


def _of_wrong_kind(specs: tuple[CdiSpec, ...], kind: str, vendor: str) -> CdiSpec | None:
    for spec in specs:
        if spec.kind != kind and any(node.startswith(f"/dev/{vendor}") for node in spec.device_nodes):
            return spec
    return None
