"""The image is built for this machine's processor."""

from __future__ import annotations

from ramalama_like.health import Case, Finding, fail, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def check(case: Case) -> Iterator[Finding]:
    """By the image itself where it is here, else by the tables."""
    plan, seen, host = case.plan, case.observed, case.facts.arch
    if plan is None or plan.image is None:
        yield skip("not checked: no image is used" if plan else "not checked: there is no plan")
        return
    ref = plan.image.ref
    why = f"the machine is {host}: it cannot execute what is in the image"
    pull = f"{case.engine.program} pull --platform linux/{host} {ref}"
    built = seen.image.arch if seen is not None and seen.image is not None else ""
    if not host:
        yield skip("not checked: the machine's architecture is unknown")
    elif not built:
        yield from [warn(warning, why, "ramalama-like explain run demo") for warning in plan.image.warnings
                    ] or [ok(f"{ref} is built for {host}, by the tables")]  # fmt: skip
    elif built == host:
        yield ok(f"the image and the machine are {host}")
    elif seen is not None and built in seen.emulated:
        yield warn(f"{ref} is built for {built}, which is emulated here", f"the machine is {host}: it will be slow",
                   pull)  # fmt: skip
    else:
        yield fail(f"{ref} is built for {built}", why, pull)
