"""The image is here and is not old."""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.health import ELSEWHERE, Case, Finding, fail, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DAY_S = 86400


def check(case: Case) -> Iterator[Finding]:
    """One that is missing is pulled at the first start, unless the policy or the registry forbid it."""
    plan, seen = case.plan, case.observed
    if plan is None or plan.image is None or plan.container is None:
        yield skip("not checked: no image is used" if plan else "not checked: there is no plan")
        return
    if seen is None or seen.image is None:
        yield ELSEWHERE
        return
    ref, policy = plan.image.ref, plan.container.pull
    pull = f"{case.engine.program} pull {ref}"
    if seen.image.problem:
        yield warn(f"{case.engine.program} does not tell about {ref}", seen.image.problem, pull)
    elif not seen.image.present:
        yield from _absent(case, ref, policy, pull)
    elif seen.image.created is None:
        yield ok(f"{ref} is here")
    else:
        days = int((seen.now - seen.image.created) // DAY_S)
        old = load_table("health")["image"]["old_days"]
        if days > old:
            yield warn(f"{ref} is {days} days old", "newer model architectures are unknown to it", pull)
        else:
            yield ok(f"{ref} is here, {_age(days)} old")


def _absent(case: Case, ref: str, policy: str, pull: str) -> Iterator[Finding]:
    registry = case.observed.registry if case.observed is not None else None
    if policy == "never":
        yield fail(
            f"{ref} is not here, and --pull never forbids to fetch it", "nothing can be started without it", pull
        )
    elif registry is None:
        yield fail(f"{ref} is not here, and no registry has it", "an image of localhost is built, not pulled",
                   f"{case.engine.program} build -t {ref} containers/{_backend(case)}")  # fmt: skip
    elif not registry.status:
        yield fail(f"{ref} is not here, and {registry.address} does not answer", "nothing can be started without it",
                   pull)  # fmt: skip
    else:
        yield warn(f"{ref} is not here", "the first start fetches it, which takes minutes", pull)


def _backend(case: Case) -> str:
    return case.plan.accelerator.backend if case.plan is not None else "cpu"


def _age(days: int) -> str:
    return "less than a day" if days < 1 else "1 day" if days == 1 else f"{days} days"
