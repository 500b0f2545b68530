"""Processors and memory: what may be used, not what is installed."""

from __future__ import annotations

import os
import sys

from ramalama_like.facts import MOST_BYTES
from ramalama_like.probe.tree import to_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.tree import Tree

MOST_CPUS = 65536

# In the words of container images.
SPELLINGS = {"amd64": "amd64", "x86_64": "amd64", "x64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def probe_arch(tree: Tree) -> str:
    """amd64, arm64, s390x, ppc64le, or the kernel's own word; empty where a folder does not tell."""
    word = tree.word("proc/sys/kernel/arch")
    if not word and tree.real:
        word = os.uname().machine  # kernels before 6.1 have no such file
    return SPELLINGS.get(word.lower(), word)


def probe_cpus(tree: Tree) -> tuple[int | None, int | None]:
    """Logical processors and physical cores that may be used: affinity and cgroup quota counted, at least 1."""
    usable = _allowed(tree)
    if not usable:
        return None, None
    cores = _physical_cores(tree, usable)
    quota = _quota(tree)
    cpus = len(usable)
    if quota is not None:
        cpus = min(cpus, max(1, quota))
    return cpus, None if cores is None else min(cores, cpus)


def probe_memory(tree: Tree) -> int | None:
    """Bytes of main memory: installed, or the lowest limit of the cgroups where that is less."""
    found: list[int] = []
    for line in (tree.read("proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            kilobytes = to_number(line[9:].replace("kB", ""))
            if kilobytes:
                found.append(kilobytes * 1024)
            break
    unified, legacy = _groups(tree, "memory")
    # Of version 1, the root has a file too: with a number beyond any memory.
    for file in (*(f"{folder}/memory.max" for folder in unified),
                 *(f"{folder}/memory.limit_in_bytes" for folder in legacy)):  # fmt: skip
        limit = to_number(tree.word(file))
        if limit:
            found.append(limit)
    found = [limit for limit in found if limit <= MOST_BYTES]
    return min(found) if found else None


def _allowed(tree: Tree) -> list[int]:
    if tree.real:
        if hasattr(os, "sched_getaffinity"):
            return sorted(os.sched_getaffinity(0))
        return list(range(os.cpu_count() or 1)) if sys.platform == "darwin" else []
    online = _ranges(tree.word("sys/devices/system/cpu/online"))
    if online:
        return online
    # A recorded folder need not hold that file.
    listed = [to_number(name[3:]) for name in tree.names("sys/devices/system/cpu") if name.startswith("cpu")]
    return sorted(number for number in listed if number is not None)


def _ranges(text: str) -> list[int]:
    """Numbers of a list such as 0-3,8; empty where it is malformed."""
    found: list[int] = []
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        low, high = to_number(first), to_number(last if dash else first)
        if low is None or high is None or not low <= high < MOST_CPUS:
            return []
        found.extend(range(low, high + 1))
        if len(found) > 2 * MOST_CPUS:  # the same ones again and again
            return []
    return sorted(set(found))


def _physical_cores(tree: Tree, usable: list[int]) -> int | None:
    cores = 0
    seen: set[int] = set()
    pairs: set[tuple[str, str]] = set()
    for cpu in usable:
        if cpu in seen:
            continue
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        # One file for each core where it names its threads, in place of two for each thread.
        siblings = _ranges(tree.word(f"{folder}/thread_siblings_list"))
        if cpu in siblings:
            seen.update(siblings)
            cores += 1
            continue
        core = tree.word(f"{folder}/core_id")
        if not core:
            return None
        pairs.add((tree.word(f"{folder}/physical_package_id"), core))
    return cores + len(pairs)


def _quota(tree: Tree) -> int | None:
    """Processors that the cgroups grant, rounded down; None where they do not limit."""
    found: list[int] = []
    unified, legacy = _groups(tree, "cpu")
    for folder in unified:
        words = tree.word(f"{folder}/cpu.max").split()
        if len(words) == 2:
            found.append(_share(to_number(words[0]), to_number(words[1])))
    for folder in legacy:
        quota = to_number(tree.word(f"{folder}/cpu.cfs_quota_us"))  # -1, no number here: no limit
        if quota is not None:
            found.append(_share(quota, to_number(tree.word(f"{folder}/cpu.cfs_period_us"))))
    found = [share for share in found if share >= 0]
    return min(found) if found else None


def _share(quota: int | None, period: int | None) -> int:
    return quota // period if quota is not None and period else -1


def probe_cgroup_version(tree: Tree) -> int | None:
    """1 where a controller that limits is of version 1 (systemd calls such a mixture hybrid), 2, or None: unknown."""
    if tree.exists("sys/fs/cgroup/cgroup.controllers"):
        return 2
    return 1 if tree.exists("sys/fs/cgroup/memory") or tree.exists("sys/fs/cgroup/cpu") else None


def _groups(tree: Tree, controller: str) -> tuple[list[str], list[str]]:
    """Folders of this process's cgroup and its parents, version 2 and version 1: each of them may limit."""
    unified = ["sys/fs/cgroup"]
    legacy: list[str] = []
    for line in (tree.read("proc/self/cgroup") or "").splitlines()[:64]:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            unified = _with_parents("sys/fs/cgroup", path)
        elif controller in controllers.split(","):
            for mount in dict.fromkeys((controllers, controller)):
                legacy += _with_parents(f"sys/fs/cgroup/{mount}", path)
    return unified, legacy


def _with_parents(base: str, path: str) -> list[str]:
    found = [base]
    # Inside a container the path may start with /.. and name a group that cannot be seen from there.
    for part in [part for part in path.split("/") if part][:32]:
        if part == "..":
            return [base]
        found.append(f"{found[-1]}/{part}")
    return found
