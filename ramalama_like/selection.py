"""Which cards the user asked for, and the groups of cards that are left to choose from.

Variables such as CUDA_VISIBLE_DEVICES (visible.py) are kept and never widened; ``--gpu`` can only narrow them further.
"""

from __future__ import annotations

from ramalama_like.cards import AUTO, Group, Selection
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.gpu_selectors import pick_cards
from ramalama_like.value import replace
from ramalama_like.visible import check_counts, select_by_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.cards import Case


def find_groups(case: Case, wanted: str, *, strict: bool) -> list[Group]:
    """Groups in order of preference: discrete before integrated, then by vendor.

    ``strict``: a variable that names no known card is an error where its cards could be used at all.
    """
    table = load_table("accelerators")
    vendors = table["vendor_order"]
    if wanted != AUTO:
        vendors = [vendor for vendor in vendors if vendor in table["backends"][wanted]["vendors"]]
    if strict:
        check_counts(case, wanted)
    picked = pick_cards(case, wanted) if strict else None
    if picked is not None:
        return [_group_of(_common(case, picked, wanted))]
    found: list[Group] = []
    for vendor in vendors:
        cards = tuple(card for card in case.facts.gpus if card.vendor == vendor)
        selection = select_by_variables(case, vendor, cards, wanted, strict=strict) if cards else None
        if selection is not None:
            found.append(_group_of(selection, vendor))
            continue
        for inside in (False, True):
            alike = tuple(card for card in cards if bool(card.integrated) is inside)
            if alike:
                found.append(Group(vendor, alike, inside))
    return sorted(found, key=lambda group: group.inside)  # which keeps the order of vendors


def _group_of(selection: Selection, vendor: str = "") -> Group:
    # Named cards belong together, whatever they are.
    inside = bool(selection.cards) and all(card.integrated for card in selection.cards)
    return Group(vendor or selection.cards[0].vendor, selection.cards, inside, selection)


def _common(case: Case, picked: Selection, wanted: str) -> Selection:
    """What ``--gpu`` and the user's variables leave together. Raises ValueProblem where that is nothing."""
    vendor = picked.cards[0].vendor
    cards = tuple(card for card in case.facts.gpus if card.vendor == vendor)
    by_variables = select_by_variables(case, vendor, cards, wanted)
    if by_variables is None:
        return picked
    if by_variables.opaque:
        raise ValueProblem(f"{picked.asked} and {by_variables.said} both choose cards, and cannot be combined",
                           f"leave one of them out: unset {by_variables.opaque}")  # fmt: skip
    kept = tuple(card for card in by_variables.cards if card in picked.cards)
    if not kept:
        said = " and ".join(f"{name}={case.variables[name]}" for name, _ in by_variables.variables)
        raise ValueProblem(f"{picked.asked} and {said} have no card in common",
                           f"leave one of them out: unset {by_variables.variables[-1][0]}")  # fmt: skip
    return replace(by_variables, cards=kept, names=(), asked=picked.asked)
