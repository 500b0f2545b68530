"""Which cards the user asked for, and the groups of cards that are left to choose from.

Variables such as CUDA_VISIBLE_DEVICES are kept and never widened; ``--gpu`` can only narrow them further.
"""

from __future__ import annotations

from ramalama_like.cards import AUTO, Group, Selection, card_name, cdi_names
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.gpu_selectors import pick_cards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.cards import Case
    from ramalama_like.facts import Gpu


def find_groups(case: Case, wanted: str, *, strict: bool) -> list[Group]:
    """Groups in order of preference: discrete before integrated, then by vendor.

    ``strict``: a variable that names no known card is an error where its cards could be used at all.
    """
    table = load_table("accelerators")
    vendors = table["vendor_order"]
    if wanted != AUTO:
        vendors = [vendor for vendor in vendors if vendor in table["backends"][wanted]["vendors"]]
    if strict and wanted in (AUTO, "vulkan"):
        _check_vulkan_numbers(case)
    picked = pick_cards(case, wanted) if strict else None
    if picked is not None:
        return [_group_of(_common(case, picked))]
    found: list[Group] = []
    for vendor in vendors:
        cards = tuple(card for card in case.facts.gpus if card.vendor == vendor)
        selection = _select(case, vendor, cards, strict=strict) if cards else None
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


def _common(case: Case, picked: Selection) -> Selection:
    """What ``--gpu`` and the user's variables leave together. Raises ValueProblem where that is nothing."""
    vendor = picked.cards[0].vendor
    cards = tuple(card for card in case.facts.gpus if card.vendor == vendor)
    by_variable = _select(case, vendor, cards, strict=True)
    if by_variable is None:
        return picked
    kept = tuple(card for card in by_variable.cards if card in picked.cards)
    if not kept:
        text = case.variables[by_variable.variable]
        raise ValueProblem(f"{picked.asked} and {by_variable.variable}={text} have no card in common",
                           f"leave one of them out: unset {by_variable.variable}")  # fmt: skip
    return Selection(by_variable.variable, kept, warnings=by_variable.warnings, asked=picked.asked)


def _select(case: Case, vendor: str, cards: tuple[Gpu, ...], *, strict: bool) -> Selection | None:
    """What the first set variable with numbers of this vendor's cards selects; None where none is set."""
    for name, row in load_table("accelerators")["variables"].items():
        text = case.variables.get(name, "")
        if not text or row.get("vendor") != vendor or row.get("numbering") not in ("nvidia", "hip"):
            continue
        if name == "HIP_VISIBLE_DEVICES" and case.variables.get("ROCR_VISIBLE_DEVICES"):
            continue  # HIP counts among the cards that ROCr leaves
        found = _select_nvidia(case, name, text, cards) if row["numbering"] == "nvidia" else _select_amd(
            case, name, text, cards
        )  # fmt: skip
        if found is None:
            continue
        if not found.cards and not found.names and strict and not _hides_all(text):
            known = ", ".join(_numbered(card) for card in cards)
            raise ValueProblem(
                f"{name}={text} names none of the cards of this machine", f"Known cards: {known}. Or unset {name}."
            )
        return found
    return None


def _hides_all(text: str) -> bool:
    return text.strip().lower() in ("-1", "none", "void", "nodevfiles")


def _select_nvidia(case: Case, variable: str, text: str, cards: tuple[Gpu, ...]) -> Selection | None:
    cards = tuple(card for card in cards if card.nvidia_index is not None)
    if not cards:
        return None
    spelt, _ = cdi_names(case, "nvidia")
    chosen: list[Gpu] = []
    names: list[str] = []
    unknown: list[str] = []
    by_index = False
    for entry in _entries(text):
        if entry == "-1":
            break  # CUDA looks no further
        found = [card for card in cards if str(card.nvidia_index) == entry]
        by_index = by_index or bool(found)
        if not found and entry.upper().startswith("GPU-"):
            found = [card for card in cards if card.nvidia_uuid.upper().startswith(entry.upper())]
            listed = [name for name in spelt if name.upper().startswith(entry.upper())]
            if not found and len(listed) == 1:
                names += listed
                continue
            if not found and not all(card.nvidia_uuid for card in cards):
                return None  # a card that sleeps does not tell its UUID; the UUID means the same inside
        if entry.upper().startswith("MIG-"):
            return None  # a part of a card, which nothing here knows; its UUID means the same inside
        if len(found) == 1:
            chosen += found
        else:
            unknown.append(entry)
    warnings = [f"{variable}: {entry} names no known card" for entry in unknown] if chosen or names else []
    if by_index and len({card.name for card in cards}) > 1:
        warnings.append(f"{variable}: numbers count in the order of nvidia-smi, whatever CUDA_DEVICE_ORDER is")
    return Selection(variable, tuple(dict.fromkeys(chosen)), tuple(dict.fromkeys(names)), tuple(warnings))


def _select_amd(case: Case, variable: str, text: str, cards: tuple[Gpu, ...]) -> Selection | None:
    cards = tuple(card for card in cards if card.hip_index is not None)
    if not cards:
        return None
    unique = {node.hip_index: node.unique_id for node in case.facts.kfd_nodes if node.unique_id}
    chosen: list[Gpu] = []
    unknown: list[str] = []
    for entry in _entries(text):
        if entry == "-1":
            break
        found = [
            card
            for card in cards
            if str(card.hip_index) == entry or unique.get(card.hip_index or 0, "").upper() == entry.upper()
        ]
        chosen += found
        if not found:
            unknown.append(entry)
    warnings = [f"{variable}: {entry} names no known card" for entry in unknown] if chosen else []
    return Selection(variable, tuple(dict.fromkeys(chosen)), warnings=tuple(warnings))


def _check_vulkan_numbers(case: Case) -> None:
    """Vulkan's own order is not known here, only how many cards there are at most."""
    for name, row in load_table("accelerators")["variables"].items():
        text = case.variables.get(name, "")
        count = len(case.facts.gpus)
        if not text or row.get("numbering") != "vulkan" or not count:
            continue
        if not any(entry.isdigit() and int(entry[:9]) < count for entry in _entries(text)):
            raise ValueProblem(
                f"{name}={text} names none of the cards of this machine",
                f"There {'is 1 card' if count == 1 else f'are {count} cards'}, counted from 0. Or unset {name}.",
            )


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def _numbered(card: Gpu) -> str:
    number = card.nvidia_index if card.nvidia_index is not None else card.hip_index
    return f"{'?' if number is None else number} ({card_name(card)})"
