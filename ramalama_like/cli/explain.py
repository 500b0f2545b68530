"""``explain COMMAND…``: every decision that a command line leads to, with its reason and origin."""

from __future__ import annotations

from ramalama_like import pipeline, ui
from ramalama_like.cli.parse import parse_argv
from ramalama_like.errors import UsageError
from ramalama_like.options import COMMANDS
from ramalama_like.render.argv import render_steps
from ramalama_like.render.shell import render_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    inner = parse_argv(request.arguments)
    if not COMMANDS[inner.command].starts:
        able = ", ".join(name for name, command in COMMANDS.items() if command.starts)
        raise UsageError(f"{inner.command} decides nothing that could be explained", f"explain one of: {able}")
    # Global options before `explain` count for the command, below its own.
    inner = type(inner)(inner.command, inner.arguments, {**request.given, **inner.given})
    for number, single in enumerate(pipeline.split_backends(inner)):
        ui.write("\n" * bool(number) + "".join(f"{ui.spelled(line)}\n" for line in _lines(single)))
    return 0


def _lines(request: Request) -> list[str]:
    decided = pipeline.decide(request)
    plan = decided.plan
    lines = []
    for what, value, why, origin in plan.decisions:
        lines.append(f"{what}: {value}")
        lines.append(f"    why: {why}" + ("" if origin == "default" else f" ({origin})"))
        if what == "accelerator":
            losers = [candidate for candidate in plan.accelerator.candidates if not candidate.chosen]
            lines += [f"    not {candidate.backend}: {candidate.why}" for candidate in losers]
    lines += [f"warning: {warning}" for warning in (*decided.loaded.warnings, *plan.warnings)]
    lines += [f"configuration: {file}" for file in decided.loaded.files]
    lines += [f"step {number}: {render_line(step.argv)}" for number, step in enumerate(render_steps(plan), 1)]
    return lines
