"""``--gpu``: which cards are meant by a number, a UUID, a PCI address, a node or a part of a name.

Numbers are the vendor's own, as its tools print them: nvidia-smi's index, HIP's index, else the position in order of
PCI addresses; cards without such a number come behind those that have one. Where cards of several vendors have the
same number, the vendor has to be named: ``nvidia:0``.
"""

from __future__ import annotations

from ramalama_like.cards import AUTO, Selection, backend_title, card_kind, card_name
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
    backend = load_table("accelerators")["backends"].get(wanted, {})
    able = [*backend.get("vendors", ()), *([backend["only_card"]] if "only_card" in backend else ())]
    if wanted != AUTO and not able:
        raise ValueProblem(f"{asked}: {backend_title(wanted)} uses no card that could be chosen",
                           f"leave out {case.gpus.origin}, or the backend")  # fmt: skip
    every = card_selectors(case.facts)
    known = {selector: card for selector, card in every.items() if wanted == AUTO or card.vendor in able}
    if not known:
        what = "no card" if wanted == AUTO else f"no card for {backend_title(wanted)}"
        raise ValueProblem(f"{asked}: {what} was found on this machine",
                           "see what was found with: ramalama-like info")  # fmt: skip
    if not entries:
        raise ValueProblem(f"{case.gpus.origin}: the selector is empty", _known_cards(known))
    chosen: list[str] = []
    for entry in entries:
        found = _find(case, entry, known)
        if not found:
            others = [every[selector] for selector in _find(case, entry, every)]
            if others:
                raise ValueProblem(f"{case.gpus.origin} {entry}: {backend_title(wanted)} cannot use "
                                   f"{card_name(others[0])}", _known_cards(known))  # fmt: skip
            raise ValueProblem(f"{case.gpus.origin} {entry} names no card of this machine", _known_cards(known))
        chosen += found
    if len({known[selector].vendor for selector in chosen}) > 1:
        raise ValueProblem(f"{asked} names cards of several vendors, and one server computes with those of one",
                           "choose cards of one vendor, and start another server for the others")  # fmt: skip
    # The order on a command line means nothing: inside, cards keep their order.
    cards = tuple(card for selector, card in known.items() if selector in chosen)
    if any(card in cards for selector, card in known.items() if selector not in chosen):
        raise ValueProblem(f"{asked}: nothing that is known of these cards tells them apart",
                           f"leave {case.gpus.origin} out, or choose all of them")  # fmt: skip
    return Selection(cards, asked=asked)


def _find(case: Case, entry: str, known: dict[str, Gpu]) -> list[str]:
    """Selectors of the cards that one entry names. Raises ValueProblem where it may mean one of several."""
    vendor, colon, rest = entry.partition(":")
    vendors = load_table("accelerators")["vendors"]
    if colon and vendor.lower() in vendors:
        pool = {selector: card for selector, card in known.items() if card.vendor == vendor.lower()}
        text = rest
    else:
        pool, text = known, entry
    if text.lower() == ALL:
        first = next(iter(pool.values()), None)
        return [selector for selector, card in pool.items() if first is not None and card.vendor == first.vendor]
    found = _matching(text, pool, case.facts)
    if len(found) > 1 and text.isdecimal():
        raise ValueProblem(f"{case.gpus.origin} {entry} may mean cards of several vendors", _known_cards(known))
    if len(found) > 1 and _is_uuid(text):
        raise ValueProblem(f"{case.gpus.origin} {entry} is how several UUIDs begin", _known_cards(known))
    return found


def _is_uuid(text: str) -> bool:
    return len(text) >= SHORTEST_UUID and text.lower().startswith(("gpu-", "mig-"))


def _matching(text: str, pool: dict[str, Gpu], facts: HostFacts) -> list[str]:
    """Cards that a text names: by the surest sign first, by a part of the name last."""
    if text.isascii() and text.isdecimal():
        number = text.lstrip("0") or "0"
        return [selector for selector in pool if selector.rpartition(":")[2] == number]
    lower = text.lower()
    exact = [
        selector
        for selector, card in pool.items()
        if (card.pci_address and _same_address(lower, card.pci_address))
        or (text and text in (card.render_node, card.card_node, card.own_node))
        or (card.nvidia_minor is not None and text == f"/dev/nvidia{card.nvidia_minor}")
    ]
    if exact:
        return exact
    if _is_uuid(text):
        return [
            selector
            for selector, card in pool.items()
            if card.nvidia_uuid.lower().startswith(lower) or _unique_id(card, facts).lower().startswith(lower)
        ]
    words = lower.split()
    if sum(letter.isalnum() for letter in lower) < SHORTEST_NAME:
        return []
    return [selector for selector, card in pool.items() if all(word in _searched(card) for word in words)]


def _unique_id(card: Gpu, facts: HostFacts) -> str:
    return next((node.unique_id for node in facts.kfd_nodes if node.number == card.kfd_node), "")


def _searched(card: Gpu) -> str:
    # Not the place: a part of an address would name cards by chance.
    return f"{card_kind(card)} {card.pci_device} {card.vendor}".lower()


def _same_address(text: str, address: str) -> bool:
    """Whether a text is a PCI address, with or without its domain, of which nvidia-smi writes eight digits."""
    return _address_parts(text) == _address_parts(address) is not None


def _address_parts(text: str) -> tuple[int, ...] | None:
    """Domain, bus, device and function; None where the text is no address."""
    parts = text.replace(".", ":").split(":")
    if text.count(".") != 1 or "." not in text.rpartition(":")[2] or len(parts) not in (3, 4):
        return None
    if not all(0 < len(part) <= 8 and all(letter in "0123456789abcdef" for letter in part) for part in parts):
        return None
    numbers = tuple(int(part, 16) for part in parts)
    return numbers if len(numbers) == 4 else (0, *numbers)


def _numbered(cards: list[Gpu]) -> Iterable[tuple[int, Gpu]]:
    """The cards of one vendor with their numbers: the driver's own, then those of cards that it does not hold."""
    for own in ("nvidia_index", "hip_index"):
        numbers = [number for card in cards if (number := getattr(card, own)) is not None]
        if numbers and len(set(numbers)) == len(numbers):
            following = iter(range(max(numbers) + 1, max(numbers) + 1 + len(cards)))
            for card in cards:
                number = getattr(card, own)
                yield next(following) if number is None else number, card
            return
    yield from enumerate(cards)


def _known_cards(known: dict[str, Gpu]) -> str:
    return "known: " + ", ".join(f"{selector} ({card_name(card)})" for selector, card in known.items())
