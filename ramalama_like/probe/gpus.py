"""Cards, joined from the PCI bus, the graphics nodes, AMD's topology and NVIDIA's driver.

Each source may be missing: a card without a driver is only on the bus, a recorded folder may hold only one of them.
"""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.facts import Gpu
from ramalama_like.probe.drm import probe_drm
from ramalama_like.probe.nodes import match_node
from ramalama_like.probe.nvidia import probe_nvidia_cards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ramalama_like.facts import CdiSpec, DeviceNode, KfdNode
    from ramalama_like.probe.boards import Board
    from ramalama_like.probe.pci import PciDevice
    from ramalama_like.probe.tree import Tree

GIBIBYTE = 1 << 30
WSL_CUDA = "usr/lib/wsl/lib/libcuda.so.1"  # which Windows shows there as soon as it has NVIDIA's driver


def probe_gpus(
    tree: Tree,
    bus: tuple[PciDevice, ...],
    kfd_nodes: tuple[KfdNode, ...],
    cdi: tuple[CdiSpec, ...],
    nodes: tuple[DeviceNode, ...],
    *,
    board: Board,
    jetson: bool,
    wsl: bool,
) -> tuple[Gpu, ...]:
    """All cards in order of PCI address; those without an address come last."""
    table = load_table("accelerators")
    by_pci = {vendor["pci"]: name for name, vendor in table["vendors"].items() if vendor["pci"]}
    cards: dict[str, dict[str, Any]] = {}
    for pci in bus:
        vendor = by_pci.get(pci.vendor, f"0x{pci.vendor}")
        if pci.kind in table["vendors"].get(vendor, {}).get("classes", ("03",)):
            _add(cards, pci.address, vendor, pci_device=f"{pci.vendor}:{pci.device}", driver=pci.driver)
    for drm in probe_drm(tree):
        vendor = by_pci.get(drm.vendor, f"0x{drm.vendor}") if drm.vendor else "apple-asahi"
        _add(
            cards,
            drm.address or drm.card_node or drm.render_node,
            vendor,
            pci_device=f"{drm.vendor}:{drm.device}" if drm.vendor else "",
            driver=drm.driver,
            name=drm.name,
            card_node=drm.card_node,
            render_node=drm.render_node,
            vram_bytes=drm.vram_bytes,
            shared_bytes=drm.shared_bytes,
        )
    for node in kfd_nodes:
        _add_kfd(tree, cards, node)
    for held in probe_nvidia_cards(tree):
        _add(cards, held.address, "nvidia", driver="nvidia", name=held.name)
        cards[held.address].update(nvidia_uuid=held.uuid, nvidia_minor=held.minor)
    _number_nvidia(cards)
    if not any(fields["vendor"] == "nvidia" for fields in cards.values()):
        _add_nvidia_from_cdi(cards, cdi)
        if not any(key.startswith("cdi:") for key in cards) and (jetson or (wsl and tree.exists(WSL_CUDA))):
            _add(cards, "unseen", "nvidia", driver="nvidia")
            cards["unseen"]["nvidia_index"] = 0
        for fields in cards.values():
            if jetson and fields["vendor"] == "nvidia":
                fields.update(name=board.model, integrated=True, integrated_why="Jetson's GPU is part of the processor")
    _add_from_nodes(cards, nodes)
    ordered = sorted(cards.items(), key=lambda item: (":" not in item[0], len(item[0]), item[0]))
    return tuple(
        _gpu(fields, table, key if ":" in key and not key.startswith("cdi:") else "") for key, fields in ordered
    )


def _add(cards: dict[str, dict[str, Any]], key: str, vendor: str, **known: Any) -> None:
    """Add a card, or what one more source tells about it: the first source that knows a fact is believed."""
    fields = cards.setdefault(key, {"vendor": vendor})
    for name, found in known.items():
        if found not in ("", None) and fields.get(name) in ("", None):
            fields[name] = found


def _add_kfd(tree: Tree, cards: dict[str, dict[str, Any]], node: KfdNode) -> None:
    render = f"/dev/dri/renderD{node.render_minor}" if node.render_minor else ""
    if render and not tree.exists(render.lstrip("/")):
        render = ""
    key = node.pci_address
    for other, fields in cards.items():
        # The render node tells more surely than an address that may not have been recorded.
        if render and fields.get("render_node") == render:
            key = other
            break
    _add(cards, key or f"kfd{node.number}", "amd", driver="amdgpu", render_node=render, vram_bytes=node.vram_bytes)
    cards[key or f"kfd{node.number}"].update(gfx=node.gfx, kfd_node=node.number, hip_index=node.hip_index)


def _number_nvidia(cards: dict[str, dict[str, Any]]) -> None:
    """Give nvidia-smi's numbers to the cards that NVIDIA's driver holds; one that it does not hold has none."""
    held = [key for key, fields in cards.items() if fields["vendor"] == "nvidia" and fields.get("driver") == "nvidia"]
    for index, key in enumerate(sorted(held, key=lambda key: (len(key), key))):
        cards[key]["nvidia_index"] = index


def _add_nvidia_from_cdi(cards: dict[str, dict[str, Any]], cdi: tuple[CdiSpec, ...]) -> None:
    """Cards that only a CDI spec tells of: under WSL the driver lives in Windows and shows no card in Linux."""
    kind = load_table("accelerators")["vendors"]["nvidia"]["cdi_kind"]
    for spec in cdi:
        if spec.kind != kind or spec.stale:
            continue
        numbers = [name for name in spec.names if name.isascii() and name.isdigit()]
        for name in numbers or spec.names[:1]:
            key = f"cdi:{name}"
            _add(cards, key, "nvidia", driver="nvidia")
            cards[key]["nvidia_index"] = int(name[:6]) if numbers else 0


def _add_from_nodes(cards: dict[str, dict[str, Any]], nodes: tuple[DeviceNode, ...]) -> None:
    """Cards of vendors with nodes of their own, where the bus does not show them: boards, virtual machines."""
    seen = {fields["vendor"] for fields in cards.values()}
    for vendor, row in load_table("accelerators")["vendors"].items():
        for node in nodes if row.get("node") and vendor not in seen else ():
            if match_node(row["node"], node.path) is not None:
                _add(cards, node.path, vendor, own_node=node.path)


def _gpu(fields: dict[str, Any], table: Mapping[str, Any], address: str) -> Gpu:
    gpu = Gpu(**fields, pci_address=address)
    if gpu.integrated_why:
        return gpu
    integrated, why = _integrated(gpu, table)
    return Gpu(**{**fields, "pci_address": address, "integrated": integrated, "integrated_why": why})


def _integrated(gpu: Gpu, table: Mapping[str, Any]) -> tuple[bool | None, str]:
    """Whether a card is part of the processor, and how that is known. No file says it for all vendors."""
    if gpu.gfx:
        inside = gpu.gfx in table["integrated_gfx"]
        return inside, f"{gpu.gfx} {'is only built into' if inside else 'is not built into'} processors"
    if gpu.vendor == "amd" and gpu.vram_bytes is not None and gpu.shared_bytes is not None:
        small = gpu.vram_bytes <= GIBIBYTE and gpu.shared_bytes > 2 * gpu.vram_bytes
        return small, "little memory of its own" if small else "memory of its own"
    place = table["vendors"].get(gpu.vendor, {}).get("integrated_pci")
    if place and gpu.pci_address:
        inside = gpu.pci_address == place
        return inside, f"{'sits' if inside else 'does not sit'} at {place}"
    if gpu.vendor == "nvidia" and gpu.pci_address:
        return False, "NVIDIA cards on PCI are discrete"
    if gpu.vendor == "apple-asahi":
        return True, "Apple's GPUs are part of the processor"
    return None, ""
