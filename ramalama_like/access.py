"""Whether the user may open the device nodes that are passed, and what the engine needs for it.

Rootless podman starts containers without the user's supplementary groups, so a node that belongs to a group is closed
to them; ``keep-groups`` keeps the groups where the OCI runtime can (podman-run(1), --group-add). Docker's daemon opens
nodes as root, but the process inside needs the number of the group that owns each node.
"""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.cards import Case
    from ramalama_like.facts import DeviceNode
    from ramalama_like.options import Setting


@value
class Access:
    """What has to be added for the nodes, and how things stand with each of them."""

    groups: tuple[int, ...] = ()  # numeric groups to add (docker)
    keep_groups: bool = False  # podman
    notes: tuple[tuple[str, str], ...] = ()  # node, and how this user may open it
    warnings: tuple[str, ...] = ()


def choose_access(case: Case, paths: tuple[str, ...], keep_groups: Setting[bool]) -> Access:
    """How the nodes that are passed can be opened. ``keep_groups`` is the user's wish, which is always obeyed."""
    nodes = [node for node in map(case.facts.node, paths) if node is not None]
    kind = case.engine.kind
    if kind == "docker":
        groups = tuple(sorted({node.group for node in nodes if node.group}))
        notes = [(node.path, f"docker's daemon opens it; its group {node.group} is added" if node.group
                  else "docker's daemon opens it") for node in nodes]  # fmt: skip
        return Access(groups=groups, notes=tuple(notes))
    by_group = [node for node in nodes if node.through_group]
    keeps = keep_groups.value
    warnings: list[str] = []
    if by_group and kind == "podman" and not keeps:
        able = load_table("engines")["podman"]["keep_groups_runtimes"]
        runtime = case.engine.oci_runtime.rpartition("/")[2]
        if not keep_groups.is_default:
            warnings.append(_closed(by_group[0], f"and {keep_groups.origin} says not to keep groups"))
        elif runtime and runtime not in able:
            warnings.append(_closed(by_group[0], f"which {runtime} cannot keep: install {able[0]}"))
        else:
            keeps = True
    warnings += [_forbidden(node) for node in nodes if node.accessible is False]
    return Access((), keeps, tuple((node.path, _how(node, keeps)) for node in nodes), tuple(warnings))


def _how(node: DeviceNode, keeps: bool) -> str:
    if node.accessible is None:
        return "who may open it there is unknown"
    if not node.accessible:
        return f"this user may not open it: it belongs to the group {node.group}"
    if node.through_group:
        return f"this user may open it as member of the group {node.group}" + (", which is kept" if keeps else "")
    return "this user may open it"


def _closed(node: DeviceNode, why: str) -> str:
    return f"{node.path} can be used only as member of the group {node.group}, {why}"


def _forbidden(node: DeviceNode) -> str:
    return (f"this user may not read and write {node.path}: join the group {node.group} that owns it "
            f"(sudo usermod -aG {node.group} \"$USER\", then log in anew)")  # fmt: skip
