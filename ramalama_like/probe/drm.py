"""Graphics nodes: which card and render node belong to which device."""

from __future__ import annotations

from ramalama_like.probe.nodes import match_node
from ramalama_like.probe.pci import read_driver, read_event, read_ids
from ramalama_like.probe.tree import pci_address
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.tree import Tree

FOLDER = "sys/class/drm"


@value
class DrmCard:
    """One device with graphics nodes."""

    address: str  # PCI address; empty where it is on another bus or was not recorded
    vendor: str  # four hexadecimal digits; empty for devices that are not on PCI
    device: str
    driver: str
    name: str = ""
    card_node: str = ""  # /dev/dri/card1, only where it exists
    render_node: str = ""
    vram_bytes: int | None = None
    shared_bytes: int | None = None


def probe_drm(tree: Tree) -> tuple[DrmCard, ...]:
    """Devices with graphics nodes, by number of the card.

    Connectors (card1-DP-1) are no cards, and simpledrm has no device that could compute.
    """
    cards: list[DrmCard] = []
    names = tree.names(FOLDER) if tree.exists(FOLDER) else []
    for number in _numbers(names, "card#"):
        folder = f"{FOLDER}/card{number}/device"
        vendor, device = read_ids(tree, folder)
        driver = read_driver(tree, folder)
        if not vendor and driver != "asahi":
            continue
        render = _numbers(tree.names(f"{folder}/drm"), "renderD#")
        cards.append(
            DrmCard(
                _address(tree, folder, f"card{number}"),
                vendor,
                device,
                driver,
                name=tree.word(f"{folder}/product_name"),
                card_node=_node(tree, f"card{number}"),
                render_node=_node(tree, f"renderD{render[0]}") if render else "",
                vram_bytes=tree.size(f"{folder}/mem_info_vram_total"),
                shared_bytes=tree.size(f"{folder}/mem_info_gtt_total"),
            )
        )
    taken = {card.render_node for card in cards}
    for number in _numbers(names, "renderD#"):
        node = _node(tree, f"renderD{number}")
        if node and node not in taken:
            _join_render(tree, cards, node, f"{FOLDER}/renderD{number}/device")
    return tuple(cards)


def _join_render(tree: Tree, cards: list[DrmCard], node: str, folder: str) -> None:
    """Give a render node to its card: the same address, else the first of the same model; else it is a card itself."""
    vendor, device = read_ids(tree, folder)
    driver = read_driver(tree, folder)
    if not vendor and driver != "asahi":
        return
    address = _address(tree, folder, node.rpartition("/")[2])
    for index, card in enumerate(cards):
        same = card.address == address if card.address and address else (card.vendor, card.device) == (vendor, device)
        if same and not card.render_node:
            cards[index] = replace(card, render_node=node)
            return
    cards.append(
        DrmCard(
            address,
            vendor,
            device,
            driver,
            name=tree.word(f"{folder}/product_name"),
            render_node=node,
            vram_bytes=tree.size(f"{folder}/mem_info_vram_total"),
            shared_bytes=tree.size(f"{folder}/mem_info_gtt_total"),
        )
    )


def _numbers(names: list[str], pattern: str) -> list[int]:
    found = (match_node(pattern, name) for name in names)
    return sorted(number for number in found if number is not None)


def _address(tree: Tree, folder: str, name: str) -> str:
    return pci_address(tree.link_name(f"{FOLDER}/{name}/device")) or pci_address(
        read_event(tree, folder, "PCI_SLOT_NAME")
    )


def _node(tree: Tree, name: str) -> str:
    return f"/dev/dri/{name}" if tree.exists(f"dev/dri/{name}") else ""
