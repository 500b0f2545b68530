"""``bench`` with several back ends and ``benchmarks``, exactly, with an engine that only says what it is told to."""

from __future__ import annotations

import json
import os
import shlex
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import HOSTS, Recorder, Result, error_text, language_model, run_cli, snapshot

from ramalama_like import pipeline
from ramalama_like.facts import HostFacts
from ramalama_like.probe import probe
from ramalama_like.render.bars import render_bars
from ramalama_like.value import replace

Install = Callable[..., Recorder]
TOLD = '[["quay.io/ramalama/ramalama@sha256:aa","other@sha256:bb"], "cc"]'
INSPECT = ["podman", "image", "inspect", "--format", '[{{json .RepoDigests}}, "{{.Id}}"]']
RAMALAMA, ROCM = "quay.io/ramalama/ramalama:0.25", "quay.io/ramalama/rocm:0.25"


def results(prompt: float, generation: float, gpu: str = "", **more: object) -> str:
    """What llama-bench prints, with the fields that are used here."""
    common = {
        "build_commit": "7d5d7af", "build_number": 11669, "cpu_info": "AMD Ryzen AI 9 HX 370", "gpu_info": gpu,
        "backends": "Vulkan" if gpu else "CPU", "model_type": "llama 8B Q4_K - Medium", "model_size": 2583552,
        "model_n_params": 2426624, "n_threads": 12, "n_gpu_layers": -1, "n_depth": 0, "stddev_ts": 1.25, **more,
    }  # fmt: skip
    return json.dumps([common | {"n_prompt": 512, "n_gen": 0, "avg_ts": prompt},
                       common | {"n_prompt": 0, "n_gen": 128, "avg_ts": generation}])  # fmt: skip


@pytest.fixture
def model(world: Path) -> str:
    """A model of the user."""
    path = world / "home" / "some.gguf"
    path.write_bytes(language_model())
    return str(path)


@pytest.fixture
def radeon(monkeypatch: pytest.MonkeyPatch) -> HostFacts:
    """This machine has a Radeon 890M and an instruction set that its rocm image has code for."""
    facts = probe(str(HOSTS / "radeon-890m"))
    facts = replace(facts, root="/", gpus=tuple(replace(gpu, gfx="gfx1151") for gpu in facts.gpus))
    monkeypatch.setattr(pipeline, "probe", lambda _: facts)
    return facts


@pytest.fixture
def file(world: Path) -> Path:
    """Where results are kept."""
    return world / "home" / ".local" / "share" / "ramalama" / "benchmarks" / "results.jsonl"


RADV = "AMD Radeon 890M Graphics (RADV GFX1151)"
TABLE = """\
model  size    backend  device                                   threads  prompt t/s     generation t/s
some   0.0 MB  vulkan   AMD Radeon 890M Graphics (RADV GFX1151)  12       600.0 ± 1.2    71.4 ± 1.2
some   0.0 MB  cpu      AMD Ryzen AI 9 HX 370                    12       80.0 ± 1.2     20.0 ± 1.2
some   0.0 MB  rocm     AMD Radeon 890M                          12       10900.5 ± 1.2  92.0 ± 1.2
"""


def bench_three(fake_engine: Install, model: str, *more: str) -> tuple[Recorder, Result]:
    recorder = fake_engine("podman-5.4", code="0", image=TOLD, output_1=results(600, 71.4, RADV),
                           output_3=results(80, 20), output_5=results(10900.5, 92, "AMD Radeon 890M"))  # fmt: skip
    return recorder, run_cli("bench", "--backend", "vulkan,cpu,rocm,cpu", model, *more)


def test_the_lines_are_one_for_each_back_end_and_what_is_executed(
    fake_engine: Install, model: str, radeon: HostFacts, file: Path
) -> None:
    recorder = fake_engine("podman-5.4", code="0", image=TOLD, output=results(600, 71.4, RADV))
    alone = [run_cli("bench", "--dryrun", "--backend", name, model) for name in ("vulkan", "rocm", "cpu")]
    together = run_cli("bench", "--dryrun", "--backend", "vulkan, rocm,cpu", model)
    assert together == Result(0, "".join(each.out for each in alone), "")
    assert [shlex.split(line)[-8:-6] for line in together.out.splitlines()] == [
        [RAMALAMA, "llama-bench"], [ROCM, "llama-bench"], [RAMALAMA, "llama-bench"]
    ]  # fmt: skip
    document = json.loads(run_cli("bench", "--dryrun=json", "--backend", "vulkan,rocm,cpu", model).out)
    assert document == [
        json.loads(run_cli("bench", "--dryrun=json", "--backend", name, model).out)
        for name in ("vulkan", "rocm", "cpu")
    ]
    assert [shlex.join(each["steps"][0]["argv"]) for each in document] == together.out.splitlines()
    assert (recorder.take(), file.exists()) == ([], False)
    assert run_cli("bench", "--backend", "vulkan,rocm,cpu", model).code == 0
    assert recorder.take() == [
        call for line in together.out.splitlines()
        for call in (shlex.split(line), [*INSPECT, ROCM if ROCM in line else RAMALAMA])
    ]  # fmt: skip


def test_the_table(fake_engine: Install, model: str, radeon: HostFacts) -> None:
    _, result = bench_three(fake_engine, model)
    said = "Measuring vulkan (1 of 3)\nMeasuring cpu (2 of 3)\nMeasuring rocm (3 of 3)\n"
    assert result == Result(0, TABLE, said)


def test_one_back_end_fails_and_the_others_go_on(fake_engine: Install, model: str, radeon: HostFacts, file: Path
                                                 ) -> None:  # fmt: skip
    recorder = fake_engine("podman-5.4", code="0", image=TOLD, code_1="42", message="broken", output_2="no JSON",
                           output_4=results(80, 20))  # fmt: skip
    result = run_cli("bench", "--backend", "rocm,vulkan,cpu", model)
    assert (result.code, [line[15:22] for line in result.out.splitlines()]) == (42, ["backend", "cpu    "])
    assert result.err.splitlines() == [
        "Measuring rocm (1 of 3)", "broken", "Error: rocm: llama-bench ended with exit code 42: broken",
        "Hint: see its last lines above",
        "Measuring vulkan (2 of 3)", "broken", "Error: vulkan: llama-bench printed something else than its results",
        "Hint: run it with --debug, or look at what --runtime-args asks for", "Measuring cpu (3 of 3)", "broken",
    ]  # fmt: skip
    assert [json.loads(line)["backend"] for line in file.read_text().splitlines()] == ["cpu", "cpu"]
    assert [call[1] for call in recorder.take() if call[1] != "inspect"] == ["run", "run", "image", "run", "image"]


def test_what_is_wrong_for_all_is_told_once(fake_engine: Install, world: Path) -> None:
    recorder = fake_engine("podman-5.4")
    missing = run_cli("bench", "--backend", "vulkan,rocm", "./missing.gguf")
    assert missing == run_cli("bench", "--backend", "vulkan", "./missing.gguf")
    assert missing.code == 22
    pulled = run_cli("--offline", "bench", "--backend", "cpu,cpu,auto", "hf://a/b")
    assert (pulled.code, pulled.err.count("Error: ")) == (5, 1)
    assert recorder.take() == []


def test_only_bench_takes_several(fake_engine: Install, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine("podman-5.4")
    for command in ("run", "serve", "perplexity", "explain serve"):
        assert run_cli(*command.split(), "--backend", "vulkan,cpu", model) == Result(
            22, "", error_text("--backend: vulkan,cpu: only bench takes several back ends", "name one of them")
        )
    for command in ("run", "bench"):
        result = run_cli(command, "--backend", "vulkan,rcom", model)
        assert (result.code, result.err.splitlines()[1]) == (22, "Hint: did you mean rocm?")
        assert result.err.startswith("Error: --backend: 'rcom' is not one of ro")
    assert run_cli("bench", "--backend", "", model).code == 22
    assert run_cli("bench", "--backend", "cpu,", model).code == 22
    monkeypatch.setenv("RAMALAMA_BACKEND", "vulkan,cpu")
    assert run_cli("serve", "--dryrun", "--backend", "cpu", model).code == 0
    assert len(run_cli("bench", "--dryrun", model).out.splitlines()) == 2
    assert json.loads(run_cli("bench", "--dryrun=json", model).out)[0]["accelerator"]["origin"] == "$RAMALAMA_BACKEND"
    assert run_cli("serve", model).err.startswith("Error: $RAMALAMA_BACKEND: vulkan,cpu: only bench ")
    explained = run_cli("explain", "bench", model)
    assert [line for line in explained.out.splitlines() if line.startswith("accelerator: ")] == [
        "accelerator: vulkan (no card)", "accelerator: cpu (CPU)"
    ]  # fmt: skip


def test_the_exact_record_and_json(fake_engine: Install, model: str, radeon: HostFacts, file: Path) -> None:
    fake_engine("podman-5.4", code="0", image=TOLD, output=results(600, 71.4, RADV))
    result = run_cli("bench", "--backend", "vulkan", "--format", "json", "--runtime-args", "-fa 1", model)
    assert (result.code, result.err) == (0, "")
    kept = [json.loads(line) for line in file.read_text().splitlines()]
    run_id, time = kept[0].pop("id"), kept[0].pop("time")
    assert kept[0] == {
        "model": model, "backend": "vulkan", "test": "pp512", "avg_ts": 600.0,
        "host": "amd64 + 1002:150e gfx1151", "stddev_ts": 1.25, "alias": "some", "architecture": "llama",
        "quantization": "Q4_K - Medium", "size_bytes": os.path.getsize(model), "n_params": 2426624,
        "accelerator": "AMD Radeon (gfx1151) at 0000:c4:00.0", "device": RADV, "on_gpu": True,
        "gpus": ["1002:150e gfx1151"], "drivers": ["amdgpu"], "kernel": radeon.kernel, "engine": "podman",
        "engine_version": "5.4.2", "image": RAMALAMA, "image_family": "ramalama", "image_digest": "sha256:aa",
        "image_id": "sha256:cc", "threads": 12, "ngl": -1, "options": ["-fa", "1"], "build_commit": "7d5d7af",
        "build_number": 11669, "program_version": "0.1.0", "format": 1,
    }  # fmt: skip
    assert len(run_id) == 8
    assert time == kept[1]["time"]
    assert (kept[1]["id"], kept[1]["test"], kept[1]["avg_ts"]) == (run_id, "tg128", 71.4)
    records = [json.loads(line) for line in file.read_text().splitlines()]
    printed = [{**told, "record": record} for told, record in zip(json.loads(results(600, 71.4, RADV)), records,
                                                                 strict=True)]  # fmt: skip
    assert json.loads(result.out) == printed
    assert result.out == json.dumps(printed, indent=2) + "\n"


@pytest.mark.parametrize(
    ("told", "digest", "image_id"),
    [
        ('[[], "sha256:cc"]', "", "sha256:cc"),
        ('[null, ""]', "", ""),
        ('[["other@sha256:bb"], "cc"]', "sha256:bb", "sha256:cc"),
        ("no JSON", "", ""), ("[]", "", ""), ("{}", "", ""), ("[" * 5000, "", ""), ("", "", ""),
    ],
)  # fmt: skip
def test_what_the_engine_says_of_an_image(
    told: str, digest: str, image_id: str, fake_engine: Install, model: str, file: Path
) -> None:
    fake_engine("docker-28", code="0", image=told, output=results(80, 20))
    assert run_cli("bench", "--backend", "cpu", model).code == 0
    record = json.loads(file.read_text().splitlines()[0])
    assert (record["image_digest"], record["image_id"]) == (digest, image_id)


def test_nothing_is_kept_where_that_is_not_wanted(
    fake_engine: Install, model: str, file: Path, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = fake_engine("podman-5.4", code="0", output=results(80, 20))
    recorder.make_known()
    before = snapshot(world / "home")
    assert run_cli("bench", "--no-save", model).code == 0
    monkeypatch.setenv("RAMALAMA_BENCHMARKS__DISABLE", "yes")
    assert run_cli("bench", model).code == 0
    assert snapshot(world / "home") == before
    assert [call[1] for call in recorder.take()] == ["run", "run"]
    assert run_cli("bench", "--save", model).code == 0
    assert len(file.read_text().splitlines()) == 2
    assert "measured" not in run_cli("explain", "run", model).out
    monkeypatch.delenv("RAMALAMA_BENCHMARKS__DISABLE")
    assert "\nmeasured: cpu\n" in run_cli("explain", "run", model).out


def test_what_was_asked_for_besides_is_kept(fake_engine: Install, model: str, radeon: HostFacts, file: Path) -> None:
    fake_engine("podman-5.4", code="0", output=results(600, 71.4, RADV))
    line = ("--ngl", "7", "--ncmoe", "2", "--gpu", "0", "--runtime-args", "-fa 1")
    assert run_cli("bench", "--backend", "vulkan", *line, model).code == 0
    assert json.loads(file.read_text().splitlines()[0])["options"] == [
        "-ngl", "7", "-ncmoe", "2", "--gpu", "0", "-fa", "1"
    ]  # fmt: skip
    assert "measured: " not in run_cli("explain", "run", model).out


def test_where_results_are_kept(fake_engine: Install, model: str, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine("podman-5.4", code="0", output=results(80, 20))
    for more, below in (([], "data/ramalama/benchmarks"), (["--store", f"{world}/store"], "store/benchmarks")):
        monkeypatch.setenv("XDG_DATA_HOME", f"{world}/data")
        assert run_cli("bench", model, *more).code == 0
        assert len((world / below / "results.jsonl").read_text().splitlines()) == 2
        assert len(run_cli("benchmarks", "list", *more).out.splitlines()) == 2
    monkeypatch.setenv("RAMALAMA_BENCHMARKS__STORAGE_FOLDER", f"{world}/own")
    assert run_cli("bench", model, "--store", f"{world}/store").code == 0
    assert len((world / "own" / "results.jsonl").read_text().splitlines()) == 2


def test_results_that_cannot_be_kept_are_shown_all_the_same(
    fake_engine: Install, model: str, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine("podman-5.4", code="0", output=results(80, 20))
    monkeypatch.setenv("RAMALAMA_BENCHMARKS__STORAGE_FOLDER", model)
    result = run_cli("bench", "--backend", "cpu", model)
    assert (result.code, len(result.out.splitlines())) == (0, 2)
    assert result.err == f"Warning: the results are not kept: {model}/results.jsonl: File exists\n"


def test_a_card_that_did_not_compute_is_told(fake_engine: Install, model: str, radeon: HostFacts) -> None:
    fake_engine("podman-5.4", code="0", output=results(80, 20))
    result = run_cli("bench", "--backend", "vulkan", model)
    assert result.err == "Warning: vulkan was asked for, but the processor computed\n"
    assert run_cli("explain", "run", model).out.split("measured: ")[1].splitlines()[0] == "nothing"


# What is kept.


@pytest.fixture
def three(fake_engine: Install, model: str, radeon: HostFacts, file: Path) -> list[str]:
    """The ids of three runs, in the order in which they were done: vulkan, cpu, rocm."""
    bench_three(fake_engine, model)
    return list(dict.fromkeys(json.loads(line)["id"] for line in file.read_text().splitlines()))


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_list(three: list[str], file: Path) -> None:
    day = json.loads(file.read_text().splitlines()[0])["time"][:10]
    vulkan, cpu, rocm = three
    assert run_cli("benchmarks", "list") == Result(0, (
        "id        date        model  size    backend  prompt t/s     generation t/s\n"
        f"{rocm}  {day}  some   0.0 MB  rocm     10900.5 ± 1.2  92.0 ± 1.2\n"
        f"{cpu}  {day}  some   0.0 MB  cpu      80.0 ± 1.2     20.0 ± 1.2\n"
        f"{vulkan}  {day}  some   0.0 MB  vulkan   600.0 ± 1.2    71.4 ± 1.2\n"
    ), "")  # fmt: skip
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert json.loads(run_cli("benchmarks", "list", "--format", "json").out) == [
        *lines[4:6], *lines[2:4], *lines[0:2]
    ]  # fmt: skip

    def ids(*more: str) -> list[str]:
        return [row[0] for row in words(run_cli("benchmarks", "list", *more).out)[1:]]

    assert ids("--limit", "1") == [rocm]
    assert ids("--offset", "1") == [cpu, vulkan]
    assert ids("--offset", "1", "--limit", "1") == [cpu]
    assert ids("--limit", "0") == []
    assert ids("--backend", "vulkan,rocm") == [rocm, vulkan]
    assert ids("-m", "some", "--backend", "sycl") == []
    assert ids("--model", "other") == []


def test_show(three: list[str], model: str, file: Path) -> None:
    result = run_cli("benchmarks", "show", three[0][:5])
    assert (result.code, result.err) == (0, "")
    shown = dict(line.split(maxsplit=1) for line in result.out.splitlines() if " " in line)
    assert {name: shown[name] for name in ("id", "model", "pp512", "tg128", "device", "image_digest", "ngl")} == {
        "id": three[0], "model": model, "pp512": "600.00 ± 1.25 t/s", "tg128": "71.40 ± 1.25 t/s", "device": RADV,
        "image_digest": "sha256:aa", "ngl": "-1",
    }  # fmt: skip
    assert json.loads(run_cli("benchmarks", "show", three[0], "--json").out) == [
        json.loads(line) for line in file.read_text().splitlines()[:2]
    ]
    for name, said in (("x", "x: no run has this id"), ("", "an empty id: no run has this id")):
        assert run_cli("benchmarks", "show", name) == Result(22, "", error_text(said, "benchmarks list tells the ids"))


def test_compare(three: list[str]) -> None:
    vulkan, cpu, rocm = three
    result = run_cli("benchmarks", "compare", vulkan, rocm)
    assert (result.code, result.err) == (0, "")
    assert [row[5:] if len(row) > 5 else row for row in words(result.out)] == [
        ["test", "t/s", "ratio"], ["vulkan", "pp512", "600.0", "1.00", "×"], ["vulkan", "tg128", "71.4", "1.00", "×"],
        ["rocm", "pp512", "10900.5", "18.17", "×"], ["rocm", "tg128", "92.0", "1.29", "×"], [],
        ["different", vulkan, rocm], ["backend", "vulkan", "rocm"],
        ["(RADV", "GFX1151)", "AMD", "Radeon", "890M"], ["image", RAMALAMA, ROCM],
    ]  # fmt: skip
    assert max(map(len, result.out.splitlines())) <= 80
    document = json.loads(run_cli("benchmarks", "compare", rocm, vulkan, "--json").out)
    assert [(each["backend"], each["test"], round(each["ratio"], 3)) for each in document["tests"]] == [
        ("rocm", "pp512", 1.0), ("rocm", "tg128", 1.0), ("vulkan", "pp512", 0.055), ("vulkan", "tg128", 0.776),
    ]  # fmt: skip
    assert document["differences"]["backend"] == ["rocm", "vulkan"]
    every = json.loads(run_cli("benchmarks", "compare", "--json").out)["tests"]
    assert [each["backend"] for each in every if each["test"] == "tg128"] == ["rocm", "vulkan", "cpu"]
    some = json.loads(run_cli("benchmarks", "compare", "--json", "--backend", "cpu,vulkan").out)["tests"]
    assert [each["id"] for each in some if each["test"] == "tg128"] == [vulkan, cpu]


def test_damaged_lines_are_told_and_hide_nothing(three: list[str], file: Path) -> None:
    with file.open("ab") as lines:
        lines.write(b'nonsense\n{"id": "torn')
    result = run_cli("benchmarks", "list")
    assert len(result.out.splitlines()) == 4
    assert result.err == f"Warning: {file}: 2 lines cannot be understood\n"


def test_what_is_kept_cannot_move_the_cursor(three: list[str], file: Path) -> None:
    lines = file.read_text().splitlines()
    evil = json.dumps(json.loads(lines[0]) | {"alias": "\x1b[2J\ud800", "device": "a\nb"})
    file.write_text(f"{evil}\n")
    for command in (["list"], ["show", three[0]], ["compare"], ["compare", three[0]]):
        result = run_cli("benchmarks", *command)
        assert (result.code, "\x1b" in result.out, "\\x1b[2J\\ud800" in result.out) == (0, False, True)


def test_nothing_is_kept_yet(world: Path) -> None:
    before = snapshot(world / "home")
    heading = "id  date  model  size  backend  prompt t/s  generation t/s\n"
    assert run_cli("benchmarks", "list") == Result(0, heading, "No results are kept yet: bench makes some.\n")
    assert json.loads(run_cli("benchmarks", "list", "--json").out) == []
    assert json.loads(run_cli("benchmarks", "compare", "--json").out) == {"tests": [], "differences": {}}
    assert snapshot(world / "home") == before


# What auto makes of it.


def test_auto_takes_the_faster_one_and_says_so(three: list[str], model: str, file: Path) -> None:
    date = json.loads(file.read_text().splitlines()[0])["time"][:10]
    explained = run_cli("explain", "run", model).out
    reason = f"measured here on {date}: rocm 92 t/s, vulkan 71 t/s, cpu 20 t/s (0.0 MB model)"
    assert explained.split("accelerator: ")[1].splitlines()[:4] == [
        "rocm (AMD Radeon (gfx1151) at 0000:c4:00.0)",
        f"    why: rocm is faster here than vulkan, the first choice otherwise; {reason}",
        "    not vulkan: AMD Radeon (gfx1151) at 0000:c4:00.0: rocm comes first",
        "    not cpu: rocm on AMD Radeon (gfx1151) at 0000:c4:00.0 comes first",
    ]
    plan = json.loads(run_cli("serve", "--dryrun=json", model).out)
    assert (plan["accelerator"]["backend"], plan["image"]["ref"]) == ("rocm", ROCM)
    assert plan["decisions"]["measured"] == {"value": "rocm, vulkan, cpu", "why": reason, "origin": "default"}
    # Whoever asks for something gets it, and another machine is another matter.
    asked = json.loads(run_cli("serve", "--dryrun=json", "--backend", "vulkan", model).out)
    assert (asked["accelerator"]["backend"], "measured" in asked["decisions"]) == ("vulkan", False)


def test_bars() -> None:
    bars = [("rocm", 92.0), ("vulkan", 71.4), ("cpu", 0.01), ("x", 0.0)]
    assert render_bars("speed", bars, width=32) == (
        "speed\n  rocm   ██████████████████ 92.0\n  vulkan ██████████████ 71.4\n  cpu    ▏ 0.0\n  x      ▏ 0.0\n"
    )
    assert render_bars("speed", bars[:2], width=32, letters="ascii") == (
        "speed\n  rocm   ################## 92.0\n  vulkan ############## 71.4\n"
    )
    assert render_bars("s", bars[:2], width=1, letters="ascii", color=True) == (
        "s\n  rocm   \x1b[32m##########\x1b[0m 92.0\n  vulkan ######## 71.4\n"
    )
    assert render_bars("s", [("a", 0.0)], letters="ascii") == "s\n  a #" + " 0.0\n"
    assert render_bars("s", []) == "s\n"


def test_the_plot(fake_engine: Install, model: str, radeon: HostFacts) -> None:
    _, result = bench_three(fake_engine, model, "--plot")
    assert result.out.split("\n\n")[1:] == [
        render_bars("generation, tokens per second (tg128)", [("vulkan", 71.4), ("cpu", 20), ("rocm", 92)]).rstrip(),
        render_bars("prompt, tokens per second (pp512)", [("vulkan", 600), ("cpu", 80), ("rocm", 10900.5)]),
    ]
    assert max(map(len, result.out.partition("\n\n")[2].splitlines())) == 80


def on_a_terminal(*argv: str, **variables: str) -> str:
    """What a command line shows on a terminal of 80 columns."""
    import fcntl
    import termios

    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "RAMALAMA_CONFIG": os.devnull, **variables}
    environment.pop("COLUMNS")
    done = subprocess.run([sys.executable, "-m", "ramalama_like", *argv], env=environment, stdin=subprocess.DEVNULL,
                          stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False)  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # EIO: all of it has been read
            break
        if not more:
            break
        shown += more
    os.close(ours)
    assert done.returncode == 0, done.stderr
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_of_80_columns(fake_engine: Install, model: str, world: Path) -> None:
    long = world / "home" / "Some-Large-Language-Model-8B-Instruct-Q4_K_M.gguf"
    os.rename(model, long)
    fake_engine("podman-5.4", code="0", output=results(80, 20), output_1=results(10900.5, 71.4, RADV),
                output_3=results(10900.5, 71.4, RADV))  # fmt: skip
    line = ("bench", "--backend", "vulkan,cpu", "--no-save", str(long))
    shown = on_a_terminal(*line)
    table, generation, prompt = shown.split("\n\n")
    assert table.splitlines() == [
        "model        size    backend  device      threads  prompt t/s     generation t/s",
        "Some-Large…  0.0 MB  vulkan   AMD Radeo…  12       10900.5 ± 1.2  71.4 ± 1.2",
        "Some-Large…  0.0 MB  cpu      AMD Ryzen…  12       80.0 ± 1.2     20.0 ± 1.2",
    ]
    plain = on_a_terminal(*line, NO_COLOR="1")
    assert plain == shown.replace("\x1b[32m", "").replace("\x1b[0m", "")
    assert shown.count("\x1b[32m") == 2
    assert max(map(len, plain.splitlines())) <= 80
    assert (generation + prompt).count("█") > 100
    assert "█" not in on_a_terminal(*line, "--no-plot")
    assert "█" not in on_a_terminal("bench", "--no-save", str(long)), "one back end is not worth a plot"
    assert on_a_terminal(*line, "--format", "json")[0] == "["
    assert "#####" in on_a_terminal(*line, PYTHONUTF8="0", PYTHONIOENCODING="ascii")


def test_a_start_without_results_reads_and_imports_nothing_for_them(fake_engine: Install, model: str, file: Path
                                                                    ) -> None:  # fmt: skip
    """Parsing JSON is slow to import: whoever never measures does not pay for it."""
    fake_engine("podman-5.4").make_known()
    program = (
        "import sys\nfrom ramalama_like.main import run_argv\n"
        "assert run_argv(['--dryrun', 'serve', sys.argv[1]]) == 0\n"
        "print(sorted({'json', 'ramalama_like.measured', 'ramalama_like.result_store'} & set(sys.modules)),"
        " file=sys.stderr)\n"
    )

    def imported() -> str:
        done = subprocess.run([sys.executable, "-c", program, model], capture_output=True, text=True, check=True)
        return done.stderr.splitlines()[-1]

    assert imported() == "[]"
    file.parent.mkdir(parents=True)
    file.touch()
    assert imported() == "['ramalama_like.measured', 'ramalama_like.result_store']", "an empty file needs no parser"
