"""Processors and memory: what the cgroups grant, what is asked for, and the threads that follow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from harness import HOSTS, ROOT, Recorder, run_cli
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.checks import checked
from ramalama_like.errors import ValueProblem
from ramalama_like.facts import EngineFacts, HostFacts
from ramalama_like.limits import choose_threads, show_size, warn_of_limits
from ramalama_like.options import Setting, Settings, all_options
from ramalama_like.plan import Container
from ramalama_like.probe import probe
from ramalama_like.probe.cpu import probe_cgroup_version, probe_cpus, probe_memory
from ramalama_like.probe.tree import Tree
from ramalama_like.render.argv import render_run
from ramalama_like.value import replace

Install = Callable[..., Recorder]

GIB = 1 << 30
NO_LIMIT = 9223372036854771712  # what version 1 writes for none
DEFAULTS = Settings(**{name: Setting(option.default) for name, option in all_options().items()})


def folder(root: Path, files: dict[str, str]) -> Tree:
    """A folder that stands for a machine with 8 processors and 16 GiB, with these files besides."""
    machine = {"sys/devices/system/cpu/online": "0-7", "proc/meminfo": f"MemTotal: {16 << 20} kB", **files}
    for path, text in machine.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{text}\n")
    return Tree(str(root))


# What is granted.

HYBRID = "9:name=systemd:/\n4:memory:/a/b\n2:cpu,cpuacct:/a/b\n0::/init.scope"
GRANTS = {
    "no cgroup at all": ({}, None, 8, 16 * GIB),
    "version 2 without a limit": (
        {"sys/fs/cgroup/cgroup.controllers": "cpu memory", "proc/self/cgroup": "0::/"}, 2, 8, 16 * GIB),
    "version 2, inside of a container": (
        {"sys/fs/cgroup/cgroup.controllers": "cpu memory", "proc/self/cgroup": "0::/",
         "sys/fs/cgroup/cpu.max": "150000 100000", "sys/fs/cgroup/memory.max": str(2 * GIB)}, 2, 1, 2 * GIB),
    "version 2, the limit is a parent's": (
        {"sys/fs/cgroup/cgroup.controllers": "cpu memory", "proc/self/cgroup": "0::/user.slice/a.scope",
         "sys/fs/cgroup/user.slice/cpu.max": "350000 100000", "sys/fs/cgroup/user.slice/memory.max": str(4 * GIB),
         "sys/fs/cgroup/user.slice/a.scope/cpu.max": "max 100000",
         "sys/fs/cgroup/user.slice/a.scope/memory.max": "max"}, 2, 3, 4 * GIB),
    "version 2, another period": (
        {"sys/fs/cgroup/cgroup.controllers": "cpu", "sys/fs/cgroup/cpu.max": "20000 10000"}, 2, 2, 16 * GIB),
    "version 1": (
        {"proc/self/cgroup": "4:memory:/a/b\n2:cpu:/a/b", "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us": "250000",
         "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us": "100000", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "-1",
         "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
         "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": str(NO_LIMIT),
         "sys/fs/cgroup/memory/a/memory.limit_in_bytes": str(3 * GIB),
         "sys/fs/cgroup/memory/memory.limit_in_bytes": str(NO_LIMIT)}, 1, 2, 3 * GIB),
    "version 1, inside of a container": (  # which sees its own group at the root, and the host's path
        {"proc/self/cgroup": "4:memory:/docker/28ef\n2:cpu,cpuacct:/docker/28ef",
         "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
         "sys/fs/cgroup/memory/memory.limit_in_bytes": str(GIB)}, 1, 4, GIB),
    "hybrid: version 2 has no controller": (
        {"proc/self/cgroup": HYBRID, "sys/fs/cgroup/unified/cgroup.controllers": "",
         "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us": "500000",
         "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000",
         "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": str(5 * GIB)}, 1, 5, 5 * GIB),
    "less than one processor": (
        {"sys/fs/cgroup/cgroup.controllers": "cpu", "sys/fs/cgroup/cpu.max": "1000 100000"}, 2, 1, 16 * GIB),
    "limits above what there is": (
        {"sys/fs/cgroup/cgroup.controllers": "cpu", "sys/fs/cgroup/cpu.max": "6400000 100000",
         "sys/fs/cgroup/memory.max": str(99 * GIB)}, 2, 8, 16 * GIB),
    "nonsense": (
        {"sys/fs/cgroup/cgroup.controllers": "cpu", "sys/fs/cgroup/cpu.max": "lots 0",
         "sys/fs/cgroup/memory.max": "-5", "proc/self/cgroup": "::::\n0::/../../x"}, 2, 8, 16 * GIB),
}  # fmt: skip


@pytest.mark.parametrize("name", GRANTS)
def test_what_the_cgroups_grant(name: str, tmp_path: Path) -> None:
    files, version, cpus, memory_bytes = GRANTS[name]
    tree = folder(tmp_path, files)
    assert (probe_cgroup_version(tree), probe_cpus(tree)[0], probe_memory(tree)) == (version, cpus, memory_bytes)
    facts = probe(str(tmp_path))
    assert (facts.cgroup_version, facts.cpus, facts.memory_bytes) == (version, cpus, memory_bytes)


COUNT = "from ramalama_like.probe import probe; facts = probe(); print(facts.cpus, facts.physical_cores)"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor cannot be taken away")
@pytest.mark.skipif(shutil.which("taskset") is None, reason="taskset is not here")
def test_affinity_for_real() -> None:
    one = str(min(os.sched_getaffinity(0)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for words, count in (([], len(os.sched_getaffinity(0))), (["taskset", "-c", one], 1)):
        done = subprocess.run([*words, sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True,
                              check=True)  # fmt: skip
        cpus, cores = done.stdout.split()
        assert int(cpus) <= count
        assert cores == "None" or 1 <= int(cores) <= int(cpus)
    assert cpus == "1"


def groups_of_version_1() -> tuple[Path, Path] | None:
    """Folders of the cpu and the memory controller, where they are of version 1 and may be written."""
    found = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/memory")
    return found if all(os.access(path, os.W_OK) and (path / "cgroup.procs").exists() for path in found) else None


@pytest.mark.skipif(groups_of_version_1() is None, reason="needs root and cgroups of version 1")
def test_a_quota_of_version_1_for_real() -> None:
    cpu, memory = (path / f"ramalama-like-test-{os.getpid()}" for path in groups_of_version_1() or ())
    try:
        cpu.mkdir()
        memory.mkdir()
        (cpu / "cpu.cfs_quota_us").write_text("100000")
        (memory / "memory.limit_in_bytes").write_text(str(256 << 20))
        code = ("import os, sys\nfor path in sys.argv[1:]:\n    open(path, 'w').write(str(os.getpid()))\n"
                "from ramalama_like.probe import probe; facts = probe(); "
                "print(facts.cgroup_version, facts.cpus, facts.physical_cores, facts.memory_bytes)")  # fmt: skip
        done = subprocess.run([sys.executable, "-c", code, cpu / "cgroup.procs", memory / "cgroup.procs"],
                              env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
                              )  # fmt: skip
        assert done.stdout == f"1 1 1 {256 << 20}\n"
    finally:
        for path in (cpu, memory):
            if path.exists():
                path.rmdir()


# Threads.


def asked(**given: object) -> Settings:
    """The settings of a command line with these options."""
    return replace(DEFAULTS, **{name: Setting(chosen, f"--{name}") for name, chosen in given.items()})


@pytest.mark.parametrize(
    ("given", "facts", "count", "why", "origin"),
    [
        ({}, {"physical_cores": 6, "cpus": 12}, 6, "physical cores that may be used", "default"),
        ({}, {}, 4, "the number of cores is unknown", "default"),
        ({"cpus": 2.9}, {"physical_cores": 6, "cpus": 12}, 2, "whole processors within 2.9", "--cpus"),
        ({"cpus": 0.5}, {"physical_cores": 6, "cpus": 12}, 1, "whole processors within 0.5", "--cpus"),
        ({"cpus": 8.0}, {"physical_cores": 6, "cpus": 12}, 6, "physical cores that may be used", "default"),
        ({"cpus": 8.0}, {}, 8, "whole processors within 8", "--cpus"),
        ({"cpus": 8.0}, {"cpus": 2}, 2, "whole processors within 8", "--cpus"),
        ({"cpus": 2.0, "threads": 2}, {"physical_cores": 6}, 2, "as asked", "--threads"),
        ({"threads": 64}, {"physical_cores": 6}, 64, "as asked", "--threads"),
    ],
)
def test_threads(given: dict[str, object], facts: dict[str, int], count: int, why: str, origin: str) -> None:
    found = choose_threads(asked(**given), HostFacts(**facts))
    assert (found.count, found.why, found.origin, found.warnings) == (count, why, origin, ())


def test_more_threads_than_processors_are_obeyed_and_warned_about() -> None:
    found = choose_threads(asked(cpus=1.5, threads=3), HostFacts(physical_cores=6))
    assert (found.count, found.warnings) == (
        3, ("--threads: 3 threads share 1.5 processors (--cpus), and wait for each other",))  # fmt: skip


@given(st.none() | st.floats(0.01, 65536), st.none() | st.integers(1, 4096), st.none() | st.integers(1, 512))
def test_there_is_always_a_thread_and_never_one_too_many(
    cpus: float | None, cores: int | None, logical: int | None
) -> None:
    facts = HostFacts(physical_cores=cores, cpus=logical)
    count = choose_threads(asked(cpus=cpus), facts).count
    assert count >= 1
    assert cores is None or count <= cores
    assert cpus is None or count <= max(1, cpus)


# Warnings.


ROOMY = HostFacts(cpus=4, memory_bytes=8 * GIB)


def warned(engine: str = "podman", rootless: bool = False, model_bytes: int = 0, on_cpu: bool = True,
           facts: HostFacts = ROOMY, **given: object) -> tuple[str, ...]:  # fmt: skip
    return warn_of_limits(asked(**given), facts, EngineFacts(engine, rootless=rootless), model_bytes=model_bytes,
                          on_cpu=on_cpu)  # fmt: skip


def test_limits_that_mean_something_are_no_news() -> None:
    assert warned() == warned(cpus=4.0, memory=8 * GIB, model_bytes=8 * GIB) == ()
    assert warned(cpus=99.0, memory=99 * GIB, facts=HostFacts()) == ()
    assert warned(rootless=True, facts=HostFacts(cgroup_version=1)) == ()
    assert warned(rootless=True, cpus=1.0, facts=HostFacts(cgroup_version=2)) == ()
    assert warned("docker", rootless=True, cpus=1.0, facts=HostFacts(cgroup_version=1)) == ()


def test_limits_that_do_not_do_what_they_seem_to() -> None:
    assert warned(cpus=4.5) == ("--cpus: 4.5 processors are more than the 4 that may be used here",)
    assert warned(memory=9 * GIB) == ("--memory: 9 GiB is more than the 8 GiB of this machine",)
    assert warned(memory=GIB, model_bytes=3 * GIB // 2) == (
        "--memory: 1 GiB is less than the model's 1.5 GiB, so weights will be read from the disk again and again",
    )
    assert warned(memory=GIB, model_bytes=2 * GIB, on_cpu=False) == (
        "--memory: 1 GiB is less than the model's 2 GiB, so weights that no accelerator holds will be read from the "
        "disk again and again",
    )
    assert warned(rootless=True, cpus=1.0, memory=GIB, facts=HostFacts(cgroup_version=1)) == (
        "--cpus and --memory: podman without root cannot limit on cgroup version 1, and will ignore it",
    )
    assert warned("none", memory=GIB) == ("--memory: memory is only limited in a container",)  # fmt: skip


def test_sizes_for_people() -> None:
    assert [show_size(size) for size in (5, 1024, 1536 << 10, 6 << 20, 1 << 40)] == [
        "5 bytes", "1 KiB", "1.5 MiB", "6 MiB", "1024 GiB"]  # fmt: skip


# From the words to the engine.

MEMORY = all_options()["memory"]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8g", 8 * GIB), ("512m", 512 << 20), ("1.5g", 3 * GIB // 2), ("0.5T", 512 * GIB), ("65536k", 64 << 20),
        ("8GB", 8 * GIB), ("8GiB", 8 * GIB), ("8388608", 8 << 20), ("8388608b", 8 << 20), (8 << 20, 8 << 20),
    ],
)  # fmt: skip
def test_sizes_as_engines_read_them(text: object, size: int) -> None:
    assert checked(MEMORY, (text, "--memory", "--memory", None), "/") == size


@given(st.text(alphabet="0123456789.kmgtib-+e_ ", max_size=12) | st.integers() | st.booleans() | st.floats())
def test_any_size_is_bytes_or_refused(raw: object) -> None:
    try:
        size = checked(MEMORY, (raw, "--memory", "--memory", None), "/")
    except ValueProblem as problem:
        assert problem.message.startswith("--memory: ") and problem.hint
    else:
        assert 6 << 20 <= size < 1 << 63


@given(st.integers(6 << 20, (1 << 63) - 1))
def test_a_size_is_spelt_so_that_it_can_be_read_again(size: int) -> None:
    words = render_run(Container(name="c", memory_bytes=size), "podman", "podman", (5, 4))
    spelt = words[words.index("--memory") + 1]
    assert words[words.index("--memory-swap") + 1] == spelt
    if "." not in spelt and len(spelt.rstrip("bkmg")) <= 18:
        assert checked(MEMORY, (spelt, "", "", None), "/") == size


@given(st.sampled_from(["podman", "docker"]), st.floats(0.01, 65536))
def test_processors_are_spelt_as_docker_counts_them(kind: str, cpus: float) -> None:
    words = render_run(Container(name="c", cpus=cpus), kind, kind, (25, 0))
    spelt = words[words.index("--cpus") + 1]
    assert (Fraction(spelt) * 10**9).denominator == 1
    assert abs(Fraction(spelt) - Fraction(cpus)) <= Fraction(1, 10**9)
    assert "e" not in spelt and not spelt.endswith(".")


NONSENSE = {
    "--memory=0": "--memory: '0' is less than 6m, the least that engines take",
    "--memory=-1": "--memory: '-1' is not a size",
    "--memory=1e400": "--memory: '1e400' is not a size",
    "--memory=nan": "--memory: 'nan' is not a size",
    "--memory=99999999t": "--memory: the size is too large",
    "--cpus=0": "--cpus: 0.0 is not between 0.01 and 65536",
    "--cpus=-1": "--cpus: -1.0 is not between 0.01 and 65536",
    "--cpus=1e400": "--cpus: '1e400' is not a finite number",
    "--cpus=nan": "--cpus: 'nan' is not a finite number",
    "--cpus=2g": "--cpus: '2g' is not a number",
}


@pytest.mark.parametrize("word", NONSENSE)
@pytest.mark.parametrize("engine", ["podman-5.4", "docker-28"])
def test_limits_that_are_none(engine: str, word: str, fake_engine: Install) -> None:
    fake_engine(engine).make_known()
    done = run_cli("--dryrun", "serve", "demo", word)
    assert (done.code, done.out) == (22, "")
    assert done.err.startswith(f"Error: {NONSENSE[word]}\nHint: ")


@pytest.mark.parametrize("engine", ["podman-5.4", "docker-28"])
def test_limits_beyond_the_machine_are_told(engine: str, fake_engine: Install) -> None:
    fake_engine(engine).make_known()
    host = ("--host-facts", str(HOSTS / "radeon-890m"), "--backend", "cpu")
    done = run_cli("--dryrun", "serve", "demo", *host, "--memory", "9t", "--cpus", "999.5")
    assert done.code == 0 and " --cpus 999.5 --memory 9216g --memory-swap 9216g " in done.out
    assert "Warning: --cpus: 999.5 processors are more than the " in done.err
    assert "Warning: --memory: 9216 GiB is more than the " in done.err


@pytest.mark.parametrize("engine", ["podman-4.3", "docker-20.10"])
@pytest.mark.parametrize("command", ["run", "serve", "bench", "perplexity"])
def test_engine_and_server_get_the_same_limit(command: str, engine: str, fake_engine: Install, tmp_path: Path) -> None:
    fake_engine(engine).make_known()
    text = tmp_path / "text"
    text.write_text("x")
    words = [command, "demo", *(["--file", str(text)] if command == "perplexity" else []),
             "--host-facts", str(HOSTS / "radeon-890m"), "--backend", "cpu"]  # fmt: skip
    done = run_cli("--dryrun", *words, "--cpus", "2.5", "--memory", "1g")
    assert done.code == 0, done.err
    line = done.out.splitlines()[0]
    assert " --cpus 2.5 --memory 1g --memory-swap 1g --pull " in line
    assert " --threads 2" in line
    free = run_cli("--dryrun", *words).out.splitlines()[0]
    assert "--cpus" not in free and "--memory" not in free


def test_limits_from_a_file_and_from_variables(
    fake_engine: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine("podman-4.9").make_known()
    conf = tmp_path / "ramalama.conf"
    conf.write_text('[ramalama]\ncpus = 2\nmemory = "1g"\n')
    monkeypatch.setenv("RAMALAMA_CONFIG", str(conf))
    words = ("--dryrun", "serve", "demo", "--host-facts", str(HOSTS / "no-gpu"))
    assert " --cpus 2 --memory 1g --memory-swap 1g " in run_cli(*words).out
    monkeypatch.setenv("RAMALAMA_MEMORY", "2048m")
    assert " --cpus 2 --memory 2g --memory-swap 2g " in run_cli(*words).out
    explained = run_cli("explain", "serve", "demo", "--host-facts", str(HOSTS / "no-gpu"), "--cpus", "1.5").out
    assert "--cpus" in explained and "2147483648" in explained


def test_without_an_engine(fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine("podman-4.9").make_known()
    words = ("--dryrun", "--nocontainer", "serve", "demo", "--host-facts", str(HOSTS / "radeon-890m"))
    done = run_cli(*words, "--memory", "1g")
    assert (done.code, done.out) == (22, "")
    assert done.err == (
        "Error: --memory limits a container, and containers were declined\n"
        "Hint: install podman, or start it below systemd-run --user --scope -p MemoryMax=SIZE\n"
    )
    done = run_cli(*words, "--cpus", "1.5")
    assert done.code == 0 and done.out.rstrip().endswith("--threads 1")
    monkeypatch.setenv("RAMALAMA_MEMORY", "1g")
    done = run_cli(*words)
    assert done.code == 0 and "Warning: $RAMALAMA_MEMORY: memory is only limited in a container\n" in done.err
