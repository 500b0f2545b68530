"""How the chosen cards reach the container: device nodes, CDI names, docker's ``--gpus``, variables and groups.

Cards are narrowed by what is passed, never by an index variable: inside, numbers start at 0 again.
"""

from __future__ import annotations

from ramalama_like.cards import (
    backend_title,
    card_name,
    cdi_name_of,
    cdi_names,
    cdi_repair,
    counted_cards,
    counting_variables,
    expand_nodes,
    reads,
    takes_docker_gpus,
    through_cdi,
    usable_npus,
    virtual_nodes,
)
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.gpu_selectors import card_numbers
from ramalama_like.suitability import broken_choice
from ramalama_like.value import value
from ramalama_like.visible import hides, is_obeyed_already, plain_counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ramalama_like.cards import Case, Group, Selection
    from ramalama_like.facts import Gpu


@value
class Passage:
    """How the chosen cards reach the container."""

    device_nodes: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    docker_gpus: str = ""
    oci_runtime: str = ""
    env: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def choose_passage(case: Case, backend: str, group: Group | None) -> Passage:
    """How the cards of a group are passed for a backend.

    Raises ValueProblem where the user chose cards, by ``--gpu`` or variables, that cannot be passed alone.
    """
    row = load_table("accelerators")["backends"][backend]
    selection = group.selection if group is not None else None
    if selection is not None and selection.asked:
        _refuse_unknown_numbers(case, backend, selection)
    if group is not None and not group.is_hidden and (broken := broken_choice(case, backend, group)):
        raise ValueProblem(broken, "unset what should not choose, or name the cards with --gpu")
    warnings = selection.warnings if selection is not None else ()
    only_npu = group is None and bool(usable_npus(case, backend))
    env = {
        **row.get("defaults", {}),
        **(row["npu_defaults"] if only_npu else {}),
        **_own_variables(case, backend, group),
    }
    if group is not None and group.is_hidden:
        return Passage(env=tuple(_hide(case, backend, group, env).items()), warnings=warnings)
    env.update(plain_counts(case, backend))
    if case.native:
        env.update(_native_variables(case, backend, group))
        _keep_order(case, backend, group, env)
        return Passage(env=tuple(env.items()), warnings=warnings)
    keeps = _keeps_numbers(backend, group)
    cards = _cards_to_pass(case, backend, group)
    bundled = [card for card in cards if through_cdi(case, card)]
    strangers = {npu.node for npu in case.facts.npus if npu.vendor not in row["vendors"]}
    narrowed = None if keeps else selection
    nodes = [node for pattern in (*row.get("needs", ()), *row.get("passes", ()))
             for node in _nodes_of(case, row, pattern, narrowed) if node not in strangers]  # fmt: skip
    oci_runtime = ""
    if row.get("docker_runtime") and case.engine.kind == "docker" and nodes:
        oci_runtime, nodes = row["docker_runtime"], []
        if narrowed is not None:
            env[row["docker_runtime_variable"]] = ",".join(map(str, card_numbers(case.facts, narrowed.cards)))
    if row.get("render_node"):
        nodes += _render_nodes(case, backend, group, cards, bundled)
    cdi_devices: tuple[str, ...] = ()
    docker_gpus = ""
    if keeps and selection is not None:
        env.update(selection.variables)
    elif selection is not None and not selection.opaque:
        _renumber(backend, env, selection, group)
    if group is not None and (bundled or (selection is not None and selection.names)):
        cdi_devices, docker_gpus = _pass_whole_driver(case, backend, group, bundled, env)
    if selection is not None and selection.asked and group is not None:
        _refuse_unreachable(case, backend, group, reached=bool(nodes or cdi_devices or docker_gpus or oci_runtime))
    _keep_order(case, backend, group, env)
    return Passage(tuple(dict.fromkeys(nodes)), cdi_devices, docker_gpus, oci_runtime, tuple(env.items()), warnings)


def _render_nodes(
    case: Case, backend: str, group: Group | None, cards: tuple[Gpu, ...], bundled: list[Gpu]
) -> list[str]:
    """The nodes of the cards that need no driver along."""
    selection = group.selection if group is not None else None
    virtual = [node for card in cards for node in virtual_nodes(case, backend, card)]
    bare = [card for card in cards if not card.render_node and not virtual and card not in bundled]
    if bare and selection is not None and selection.asked:
        raise ValueProblem(f"{selection.asked}: {card_name(bare[0])} has no render node that could be passed",
                           "choose another card: ramalama-like info lists them")  # fmt: skip
    nodes = [card.render_node for card in cards if card.render_node and card not in bundled]
    return [*nodes, *virtual, *(_unclaimed_render_nodes(case) if group is None else ())]


def _refuse_unreachable(case: Case, backend: str, group: Group, *, reached: bool) -> None:
    """What ``--gpu`` asks for computes, or it is an error: an explicit backend may be one for no such card."""
    row = load_table("accelerators")["backends"][backend]
    asked = group.selection.asked if group.selection is not None else ""
    for card in group.cards:
        drivers = row.get("drivers", {}).get(card.vendor, ())
        if drivers and card.driver and card.driver not in drivers:
            raise ValueProblem(f"{asked}: {card_name(card)} runs on {card.driver}, {row['title']} needs "
                               f"{' or '.join(drivers)}", "choose another card or backend")  # fmt: skip
    if not case.native and ("no_container" in row or not reached):
        raise ValueProblem(f"{asked}: {row.get('no_container') or 'nothing of the card can be passed to a container'}",
                           "choose another backend or engine: see ramalama-like explain")  # fmt: skip


def _own_variables(case: Case, backend: str, group: Group | None) -> dict[str, str]:
    """The user's variables as they are, without those that another would take for its own."""
    rows = load_table("accelerators")["variables"]
    seen = {card.vendor for card in case.facts.gpus}
    misreads = bool(seen & set(load_table("accelerators")["backends"][backend]["vendors"]))
    chosen = {name for name, _ in group.selection.variables} if group is not None and group.selection else set()
    kept = {}
    for name, text in case.variables.items():
        row = rows[name]
        misread = misreads and backend in row.get("misread_by", ()) and name not in chosen
        # What starts containers would obey it besides the devices that it is given.
        doubled = row.get("by_runtime") and row["numbering"] == "nvidia" and row["vendor"] in seen
        if not misread and not doubled and not is_obeyed_already(case, name):
            kept[name] = text
    return kept


def _hide(case: Case, backend: str, group: Group, env: dict[str, str]) -> dict[str, str]:
    """Nothing is passed; without a container a variable of the backend has to say it."""
    selection = group.selection
    hiding = [name for name in counting_variables(case, backend) if hides(case, name)]
    if not case.native:
        for name in hiding:
            del env[name]  # the server takes -1 for a card
        return env
    native = load_table("accelerators")["backends"][backend].get("native", {})
    if selection is None or hiding or any(reads(backend, name) for name, _ in selection.variables):
        return env
    if not native:
        raise ValueProblem(f"{selection.hidden}, which {backend_title(backend)} does not read without a container",
                           "choose another backend, or unset it")  # fmt: skip
    return {**env, native["variable"]: "-1"}


def _keeps_numbers(backend: str, group: Group | None) -> bool:
    """Whether the variables that chose are passed as they are, with all of the vendor's cards."""
    rows = load_table("accelerators")["variables"]
    if group is None or group.selection is None or group.selection.asked or not group.selection.variables:
        return False
    return group.cards == group.selection.cards and all(
        (reads(backend, name) and rows[name]["numbering"] != "nvidia") or backend in rows[name].get("misread_by", ())
        for name, _ in group.selection.variables
    )


def _pass_whole_driver(
    case: Case, backend: str, group: Group, bundled: list[Gpu], env: dict[str, str]
) -> tuple[tuple[str, ...], str]:
    """Cards that need their user-space driver along: CDI names, or docker's ``--gpus``. ``env`` is brought in line."""
    table = load_table("accelerators")
    row, selection = table["backends"][backend], group.selection
    vendor = bundled[0].vendor if bundled else group.vendor
    chosen = selection if vendor == group.vendor else None
    spelt, problem = cdi_names(case, vendor)
    names = () if problem else _cdi_choice(case, spelt, vendor, bundled, chosen)
    docker_gpus = ""
    if not names and takes_docker_gpus(case, vendor):
        docker_gpus = _docker_gpus_value(case, vendor, bundled, chosen)
        for name, text in row.get("docker_defaults", {}).items():
            env.setdefault(name, text)
    if not names and not docker_gpus and not problem:
        # The spec cannot narrow, so all cards go in, and what the server reads has to.
        names = ("all",) if "all" in spelt else spelt
        _narrow_inside(case, backend, group, bundled, env)
    if not names and not docker_gpus and selection is not None and selection.asked:
        raise ValueProblem(f"{selection.asked}: {problem.partition('; ')[0]}", cdi_repair(case, vendor))
    kind = table["vendors"][vendor]["cdi_kind"]
    return tuple(f"{kind}={name}" for name in names), docker_gpus


def _narrow_inside(case: Case, backend: str, group: Group, bundled: list[Gpu], env: dict[str, str]) -> None:
    """Tell the server by its own variable which cards to use, where all are passed."""
    selection, native = group.selection, load_table("accelerators")["backends"][backend].get("native", {})
    if selection is None or selection.opaque:
        return
    if selection.asked or not native:
        unnamed = next((card for card in bundled if not cdi_name_of(cdi_names(case, group.vendor)[0], card)), None)
        what = f"the CDI spec has no name for {card_name(unnamed)} alone" if unnamed else "the CDI spec cannot narrow"
        repair = load_table("accelerators")["vendors"][group.vendor]["cdi_repair"]
        raise ValueProblem(f"{selection.said}: {what}", f"write it anew: {repair}")
    own = [(name, text) for name, text in selection.variables if reads(backend, name)]
    if len(own) == len(selection.variables) and group.cards == selection.cards:
        env.update(own)
    else:
        env.update(_narrowing_variables(case, backend, group.cards, native["variable"]))


def _renumber(backend: str, env: dict[str, str], selection: Selection, group: Group | None) -> None:
    """Only the selected cards are inside, counted from 0: numbers of the host go, the user's order stays."""
    rows = load_table("accelerators")["variables"]
    numbers = [name for name, _ in selection.variables if not rows[name].get("by_runtime")]
    for name in numbers:
        if reads(backend, name) or rows[name]["numbering"] == "nvidia":
            env.pop(name, None)
    cards = [card for card in selection.cards if group is None or card in group.cards]
    inside = sorted(cards, key=_order)
    if numbers and not selection.names and inside != cards:
        own = [name for name in numbers if reads(backend, name)] or numbers[-1:]
        if "read_by" in rows[own[-1]]:
            env[own[-1]] = ",".join(str(inside.index(card)) for card in cards)


def _keep_order(case: Case, backend: str, group: Group | None, env: dict[str, str]) -> None:
    """Numbers of unlike cards mean what they are said to mean only in the order in which they were counted."""
    native = load_table("accelerators")["backends"][backend].get("native", {})
    if group is None or "order" not in native or len({card.name for card in case.facts.gpus
                                                      if card.vendor == group.vendor}) < 2:  # fmt: skip
        return
    if any(part.strip().isdecimal() for part in env.get(native["variable"], "").split(",")):
        for name, text in native["order"].items():
            env.setdefault(name, text)


def _refuse_unknown_numbers(case: Case, backend: str, selection: Selection) -> None:
    """Beside ``--gpu``: variables whose numbers nobody here can translate into those of the inside."""
    read = [name for name, _ in selection.variables if reads(backend, name)]
    opaque = counting_variables(case, backend)
    # The plain words for a card are the default; what is no card would not use the one that was asked for.
    device = case.variables.get("GGML_OPENVINO_DEVICE", "") if backend == "openvino" else ""
    opaque += ["GGML_OPENVINO_DEVICE"] if device and device.strip().upper() != "GPU" else []
    for name in (*opaque, *(read[1:] and [read[-1]])):
        raise ValueProblem(f"{selection.asked} and {name} both choose cards, and cannot be combined",
                           f"leave one of them out: unset {name}")  # fmt: skip


def _native_variables(case: Case, backend: str, group: Group | None) -> dict[str, str]:
    """Without a container only the backend's own variable can narrow to what the user chose."""
    table = load_table("accelerators")
    row = table["backends"][backend].get("native", {})
    selection = group.selection if group is not None else None
    if group is None or selection is None:
        every = tuple(card for card in case.facts.gpus if group is not None and card.vendor == group.vendor)
        chosen = {name for name in case.variables if reads(backend, name)}
        if group is None or not row or chosen or all(card in group.cards for card in every):
            return _shield(case, backend, row)
        return _narrowing_variables(case, backend, tuple(sorted(group.cards, key=_order)), row["variable"])
    if selection.asked:
        _refuse_unreachable(case, backend, group, reached=True)
    if selection.opaque:
        return {}
    read = [name for name, _ in selection.variables if reads(backend, name)]
    if not row:
        vendors = [*table["backends"][backend]["vendors"], table["backends"][backend].get("only_card")]
        if {card for card in case.facts.gpus if card.vendor in vendors} <= set(group.cards):
            return {}
        raise ValueProblem(f"{selection.said}: {backend_title(backend)} numbers cards by itself, so they cannot be "
                           "chosen without a container",
                           "look at llama-server --list-devices, and use --runtime-args '--device NAME'")  # fmt: skip
    as_it_is = not selection.asked and group.cards == selection.cards and len(read) == len(selection.variables)
    if as_it_is or (not selection.asked and _keeps_numbers(backend, group)):
        own = dict(selection.variables)
        return {**({} if set(own) - set(read) else _shield(case, backend, row, len(selection.cards))), **own}
    ordered = tuple(card for card in selection.cards if card in group.cards)
    if selection.asked and not selection.variables:
        ordered = tuple(sorted(ordered, key=_order))
    return _narrowing_variables(case, backend, ordered, read[0] if read else row["variable"])


def _shield(case: Case, backend: str, native: Mapping[str, Any], count: int = 0) -> dict[str, str]:
    """Without a container the server inherits what it would misread: its own variable comes before that.

    ``count``: how many cards another variable leaves; 0 where none does.
    """
    rows = load_table("accelerators")["variables"]
    misread = any(backend in rows[name].get("misread_by", ()) for name in case.variables)
    numbers = sorted(card.hip_index for card in case.facts.gpus if card.hip_index is not None)
    if not misread or not native or native["variable"] in case.variables or not numbers:
        return {}
    return {native["variable"]: ",".join(map(str, range(count) if count else numbers))}


def _narrowing_variables(case: Case, backend: str, cards: tuple[Gpu, ...], variable: str) -> dict[str, str]:
    """The backend's own variable for just these cards, in this order, counted as on the host."""
    row = load_table("accelerators")["backends"][backend]["native"]
    uuids = [card.nvidia_uuid for card in cards]
    if row.get("by_uuid") and all(uuids):
        return {variable: ",".join(uuids)}
    numbers = card_numbers(case.facts, cards)
    by_order = [number for card in cards for number in card_numbers(case.facts, (card,))]
    return {**row.get("order", {}), variable: ",".join(map(str, by_order or numbers))}


def _nodes_of(case: Case, row: Mapping[str, Any], pattern: str, selection: Selection | None) -> list[str]:
    """The nodes of a pattern: all that exist, or only those of the cards that the user chose."""
    nodes = expand_nodes(case, pattern)
    if selection is None or row.get("per_card") != pattern:
        return nodes
    if all(card.own_node in nodes for card in selection.cards):
        return [card.own_node for card in selection.cards]
    alike = [card for card in case.facts.gpus if card.vendor == selection.cards[0].vendor]
    if len(nodes) != len(alike):
        raise ValueProblem(f"{selection.said}: which of the nodes {pattern.replace('#', '*')} belongs to which card "
                           f"is unknown: there are {len(nodes)} for {len(alike)} cards",
                           "choose none, or pass nodes with --device")  # fmt: skip
    return [nodes[number] for number in sorted(card_numbers(case.facts, selection.cards))]


def _cards_to_pass(case: Case, backend: str, group: Group | None) -> tuple[Gpu, ...]:
    """The group's cards, or all whose numbers a variable of the user counts, which must then keep their meaning."""
    if group is None:
        return ()
    if group.selection is not None and group.selection.asked:
        return tuple(sorted(group.cards, key=_order))
    if _keeps_numbers(backend, group):
        return tuple(card for card in case.facts.gpus if card.vendor == group.vendor)
    for name in counting_variables(case, backend):
        counted = counted_cards(case, backend, name)
        if all(card in counted for card in group.cards):
            return counted
    return group.cards


def _cdi_choice(
    case: Case, spelt: tuple[str, ...], vendor: str, cards: list[Gpu], selection: Selection | None
) -> tuple[str, ...]:
    """Names of just these cards; none where the spec has none for one of them alone."""
    everything = all(card in cards for card in case.facts.gpus if card.vendor == vendor and through_cdi(case, card))
    if everything and "all" in spelt and (selection is None or selection.opaque):
        return ("all",)
    names = [*(selection.names if selection is not None else ()),
             *(cdi_name_of(spelt, card) for card in sorted(cards, key=_order))]  # fmt: skip
    if names and all(names):
        return tuple(names)
    if everything:
        return ("all",) if "all" in spelt else spelt
    return ()


def _order(card: Gpu) -> int:
    """Position among cards that are passed together: inside, they are numbered in the order of the host's numbers."""
    return card.nvidia_index or card.hip_index or 0


def _docker_gpus_value(case: Case, vendor: str, cards: list[Gpu], selection: Selection | None) -> str:
    everything = all(card in cards for card in case.facts.gpus if card.vendor == vendor and through_cdi(case, card))
    if everything and (selection is None or selection.opaque):
        return "all"
    # A number, or the UUID of a card that has none; docker understands both.
    listed = [card.nvidia_uuid if card.nvidia_index is None else str(card.nvidia_index)
              for card in sorted(cards, key=_order)]  # fmt: skip
    if not all(listed):
        raise ValueProblem("docker can be told of no NVIDIA card whose number and UUID are unknown",
                           "load the card's driver, or choose another card")  # fmt: skip
    return f"device={','.join([*listed, *(selection.names if selection is not None else ())])}"


def _unclaimed_render_nodes(case: Case) -> list[str]:
    """Render nodes that belong to no card of a known vendor: all that an explicit backend can be given."""
    vendors = load_table("accelerators")["vendors"]
    claimed = {card.render_node for card in case.facts.gpus if card.vendor in vendors}
    return [node for node in expand_nodes(case, "/dev/dri/renderD#") if node not in claimed]
