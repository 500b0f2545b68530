"""macOS: which hypervisor runs the virtual machine that podman's containers live in.

Only libkrun passes the GPU on. Podman keeps one file for each machine, in a folder named after the provider, and the
choice of provider in containers.conf.
"""

from __future__ import annotations

import os

from ramalama_like.facts import Gpu
from ramalama_like.probe.cdi import parse_json
from ramalama_like.settings import home_dir, variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.tree import Tree

# Later ones win.
SYSTEM_FILES = ("usr/share/containers/containers.conf", "etc/containers/containers.conf")
# What a machine's file calls the hypervisor, and what podman calls the provider.
HYPERVISORS = {"LibKrunHypervisor": "libkrun", "AppleHypervisor": "applehv"}
PROVIDERS = tuple(HYPERVISORS.values())


def probe_podman_machine(tree: Tree) -> str:
    """libkrun, applehv, or empty where it is unknown: the default changed from one to the other with podman 5.8.

    The machines that exist tell; where there are several of different providers, or none, what is configured does.
    """
    configured = ""
    folders = _config_folders(tree)
    for path in (*SYSTEM_FILES, *(f"{folder}/containers/containers.conf" for folder in folders)):
        configured = _configured(tree, path) or configured
    if tree.real:
        configured = variable("CONTAINERS_MACHINE_PROVIDER") or configured
    found = {
        provider
        for folder in folders
        for name in PROVIDERS
        for provider in _machines(tree, f"{folder}/containers/podman/machine/{name}")
    }
    return found.pop() if len(found) == 1 else configured


def apple_gpu(provider: str) -> Gpu:
    """The GPU of a Mac with Apple's own processor, as containers meet it."""
    return Gpu("apple", driver=provider, integrated=True, integrated_why="Apple's GPUs are part of the processor")


def _config_folders(tree: Tree) -> list[str]:
    """Users' folders for configuration: this user's, or all of a folder that stands for another machine."""
    if not tree.real:
        return [f"Users/{name}/.config" for name in tree.names("Users")[:16]]
    given = variable("XDG_CONFIG_HOME")
    return [(given if os.path.isabs(given) else f"{home_dir()}/.config").lstrip("/")]


def _machines(tree: Tree, folder: str) -> set[str]:
    """Providers of the machines in a folder."""
    found: set[str] = set()
    for name in tree.names(folder)[:16]:
        text = tree.read(f"{folder}/{name}") if name.endswith(".json") else None
        if text is None:
            continue
        try:
            data = parse_json(text)
        except ValueError as error:
            tree.note(f"{folder}/{name}", f"is malformed: {error}")
            continue
        keys = [key for key in HYPERVISORS if isinstance(data, dict) and data.get(key)]
        if keys:
            found.add(HYPERVISORS[keys[0]])
        else:
            tree.note(f"{folder}/{name}", "is no machine of podman: it names no hypervisor")
    return found


def _configured(tree: Tree, path: str) -> str:
    """``provider`` in the table ``machine`` of a containers.conf; empty where it does not say."""
    text = tree.read(path)
    if text is None:
        return ""
    import tomllib

    try:
        table = tomllib.loads(text).get("machine")
    except (ValueError, RecursionError) as error:
        tree.note(path, f"is malformed: {error}")
        return ""
    given = table.get("provider") if isinstance(table, dict) else None
    return given if isinstance(given, str) else ""
