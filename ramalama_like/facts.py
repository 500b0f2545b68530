"""What was found on a host, as plain frozen values.

``probe(root)`` fills these once; everything that decides reads only them. They hold nothing but texts, numbers,
booleans, None for "unknown" and tuples, so they travel through JSON unharmed: facts written on one machine decide on
another. New fields need a default, so that older files stay readable.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.value import fields_of, to_plain, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class DeviceNode:
    """A device node that exists below the host root."""

    path: str  # as containers know it: /dev/dri/renderD128, whatever the root is
    accessible: bool | None = None  # may this user read and write it; None for a host that is not this one
    group: int | None = None  # numeric group that owns it; None for a host that is not this one
    through_group: bool | None = None  # may use it only as member of that group, which rootless podman drops


@value
class Gpu:
    """One card or integrated processor that could run a model, joined from PCI, DRM, KFD and the NVIDIA driver."""

    vendor: str  # amd nvidia intel moore-threads ascend apple-asahi apple, else the PCI vendor such as 0x1af4
    pci_address: str = ""  # 0000:c4:00.0
    pci_device: str = ""  # vendor and device, 1002:150e
    driver: str = ""  # kernel driver: amdgpu nvidia nouveau i915 xe; on macOS the podman machine's provider
    name: str = ""  # as the driver says it; empty where no file tells
    render_node: str = ""  # /dev/dri/renderD128, only where the node exists
    card_node: str = ""  # /dev/dri/card1, only where the node exists
    own_node: str = ""  # /dev/davinci0, where nothing but its node tells of a card
    vram_bytes: int | None = None
    shared_bytes: int | None = None  # main memory that the card may map (GTT)
    integrated: bool | None = None
    integrated_why: str = ""  # which file or rule said so
    gfx: str = ""  # AMD instruction set: gfx1150
    kfd_node: int | None = None
    hip_index: int | None = None  # number that HIP and ROCr give it on the host
    nvidia_uuid: str = ""  # GPU-…
    nvidia_index: int | None = None  # number that nvidia-smi gives it: order of PCI addresses
    nvidia_minor: int | None = None  # of /dev/nvidia<minor>

    @property
    def usable_bytes(self) -> int | None:
        """Memory that a model may fill: an integrated card's includes what it shares with the system."""
        if self.integrated and self.shared_bytes is not None:
            return (self.vram_bytes or 0) + self.shared_bytes
        return self.vram_bytes


@value
class Npu:
    """One processor for neural networks that is no card: it has a node of the kernel's accel class, or no driver."""

    vendor: str  # intel amd, else the PCI vendor such as 0x1e52
    pci_address: str = ""  # 0000:00:0b.0
    pci_device: str = ""  # vendor and device, 8086:7d1d
    driver: str = ""  # kernel driver: intel_vpu amdxdna
    node: str = ""  # /dev/accel/accel0, only where it exists


@value
class KfdNode:
    """One GPU in AMD's compute topology. CPUs, which have nodes of their own, are left out."""

    number: int  # folder name below topology/nodes
    hip_index: int  # position among the GPUs, in numeric order
    gfx: str = ""
    simd_count: int = 0
    pci_address: str = ""
    render_minor: int | None = None  # of /dev/dri/renderD<minor>
    unique_id: str = ""
    vram_bytes: int | None = None


@value
class CdiSpec:
    """One file that tells engines how to pass devices of one kind (Container Device Interface)."""

    kind: str  # nvidia.com/gpu
    names: tuple[str, ...]  # what may stand after the equals sign, in the file's order
    file: str  # path on that host
    device_nodes: tuple[str, ...] = ()  # every node that the file passes
    missing: tuple[str, ...] = ()  # those of them that do not exist

    @property
    def stale(self) -> bool:
        """Whether the file describes devices that are gone: engines fail on it."""
        return bool(self.missing)


@value
class HostFacts:
    """Everything known about one machine. ``notes`` has one sentence for each file that could not be used."""

    root: str = "/"  # folder or file that this was read from
    os: str = "linux"  # linux darwin
    arch: str = ""  # amd64 arm64 s390x ppc64le, else the kernel's own word; empty: unknown
    kernel: str = ""
    wsl: bool = False
    in_container: str = ""  # toolbox container, or empty
    cpus: int | None = None  # logical processors that may be used: affinity and cgroup quota counted
    physical_cores: int | None = None  # cores behind them, hyper-threads counted once
    memory_bytes: int | None = None  # installed, or the cgroup limit where that is lower
    cgroup_version: int | None = None  # 1 where any controller is of version 1 (hybrid too), else 2
    gpus: tuple[Gpu, ...] = ()  # in order of PCI address
    npus: tuple[Npu, ...] = ()  # in order of the number of their node; those without a node come last
    kfd_nodes: tuple[KfdNode, ...] = ()
    nvidia_driver: str = ""  # 570.86.15
    ascend_driver: str = ""  # 24.1.rc1
    jetson: str = ""  # release of Jetson Linux such as 36.4.3, or unknown; empty: no Jetson
    asahi: bool = False  # Linux on Apple's own processor
    podman_machine: str = ""  # provider of podman's virtual machine on macOS: libkrun applehv; empty: unknown
    cdi: tuple[CdiSpec, ...] = ()
    selinux: str = ""  # enforcing permissive, or empty where SELinux is not used
    nodes: tuple[DeviceNode, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_this_machine(self) -> bool:
        """Whether these facts were read from the machine that the program runs on."""
        return self.root == "/"

    def node(self, path: str) -> DeviceNode | None:
        """The device node at ``path``, or None where it does not exist."""
        for node in self.nodes:
            if node.path == path:
                return node
        return None


@value
class EngineFacts:
    """The container engine in use, as far as asking it (or only finding it) told."""

    kind: str  # podman docker none
    program: str = ""  # argv[0]
    version: tuple[int, ...] = ()  # empty: not asked
    version_text: str = ""
    rootless: bool | None = None
    cdi_directories: tuple[str, ...] = ()  # as the docker daemon lists them; podman always has its own
    oci_runtime: str = ""  # crun or runc, where it matters; empty: not looked at
    why: str = ""


@value
class Private:
    """What may not appear in facts that are passed on."""

    names: tuple[str, ...] = ()  # of users and of the host
    homes: tuple[str, ...] = ()  # home folders


def facts_to_plain(facts: HostFacts) -> dict[str, Any]:
    """The facts as dicts, lists and scalars that JSON can hold."""
    plain: dict[str, Any] = to_plain(facts)  # type: ignore[assignment]
    return plain


def facts_from_plain(data: object) -> HostFacts:
    """Facts from what ``facts_to_plain`` gave. Unknown keys are ignored, missing ones take their default.

    Raises ValueProblem naming the first field whose value has the wrong type.
    """
    found: HostFacts = _read(HostFacts, data, "")
    return found


MOST_BYTES = 1 << 60  # of memory that a machine may say it has
MOST = (1 << 63) - 1  # of anything else that is counted
# What is counted otherwise than from 0 to the most.
_LIMITS = {"cpus": (1, 1 << 20), "physical_cores": (1, 1 << 20), "cgroup_version": (1, 2)}
_PATHS = {"render_node", "card_node", "node", "path", "file", "device_nodes", "missing"}

# By the text of the annotation, which `from __future__ import annotations` leaves as it was written.
_SCALARS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "bool | None": (bool, type(None)),
}
_PARTS: dict[str, type] = {
    "tuple[Gpu, ...]": Gpu,
    "tuple[Npu, ...]": Npu,
    "tuple[KfdNode, ...]": KfdNode,
    "tuple[CdiSpec, ...]": CdiSpec,
    "tuple[DeviceNode, ...]": DeviceNode,
}


def _read(kind: type, data: object, where: str) -> Any:
    if not isinstance(data, dict):
        raise ValueProblem(f"host facts: {where.rstrip('.') or 'the whole file'} must be a table, not {_word(data)}")
    given: dict[str, object] = {}
    for name, default in fields_of(kind).items():
        annotation = kind.__annotations__[name]
        if name in data:
            given[name] = _read_field(annotation, data[name], where + name)
        elif isinstance(default, str | int | tuple | None):
            given[name] = default
        else:
            raise ValueProblem(f"host facts: {where}{name} is missing")
    return kind(**given)


def _read_field(annotation: str, item: object, where: str) -> object:
    allowed = _SCALARS.get(annotation)
    if allowed is not None:
        # bool is an int to isinstance, but a count of True is nonsense.
        if not isinstance(item, allowed) or (isinstance(item, bool) and bool not in allowed):
            raise ValueProblem(f"host facts: {where} must be {annotation.replace(' | None', ' or null')}, "
                               f"not {_word(item)}")  # fmt: skip
        if isinstance(item, str):
            _check_text(item, where)
        elif isinstance(item, int) and not isinstance(item, bool):
            name = where.rpartition(".")[2]
            low, high = _LIMITS.get(name, (0, MOST_BYTES if name.endswith("_bytes") else MOST))
            if not low <= item <= high:
                raise ValueProblem(f"host facts: {where} must be from {low} to {high}")
        return item
    if not isinstance(item, list | tuple):
        raise ValueProblem(f"host facts: {where} must be a list, not {_word(item)}")
    part = _PARTS.get(annotation)
    if part is not None:
        return tuple(_read(part, member, f"{where}[{number}].") for number, member in enumerate(item))
    for number, member in enumerate(item):
        if not isinstance(member, str):
            raise ValueProblem(f"host facts: {where}[{number}] must be str, not {_word(member)}")
        _check_text(member, f"{where}[{number}]")
    return tuple(item)


def is_device_name(text: str) -> bool:
    """Whether a text may be a device's name in a CDI specification, or a kind of device: part of a command line."""
    return text.isprintable() and "," not in text and "=" not in text and not text.startswith("-")


def is_node_path(text: str) -> bool:
    """Whether a text may be the path of a device node: part of a command line."""
    return text.isprintable() and ".." not in text.split("/")


def _check_text(text: str, where: str) -> None:
    """JSON can spell halves of characters, which no file, argument or terminal can take."""
    try:
        text.encode("utf-8", "surrogateescape")  # as names of files that are no UTF-8 are kept
    except UnicodeEncodeError:
        raise ValueProblem(f"host facts: {where} is not text") from None
    field = where.rpartition(".")[2].partition("[")[0]
    if field in _PATHS and not is_node_path(text):
        raise ValueProblem(f"host facts: {where} is no path of a device or file")
    if where.startswith("cdi[") and field in ("names", "kind") and not is_device_name(text):
        raise ValueProblem(f"host facts: {where} is no name of a device")


def _word(item: object) -> str:
    return {"dict": "a table", "list": "a list", "NoneType": "null"}.get(type(item).__name__, type(item).__name__)
