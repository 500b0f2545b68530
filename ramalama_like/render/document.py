"""The plan as plain data: what ``--dryrun=json`` prints."""

from __future__ import annotations

from ramalama_like.render.argv import render_steps
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.plan import Plan


def render_document(plan: Plan) -> dict[str, object]:
    """Every decision with its reason and origin, and the steps with their argument lists."""
    accelerator = plan.accelerator
    image = plan.image
    decided = {what: {"value": value, "why": why, "origin": origin} for what, value, why, origin in plan.decisions}
    return {
        "command": plan.command,
        "steps": [{"kind": step.kind, "argv": list(step.argv), "why": step.why} for step in render_steps(plan)],
        "engine": {"kind": plan.engine.kind, "version": plan.engine.version_text, **_reasons(decided, "engine")},
        "accelerator": to_plain(accelerator),
        "image": None if image is None else {"ref": image.ref, "why": image.why, "origin": image.origin},
        "model": {
            "reference": plan.model.reference, "alias": plan.model.alias, "resolved": not plan.model.problem,
            "files": [*(to_plain(file) for file in plan.model.files)], **_reasons(decided, "model"),
        },
        "draft": None if plan.draft is None else to_plain(plan.draft.files),
        "container": None if plan.container is None else to_plain(plan.container),
        "ports": [] if not (plan.endpoint and plan.endpoint.port) else [
            {"host": plan.endpoint.host, "port": plan.endpoint.port, **_reasons(decided, "api")}
        ],
        "api": None if plan.endpoint is None else {"url": plan.endpoint.url, **_reasons(decided, "api")},
        "decisions": decided,
        "warnings": list(plan.warnings),
    }  # fmt: skip


def _reasons(decided: dict[str, dict[str, str]], what: str) -> dict[str, str]:
    found = decided.get(what, {})
    return {key: found[key] for key in ("why", "origin") if key in found}
