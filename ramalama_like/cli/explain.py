"""``explain COMMAND…``: every decision that a command line leads to, with its reason and origin."""

from __future__ import annotations

from ramalama_like import pipeline, settings, ui
from ramalama_like.cli.parse import parse_argv
from ramalama_like.launch import Outline
from ramalama_like.options import ALL, COMMANDS, options_of
from ramalama_like.reference import plain_url
from ramalama_like.render.argv import render_steps
from ramalama_like.render.shell import render_line
from ramalama_like.request import Request
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.accelerator import Candidate
    from ramalama_like.options import Option, Setting
    from ramalama_like.pipeline import Decided

Row = tuple[str, str, str, str]  # what, value, why, origin


@value
class Explained:
    """Everything that is told about one command line."""

    command: str
    decisions: tuple[Row, ...]
    candidates: tuple[Candidate, ...]  # backends that were considered
    ignored: tuple[str, ...]  # cards that were not
    warnings: tuple[str, ...]
    files: tuple[str, ...]  # configuration that was read
    steps: tuple[tuple[str, tuple[str, ...]], ...]  # kind and argument list of what would be executed


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    inner = parse_argv(request.arguments)
    # Global options before `explain` count for the command, below its own.
    above = {name: given for name, given in request.given.items() if name != "json"}
    inner = Request(inner.command, inner.arguments, {**above, **inner.given})
    if COMMANDS[inner.command].starts:
        explained = [explain_decided(pipeline.decide(single)) for single in pipeline.split_backends(inner)]
    else:
        explained = [_of_outline(inner)]
    ui.write(_as_json(explained) if "json" in request.given else "\n".join(map(as_text, explained)))
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: look, and start nothing. Raises AppError."""
    return Outline(settings.load_settings(request))


def explain_decided(decided: Decided) -> Explained:
    """What is told about a plan."""
    plan = decided.plan
    return Explained(
        command=plan.command, decisions=plan.decisions, candidates=plan.accelerator.candidates,
        ignored=plan.accelerator.ignored,
        warnings=(*decided.loaded.warnings, *plan.warnings), files=decided.loaded.files,
        steps=tuple((step.kind, step.argv) for step in render_steps(plan)),
    )  # fmt: skip


def _of_outline(inner: Request) -> Explained:
    from ramalama_like.main import command_module

    drawn: Outline = command_module(inner.command).outline(inner)
    merged, rows = drawn.loaded.settings, []
    if drawn.engine is not None:
        told = f"{drawn.engine.kind} {drawn.engine.version_text}".strip()
        rows.append(("engine", told, drawn.engine.why, merged.engine.origin))
    for name, option in options_of(inner.command).items():
        setting: Setting[object] = getattr(merged, name)
        # A default counts only where it says something, and where the command asks for the option itself.
        silent = option.commands == ALL or option.not_yet or setting.value in ("", None, False, ())
        if name != "engine" and not (setting.is_default and silent):
            why = "nothing else was asked for" if setting.is_default else "as asked"
            rows.append((name, _shown(option, setting), why, setting.origin))
    steps = tuple((drawn.kind, tuple(line)) for line in drawn.lines)
    return Explained(inner.command, tuple(rows), (), (), drawn.loaded.warnings, drawn.loaded.files, steps)


def _shown(option: Option, setting: Setting[object]) -> str:
    if option.secret:
        return "set, and not shown"
    if isinstance(setting.value, bool):
        return "yes" if setting.value else "no"
    if isinstance(setting.value, tuple):
        return " ".join(map(str, setting.value))
    return plain_url(str(setting.value))  # such as --url and --model


def as_text(explained: Explained) -> str:
    """It as lines for people."""
    lines = []
    for what, told, why, origin in explained.decisions:
        lines.append(f"{what}: {told}")
        lines.append(f"    why: {why}" + ("" if origin == "default" else f" ({origin})"))
        if what == "accelerator":
            losers = [candidate for candidate in explained.candidates if not candidate.chosen]
            lines += dict.fromkeys(f"    not {candidate.backend}: {candidate.why}" for candidate in losers)
            lines += [f"    not looked at: {card}" for card in explained.ignored]
    lines += [f"warning: {warning}" for warning in explained.warnings]
    lines += [f"configuration: {file}" for file in explained.files]
    lines += [f"step {number}: {render_line(argv)}" for number, (_, argv) in enumerate(explained.steps, 1)]
    return "".join(f"{ui.spelled(line)}\n" for line in lines or [f"{explained.command} decides nothing"])


def _as_json(explained: Sequence[Explained]) -> str:
    """An object, or a list where a command line leads to several plans."""
    import json

    reports = [_report(one) for one in explained]
    return json.dumps(reports[0] if len(reports) == 1 else reports, indent=2) + "\n"


def _report(explained: Explained) -> dict[str, object]:
    from ramalama_like.value import to_plain

    return {
        "command": explained.command,
        "decisions": {what: {"value": told, "why": why, "origin": origin}
                      for what, told, why, origin in explained.decisions},
        "candidates": to_plain(explained.candidates),
        "ignored": list(explained.ignored),
        "warnings": list(explained.warnings),
        "configuration": list(explained.files),
        "steps": [{"kind": kind, "argv": list(argv)} for kind, argv in explained.steps],
    }  # fmt: skip
