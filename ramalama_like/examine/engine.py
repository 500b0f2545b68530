"""Questions to the container engine about itself and about an image."""

from __future__ import annotations

from ramalama_like.errors import AppError, Interrupted
from ramalama_like.observed import EngineState, ImageState
from ramalama_like.probe.cpu import SPELLINGS
from ramalama_like.process import capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramalama_like.facts import EngineFacts

ABSENT = ("no such image", "image not known", "unable to find")  # podman and docker of all versions


def info_question(engine: EngineFacts) -> tuple[str, ...]:
    """The command that makes the engine tell about itself in JSON."""
    return (engine.program, "info", "--format", "json" if engine.kind == "podman" else "{{json .}}")


def image_question(engine: EngineFacts, ref: str) -> tuple[str, ...]:
    """The command that makes the engine tell about an image."""
    return (engine.program, "image", "inspect", ref)


def ask_info(engine: EngineFacts, timeout_s: float) -> tuple[dict[str, Any], str]:
    """What the engine tells about itself, or what it said in place of that. Raises only Interrupted."""
    found, problem = _ask(info_question(engine), timeout_s)
    if problem or not isinstance(found, dict):
        return {}, problem or f"{engine.program} info printed something else than its state"
    # Docker's client answers also where its daemon does not.
    errors = found.get("ServerErrors")
    if isinstance(errors, list) and errors:
        return {}, str(errors[0])
    return found, ""


def examine_engine(engine: EngineFacts, timeout_s: float) -> EngineState:
    """How the engine is. Raises only Interrupted."""
    info, problem = ask_info(engine, timeout_s)
    if problem:
        return EngineState(problem)
    if engine.kind == "podman":
        host, store = _table(info, "host"), _table(info, "store")
        remote = host.get("serviceIsRemote") is True
        return EngineState(
            version=_text(_table(info, "version"), "Version"),
            rootless=_table(host, "security").get("rootless") is True,
            oci_runtime=_text(_table(host, "ociRuntime"), "name"),
            image_folder="" if remote else _text(store, "graphRoot"), remote=remote,
        )  # fmt: skip
    options = info.get("SecurityOptions")
    return EngineState(
        version=_text(info, "ServerVersion"),
        rootless=isinstance(options, list) and any("rootless" in str(option) for option in options),
        oci_runtime=_text(info, "DefaultRuntime"), image_folder=_text(info, "DockerRootDir"),
    )  # fmt: skip


def examine_image(engine: EngineFacts, ref: str, timeout_s: float) -> ImageState:
    """Whether the engine has an image, and which. Raises only Interrupted."""
    found, problem = _ask(image_question(engine, ref), timeout_s)
    if problem:
        absent = any(words in problem.lower() for words in ABSENT)
        return ImageState(present=False, problem="" if absent else problem)
    image = found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}
    if not image:
        return ImageState(present=False, problem=f"{engine.program} image inspect printed something else than an image")
    arch = _text(image, "Architecture")
    return ImageState(present=True, arch=SPELLINGS.get(arch, arch), created=_created(_text(image, "Created")))


def _ask(line: tuple[str, ...], timeout_s: float) -> tuple[object, str]:
    """The JSON that a command prints, or its problem in one line."""
    import json

    try:
        done = capture(line, timeout_s)
    except Interrupted:
        raise
    except AppError as error:
        return None, error.message
    if done.code:
        said = [part for part in (done.stderr or done.stdout).splitlines() if part.strip()]
        return None, said[-1].strip() if said else f"{line[0]} {line[1]} ended with exit code {done.code}"
    try:
        return json.loads(done.stdout), ""
    except (ValueError, RecursionError):
        return None, f"{line[0]} {line[1]} printed something else than JSON"


def _created(text: str) -> float | None:
    """Seconds of the clock. Images that are built reproducibly have a time that means nothing: the epoch, or 1980."""
    from datetime import datetime

    # Engines write nanoseconds, of which Python 3.11 reads six digits.
    head, dot, tail = text.partition(".")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    try:
        moment = datetime.fromisoformat(f"{head}{dot}{digits[:6]}{tail[len(digits) :]}")
        return moment.timestamp() if moment.year > 1980 else None
    except (ValueError, OverflowError):
        return None


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    inner = data.get(key)
    return inner if isinstance(inner, dict) else {}


def _text(data: dict[str, Any], key: str) -> str:
    inner = data.get(key)
    return inner if isinstance(inner, str) else ""
