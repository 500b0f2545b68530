"""``serve``: a model over HTTP, in the foreground or (``-d``) in the background."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.execute import RunningServer, with_free_name
from ramalama_like.launch import prepare
from ramalama_like.log_sinks import OwnLog, show_log
from ramalama_like.runtimes.llama_cpp import asks_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    return with_free_name(request, _serve)


def _serve(request: Request) -> int:
    decided = prepare(request)
    if decided is None:
        return 0
    plan = decided.plan
    settings = decided.loaded.settings
    with RunningServer(plan, log_sink=OwnLog() if asks_report(settings) else show_log) as server:
        server.wait_ready()
        server.prove(settings.require_gpu)
        url = plan.endpoint.url if plan.endpoint else ""
        if plan.container and plan.container.detach:
            engine = f"--engine {plan.engine.kind} " if "engine" in request.given else ""
            stop = f"ramalama-like {engine}stop {plan.container.name}"
            ui.say(f"{plan.model.alias} is served at {url}; stop it with: {stop}")
            ui.write(server.container_id + "\n")
            return 0
        ui.say(f"{plan.model.alias} is served at {url}; Ctrl-C stops it")
        return server.wait()
