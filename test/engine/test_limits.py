"""Limits of processors and memory with real engines: what the kernel was told, and what a probe inside finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.test_commands import User, port
from ramalama_like.probe import probe

if TYPE_CHECKING:
    from engine.conftest import Engine

__all__ = ["port"]
MIB = 1 << 20
LOCKED = ("--network", "none", "--cap-drop=all", "--security-opt=no-new-privileges", "--label", "ai.ramalama")
# The files of a container that tell its limits, copied into a folder that stands for its root.
RECORD = """
cd / && for file in proc/self/cgroup proc/meminfo sys/devices/system/cpu/online sys/fs/cgroup/cgroup.controllers \
  sys/fs/cgroup/cpu.max sys/fs/cgroup/memory.max sys/fs/cgroup/cpu/cpu.cfs_quota_us \
  sys/fs/cgroup/cpu/cpu.cfs_period_us sys/fs/cgroup/memory/memory.limit_in_bytes; do
  if test -r $file; then mkdir -p /record/${file%/*} && cat $file > /record/$file; fi
done
"""


@pytest.fixture
def user(engine: Engine, world: Path) -> User:
    """A user of each engine in turn."""
    return User(engine, world / "user")


def inspect(engine: Engine, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(engine.run("inspect", name, check=True).stdout)[0]["HostConfig"]
    return found


def test_a_server_with_limits(user: User, port: int) -> None:
    words = ("serve", "-d", "demo", "--port", str(port), "--cpus", "1.5", "--memory", "256m")
    (shown,) = user.dry_run(*words)
    assert shown[shown.index("--cpus") :][:6] == ["--cpus", "1.5", "--memory", "256m", "--memory-swap", "256m"]
    assert shown[-2:] == ["--threads", "1"]
    done = user.types(*words)
    try:
        assert done.returncode == 0, done.stderr
        limits = inspect(user.engine, f"ramalama-demo-{port}")
        assert (limits["NanoCpus"], limits["Memory"], limits["MemorySwap"]) == (1_500_000_000, 256 * MIB, 256 * MIB)
    finally:
        user.types("stop", "--all")


def test_a_server_without_limits(user: User, port: int) -> None:
    done = user.types("serve", "-d", "demo", "--port", str(port))
    try:
        assert done.returncode == 0, done.stderr
        limits = inspect(user.engine, f"ramalama-demo-{port}")
        assert (limits["NanoCpus"], limits["Memory"]) == (0, 0)
    finally:
        user.types("stop", "--all")


def test_a_server_that_needs_more_memory_is_killed_and_says_so(user: User) -> None:
    words = ("run", "demo", "--memory", "7m", "--temp", "0", "What is it?")
    refused = user.types(*words)
    assert (refused.returncode, refused.stdout) == (22, "")
    assert "and --memory allows 7 MiB\n" in refused.stderr
    done = user.types(*words, "--force")
    assert (done.returncode, done.stdout) == (137, ""), done.stderr
    assert "was killed (SIGKILL): it has most likely exceeded the 7 MiB of memory that it may use" in done.stderr
    assert user.leftovers() == []


def test_a_tool_with_limits_says_what_it_measured(user: User) -> None:
    done = user.types("bench", "demo", "--cpus", "1", "--memory", "256m", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert {row["n_threads"] for row in json.loads(done.stdout)} == {1}


def test_what_the_kernel_refuses_is_told_in_our_words(user: User, port: int) -> None:
    """docker compares with the processors of its machine; podman takes any number, which then limits nothing."""
    done = user.types("serve", "-d", "demo", "--port", str(port), "--cpus", "512")
    try:
        assert "Warning: --cpus: 512 processors are more than the " in done.stderr
        if user.engine.name == "docker":
            assert done.returncode != 0
            assert "docker's daemon has fewer processors than --cpus allows" in done.stderr
        else:
            assert done.returncode == 0, done.stderr
    finally:
        user.types("stop", "--all")


def test_a_probe_inside_finds_the_limits(engine: Engine, tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.mkdir()
    limits = ("--cpus", "1.5", "--memory", "256m", "--memory-swap", "256m")
    engine.run("run", "--rm", *LOCKED, *limits, "--volume", f"{record}:/record", engine.image, "sh", "-c", RECORD,
               check=True)  # fmt: skip
    facts = probe(str(record))
    assert (facts.cpus, facts.memory_bytes) == (1, 256 * MIB)
    assert facts.cgroup_version == probe().cgroup_version is not None


def test_podman_without_root_limits_as_far_as_the_cgroups_let_it(rootless_podman: Engine) -> None:
    """On version 1 it ignores the limits with a warning, which is what ours says before the start."""
    if probe().cgroup_version != 1:
        pytest.skip("cgroups of version 2: whether limits work depends on what systemd has delegated")
    read = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes"
    done = rootless_podman.run("run", "--rm", *LOCKED, "--memory", "256m", rootless_podman.image, "sh", "-c", read,
                               check=True)  # fmt: skip
    assert "ignored on cgroups V1 rootless" in done.stderr
    assert int(done.stdout) > 1 << 60
