"""What speaks against a backend: its own limits, the image's, and those of each card and driver."""

from __future__ import annotations

from ramalama_like.cards import (
    CPU,
    Group,
    cdi_names,
    expand_nodes,
    image_row,
    takes_docker_gpus,
    through_cdi,
    virtual_nodes,
)
from ramalama_like.data import load_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ramalama_like.cards import Case
    from ramalama_like.facts import Gpu


def usable_part(case: Case, backend: str, group: Group) -> tuple[Group, list[str]]:
    """What is left of a group with this backend, and what speaks against all of it."""
    if group.selection is not None and group.is_hidden:
        return group, [f"{group.selection.variable}={case.variables[group.selection.variable]} hides every card"]
    against = against_backend(case, backend)
    objections = [(card, _against_card(case, backend, card)) for card in group.cards]
    good = tuple(card for card, found in objections if not found)
    if group.selection is not None and group.selection.asked:
        # All of them were asked for, so none is silently left out.
        against += [sentence for _, found in objections for sentence in found]
        return group, list(dict.fromkeys(against))
    if not good and objections:
        against += [sentence for _, found in objections for sentence in found]
    kept = good or group.cards
    left_out = 0
    if group.selection is None:
        kept, left_out = _largest(kept)
    return Group(group.vendor, kept, group.inside, group.selection, left_out), list(dict.fromkeys(against))


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
