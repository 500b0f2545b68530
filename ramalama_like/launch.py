"""What every command that starts a server or a tool does first: decide, and then show or execute."""

from __future__ import annotations

from ramalama_like import pipeline, ui
from ramalama_like.errors import ValueProblem
from ramalama_like.fit import NEVER
from ramalama_like.fit_words import fit_text, verdict_lines
from ramalama_like.transfers import Transfers, size_text
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.facts import EngineFacts
    from ramalama_like.pipeline import Decided
    from ramalama_like.plan import Plan
    from ramalama_like.request import Request
    from ramalama_like.settings import LoadedSettings


@value
class Outline:
    """What a command that needs no plan would do: its dry run shows the lines, its real run executes them, and
    ``explain`` tells the rest."""

    loaded: LoadedSettings
    engine: EngineFacts | None = None  # None: it has nothing to do with any
    lines: tuple[Sequence[str], ...] = ()
    kind: str = "engine"  # who executes the lines: engine; chat, self (this program); files (nobody: it does the same)


def prepare(request: Request) -> Decided | None:
    """The plan to execute, with its warnings told; None after a dry run, which has shown it."""
    decided = pipeline.decide(request)
    tell_warnings((decided,))
    dryrun = decided.loaded.settings.dryrun.value
    if dryrun:
        show(decided.plan, dryrun)
        return None
    return _approve(request, decided)


def prepare_start(request: Request) -> Decided:
    """As ``prepare`` for callers who print nothing: a dry run, which a variable may ask for, is refused."""
    decided = pipeline.decide(request)
    dryrun = decided.loaded.settings.dryrun
    if dryrun.value:
        raise ValueProblem(f"{dryrun.origin} asks for a dry run, so nothing is started", "see model.plan, or unset it")
    tell_warnings((decided,))
    return _approve(request, decided)


def _approve(request: Request, decided: Decided) -> Decided:
    """The decision that can be executed, its models fetched. Raises AppError."""
    pipeline.check_executable(request, decided)
    if pull_pending(decided):
        decided = pipeline.decide(request, pulled=True)
        pipeline.check_executable(request, decided)
    _announce_fit(request, decided.plan)
    _announce_port(request, decided)
    return decided


def pull_pending(decided: Decided) -> bool:
    """Fetch the models of a plan that are still at a hub; whether there were any. Raises AppError."""
    plan, merged = decided.plan, decided.loaded.settings
    names = [(plan.model, decided.request.model), (plan.draft, merged.model_draft.value)]
    pending = [name for model, name in names if model and model.pending]
    if pending:
        from ramalama_like import settings
        from ramalama_like.models import find_reference
        from ramalama_like.models.pull import pull_model

        lookup = settings.find_lookup(merged)
        for name in pending:
            reference = find_reference(name, lookup)
            ui.say(f"Pulling {reference.canonical}")
            progress = Transfers()
            try:
                pulled = pull_model(reference, lookup, progress, verify=merged.verify.value)
            finally:
                progress.stop()
            for note in pulled.notes:
                ui.say(f"Note: {note}")
    return bool(pending)


def tell_warnings(all_decided: Sequence[Decided]) -> None:
    """What there is to be said about plans before they are executed, each sentence once."""
    told = [text for decided in all_decided for text in (*decided.loaded.warnings, *decided.plan.warnings)]
    for warning in dict.fromkeys(told):
        ui.warn(warning)
    if all_decided and all_decided[0].plan.engine.kind == "none":
        ui.say(f"Running without a container: {all_decided[0].plan.engine.why}")


def show_several(plans: Sequence[Plan], form: str) -> None:
    """The dry run of a command that executes several plans: one after the other as lines, or as a list in JSON."""
    if form != "json":
        for plan in plans:
            show(plan, form)
        return
    import json

    from ramalama_like.render.document import render_document

    ui.write(json.dumps([render_document(plan) for plan in plans], indent=2) + "\n")
    for plan in plans[:1]:  # they have the same models
        _tell_notes(plan)


def show(plan: Plan, form: str) -> None:
    """The dry run: exactly what would be executed, as shell lines or as JSON."""
    if form == "json":
        import json

        from ramalama_like.render.document import render_document

        ui.write(json.dumps(render_document(plan), indent=2) + "\n")
    else:
        from ramalama_like.render.argv import render_steps
        from ramalama_like.render.shell import render_shell

        ui.write(render_shell(render_steps(plan)))
    _tell_notes(plan)


def _tell_notes(plan: Plan) -> None:
    if plan.fit and plan.fit.verdict == NEVER:
        ui.say(f"Note: {plan.model.reference} does not fit into memory, so only --force would start it")
    for model in (plan.model, plan.draft):
        if model and model.problem:
            ui.say(f"Note: {model.reference} has not been resolved: {model.problem}")
        elif model and model.pending:
            size = size_text(model.pending.size_bytes) if model.pending.size_bytes else "of unknown size"
            ui.say(f"Note: {model.reference} would be pulled first ({size})")
            if model.uncertain:
                ui.say(f"Note: the path of the model may be another one: {model.uncertain}")
    if plan.endpoint and plan.endpoint.socket:
        import os.path
        from shlex import quote

        folder = os.path.dirname(plan.endpoint.socket)
        ui.say(f"Note: to run these lines by hand, first make the socket's folder: mkdir -pm 700 {quote(folder)}")


def show_outline(request: Request, outline: Outline) -> None:
    """The dry run of a command that needs no plan: its lines, or the same as JSON."""
    lines = outline.lines
    if outline.loaded.settings.dryrun.value == "json":
        import json

        steps = [{"kind": outline.kind, "argv": list(line)} for line in lines]
        ui.write(json.dumps({"command": request.command, "steps": steps}, indent=2) + "\n")
    else:
        from ramalama_like.render.shell import render_line

        ui.write("".join(f"{render_line(line)}\n" for line in lines))


def show_if_dry(request: Request, outline: Outline) -> bool:
    """Tell the warnings; in a dry run show the lines. Whether it was one."""
    for warning in outline.loaded.warnings:
        ui.warn(warning)
    if outline.loaded.settings.dryrun.value:
        show_outline(request, outline)
        return True
    return False


def _announce_fit(request: Request, plan: Plan) -> None:
    if plan.fit and request.command in ("run", "serve"):
        ui.say("\n".join((f"Needs {fit_text(plan.fit)}", *verdict_lines(plan.fit))))


def _announce_port(request: Request, decided: Decided) -> None:
    endpoint, wanted = decided.plan.endpoint, decided.loaded.settings.port
    if endpoint and endpoint.port and endpoint.port != wanted.value and "port" not in request.given:
        ui.say(f"Port {wanted.value} is taken; using {endpoint.port}")
