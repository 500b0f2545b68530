"""``doctor --smoke``: the demo model on the chosen image and accelerator, as ``run`` would start it."""

from __future__ import annotations

from ramalama_like import pipeline
from ramalama_like.cards import CPU
from ramalama_like.chat.client import complete_chat
from ramalama_like.execute import RunningServer, with_free_name
from ramalama_like.log_sinks import show_progress_of_pull
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request

PROMPT = "What is ramalama-like?"
MOST_TOKENS = 64


@value
class Smoke:
    """How it went."""

    told: str
    problem: str = ""  # it answered, but not as it was planned


def run_smoke(request: Request) -> Smoke:
    """Start the server, ask once, and end it. ``request`` is that of ``run``. Raises AppError."""
    return with_free_name(request, _run_once)


def _run_once(request: Request) -> Smoke:
    decided = pipeline.decide(request)
    pipeline.check_executable(request, decided)
    plan = decided.plan
    with RunningServer(plan, log_sink=show_progress_of_pull) as server:
        server.wait_ready()
        answer = complete_chat(server.address, [{"role": "user", "content": PROMPT}], model=plan.model.alias,
                               max_tokens=MOST_TOKENS)  # fmt: skip
        used, problem = describe_use(server)
    where = f"{plan.accelerator.backend} ({plan.accelerator.name})"
    speed = f"{answer.tokens_per_second:.1f} tokens per second" if answer.tokens_per_second else "no speed was told"
    return Smoke(f"{speed} with {used or where}", problem)


def describe_use(server: RunningServer) -> tuple[str, str]:
    """What really computed (``Vulkan0 (AMD Radeon 890M), 33/33 layers``), and what is wrong about that.

    Both are empty where the server's report does not tell; the second where all is as it was planned.
    """
    proof, planned = server.find_proof(), server.plan.accelerator
    used = proof.sentence.removeprefix("Running on ")
    if planned.backend != CPU and proof.on_gpu is False:
        return used, f"{planned.backend} was planned, and the processor computed: {proof.cause}"
    return used, ""
