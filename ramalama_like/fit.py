"""Whether a model fits into the memory of a machine, and how much of it: the verdict over ``memory.py``'s figures.

What llama-server does by itself is foreseen, not decided: with ``-fit on`` (its default) it keeps 1024 MiB of a device
free, first shortens the context where none was asked for (not below 4096 tokens), then leaves layers in main memory
(common/fit.cpp, build 11669).
"""

from __future__ import annotations

from ramalama_like.cards import card_name
from ramalama_like.data import load_table
from ramalama_like.memory import PADDING, Need, Part, count_cells, make_need
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ramalama_like.accelerator import Accelerator
    from ramalama_like.facts import Gpu, HostFacts
    from ramalama_like.memory_options import MemoryOptions
    from ramalama_like.shape import Shape

GIB = 1 << 30
LONGEST_CONTEXT = 1 << 24  # tokens; where the search ends for a model that does not tell its own

# Verdicts.
FITS = "fits"
SHORTER = "fits with a shorter context"  # which the server chooses by itself
PARTLY = "fits partly"  # some layers stay in main memory
TOO_LONG = "the context is too long"  # that was asked for
TOO_MANY = "too many layers"  # that were asked for
NEVER = "does not fit"
UNKNOWN = "unknown"


@value
class Place:
    """Where a model is computed, and the memory that it may fill there."""

    name: str  # for people
    backend: str
    devices: int  # cards that share the work; 0: the CPU, in main memory
    usable_bytes: int | None  # of all devices together, or main memory
    own_bytes: int | None  # that part of it which is no main memory
    source: str = ""  # where the size comes from


@value
class Limit:
    """How much of main memory a container may use. The kernel kills what exceeds it."""

    size_bytes: int
    origin: str  # --memory, $RAMALAMA_MEMORY, file:line


@value
class Fit:
    """What a model takes in one place. Sizes are bytes, contexts tokens; layers count the output as one."""

    place: Place
    verdict: str
    context: int  # that was asked for, or the model's own; of all slots together
    context_asked: bool
    layers: int
    weights_bytes: int  # in the place, with all layers (or as many as were asked for) there
    cache_bytes: int
    overhead_bytes: int
    main_bytes: int  # in main memory besides, where the place is a device
    memory_bytes: int | None  # of main memory; None: unknown
    limit: Limit | None = None  # of the container, where it leaves less of main memory than there is
    served_context: int = 0  # what the server makes of the context by itself; 0: not looked for
    fitting_context: int | None = None  # the longest with which all layers fit; 0: none does; None: not looked for
    fitting_layers: int | None = None  # with the context that there will be; None: not looked for
    expert_layers: int | None = None  # whose experts have to stay in main memory so that everything else fits
    least: Need | None = None  # everything in all memory together with the shortest context, where that does not fit

    @property
    def total_bytes(self) -> int:
        """All that is taken in the place."""
        return self.weights_bytes + self.cache_bytes + self.overhead_bytes

    @property
    def capacity_bytes(self) -> int | None:
        """Memory of the place and main memory together, what they share counted once; None: unknown."""
        if self.memory_bytes is None or self.place.own_bytes is None:
            return None
        if self.limit is not None and not self.place.devices:
            return self.limit.size_bytes
        return self.memory_bytes + self.place.own_bytes


def device_place(accelerator: Accelerator) -> Place | None:
    """The cards that compute, as one place; None where the CPU does."""
    if accelerator.backend == "cpu":
        return None
    cards = accelerator.cards
    name = " and ".join(dict.fromkeys(card_name(card).partition(" at ")[0] for card in cards)) or accelerator.name
    if len(cards) > 1:
        name = f"{len(cards)} cards ({name})"
    usable = [_usable_bytes(card) for card in cards]
    if not cards or None in usable:
        return Place(name, accelerator.backend, max(1, len(cards)), None, None, "unknown")
    own = [card.vram_bytes or 0 if card.integrated else size for card, size in zip(cards, usable, strict=True)]
    told = all(card.usable_bytes is not None for card in cards)
    return Place(
        name, accelerator.backend, len(cards), sum(size or 0 for size in usable), sum(size or 0 for size in own),
        "told by the driver" if told else "known by the card's name",
    )  # fmt: skip


def _usable_bytes(card: Gpu) -> int | None:
    known: int = load_table("card_memory")["gib"].get(card.name, 0)
    return card.usable_bytes if card.usable_bytes is not None or not known else known * GIB


def main_place(facts: HostFacts, limit: Limit | None = None) -> Place:
    """The CPU and main memory, as much of it as the container may use."""
    if _binding(limit, facts) is not None and limit is not None:
        return Place("CPU", "cpu", 0, limit.size_bytes, 0, f"the container's limit ({limit.origin})")
    told = "unknown" if facts.memory_bytes is None else "installed, or the limit of this group of processes"
    return Place("CPU", "cpu", 0, facts.memory_bytes, 0, told)


def _binding(limit: Limit | None, facts: HostFacts) -> Limit | None:
    """The limit where it leaves less than there is."""
    roomy = limit is None or (facts.memory_bytes is not None and facts.memory_bytes <= limit.size_bytes)
    return None if roomy else limit


def make_fit(
    shapes: Sequence[Shape], options: MemoryOptions, place: Place, facts: HostFacts, *, more_bytes: int = 0,
    thorough: bool = False, limit: Limit | None = None,
) -> Fit:  # fmt: skip
    """What the model takes in a place, and whether it fits.

    ``shapes`` are the model's and its draft model's, ``more_bytes`` other weights (a projector). Only a ``thorough``
    look tells the longest context and the layers that fit where everything fits anyway: it takes milliseconds.
    ``limit`` is the container's: nothing in main memory may exceed it.
    """
    limit = _binding(limit, facts)
    look = _Look(shapes, options, place, facts.memory_bytes, more_bytes, limit)
    context = count_cells(shapes[0], options).context
    need = look.need(context, look.layers)
    part = need.device if place.devices else need.main
    fit = Fit(
        place=place, verdict=UNKNOWN, context=context, context_asked=bool(options.context or options.slot_context),
        layers=look.all_layers, weights_bytes=part.weights, cache_bytes=part.cache, overhead_bytes=part.overhead,
        main_bytes=need.main.total if place.devices else 0, memory_bytes=facts.memory_bytes,
        limit=limit,
    )  # fmt: skip
    if place.usable_bytes is None:
        return fit
    fits = look.has_room(need)
    if fits and not thorough:
        return replace(fit, verdict=FITS)
    longest = look.longest_context(context)
    # What was asked for stays; otherwise the server shortens the context by itself.
    served = context if fits or look.is_fixed else min(context, max(longest, options.least_context))
    fit = replace(
        fit, served_context=served, fitting_context=longest,
        fitting_layers=look.most_layers(served) if place.devices else None,
        expert_layers=look.fewest_expert_layers(served),
    )  # fmt: skip
    if fits:
        return replace(fit, verdict=FITS)
    least = look.least(min(context, options.least_context))
    capacity = fit.capacity_bytes
    everything = least.device.total + least.main.total
    if (capacity is not None and everything > capacity) or look.exceeds_limit(least):
        return replace(fit, verdict=NEVER, least=least)
    verdict = _verdict(fit, look)
    return replace(fit, verdict=verdict, fitting_context=max(longest, context) if verdict == FITS else longest)


def _verdict(fit: Fit, look: _Look) -> str:
    """The verdict on what fits somehow, but not as it was asked for."""
    served, capacity = fit.served_context, fit.capacity_bytes
    if look.limit is not None and look.exceeds_limit(look.need(served, fit.fitting_layers or look.layers)):
        return TOO_LONG  # the server sees the machine's memory, not the container's limit, and does not adjust to it
    if not fit.place.devices and served < fit.context:
        return SHORTER
    if not fit.place.devices:
        # What cannot be made shorter is tried, and then no memory is left free.
        return FITS if look.need(served, look.layers).main.total <= (fit.place.usable_bytes or 0) else TOO_LONG
    if served < fit.context and (fit.fitting_context or 0) >= served:
        return SHORTER
    if look.options.layers is not None or not look.options.adjusts:
        return TOO_MANY
    rest = look.need(served, fit.fitting_layers or 0)
    return TOO_LONG if capacity is not None and rest.device.total + rest.main.total > capacity else PARTLY


class _Look:
    """One model in one place: counting with different contexts and layers."""

    def __init__(
        self, shapes: Sequence[Shape], options: MemoryOptions, place: Place, memory_bytes: int | None, more_bytes: int,
        limit: Limit | None = None,
    ) -> None:  # fmt: skip
        self.shapes = shapes
        self.options = options
        self.place = place
        self.capacity = None if memory_bytes is None or place.own_bytes is None else memory_bytes + place.own_bytes
        self.more = Part(weights=more_bytes)
        self.limit = limit
        self.all_layers = len(shapes[0].layers) + 1
        self.layers = self.all_layers if options.layers is None else min(options.layers, self.all_layers)
        # To a container's limit the server does not adjust: it sees all of main memory.
        blind = limit is not None and not place.devices
        self.is_fixed = bool(options.context or options.slot_context) or not options.adjusts or blind
        # The server keeps memory free only where there is something to adjust; what was asked for is tried as it is.
        adjusts = (
            options.adjusts and not blind and not (self.is_fixed and (options.layers is not None or not place.devices))
        )
        self.room = (place.usable_bytes or 0) - (options.margin_bytes if adjusts else 0)

    def need(self, context: int, layers: int, expert_layers: int | None = None) -> Need:
        """Everything that is taken; of a draft model all layers are on the device."""
        options = self.options if expert_layers is None else replace(self.options, expert_layers=expert_layers)
        device = main = Part()
        for number, shape in enumerate(self.shapes):
            part = make_need(
                shape, options, count_cells(shape, options, context), devices=self.place.devices,
                layers=len(shape.layers) + 1 if number else layers,
            )  # fmt: skip
            device, main = _sum(device, part.device), _sum(main, part.main)
        return Need(_sum(device, self.more), main) if self.place.devices else Need(device, _sum(main, self.more))

    def has_room(self, need: Need) -> bool:
        """Whether the place has room, and main memory for the rest."""
        if self.exceeds_limit(need):
            return False
        if not self.place.devices:
            return need.main.total <= self.room
        everything = need.device.total + need.main.total
        return need.device.total <= self.room and (self.capacity is None or everything <= self.capacity)

    def exceeds_limit(self, need: Need) -> bool:
        """Whether main memory would take more than the container may use."""
        return self.limit is not None and need.main.total > self.limit.size_bytes

    def longest_context(self, context: int) -> int:
        """The longest context with which all layers fit (or as many as were asked for); 0: none."""
        longest = max(context, self.shapes[0].trained_context or LONGEST_CONTEXT)
        blocks = _most(1, longest // PADDING, lambda blocks: self.has_room(self.need(blocks * PADDING, self.layers)))
        return blocks * PADDING

    def most_layers(self, context: int) -> int:
        """The most layers for which the device has room; 0 also where it has none for its own buffers."""
        return _most(0, self.all_layers, lambda layers: self.need(context, layers).device.total <= self.room)

    def fewest_expert_layers(self, context: int) -> int | None:
        """How many layers have to leave their experts in main memory so that all else fits on the device.

        None where nothing has to, where the model has no experts, and where that would not do.
        """
        counts = [number + 1 for number, layer in enumerate(self.shapes[0].layers) if layer.expert_bytes]
        if not self.place.devices or not counts or self.has_room(self.need(context, self.all_layers)):
            return None
        # The most of the last layers whose experts can be on the device; those before them leave theirs.
        stay = _most(
            0, len(counts) - 1, lambda stay: self.has_room(self.need(context, self.all_layers, counts[-1 - stay]))
        )
        return counts[-1 - stay] if self.has_room(self.need(context, self.all_layers, counts[-1 - stay])) else None

    def least(self, context: int) -> Need:
        """Everything wherever it is, with as many layers on the device as it holds without keeping any memory free."""
        usable = self.place.usable_bytes or 0
        layers = 0
        if self.place.devices:
            layers = _most(0, self.all_layers, lambda layers: self.need(context, layers).device.total <= usable)
        return self.need(context, layers)


def _most(least: int, most: int, good: Callable[[int], bool]) -> int:
    """The largest number that is good, where all below a good one are good; 0 where not even ``least`` is."""
    if most < least or not good(least):
        return 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if good(middle) else (least, middle - 1)
    return least


def whole(need: Need) -> Part:
    """What is taken in all places together."""
    return _sum(need.device, need.main)


def _sum(one: Part, other: Part) -> Part:
    return Part(one.weights + other.weights, one.cache + other.cache, one.overhead + other.overhead)
