"""The container engine is there and answers."""

from __future__ import annotations

from ramalama_like.causes import find_cause
from ramalama_like.health import ELSEWHERE, Case, Finding, fail, install_command, ok, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def check(case: Case) -> Iterator[Finding]:
    """Also judges what runs without an engine."""
    engine, seen = case.engine, case.observed
    if seen is None:
        yield ELSEWHERE
    elif case.engine_problem:
        problem = case.engine_problem
        yield fail(problem.message, problem.hint or "nothing can be run without it",
                   install_command(engine.kind, seen.system) if "not on PATH" in problem.message else
                   f"{engine.program} --version")  # fmt: skip
    elif engine.kind == "none":
        yield _without(case, seen.server, seen.system)
    elif seen.engine is not None and seen.engine.problem:
        told = f"{engine.program} does not answer: {seen.engine.problem}"
        yield fail(told, _cause(seen.engine.problem), f"{engine.program} info")
    else:
        where = ", in a machine or on a host of its own" if seen.engine is not None and seen.engine.remote else ""
        version = seen.engine.version if seen.engine is not None else ""
        yield ok(f"{engine.kind} {version or engine.version_text} answers{where}")


def _without(case: Case, server: str, system: str) -> Finding:
    command = install_command("podman", system)
    if not server:
        return fail(f"no engine ({case.engine.why}), and no llama-server either", "nothing is here to run models with",
                    command)  # fmt: skip
    what = f"no engine ({case.engine.why}): {server} runs models, without a container around it"
    if case.settings.engine.value == "none" or not case.settings.container.value:
        return ok(what)
    return warn(what, "a container keeps a model's server away from your files and the network", command)


def _cause(problem: str) -> str:
    """What is behind the words of an engine, which are one line."""
    cause = find_cause((problem,))
    if cause:
        return f"{cause[0]}: {cause[1]}"
    return "nothing can be started with it"
