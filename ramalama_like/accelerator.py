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

from ramalama_like.access import choose_access
from ramalama_like.cards import AUTO, CPU, Case, backend_title, card_name, group_name, usable_npus
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.passage import choose_passage
from ramalama_like.selection import find_groups
from ramalama_like.suitability import against_backend, against_image, compatibility_note, unseen_note, usable_part
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ramalama_like.cards import Group
    from ramalama_like.facts import EngineFacts, Gpu, HostFacts
    from ramalama_like.measured import Measured
    from ramalama_like.options import Setting
    from ramalama_like.passage import Passage


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
    keep_groups: bool = False  # rootless podman has to keep the user's groups, for nodes that belong to one
    access: tuple[tuple[str, str], ...] = ()  # node, and how this user may open it
    env: tuple[tuple[str, str], ...] = ()  # variables for the server, in and outside of a container
    warnings: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()  # every backend that was considered, losers with their reason
    ignored: tuple[str, ...] = ()  # cards that nobody knows to compute, and why they are not looked at
    cards: tuple[Gpu, ...] = ()  # that compute, as far as they are known


@value
class _Attempt:
    """One backend tried on one group of cards: no objection means that it would work."""

    backend: str
    group: Group | None  # what the backend can use of it; None for backends without cards
    against: tuple[str, ...] = ()


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
    keep_groups: Setting[bool],
    gpus: Setting[tuple[str, ...]],
    facts: HostFacts,
    engine: EngineFacts,
    family: str,
    environment: Mapping[str, str],
    measured: Measured | None = None,
) -> Accelerator:
    """Choose the accelerator for a host, an engine and a family of images.

    ``environment`` holds the user's variables that ``gpu_variables`` names. ``devices`` matters only where it is
    ``none`` alone; other devices are passed besides the accelerator's. ``gpus`` are selectors of cards
    (gpu_selectors.py). ``measured`` may put another backend that can be used before the first choice of ``auto``.
    Raises ValueProblem where a variable or selector names none of the cards that are known, or cards that cannot be
    used.
    """
    wanted = canonical_backend(backend.value)
    variables = {name: environment[name] for name in gpu_variables() if environment.get(name)}
    case = Case(facts=facts, engine=engine, family=family, variables=variables, gpus=gpus)
    if devices.value == ("none",):
        if gpus.value:
            raise ValueProblem(f"{gpus.origin} {','.join(gpus.value)} and {devices.origin} none exclude each other",
                               "leave one of them out")  # fmt: skip
        return _choose_nothing(wanted, backend, devices)
    groups = find_groups(case, wanted, strict=True)
    attempts = _attempts(case, groups if wanted == AUTO else find_groups(case, AUTO, strict=False))
    first = next(attempt for attempt in attempts if not attempt.against)
    auto, attempts = _put_fastest_first(first, attempts, measured)
    if wanted == AUTO:
        _refuse_lost_selection(auto, groups, attempts)
        chosen, group = auto.backend, auto.group
        why = _auto_why(auto, attempts, unseen_note(case))
        if measured and len(measured.speeds) > 1:
            faster = f"{chosen} is faster here than {first.backend}, the first choice otherwise"
            why = f"{why if auto is first else faster}; {measured.why}"
        warnings = _unused_warnings(auto, attempts)
        candidates = _candidates(case, auto, attempts, fastest=auto is not first)
    else:
        chosen = wanted
        group, against = _obey(case, wanted, groups)
        why = f"{backend_title(chosen)} was asked for by {backend.origin}"
        if group is not None and group.selection is not None and group.cards:
            why += f", on the cards of {group.selection.said}"
        warnings = [f"{chosen}: {objection}" for objection in against]
        candidates = [Candidate(chosen, chosen=True, why=why), *_candidates_unasked(case, chosen, auto, attempts)]
    if group is not None and (note := compatibility_note(case, chosen)):
        why += f"; {note}"
    passed = choose_passage(case, chosen, group)
    access = choose_access(case, passed.device_nodes, keep_groups)
    warnings += [*passed.warnings, *_variable_warnings(case, chosen, passed), *access.warnings]
    return Accelerator(
        backend=chosen,
        name=group_name(chosen, group, passed.device_nodes),
        why=why,
        origin=backend.origin,
        device_nodes=passed.device_nodes,
        cdi_devices=passed.cdi_devices,
        docker_gpus=passed.docker_gpus,
        oci_runtime=passed.oci_runtime,
        groups=access.groups,
        keep_groups=access.keep_groups,
        access=access.notes,
        env=passed.env,
        warnings=tuple(dict.fromkeys(warnings)),
        candidates=tuple(candidates),
        ignored=_ignored(case),
        cards=_known_cards(group),
    )


def _known_cards(group: Group | None) -> tuple[Gpu, ...]:
    """The cards of a group; none where the user named some in a way that does not tell which they are."""
    if group is None or (group.selection is not None and (group.selection.names or group.selection.opaque)):
        return ()
    return group.cards


def _ignored(case: Case) -> tuple[str, ...]:
    known = load_table("accelerators")["vendors"]
    return tuple(
        f"{card_name(card)}: not a vendor whose cards are known to compute"
        for card in case.facts.gpus
        if card.vendor not in known
    )


def _refuse_lost_selection(auto: _Attempt, groups: list[Group], attempts: list[_Attempt]) -> None:
    """Cards that ``--gpu`` asks for are used, or it is an error."""
    selection = groups[0].selection if groups else None
    if auto.backend != CPU or selection is None or not selection.asked:
        return
    why = "; ".join(f"{attempt.backend}: {attempt.against[0]}" for attempt in attempts if attempt.group is not None)
    raise ValueProblem(f"{selection.asked} cannot be used: {why}",
                       "choose another card, or repair what stands in the way")  # fmt: skip


def _choose_nothing(wanted: str, backend: Setting[str], devices: Setting[tuple[str, ...]]) -> Accelerator:
    chosen = CPU if wanted == AUTO else wanted
    why = f"{devices.origin} none keeps every device out"
    if wanted != AUTO:
        why = f"{backend_title(chosen)} was asked for by {backend.origin}, and {why}"
    origin = devices.origin if wanted == AUTO else backend.origin
    return Accelerator(
        chosen, backend_title(CPU), why=why, origin=origin, candidates=(Candidate(chosen, chosen=True, why=why),)
    )


# Choosing.


def _attempts(case: Case, groups: list[Group]) -> list[_Attempt]:
    """Every backend that ``auto`` thinks of, best first. The CPU is the last, and nothing speaks against it."""
    table = load_table("accelerators")
    found: list[_Attempt] = []
    for name, row in table["backends"].items():
        if row.get("system") == case.facts.os:
            asked = [group for group in groups if group.selection is not None and group.selection.asked
                     and group.vendor == row.get("only_card")]  # fmt: skip
            found.append(_Attempt(name, asked[0] if asked else None, tuple(against_backend(case, name))))
    for group in groups:
        for name in table["vendors"][group.vendor]["preference"]:
            usable, against = usable_part(case, name, group)
            found.append(_Attempt(name, usable, tuple(against)))
    found.append(_Attempt(CPU, None))
    return found


def _put_fastest_first(
    winner: _Attempt, attempts: list[_Attempt], measured: Measured | None
) -> tuple[_Attempt, list[_Attempt]]:
    """The winner and the order of attempts after measured speeds have had their say.

    Only what can be used for the winner's own cards is weighed against it; and the processor, unless the user has
    chosen these cards.
    """
    free = winner.group is None or winner.group.selection is None
    rivals = {
        attempt.backend: attempt
        for attempt in attempts
        if not attempt.against and (free if attempt.group is None else attempt.group.is_like(winner.group))
    }
    best = rivals.get(measured.faster(winner.backend, rivals)) if measured else None
    if best is None:
        return winner, attempts
    rest = [attempt for attempt in attempts if attempt is not best]
    place = rest.index(winner)
    return best, [*rest[:place], best, *rest[place:]]


def _candidates(case: Case, winner: _Attempt, attempts: list[_Attempt], *, fastest: bool = False) -> list[Candidate]:
    """Every attempt with its reason."""
    found: list[Candidate] = []
    for attempt in attempts:
        cards = f"{group_name(attempt.backend, attempt.group)}: " if attempt.group is not None else ""
        if attempt.against:
            why = cards + attempt.against[0]
        elif attempt is winner:
            why = f"the first choice that can be used for {group_name(attempt.backend, attempt.group)}"
            if fastest:
                why = f"the fastest here for {group_name(attempt.backend, attempt.group)}, as bench has measured"
            elif attempt.backend == CPU:
                why = "nothing else can be used"
        elif attempt.group is not None and attempt.group.is_like(winner.group):
            why = f"{cards}{winner.backend} comes first{'' if fastest else _preference_why(attempt.group)}"
        else:
            why = f"{cards}{winner.backend} on {group_name(winner.backend, winner.group)} comes first"
        found.append(Candidate(attempt.backend, attempt is winner, why))
    return found


def _preference_why(group: Group) -> str:
    why = load_table("accelerators")["vendors"][group.vendor].get("preference_why", "")
    return f": {why}" if why else ""


def _candidates_unasked(case: Case, chosen: str, auto: _Attempt, attempts: list[_Attempt]) -> list[Candidate]:
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


def _obey(case: Case, backend: str, groups: list[Group]) -> tuple[Group | None, list[str]]:
    """The best group for a backend that was asked for, and everything that speaks against it."""
    left_to_image = against_image(case, backend)  # image.py says what it does about that
    tried = [usable_part(case, backend, group) for group in groups]
    tried = [(group, [objection for objection in found if objection not in left_to_image]) for group, found in tried]
    for group, against in tried:
        if not against:
            return group, []
    if tried:  # what the user hides is the last to be of use
        return min(tried, key=lambda attempt: attempt[0].is_hidden)
    against = [objection for objection in against_backend(case, backend) if objection not in left_to_image]
    row = load_table("accelerators")["backends"][backend]
    if row["vendors"] and not usable_npus(case, backend):
        against.insert(0, f"no card that {row['title']} can use was found")
    return None, against


# Words.


def _auto_why(winner: _Attempt, attempts: list[_Attempt], unseen: str) -> str:
    # Of other cards than the winner's only what came before it matters.
    before = attempts[: attempts.index(winner)]
    causes: dict[str, list[str]] = {}  # one cause often rules several backends out
    passed_over = False
    for attempt in attempts:
        same = attempt.group is not None and attempt.group.is_like(winner.group)
        if attempt.against and (same or attempt in before):
            on = "" if same or attempt.group is None else f" on {group_name(attempt.backend, attempt.group)}"
            causes.setdefault(f"{on}: {attempt.against[0]}", []).append(attempt.backend)
            passed_over = passed_over or (same and attempt in before)
    if winner.group is not None:
        cards = group_name(winner.backend, winner.group)
        asked = winner.group.selection.said if winner.group.selection is not None else ""
        why = f"{winner.backend} is {'what is left' if passed_over else 'the first choice'} for {cards}"
        why += f", which {asked} {'ask' if ' and ' in asked else 'asks'} for" if asked else ""
        if winner.group.left_out:
            why += f" ({winner.group.left_out} with less memory left out)"
    elif winner.backend == CPU:
        why = "no card can be used" if causes else "no card was found" + (f": {unseen}" if unseen else "")
    else:
        why = f"{backend_title(winner.backend)} is at hand"
    return "; ".join([why, *(f"not {' or '.join(names)}{cause}" for cause, names in causes.items())])


def _unused_warnings(winner: _Attempt, attempts: list[_Attempt]) -> list[str]:
    """Cards that would have come first, and why they do not compute."""
    reasons: dict[str, list[str]] = {}
    for attempt in attempts:
        group = attempt.group
        if attempt is winner or (group is not None and group.is_like(winner.group)):
            break
        if group is not None and not group.is_hidden:
            reasons.setdefault(group_name(CPU, group), []).append(f"{attempt.backend}: {attempt.against[0]}")
    warnings = []
    for cards, lost in reasons.items():
        # One cause often spoils all backends of a card: say it once.
        causes = dict.fromkeys(sentence.partition(": ")[2] for sentence in lost)
        warnings.append(f"{cards} is unused: {next(iter(causes)) if len(causes) == 1 else '; '.join(lost)}")
    return warnings


def _variable_warnings(case: Case, backend: str, passed: Passage) -> list[str]:
    """Variables that speak of cards which are not there."""
    table = load_table("accelerators")
    seen = {card.vendor for card in case.facts.gpus}
    given = dict(passed.env)
    warnings = []
    for name, row in table["variables"].items():
        if name not in case.variables or not row.get("vendor") or row["vendor"] in seen:
            continue
        title = table["vendors"][row["vendor"]]["title"]
        if backend not in row.get("misread_by", ()) or not seen & set(table["backends"][backend]["vendors"]):
            warnings.append(f"{name} is passed as it is, but no {title} was found")
        elif given.get(name):
            warnings.append(f"{name} chooses among other cards, as {backend} has it: no {title} was found")
        else:
            warnings.append(f"{name} is not passed: no {title} was found, and {backend} would take it for its own")
    return warnings
