"""Cards, what is known of the case that is decided, and how both are called when people are told.

What ``accelerator.py``, ``selection.py``, ``suitability.py`` and ``passage.py`` share.
"""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ramalama_like.facts import EngineFacts, Gpu, HostFacts, Npu
    from ramalama_like.options import Setting


AUTO = "auto"
CPU = "cpu"


@value
class Case:
    """The inputs of one decision, with empty variables left out."""

    facts: HostFacts
    engine: EngineFacts
    family: str
    variables: Mapping[str, str]
    gpus: Setting[tuple[str, ...]]  # what --gpu asks for; empty: nothing

    @property
    def native(self) -> bool:
        """Whether no container is used: then nothing is passed, and the limits of images do not count."""
        return self.engine.kind == "none"


@value
class Selection:
    """The cards of one vendor that the user named, by variables, by ``--gpu``, or by both."""

    cards: tuple[Gpu, ...]  # in the order of the variable
    variables: tuple[tuple[str, str], ...] = ()  # those that chose, each with the same choice in plain words
    names: tuple[str, ...] = ()  # CDI names that a variable spelt out
    warnings: tuple[str, ...] = ()
    asked: str = ""  # --gpu and its value; empty where it was not given. What it asks is honoured or refused.
    hidden: str = ""  # why no card is left
    opaque: str = ""  # a variable that means what nothing here can name: then ``cards`` are all that it may mean

    @property
    def said(self) -> str:
        """What the user said: --gpu 1, or CUDA_VISIBLE_DEVICES=1."""
        return self.asked or " and ".join(f"{name}={text}" for name, text in self.variables)


@value
class Group:
    """Cards of one vendor that would be used together."""

    vendor: str
    cards: tuple[Gpu, ...]
    inside: bool  # all of them are part of the processor
    selection: Selection | None = None
    left_out: int = 0  # cards with less memory than these

    def is_like(self, other: Group | None) -> bool:
        """Whether two groups have the same cards, before any were left out."""
        return other is not None and (self.vendor, self.inside) == (other.vendor, other.inside)

    @property
    def is_hidden(self) -> bool:
        """Whether the user's variable leaves no card at all."""
        return self.selection is not None and not self.cards and not self.selection.names


def expand_nodes(case: Case, pattern: str) -> list[str]:
    """Existing nodes that match a pattern, in which ``#`` stands for a number, also after a dot."""
    start, hole, end = pattern.partition("#")
    if not hole:
        return [pattern] if case.facts.node(pattern) is not None else []
    return [
        node.path
        for node in case.facts.nodes
        if node.path.startswith(start) and _is_number(node.path[len(start) :].removeprefix(".").removesuffix(end))
    ]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def virtual_nodes(case: Case, backend: str, card: Gpu) -> list[str]:
    """Nodes that exist only in the virtual machine where the containers run, so that no file here shows them."""
    table = load_table("accelerators")
    row, drivers = table["vendors"].get(card.vendor, {}), table["backends"][backend].get("drivers", {})
    if case.engine.kind not in row.get("engines", ()) or card.driver not in drivers.get(card.vendor, ()):
        return []
    return list(row["virtual_nodes"])


def usable_npus(case: Case, backend: str) -> list[Npu]:
    """NPUs that a backend can use besides cards, or in their place."""
    row = load_table("accelerators")["backends"][backend]
    return [npu for npu in case.facts.npus if "npu_defaults" in row and npu.vendor in row["vendors"] and npu.node]


def backend_title(backend: str) -> str:
    """What people call a backend: ROCm."""
    title: str = load_table("accelerators")["backends"][backend]["title"]
    return title


def card_name(card: Gpu) -> str:
    """A card in words, as exactly as it is known: AMD Radeon (gfx1150) at 0000:c4:00.0."""
    place = card.pci_address or card.render_node or card.own_node
    return card_kind(card) + (f" at {place}" if place else "")


def card_kind(card: Gpu) -> str:
    """A card in words, without its place."""
    vendor = load_table("accelerators")["vendors"].get(card.vendor)
    name = card.name or (vendor["title"] if vendor else f"card of vendor {card.vendor}")
    detail = card.gfx or ("" if card.name else card.pci_device)
    return name + (f" ({detail})" if detail else "")


def _card_names(cards: tuple[Gpu, ...]) -> str:
    """Several cards; what equal ones have in common is said once."""
    alike: dict[str, list[Gpu]] = {}
    for card in cards:
        alike.setdefault(card_kind(card), []).append(card)
    names = []
    for kind, members in alike.items():
        places = [card.pci_address or card.render_node or card.own_node for card in members]
        places = [place for place in places if place]
        count = f"{len(members)} × " if len(members) > 1 else ""
        names.append(f"{count}{kind}" + (f" at {', '.join(places)}" if places else ""))
    return " and ".join(names)


def group_name(backend: str, group: Group | None, nodes: tuple[str, ...] = ()) -> str:
    """The hardware in words; ``nodes`` where only they are known."""
    if group is not None and group.cards:
        return _card_names(group.cards)
    if group is not None:
        names = group.selection.names if group.selection is not None else ()
        vendor: str = load_table("accelerators")["vendors"][group.vendor]["title"]
        return " ".join((vendor, *names))
    if nodes:
        return " and ".join(nodes)
    # Backends without cards of their own are their own hardware.
    return backend_title(backend) if not load_table("accelerators")["backends"][backend]["vendors"] else "no card"


def reads(backend: str, variable: str) -> bool:
    """Whether a backend obeys a variable of the user."""
    return backend in load_table("accelerators")["variables"].get(variable, {}).get("read_by", ())


def counting_variables(case: Case, backend: str) -> list[str]:
    """Variables of the user that a backend obeys and whose numbers count in an order which no file tells."""
    return [name for name in uncounted_variables(case) if reads(backend, name)]


def uncounted_variables(case: Case) -> list[str]:
    """Variables of the user that choose cards in a language of their own."""
    return [
        name
        for name, row in load_table("accelerators")["variables"].items()
        if name in case.variables
        and row.get("numbering") in ("vulkan", "own")
        and case.variables[name].strip().upper().startswith(row.get("cards_in", ""))
    ]


def counted_cards(case: Case, backend: str, variable: str) -> tuple[Gpu, ...]:
    """The cards among which a variable counts: those that its backend sees on the host."""
    table = load_table("accelerators")
    backend_row, row = table["backends"][backend], table["variables"][variable]
    vendors = [row["vendor"]] if "vendor" in row else backend_row["vendors"]
    drivers = backend_row.get("drivers", {})
    return tuple(
        card
        for card in case.facts.gpus
        if card.vendor in vendors and (not card.driver or card.driver in drivers.get(card.vendor, (card.driver,)))
    )


def image_row(case: Case, backend: str) -> Mapping[str, Any]:
    """What images.toml says about a backend's image in the chosen family."""
    row: Mapping[str, Any] = load_table("images")["families"][case.family]["images"][backend]
    return row


# Cards that reach a container only with their user-space driver, through CDI.


CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")


def cdi_names(case: Case, vendor: str) -> tuple[tuple[str, ...], str]:
    """Device names that the engine would accept for a vendor's kind, or the reason why there are none."""
    kind = load_table("accelerators")["vendors"][vendor]["cdi_kind"]
    repair = cdi_repair(case, vendor)
    specs = [spec for spec in case.facts.cdi if spec.kind == kind]
    if case.engine.kind == "docker":
        allowed = [_folder(directory + "/x") for directory in case.engine.cdi_directories]
        specs = [spec for spec in specs if _folder(spec.file) in allowed]
    owners: dict[str, str] = {}
    stale: dict[str, str] = {}
    for spec in specs:
        for name in spec.names:
            if name in owners and _folder(owners[name]) == _folder(spec.file):
                return (), f"{owners[name]} and {spec.file} both define {kind}={name}: remove one of them"
            owners[name] = spec.file
        if spec.stale:
            stale[spec.file] = spec.missing[0]
    names = tuple(name for name, file in owners.items() if file not in stale)
    if names:
        return names, ""
    for file, node in stale.items():
        return (), f"the CDI spec {file} is stale, {node} does not exist; {repair}"
    closed = _closed_cdi(case)
    if closed:
        return (), f"{closed[0]} {closed[1]}; {repair}"
    return (), f"no CDI spec of kind {kind} exists; {repair}"


def cdi_repair(case: Case, vendor: str) -> str:
    """What to do so that a vendor's kind is specified: ``run:`` and a command."""
    row = load_table("accelerators")["vendors"][vendor]
    if any(spec.kind == row["cdi_kind"] for spec in case.facts.cdi):
        return f"run: {row['cdi_repair']}"
    closed = _closed_cdi(case)
    if not closed:
        return f"run: {row['cdi_repair']}"
    folder = max(folder for folder in CDI_FOLDERS if f"{closed[0]}/".startswith(f"{folder}/"))
    return f"run: sudo chmod -R a+rX {folder}"


def _closed_cdi(case: Case) -> tuple[str, str] | None:
    """A folder or file of specs that this user may not read, and what the probe noted."""
    for note in case.facts.notes:
        path, _, what = note.partition(" ")
        # What is wrong with it need not be said where the facts are anonymous.
        if what.startswith("cannot be read") and any(f"{path}/".startswith(f"{folder}/") for folder in CDI_FOLDERS):
            return path, what[:1].lower() + what[1:].replace("Permission", "permission")
    return None


def _folder(path: str) -> str:
    folder = path.rpartition("/")[0].rstrip("/")
    return folder.removeprefix("/var") if folder.startswith("/var/run/") else folder


def cdi_name_of(spelt: Sequence[str], card: Gpu) -> str:
    """What a spec calls a card: generators name by index, by type and index, or by UUID."""
    for name in (str(card.nvidia_index), f"gpu{card.nvidia_index}", card.nvidia_uuid):
        if name and name in spelt:
            return name
    return ""


def takes_docker_gpus(case: Case, vendor: str) -> bool:
    """Whether docker's ``--gpus`` can pass the vendor's cards."""
    return case.engine.kind == "docker" and bool(load_table("accelerators")["vendors"][vendor].get("docker_gpus"))


def through_cdi(case: Case, card: Gpu) -> bool:
    """Whether a card's user-space driver has to come along, so that a bare node is useless."""
    vendor = load_table("accelerators")["vendors"].get(card.vendor, {})
    if card.driver:
        return card.driver in vendor.get("cdi_drivers", ())
    return card.vendor == "nvidia" and bool(case.facts.nvidia_driver)
