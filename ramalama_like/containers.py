"""This program's containers, as the engine in use lists them."""

from __future__ import annotations

import os

from ramalama_like import settings
from ramalama_like.errors import EngineError, ValueProblem
from ramalama_like.process import capture
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ramalama_like.facts import EngineFacts
    from ramalama_like.request import Request

LABEL = "ai.ramalama"


@value
class ListedContainer:
    """One container of this program."""

    name: str
    container_id: str
    image: str
    state: str  # running, exited, created …
    status: str  # in the engine's words: Up 3 minutes
    created: str
    labels: Mapping[str, str]

    @property
    def model(self) -> str:
        """The model as it was asked for."""
        return self.labels.get(f"{LABEL}.model", "")

    @property
    def port(self) -> str:
        """The published port; empty for a container without a network."""
        return self.labels.get(f"{LABEL}.port", "")


def need_engine(request: Request) -> tuple[EngineFacts, settings.LoadedSettings]:
    """The engine that this command is about. Raises EngineError where there is none."""
    from ramalama_like.pipeline import find_engine
    from ramalama_like.probe import check_root, probe_place

    loaded = settings.load_settings(request)
    check_root(loaded.settings.host_facts.value)
    engine = find_engine(loaded.settings, probe_place(loaded.settings.host_facts.value or "/"))
    if engine.kind == "none":
        raise EngineError(f"{request.command} needs a container engine, and {engine.why}", "install podman or docker",
                          exit_code=22)  # fmt: skip
    return engine, loaded


def is_elsewhere(loaded: settings.LoadedSettings) -> bool:
    """Whether ``--host-facts`` asks for another machine than this one."""
    other = loaded.settings.host_facts.value
    return bool(other) and os.path.realpath(other) != "/"


def check_here(request: Request, loaded: settings.LoadedSettings) -> None:
    """Raise ValueProblem where the engine of another machine would have to be asked."""
    if is_elsewhere(loaded):
        raise ValueProblem(f"--host-facts decides for another machine, whose containers {request.command} cannot reach",
                           "add --dryrun to see the commands")  # fmt: skip


def list_command(engine: EngineFacts) -> tuple[str, ...]:
    """The engine's own command that lists this program's containers as JSON."""
    form = "json" if engine.kind == "podman" else "{{json .}}"
    return (engine.program, "ps", "-a", "--no-trunc", "--filter", f"label={LABEL}", "--format", form)


def list_containers(engine: EngineFacts, timeout_s: float) -> list[ListedContainer]:
    """This program's containers, sorted by name. Raises EngineError, TimedOut."""
    import json

    done = capture(list_command(engine), timeout_s)
    if done.code:
        raise engine_failed(engine.program, done.stderr, "list containers")
    try:
        if engine.kind == "podman":
            found = [_from_podman(item) for item in json.loads(done.stdout or "[]")]
        else:
            found = [_from_docker(json.loads(line)) for line in done.stdout.splitlines() if line.strip()]
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise EngineError(f"{engine.program} ps printed something else than JSON") from None
    return sorted(found, key=lambda container: container.name)


def find_container(found: list[ListedContainer], name: str) -> str:
    """The name of the container that ``name`` means: its name, or the beginning of one id alone; else empty."""
    if any(container.name == name for container in found):
        return name
    begins = [container.name for container in found if name and container.container_id.startswith(name)]
    return begins[0] if len(begins) == 1 else ""


def no_such_container(found: list[ListedContainer], name: str) -> ValueProblem:
    """The error for a name that means none, or more than one."""
    known = ", ".join(container.name for container in found) or "none is there"
    return ValueProblem(f"{name or 'an empty name'}: no container of this program has this name",
                        f"the names are: {known}")  # fmt: skip


def engine_failed(program: str, stderr: str, what: str) -> EngineError:
    """The error for an engine command that failed, with the reason in the engine's own words."""
    from ramalama_like.causes import find_cause

    said = [line for line in stderr.splitlines() if line.strip()]
    cause = find_cause(said)
    if cause:
        return EngineError(f"{program} could not {what}: {cause[0]}", cause[1])
    return EngineError(f"{program} could not {what}: {said[-1] if said else 'no reason given'}")


def _from_podman(item: dict[str, object]) -> ListedContainer:
    names = item.get("Names")
    return ListedContainer(
        name=str(names[0]) if isinstance(names, list) and names else "", container_id=str(item.get("Id", "")),
        image=str(item.get("Image", "")), state=str(item.get("State", "")), status=str(item.get("Status") or ""),
        created=str(item.get("CreatedAt") or item.get("Created") or ""), labels=_texts(item.get("Labels")),
    )  # fmt: skip


def _from_docker(item: dict[str, object]) -> ListedContainer:
    pairs = (pair.partition("=") for pair in str(item.get("Labels", "")).split(","))
    return ListedContainer(
        name=str(item.get("Names", "")), container_id=str(item.get("ID", "")), image=str(item.get("Image", "")),
        state=str(item.get("State", "")), status=str(item.get("Status", "")), created=str(item.get("CreatedAt", "")),
        labels={name: text for name, _, text in pairs},
    )  # fmt: skip


def _texts(labels: object) -> dict[str, str]:
    return {str(name): str(text) for name, text in labels.items()} if isinstance(labels, dict) else {}
