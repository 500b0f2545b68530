"""The registry that the image is pulled from answers."""

from __future__ import annotations

from ramalama_like.health import ELSEWHERE, Case, Finding, fail, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def check(case: Case) -> Iterator[Finding]:
    """401 is an answer too: every registry wants a token first, also from those who have no account."""
    seen = case.observed
    if seen is None:
        yield ELSEWHERE
        return
    reply = seen.registry
    if reply is None:
        yield skip("not checked: no registry is needed")
        return
    address = f"https://{reply.address}/v2/"
    command = f"curl -sSI {address}"
    if reply.status in range(200, 400) or reply.status in (401, 403, 404):
        yield ok(f"{reply.address} answers")
    elif reply.status:
        yield warn(f"{reply.address} answers with HTTP {reply.status}", "images cannot be pulled from it now",
                   command)  # fmt: skip
    elif _is_needed(case):
        yield fail(f"{reply.address} does not answer: {reply.problem}", "the image has to be pulled from it", command)
    else:
        yield warn(f"{reply.address} does not answer: {reply.problem}", "images cannot be pulled; this one is here",
                   command)  # fmt: skip


def _is_needed(case: Case) -> bool:
    policy = case.plan.container.pull if case.plan is not None and case.plan.container is not None else ""
    present = case.observed is not None and case.observed.image is not None and case.observed.image.present
    return policy == "always" or not present
