"""The device nodes that the plan passes can be opened by whoever opens them."""

from __future__ import annotations

from ramalama_like.health import ELSEWHERE, Case, Finding, fail, install_command, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.facts import DeviceNode


def check(case: Case) -> Iterator[Finding]:
    """Docker's daemon opens nodes as root, podman and native servers as the user."""
    plan = case.plan
    if plan is None:
        yield skip("not checked: there is no plan")
        return
    asked = plan.container.device_nodes if plan.container is not None else _native_nodes(case)
    paths = [path.partition(":")[0] for path in asked if path.startswith("/")]
    if not paths:
        yield skip("nothing to check: no device node is passed")
        return
    faults = [fault for path in paths for fault in _judge(case, path)]
    known = [node for node in map(case.facts.node, paths) if node is not None]
    if faults:
        yield from faults
    elif known and all(node.accessible is None for node in known):
        yield ELSEWHERE
    else:
        yield ok(f"{', '.join(paths)} can be opened")


def _native_nodes(case: Case) -> tuple[str, ...]:
    if case.plan is None or case.plan.accelerator.backend == "cpu":
        return ()
    nodes = [gpu.render_node for gpu in case.facts.gpus if gpu.render_node]
    return (*nodes, *(["/dev/kfd"] if case.plan.accelerator.backend == "rocm" else ()))


def _judge(case: Case, path: str) -> Iterator[Finding]:
    node = case.facts.node(path)
    if node is None:
        if case.observed is not None and path in case.observed.missing_nodes:
            yield fail(f"{path} does not exist", "the engine refuses to start then: leave it out of --device",
                       f"ls -l {path.rpartition('/')[0] or '/'}")  # fmt: skip
        return
    if case.engine.kind == "docker" or node.accessible is None:
        return
    group = _group_name(case, node)
    if not node.accessible:
        yield fail(f"{path} cannot be opened by this user", f"it belongs to the group {group}; join it and log in anew",
                   f"sudo usermod -aG {group} $USER")  # fmt: skip
    elif node.through_group and case.engine.kind == "podman" and case.engine.rootless:
        yield from _keep_groups(case, path, group)


def _keep_groups(case: Case, path: str, group: str) -> Iterator[Finding]:
    seen = case.observed
    wanted = case.settings.oci_runtime.value
    runtime = wanted or (seen.engine.oci_runtime if seen is not None and seen.engine is not None else "")
    why = f"only the group {group} opens it, and a container of a user loses groups"
    if runtime.rpartition("/")[2] == "runc":
        yield fail(f"{path} is lost in the container: runc cannot keep groups", f"{why}; crun can keep them",
                   install_command("crun", seen.system if seen is not None else ""))  # fmt: skip
    elif not (case.plan and case.plan.container and case.plan.container.keep_groups):
        yield fail(f"{path} is lost in the container without --keep-groups", why,
                   "ramalama-like run --keep-groups MODEL")  # fmt: skip
    elif not runtime:
        yield warn(f"{path} needs --keep-groups, which not every OCI runtime can", f"{why}; crun can keep them",
                   "podman info --format '{{.Host.OCIRuntime.Name}}'")  # fmt: skip


def _group_name(case: Case, node: DeviceNode) -> str:
    names = dict(case.observed.groups) if case.observed is not None else {}
    return names.get(node.group or 0, str(node.group)) if node.group is not None else "that owns it"
