"""The rest of the machine: disks, memory, ports, proxies, groups, emulators."""

from __future__ import annotations

import os

from ramalama_like import settings
from ramalama_like.observed import Room
from ramalama_like.probe.cpu import SPELLINGS
from ramalama_like.probe.ports import find_free_port, port_is_free
from ramalama_like.probe.tree import LARGE, to_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.facts import HostFacts
    from ramalama_like.probe.tree import Tree

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
EMULATORS = "proc/sys/fs/binfmt_misc"


def examine_room(folder: str) -> Room:
    """How much a user may write below a folder, which need not exist yet."""
    existing = folder
    while existing not in ("", "/") and not os.path.isdir(existing):
        existing = os.path.dirname(existing)
    try:
        found = os.statvfs(existing or "/")
    except OSError:
        return Room(folder)
    return Room(folder, found.f_bavail * found.f_frsize)


def measure_available_memory(tree: Tree) -> int | None:
    """Bytes of main memory that programs could get now, by the kernel's own estimate."""
    for line in (tree.read("proc/meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            kilobytes = to_number(line[13:].replace("kB", ""))
            return None if kilobytes is None else kilobytes * 1024
    return None


def examine_ports(host: str, first: int, last: int) -> tuple[bool, int | None]:
    """Whether the first port is free on an address, and which is the first that is."""
    if port_is_free(host, first):
        return True, first
    return False, find_free_port(first, last, host)


def examine_proxies() -> tuple[tuple[str, str], ...]:
    """Variables that send requests to a proxy, or that make exceptions; small letters count before capitals."""
    found = []
    for name in PROXIES:
        for spelling in (name, name.upper()):
            text = settings.variable(spelling)
            if text:
                scheme, at, rest = text.rpartition("@")
                # What stands before the @ is a password.
                found.append((spelling, f"{scheme.partition('://')[0]}://…@{rest}" if at else text))
                break
    return tuple(found)


def examine_provider(tree: Tree) -> str:
    """The kind of podman's virtual machine by variable and configuration; empty where nothing says it."""
    given = settings.variable("CONTAINERS_MACHINE_PROVIDER")
    if given:
        return given
    home = settings.home_dir().lstrip("/")
    own = settings.variable("CONTAINERS_CONF").lstrip("/")
    paths = [own] if own else [f"{home}/.config/containers/containers.conf", "etc/containers/containers.conf",
                               "usr/share/containers/containers.conf"]  # fmt: skip
    for path in paths:
        provider = _provider_in(tree.read(path) or "")
        if provider:
            return provider
    return ""


def _provider_in(text: str) -> str:
    if "provider" not in text:
        return ""
    import tomllib

    try:
        machine = tomllib.loads(text).get("machine")
    except (ValueError, RecursionError):  # ValueError: also a number of thousands of digits
        return ""
    provider = machine.get("provider") if isinstance(machine, dict) else ""
    return provider if isinstance(provider, str) else ""


def examine_groups(tree: Tree, facts: HostFacts) -> tuple[tuple[int, str], ...]:
    """Names of the groups that own device nodes."""
    wanted = {node.group for node in facts.nodes if node.group is not None}
    found: dict[int, str] = {}
    for line in (tree.read("etc/group", LARGE) or "").splitlines():
        fields = line.split(":")
        number = to_number(fields[2]) if len(fields) > 2 else None
        if number is not None and number in wanted:
            found.setdefault(number, fields[0])
    return tuple(sorted(found.items()))


def find_missing(nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some device nodes that do not exist. ``HOST:CONTAINER:RIGHTS`` is what engines understand."""
    hosts = [node.partition(":")[0] for node in nodes]
    return tuple(node for node in hosts if node.startswith("/") and not os.path.exists(node))


def find_emulated(tree: Tree) -> tuple[str, ...]:
    """Architectures, in the words of images, whose programs the kernel gives to an emulator."""
    found = []
    for name in tree.names(EMULATORS):
        if name.startswith("qemu-") and (tree.read(f"{EMULATORS}/{name}") or "").startswith("enabled"):
            word = name.removeprefix("qemu-")
            found.append(SPELLINGS.get(word, word))
    return tuple(found)


def find_system(tree: Tree) -> str:
    """Which family of systems this is, by os-release: debian for Ubuntu too. Empty where nothing says it."""
    for path in ("etc/os-release", "usr/lib/os-release"):
        values = {}
        for line in (tree.read(path) or "").splitlines():
            key, _, text = line.partition("=")
            values[key] = text.strip("\"' ")
        words = [*values.get("ID", "").split(), *values.get("ID_LIKE", "").split()]
        if words:
            return " ".join(words)
    return ""


def examine_native_server() -> str:
    """What would run as server without an engine: llama-server, embedded, or nothing (empty)."""
    if settings.find_program("llama-server"):
        return "llama-server"
    from importlib.util import find_spec

    return "embedded" if find_spec("xllamacpp") else ""
