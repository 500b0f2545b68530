"""Commands that decide nothing about the machine look at none of its hardware: neither of ``/`` nor of a folder.

The program runs in a process that records what it does: opened files and listed folders by an audit hook, which sees
all of Python's own code too, and looks (stat, access, readlink), for which there is no such event, by wrapping them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import HOSTS, ROOT, Recorder

from ramalama_like.options import COMMANDS

Install = Callable[..., Recorder]

HARDWARE = ("/sys", "/proc", "/dev/dri", "/dev/kfd", "/dev/accel", "/dev/nvidia", "/dev/dxg", "/dev/davinci",
            "/dev/mtgpu", "/etc/cdi", "/var/run/cdi", "/run/cdi", "/usr/lib/wsl", "/etc/nv_tegra_release")  # fmt: skip
# Of this very process; Python itself looks at its descriptors.
OWN = ("/proc/self/fd", f"/proc/{os.getpid()}/fd")
WATCH = """
import json, os, sys
seen, depth = [], [0]

def note(path):
    if depth[0] == 0 and isinstance(path, (str, bytes, os.PathLike)):
        depth[0] += 1
        try:
            seen.append(os.path.abspath(os.fsdecode(path)))
        finally:
            depth[0] -= 1

def watched(real):
    def look(path, *rest, **more):
        note(path)
        return real(path, *rest, **more)
    return look

for name in ("stat", "lstat", "access", "readlink"):
    setattr(os, name, watched(getattr(os, name)))
sys.addaudithook(lambda event, args: note(args[0] or "") if event in ("open", "os.listdir", "os.scandir") else None)
report = sys.argv.pop(1)
from ramalama_like.main import run_argv
try:
    code = run_argv(sys.argv[1:])
finally:
    with open(os.open(report, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        json.dump(seen, file)
sys.exit(code)
"""
QUIET = [
    (), ("--help",), ("-h",), ("help",), ("version",), ("--version",), ("version", "--json"), ("config", "show"),
    ("config", "show", "--json"), ("config", "show", "--origin"),
    *((*name.split(), "--help") for name in COMMANDS), *(("help", *name.split()) for name in COMMANDS),
]  # fmt: skip
LISTS = [("ps",), ("ps", "--json"), ("stop", "--all"), ("--dryrun", "stop", "--all"), ("logs", "none")]


def looked_at(tmp_path: Path, *words: str, env: dict[str, str] | None = None) -> tuple[int, list[str]]:
    """The end of a command line, and every path that its process opened, listed or looked at."""
    report = tmp_path / "seen"
    done = subprocess.run([sys.executable, "-c", WATCH, str(report), *words], capture_output=True, check=False,
                          stdin=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "RAMALAMA_CONFIG": os.devnull, **(env or {})}
                          )  # fmt: skip
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    seen = json.loads(report.read_text())
    report.unlink()
    return done.returncode, seen


def hardware(seen: list[str], *others: str) -> list[str]:
    """Those of the paths that tell about the hardware, of this machine or below other folders."""
    return sorted({path for path in seen if path.startswith((*HARDWARE, *others)) and not path.startswith(OWN)})


@pytest.mark.parametrize("words", QUIET, ids=" ".join)
def test_commands_that_only_tell(words: tuple[str, ...], tmp_path: Path) -> None:
    host = str(HOSTS / "two-mi300x")
    for env in ({}, {"RAMALAMA_HOST_FACTS": host}):
        code, seen = looked_at(tmp_path, *words, env=env)
        assert code == 0
        assert hardware(seen, host) == []
        assert any(path.startswith(str(ROOT)) for path in seen), "nothing was recorded"


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_commands_about_containers(words: tuple[str, ...], tmp_path: Path, fake_engine: Install) -> None:
    fake_engine("podman-4.9", output="[]").make_known()
    _, seen = looked_at(tmp_path, *words)
    assert hardware(seen) == []


def test_the_record_notices_what_info_reads(tmp_path: Path, fake_engine: Install) -> None:
    """Otherwise the tests above could not fail."""
    fake_engine("podman-4.9").make_known()
    code, seen = looked_at(tmp_path, "info")
    assert code == 0
    read = hardware(seen)
    for file in ("/proc/meminfo", "/sys/bus/pci/devices", "/etc/cdi", "/dev/dri"):
        assert any(path.startswith(file) for path in read), file
    host = str(HOSTS / "two-mi300x")
    code, seen = looked_at(tmp_path, "info", "--host-facts", host)
    assert code == 0
    below = [path.removeprefix(host) for path in seen if path.startswith(f"{host}/")]
    for file in ("/proc/meminfo", "/sys/class/kfd/kfd", "/dev/kfd", "/sys/bus/pci/devices"):
        assert any(path.startswith((file, "/sys/devices/virtual/kfd")) for path in below), file
    # A folder that stands for another machine is all that is read then: how many processors this one has is nothing.
    assert hardware(seen) == []
