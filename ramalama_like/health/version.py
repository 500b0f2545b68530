"""The engine's version knows what the plan asks of it."""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.health import ELSEWHERE, Case, Finding, fail, install_command, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.plan import Container

# In the words of engines.toml, and for people.
TITLES = {"cdi": "CDI devices", "gpus": "--gpus", "keep_groups": "--keep-groups", "authfile": "--authfile",
          "tls_verify": "--tls-verify", "host_gateway": "a name for the host"}  # fmt: skip


def check(case: Case) -> Iterator[Finding]:
    """Docker's daemon counts, not its client."""
    engine, seen = case.engine, case.observed
    if engine.kind == "none":
        yield skip("not checked: no engine is used")
        return
    if case.engine_problem or (seen is not None and seen.engine is not None and seen.engine.problem):
        yield skip("not checked: the engine does not answer")
        return
    if seen is None:
        yield ELSEWHERE
        return
    table = load_table("engines")[engine.kind]
    told = seen.engine.version if seen.engine is not None else ""
    version = _numbers(told) or engine.version
    text = told or engine.version_text
    update = install_command(engine.kind, seen.system)
    needed = _needed(case.plan.container) if case.plan is not None and case.plan.container is not None else []
    lacking = [name for name in needed if not _has(table["has"], name, version)]
    for name in lacking:
        since = table["has"].get(name)
        known = f"which it has since {since}" if since else "which it never has"
        yield fail(f"{engine.kind} {text} has no {TITLES[name]}", f"the plan asks for {TITLES[name]}, {known}", update)
    if lacking:
        return
    if version and version < _numbers(table["oldest"]):
        yield warn(f"{engine.kind} {text} is older than {table['oldest']}", "nothing older was tried", update)
    else:
        does = f"knows {', '.join(TITLES[name] for name in needed)}" if needed else "is new enough"
        yield ok(f"{engine.kind} {text} {does}")


def _needed(container: Container) -> list[str]:
    asked = {
        "cdi": container.cdi_devices, "gpus": container.docker_gpus, "keep_groups": container.keep_groups,
        "authfile": container.authfile, "tls_verify": not container.tls_verify,
    }  # fmt: skip
    return [name for name, there in asked.items() if there]


def _has(features: dict[str, str], name: str, version: tuple[int, ...]) -> bool:
    return name in features and (not version or version >= _numbers(features[name]))


def _numbers(text: str) -> tuple[int, ...]:
    """Numbers of a version: 20.10.24+dfsg1 is 20, 10, 24."""
    found: list[int] = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or not digits.isascii():
            break
        found.append(int(digits[:9]))
        if digits != part:
            break
    return tuple(found)
