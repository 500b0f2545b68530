"""``fit``: how much memory a model needs, and how much of it fits where it would be computed."""

from __future__ import annotations

from ramalama_like import pipeline, settings, ui
from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.fit import NEVER, TOO_LONG, TOO_MANY, UNKNOWN, device_place, main_place, make_fit
from ramalama_like.fit_words import size_text, verdict_lines
from ramalama_like.launch import Outline
from ramalama_like.memory_options import read_memory_options
from ramalama_like.models import find_here, find_reference, resolve_model
from ramalama_like.models.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.facts import HostFacts
    from ramalama_like.fit import Fit, Place
    from ramalama_like.model import Model
    from ramalama_like.options import Settings
    from ramalama_like.request import Request

CANNOT = (NEVER, TOO_LONG, TOO_MANY)


def execute(request: Request) -> int:
    """Run the command; its exit code: 22 where the model fits nowhere. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    merged = loaded.settings
    model = _find_model(request, merged)
    if model.shape is None:
        raise ValueProblem(f"{request.model}: the header does not tell how much memory the model needs",
                           "only language models in GGUF can be measured")  # fmt: skip
    facts = pipeline.find_facts(merged)
    options = read_memory_options(merged, "serve")
    fits = [
        make_fit([model.shape], options, place, facts, more_bytes=model.projector_bytes, thorough=True)
        for place in _places(merged, facts)
    ]
    if merged.json.value:
        import json

        ui.write(json.dumps(_document(model, fits), indent=2) + "\n")
    else:
        cache = " and ".join(dict.fromkeys((options.key_type, options.value_type)))
        ui.write("".join(f"{line}\n" for line in _lines(model, fits, cache)))
    return 22 if all(fit.verdict in CANNOT for fit in fits) else 0


def outline(request: Request) -> Outline:
    """What the command would do: look, and start nothing. Raises AppError."""
    return Outline(settings.load_settings(request))


def _find_model(request: Request, merged: Settings) -> Model:
    lookup = settings.find_lookup(merged)
    reference = find_reference(request.model, lookup)
    here = reference.transport in ("http", "https") and find_here(reference, Store(lookup.store), lookup)
    if here is None and not lookup.access.offline:
        from ramalama_like.models.remote import resolve_remote

        patience = {} if merged.timeout.is_default else {"patience_s": merged.timeout.value}
        return resolve_remote(f"{reference.transport}://{reference.name}", **patience)
    model = resolve_model(request.model, lookup)
    if model.problem:
        raise ValueProblem(model.problem, model.hint, exit_code=model.exit_code)
    return model


def _places(merged: Settings, facts: HostFacts) -> list[Place]:
    """Where the model would be computed, and the CPU unless a backend was asked for."""
    try:
        engine = pipeline.find_engine(merged, facts)
    except AppError as error:
        from ramalama_like.facts import EngineFacts

        # What fits does not depend on the engine, only which devices could be passed does.
        engine = EngineFacts(kind="none", why=error.message)
    accelerator = pipeline.find_accelerator(merged, facts, engine)
    for warning in accelerator.warnings:
        ui.warn(warning)
    device = device_place(accelerator)
    if device is None:
        return [main_place(facts)]
    return [device] if not merged.backend.is_default and merged.backend.value != "auto" else [device, main_place(facts)]


def _lines(model: Model, fits: list[Fit], cache: str) -> list[str]:
    context = fits[0].context
    own = f", made for {model.context_length}" if model.context_length not in (0, context) else ""
    lines = [f"{model.alias}: {len(model.shape.layers) if model.shape else 0} layers, "
             f"context of {context} tokens{own}, cache {cache}"]  # fmt: skip
    for fit in fits:
        place, usable = fit.place, fit.place.usable_bytes
        name = place.name if place.backend == "cpu" else f"{place.name}, {place.backend}"
        rows = [
            ("weights", size_text(fit.weights_bytes)),
            ("context cache", size_text(fit.cache_bytes)),
            ("overhead", size_text(fit.overhead_bytes)),
            ("total", size_text(fit.total_bytes)),
            ("memory usable", "unknown" if usable is None else size_text(usable)),
        ]
        if place.devices:
            rows.append(("in main memory", size_text(fit.main_bytes)))
        rows.append(("verdict", fit.verdict if fit.verdict != UNKNOWN else "unknown, as the memory is"))
        if fit.fitting_context is not None:
            most = " (the model's most)" if fit.fitting_context >= (model.context_length or 1 << 60) else ""
            rows.append(("context that fits", f"{fit.fitting_context} tokens{most}"))
        if fit.fitting_layers is not None:
            rows.append(("layers that fit", f"{fit.fitting_layers} of {fit.layers}"))
        lines += ["", name, *(f"  {what:<18} {text}" for what, text in rows)]
        lines += [f"  {more}" for more in verdict_lines(fit)]
    return [ui.one_line(line) if line[:1] != " " else f"  {ui.one_line(line)}" for line in lines]


def _document(model: Model, fits: list[Fit]) -> dict[str, object]:
    return {
        "model": model.reference,
        "alias": model.alias,
        "architecture": model.architecture,
        "size_bytes": model.size_bytes,
        "context_length": model.context_length,
        "places": [
            {
                "name": fit.place.name,
                "backend": fit.place.backend,
                "devices": fit.place.devices,
                "usable_bytes": fit.place.usable_bytes,
                "usable_source": fit.place.source,
                "main_memory_bytes": fit.memory_bytes,
                "verdict": fit.verdict,
                "context": fit.context,
                "weights_bytes": fit.weights_bytes,
                "cache_bytes": fit.cache_bytes,
                "overhead_bytes": fit.overhead_bytes,
                "total_bytes": fit.total_bytes,
                "in_main_memory_bytes": fit.main_bytes,
                "served_context": fit.served_context,
                "fitting_context": fit.fitting_context,
                "fitting_layers": fit.fitting_layers,
                "layers": fit.layers,
                "expert_layers": fit.expert_layers,
            }
            for fit in fits
        ],
    }
