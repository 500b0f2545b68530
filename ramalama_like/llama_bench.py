"""What llama-bench prints, made into measurements; and measurements made into rows of a table.

llama-bench's ``-o json`` is a list with one object for each test, as of llama.cpp build 11669: ``n_prompt``, ``n_gen``
and ``n_depth`` say which test it was, ``avg_ts`` and ``stddev_ts`` are tokens per second, ``gpu_info`` names the cards
(and is empty where there are none), ``backends`` what the program was built with.
"""

from __future__ import annotations

from ramalama_like import __version__
from ramalama_like.measured import CPU, card_keys, driver_keys, family_key, host_key
from ramalama_like.measurement import Measurement, size_text
from ramalama_like.value import replace, to_plain, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ramalama_like.facts import HostFacts
    from ramalama_like.options import Settings
    from ramalama_like.plan import Plan

PLAIN_TESTS = ("pp512", "tg128")  # what llama-bench does unless it is told otherwise
# Their device may be no card to llama-bench (an NPU), so for them the back end that was loaded is enough.
MAYBE_NO_CARD = ("openvino", "cann")


@value
class Run:
    """The tests of one run, in the order in which they were done."""

    tests: tuple[Measurement, ...]

    @property
    def first(self) -> Measurement:
        """Any of the tests, for what they have in common."""
        return self.tests[0]

    @property
    def prompts(self) -> tuple[Measurement, ...]:
        """The tests that read prompts."""
        return tuple(each for each in self.tests if each.test.startswith("pp") and "+" not in each.test)

    @property
    def generations(self) -> tuple[Measurement, ...]:
        """The tests that generate, some of them after reading."""
        return tuple(each for each in self.tests if each not in self.prompts)


def make_measurements(
    results: Sequence[Mapping[str, Any]], plan: Plan, settings: Settings, facts: HostFacts, *, time: str,
    image_digest: str = "", image_id: str = "",
) -> tuple[Measurement, ...]:  # fmt: skip
    """One measurement for each result. Raises ValueError, TypeError or KeyError where they are none of llama-bench."""
    made = [_measurement(result, plan, settings, facts, time, image_digest, image_id) for result in results]
    if not made:
        raise ValueError("no result")
    from hashlib import sha256

    run = sha256(repr([to_plain(each) for each in made]).encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return tuple(replace(each, id=run) for each in made)


def _measurement(
    result: Mapping[str, Any], plan: Plan, settings: Settings, facts: HostFacts, time: str, digest: str, image_id: str
) -> Measurement:
    backend = plan.accelerator.backend
    gpu = str(result.get("gpu_info", ""))
    ngl = int(result.get("n_gpu_layers", -1))
    speed, deviation = float(result["avg_ts"]), float(result.get("stddev_ts", 0))
    if speed - speed != 0 or deviation - deviation != 0 or speed < 0:
        raise ValueError("no speed")
    loaded = backend in MAYBE_NO_CARD and str(result.get("backends", "CPU")) != "CPU"
    return Measurement(
        id="", time=time, model=plan.model.reference, backend=backend, test=_test_name(result), avg_ts=speed,
        stddev_ts=deviation, host=host_key(facts), alias=plan.model.alias, architecture=plan.model.architecture,
        # llama 8B Q4_K - Medium: what is after the size
        quantization=" ".join(str(result.get("model_type", "")).split(" ")[2:]),
        size_bytes=plan.model.size_bytes or int(result["model_size"]), n_params=int(result.get("model_n_params", 0)),
        accelerator=plan.accelerator.name, device=gpu or str(result.get("cpu_info", "")),
        on_gpu=backend != CPU and ngl != 0 and bool(gpu or loaded),
        gpus=card_keys(facts), drivers=driver_keys(facts), kernel=facts.kernel, engine=plan.engine.kind,
        engine_version=plan.engine.version_text, image=plan.image.ref if plan.image else "",
        image_family=family_key(family=settings.image_family.value, image=settings.image.value,
                                native=plan.engine.kind == "none"),
        image_digest=digest, image_id=image_id, threads=int(result["n_threads"]), ngl=ngl,
        options=_options(settings), build_commit=str(result.get("build_commit", "")),
        build_number=int(result.get("build_number", 0)), program_version=__version__,
    )  # fmt: skip


def _options(settings: Settings) -> tuple[str, ...]:
    found = [] if not settings.ngl.value else ["-ngl", settings.ngl.value]
    found += [] if settings.ncmoe.value is None else ["-ncmoe", str(settings.ncmoe.value)]
    found += [] if not settings.gpu.value else ["--gpu", ",".join(settings.gpu.value)]
    return (*found, *settings.runtime_args.value)


def _test_name(result: Mapping[str, Any]) -> str:
    prompt, generated, depth = int(result["n_prompt"]), int(result["n_gen"]), int(result.get("n_depth", 0))
    name = f"tg{generated}" if not prompt else f"pp{prompt}" if not generated else f"pp{prompt}+tg{generated}"
    return f"{name}@d{depth}" if depth else name


def group_runs(records: Iterable[Measurement]) -> tuple[Run, ...]:
    """The runs, the newest first."""
    runs: dict[tuple[str, str], list[Measurement]] = {}
    for record in records:
        runs.setdefault((record.time, record.id), []).append(record)
    oldest_first = sorted(runs, key=lambda key: key[0])  # of one second in the order of the file
    return tuple(Run(tuple(runs[key])) for key in reversed(oldest_first))


def table_rows(run: Run) -> list[tuple[str, str]]:
    """The speeds of a run as pairs of cells: reading the prompt, generating."""
    pairs = max(len(run.prompts), len(run.generations))
    rows = []
    for place in range(pairs):
        cells = [_speed_cell(tests[place]) if place < len(tests) else "" for tests in (run.prompts, run.generations)]
        rows.append((cells[0], cells[1]))
    return rows


def _speed_cell(record: Measurement) -> str:
    speed = f"{record.avg_ts:.1f} ± {record.stddev_ts:.1f}"
    return speed if record.test in PLAIN_TESTS else f"{record.test}: {speed}"


def common_cells(record: Measurement) -> tuple[str, str, str]:
    """What a table tells of a run besides its speeds: model, size, backend."""
    return record.alias or record.model, size_text(record.size_bytes), record.backend


def compare_runs(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The speed of each test of each run, and its ratio to the first run that has done the same test."""
    base: dict[str, float] = {}
    compared = []
    for run in runs:
        for record in run.tests:
            first = base.setdefault(record.test, record.avg_ts)
            compared.append({
                "id": record.id, "time": record.time, "model": record.alias or record.model,
                "size_bytes": record.size_bytes, "backend": record.backend, "test": record.test,
                "avg_ts": record.avg_ts, "stddev_ts": record.stddev_ts,
                "ratio": record.avg_ts / first if first else None,
            })  # fmt: skip
    return compared


def differences(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Everything but speeds in which runs differ: by field, the content for each run."""
    same = ("id", "time", "test", "avg_ts", "stddev_ts")
    plain: list[dict[str, Any]] = [dict(vars(run.first)) for run in runs]
    found = {name: [to_plain(each[name]) for each in plain] for name in (plain[0] if plain else ()) if name not in same}
    return {name: members for name, members in found.items() if any(member != members[0] for member in members)}
