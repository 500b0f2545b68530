"""Which accelerator computes, how it reaches the container, and why.

Everything about backends and vendors stands in ``data/accelerators.toml``, what the images can do in
``data/images.toml``; here is only the mechanism:

1. Cards are put into groups: discrete before integrated, then by vendor. Where the user's variables name cards,
   only those count.
2. ``auto`` tries each group's backends in the vendor's order and takes the first that nothing speaks against. An
   explicit backend is always obeyed, and what speaks against it becomes a warning.
3. Cards are narrowed by the devices that are passed, never by an index variable: inside, numbers start at 0 again.
"""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ramalama_like.facts import EngineFacts, Gpu, HostFacts
    from ramalama_like.options import Setting

AUTO = "auto"
CPU = "cpu"


@value
class Candidate:
    """A backend that was considered, for one group of cards."""

    backend: str
    chosen: bool
    why: str


@value
class Accelerator:
    """What computes, what of it reaches the container, and why."""

    backend: str  # canonical: cpu vulkan rocm cuda sycl openvino cann musa metal
    name: str  # of the hardware, for people: AMD Radeon (gfx1150) at 0000:c4:00.0, or CPU
    why: str  # one sentence
    origin: str  # of the wish: default, --backend, $RAMALAMA_BACKEND, file:line
    device_nodes: tuple[str, ...] = ()  # paths to pass
    cdi_devices: tuple[str, ...] = ()  # nvidia.com/gpu=all
    docker_gpus: str = ""  # value of docker's --gpus: all, device=1, device=0,1; empty: not passed
    oci_runtime: str = ""  # a runtime that docker needs: mthreads
    groups: tuple[int, ...] = ()  # numeric groups to add (docker), for nodes that belong to one
    env: tuple[tuple[str, str], ...] = ()  # variables for the server, in and outside of a container
    warnings: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()  # every backend that was considered, losers with their reason


@value
class _Case:
    """The inputs of one decision, with empty variables left out."""

    facts: HostFacts
    engine: EngineFacts
    family: str
    variables: Mapping[str, str]

    @property
    def native(self) -> bool:
        return self.engine.kind == "none"


@value
class _Selection:
    """The cards of one vendor that the user's variable names."""

    variable: str
    cards: tuple[Gpu, ...]  # in the order of the variable
    names: tuple[str, ...] = ()  # CDI names that the variable spelt out
    warnings: tuple[str, ...] = ()


@value
class _Group:
    """Cards of one vendor that would be used together."""

    vendor: str
    cards: tuple[Gpu, ...]
    inside: bool  # all of them are part of the processor
    selection: _Selection | None = None
    left_out: int = 0  # cards with less memory than these

    def is_like(self, other: _Group | None) -> bool:
        """Whether two groups have the same cards, before any were left out."""
        return other is not None and (self.vendor, self.inside) == (other.vendor, other.inside)

    @property
    def is_hidden(self) -> bool:
        """Whether the user's variable leaves no card at all."""
        return self.selection is not None and not self.cards and not self.selection.names


@value
class _Attempt:
    """One backend tried on one group of cards: no objection means that it would work."""

    backend: str
    group: _Group | None  # what the backend can use of it; None for backends without cards
    against: tuple[str, ...] = ()


@value
class _Passed:
    """How the chosen cards reach the container."""

    device_nodes: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    docker_gpus: str = ""
    oci_runtime: str = ""
    env: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def gpu_variables() -> tuple[str, ...]:
    """Names of the user's variables that choose or tune accelerators, in the order in which they are passed."""
    return tuple(load_table("accelerators")["variables"])


def canonical_backend(name: str) -> str:
    """A backend's own name: ``intel`` is ``sycl``."""
    canonical: str = load_table("accelerators")["aliases"].get(name, name)
    return canonical


def choose_accelerator(
    *,
    backend: Setting[str],
    devices: Setting[tuple[str, ...]],
    keep_groups: bool,
    facts: HostFacts,
    engine: EngineFacts,
    family: str,
    environment: Mapping[str, str],
) -> Accelerator:
    """Choose the accelerator for a host, an engine and a family of images.

    ``environment`` holds the user's variables that ``gpu_variables`` names. ``devices`` matters only where it is
    ``none`` alone; other devices are passed besides the accelerator's. Raises ValueProblem where one of the variables
    names none of the cards that are known.
    """
    wanted = canonical_backend(backend.value)
    variables = {name: environment[name] for name in gpu_variables() if environment.get(name)}
    case = _Case(facts=facts, engine=engine, family=family, variables=variables)
    if devices.value == ("none",):
        return _choose_nothing(wanted, backend, devices)
    groups = _groups(case, wanted, strict=True)
    attempts = _attempts(case, groups if wanted == AUTO else _groups(case, AUTO, strict=False))
    auto = next(attempt for attempt in attempts if not attempt.against)
    if wanted == AUTO:
        chosen, group = auto.backend, auto.group
        why = _auto_why(auto, attempts)
        warnings = _unused_warnings(auto, attempts)
        candidates = _candidates(case, auto, attempts)
    else:
        chosen = wanted
        group, against = _obey(case, wanted, groups)
        why = f"{_title(chosen)} was asked for by {backend.origin}"
        warnings = [f"{chosen}: {objection}" for objection in against]
        candidates = [Candidate(chosen, chosen=True, why=why), *_candidates_unasked(case, chosen, auto, attempts)]
    if group is not None and (note := _compatibility(case, chosen)):
        why += f"; {note}"
    passed = _pass(case, chosen, group)
    warnings += [*passed.warnings, *_variable_warnings(case)]
    if engine.kind == "podman":
        warnings += _access_warnings(case, passed.device_nodes, keep_groups)
    return Accelerator(
        backend=chosen,
        name=_group_name(chosen, group, passed.device_nodes),
        why=why,
        origin=backend.origin,
        device_nodes=passed.device_nodes,
        cdi_devices=passed.cdi_devices,
        docker_gpus=passed.docker_gpus,
        oci_runtime=passed.oci_runtime,
        groups=_owner_groups(case, passed.device_nodes) if engine.kind == "docker" else (),
        env=passed.env,
        warnings=tuple(dict.fromkeys(warnings)),
        candidates=tuple(candidates),
    )


def _choose_nothing(wanted: str, backend: Setting[str], devices: Setting[tuple[str, ...]]) -> Accelerator:
    chosen = CPU if wanted == AUTO else wanted
    why = f"{devices.origin} none keeps every device out"
    if wanted != AUTO:
        why = f"{_title(chosen)} was asked for by {backend.origin}, and {why}"
    origin = devices.origin if wanted == AUTO else backend.origin
    return Accelerator(
        chosen, _title(CPU), why=why, origin=origin, candidates=(Candidate(chosen, chosen=True, why=why),)
    )


# Groups of cards, and what the user's variables leave of them.


def _groups(case: _Case, wanted: str, *, strict: bool) -> list[_Group]:
    """Groups in order of preference: discrete before integrated, then by vendor.

    ``strict``: a variable that names no known card is an error where its cards could be used at all.
    """
    table = load_table("accelerators")
    vendors = table["vendor_order"]
    if wanted != AUTO:
        vendors = [vendor for vendor in vendors if vendor in table["backends"][wanted]["vendors"]]
    if strict and wanted in (AUTO, "vulkan"):
        _check_vulkan_numbers(case)
    found: list[_Group] = []
    for vendor in vendors:
        cards = tuple(card for card in case.facts.gpus if card.vendor == vendor)
        selection = _select(case, vendor, cards, strict=strict) if cards else None
        if selection is not None:
            # Named cards belong together, whatever they are.
            inside = bool(selection.cards) and all(card.integrated for card in selection.cards)
            found.append(_Group(vendor, selection.cards, inside, selection))
            continue
        for inside in (False, True):
            alike = tuple(card for card in cards if bool(card.integrated) is inside)
            if alike:
                found.append(_Group(vendor, alike, inside))
    return sorted(found, key=lambda group: group.inside)  # which keeps the order of vendors


def _select(case: _Case, vendor: str, cards: tuple[Gpu, ...], *, strict: bool) -> _Selection | None:
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


def _select_nvidia(case: _Case, variable: str, text: str, cards: tuple[Gpu, ...]) -> _Selection | None:
    cards = tuple(card for card in cards if card.nvidia_index is not None)
    if not cards:
        return None
    spelt, _ = _cdi_names(case, "nvidia")
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
    return _Selection(variable, tuple(dict.fromkeys(chosen)), tuple(dict.fromkeys(names)), tuple(warnings))


def _select_amd(case: _Case, variable: str, text: str, cards: tuple[Gpu, ...]) -> _Selection | None:
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
    return _Selection(variable, tuple(dict.fromkeys(chosen)), warnings=tuple(warnings))


def _check_vulkan_numbers(case: _Case) -> None:
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
    return f"{'?' if number is None else number} ({_card_name(card)})"


# Choosing.


def _attempts(case: _Case, groups: list[_Group]) -> list[_Attempt]:
    """Every backend that ``auto`` thinks of, best first. The CPU is the last, and nothing speaks against it."""
    table = load_table("accelerators")
    found: list[_Attempt] = []
    for name, row in table["backends"].items():
        if row.get("system") == case.facts.os:
            found.append(_Attempt(name, None, tuple(_against_backend(case, name))))
    for group in groups:
        for name in table["vendors"][group.vendor]["preference"]:
            usable, against = _usable(case, name, group)
            found.append(_Attempt(name, usable, tuple(against)))
    found.append(_Attempt(CPU, None))
    return found


def _candidates(case: _Case, winner: _Attempt, attempts: list[_Attempt]) -> list[Candidate]:
    """Every attempt with its reason, and cards that no backend is known for."""
    found: list[Candidate] = []
    for attempt in attempts:
        cards = f"{_group_name(attempt.backend, attempt.group)}: " if attempt.group is not None else ""
        if attempt.against:
            why = cards + attempt.against[0]
        elif attempt is winner:
            why = f"the first choice that can be used for {_group_name(attempt.backend, attempt.group)}"
            if attempt.backend == CPU:
                why = "nothing else can be used"
        elif attempt.group is not None and attempt.group.is_like(winner.group):
            why = f"{cards}{winner.backend} comes first"
        else:
            why = f"{cards}{winner.backend} on {_group_name(winner.backend, winner.group)} comes first"
        found.append(Candidate(attempt.backend, attempt is winner, why))
    known = load_table("accelerators")["vendors"]
    strange = [card for card in case.facts.gpus if card.vendor not in known]
    found[-1:-1] = [
        Candidate("vulkan", chosen=False, why=f"{_card_name(card)}: not a vendor whose cards are known to compute")
        for card in strange
    ]
    return found


def _candidates_unasked(case: _Case, chosen: str, auto: _Attempt, attempts: list[_Attempt]) -> list[Candidate]:
    """The backends that were not asked for."""
    return [
        Candidate(
            candidate.backend,
            chosen=False,
            why=f"auto would choose it: {candidate.why}" if candidate.chosen else candidate.why,
        )
        for candidate in _candidates(case, auto, attempts)
        if candidate.backend != chosen
    ]


def _usable(case: _Case, backend: str, group: _Group) -> tuple[_Group, list[str]]:
    """What is left of a group with this backend, and what speaks against all of it."""
    if group.selection is not None and group.is_hidden:
        return group, [f"{group.selection.variable}={case.variables[group.selection.variable]} hides every card"]
    against = _against_backend(case, backend)
    objections = [(card, _against_card(case, backend, card)) for card in group.cards]
    good = tuple(card for card, found in objections if not found)
    if not good and objections:
        against += [sentence for _, found in objections for sentence in found]
    kept = good or group.cards
    left_out = 0
    if group.selection is None:
        kept, left_out = _largest(kept)
    return _Group(group.vendor, kept, group.inside, group.selection, left_out), list(dict.fromkeys(against))


def _largest(cards: tuple[Gpu, ...]) -> tuple[tuple[Gpu, ...], int]:
    """The cards with most memory, several where they are equal, and how many are left out."""
    most = max((card.usable_bytes or 0 for card in cards), default=0)
    kept = tuple(card for card in cards if card.usable_bytes is None or card.usable_bytes == most)
    return kept, len(cards) - len(kept)


def _obey(case: _Case, backend: str, groups: list[_Group]) -> tuple[_Group | None, list[str]]:
    """The best group for a backend that was asked for, and everything that speaks against it."""
    left_to_image = _against_image(case, backend)  # image.py says what it does about that
    tried = [_usable(case, backend, group) for group in groups]
    tried = [(group, [objection for objection in found if objection not in left_to_image]) for group, found in tried]
    for group, against in tried:
        if not against:
            return group, []
    if tried:
        return tried[0]
    against = [objection for objection in _against_backend(case, backend) if objection not in left_to_image]
    row = load_table("accelerators")["backends"][backend]
    if row["vendors"]:
        against.insert(0, f"no card that {row['title']} can use was found")
    return None, against


def _against_backend(case: _Case, backend: str) -> list[str]:
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
        against += _against_image(case, backend)
    against += [
        f"{pattern.replace('#', '*')} does not exist" for pattern in row.get("needs", ()) if not _expand(case, pattern)
    ]
    return against


def _against_image(case: _Case, backend: str) -> list[str]:
    image = _image_row(case, backend)
    if backend == CPU or "no_container" in load_table("accelerators")["backends"][backend]:
        return []  # there is always an image for the CPU (image.py), and nobody misses one of Metal
    if "missing" in image:
        return [image["missing"]]
    if case.facts.arch and case.facts.arch not in image["architectures"]:
        return [f"the {case.family} family has no {case.facts.arch} build of {image['name']}"]
    return []


def _against_card(case: _Case, backend: str, card: Gpu) -> list[str]:
    """What speaks against a backend on one card, the most telling reason first."""
    row = load_table("accelerators")["backends"][backend]
    against: list[str] = []
    drivers = row.get("drivers", {}).get(card.vendor)
    if drivers and card.driver and card.driver not in drivers:
        against.append(f"the card runs on {card.driver}, {row['title']} needs {' or '.join(drivers)}")
    elif drivers and not card.driver and not card.render_node and not _through_cdi(case, card):
        against.append(f"no driver is loaded for the card, {row['title']} needs {' or '.join(drivers)}")
    if not case.native:
        against += _against_version(case, backend, card)
        if _through_cdi(case, card):
            _, problem = _cdi_names(case, card.vendor)
            if problem and not _docker_gpus(case, card.vendor):
                against.append(problem)
    if row.get("render_node") and not card.render_node and not _through_cdi(case, card) and not against:
        against.append("the card has no render node in /dev/dri")
    return against


def _against_version(case: _Case, backend: str, card: Gpu) -> list[str]:
    """What the image's build says against the card or its driver."""
    image = _image_row(case, backend)
    gfx = _overridden_gfx(case) or card.gfx
    if "gfx" in image and gfx and gfx not in image["gfx"]:
        return [f"{gfx} is not in the {image['name']} image of the {case.family} family"]
    driver = case.facts.nvidia_driver
    oldest = image.get("driver_minimum")
    if oldest and driver and _version(driver) < _version(oldest):
        return [f"driver {driver} is older than {oldest}, the oldest for {image['contains']}"]
    return []


def _compatibility(case: _Case, backend: str) -> str:
    """That a driver is older than the CUDA in the image, where it runs it nevertheless."""
    image, driver = _image_row(case, backend), case.facts.nvidia_driver
    if case.native or not driver or "driver_full" not in image:
        return ""
    if not _version(image["driver_minimum"]) <= _version(driver) < _version(image["driver_full"]):
        return ""
    return f"driver {driver} runs {image['contains']} by minor-version compatibility"


def _overridden_gfx(case: _Case) -> str:
    """The instruction set that HSA_OVERRIDE_GFX_VERSION pretends: 11.0.0 is gfx1100."""
    parts = case.variables.get("HSA_OVERRIDE_GFX_VERSION", "").split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        return ""
    return f"gfx{int(parts[0])}{int(parts[1])}{int(parts[2]):x}"


def _image_row(case: _Case, backend: str) -> Mapping[str, Any]:
    row: Mapping[str, Any] = load_table("images")["families"][case.family]["images"][backend]
    return row


def _version(text: str) -> tuple[int, ...]:
    """Numbers of a dotted version; those before the first part that is none."""
    found: list[int] = []
    for part in text.split("."):
        if not (part.isascii() and part.isdigit()):
            break
        found.append(int(part[:9]))
    return tuple(found)


# Passing.


def _pass(case: _Case, backend: str, group: _Group | None) -> _Passed:
    row = load_table("accelerators")["backends"][backend]
    selection = group.selection if group is not None else None
    warnings = list(selection.warnings) if selection is not None else []
    env = dict(case.variables)
    if case.native:
        return _Passed(env=tuple({**row.get("defaults", {}), **env}.items()), warnings=tuple(warnings))
    cards = _cards_to_pass(case, backend, group)
    bundled = [card for card in cards if _through_cdi(case, card)]
    nodes: list[str] = []
    for pattern in (*row.get("needs", ()), *row.get("passes", ())):
        nodes += _expand(case, pattern)
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
        elif _docker_gpus(case, _vendor_of(bundled, group)):
            docker_gpus = _docker_gpus_value(bundled, selection)
            env = {**row.get("docker_defaults", {}), **env}
            renumbered = _renumbered(selection)
        if selection is not None and renumbered is not None and (names or docker_gpus):
            # The cards are narrowed, so their numbers on the host mean others inside.
            env.pop(selection.variable, None)
            if renumbered:
                env[selection.variable] = renumbered
    return _Passed(
        tuple(dict.fromkeys(nodes)), cdi_devices, docker_gpus, oci_runtime, tuple(env.items()), tuple(warnings)
    )


def _vendor_of(cards: list[Gpu], group: _Group | None) -> str:
    if cards:
        return cards[0].vendor
    return group.vendor if group is not None else ""


def _cards_to_pass(case: _Case, backend: str, group: _Group | None) -> tuple[Gpu, ...]:
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


def _cdi_choice(case: _Case, cards: list[Gpu], selection: _Selection | None) -> tuple[tuple[str, ...], str | None]:
    """Names to pass, and what the user's variable becomes inside: empty to drop it, None to leave it as it is."""
    vendor = cards[0].vendor if cards else "nvidia"
    spelt, problem = _cdi_names(case, vendor)
    if problem:
        return (), None
    if selection is not None:
        names = [*selection.names, *(_cdi_name(spelt, card) for card in sorted(selection.cards, key=_order))]
        if all(names):
            return tuple(names), _renumbered(selection)
        # The spec cannot narrow, so all cards go in and numbers keep their meaning.
    if "all" in spelt:
        return ("all",), None
    names = [_cdi_name(spelt, card) for card in cards]
    return (tuple(names) if all(names) else spelt), None


def _order(card: Gpu) -> int:
    return card.nvidia_index or 0


def _cdi_name(spelt: Sequence[str], card: Gpu) -> str:
    """What a spec calls a card: generators name by index, by type and index, or by UUID."""
    for name in (str(card.nvidia_index), f"gpu{card.nvidia_index}", card.nvidia_uuid):
        if name and name in spelt:
            return name
    return ""


def _renumbered(selection: _Selection | None) -> str | None:
    """The variable for a container that has only the selected cards: empty unless it changes their order."""
    if selection is None:
        return None
    inside = sorted(selection.cards, key=_order)
    if selection.names or inside == list(selection.cards):
        return ""
    return ",".join(str(inside.index(card)) for card in selection.cards)


def _docker_gpus_value(cards: list[Gpu], selection: _Selection | None) -> str:
    if selection is None:
        return "all"
    listed = [str(card.nvidia_index) for card in sorted(cards, key=_order)] + list(selection.names)
    return f"device={','.join(listed)}"


def _docker_gpus(case: _Case, vendor: str) -> bool:
    return case.engine.kind == "docker" and bool(load_table("accelerators")["vendors"][vendor].get("docker_gpus"))


def _through_cdi(case: _Case, card: Gpu) -> bool:
    """Whether a card's user-space driver has to come along, so that a bare node is useless."""
    vendor = load_table("accelerators")["vendors"].get(card.vendor, {})
    if card.driver:
        return card.driver in vendor.get("cdi_drivers", ())
    return card.vendor == "nvidia" and bool(case.facts.nvidia_driver)


def _cdi_names(case: _Case, vendor: str) -> tuple[tuple[str, ...], str]:
    """Device names that the engine would accept for a vendor's kind, or the reason why there are none."""
    row = load_table("accelerators")["vendors"][vendor]
    kind, repair = row["cdi_kind"], f"run: {row['cdi_repair']}"
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
    return (), f"no CDI spec of kind {kind} exists; {repair}"


def _folder(path: str) -> str:
    folder = path.rpartition("/")[0].rstrip("/")
    return folder.removeprefix("/var") if folder.startswith("/var/run/") else folder


def _expand(case: _Case, pattern: str) -> list[str]:
    """Existing nodes that match a pattern, in which ``#`` stands for a number."""
    start, hole, end = pattern.partition("#")
    if not hole:
        return [pattern] if case.facts.node(pattern) is not None else []
    return [
        node.path
        for node in case.facts.nodes
        if node.path.startswith(start) and node.path.endswith(end) and node.path[len(start) :].isdigit()
    ]


def _unclaimed_render_nodes(case: _Case) -> list[str]:
    """Render nodes that belong to no card of a known vendor: all that an explicit backend can be given."""
    vendors = load_table("accelerators")["vendors"]
    claimed = {card.render_node for card in case.facts.gpus if card.vendor in vendors}
    return [node for node in _expand(case, "/dev/dri/renderD#") if node not in claimed]


def _owner_groups(case: _Case, paths: tuple[str, ...]) -> tuple[int, ...]:
    nodes = (case.facts.node(path) for path in paths)
    return tuple(sorted({node.group for node in nodes if node is not None and node.group}))


# Words.


def _title(backend: str) -> str:
    title: str = load_table("accelerators")["backends"][backend]["title"]
    return title


def _card_name(card: Gpu) -> str:
    vendor = load_table("accelerators")["vendors"].get(card.vendor)
    name = card.name or (vendor["title"] if vendor else f"card of vendor {card.vendor}")
    detail = card.gfx or ("" if card.name else card.pci_device)
    place = card.pci_address or card.render_node
    return name + (f" ({detail})" if detail else "") + (f" at {place}" if place else "")


def _group_name(backend: str, group: _Group | None, nodes: tuple[str, ...] = ()) -> str:
    """The hardware in words; ``nodes`` where only they are known."""
    if group is not None and group.cards:
        return " and ".join(_card_name(card) for card in group.cards)
    if group is not None:
        names = group.selection.names if group.selection is not None else ()
        vendor: str = load_table("accelerators")["vendors"][group.vendor]["title"]
        return " ".join((vendor, *names))
    if nodes:
        return " and ".join(nodes)
    # Backends without cards of their own are their own hardware.
    return _title(backend) if not load_table("accelerators")["backends"][backend]["vendors"] else "no card"


def _auto_why(winner: _Attempt, attempts: list[_Attempt]) -> str:
    # Of other cards than the winner's only what came before it matters.
    before = attempts[: attempts.index(winner)]
    causes: dict[str, list[str]] = {}  # one cause often rules several backends out
    passed_over = False
    for attempt in attempts:
        same = attempt.group is not None and attempt.group.is_like(winner.group)
        if attempt.against and (same or attempt in before):
            on = "" if same or attempt.group is None else f" on {_group_name(attempt.backend, attempt.group)}"
            causes.setdefault(f"{on}: {attempt.against[0]}", []).append(attempt.backend)
            passed_over = passed_over or (same and attempt in before)
    if winner.group is not None:
        cards = _group_name(winner.backend, winner.group)
        why = f"{winner.backend} is {'what is left' if passed_over else 'the first choice'} for {cards}"
        if winner.group.left_out:
            why += f" ({winner.group.left_out} with less memory left out)"
    elif winner.backend == CPU:
        why = "no card can be used" if causes else "no card was found"
    else:
        why = f"{_title(winner.backend)} is at hand"
    return "; ".join([why, *(f"not {' or '.join(names)}{cause}" for cause, names in causes.items())])


def _unused_warnings(winner: _Attempt, attempts: list[_Attempt]) -> list[str]:
    """Cards that would have come first, and why they do not compute."""
    reasons: dict[str, list[str]] = {}
    for attempt in attempts:
        group = attempt.group
        if attempt is winner or (group is not None and group.is_like(winner.group)):
            break
        if group is not None and not group.is_hidden:
            reasons.setdefault(_group_name(CPU, group), []).append(f"{attempt.backend}: {attempt.against[0]}")
    warnings = []
    for cards, lost in reasons.items():
        # One cause often spoils all backends of a card: say it once.
        causes = dict.fromkeys(sentence.partition(": ")[2] for sentence in lost)
        warnings.append(f"{cards} is unused: {next(iter(causes)) if len(causes) == 1 else '; '.join(lost)}")
    return warnings


def _variable_warnings(case: _Case) -> list[str]:
    """Variables that speak of cards which are not there."""
    table = load_table("accelerators")
    seen = {card.vendor for card in case.facts.gpus}
    return [
        f"{name} is passed as it is, but no {table['vendors'][row['vendor']]['title']} was found"
        for name, row in table["variables"].items()
        if name in case.variables and row.get("vendor") and row["vendor"] not in seen
    ]


def _access_warnings(case: _Case, paths: tuple[str, ...], keep_groups: bool) -> list[str]:
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
