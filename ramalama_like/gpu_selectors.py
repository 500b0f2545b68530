"""``--gpu``: which cards are meant by a number, a UUID, a PCI address, a node or a part of a name.

Numbers are the vendor's own, as its tools print them: nvidia-smi's index, HIP's index, else the position in order of
PCI addresses. Where cards of several vendors have the same number, the vendor has to be named: ``nvidia:0``.
"""

from __future__ import annotations

from ramalama_like.cards import AUTO, CPU, Selection, backend_title, card_name
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ramalama_like.cards import Case
    from ramalama_like.facts import Gpu, HostFacts

ALL = "all"
SHORTEST_NAME = 2  # letters and digits of a part of a name
SHORTEST_UUID = 8  # characters of a UUID's beginning: GPU-2aaa


def card_selectors(facts: HostFacts) -> dict[str, Gpu]:
    """Every card that could compute under its full selector, ``vendor:number``, best vendor first."""
    found: dict[str, Gpu] = {}
    for vendor in load_table("accelerators")["vendor_order"]:
        cards = [card for card in facts.gpus if card.vendor == vendor]
        for number, card in sorted(_numbered(cards), key=lambda item: item[0]):
            found[f"{vendor}:{number}"] = card
    return found


def card_numbers(facts: HostFacts, cards: tuple[Gpu, ...]) -> list[int]:
    """The vendor's own numbers of some cards, as in their selectors."""
    selectors = card_selectors(facts).items()
    return [int(selector.rpartition(":")[2]) for card in cards for selector, other in selectors if other == card]


def pick_cards(case: Case, wanted: str) -> Selection | None:
    """The cards that ``--gpu`` names, all of one vendor; None where it was not given.

    ``wanted`` is the canonical backend, or ``auto``. Raises ValueProblem for a selector that names no card or too many
    vendors' cards, and for a backend that uses none.
    """
    entries = [entry.strip() for text in case.gpus.value for entry in text.split(",") if entry.strip()]
    if not case.gpus.value:
        return None
    asked = f"{case.gpus.origin} {','.join(entries)}"
    able = load_table("accelerators")["backends"].get(wanted, {}).get("vendors", [])
    if wanted == CPU or (wanted != AUTO and not able):
        raise ValueProblem(f"{asked}: {backend_title(wanted)} uses no card that could be chosen",
                           f"leave out {case.gpus.origin}, or the backend")  # fmt: skip
    known = {selector: card for selector, card in card_selectors(case.facts).items()
             if wanted == AUTO or card.vendor in able}  # fmt: skip
    if not known:
        what = "no card" if wanted == AUTO else f"no card for {backend_title(wanted)}"
        raise ValueProblem(f"{asked}: {what} was found on this machine",
                           "see what was found with: ramalama-like info")  # fmt: skip
    if not entries:
        raise ValueProblem(f"{case.gpus.origin}: the selector is empty", _known_cards(known))
    chosen: list[Gpu] = []
    for entry in entries:
        chosen += _find(case, entry, known)
    if len({card.vendor for card in chosen}) > 1:
        raise ValueProblem(f"{asked} names cards of several vendors, and one server computes with those of one",
                           "choose cards of one vendor, and start another server for the others")  # fmt: skip
    # The order on a command line means nothing: inside, cards keep their order.
    return Selection("", tuple(card for card in known.values() if card in chosen), asked=asked)


def _find(case: Case, entry: str, known: dict[str, Gpu]) -> list[Gpu]:
    vendor, colon, rest = entry.partition(":")
    vendors = load_table("accelerators")["vendors"]
    if colon and vendor.lower() in vendors:
        pool = {selector: card for selector, card in known.items() if card.vendor == vendor.lower()}
        text = rest
    else:
        pool, text = known, entry
    if text.lower() == ALL:
        first = next(iter(pool.values()), None)
        found = [card for card in pool.values() if first is not None and card.vendor == first.vendor]
    else:
        found = _matching(text, pool, case.facts)
    if not found:
        raise ValueProblem(f"{case.gpus.origin} {entry} names no card of this machine", _known_cards(known))
    if text.isdecimal() and len(found) > 1:
        raise ValueProblem(f"{case.gpus.origin} {entry} may mean cards of several vendors", _known_cards(known))
    return found


def _matching(text: str, pool: dict[str, Gpu], facts: HostFacts) -> list[Gpu]:
    """Cards that a text names: by the surest sign first, by a part of the name last."""
    if text.isdecimal():
        number = text.lstrip("0") or "0"
        return [card for selector, card in pool.items() if selector.rpartition(":")[2] == number]
    lower = text.lower()
    exact = [
        card
        for card in pool.values()
        if (card.pci_address and _same_address(lower, card.pci_address))
        or (text and text in (card.render_node, card.card_node))
        or (card.nvidia_minor is not None and text == f"/dev/nvidia{card.nvidia_minor}")
    ]
    if exact:
        return exact
    if len(lower) >= SHORTEST_UUID and lower.startswith(("gpu-", "mig-")):
        return [
            card
            for card in pool.values()
            if card.nvidia_uuid.lower().startswith(lower) or _unique_id(card, facts).lower().startswith(lower)
        ]
    words = lower.split()
    if sum(letter.isalnum() for letter in lower) < SHORTEST_NAME:
        return []
    return [card for card in pool.values() if all(word in _searched(card) for word in words)]


def _unique_id(card: Gpu, facts: HostFacts) -> str:
    return next((node.unique_id for node in facts.kfd_nodes if node.number == card.kfd_node), "")


def _searched(card: Gpu) -> str:
    return f"{card_name(card)} {card.pci_device} {card.vendor}".lower()


def _same_address(text: str, address: str) -> bool:
    """Whether a text is a PCI address, with or without its domain; nvidia-smi writes eight digits of it."""
    if text.count(":") == 1:
        text = f"0000:{text}"
    domain, _, rest = text.partition(":")
    own, _, own_rest = address.partition(":")
    return rest == own_rest and domain.lstrip("0") == own.lstrip("0") and all(c in "0123456789abcdef" for c in domain)


def _numbered(cards: list[Gpu]) -> Iterable[tuple[int, Gpu]]:
    """The cards of one vendor with their numbers: the driver's own where all have one, else by position."""
    for own in ("nvidia_index", "hip_index"):
        numbers = [getattr(card, own) for card in cards]
        if all(number is not None for number in numbers) and len(set(numbers)) == len(cards):
            return zip(numbers, cards, strict=True)
    return enumerate(cards)


def _known_cards(known: dict[str, Gpu]) -> str:
    return "known: " + ", ".join(f"{selector} ({card_name(card)})" for selector, card in known.items())
