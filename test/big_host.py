"""A machine with eight GPUs, written as a folder that stands for ``/``: what a large server's probe has to read.

200 PCI functions, 128 cores with two threads each, and a spec with 16 CDI devices (JSON, or YAML as nvidia-ctk writes
it), of 90 kB with the hooks and mounts that fill such files. Used by the benchmark and by its test.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

GPUS = 8
PCI_FUNCTIONS = 200
CORES = 128
SIBLING = CORES  # Linux numbers the second threads after all first ones
LIBRARIES = 180


def write_big_host(root: Path, kind: str) -> Path:
    """Write the machine: ``kind`` is ``amd`` (MI300X with KFD) or ``nvidia`` (RTX with the NVIDIA driver)."""
    host = _Host(root)
    host.common()
    for number in range(GPUS):
        if kind == "amd":
            host.amd_card(number)
        else:
            host.nvidia_card(number)
    if kind == "amd":
        host.kfd()
        host.write("etc/cdi/amd.json", json.dumps(_spec("amd.com/gpu"), indent=2))
    else:
        host.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15\n")
        host.write("etc/cdi/nvidia.yaml", _yaml(_spec("nvidia.com/gpu")))
    return root


class _Host:
    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str = "") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def link(self, path: str, target: str) -> None:
        """A link to ``target``, both relative to the root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to("../" * path.count("/") + target)

    def common(self) -> None:
        self.write("proc/sys/kernel/ostype", "Linux\n")
        self.write("proc/sys/kernel/osrelease", "6.8.0-60-generic\n")
        self.write("proc/sys/kernel/arch", "x86_64\n")
        self.write("proc/meminfo", "MemTotal:       2113459364 kB\nMemFree:        2083459364 kB\n")
        self.write("proc/self/cgroup", "0::/user.slice/user-1000.slice/session-4.scope\n")
        for folder in ("", "user.slice/", "user.slice/user-1000.slice/", "user.slice/user-1000.slice/session-4.scope/"):
            self.write(f"sys/fs/cgroup/{folder}cgroup.controllers", "cpu io memory pids\n")
            if folder:
                self.write(f"sys/fs/cgroup/{folder}cpu.max", "max 100000\n")
                self.write(f"sys/fs/cgroup/{folder}memory.max", "max\n")
        cpus = "sys/devices/system/cpu"
        self.write(f"{cpus}/online", f"0-{2 * CORES - 1}\n")
        for cpu in range(2 * CORES):
            self.write(f"{cpus}/cpu{cpu}/topology/thread_siblings_list", f"{cpu % CORES},{cpu % CORES + SIBLING}\n")
            self.write(f"{cpus}/cpu{cpu}/topology/core_id", f"{cpu % 64}\n")
            self.write(f"{cpus}/cpu{cpu}/topology/physical_package_id", f"{cpu // 64 % 2}\n")
        for number in range(PCI_FUNCTIONS - GPUS):
            address = f"0000:{number // 4 + 0x80:02x}:{number % 4:02x}.0"
            kind = ("0x060400", "0x088000", "0x020000", "0x010802")[number % 4]
            self.device(f"pci0000:80/{address}", address, kind, "0x1022", "0x14ab", "pcieport")
        for name in ("null", "zero", "full", "tty", "random", "kvm", *(f"tty{n}" for n in range(64)), "nvidiactl",
                     "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"):  # fmt: skip
            self.write(f"dev/{name}")

    def device(self, below: str, address: str, kind: str, vendor: str, device: str, driver: str) -> str:
        folder = f"sys/devices/{below}"
        self.write(f"{folder}/class", f"{kind}\n")
        self.write(f"{folder}/vendor", f"{vendor}\n")
        self.write(f"{folder}/device", f"{device}\n")
        self.write(f"{folder}/uevent", f"DRIVER={driver}\nPCI_SLOT_NAME={address}\n")
        self.write(f"sys/bus/pci/drivers/{driver}/uevent")
        self.link(f"{folder}/driver", f"sys/bus/pci/drivers/{driver}")
        self.link(f"sys/bus/pci/devices/{address}", folder)
        return folder

    def graphics(self, number: int, folder: str) -> None:
        for name in (f"card{number}", f"renderD{128 + number}"):
            self.write(f"{folder}/drm/{name}/dev", "226:0\n")
            self.link(f"{folder}/drm/{name}/device", folder)
            self.link(f"sys/class/drm/{name}", f"{folder}/drm/{name}")
            self.write(f"dev/dri/{name}")
        for port in range(4):
            self.write(f"{folder}/drm/card{number}/card{number}-DP-{port}/status", "disconnected\n")
            self.link(f"sys/class/drm/card{number}-DP-{port}", f"{folder}/drm/card{number}/card{number}-DP-{port}")

    def amd_card(self, number: int) -> None:
        address = pci_address(number)
        below = f"pci0000:00/0000:00:01.{number}/0000:{number:02x}:10.0/{address}"
        folder = self.device(below, address, "0x120000", "0x1002", "0x74a1", "amdgpu")
        self.write(f"{folder}/mem_info_vram_total", "206141652992\n")
        self.write(f"{folder}/mem_info_gtt_total", "1082091134976\n")
        self.write(f"{folder}/product_name", "AMD Instinct MI300X\n")
        self.graphics(number, folder)

    def nvidia_card(self, number: int) -> None:
        address = pci_address(number)
        below = f"pci0000:00/0000:00:01.{number}/0000:{number:02x}:10.0/{address}"
        folder = self.device(below, address, "0x030000", "0x10de", "0x2684", "nvidia")
        self.graphics(number, folder)
        self.write(f"dev/nvidia{number}")
        self.write(f"proc/driver/nvidia/gpus/{address}/information",
                   f"Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 140\nGPU UUID: \t {uuid(number)}\n"
                   f"Bus Type: \t PCIe\nBus Location: \t {address}\nDevice Minor: \t {number}\n")  # fmt: skip

    def kfd(self) -> None:
        nodes = "sys/devices/virtual/kfd/kfd/topology/nodes"
        self.link("sys/class/kfd/kfd", "sys/devices/virtual/kfd/kfd")
        self.write("dev/kfd")
        for node in range(2 + GPUS):
            gpu = node - 2
            pairs: dict[str, int] = {"cpu_cores_count": CORES if gpu < 0 else 0, "simd_count": 0 if gpu < 0 else 1216}
            pairs |= {f"filler_{number}": number for number in range(24)}
            if gpu >= 0:
                pairs |= {"gfx_target_version": 90402, "location_id": (gpu + 1) << 8, "domain": 0,
                          "drm_render_minor": 128 + gpu, "unique_id": 11651590505119483672 + gpu}  # fmt: skip
            self.write(f"{nodes}/{node}/properties", "".join(f"{key} {value}\n" for key, value in pairs.items()))
            bank = {"heap_type": 0 if gpu < 0 else 1, "size_in_bytes": 206141652992, "flags": 0, "width": 64}
            self.write(f"{nodes}/{node}/mem_banks/0/properties", "".join(f"{k} {v}\n" for k, v in bank.items()))


def pci_address(number: int) -> str:
    """Where the card sits."""
    return f"0000:{number + 1:02x}:00.0"


def uuid(number: int) -> str:
    """The name that NVIDIA's driver gives a card."""
    return f"GPU-8f3b1c52-0d4e-4a7b-9c61-5e2f7a908b{number:02x}"


def _spec(kind: str) -> dict[str, object]:
    """A device specification with 16 devices: each card by its number and by its UUID."""
    hook = {"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook"}
    debug = ["NVIDIA_CTK_DEBUG=false"]
    nodes = ("nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", "nvidiactl") if "nvidia" in kind else ("kvm",)
    devices = []
    for name in (*map(str, range(GPUS)), *map(uuid, range(GPUS))):
        number = int(name[-2:], 16) if name.startswith("GPU-") else int(name)
        own = [f"/dev/dri/card{number}", f"/dev/dri/renderD{128 + number}"]
        own = [f"/dev/nvidia{number}", *own] if "nvidia" in kind else own
        links = [f"../card{number}::/dev/dri/by-path/pci-{pci_address(number)}-card",
                 f"../renderD{128 + number}::/dev/dri/by-path/pci-{pci_address(number)}-render"]  # fmt: skip
        args = ["nvidia-cdi-hook", "create-symlinks", *(word for link in links for word in ("--link", link))]
        chmod = ["nvidia-cdi-hook", "chmod", "--mode", "755", "--path", "/dev/dri"]
        hooks = [{**hook, "args": each, "env": debug} for each in (args, chmod)]
        devices.append({"name": name, "containerEdits": {"deviceNodes": [{"path": path} for path in own],
                                                         "hooks": hooks}})  # fmt: skip
    libraries = [f"/usr/lib/x86_64-linux-gnu/libvendor-part-{number}.so.570.86.15" for number in range(LIBRARIES)]
    options = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
    mounts = [{"hostPath": path, "containerPath": path, "options": options} for path in libraries]
    links = [word for path in libraries for word in ("--link", f"{path}::{path[:-10]}.1")]
    hooks = [{**hook, "args": ["nvidia-cdi-hook", "create-symlinks", *links], "env": debug}]
    edits = {"deviceNodes": [{"path": f"/dev/{name}"} for name in nodes], "env": ["NVIDIA_VISIBLE_DEVICES=void"],
             "hooks": hooks, "mounts": mounts}  # fmt: skip
    return {"cdiVersion": "0.5.0", "kind": kind, "devices": devices, "containerEdits": edits}


def _yaml(item: Mapping[str, object]) -> str:
    """The text that nvidia-ctk writes: sorted keys, sequences not indented, quotes only where they are needed."""
    return "---\n" + "".join(f"{line}\n" for line in _block(item))


def _block(item: object) -> list[str]:
    lines: list[str] = []
    if isinstance(item, Mapping):
        for key, member in sorted(item.items()):
            if isinstance(member, str):
                lines.append(f"{key}: {_scalar(member)}")
            else:
                indent = "  " if isinstance(member, Mapping) else ""
                lines += [f"{key}:", *(f"{indent}{line}" for line in _block(member))]
    elif isinstance(item, Sequence):
        for member in item:
            inner = [_scalar(member)] if isinstance(member, str) else _block(member)
            lines += [f"- {inner[0]}", *(f"  {line}" for line in inner[1:])]
    return lines


def _scalar(text: str) -> str:
    return f'"{text}"' if text.isdigit() else text
