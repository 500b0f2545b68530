"""Whatever the files hold or are, probing ends soon, with facts and notes and nothing else.

Every parser is given bytes, and pieces of what it reads in odd order; then files of the recorded machines are replaced
by things that no file should be.
"""

import contextlib
import json
import os
import shutil
import socket
import time
from pathlib import Path

import pytest
import yaml
from harness import HOSTS, short_folder
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from machines import MACHINES
from test_accelerator import ENGINES, choose

from ramalama_like.errors import AppError
from ramalama_like.facts import HostFacts, facts_from_plain, facts_to_plain
from ramalama_like.options import BACKENDS
from ramalama_like.probe import probe
from ramalama_like.probe.boards import probe_ascend_driver, probe_board, probe_jetson
from ramalama_like.probe.cdi import LARGEST_ODD_YAML, MOST_SPECS, parse_yaml
from ramalama_like.probe.cpu import probe_cpus, probe_memory
from ramalama_like.probe.drm import probe_drm
from ramalama_like.probe.machine import probe_podman_machine
from ramalama_like.probe.pci import probe_pci
from ramalama_like.probe.tree import LARGE, Tree, pci_address, to_number

FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SOON_S = 5  # a probe takes some milliseconds


def write(root: Path, path: str, content: bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def probe_soon(root: Path) -> HostFacts:
    """The facts, which travel through JSON and lead to a decision or an error of the program's own."""
    began = time.process_time()
    facts = probe(str(root))
    assert time.process_time() - began < SOON_S
    assert facts_from_plain(json.loads(json.dumps(facts_to_plain(facts)))) == facts
    for backend in ("auto", "vulkan", "cuda", "openvino"):
        with contextlib.suppress(AppError):
            choose(facts, backend, ENGINES["docker with CDI"])
    return facts


# Pieces of what the files hold, for each parser.

ODD = (
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\n",
    b" ",
    b"\t",
    b"=",
    b":",
    b",",
    b".",
    b"-",
    b"#",
    b"9" * 25,
    b"9" * 5000,
    b"\xd9\xa3",
)
PIECES = {
    "etc/nv_tegra_release": (b"# R36 (release)", b"# R", b"REVISION:", b"REVISION: 4.3", b", GCID: 1", b"36", b"4.3"),
    "proc/device-tree/compatible": (b"apple,arm-platform\0", b"nvidia,tegra234\0", b"apple,", b"platform"),
    "proc/device-tree/model": (b"NVIDIA Jetson", b"\0\0", b"Orin"),
    "usr/local/Ascend/driver/version.info": (b"Version=24.1", b"version", b"Innerversion=V1", b"compatible_version=["),
    "sys/class/accel/accel0/device/uevent": (b"DRIVER=intel_vpu", b"PCI_SLOT_NAME=", b"0000:00:0b.0", b"PCI_ID=8086"),
    "sys/class/accel/accel0/device/vendor": (b"0x8086", b"0x", b"8086"),
    "sys/class/drm/card0/device/uevent": (b"DRIVER=asahi", b"DRIVER=amdgpu", b"PCI_SLOT_NAME=0000:03:00.0"),
    "sys/class/drm/card0/device/mem_info_vram_total": (b"17179869184", b"0"),
    "sys/bus/pci/devices/0000:00:0b.0/class": (b"0x120000", b"0x0300", b"0x12"),
    "sys/bus/pci/devices/0000:00:0b.0/vendor": (b"0x8086", b"0x10de", b"0x19e5"),
    "sys/class/kfd/kfd/topology/nodes/1/properties": (b"simd_count 64", b"gfx_target_version 9", b"location_id 768"),
    "sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties": (b"heap_type 1", b"size_in_bytes 5", b"heap_type"),
    "proc/driver/nvidia/version": (b"NVRM version: NVIDIA UNIX", b"570.86.15", b"Kernel Module  "),
    "proc/driver/nvidia/gpus/0000:01:00.0/information": (b"Model: A", b"GPU UUID: GPU-", b"Device Minor: 0", b"?"),
    "proc/self/cgroup": (b"0::/a", b"4:cpu,cpuacct:/", b"/../..", b"/b"),
    "sys/fs/cgroup/cpu.max": (b"100000", b"max", b"0"),
    "sys/devices/system/cpu/online": (b"0-3", b"0-65535", b"7"),
    "proc/meminfo": (b"MemTotal:", b"1000", b" kB"),
    "proc/sys/kernel/osrelease": (b"6.6.87.2-microsoft-standard-WSL2",),
    "etc/cdi/a.json": (b"{", b"}", b"[", b"]", b'"kind"', b'"nvidia.com/gpu"', b'"devices"', b'"name"', b"1e999"),
    "etc/cdi/a.yaml": (b"kind: nvidia.com/gpu", b"devices:", b"- name: all", b"  ", b"&a", b"*a", b"<<: *a", b"!!int ",
                       b"!!bool x", b"!!timestamp x", b"!!float ''", b"{", b"[", b"? ", b"|", b"%TAG", b"---", b"'"),
}  # fmt: skip
MAC = {
    "Users/me/.config/containers/containers.conf": (
        b"[machine]", b"provider", b'"libkrun"', b"[[machine]]", b"{", b"[", b"'", b'"""', b"machine.provider=",
        b"1979-05-27T07:32:00", b"0x", b"inf",
    ),
    "Users/me/.config/containers/podman/machine/libkrun/a.json": (
        b"{", b"}", b'"LibKrunHypervisor"', b'"AppleHypervisor"', b"null", b"[", b"]", b"1", b"true",
    ),
    "Users/me/.config/containers/podman/machine/applehv/b.json": (b'{"AppleHypervisor": {"Vfkit": 1}}', b"}", b"{"),
}  # fmt: skip


def contents(pieces: dict[str, tuple[bytes, ...]]) -> st.SearchStrategy[dict[str, bytes]]:
    """For some of the files: any bytes, or their own pieces in any order."""
    own = {path: st.lists(st.sampled_from((*words, *ODD)), max_size=12).map(b"".join) for path, words in pieces.items()}
    return st.fixed_dictionaries({}, optional={path: st.binary(max_size=200) | text for path, text in own.items()})


@FUZZ
@given(contents(PIECES))
def test_every_parser_of_linux(tmp_path, files):
    for path in PIECES:
        write(tmp_path, path, files.get(path, b""))
    for node in ("dri/card0", "accel/accel0", "dxg", "davinci0", "mtgpu.0"):
        write(tmp_path, f"dev/{node}", b"")
    probe_soon(tmp_path)
    tree = Tree(str(tmp_path))
    board = probe_board(tree)
    jetson = probe_jetson(tree, board)
    assert jetson == "unknown" or all(part.isdigit() for part in jetson.split("."))
    for single in (probe_ascend_driver, probe_cpus, probe_memory, probe_drm, probe_pci):
        single(tree)


@FUZZ
@given(contents(MAC))
def test_every_parser_of_macos(tmp_path, files):
    write(tmp_path, "proc/sys/kernel/ostype", b"Darwin\n")
    write(tmp_path, "proc/sys/kernel/arch", b"arm64\n")
    for path in MAC:
        write(tmp_path, path, files.get(path, b""))
    facts = probe_soon(tmp_path)
    assert facts.os == "darwin"
    assert facts.podman_machine == probe_podman_machine(Tree(str(tmp_path)))


@FUZZ
@given(st.text(max_size=60))
def test_small_readers(text):
    assert to_number(text) is None or to_number(text) >= 0
    assert to_number(text, 16) is None or to_number(text, 16) >= 0
    address = pci_address(text)
    assert address in ("", pci_address(address))


TAGS = ("!!int", "!!float", "!!bool", "!!timestamp", "!!binary", "!!set", "!!omap", "!!pairs", "!!null", "!!str", "!x")
WORDS = (
    *TAGS, " ", "\n", "x", "''", "[", "]", "{", "}", ":", ": ", "- ", "&a ", "*a", "0", "9" * 5000, "2001-99-99",
    "1:99", "?", "|", ">", "\t", "#", "%", "@", "~", "=", "<<", ".nan",
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join))
@example("!!bool x")
@example("!!float ''")
@example("!!timestamp x")
@example("- " * 100_000)
@example("[" * 100_000)
def test_odd_yaml_is_data_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        parse_yaml(text)
    # Where libyaml is missing Python's own reader has to survive the same.
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(ValueError):
        patch.delattr(yaml, "CSafeLoader", raising=False)
        parse_yaml(text)


def test_yaml_that_would_grow_without_end_is_refused():
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 30)]
    began = time.process_time()
    with pytest.raises(ValueError, match="merged"):
        parse_yaml("\n".join(lines))
    with pytest.raises(ValueError, match="too large"):
        parse_yaml("{a: 1}\n" + "#" * LARGEST_ODD_YAML)
    assert time.process_time() - began < SOON_S


def spec_of(tmp_path: Path, text: str) -> tuple[HostFacts, float]:
    write(tmp_path, "etc/cdi/a.yaml", text.encode())
    (tmp_path / "dev").mkdir(exist_ok=True)
    began = time.process_time()
    facts = probe_soon(tmp_path)
    return facts, time.process_time() - began


def test_yaml_that_names_the_same_again_and_again_is_bounded(tmp_path):
    nodes = f"[{', '.join(['{path: /dev/x}'] * 4000)}]"
    devices = f"[{', '.join(['*d'] * 8000)}]"
    text = f"kind: nvidia.com/gpu\nx: &d {{name: a, containerEdits: {{deviceNodes: {nodes}}}}}\ndevices: {devices}\n"
    assert len(text) < LARGEST_ODD_YAML
    facts, _ = spec_of(tmp_path, text)
    assert facts.cdi[0].device_nodes == ("/dev/x",)
    laughs = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    laughs += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    facts, _ = spec_of(tmp_path, "\n".join([*laughs, "kind: *a29", "devices: *a29"]))
    assert (facts.cdi, len(facts.notes)) == ((), 1)


ODD_DEVICES = {
    "a name with a line break": '{"name": "x\\n--privileged", "containerEdits": {}}',
    "a name with a NUL": '{"name": "x\\u0000"}',
    "a name of several": '{"name": "0,1"}',
    "a name that is an option": '{"name": "--all"}',
    "a path that leads back": '{"name": "1", "containerEdits": {"deviceNodes": [{"path": "/dev/../etc/x"}]}}',
    "a path with a line break": '{"name": "1", "containerEdits": {"deviceNodes": [{"path": "/dev/x\\ny"}]}}',
    "a path with a NUL": '{"name": "1", "containerEdits": {"deviceNodes": [{"hostPath": "/dev/x\\u0000"}]}}',
}


@pytest.mark.parametrize("device", ODD_DEVICES.values(), ids=ODD_DEVICES)
@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_a_device_that_no_command_line_can_take_is_refused(tmp_path, device, kind):
    text = f'{{"kind": "nvidia.com/gpu", "devices": [{{"name": "0"}}, {device}]}}'
    write(tmp_path, f"etc/cdi/a.{kind}", text.encode())
    facts = probe_soon(tmp_path)
    assert [spec.names for spec in facts.cdi] == [("0",)]
    assert [note[: len(f"/etc/cdi/a.{kind} has")] for note in facts.notes] == [f"/etc/cdi/a.{kind} has"]
    assert all(note.isprintable() for note in facts.notes)


def test_a_spec_whose_kind_file_or_common_nodes_are_odd_is_refused(tmp_path):
    write(tmp_path, "etc/cdi/a.json", b'{"kind": "nvidia.com/gpu\\n", "devices": []}')
    write(
        tmp_path,
        "etc/cdi/b.json",
        b'{"kind": "a/b", "containerEdits": {"deviceNodes": [{"path": "/dev/.."}]}, "devices": [{"name": "0"}]}',
    )
    write(tmp_path, "etc/cdi/c\nd.json", b'{"kind": "a/b", "devices": []}')
    facts = probe_soon(tmp_path)
    assert (facts.cdi, len(facts.notes)) == ((), 3)
    assert all(note.isprintable() for note in facts.notes)


def test_numbers_that_no_machine_has_cost_their_facts(tmp_path):
    for path, text in {
        "sys/class/drm/card0/device/vendor": "0x1002", "sys/class/drm/card0/device/device": "0x744c",
        "sys/class/drm/card0/device/mem_info_vram_total": str(2**64 - 1),
        "sys/class/drm/card0/device/mem_info_gtt_total": "9" * 5000, "proc/meminfo": f"MemTotal: {2**63 - 1} kB",
    }.items():  # fmt: skip
        write(tmp_path, path, text.encode())
    facts = probe_soon(tmp_path)
    assert [(gpu.vram_bytes, gpu.shared_bytes) for gpu in facts.gpus] == [(None, None)]
    assert (facts.memory_bytes, len(facts.notes)) == (None, 2)


def test_large_specs_are_read_as_far_as_any_machine_needs(tmp_path):
    nodes = "".join(f"    - path: /dev/x{number}\n" for number in range(100_000))
    text = f"kind: nvidia.com/gpu\ndevices:\n- name: all\n  containerEdits:\n    deviceNodes:\n{nodes}"
    assert len(text) < LARGE
    write(tmp_path, "etc/cdi/large.yaml", text.encode())
    for number in range(MOST_SPECS + 10):
        write(tmp_path, f"run/cdi/{number:03}.json", b'{"kind": "a/b"}')
    facts = probe_soon(tmp_path)
    assert len(facts.cdi) == 1 + MOST_SPECS
    assert facts.cdi[0].stale
    assert any("holds more than" in note for note in facts.notes)


# Facts that come from a file.

KEYS = (
    "gpus", "npus", "nodes", "cdi", "kfd_nodes", "os", "arch", "jetson", "asahi", "podman_machine", "vendor", "path",
    "driver", "kind", "names", "file", "nvidia_index", "integrated", "number", "hip_index", "wsl",
)  # fmt: skip
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
GPU = st.fixed_dictionaries(
    {"vendor": st.sampled_from(["nvidia", "amd", "intel", "apple", "apple-asahi", "ascend", "0x1af4", ""])},
    optional={
        "driver": st.sampled_from(["nvidia", "libkrun", "xe", "amdgpu", ""]),
        "render_node": st.sampled_from(["", "/dev/dri/renderD128"]),
        "gfx": st.text(max_size=6),
        "integrated": st.none() | st.booleans(),
        "vram_bytes": st.none() | st.integers(),
        "nvidia_index": st.none() | st.integers(),
        "hip_index": st.none() | st.integers(),
    },
)


@FUZZ
@given(
    PLAIN
    | st.fixed_dictionaries(
        {"gpus": st.lists(GPU, max_size=3)},
        optional={
            "os": st.sampled_from(["linux", "darwin", "x"]),
            "arch": st.text(max_size=6),
            "wsl": st.booleans(),
            "nvidia_driver": st.text(max_size=8),
        },
    )
)
def test_facts_from_any_json(data):
    with contextlib.suppress(AppError):
        facts = facts_from_plain(data)
        for backend in BACKENDS:
            for engine in ENGINES.values():
                with contextlib.suppress(AppError):
                    choose(facts, backend, engine)


# Files of recorded machines, replaced by what no file should be.


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # nothing is written: a hole


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):  # a path may be too long for one
        server.bind(str(path))


def _folder(path: Path) -> None:
    path.mkdir()
    for name in ("vendor", "card0", "0", "a.json"):
        (path / name).write_bytes(b"7")


SPOILERS = {
    "huge": _huge,
    "pipe": os.mkfifo,
    "socket": _socket,
    "folder": _folder,
    "empty folder": Path.mkdir,
    "loop": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link to its own folder": lambda path: path.symlink_to("."),
    "link out": lambda path: path.symlink_to("/dev/zero"),
    "missing": lambda path: None,
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(64 * 1024)),
    "lines": lambda path: path.write_bytes(b"a\n" * 30_000),
    "digits": lambda path: path.write_bytes(b"9" * 60_000),
    "brackets": lambda path: path.write_bytes(b"[" * 60_000),
}


def files_of(root: Path) -> list[Path]:
    """Everything below a folder, links and folders too, in the same order everywhere."""
    found = [Path(folder) / name for folder, folders, files in os.walk(root) for name in (*folders, *files)]
    return sorted(found)


def spoil(path: Path, how: str | bytes) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(how) if isinstance(how, bytes) else SPOILERS[how](path)


HOW = st.sampled_from(sorted(SPOILERS)) | st.binary(max_size=80)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(sorted(MACHINES)), st.lists(st.tuples(st.integers(0, 10_000), HOW), min_size=1, max_size=6)
)  # fmt: skip
def test_spoilt_files_of_recorded_machines(name, spoilt):
    with short_folder() as folder:
        root = folder / "host"
        shutil.copytree(HOSTS / name, root, symlinks=True)
        for number, how in spoilt:
            present = files_of(root)
            if present:
                spoil(present[number % len(present)], how)
        probe_soon(root)


@pytest.mark.parametrize("how", sorted(SPOILERS))
@pytest.mark.parametrize(
    "path",
    [
        "proc/driver/nvidia/version", "etc/cdi/nvidia.yaml", "proc/meminfo", "sys/devices/system/cpu/online",
        "sys/class/kfd/kfd/topology/nodes/1/properties", "sys/bus/pci/devices/0000:03:00.0/vendor",
        "proc/driver/nvidia/gpus/0000:01:00.0/information",
    ],
)  # fmt: skip
def test_a_spoilt_file_costs_its_own_fact_and_no_other(path, how):
    whole = facts_to_plain(probe(str(HOSTS / "amd-and-nvidia")))
    with short_folder() as folder:
        root = folder / "host"
        shutil.copytree(HOSTS / "amd-and-nvidia", root, symlinks=True)
        spoil(root / path, how)
        facts = facts_to_plain(probe_soon(root))
    changed = {key for key in whole if facts[key] != whole[key]} - {"root", "notes"}
    may_change = {
        "proc/driver/nvidia/version": {"nvidia_driver"},
        "etc/cdi/nvidia.yaml": {"cdi"},
        "proc/meminfo": {"memory_bytes"},
        "sys/devices/system/cpu/online": {"cpus", "physical_cores"},
        "sys/class/kfd/kfd/topology/nodes/1/properties": {"kfd_nodes", "gpus"},
        "sys/bus/pci/devices/0000:03:00.0/vendor": {"gpus"},
        "proc/driver/nvidia/gpus/0000:01:00.0/information": {"gpus"},
    }[path]
    assert changed <= may_change
    assert len(facts["gpus"]) >= (1 if path.endswith("vendor") else 2)
    # What cannot be read at all is said.
    if how in ("huge", "socket", "folder", "loop", "link out") and "cpu/online" not in path:
        assert any(path.rpartition("/")[2] in note for note in facts["notes"]), facts["notes"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_files_that_this_user_may_not_read_cost_their_facts():
    with short_folder() as folder:
        root = folder / "host"
        shutil.copytree(HOSTS / "amd-and-nvidia", root, symlinks=True)
        folder.chmod(0o755)
        # As somebody else one may not even be able to import, or to enter folders that were made under a strict umask.
        probe_soon(root)
        for place, _, files in os.walk(root):
            os.chmod(place, 0o755)
            for file in files:
                if not os.path.islink(f"{place}/{file}"):
                    os.chmod(f"{place}/{file}", 0o644)
        closed = ["proc/driver/nvidia/version", "etc/cdi/nvidia.yaml", "proc/meminfo"]
        for path in closed:
            (root / path).chmod(0)
        (root / "sys/devices/virtual/kfd").chmod(0)
        os.seteuid(65534)
        try:
            facts = probe_soon(root)
        finally:
            os.seteuid(0)
    assert (facts.nvidia_driver, facts.cdi, facts.memory_bytes, facts.kfd_nodes) == ("", (), None, ())
    assert [gpu.vendor for gpu in facts.gpus] == ["nvidia", "amd"]
    for path in closed:
        assert f"/{path} cannot be read: Permission denied" in facts.notes
