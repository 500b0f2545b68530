"""Where the server computes: recorded logs, the one line for people, --require-gpu, and what a user still sees.

The logs in test/logs are those of Debian's llama-server (build 11669) and of the embedded server on a machine without
a GPU, most lines that are of no interest here left out. ``vulkan`` is Mesa's software device.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from harness import TEST, error_text, run_cli
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.accelerator import Accelerator
from ramalama_like.causes import find_cause
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.options import Setting, Settings
from ramalama_like.proof import (
    MARKS,
    Device,
    Proof,
    demand_gpu,
    make_proof,
    proof_of_bench,
    refuse_cpu_plan,
)
from ramalama_like.runtimes.llama_cpp import asks_report
from ramalama_like.server_log import OwnLevel, is_complete
from ramalama_like.value import replace

LOGS = TEST / "logs"
MIB = 1024 * 1024
VULKAN = Accelerator("vulkan", "AMD Radeon 890M", "the first choice for AMD", "default")
CPU = Accelerator("cpu", "CPU", "no card was found", "default")
DRIVER = "(RADV GFX1150)"


def log(name: str) -> list[str]:
    return (LOGS / f"{name}.log").read_text("utf-8").splitlines()


def on_a_card(lines: list[str], description: str = "AMD Radeon 890M") -> list[str]:
    """The log of the software device as a card's own driver would have it told."""
    text = "\n".join(lines).replace("llvmpipe (LLVM 21.1.8, 256 bits)", f"{description} {DRIVER}")
    return text.replace("(unknown id)", "(0000:c1:00.0)").split("\n")


# The recorded logs


def test_the_software_device():
    device = Device("Vulkan0", "llvmpipe", software=True)
    assert make_proof(VULKAN, log("vulkan")) == Proof(
        on_gpu=False,
        sentence="Running on Vulkan0 (llvmpipe), 4/4 layers: software, so the CPU computes",
        cause="llvmpipe is a software device",
        hint="use a driver of the GPU's own, and see that the GPU is passed",
        devices=(device,),
        buffers=(
            ("CPU_Mapped", int(0.33 * MIB)),
            ("Vulkan0", int(2.13 * MIB) + 3 * MIB + int(6.01 * MIB)),
            ("Vulkan_Host", int(0.02 * MIB) + int(4.02 * MIB)),
        ),
        layers=4,
        layers_total=4,
    )


def test_a_card():
    proof = make_proof(VULKAN, on_a_card(log("vulkan")))
    assert (proof.on_gpu, proof.sentence, proof.cause) == (
        True,
        "Running on Vulkan0 (AMD Radeon 890M), 4/4 layers",
        "",
    )


def test_a_part_of_the_layers():
    proof = make_proof(VULKAN, on_a_card(log("vulkan-partly")))
    assert (proof.on_gpu, proof.sentence) == (
        True,
        "Running on Vulkan0 (AMD Radeon 890M), 2/4 layers; the CPU computes the rest",
    )


def test_the_count_of_layers_is_not_believed():
    """With ``--device none`` the server says that it has offloaded 4/4 layers, and all weights are in main memory."""
    lines = log("vulkan-device-none")
    assert any("offloaded 4/4 layers to GPU" in line for line in lines)
    proof = make_proof(VULKAN, lines)
    assert (proof.on_gpu, proof.devices, proof.layers) == (False, (), 4)
    assert proof.sentence == "Running on CPU because the server does not use Vulkan0"


def test_trials_without_memory_are_no_loading():
    """With -v the server's trials, by which it fits a model to memory, stand before the real loading."""
    verbose, plain = make_proof(VULKAN, log("vulkan-verbose")), make_proof(VULKAN, log("vulkan"))
    assert verbose == plain


def test_no_device():
    proof = make_proof(VULKAN, log("vulkan-no-device"))
    assert (proof.on_gpu, proof.sentence, proof.hint) == (
        False,
        "Running on CPU because the image's Vulkan drivers found no GPU",
        "see what is passed with `ramalama-like explain`, or choose another image with --image",
    )


@pytest.mark.parametrize("name", ["cpu", "embedded"])
def test_a_plan_for_the_cpu_gives_its_own_reason(name: str):
    assert make_proof(CPU, log(name)).sentence == "Running on CPU because no card was found"


def test_an_image_without_the_backend():
    proof = make_proof(VULKAN, log("cpu"))
    assert proof.cause == "the Vulkan backend is not in the image, or finds no driver there"
    # Where the name of the backend is not certain, nothing is made up.
    openvino = replace(VULKAN, backend="openvino")
    assert make_proof(openvino, log("cpu")).cause == "the server knows no device but the CPU"
    older = [line for line in log("cpu") if "common_param:" not in line]
    assert make_proof(openvino, older).cause == "the server gives no reason"


def test_the_embedded_server_is_built_for_the_cpu():
    assert (
        make_proof(VULKAN, log("embedded")).sentence == "Running on CPU because the server knows no device but the CPU"
    )


def test_no_layer_offloaded():
    lines = [line.replace("offloaded 2/4", "offloaded 0/4").replace("Vulkan0 model", "CPU model")
             for line in on_a_card(log("vulkan-partly"))]  # fmt: skip
    proof = make_proof(VULKAN, lines)
    assert (proof.sentence, proof.hint) == (
        "Running on CPU because no layer was offloaded",
        "raise --ngl, or leave it out",
    )


def test_a_log_in_other_words_claims_nothing():
    for lines in ([], ["INFO: model on cuda:0", "ready"], log("own-level")):
        assert make_proof(VULKAN, lines) == Proof(None)


def told(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            """load_tensors: loading model tensors, this can take a while... (mmap = true)
            load_tensors: offloaded 33/33 layers to GPU
            load_tensors:        CUDA0 model buffer size =  2000.00 MiB
            load_tensors:        CUDA1 model buffer size =  1800.50 MiB
            load_tensors:   CPU_Mapped model buffer size =   281.81 MiB""",
            "Running on CUDA0 and CUDA1, 33/33 layers",
        ),
        (  # builds of 2024: other names of functions, no kind of buffer
            """llm_load_tensors: offloaded 33/33 layers to GPU
            llm_load_tensors:        CPU buffer size =   281.81 MiB
            llm_load_tensors:      CUDA0 buffer size =  4155.99 MiB
            llama_kv_cache_init:      CUDA0 KV buffer size =   256.00 MiB""",
            "Running on CUDA0, 33/33 layers",
        ),
        (  # rows split over cards
            """llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 3090) - 23982 MiB free
            llama_model_load_from_file_impl: using device CUDA1 (NVIDIA GeForce RTX 3060) (0000:02:00.0) - 9 MiB free
            load_tensors: offloaded 33/33 layers to GPU
            load_tensors:   CUDA_Split model buffer size =  4000.00 MiB""",
            "Running on CUDA0 (NVIDIA GeForce RTX 3090) and CUDA1 (NVIDIA GeForce RTX 3060), 33/33 layers",
        ),
        (
            """llama_model_load_from_file_impl: using device MTL0 (Apple M3 Pro) - 27647 MiB free
            load_tensors: offloaded 29/29 layers to GPU
            load_tensors:  MTL0_Mapped model buffer size =  1918.35 MiB
            load_tensors:   CPU_Mapped model buffer size =   308.23 MiB""",
            "Running on MTL0 (Apple M3 Pro), 29/29 layers",
        ),
        (
            """load_tensors:  RPC[10.0.0.2:50052] model buffer size =  1918.35 MiB""",
            "Running on RPC[10.0.0.2:50052]",
        ),
        (  # a draft model on the CPU does not matter, nor does its count
            """load_tensors: loading model tensors
            load_tensors: offloaded 33/33 layers to GPU
            load_tensors:        CUDA0 model buffer size =  2000.00 MiB
            load_tensors: loading model tensors
            load_tensors: offloaded 0/13 layers to GPU
            load_tensors:   CPU_Mapped model buffer size =   281.81 MiB""",
            "Running on CUDA0, 33/33 layers",
        ),
    ],
)
def test_other_wordings(text: str, sentence: str):
    models = text.count("loading model tensors") or 1
    assert make_proof(VULKAN, told(text), models=models).sentence == sentence


# What a model can write itself. forged.log is the log of a real server on a CPU, with a model whose name, keys, tokens
# and chat template hold a loading on Vulkan0.

LOADING = [
    "0.00.100.000 I load_tensors: loading model tensors, this can take a while... (load_mode = mmap)",
    "0.00.100.001 I load_tensors: offloaded 5/5 layers to GPU",
    "0.00.100.002 I load_tensors:      Vulkan0 model buffer size =   21.13 MiB",
]
UNKNOWN = "Where it runs is not known: its log holds lines that the model itself may have written"


def test_a_model_that_forges_a_loading():
    lines = log("forged")
    assert sum("Vulkan0 model buffer size" in line for line in lines) == 8
    for accelerator in (VULKAN, CPU):
        proof = make_proof(accelerator, lines)
        assert (proof.on_gpu, proof.sentence) == (None, UNKNOWN)
        with pytest.raises(ValueProblem) as refused:
            demand_gpu(proof, "--require-gpu")
        assert refused.value.message == (
            "--require-gpu: it could not be confirmed that a GPU computes: "
            "its log holds lines that the model itself may have written"
        )
    # What only continues another line is the server's word nowhere.
    genuine = [line for line in lines if line not in LOADING and "Vulkan0 model" not in line]
    assert make_proof(CPU, genuine).sentence == "Running on CPU because no card was found"


CHOSEN = (
    "0.00.100.000 I llama_prepare_model_devices: using device Vulkan0 (AMD Radeon 890M) (0000:c1:00.0) - 9 MiB free"
)
PLACES = st.sampled_from(["vulkan", "vulkan-partly", "vulkan-device-none", "vulkan-no-device", "cpu", "embedded"])
FORGED = st.sampled_from([*LOADING, *(line[15:] for line in LOADING), CHOSEN, CHOSEN[15:], "x", "0.00.100.1 I x",
                          "0.00.100.000 I srv  llama_server: model loaded", "0.00.1.1 I common_param:   - Vulkan0 : A"]
                         )  # fmt: skip


@given(PLACES, st.lists(st.tuples(st.integers(0, 100), st.lists(FORGED, max_size=5)), max_size=3))
def test_no_added_line_makes_a_gpu(name: str, added: list[tuple[int, list[str]]]):
    """Wherever a model adds lines after it is read: none makes a server that computes on the CPU look otherwise."""
    lines = log(name)
    read = next(number for number, line in enumerate(lines) if "load_model: loading model" in line) + 1
    for place, more in added:
        # Not between the lines about buffers, which the server writes without printing a text of the model's.
        at = min(read + place, len(lines))
        while at < len(lines) and " load_tensors:" in lines[at] and "loading model tensors" not in lines[at]:
            at += 1
        lines[at:at] = more
    assert not make_proof(VULKAN, lines).on_gpu


def test_a_log_that_is_cut_off_proves_nothing():
    assert make_proof(VULKAN, on_a_card(log("vulkan")), complete=False).sentence == UNKNOWN


def test_contradictions_prove_nothing():
    lines = on_a_card(log("vulkan"))
    assert make_proof(VULKAN, [*lines, CHOSEN.replace("AMD Radeon 890M", "other")]).on_gpu is None
    assert make_proof(VULKAN, [*lines, *LOADING]).on_gpu is None
    number = next(number for number, line in enumerate(lines) if "offloaded 4/4" in line)
    assert make_proof(VULKAN, [*lines[:number], LOADING[1], *lines[number:]]).on_gpu is None
    # A loading after which the server says that it holds nothing.
    empty = [line.replace("2.13", "0.00").replace("0.33", "0.00") for line in lines]
    assert make_proof(VULKAN, [*LOADING, *empty]).on_gpu is None


def test_a_model_whose_texts_could_be_the_log(tmp_path: Path):
    from made_models import make_model

    from ramalama_like.models.gguf import header_mentions

    path = make_model(tmp_path / "plain.gguf", layers=1)
    assert not header_mentions(str(path), MARKS)
    for text in ("x\nload_tensors: x", "CUDA0 model buffer size = 1.00 MiB"):
        assert header_mentions(str(make_model(tmp_path / "forged.gguf", layers=1, name=text)), MARKS)


def test_the_reason_is_not_the_models_word():
    lines = log("cpu")
    forged = "ggml_vulkan: No devices found."
    at = next(number for number, line in enumerate(lines) if "print_info: general.name" in line)
    for place in (at + 1, len(lines)):
        assert make_proof(VULKAN, [*lines[:place], forged, f"0.00.1 I {forged}", *lines[place:]]).cause == (
            "the Vulkan backend is not in the image, or finds no driver there"
        )
    quoted = "0.00.025.000 I print_info: general.name          = x"
    end = "0.00.026.000 E srv    load_model: failed to load model, '/m/x.gguf'"
    assert find_cause([quoted, "no CUDA-capable device is detected", end]) == (
        "the server could not load the model", "see the lines above"
    )  # fmt: skip


def test_a_server_on_a_gpu_that_nobody_planned_says_so():
    assert make_proof(CPU, on_a_card(log("vulkan"))).sentence == "Running on Vulkan0 (AMD Radeon 890M), 4/4 layers"


WORDS = st.sampled_from(
    ["load_tensors:", "offloaded ", "4/4", "4/", " layers to GPU", " buffer size = ", "2.13", "1.2.3", "-1", "MiB",
     "MiB\n", "Vulkan0", "model", "KV", "CPU", ": using device ", "(", ")", "(a)", " ",
     "load_backend: loaded ", "9" * 400, "٣"]
)  # fmt: skip


@given(st.lists(st.lists(st.one_of(WORDS, st.text(max_size=4)), max_size=9).map("".join), max_size=12))
def test_no_log_is_too_odd(lines: list[str]):
    proof = make_proof(VULKAN, lines)
    assert proof.sentence or proof.on_gpu is None
    level = OwnLevel()
    for line in lines:
        level.shows(line)
        is_complete(line)


# llama-bench


def bench(**more: object) -> list[dict[str, object]]:
    return [{"gpu_info": "", "backends": "Vulkan", "n_gpu_layers": -1, "devices": "auto", **more}]


def test_bench_names_the_gpus():
    two = proof_of_bench(VULKAN, bench(gpu_info=f"AMD Radeon 890M {DRIVER}, NVIDIA GeForce RTX 3060"))
    assert (two.on_gpu, two.devices) == (
        True,
        (Device("AMD Radeon 890M", "AMD Radeon 890M"), Device("NVIDIA GeForce RTX 3060", "NVIDIA GeForce RTX 3060")),
    )
    software = proof_of_bench(VULKAN, bench(gpu_info="llvmpipe (LLVM 21.1.8, 256 bits)"))
    assert (software.on_gpu, software.cause) == (False, "llvmpipe is a software device")
    assert proof_of_bench(VULKAN, bench()).cause == "llama-bench found no GPU"
    assert proof_of_bench(CPU, bench()).cause == "no card was found"
    for more in ({"devices": "none"}, {"n_gpu_layers": 0}):
        assert proof_of_bench(VULKAN, bench(gpu_info="NVIDIA", **more)).cause == "no layer was offloaded"
    assert proof_of_bench(VULKAN, [{}]).on_gpu is None
    assert proof_of_bench(VULKAN, []).on_gpu is None


# --require-gpu


def test_demands():
    demand_gpu(Proof(on_gpu=True), "--require-gpu")
    with pytest.raises(ValueProblem) as unknown:
        demand_gpu(Proof(None), "$RAMALAMA_REQUIRE_GPU")
    assert (unknown.value.message, unknown.value.exit_code) == (
        "$RAMALAMA_REQUIRE_GPU: it could not be confirmed that a GPU computes",
        22,
    )
    with pytest.raises(ValueProblem) as unused:
        demand_gpu(make_proof(VULKAN, log("vulkan-no-device")), "--require-gpu")
    assert unused.value.message == "--require-gpu: no GPU computes: the image's Vulkan drivers found no GPU"
    refuse_cpu_plan(VULKAN, "--require-gpu")


REFUSED = error_text(
    "--require-gpu: no GPU would compute: CPU was asked for by --backend",
    "see what was found with `ramalama-like info`, or leave --require-gpu out",
)


@pytest.mark.parametrize("command", ["run", "serve", "bench"])
def test_a_plan_without_a_gpu_starts_nothing(command: str, world: Path, fake_engine, tiny_gguf: Path):
    recorder = fake_engine("podman-4.9")
    done = run_cli(command, str(tiny_gguf), "--require-gpu", "--backend", "cpu")
    assert (done.code, done.out, done.err) == (22, "", REFUSED)
    assert recorder.take_runs() == []
    # What would be executed can be seen all the same, and the demand is one of the decisions.
    shown = run_cli(command, str(tiny_gguf), "--require-gpu", "--backend", "cpu", "--dryrun=json")
    assert shown.code == 0
    assert json.loads(shown.out)["decisions"]["require_gpu"] == {
        "value": "True", "why": "as asked", "origin": "--require-gpu"
    }  # fmt: skip


def test_the_demand_from_a_file(world: Path, fake_engine, tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch):
    recorder = fake_engine("podman-4.9")
    config = world / "ramalama.conf"
    config.write_text("[ramalama]\nrequire_gpu = true\n")
    monkeypatch.setenv("RAMALAMA_CONFIG", str(config))
    done = run_cli("run", str(tiny_gguf), "--backend", "cpu")
    assert (done.code, done.err.split(": no GPU")[0]) == (22, f"Error: {config}:2")
    assert recorder.take_runs() == []


# The report and the user's own log


def plain(lines: list[str]) -> list[str]:
    """Lines without what differs from start to start."""
    return [re.sub(r" *[\d.]+", "#", line) for line in lines if "verbosity = " not in line]


def test_the_report_is_hidden_and_nothing_else():
    level = OwnLevel()
    shown = [line for line in log("cpu") if level.shows(line)]
    assert len(shown) == 16
    assert plain(shown) == plain(log("own-level"))


def test_what_is_no_line_of_this_server_is_shown():
    level = OwnLevel()
    for line in ("terminate called after throwing an instance of 'vk::DeviceLostError'", "  what():  lost",
                 "Trying to pull quay.io/x...", "", "0.00.1 x", "load_tensors: offloaded 33/33 layers to GPU",
                 "0.00.034.647 E llama_model_load: error loading model"):  # fmt: skip
        assert level.shows(line), line
    assert not level.shows("0.00.000.001 I slot launch_slot_: id  0 | task -1 | sampler params: ")
    assert not level.shows("\trepeat_last_n = 64")


@pytest.mark.parametrize(
    ("more", "asked"),
    [({}, True), ({"debug": True}, False), ({"runtime_args": ("-lv", "2")}, False), ({"runtime_args": ("-v",)}, False),
     ({"runtime_args": ("--log-verbosity", "5")}, False), ({"runtime_args": ("--alias", "-")}, True)],
)  # fmt: skip
def test_when_the_report_is_asked_for(more: dict[str, object], asked: bool):
    values = {"debug": False, "runtime_args": (), **more}
    assert asks_report(replace(DEFAULTS, **{name: Setting(each) for name, each in values.items()})) is asked


DEFAULTS = Settings(**{name: Setting(option.default) for name, option in Settings.__value_fields__.items()})


# data/causes.toml: for each row a log as people have seen it, what it is taken for, and whether it explains a fall back
# to the CPU.


def cause_names() -> list[str]:
    return [row.get("text", str(row.get("exit_codes"))) for row in load_table("causes")["cause"]]


ENDS = {
    name: text.rstrip("\n").split("\n")
    for name, _, text in (
        block.partition("\n") for block in (LOGS / "causes.txt").read_text("utf-8").removeprefix("### ").split("\n### ")
    )
}


def row_of(name: str) -> dict[str, str]:
    (row,) = (row for row in load_table("causes")["cause"] if row.get("text") == name)
    return dict(row)


@pytest.mark.parametrize("name", ENDS)
def test_each_cause(name: str):
    row, lines = row_of(name), ENDS[name]
    expected = (row["why"], row["hint"])
    kind = row.get("gpu", "")
    assert find_cause(lines) == (None if kind == "only" else expected)
    assert find_cause(lines, about_gpus=True) == (expected if kind else None)


def test_every_row_has_a_log():
    assert [name for name in cause_names() if name not in ENDS] == ["(132,)"]


def test_an_end_by_an_illegal_instruction_tells_by_itself():
    expected = "the program uses instructions that this processor does not have (SIGILL)"
    found = find_cause(["0.00.001 I load_backend: loaded CPU backend"], exit_code=132)
    assert found is not None
    assert found[0] == expected
    assert find_cause([], exit_code=133) is None


def test_a_fall_back_to_the_cpu_is_not_why_a_server_died():
    lines = ["ggml_vulkan: No devices found.", "couldn't bind HTTP server socket, hostname: 0.0.0.0, port: 8080"]
    found = find_cause(lines)
    assert found is not None
    assert found[0] == "the server could not use its address"
