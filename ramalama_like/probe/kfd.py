"""AMD's compute topology, from which ROCm numbers its cards."""

from __future__ import annotations

from ramalama_like.facts import MOST, MOST_BYTES, KfdNode
from ramalama_like.probe.tree import to_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.tree import Tree

# The class link, and where it leads, for folders that were recorded without links.
FOLDERS = ("sys/class/kfd/kfd/topology/nodes", "sys/devices/virtual/kfd/kfd/topology/nodes")
# The keys that are read, of some forty.
KEYS = frozenset(("simd_count", "gfx_target_version", "drm_render_minor", "unique_id", "location_id", "domain",
                  "heap_type", "size_in_bytes"))  # fmt: skip
ALL_BITS = (1 << 64) - 1
FRAME_BUFFER = (1, 2)  # heap types: visible to the CPU, or not


def probe_kfd(tree: Tree) -> tuple[KfdNode, ...]:
    """The GPUs of the topology in numeric order, which is the order of HIP's indices."""
    for folder in FOLDERS:
        if tree.exists(folder):
            break
    else:
        return ()
    numbers = sorted(number for number in map(to_number, tree.names(folder)) if number is not None)
    found: list[KfdNode] = []
    for number in numbers:
        properties = _properties(tree, f"{folder}/{number}/properties")
        simd_count = properties.get("simd_count", 0)
        if simd_count <= 0:
            continue
        found.append(
            KfdNode(
                number,
                hip_index=len(found),
                gfx=gfx_name(properties.get("gfx_target_version", 0)),
                simd_count=simd_count,
                pci_address=_address(properties),
                render_minor=properties.get("drm_render_minor") or None,
                unique_id=f"GPU-{properties['unique_id']:016x}" if properties.get("unique_id") else "",
                vram_bytes=_memory(tree, f"{folder}/{number}/mem_banks"),
            )
        )
    return tuple(found)


def gfx_name(version: int) -> str:
    """The name of an instruction set: 110501 is gfx1151. The step is hexadecimal: 90012 is gfx90c. Empty for 0."""
    if version <= 0:
        return ""
    return f"gfx{version // 10000}{version // 100 % 100}{version % 100:x}"


def _properties(tree: Tree, path: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in (tree.read(path) or "").splitlines():
        key, _, text = line.partition(" ")
        most = ALL_BITS if key == "unique_id" else MOST
        number = to_number(text, most=most) if key in KEYS else None
        if number is not None:
            found[key] = number
    return found


def _address(properties: dict[str, int]) -> str:
    location = properties.get("location_id")
    if location is None:
        return ""
    bus, device, unit = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 7
    return f"{properties.get('domain', 0):04x}:{bus:02x}:{device:02x}.{unit:x}"


def _memory(tree: Tree, folder: str) -> int | None:
    total = 0
    for bank in tree.names(folder):
        properties = _properties(tree, f"{folder}/{bank}/properties")
        if properties.get("heap_type") in FRAME_BUFFER:
            total += properties.get("size_in_bytes", 0)
    return total if 0 < total <= MOST_BYTES else None
