"""How the chosen cards reach the container: device nodes, CDI names, docker's ``--gpus``, variables and groups.

Cards are narrowed by what is passed, never by an index variable: inside, numbers start at 0 again.
"""

from __future__ import annotations

from ramalama_like.cards import (
    backend_title,
    card_name,
    cdi_name_of,
    cdi_names,
    expand_nodes,
    takes_docker_gpus,
    through_cdi,
    usable_npus,
    virtual_nodes,
)
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.gpu_selectors import card_numbers
from ramalama_like.value import value

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

    Raises ValueProblem where ``--gpu`` asks for cards that cannot be passed alone.
    """
    row = load_table("accelerators")["backends"][backend]
    selection = group.selection if group is not None else None
    if selection is not None and selection.asked:
        _refuse_unknown_numbers(case, backend, selection)
    warnings = selection.warnings if selection is not None else ()
    only_npu = group is None and bool(usable_npus(case, backend))
    env = {**row.get("defaults", {}), **(row["npu_defaults"] if only_npu else {}), **case.variables}
    if case.native:
        env.update(_native_variables(case, backend, selection))
        return Passage(env=tuple(env.items()), warnings=warnings)
    cards = _cards_to_pass(case, backend, group)
    bundled = [card for card in cards if through_cdi(case, card)]
    strangers = {npu.node for npu in case.facts.npus if npu.vendor not in row["vendors"]}
    nodes = [node for pattern in (*row.get("needs", ()), *row.get("passes", ()))
             for node in _nodes_of(case, row, pattern, selection) if node not in strangers]  # fmt: skip
    oci_runtime = ""
    if row.get("docker_runtime") and case.engine.kind == "docker" and nodes:
        oci_runtime, nodes = row["docker_runtime"], []
        if selection is not None and selection.asked:
            env[row["docker_runtime_variable"]] = ",".join(map(str, card_numbers(case.facts, selection.cards)))
    if row.get("render_node"):
        virtual = [node for card in cards for node in virtual_nodes(case, backend, card)]
        bare = [card for card in cards if not card.render_node and not virtual and card not in bundled]
        if bare and selection is not None and selection.asked:
            raise ValueProblem(f"{selection.asked}: {card_name(bare[0])} has no render node that could be passed",
                               "choose another card: ramalama-like info lists them")  # fmt: skip
        nodes += [card.render_node for card in cards if card.render_node and card not in bundled]
        nodes += virtual
        if group is None:
            nodes += _unclaimed_render_nodes(case)
    cdi_devices: tuple[str, ...] = ()
    docker_gpus = ""
    if group is not None and (bundled or (selection is not None and selection.names)):
        cdi_devices, docker_gpus = _pass_whole_driver(case, row, group, bundled, env)
    elif selection is not None and selection.asked and _reads(backend, selection.variable):
        _renumber(env, selection, _renumbered(selection) or "")
    return Passage(tuple(dict.fromkeys(nodes)), cdi_devices, docker_gpus, oci_runtime, tuple(env.items()), warnings)


def _pass_whole_driver(
    case: Case, row: Mapping[str, Any], group: Group, bundled: list[Gpu], env: dict[str, str]
) -> tuple[tuple[str, ...], str]:
    """Cards that need their user-space driver along: CDI names, or docker's ``--gpus``. ``env`` is brought in line."""
    vendor, selection = group.vendor, group.selection
    names, renumbered = _cdi_choice(case, vendor, bundled, selection)
    docker_gpus = ""
    if not names and takes_docker_gpus(case, vendor):
        docker_gpus, renumbered = _docker_gpus_value(bundled, selection), _renumbered(selection)
        for name, text in row.get("docker_defaults", {}).items():
            env.setdefault(name, text)
    if not names and not docker_gpus and selection is not None and selection.asked:
        raise ValueProblem(f"{selection.asked}: {cdi_names(case, vendor)[1].partition('; ')[0]}",
                           f"run: {load_table('accelerators')['vendors'][vendor]['cdi_repair']}")  # fmt: skip
    if selection is not None and renumbered is not None and (names or docker_gpus):
        # The cards are narrowed, so their numbers on the host mean others inside.
        _renumber(env, selection, renumbered)
    kind = load_table("accelerators")["vendors"][vendor]["cdi_kind"]
    return tuple(f"{kind}={name}" for name in names), docker_gpus


def _renumber(env: dict[str, str], selection: Selection, renumbered: str) -> None:
    env.pop(selection.variable, None)
    if renumbered and selection.variable:
        env[selection.variable] = renumbered


def _reads(backend: str, variable: str) -> bool:
    row = load_table("accelerators")["variables"].get(variable, {})
    return backend in row.get("read_by", ())


def _refuse_unknown_numbers(case: Case, backend: str, selection: Selection) -> None:
    """Beside ``--gpu``: variables whose numbers nobody here can translate into those of the inside."""
    rows = load_table("accelerators")["variables"]
    set_ones = [name for name in case.variables if _reads(backend, name) and "numbering" in rows[name]]
    for name in set_ones:
        if rows[name]["numbering"] in ("vulkan", "own") or (len(set_ones) > 1 and name != selection.variable):
            raise ValueProblem(f"{selection.asked} and {name} both choose cards, and cannot be combined",
                               f"leave one of them out: unset {name}")  # fmt: skip


def _native_variables(case: Case, backend: str, selection: Selection | None) -> dict[str, str]:
    """Without a container only the backend's own variable can narrow what ``--gpu`` asks for."""
    if selection is None or not selection.asked:
        return {}
    table = load_table("accelerators")
    row = table["backends"][backend].get("native", {})
    if not row:
        vendors = table["backends"][backend]["vendors"]
        if {card for card in case.facts.gpus if card.vendor in vendors} <= set(selection.cards):
            return {}
        raise ValueProblem(f"{selection.asked}: {backend_title(backend)} numbers cards by itself, so they cannot be "
                           "chosen without a container",
                           "look at llama-server --list-devices, and use --runtime-args '--device NAME'")  # fmt: skip
    numbers = [str(number) for number in card_numbers(case.facts, selection.cards)]
    uuids = [card.nvidia_uuid for card in selection.cards]
    variable = selection.variable if _reads(backend, selection.variable) else row["variable"]
    if row.get("by_uuid") and all(uuids):
        return {variable: ",".join(uuids)}
    return {**row.get("order", {}), variable: ",".join(numbers)}


def _nodes_of(case: Case, row: Mapping[str, Any], pattern: str, selection: Selection | None) -> list[str]:
    """The nodes of a pattern: all that exist, or only those of the cards that ``--gpu`` asks for."""
    nodes = expand_nodes(case, pattern)
    if selection is None or not selection.asked or row.get("per_card") != pattern:
        return nodes
    alike = [card for card in case.facts.gpus if card.vendor == selection.cards[0].vendor]
    if len(nodes) != len(alike):
        raise ValueProblem(f"{selection.asked}: which of the nodes {pattern.replace('#', '*')} belongs to which card "
                           f"is unknown: there are {len(nodes)} for {len(alike)} cards",
                           "leave --gpu out, or pass nodes with --device")  # fmt: skip
    return [nodes[number] for number in card_numbers(case.facts, selection.cards)]


def _cards_to_pass(case: Case, backend: str, group: Group | None) -> tuple[Gpu, ...]:
    """The group's cards, or all whose numbers a variable of the user counts, which must then keep their meaning."""
    table = load_table("accelerators")
    if group is None:
        return ()
    if group.selection is not None and group.selection.asked:
        return tuple(sorted(group.cards, key=_order))
    for name, row in table["variables"].items():
        if name not in case.variables or backend not in row.get("read_by", ()) or row.get("numbering") == "nvidia":
            continue
        vendors = [row["vendor"]] if "vendor" in row else table["backends"][backend]["vendors"]
        counted = tuple(card for card in case.facts.gpus if card.vendor in vendors)
        if all(card in counted for card in group.cards):
            return counted
    return group.cards


def _cdi_choice(
    case: Case, vendor: str, cards: list[Gpu], selection: Selection | None
) -> tuple[tuple[str, ...], str | None]:
    """Names to pass, and what the user's variable becomes inside: empty to drop it, None to leave it as it is."""
    spelt, problem = cdi_names(case, vendor)
    if problem:
        return (), None
    if selection is not None:
        names = [*selection.names, *(cdi_name_of(spelt, card) for card in sorted(selection.cards, key=_order))]
        if all(names):
            return tuple(names), _renumbered(selection)
        everything = all(card in selection.cards for card in case.facts.gpus if through_cdi(case, card))
        if selection.asked and not everything and takes_docker_gpus(case, vendor):
            return (), None
        if selection.asked and not everything:
            row = load_table("accelerators")["vendors"][vendor]
            unnamed = next(card for card in selection.cards if not cdi_name_of(spelt, card))
            raise ValueProblem(f"{selection.asked}: the CDI spec has no name for {card_name(unnamed)} alone",
                               f"write it anew: {row['cdi_repair']}")  # fmt: skip
        # The spec cannot narrow, so all cards go in and numbers keep their meaning.
    if "all" in spelt:
        return ("all",), None
    names = [cdi_name_of(spelt, card) for card in cards]
    return (tuple(names) if all(names) else spelt), None


def _order(card: Gpu) -> int:
    """Position among cards that are passed together: inside, they are numbered in the order of the host's numbers."""
    return card.nvidia_index or card.hip_index or 0


def _renumbered(selection: Selection | None) -> str | None:
    """The variable for a container that has only the selected cards: empty unless it changes their order."""
    if selection is None:
        return None
    inside = sorted(selection.cards, key=_order)
    if selection.names or inside == list(selection.cards):
        return ""
    return ",".join(str(inside.index(card)) for card in selection.cards)


def _docker_gpus_value(cards: list[Gpu], selection: Selection | None) -> str:
    if selection is None:
        return "all"
    # A number, or the UUID of a card that has none; docker understands both.
    listed = [card.nvidia_uuid if card.nvidia_index is None else str(card.nvidia_index)
              for card in sorted(cards, key=_order)]  # fmt: skip
    return f"device={','.join([*listed, *selection.names])}"


def _unclaimed_render_nodes(case: Case) -> list[str]:
    """Render nodes that belong to no card of a known vendor: all that an explicit backend can be given."""
    vendors = load_table("accelerators")["vendors"]
    claimed = {card.render_node for card in case.facts.gpus if card.vendor in vendors}
    return [node for node in expand_nodes(case, "/dev/dri/renderD#") if node not in claimed]
