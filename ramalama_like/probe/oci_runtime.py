"""Which OCI runtime podman will use: what containers.conf names, else the first that is installed.

Read only where it matters, for device nodes that a user may open as member of a group: see ``access.py``.
Sources: containers.conf(5) for the files and their order, podman's own search order in data/engines.toml.
"""

from __future__ import annotations

import os

from ramalama_like.data import load_table
from ramalama_like.files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SYSTEM = "/usr/share/containers/containers.conf"
ADMINISTRATOR = "/etc/containers/containers.conf"
LARGEST = 1 << 20


def probe_oci_runtime(variable: Callable[[str], str], home: str, find: Callable[[str], str]) -> str:
    """The name or path of podman's OCI runtime; empty where nothing tells.

    ``variable`` reads the environment, ``find`` looks a program up on PATH.
    """
    files = _files(variable, home)
    for path in reversed(files):
        named = _named_in(path)
        if named:
            return named
    return next((name for name in load_table("engines")["podman"]["runtime_order"] if find(name)), "")


def _files(variable: Callable[[str], str], home: str) -> list[str]:
    """The configuration files that podman reads, the last of which wins."""
    override = variable("CONTAINERS_CONF_OVERRIDE")
    if only := variable("CONTAINERS_CONF"):
        return [path for path in (only, override) if path]
    user = os.path.join(variable("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "containers/containers.conf")
    found = [SYSTEM]
    for path in (ADMINISTRATOR, user):
        found += [path, *_drop_ins(f"{path}.d")]
    return [*found, override] if override else found


def _drop_ins(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".conf")]
    except OSError:
        return []


def _named_in(path: str) -> str:
    try:
        text = read_file(path, LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
    if "runtime" not in text:
        return ""  # the usual case, which need not be parsed
    import tomllib

    try:
        engine = tomllib.loads(text).get("engine", {})
    except (ValueError, RecursionError):  # ValueError: also a number of thousands of digits
        return ""
    named = engine.get("runtime", "") if isinstance(engine, dict) else ""
    return named if isinstance(named, str) else ""
