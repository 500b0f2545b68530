"""The plan as argument lists: what is really executed, and what a dry run prints.

The order of arguments follows the dialect, so that people who know it find their way. What an engine or its version
cannot express is refused with a hint, never dropped.
"""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.plan import Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ramalama_like.plan import Container, Mount, Plan


def render_steps(plan: Plan) -> tuple[Step, ...]:
    """Every command of the plan in order. Raises ValueProblem where the engine cannot express something."""
    kind = "server" if plan.endpoint else "tool"
    if plan.container is None or plan.image is None:
        steps = [Step(kind, plan.server, "llama.cpp runs as a child process")]
    else:
        argv = (*render_run(plan.container, plan.engine.kind, plan.engine.program, plan.engine.version),
                plan.image.ref, *plan.server)  # fmt: skip
        steps = [Step(kind, argv, f"{plan.engine.kind} runs llama.cpp")]
    if plan.chat:
        steps.append(Step("chat", plan.chat, "this program talks to the server"))
    return tuple(steps)


def render_run(container: Container, kind: str, program: str, version: tuple[int, ...]) -> tuple[str, ...]:
    """``podman run`` or ``docker run`` up to the image."""
    engine = _Dialect(kind, version)
    words = [program, "run"]
    words += ["--rm"] if container.remove else []
    for label, text in container.labels:
        words += ["--label", f"{label}={text}" if text else label]
    words += engine.network(container)
    words += ["--runtime", container.oci_runtime] if container.oci_runtime else []
    words += engine.security(container)
    words += _limits(container)
    words += ["--pull", engine.table["pull"][container.pull]]
    words += engine.registry(container)
    words += engine.groups(container)
    words += ["-d"] if container.detach else []
    words += engine.devices(container)
    for publish in container.publish:
        words += ["-p", _published(publish.host, publish.host_port, publish.port)]
    words += ["--name", container.name]
    for variable, given in container.env:
        words += ["--env", variable if given is None else f"{variable}={given}"]
    words += ["--init"]
    for mount in container.mounts:
        words += _mount(kind, mount, relabel=container.security.separate_labels)
    return (*words, *container.engine_args)


class _Dialect:
    """What one engine of one version understands."""

    def __init__(self, kind: str, version: tuple[int, ...]) -> None:
        self.kind = kind
        self.table: Mapping[str, Any] = load_table("engines")[kind]
        self.version = version or _numbers(self.table["assumed"])

    def has(self, feature: str) -> bool:
        since = self.table["has"].get(feature)
        return since is not None and self.version >= _numbers(since)

    def require(self, feature: str, what: str, hint: str) -> None:
        if not self.has(feature):
            since = self.table["has"].get(feature)
            when = f" before version {since}" if since else ""
            raise ValueProblem(f"{self.kind}{when} has no {what}", hint)

    def network(self, container: Container) -> list[str]:
        words = ["--network", container.network] if container.network else []
        if container.host_gateway and self.kind == "docker":
            self.require("host_gateway", "name for the host", "use docker 20.10 or newer")
            words += ["--add-host", "host.docker.internal:host-gateway"]
        return words

    def security(self, container: Container) -> list[str]:
        asked = container.security
        if asked.privileged:
            return ["--privileged"]
        words = [] if asked.separate_labels else ["--security-opt=label=disable"]
        words += ["--cap-drop=all"] if asked.drop_capabilities else []
        words += ["--security-opt=no-new-privileges"] if asked.no_new_privileges else []
        if asked.read_only_root:
            words += ["--read-only"]
            words += [] if self.has("tmp_on_read_only") else ["--tmpfs", "/tmp"]  # noqa: S108 - in the container
        return words

    def registry(self, container: Container) -> list[str]:
        words = []
        if container.authfile:
            self.require("authfile", "--authfile", "log in with `docker login`")
            words += ["--authfile", container.authfile]
        if not container.tls_verify:
            self.require("tls_verify", "--tls-verify", "list the registry in the daemon's insecure-registries")
            words += ["--tls-verify=false"]
        return words

    def groups(self, container: Container) -> list[str]:
        words = []
        if container.keep_groups:
            self.require("keep_groups", "--keep-groups", "docker's daemon opens devices as root: leave it out")
            words += ["--group-add", "keep-groups"]
        elif self.kind == "docker":
            for group in container.groups:
                words += ["--group-add", str(group)]
        return words

    def devices(self, container: Container) -> list[str]:
        words = []
        for node in container.device_nodes:
            words += ["--device", node]
        if container.docker_gpus:
            self.require("gpus", "--gpus", "use docker 19.03 or newer")
            # Docker reads the value as CSV, in which a list needs quotes of its own.
            words += ["--gpus", f'"{container.docker_gpus}"' if "," in container.docker_gpus else container.docker_gpus]
        for name in container.cdi_devices:
            self.require("cdi", "CDI devices", "update the engine, or pass device nodes with --device")
            words += ["--device", name]
        return words


def _limits(container: Container) -> list[str]:
    words = []
    if container.cpus is not None:
        # Docker counts billionths of a processor, and refuses what is more exact.
        words += ["--cpus", f"{container.cpus:.9f}".rstrip("0").rstrip(".")]
    if container.memory_bytes is not None:
        size = _size(container.memory_bytes)
        # Both engines grant as much swap again unless the sum of both is told.
        words += ["--memory", size, "--memory-swap", size]
    return words


def _size(size_bytes: int) -> str:
    for letter, factor in (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)):
        if size_bytes % factor == 0:
            return f"{size_bytes // factor}{letter}"
    return f"{size_bytes}b"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _published(host: str, host_port: int, port: int) -> str:
    if host in ("::", "[::]"):
        return f"[::]:{host_port}:{port}"
    return f"{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{host_port}:{port}"


def _mount(kind: str, mount: Mount, *, relabel: bool) -> list[str]:
    """A bind mount in whichever of the two syntaxes can hold the path.

    ``--mount`` separates its fields by commas and reads quotes as CSV does; ``-v`` separates by colons. A path with
    both kinds of character fits neither on the oldest engines. Docker relabels for SELinux only with ``-v``.
    """
    source = mount.source
    short = ":" not in source
    if not any(letter in source for letter in ',"\n\r') and not (relabel and (short or kind == "docker")):
        words = [f"src={source}", f"destination={mount.target}"]
        words += ["ro"] if mount.read_only else []
        words += ["relabel=shared"] if relabel else []
        return [f"--mount=type=bind,{','.join(words)}"]
    if short:
        options = ",".join((["ro"] if mount.read_only else []) + (["z"] if relabel else []))
        return ["-v", f"{source}:{mount.target}{':' if options else ''}{options}"]
    raise ValueProblem(f"{source}: {kind} cannot mount this path: a colon in it leaves no way to spell the mount",
                       "rename the file, or make a link to it")  # fmt: skip
