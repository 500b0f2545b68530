"""Which accelerator would compute, and whether a plan can be made at all."""

from __future__ import annotations

from ramalama_like.health import Case, Finding, fail, ok, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def check(case: Case) -> Iterator[Finding]:
    """The plan is that of `run`."""
    if case.plan is None:
        problem = case.plan_problem
        yield fail(problem.message if problem else "no plan could be made",
                   problem.hint if problem and problem.hint else "no model can be run so",
                   "ramalama-like explain run demo")  # fmt: skip
        return
    accelerator = case.plan.accelerator
    for warning in accelerator.warnings:
        yield warn(warning, f"{accelerator.backend} computes on {accelerator.name}", "ramalama-like explain run demo")
    if not accelerator.warnings:
        yield ok(f"{accelerator.backend} on {accelerator.name}")
