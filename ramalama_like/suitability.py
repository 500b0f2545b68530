"""What speaks against a backend: its own limits, the image's, and those of each card and driver."""

from __future__ import annotations

from ramalama_like.cards import (
    CPU,
    Group,
    Selection,
    card_name,
    cdi_name_of,
    cdi_names,
    counted_cards,
    counting_variables,
    expand_nodes,
    image_row,
    reads,
    takes_docker_gpus,
    through_cdi,
    uncounted_variables,
    virtual_nodes,
)
from ramalama_like.data import load_table
from ramalama_like.value import replace
from ramalama_like.visible import hiding_count, misread_note, select_by_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ramalama_like.cards import Case
    from ramalama_like.facts import Gpu


def usable_part(case: Case, backend: str, group: Group) -> tuple[Group, list[str]]:
    """What is left of a group with this backend, and what speaks against all of it."""
    selection = group.selection
    if selection is not None and group.is_hidden:
        return group, [selection.hidden]
    hiding = hiding_count(case, backend)
    if hiding and (selection is None or not selection.asked):
        hidden = replace(selection or Selection(()), cards=(), names=(), hidden=hiding)
        return Group(group.vendor, (), group.inside, hidden), [hiding]
    against = against_backend(case, backend)
    against += _against_choice(case, backend, group)
    objections = [(card, _against_card(case, backend, card)) for card in group.cards]
    good = tuple(card for card, found in objections if not found)
    if selection is not None and selection.asked:
        # All of them were asked for, so none is silently left out.
        against += [sentence for _, found in objections for sentence in found]
        return group, list(dict.fromkeys(against))
    if not good and objections:
        against += [sentence for _, found in objections for sentence in found]
    kept = good or group.cards
    left_out = 0
    if selection is None:
        largest, left_out = _largest(kept)
        # Only what can be passed alone is passed alone.
        kept, left_out = (largest, left_out) if can_narrow(case, backend, largest) else (kept, 0)
    elif len(kept) < len(group.cards) and selection.opaque != "":
        kept = group.cards  # whichever of them it is
    elif len(kept) < len(group.cards):
        unfit = next((card, found[0]) for card, found in objections if found)
        note = f"{card_name(unfit[0])} is not used, though {selection.said} names it: {unfit[1]}"
        selection = replace(selection, warnings=(*selection.warnings, note))
    return Group(group.vendor, kept, group.inside, selection, left_out), list(dict.fromkeys(against))


def can_narrow(case: Case, backend: str, cards: tuple[Gpu, ...]) -> bool:
    """Whether these cards can be passed without the vendor's others that the backend would use as well."""
    if case.native:
        return "native" in load_table("accelerators")["backends"][backend]
    bundled = [card for card in cards if through_cdi(case, card)]
    if not bundled or takes_docker_gpus(case, bundled[0].vendor):
        return True
    spelt, _ = cdi_names(case, bundled[0].vendor)
    return all(cdi_name_of(spelt, card) for card in bundled)


def _against_choice(case: Case, backend: str, group: Group) -> list[str]:
    """Choices of the user that this backend would not keep to."""
    broken = broken_choice(case, backend, group)
    if broken:
        return [broken]
    title = load_table("accelerators")["backends"][backend]["title"]
    rows = load_table("accelerators")["variables"]
    if group.selection is None or not group.selection.asked:
        several = sum(card.vendor == group.vendor for card in case.facts.gpus) > 1
        for name in uncounted_variables(case):
            if several and rows[name].get("vendor") == group.vendor and not reads(backend, name):
                return [f"{name}={case.variables[name]} chooses among the cards, and {title} does not read it"]
        own = group.selection.variables if group.selection is not None else ()
        note = misread_note(case, backend, group.cards, own)
        return [note] if note else []
    return []


def broken_choice(case: Case, backend: str, group: Group) -> str:
    """Why a choice of the user would be widened or lost with this backend, whatever is passed; empty where not."""
    table = load_table("accelerators")
    row = table["backends"][backend]
    title = row["title"]
    selection = group.selection
    if selection is not None and selection.opaque and not reads(backend, selection.opaque):
        return f"{selection.said} chooses cards, and {title} does not read it"
    counting = counting_variables(case, backend)
    if selection is not None and selection.asked:
        return ""  # passage.py narrows, or refuses
    if not counting and not (case.native and "native" not in row):
        return ""
    # The server sees every card, and only what it reads itself can narrow.
    for vendor in row["vendors"]:
        cards = tuple(card for card in case.facts.gpus if card.vendor == vendor)
        other = select_by_variables(case, vendor, cards, backend, strict=False) if cards else None
        if other is None or all(card in other.cards for card in cards):
            continue
        said = other.said or other.hidden
        if counting:
            return f"{said} and {counting[0]}={case.variables[counting[0]]} both choose cards, and cannot be combined"
        return f"{said} chooses cards, which {title} does not read without a container"
    for name in counting:
        for card in () if case.native else counted_cards(case, backend, name):
            found = _against_card(case, backend, card)
            if found:
                return f"{name}={case.variables[name]} counts {card_name(card)} too, which cannot be passed: {found[0]}"
    return ""


def _largest(cards: tuple[Gpu, ...]) -> tuple[tuple[Gpu, ...], int]:
    """The cards with most memory, several where they are equal, and how many are left out."""
    most = max((card.usable_bytes or 0 for card in cards), default=0)
    kept = tuple(card for card in cards if card.usable_bytes is None or card.usable_bytes == most)
    return kept, len(cards) - len(kept)


def against_backend(case: Case, backend: str) -> list[str]:
    """What speaks against a backend, whatever the cards are."""
    row = load_table("accelerators")["backends"][backend]
    against: list[str] = []
    if row.get("system", case.facts.os) != case.facts.os:
        against.append(f"{row['title']} exists only on {row['system']}")
    if "architectures" in row and case.facts.arch and case.facts.arch not in row["architectures"]:
        against.append(f"{row['title']} does not exist on {case.facts.arch}")
    if not case.native:
        if "no_container" in row:
            against.append(row["no_container"])
        against += against_image(case, backend)
    against += [
        f"{pattern.replace('#', '*')} does not exist"
        for pattern in row.get("needs", ())
        if not expand_nodes(case, pattern)
    ]
    return against


def against_image(case: Case, backend: str) -> list[str]:
    image = image_row(case, backend)
    if backend == CPU or "no_container" in load_table("accelerators")["backends"][backend]:
        return []  # there is always an image for the CPU (image.py), and nobody misses one of Metal
    if "missing" in image:
        return [image["missing"]]
    if case.facts.arch and case.facts.arch not in image["architectures"]:
        return [f"the {case.family} family has no {case.facts.arch} build of {image['name']}"]
    return []


def _against_card(case: Case, backend: str, card: Gpu) -> list[str]:
    """What speaks against a backend on one card, the most telling reason first."""
    row = load_table("accelerators")["backends"][backend]
    against: list[str] = []
    drivers = row.get("drivers", {}).get(card.vendor)
    vendor = load_table("accelerators")["vendors"].get(card.vendor, {})
    if "virtual_nodes" in vendor and not case.native:
        if case.engine.kind not in vendor["engines"]:
            return [vendor["engine_reason"].replace("{engine}", case.engine.kind)]
        if card.driver not in (drivers or ()):
            return [vendor["driver_reason"].replace("{driver}", card.driver or "unknown")]
    if drivers and card.driver and card.driver not in drivers:
        against.append(f"the card runs on {card.driver}, {row['title']} needs {' or '.join(drivers)}")
    elif drivers and not card.driver and not card.render_node and not through_cdi(case, card):
        against.append(f"no driver is loaded for the card, {row['title']} needs {' or '.join(drivers)}")
    if not case.native:
        against += _againstdotted(case, backend, card)
        if through_cdi(case, card):
            _, problem = cdi_names(case, card.vendor)
            if problem and not takes_docker_gpus(case, card.vendor):
                against.append(problem)
    reached = card.render_node or through_cdi(case, card) or virtual_nodes(case, backend, card)
    if row.get("render_node") and not reached and not against:
        against.append("the card has no render node in /dev/dri")
    return against


def _againstdotted(case: Case, backend: str, card: Gpu) -> list[str]:
    """What the image's build says against the card or its driver."""
    image = image_row(case, backend)
    gfx = _overridden_gfx(case) or card.gfx
    if "gfx" in image and gfx and gfx not in image["gfx"]:
        return [f"{gfx} is not in the {image['name']} image of the {case.family} family"]
    driver = case.facts.nvidia_driver
    oldest = image.get("driver_minimum")
    if oldest and driver and dotted(driver) < dotted(oldest):
        return [f"driver {driver} is older than {oldest}, the oldest for {image['contains']}"]
    return []


def unseen_note(case: Case) -> str:
    """Why a machine may have cards that no file shows; empty where it does not."""
    notes: Mapping[str, str] = load_table("accelerators")["unseen"]
    return "; ".join(note for fact, note in notes.items() if getattr(case.facts, fact))


def compatibility_note(case: Case, backend: str) -> str:
    """That a driver is older than the CUDA in the image, where it runs it nevertheless."""
    image, driver = image_row(case, backend), case.facts.nvidia_driver
    if case.native or not driver or "driver_full" not in image:
        return ""
    if not dotted(image["driver_minimum"]) <= dotted(driver) < dotted(image["driver_full"]):
        return ""
    return f"driver {driver} runs {image['contains']} by minor-version compatibility"


def _overridden_gfx(case: Case) -> str:
    """The instruction set that HSA_OVERRIDE_GFX_VERSION pretends: 11.0.0 is gfx1100."""
    parts = case.variables.get("HSA_OVERRIDE_GFX_VERSION", "").split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        return ""
    return f"gfx{int(parts[0])}{int(parts[1])}{int(parts[2]):x}"


def dotted(text: str) -> tuple[int, ...]:
    """Numbers of a dotted version; those before the first part that is none."""
    found: list[int] = []
    for part in text.split("."):
        if not (part.isascii() and part.isdigit()):
            break
        found.append(int(part[:9]))
    return tuple(found)
