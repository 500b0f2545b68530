"""``benchmarks list``, ``show`` and ``compare``: what ``bench`` has kept."""

from __future__ import annotations

from ramalama_like import settings, ui
from ramalama_like.accelerator import canonical_backend
from ramalama_like.errors import ValueProblem
from ramalama_like.launch import Outline
from ramalama_like.llama_bench import Run, common_cells, compare_runs, differences, group_runs, table_rows
from ramalama_like.result_store import read_results
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.options import Settings
    from ramalama_like.request import Request

LIST_HEADING = ("id", "date", "model", "size", "backend", "prompt t/s", "generation t/s")
COMPARE_HEADING = ("id", "date", "model", "size", "backend", "test", "t/s", "ratio")


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    asked = loaded.settings
    path = settings.results_file(asked)
    kept = read_results(path)
    if kept.damaged:
        ui.warn(f"{path}: {kept.damaged} line{'s' if kept.damaged > 1 else ''} cannot be understood")
    runs = group_runs(kept.records)
    if not runs:
        ui.say("No results are kept yet: bench makes some.")
    verbs = {"benchmarks list": _list, "benchmarks show": _show, "benchmarks compare": _compare}
    verbs[request.command](request, asked, runs)
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: look, and start nothing. Raises AppError."""
    return Outline(settings.load_settings(request))


def _list(_: Request, asked: Settings, runs: Sequence[Run]) -> None:
    start = asked.offset.value
    stop = None if asked.limit.value is None else start + asked.limit.value
    shown = _filtered(asked, runs)[start:stop]
    if asked.json.value or asked.format.value == "json":
        _write_json([to_plain(record) for run in shown for record in run.tests])
        return
    rows = [(run.first.id, run.first.time[:10], *common_cells(run.first), *speeds)
            for run in shown for speeds in table_rows(run)]  # fmt: skip
    ui.table(LIST_HEADING, rows, flexible=("model",))


def _show(request: Request, asked: Settings, runs: Sequence[Run]) -> None:
    run = _named(runs, request.arguments[0])
    if asked.json.value:
        _write_json([to_plain(record) for record in run.tests])
        return
    width = max(map(len, vars(run.first)))
    lines = []
    for name, member in vars(run.first).items():
        if name == "test":
            lines += [
                f"{record.test:<{width}}  {record.avg_ts:.2f} ± {record.stddev_ts:.2f} t/s" for record in run.tests
            ]
        elif name not in ("avg_ts", "stddev_ts"):
            text = (" " if name == "options" else ", ").join(member) if isinstance(member, tuple) else str(member)
            lines.append(f"{name:<{width}}  {text}".rstrip())
    ui.write("".join(f"{ui.spelled(line)}\n" for line in lines))


def _compare(request: Request, asked: Settings, runs: Sequence[Run]) -> None:
    chosen = [_named(runs, run_id) for run_id in request.arguments] or _newest(_filtered(asked, runs))
    compared = compare_runs(chosen)
    unlike = differences(chosen) if request.arguments else {}
    if asked.json.value:
        _write_json({"tests": compared, "differences": unlike})
        return
    by_id = {run.first.id: run for run in chosen}
    rows = []
    for each in compared:
        ratio = "-" if each["ratio"] is None else f"{each['ratio']:.2f} ×"
        rows.append((each["id"], each["time"][:10], *common_cells(by_id[each["id"]].first), each["test"],
                     f"{each['avg_ts']:.1f}", ratio))  # fmt: skip
    ui.table(COMPARE_HEADING, rows, flexible=("model",))
    if unlike:
        ui.write("\n")
        cells = [(name, *map(_cell, members)) for name, members in unlike.items()]
        ui.table(("different", *(run.first.id for run in chosen)), cells, flexible=tuple(by_id))


def _newest(runs: Sequence[Run]) -> list[Run]:
    """The newest run of each model and backend: the models in order, of each the fastest first."""
    found: dict[tuple[str, int, str], Run] = {}
    for run in runs:  # the newest first
        found.setdefault((run.first.alias, run.first.size_bytes, run.first.backend), run)

    def place(key: tuple[str, int, str]) -> tuple[str, int, float]:
        return key[0], key[1], -max((record.avg_ts for record in found[key].generations), default=0.0)

    return [found[key] for key in sorted(found, key=place)]


def _filtered(asked: Settings, runs: Sequence[Run]) -> list[Run]:
    model = asked.only_model.value
    backends = [canonical_backend(name) for name in asked.only_backend.value.split(",") if name]
    return [run for run in runs if (not model or model in (run.first.model, run.first.alias))
            and (not backends or run.first.backend in backends)]  # fmt: skip


def _named(runs: Sequence[Run], run_id: str) -> Run:
    """The run of this id, or of the only id that begins so."""
    found = [run for run in runs if run.first.id == run_id] or [
        run for run in runs if run_id and run.first.id.startswith(run_id)
    ]
    if len(found) == 1:
        return found[0]
    raise ValueProblem(f"{run_id or 'an empty id'}: {'several runs have' if found else 'no run has'} this id",
                       "benchmarks list tells the ids")  # fmt: skip


def _cell(member: object) -> str:
    return " ".join(map(str, member)) if isinstance(member, list) else str(member)


def _write_json(data: object) -> None:
    import json

    ui.write(json.dumps(data, indent=2) + "\n")
