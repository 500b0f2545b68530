"""Display devices and processing accelerators on the PCI bus, with or without a driver."""

from __future__ import annotations

from ramalama_like.probe.tree import pci_address, to_number
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.tree import Tree

FOLDER = "sys/bus/pci/devices"
DISPLAY_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")  # VGA, 3D, other display; processing accelerator


@value
class PciDevice:
    """One function of a PCI device."""

    address: str  # 0000:c4:00.0
    vendor: str  # 1002
    device: str  # 150e
    kind: str  # first byte of the class: 03 display, 12 processing accelerator
    driver: str  # kernel driver; empty: none bound, or not recorded


def probe_pci(tree: Tree) -> tuple[PciDevice, ...]:
    """Devices of the classes in ``DISPLAY_CLASSES``, in order of address."""
    found: list[PciDevice] = []
    for name in tree.names(FOLDER):
        folder = f"{FOLDER}/{name}"
        kind = tree.word(f"{folder}/class")
        if not kind.startswith(DISPLAY_CLASSES):
            continue
        address = pci_address(name)
        vendor, device = read_ids(tree, folder)
        if address and vendor:
            found.append(PciDevice(address, vendor, device, kind[2:4], read_driver(tree, folder)))
    return tuple(found)


def read_ids(tree: Tree, folder: str) -> tuple[str, str]:
    """Vendor and device number of a device folder as four hexadecimal digits; empty where unknown."""
    numbers = (to_number(tree.word(f"{folder}/{name}"), 16) for name in ("vendor", "device"))
    vendor, device = ("" if number is None else f"{number:04x}" for number in numbers)
    return vendor, device


def read_driver(tree: Tree, folder: str) -> str:
    """The kernel driver of a device folder; empty where none is bound."""
    return tree.link_name(f"{folder}/driver") or read_event(tree, folder, "DRIVER")


def read_event(tree: Tree, folder: str, key: str) -> str:
    """A value of a device's uevent file, which tells the driver and the address where links were not recorded."""
    for line in (tree.read(f"{folder}/uevent") or "").splitlines():
        name, _, given = line.partition("=")
        if name == key:
            return given.strip()
    return ""
