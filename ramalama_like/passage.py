"""How the chosen cards reach the container: device nodes, CDI names, docker's ``--gpus``, variables and groups.

Cards are narrowed by what is passed, never by an index variable: inside, numbers start at 0 again.
"""

from __future__ import annotations

from ramalama_like.cards import cdi_name_of, cdi_names, expand_nodes, takes_docker_gpus, through_cdi
from ramalama_like.data import load_table
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    row = load_table("accelerators")["backends"][backend]
    selection = group.selection if group is not None else None
    warnings = list(selection.warnings) if selection is not None else []
    env = dict(case.variables)
    if case.native:
        return Passage(env=tuple({**row.get("defaults", {}), **env}.items()), warnings=tuple(warnings))
    cards = _cards_to_pass(case, backend, group)
    bundled = [card for card in cards if through_cdi(case, card)]
    nodes: list[str] = []
    for pattern in (*row.get("needs", ()), *row.get("passes", ())):
        nodes += expand_nodes(case, pattern)
    oci_runtime = ""
    if row.get("docker_runtime") and case.engine.kind == "docker" and nodes:
        oci_runtime, nodes = row["docker_runtime"], []
    if row.get("render_node"):
        nodes += [card.render_node for card in cards if card.render_node and card not in bundled]
        if group is None:
            nodes += _unclaimed_render_nodes(case)
    cdi_devices: tuple[str, ...] = ()
    docker_gpus = ""
    env = {**row.get("defaults", {}), **env}
    if bundled or (selection is not None and selection.names):
        names, renumbered = _cdi_choice(case, bundled, selection)
        kind = load_table("accelerators")["vendors"][_vendor_of(bundled, group)]["cdi_kind"]
        if names:
            cdi_devices = tuple(f"{kind}={name}" for name in names)
        elif takes_docker_gpus(case, _vendor_of(bundled, group)):
            docker_gpus = _docker_gpus_value(bundled, selection)
            env = {**row.get("docker_defaults", {}), **env}
            renumbered = _renumbered(selection)
        if selection is not None and renumbered is not None and (names or docker_gpus):
            # The cards are narrowed, so their numbers on the host mean others inside.
            env.pop(selection.variable, None)
            if renumbered:
                env[selection.variable] = renumbered
    return Passage(
        tuple(dict.fromkeys(nodes)), cdi_devices, docker_gpus, oci_runtime, tuple(env.items()), tuple(warnings)
    )


def _vendor_of(cards: list[Gpu], group: Group | None) -> str:
    if cards:
        return cards[0].vendor
    return group.vendor if group is not None else ""


def _cards_to_pass(case: Case, backend: str, group: Group | None) -> tuple[Gpu, ...]:
    """The group's cards, or all whose numbers a variable of the user counts, which must then keep their meaning."""
    table = load_table("accelerators")
    if group is None:
        return ()
    for name, row in table["variables"].items():
        if name not in case.variables or backend not in row.get("read_by", ()) or row.get("numbering") == "nvidia":
            continue
        vendors = [row["vendor"]] if "vendor" in row else table["backends"][backend]["vendors"]
        counted = tuple(card for card in case.facts.gpus if card.vendor in vendors)
        if all(card in counted for card in group.cards):
            return counted
    return group.cards


def _cdi_choice(case: Case, cards: list[Gpu], selection: Selection | None) -> tuple[tuple[str, ...], str | None]:
    """Names to pass, and what the user's variable becomes inside: empty to drop it, None to leave it as it is."""
    vendor = cards[0].vendor if cards else "nvidia"
    spelt, problem = cdi_names(case, vendor)
    if problem:
        return (), None
    if selection is not None:
        names = [*selection.names, *(cdi_name_of(spelt, card) for card in sorted(selection.cards, key=_order))]
        if all(names):
            return tuple(names), _renumbered(selection)
        # The spec cannot narrow, so all cards go in and numbers keep their meaning.
    if "all" in spelt:
        return ("all",), None
    names = [cdi_name_of(spelt, card) for card in cards]
    return (tuple(names) if all(names) else spelt), None


def _order(card: Gpu) -> int:
    return card.nvidia_index or 0


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
    listed = [str(card.nvidia_index) for card in sorted(cards, key=_order)] + list(selection.names)
    return f"device={','.join(listed)}"


def _unclaimed_render_nodes(case: Case) -> list[str]:
    """Render nodes that belong to no card of a known vendor: all that an explicit backend can be given."""
    vendors = load_table("accelerators")["vendors"]
    claimed = {card.render_node for card in case.facts.gpus if card.vendor in vendors}
    return [node for node in expand_nodes(case, "/dev/dri/renderD#") if node not in claimed]


def owner_groups(case: Case, paths: tuple[str, ...]) -> tuple[int, ...]:
    nodes = (case.facts.node(path) for path in paths)
    return tuple(sorted({node.group for node in nodes if node is not None and node.group}))


def access_warnings(case: Case, paths: tuple[str, ...], keep_groups: bool) -> list[str]:
    """Nodes that the user who starts the container may not use in it."""
    warnings: list[str] = []
    for path in paths:
        node = case.facts.node(path)
        if node is None:
            continue
        if node.accessible is False:
            warnings.append(f"this user may not read and write {path}: join the group {node.group} that owns it")
        elif node.through_group and not keep_groups:
            warnings.append(f"{path} can be used only as member of the group {node.group}: add --keep-groups")
    return warnings
