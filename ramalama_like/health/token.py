"""Hugging Face takes the user's token. Without a token only public models can be had, and that is fine."""

from __future__ import annotations

from ramalama_like.health import ELSEWHERE, Case, Finding, fail, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "ramalama-like login huggingface"


def check(case: Case) -> Iterator[Finding]:
    """A token that is refused is worse than none: with it not even public models can be had."""
    seen = case.observed
    if seen is None:
        yield ELSEWHERE
        return
    reply, origin = seen.hub, seen.hub_token
    if seen.hub_token_problem:
        yield fail(f"the token in {origin} was not sent", seen.hub_token_problem, COMMAND)
    elif reply is None:
        yield skip("nothing to check: there is no token for Hugging Face, and public models need none")
    elif reply.status == 200:
        yield ok(f"Hugging Face takes the token in {origin}")
    elif reply.status in (401, 403):
        yield fail(f"Hugging Face refuses the token in {origin}", "not even public models can be had with it", COMMAND)
    else:
        said = f"HTTP {reply.status}" if reply.status else reply.problem
        yield warn(f"{reply.address or 'Hugging Face'} does not tell whether the token is valid: {said}",
                   "models that need it may be refused", COMMAND)  # fmt: skip
