"""``doctor``: is all here that is needed to run models, and if not, what repairs it."""

from __future__ import annotations

from ramalama_like import health, pipeline, settings, ui
from ramalama_like.errors import AppError, Interrupted
from ramalama_like.examine import Wanted, examine
from ramalama_like.examine.engine import image_question, info_question
from ramalama_like.health import Case, Finding, Problem
from ramalama_like.launch import Outline, show_outline
from ramalama_like.options import options_of
from ramalama_like.reference import DEMO
from ramalama_like.render.argv import render_steps
from ramalama_like.request import Request
from ramalama_like.smoke import run_smoke
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.facts import EngineFacts, HostFacts
    from ramalama_like.options import Settings
    from ramalama_like.plan import Plan
    from ramalama_like.settings import LoadedSettings

WIDTH = 80
COLORS = {"ok": "32", "warn": "33", "fail": "31", "skip": "2"}
NOT_FOR_THE_PLAN = ("json", "smoke", "dryrun")


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    asked = loaded.settings
    if asked.dryrun.value:
        show_outline(request, outline(request))
        return 0
    case = _look(request, loaded)
    findings = health.check_all(case)
    if asked.smoke.value:
        findings.append(_smoke(request, case, findings))
    if asked.json.value:
        import json

        ui.write(json.dumps(to_plain(findings), indent=2) + "\n")
    else:
        ui.write(_as_text(findings, colored=ui.is_terminal(1) and not settings.no_color()))
    return 1 if any(finding.status == "fail" for finding in findings) else 0


def outline(request: Request) -> Outline:
    """What the command would do: ask the engine about itself and the image, and with --smoke run the demo model.

    Raises AppError.
    """
    loaded = settings.load_settings(request)
    facts = pipeline.find_facts(loaded.settings)
    engine, _ = _engine(loaded.settings, facts)
    plan, _ = _plan(request, engine)
    lines: list[Sequence[str]] = []
    if engine.program and facts.is_this_machine:
        lines.append(info_question(engine))
        lines += [image_question(engine, plan.image.ref)] if plan is not None and plan.image is not None else []
    if loaded.settings.smoke.value and plan is not None:
        lines.append(render_steps(plan)[0].argv)
    return Outline(loaded, engine, tuple(lines))


def _look(request: Request, loaded: LoadedSettings) -> Case:
    """Everything that is judged."""
    merged = loaded.settings
    facts = pipeline.find_facts(merged)
    engine, engine_problem = _engine(merged, facts)
    plan, plan_problem = _plan(request, engine)
    observed = None
    if facts.is_this_machine:
        container = plan.container if plan is not None else None
        observed = examine(Wanted(
            engine=engine if engine_problem is None else pipeline.no_engine(engine_problem.message), facts=facts,
            image=plan.image.ref if plan is not None and plan.image is not None else "",
            nodes=container.device_nodes if container is not None else (),
            store=merged.store.value or settings.default_store(), host=merged.host.value, first_port=merged.port.value,
            last_port=min(merged.port.value + pipeline.PORTS_TRIED, 65535), pulls=merged.pull.value != "never",
            verify=merged.tls_verify.value,
        ))  # fmt: skip
    return Case(settings=merged, facts=facts, engine=engine, engine_problem=engine_problem, plan=plan,
                plan_problem=plan_problem, observed=observed)  # fmt: skip


def _engine(merged: Settings, facts: HostFacts) -> tuple[EngineFacts, Problem | None]:
    """The engine; where it is missing or broken a current one, so that the rest can be judged, and the problem."""
    try:
        return pipeline.find_engine(merged, facts), None
    except Interrupted:
        raise
    except AppError as error:
        return pipeline.assume_engine(merged), Problem(error.message, error.hint)


def _plan(request: Request, engine: EngineFacts) -> tuple[Plan | None, Problem | None]:
    """The plan of `run demo`, or why there is none. A port belongs to `serve`: it has a check of its own."""
    try:
        return pipeline.decide(_run_request(request, without=("port", "host")), engine=engine).plan, None
    except Interrupted:
        raise
    except AppError as error:
        return None, Problem(error.message, error.hint)


def _run_request(request: Request, *, without: tuple[str, ...] = ()) -> Request:
    understood = options_of("run")
    kept = {name: given for name, given in request.given.items()
            if name in understood and name not in (*NOT_FOR_THE_PLAN, *without)}  # fmt: skip
    return Request("run", (DEMO,), kept)


def _smoke(request: Request, case: Case, findings: Sequence[Finding]) -> Finding:
    needed = ("engine", "version", "accelerator")
    if case.observed is None:
        return Finding("smoke", "skip", "not run: another machine")
    if any(finding.status == "fail" for finding in findings if finding.check in needed):
        return Finding("smoke", "skip", "not run: repair the above first")
    again = "ramalama-like --debug run demo hello"
    try:
        result = run_smoke(_run_request(request))
    except Interrupted:
        raise
    except AppError as error:
        return Finding("smoke", "fail", error.message, error.hint or "models cannot be run", again)
    if result.problem:
        return Finding("smoke", "warn", result.told, result.problem, again)
    return Finding("smoke", "ok", result.told)


def _as_text(findings: Sequence[Finding], *, colored: bool) -> str:
    """One line for each finding, and behind them what to do."""
    column = max(len(finding.check) for finding in findings)
    lines: list[str] = []
    for finding in findings:
        word = finding.status.ljust(4)
        shown = f"\x1b[{COLORS[finding.status]}m{word}\x1b[0m" if colored else word
        first, *rest = _wrapped(finding.what, WIDTH - 8 - column)
        lines.append(f"{shown}  {finding.check.ljust(column)}  {first}")
        lines += [f"{'':{column + 8}}{line}" for line in rest]
    for finding in findings:
        if finding.status in ("warn", "fail"):
            lines += ["", *_wrapped(f"{finding.check}: {finding.what}", WIDTH)]
            lines += [f"  {line}" for line in _wrapped(finding.why, WIDTH - 2)]
            lines += [f"  Run: {ui.one_line(finding.command)}"] if finding.command else []
    return "".join(f"{line}\n" for line in lines)


def _wrapped(text: str, width: int) -> list[str]:
    from textwrap import wrap

    return wrap(ui.one_line(text), width, break_on_hyphens=False) or [""]
