"""``bench``: the speed of a model with one back end or several, measured by llama-bench, and kept."""

from __future__ import annotations

from ramalama_like import launch, pipeline, settings, ui
from ramalama_like.errors import AppError, ChildFailed, Interrupted
from ramalama_like.execute import run_tool, with_free_name
from ramalama_like.llama_bench import Run, common_cells, make_measurements, table_rows
from ramalama_like.proof import demand_gpu, proof_of_bench
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ramalama_like.measurement import Measurement
    from ramalama_like.pipeline import Decided
    from ramalama_like.request import Request

HEADING = ("model", "size", "backend", "device", "threads", "prompt t/s", "generation t/s")


def execute(request: Request) -> int:
    """Run the command; its exit code, that of the first failure. Raises AppError where there is only one back end."""
    requests = pipeline.split_backends(request)
    failures: list[AppError] = []
    all_decided = _decide(requests, failures)
    launch.tell_warnings(all_decided)
    asked = all_decided[0].loaded.settings
    form = asked.dryrun.value
    if form:
        plans = [decided.plan for decided in all_decided]
        if len(requests) == 1:
            launch.show(plans[0], form)
        else:
            launch.show_several(plans, form)
        return failures[0].exit_code if failures else 0
    all_decided = _with_models_here(all_decided)
    measured = _measure_all(request, all_decided, failures, alone=len(requests) == 1)
    if asked.format.value == "json":
        import json

        rows = [{**result, "record": to_plain(record)}
                for results, run in measured for result, record in zip(results, run.tests, strict=True)]  # fmt: skip
        ui.write(json.dumps(rows, indent=2) + "\n")
    elif measured:
        runs = [run for _, run in measured]
        _show_table(runs)
        plot = asked.plot.value
        if plot or (plot is None and len(runs) > 1 and ui.is_terminal(1)):
            _show_plot(runs)
    return failures[0].exit_code if failures else 0


def _decide(requests: Sequence[Request], failures: list[AppError]) -> list[Decided]:
    """The plan for each back end, before the first of them is executed; at least one, else the first error is raised.

    Errors are told where others go on, and added to ``failures``.
    """
    found: list[Decided] = []
    untold: list[tuple[str, AppError]] = []
    for request in requests:
        try:
            found.append(pipeline.decide(request, like=found[0] if found else None))
        except AppError as error:
            untold.append((str(request.given["backend"].value) if len(requests) > 1 else "", error))
    if not found:  # what is wrong with all of them is seldom a matter of the back end
        raise untold[0][1]
    for backend, problem in untold:
        ui.error(f"{backend}: {problem.message}", problem.hint)
    failures += [problem for _, problem in untold]
    return found


def _with_models_here(all_decided: list[Decided]) -> list[Decided]:
    """The same plans, once the model that they share was pulled, where that is needed and any of them can run."""
    for decided in all_decided:
        try:
            pipeline.check_executable(decided.request, decided)
        except AppError:
            continue  # told later
        if not launch.pull_pending(decided):
            break
        fresh = pipeline.decide(decided.request, pulled=True)
        return [pipeline.decide(each.request, like=fresh) for each in all_decided]
    return all_decided


def _measure_all(
    request: Request, all_decided: Sequence[Decided], failures: list[AppError], *, alone: bool
) -> list[tuple[list[dict[str, Any]], Run]]:
    measured = []
    for number, decided in enumerate(all_decided, 1):
        backend = decided.plan.accelerator.backend
        try:
            pipeline.check_executable(request, decided)
            if len(all_decided) > 1:
                ui.say(f"Measuring {backend} ({number} of {len(all_decided)})")
            measured.append(_measure_with_free_name(decided))
        except AppError as error:
            if alone or isinstance(error, Interrupted):
                raise
            if error.message in [failure.message for failure in failures]:
                continue  # the model and the machine are the same for all
            ui.error(f"{backend}: {error.message}", error.hint)
            failures.append(error)
    return measured


def _measure_with_free_name(decided: Decided) -> tuple[list[dict[str, Any]], Run]:
    plans = [decided]  # made anew only where its name has been taken meanwhile

    def attempt(request: Request) -> tuple[list[dict[str, Any]], Run]:
        return _measure(plans.pop() if plans else pipeline.decide(request, like=decided))

    return with_free_name(decided.request, attempt)


def _measure(decided: Decided) -> tuple[list[dict[str, Any]], Run]:
    """Run llama-bench, and keep what it says."""
    import json
    from time import gmtime, strftime

    plan, asked = decided.plan, decided.loaded.settings
    output = run_tool(plan, keep_output=True).decode(errors="replace")
    keeps = asked.save.value if asked.save.value is not None else not asked.benchmarks_disable.value
    digest = image_id = ""
    if keeps and plan.image:
        from ramalama_like.probe.image import ask_image_identity

        digest, image_id = ask_image_identity(plan.engine.program, plan.image.ref)
    try:
        results = json.loads(output)
        records = make_measurements(results, plan, asked, decided.facts, image_digest=digest, image_id=image_id,
                                    time=strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()))  # fmt: skip
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise ChildFailed("llama-bench printed something else than its results",
                          "run it with --debug, or look at what --runtime-args asks for", 1) from None  # fmt: skip
    if asked.require_gpu.value:
        demand_gpu(proof_of_bench(plan.accelerator, results), asked.require_gpu.origin)
    if records[0].backend != "cpu" and not records[0].on_gpu:
        ui.warn(f"{records[0].backend} was asked for, but the processor computed")
    if keeps:
        _keep(settings.results_file(asked), records)
    return results, Run(records)


def _keep(path: str, records: Sequence[Measurement]) -> None:
    from ramalama_like.result_store import add_results

    try:
        add_results(path, records)
    except AppError as error:  # what was measured is worth showing all the same
        ui.warn(f"the results are not kept: {error.message}")


def _show_table(runs: Sequence[Run]) -> None:
    rows = []
    for run in runs:
        model, size, backend = common_cells(run.first)
        common = (model, size, backend, run.first.device, str(run.first.threads))
        rows += [(*common, *speeds) for speeds in table_rows(run)]
    ui.table(HEADING, rows, flexible=("model", "device"))


def _show_plot(runs: Sequence[Run]) -> None:
    from ramalama_like.render.bars import render_bars

    width = min(ui.terminal_width(), 100)
    for what, kind in (("generation", "generations"), ("prompt", "prompts")):
        tests = [record for run in runs for record in getattr(run, kind)]
        for test in dict.fromkeys(record.test for record in tests):
            bars = [(record.backend, record.avg_ts) for record in tests if record.test == test]
            ui.write("\n" + render_bars(
                f"{what}, tokens per second ({test})", bars, width=width,
                letters="unicode" if ui.speaks_unicode() else "ascii",
                color=ui.is_terminal(1) and not settings.no_color(),
            ))  # fmt: skip
