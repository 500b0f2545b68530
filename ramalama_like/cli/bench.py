"""``bench``: the speed of a model, measured by llama-bench."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.errors import ChildFailed
from ramalama_like.execute import run_tool
from ramalama_like.launch import prepare
from ramalama_like.proof import demand_gpu, proof_of_bench

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request

HEADING = ("model", "size", "backend", "threads", "test", "t/s")


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    import json

    decided = prepare(request)
    if decided is None:
        return 0
    output = run_tool(decided.plan, keep_output=True).decode(errors="replace")
    try:
        results = json.loads(output)
        rows = [_row(result) for result in results]
        if not rows:
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ChildFailed("llama-bench printed something else than its results",
                          "run it with --debug, or look at what --runtime-args asks for", 1) from None  # fmt: skip
    required = decided.loaded.settings.require_gpu
    if required.value:
        demand_gpu(proof_of_bench(decided.plan.accelerator, results), required.origin)
    if decided.loaded.settings.format.value == "json":
        ui.write(json.dumps(results, indent=2) + "\n")
    else:
        ui.table(HEADING, rows)
    return 0


def _row(result: dict[str, object]) -> tuple[str, ...]:
    prompt, generated = result["n_prompt"], result["n_gen"]
    test = f"tg{generated}" if not prompt else f"pp{prompt}" if not generated else f"pp{prompt}+tg{generated}"
    speed = f"{float(str(result['avg_ts'])):.1f} ± {float(str(result.get('stddev_ts', 0))):.1f}"
    size = f"{int(str(result['model_size'])) / 1e6:.1f} MB"
    return str(result["model_type"]), size, str(result["backends"]), str(result["n_threads"]), test, speed
