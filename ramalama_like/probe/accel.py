"""Processors for neural networks: the kernel's accel class, joined to the PCI bus."""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.facts import Npu
from ramalama_like.probe.nodes import match_node
from ramalama_like.probe.pci import read_driver, read_event, read_ids
from ramalama_like.probe.tree import pci_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.pci import PciDevice
    from ramalama_like.probe.tree import Tree

FOLDER = "sys/class/accel"


def probe_npus(tree: Tree, bus: tuple[PciDevice, ...]) -> tuple[Npu, ...]:
    """Those that have a node, by its number, then those that are only on the bus: no driver is loaded for them.

    Cards of some vendors have the PCI class of NPUs and no such node: they are no NPUs here but cards.
    """
    vendors = load_table("accelerators")["vendors"]
    by_pci = {row["pci"]: name for name, row in vendors.items() if row["pci"]}
    found: list[Npu] = []
    names = tree.names(FOLDER) if tree.exists(FOLDER) else []
    numbers = sorted(number for name in names if (number := match_node("accel#", name)) is not None)
    for number in numbers:
        folder = f"{FOLDER}/accel{number}/device"
        vendor, device = read_ids(tree, folder)
        address = pci_address(tree.link_name(folder)) or pci_address(read_event(tree, folder, "PCI_SLOT_NAME"))
        found.append(
            Npu(
                by_pci.get(vendor, f"0x{vendor}" if vendor else ""),
                address,
                pci_device=f"{vendor}:{device}" if vendor else "",
                driver=read_driver(tree, folder),
                node=f"/dev/accel/accel{number}" if tree.exists(f"dev/accel/accel{number}") else "",
            )
        )
    seen = {npu.pci_address for npu in found}
    for pci in bus:
        vendor = by_pci.get(pci.vendor, f"0x{pci.vendor}")
        is_card = pci.kind in vendors.get(vendor, {}).get("classes", ("03",))
        if pci.kind == "12" and not is_card and pci.address not in seen:
            found.append(Npu(vendor, pci.address, f"{pci.vendor}:{pci.device}", pci.driver))
    return tuple(found)
