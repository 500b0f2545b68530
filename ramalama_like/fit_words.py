"""What ``fit.py`` found, in words for people."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.fit import NEVER, PARTLY, SHORTER, TOO_LONG, TOO_MANY, whole
from ramalama_like.memory import Part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.fit import Fit

GIB, MIB = 1 << 30, 1 << 20


def size_text(size: int) -> str:
    """A size for people: 5.1 GiB, 340 MiB."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"


def parts_text(whole: int, part: Part) -> str:
    """``5.1 GiB (weights 4.4, context 0.5, overhead 0.2)``, all in the unit of the whole."""

    def number(size: int) -> str:
        return f"{size / GIB:.1f}" if whole >= GIB else f"{size / MIB:.0f}"

    return (f"{size_text(whole)} (weights {number(part.weights)}, context {number(part.cache)}, "
            f"overhead {number(part.overhead)})")  # fmt: skip


def fit_text(fit: Fit) -> str:
    """What is needed where, in one line."""
    part = Part(fit.weights_bytes, fit.cache_bytes, fit.overhead_bytes)
    usable = fit.place.usable_bytes
    of = "" if usable is None else f" of {size_text(usable)}"
    limited = f" ({fit.limit.origin})" if fit.limit is not None and not fit.place.devices else ""
    return f"{parts_text(fit.total_bytes, part)}{of} on {fit.place.name}{limited}"


def verdict_lines(fit: Fit) -> tuple[str, ...]:
    """What follows from the verdict; nothing where all is well or nothing is known."""
    longest, layers = fit.fitting_context or 0, fit.fitting_layers or 0
    shorter: tuple[str, ...] = ()
    if fit.served_context < fit.context:
        shorter = (f"The server shortens the context of {fit.context} tokens to about {fit.served_context}",)
    if fit.verdict == SHORTER:
        return shorter
    if fit.verdict == PARTLY:
        lines = (f"{layers} of {fit.layers} layers fit on it; the rest is computed in main memory", *shorter)
        if fit.expert_layers is None:
            return lines
        return (*lines, f"With --ncmoe {fit.expert_layers} only experts would have to stay in main memory")
    if fit.verdict == TOO_LONG:
        less = f"--ctx-size {longest} does" if longest else "not even the shortest does"
        where = f" into what {fit.limit.origin} allows" if fit.limit is not None else ""
        return (f"A context of {fit.context} tokens does not fit{where}; {less}",)
    if fit.verdict == TOO_MANY:
        return (f"Only {layers} of {fit.layers} layers fit on it: leave --ngl out, or give --ngl {layers}",)
    return ()


def refuse_unfit(fit: Fit | None, model: str) -> None:
    """Raise ValueProblem for a model that does not fit at all, with the figures."""
    if fit is None or fit.verdict != NEVER or fit.least is None:
        return
    least, limit, capacity = whole(fit.least), fit.limit, fit.capacity_bytes
    if limit is not None and fit.least.main.total > limit.size_bytes:
        beside = f" of main memory beside {fit.place.name}" if fit.place.devices else ""
        raise ValueProblem(
            f"{model} needs at least {parts_text(fit.least.main.total, fit.least.main)}{beside}, and {limit.origin} "
            f"allows {size_text(limit.size_bytes)}",
            "allow more, choose a smaller model or quantization, or try it all the same with --force",
        )
    if capacity is None:
        return
    where = f"{fit.place.name} and main memory hold" if fit.place.devices else "main memory holds"
    raise ValueProblem(
        f"{model} needs at least {parts_text(least.total, least)}, and {where} {size_text(capacity)}",
        "choose a smaller model or quantization, or try it all the same with --force",
    )
