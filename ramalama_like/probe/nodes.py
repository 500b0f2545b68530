"""Device nodes that exist, and whether this user may use them."""

from __future__ import annotations

import os
import stat

from ramalama_like.data import load_table
from ramalama_like.facts import DeviceNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.tree import Tree


def probe_nodes(tree: Tree) -> tuple[DeviceNode, ...]:
    """Every node that accelerators.toml lists, sorted by number.

    In a folder that stands for another machine a plain file stands for a node, and rights are unknown.
    """
    found: list[tuple[str, int, str]] = []
    listed: dict[str, list[str]] = {}
    for pattern in load_table("accelerators")["device_nodes"]:
        folder, _, name = pattern[1:].rpartition("/")
        if folder not in listed:
            listed[folder] = tree.names(folder) if folder == "dev" or tree.exists(folder) else []
        for entry in listed[folder]:
            number = match_node(name, entry)
            if number is not None:
                found.append((pattern, number, f"/{folder}/{entry}"))
    nodes = (_node(tree, path) for _, _, path in sorted(found))
    return tuple(node for node in nodes if node is not None)


def match_node(pattern: str, name: str) -> int | None:
    """The number that stands for ``#`` in the pattern, -1 where it has none; None where the name does not match.

    A dot may stand before it: mtgpu0 and mtgpu.0 are both in use.
    """
    start, hole, end = pattern.partition("#")
    if not hole:
        return -1 if name == pattern else None
    middle = name[len(start) : len(name) - len(end)]
    matches = name == f"{start}{middle}{end}"
    middle = middle.removeprefix(".")
    if matches and middle.isascii() and middle.isdigit() and len(middle) < 7:
        return int(middle)
    return None


def _node(tree: Tree, path: str) -> DeviceNode | None:
    if not tree.real:
        return DeviceNode(path)
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISCHR(status.st_mode):
        return None
    return DeviceNode(
        path,
        accessible=os.access(path, os.R_OK | os.W_OK),
        group=status.st_gid,
        through_group=_only_through_group(path, status),
    )


def _only_through_group(path: str, status: os.stat_result) -> bool:
    """Whether a supplementary group is all that gives this user access: rootless podman drops those."""
    user = os.geteuid()
    if user in (0, status.st_uid) or status.st_mode & 0o006 == 0o006 or not os.access(path, os.R_OK | os.W_OK):
        return False
    try:
        acl = os.getxattr(path, "system.posix_acl_access")
    except (OSError, AttributeError):
        return True
    # Version, then entries of 8 bytes: tag, rights, id. Tag 2 is a named user: what the seat's login gets.
    for start in range(4, len(acl) - 7, 8):
        tag = int.from_bytes(acl[start : start + 2], "little")
        rights = int.from_bytes(acl[start + 2 : start + 4], "little")
        if tag == 2 and rights & 6 == 6 and int.from_bytes(acl[start + 4 : start + 8], "little") == user:
            return False
    return True
