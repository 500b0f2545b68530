"""NVIDIA's own driver: its version and its cards, from what the kernel module tells in proc."""

from __future__ import annotations

from ramalama_like.probe.tree import pci_address, to_number
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.tree import Tree

FOLDER = "proc/driver/nvidia"


@value
class NvidiaCard:
    """One card that the driver holds."""

    address: str
    name: str
    uuid: str  # GPU-…; empty until something has used the card
    minor: int | None  # of /dev/nvidia<minor>


def probe_nvidia_driver(tree: Tree) -> str:
    """The driver's version such as 570.86.15; empty where it is not loaded."""
    for line in (tree.read(f"{FOLDER}/version") or "").splitlines():
        if not line.startswith("NVRM version"):
            continue
        # "Kernel Module  570.86.15", or "Open Kernel Module for x86_64  570.86.15  Release Build".
        for word in line.split():
            parts = word.split(".")
            if len(parts) > 1 and all(to_number(part) is not None for part in parts):
                return word
        tree.note(f"{FOLDER}/version", "names no version")
    return ""


def probe_nvidia_cards(tree: Tree) -> tuple[NvidiaCard, ...]:
    """The driver's cards in order of address, which is the order of nvidia-smi's indices and of CDI's names."""
    found: list[NvidiaCard] = []
    folder = f"{FOLDER}/gpus"
    for name in tree.names(folder):
        address = pci_address(name)
        text = tree.read(f"{folder}/{name}/information")
        if not address or text is None:
            continue
        fields: dict[str, str] = {}
        for line in text.splitlines():
            key, _, given = line.partition(":")
            fields[key.strip()] = given.strip()
        uuid = fields.get("GPU UUID", "")
        found.append(
            NvidiaCard(
                address,
                name=fields.get("Model", ""),
                uuid="" if "?" in uuid else uuid,  # as long as the card sleeps
                minor=to_number(fields.get("Device Minor", "")),
            )
        )
    return tuple(sorted(found, key=lambda card: card.address))
