"""What the user's variables say about cards: CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and the like.

Each is read as the vendor's own software reads it, and never means more cards than there: what stands behind an entry
that names no card does not count. A text that means nothing at all is an error.
"""

from __future__ import annotations

from ramalama_like.cards import (
    AUTO,
    Selection,
    card_name,
    cdi_names,
    counted_cards,
    counting_variables,
    uncounted_variables,
)
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.gpu_selectors import card_selectors
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ramalama_like.cards import Case
    from ramalama_like.facts import Gpu

HIDING = ("-1", "none", "void", "nodevfiles")  # what people write to hide every card
READABLE = ("nvidia", "hip", "position")  # numberings that are understood here
PCI_ORDER = "PCI_BUS_ID"


@value
class _Choice:
    """What one variable says."""

    variable: str
    plain: str  # the same in words that every reader of the variable understands
    cards: tuple[Gpu, ...] = ()  # in its order
    names: tuple[str, ...] = ()  # CDI names
    warnings: tuple[str, ...] = ()
    hides: bool = False  # every card
    opaque: bool = False


def select_by_variables(
    case: Case, vendor: str, cards: tuple[Gpu, ...], wanted: str, *, strict: bool = True
) -> Selection | None:
    """The cards of a vendor that all set variables leave; None where none chooses.

    ``wanted`` is the canonical backend, or ``auto``. Raises ValueProblem where a variable names no known card, or
    several have none in common; where not ``strict``, then no card is left.
    """
    try:
        choices = [found for name in _names(case, vendor, wanted) if (found := _choice(case, name, cards))]
        return _combined(choices, cards) if choices else None
    except ValueProblem as problem:
        if strict:
            raise
        return Selection((), hidden=problem.message)


def _names(case: Case, vendor: str, wanted: str) -> list[str]:
    """Set variables that speak of a vendor's cards, outer ones first."""
    rows = load_table("accelerators")["variables"]
    seen = {card.vendor for card in case.facts.gpus}
    found = []
    for name, row in rows.items():
        if row.get("numbering") not in READABLE or name not in case.variables or is_obeyed_already(case, name):
            continue
        # Where there is none of the vendor's cards, it can only speak of those whose backend takes it for its own.
        borrowed = row.get("vendor") not in seen and wanted in row.get("misread_by", ()) and not hides(case, name)
        if row.get("vendor") == vendor or (borrowed and not _has_own(case, wanted)):
            found.append(name)
    return sorted(found, key=lambda name: "counts_within" in rows[name])


def _has_own(case: Case, backend: str) -> bool:
    """Whether the variable is set that a backend prefers to another vendor's."""
    native = load_table("accelerators")["backends"][backend].get("native", {})
    return native.get("variable") in case.variables


def is_obeyed_already(case: Case, name: str) -> bool:
    """Whether what started the container in which this runs has obeyed a variable."""
    return bool(case.facts.in_container and load_table("accelerators")["variables"][name].get("by_runtime"))


def hides(case: Case, name: str) -> bool:
    """Whether a variable hides every card."""
    return case.variables[name].split(",")[0].strip().lower() in HIDING


def misread_note(case: Case, backend: str, cards: tuple[Gpu, ...], own: tuple[tuple[str, str], ...]) -> str:
    """That a backend would read a variable of another vendor as a choice among ``cards``; empty where it would not.

    ``own``: variables that have chosen the cards.
    """
    every = tuple(card for card in case.facts.gpus if cards and card.vendor == cards[0].vendor)
    for name, row in load_table("accelerators")["variables"].items():
        if name not in case.variables or backend not in row.get("misread_by", ()) or hides(case, name):
            continue
        if name in dict(own) or not every or any(card.vendor == row["vendor"] for card in case.facts.gpus):
            continue
        left = select_by_variables(case, every[0].vendor, every, backend, strict=False)
        if left is not None and not all(card in left.cards for card in cards):
            return f"{name}={case.variables[name]} may speak of these cards, in {backend} alone"
    return ""


def plain_counts(case: Case, backend: str) -> dict[str, str]:
    """Variables with numbers of all cards, without spaces and what is said twice: that would be used twice."""
    rows = load_table("accelerators")["variables"]
    return {
        name: ",".join(dict.fromkeys(entry.strip() for entry in case.variables[name].split(",")))
        for name in counting_variables(case, backend)
        if rows[name]["numbering"] == "vulkan"
    }


def hiding_count(case: Case, backend: str) -> str:
    """What hides every card from a backend, in a variable whose numbers are not understood here; empty where none."""
    return next((f"{name}={case.variables[name]} hides every card" for name in counting_variables(case, backend)
                 if hides(case, name)), "")  # fmt: skip


def _choice(case: Case, name: str, cards: tuple[Gpu, ...]) -> _Choice | None:
    """What one variable says; None where it leaves every card, or speaks of none of these."""
    row = load_table("accelerators")["variables"][name]
    text = case.variables[name]
    if row.get("by_runtime") and text.strip().lower() == "all":
        return None
    reader = {"nvidia": _choose_nvidia, "hip": _choose_amd, "position": _choose_by_position}[row["numbering"]]
    if cards and cards[0].vendor != row["vendor"]:  # borrowed: misread_by
        reader = _choose_amd
    elif row["numbering"] == "nvidia":
        cards = tuple(card for card in cards if card.nvidia_index is not None)
    if not cards:
        return None
    if hides(case, name):
        return _Choice(name, text, hides=True)
    return reader(case, name, row, cards)


def _combined(choices: list[_Choice], cards: tuple[Gpu, ...]) -> Selection:
    """What several variables leave together, in the order of the last that has one."""
    said = tuple((choice.variable, choice.plain) for choice in choices)
    warnings = tuple(dict.fromkeys(text for choice in choices for text in choice.warnings))
    hiding = [choice for choice in choices if choice.hides]
    if hiding:
        return Selection((), said, hidden=f"{hiding[0].variable}={hiding[0].plain} hides every card")
    opaque = [choice for choice in choices if choice.opaque]
    words = " and ".join(f"{name}={text}" for name, text in said)
    if opaque and len(choices) > 1:
        raise ValueProblem(f"{words} cannot be combined: which card {opaque[0].plain} is, is not known here",
                           f"leave one of them out: unset {opaque[0].variable}")  # fmt: skip
    if opaque:
        note = f"{words} is passed as it is: which of the cards it means is not known here"
        return Selection(cards, said, warnings=(*warnings, note), opaque=opaque[0].variable)
    last = choices[-1]
    kept = tuple(card for card in last.cards if all(card in choice.cards for choice in choices))
    names = tuple(name for name in last.names if all(name in choice.names for choice in choices))
    if not kept and not names:
        raise ValueProblem(f"{words} have no card in common", f"leave one of them out: unset {last.variable}")
    return Selection(kept, said, names, warnings)


def _entries(name: str, text: str, cards: tuple[Gpu, ...]) -> list[str]:
    """The entries before one that ends the list. A comma at the end is no entry."""
    entries = [entry.strip() for entry in text.split(",")]
    if len(entries) > 1 and not entries[-1]:
        entries.pop()
    if not all(entries):
        raise ValueProblem(f"{name}={text}: an entry is empty", _known(name, cards))
    return entries[: entries.index("-1")] if "-1" in entries else entries


def _unknown(name: str, text: str, cards: tuple[Gpu, ...]) -> ValueProblem:
    return ValueProblem(f"{name}={text} names none of the cards of this machine", _known(name, cards))


def _known(name: str, cards: tuple[Gpu, ...]) -> str:
    return f"Known cards: {', '.join(_numbered(number, card) for number, card in enumerate(cards))}. Or unset {name}."


def _numbered(position: int, card: Gpu) -> str:
    numbers = [number for number in (card.nvidia_index, card.hip_index, position) if number is not None]
    return f"{numbers[0]} ({card_name(card)})"


def _left_out(name: str, entries: list[str], used: int) -> list[str]:
    """A warning where an entry names no card: it and what follows does not count, as the vendor's software has it."""
    if used == len(entries):
        return []
    rest = ",".join(entries[used:])
    behind = f", and so {rest.partition(',')[2]} does not count" if used + 1 < len(entries) else ""
    return [f"{name}: {entries[used]} names no known card{behind}"]


# NVIDIA.


def _choose_nvidia(case: Case, name: str, row: Mapping[str, Any], cards: tuple[Gpu, ...]) -> _Choice | None:
    text = case.variables[name]
    spelt, _ = cdi_names(case, "nvidia")
    entries = _entries(name, text, cards)
    chosen: list[Gpu] = []
    names: list[str] = []
    by_index = False
    used = 0
    for entry in entries:
        found = [card for card in cards if str(card.nvidia_index) == entry]
        by_index = by_index or bool(found)
        unique = entry.upper()
        if not found and unique.startswith("GPU-"):
            found = [card for card in cards if card.nvidia_uuid.upper().startswith(unique)]
        listed = [other for other in spelt if unique.startswith(("GPU-", "MIG-")) and other.upper().startswith(unique)]
        if len(found) == 1:
            chosen += found
        elif not found and len(listed) == 1:
            names += listed
        elif not found and _may_exist(case, entry, cards):
            # Its meaning inside is that of the host as long as every card is there.
            if row.get("by_runtime"):
                raise ValueProblem(f"{name}={text}: which card {entry} is, is not known here",
                                   "name it in CUDA_VISIBLE_DEVICES, which the server reads itself")  # fmt: skip
            return _Choice(name, text, opaque=True)
        else:
            break
        used += 1
    chosen, names = list(dict.fromkeys(chosen)), list(dict.fromkeys(names))
    if not chosen and not names:
        raise _unknown(name, text, cards)
    warnings = _left_out(name, entries, used)
    if by_index and not row.get("by_runtime"):
        warnings += _order_warnings(case, name, cards)
    plain = ",".join(dict.fromkeys(entries[:used]))
    uuids = [card.nvidia_uuid for card in chosen]
    if by_index and not names and not all(entry.isdecimal() for entry in entries[:used]) and all(uuids):
        plain = ",".join(uuids)  # CUDA does not promise to take both in one list
    return _Choice(name, plain, tuple(chosen), tuple(names), tuple(warnings))


def _may_exist(case: Case, entry: str, cards: tuple[Gpu, ...]) -> bool:
    """Whether an entry may name a card, or a part of one, of which no file here tells."""
    if entry.upper().startswith("MIG-"):
        return True
    if entry.upper().startswith("GPU-"):
        return not all(card.nvidia_uuid for card in cards)  # a card that sleeps does not tell its UUID
    # Windows shows Linux no cards, and its specification may have one name for all of them.
    return case.facts.wsl and entry.isascii() and entry.isdigit() and not any(card.pci_address for card in cards)


def _order_warnings(case: Case, name: str, cards: tuple[Gpu, ...]) -> list[str]:
    """Raises ValueProblem where the user wants the order of speed, which no file tells."""
    order = case.variables.get("CUDA_DEVICE_ORDER", "")
    if len({card.name for card in cards}) < 2 or order == PCI_ORDER:
        return []
    if order:
        raise ValueProblem(f"{name}={case.variables[name]}: which card has which number with CUDA_DEVICE_ORDER={order} "
                           "is not known here", f"use UUIDs, or CUDA_DEVICE_ORDER={PCI_ORDER}")  # fmt: skip
    return [f"{name}: numbers count in the order of nvidia-smi, as CUDA_DEVICE_ORDER={PCI_ORDER} has it"]


# AMD.


def _choose_amd(case: Case, name: str, row: Mapping[str, Any], cards: tuple[Gpu, ...]) -> _Choice | None:
    text = case.variables[name]
    pool = sorted((card for card in cards if card.hip_index is not None), key=lambda card: card.hip_index or 0)
    if not pool:
        return None  # ROCm sees none of them
    numbers = {str(card.hip_index): card for card in pool}
    rows = load_table("accelerators")["variables"]
    outer = (row if row["vendor"] == cards[0].vendor else rows["HIP_VISIBLE_DEVICES"]).get("counts_within", "")
    if outer in case.variables and not hides(case, outer) and not rows[outer].get("counts_within"):
        within = _choice(case, outer, cards)
        left = within.cards if within is not None else tuple(pool)
        numbers = {str(number): card for number, card in enumerate(left)}
    unique = {node.unique_id.upper(): node.hip_index for node in case.facts.kfd_nodes if node.unique_id}
    entries = _entries(name, text, cards)
    chosen: dict[str, Gpu] = {}
    used = 0
    for entry in entries:
        number = entry
        if entry.upper() in unique:
            number = next((key for key, card in numbers.items() if card.hip_index == unique[entry.upper()]), "")
        if number not in numbers:
            break
        # Only ROCr of every age takes unique ids.
        chosen[number if outer else entry] = numbers[number]
        used += 1
    if not chosen:
        raise _unknown(name, text, tuple(pool))
    return _Choice(name, ",".join(chosen), tuple(dict.fromkeys(chosen.values())),
                   warnings=tuple(_left_out(name, entries, used)))  # fmt: skip


# Ascend, Moore Threads.


def _choose_by_position(case: Case, name: str, _: Mapping[str, Any], cards: tuple[Gpu, ...]) -> _Choice | None:
    text = case.variables[name]
    numbers = {selector.rpartition(":")[2]: card for selector, card in card_selectors(case.facts).items()
               if card.vendor == cards[0].vendor}  # fmt: skip
    entries = _entries(name, text, cards)
    chosen: dict[str, Gpu] = {}
    used = 0
    for entry in entries:
        first, dash, last = entry.partition("-")
        listed = list(numbers)
        if first not in numbers or (dash and (last not in numbers or listed.index(first) > listed.index(last))):
            break
        for number in listed[listed.index(first) : listed.index(last if dash else first) + 1]:
            chosen[number] = numbers[number]
        used += 1
    if not chosen:
        raise _unknown(name, text, cards)
    return _Choice(name, ",".join(chosen), tuple(chosen.values()), warnings=tuple(_left_out(name, entries, used)))


# Variables whose numbers count in an order that no file tells.


def check_counts(case: Case, wanted: str) -> None:
    """Raise ValueProblem for a number that no card can have, in a variable that the wanted backend may read."""
    for name in uncounted_variables(case):
        row = load_table("accelerators")["variables"][name]
        if row["numbering"] != "vulkan" or wanted not in (AUTO, *row.get("read_by", ())):
            continue
        backend = next(iter(row.get("read_by", ())), "")
        count = len(counted_cards(case, backend, name)) if backend else 0
        if not count or hides(case, name):
            continue
        text = case.variables[name]
        entries = [entry.strip() for entry in text.split(",")]
        good = [entry for entry in entries if entry.isascii() and entry.isdigit() and int(entry[:9]) < count]
        if len(good) == len(entries):
            continue
        bad = next(entry for entry in entries if entry not in good)
        what = "names none of the cards of this machine" if not good else f"{bad or 'an empty entry'} names no card"
        raise ValueProblem(
            f"{name}={text}{': ' if good else ' '}{what}",
            f"There {'is 1 card' if count == 1 else f'are {count} cards'}, counted from 0. Or unset {name}.",
        )
