"""What ``doctor`` checks: one file for each subject, each with ``check(case)``, which gives findings.

A check is pure: it judges what was seen (``Case``) and looks at nothing itself. It gives at least one finding; where
it cannot judge, because the machine is another one or nobody was asked, the finding says so. A finding that is a fault
tells what, why it matters, and one command that repairs it (empty only where no command can).

``ok`` all is well; ``warn`` it will do, or will soon not; ``fail`` something that is needed is missing; ``skip`` not
checked, and why.
"""

from __future__ import annotations

from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ramalama_like.facts import EngineFacts, HostFacts
    from ramalama_like.observed import Observed
    from ramalama_like.options import Settings
    from ramalama_like.plan import Plan

# In the order in which they are told: each needs those before it.
CHECKS = ("engine", "version", "rootless", "machine", "accelerator", "driver", "cdi", "nodes", "image", "architecture",
          "disk", "memory", "port", "registry", "token", "proxy", "clock")  # fmt: skip


@value
class Finding:
    """The outcome of one check."""

    check: str
    status: str  # ok warn fail skip
    what: str
    why: str = ""
    command: str = ""


@value
class Problem:
    """Why something could not be had, in the words of an error."""

    message: str
    hint: str = ""


@value
class Case:
    """What is judged."""

    settings: Settings
    facts: HostFacts
    engine: EngineFacts  # where there is a problem with it: a current one of the kind that was wanted
    engine_problem: Problem | None = None
    plan: Plan | None = None  # of `run demo` with the options that were given
    plan_problem: Problem | None = None
    observed: Observed | None = None  # None: the machine is another one


ELSEWHERE = Finding("", "skip", "not checked: another machine")


def ok(what: str, *, command: str = "") -> Finding:
    """All is well."""
    return Finding("", "ok", what, command=command)


def warn(what: str, why: str, command: str = "") -> Finding:
    """It will do."""
    return Finding("", "warn", what, why, command)


def fail(what: str, why: str, command: str = "") -> Finding:
    """Something that is needed is missing."""
    return Finding("", "fail", what, why, command)


def skip(what: str) -> Finding:
    """Not checked."""
    return Finding("", "skip", what)


def check_all(case: Case) -> list[Finding]:
    """What every check finds, in order."""
    found = []
    for name in CHECKS:
        module: Any = __import__(f"ramalama_like.health.{name}", fromlist=["check"])
        findings: Iterator[Finding] = module.check(case)
        found += [replace(finding, check=name) for finding in findings]
    return found


def install_command(package: str, system: str) -> str:
    """The command that installs a program on a system, which is words of its os-release; empty for an unknown one."""
    from ramalama_like.data import load_table

    table = load_table("health")
    for word in system.replace("-", " ").split():
        if word in table["install"]:
            name: str = table["packages"].get(package, {}).get(word, package)
            pattern: str = table["install"][word]
            return pattern.replace("{package}", name)
    return ""


def gigabytes(count: int) -> str:
    """A size for people."""
    return f"{count / 1e9:.1f} GB"
