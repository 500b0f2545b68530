"""Finding out what the machine has, by reading files only: no helper program is ever started.

One file for each subject, each with ``probe_…(tree)``. A missing file means "unknown"; one that is unreadable or
malformed costs the facts that it held and leaves a sentence in ``HostFacts.notes``.
"""

from __future__ import annotations

import os
import sys
from errno import EINVAL, ENXIO

from ramalama_like.errors import ValueProblem
from ramalama_like.facts import HostFacts, facts_from_plain
from ramalama_like.files import read_file
from ramalama_like.probe.accel import probe_npus
from ramalama_like.probe.boards import probe_ascend_driver, probe_board, probe_jetson
from ramalama_like.probe.cdi import parse_json, probe_cdi
from ramalama_like.probe.cpu import probe_arch, probe_cgroup_version, probe_cpus, probe_memory
from ramalama_like.probe.gpus import probe_gpus
from ramalama_like.probe.kfd import probe_kfd
from ramalama_like.probe.nodes import probe_nodes
from ramalama_like.probe.nvidia import probe_nvidia_driver
from ramalama_like.probe.pci import probe_pci
from ramalama_like.probe.tree import Tree
from ramalama_like.value import replace

LARGEST_FACTS = 16 * 1024 * 1024  # bytes of JSON


def probe(root: str = "/") -> HostFacts:
    """The facts of the machine whose files are below ``root``, or those that a JSON file holds.

    Raises ValueProblem where ``root`` is neither a folder nor a readable file of facts.
    """
    if not os.path.isdir(root):
        return _load(root)
    tree = Tree(root if os.path.realpath(root) != "/" else "/")
    if (sys.platform if tree.real else tree.word("proc/sys/kernel/ostype").lower()) == "darwin":
        return _probe_darwin(tree)
    kernel = tree.word("proc/sys/kernel/osrelease")
    wsl = "microsoft" in kernel.lower() and tree.exists("dev/dxg")
    board = probe_board(tree)
    jetson = probe_jetson(tree, board)
    bus = probe_pci(tree)
    kfd_nodes = probe_kfd(tree)
    cdi = probe_cdi(tree)
    nodes = probe_nodes(tree)
    cpus, physical_cores = probe_cpus(tree)
    return HostFacts(
        root=tree.root,
        arch=probe_arch(tree),
        kernel=kernel,
        wsl=wsl,
        in_container=_in_container(tree),
        cpus=cpus,
        physical_cores=physical_cores,
        memory_bytes=probe_memory(tree),
        gpus=probe_gpus(tree, bus, kfd_nodes, cdi, nodes, board=board, jetson=bool(jetson), wsl=wsl),
        npus=probe_npus(tree, bus),
        cgroup_version=probe_cgroup_version(tree),
        kfd_nodes=kfd_nodes,
        nvidia_driver=probe_nvidia_driver(tree),
        ascend_driver=probe_ascend_driver(tree),
        jetson=jetson,
        asahi=board.is_apple,
        cdi=cdi,
        selinux={"1": "enforcing", "0": "permissive"}.get(tree.word("sys/fs/selinux/enforce"), ""),
        nodes=nodes,
        notes=tuple(tree.notes),
    )


def _probe_darwin(tree: Tree) -> HostFacts:
    """A Mac. A folder that stands for one has the files of Linux for what the kernel tells in other ways there."""
    from ramalama_like.probe.machine import apple_gpu, probe_podman_machine

    arch, provider = probe_arch(tree), probe_podman_machine(tree)
    cpus: int | None
    memory: int | None
    if tree.real:
        cpus, memory = os.cpu_count(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    else:
        cpus, memory = probe_cpus(tree)[0], probe_memory(tree)
    return HostFacts(
        root=tree.root,
        os="darwin",
        arch=arch,
        kernel=os.uname().release if tree.real else tree.word("proc/sys/kernel/osrelease"),
        cpus=cpus,
        memory_bytes=memory,
        gpus=(apple_gpu(provider),) if arch == "arm64" else (),
        podman_machine=provider,
        notes=tuple(tree.notes),
    )


def probe_place(root: str = "/") -> HostFacts:
    """Only what finding an engine depends on: whether this is a container itself. No file of the hardware is read.

    For commands that list, stop and print, and so need no accelerator. Raises ValueProblem as ``probe`` does.
    """
    if not os.path.isdir(root):
        return _load(root)
    tree = Tree(root if os.path.realpath(root) != "/" else "/")
    return HostFacts(root=tree.root, in_container=_in_container(tree))


def _in_container(tree: Tree) -> str:
    if tree.exists("run/.toolboxenv"):
        return "toolbox"
    return "container" if tree.exists("run/.containerenv") or tree.exists(".dockerenv") else ""


def check_root(root: str) -> None:
    """Raise ValueProblem for a folder that stands for no machine: nothing could be known, and all would be decided."""
    if root and os.path.isdir(root) and not any(os.path.isdir(f"{root}/{name}") for name in ("proc", "sys", "dev")):
        raise ValueProblem(f"host facts: {root} holds no proc, sys or dev", "give a folder that stands for /")


def _load(path: str) -> HostFacts:
    hint = "Give a folder that stands for /, or a JSON file of facts."
    try:
        data = parse_json(read_file(path, LARGEST_FACTS).decode("utf-8-sig"))
    except OSError as error:
        if error.errno in (EINVAL, ENXIO):  # a pipe, a device, a socket
            raise ValueProblem(f"host facts: {path} is neither a folder nor a file", hint) from None
        raise ValueProblem(f"host facts: {path}: {error.strerror or error}", hint) from None
    except ValueError as error:
        raise ValueProblem(f"host facts: {path} is not JSON: {error}", hint) from None
    return replace(facts_from_plain(data), root=path)
