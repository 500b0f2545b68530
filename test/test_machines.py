"""The machines that must come out right, exactly; and what is written about them for people."""

import json
import os

import pytest
from harness import HOSTS, ROOT, TEST, run_cli
from machines import MACHINES, decide, document, golden
from test_accelerator import choose, host

DOCUMENT = ROOT / "docs" / "machines.md"

RENDER = "/dev/dri/renderD128"
DAVINCI = ("/dev/davinci0", "/dev/davinci1", "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
OPENVINO = (("GGML_OPENVINO_DEVICE", "GPU"), ("GGML_OPENVINO_STATEFUL_EXECUTION", "1"))
MUSA = (("MTHREADS_VISIBLE_DEVICES", "all"),)
SECOND = {"CUDA_VISIBLE_DEVICES": "1"}
ALL = ("nvidia.com/gpu=all",)
S390X = "ghcr.io/ggml-org/llama.cpp:server-s390x"

ROWS = [
    # number, host, wish, engine, variables -> backend, image, nodes, CDI, --gpus, env, words that are said
    ("1", "no-gpu", "auto", "podman", {}, "cpu", "ramalama", (), (), "", (), "no card was found"),
    ("1", "no-gpu", "auto", "docker", {}, "cpu", "ramalama", (), (), "", (), "no card was found"),
    ("2", "simpledrm", "auto", "podman", {}, "cpu", "ramalama", (), (), "", (), "no card was found"),
    ("3", "radeon-890m", "auto", "podman", {}, "vulkan", "ramalama", (RENDER,), (), "", (), "the first choice"),
    ("4", "radeon-890m", "rocm", "podman", {}, "rocm", "rocm", ("/dev/kfd", RENDER), (), "", (),
     "gfx1150 is not in the rocm image"),
    ("5", "rx-7900-xtx-and-igpu", "auto", "podman", {}, "vulkan", "ramalama", (RENDER,), (), "", (), "gfx1100"),
    ("6", "rx-7900-xtx-and-igpu", "rocm", "podman", {}, "rocm", "rocm", ("/dev/kfd", RENDER), (), "", (), "asked for"),
    ("7", "two-mi300x", "rocm", "podman", {}, "rocm", "rocm", ("/dev/kfd", RENDER, "/dev/dri/renderD136"), (), "", (),
     "asked for"),
    ("8", "rtx-4090", "auto", "podman", {}, "cuda", "cuda", (), ALL, "", (), "minor-version compatibility"),
    ("8", "rtx-4090", "auto", "docker with CDI", {}, "cuda", "cuda", (), ALL, "", (), "the first choice"),
    ("8", "rtx-4090", "auto", "docker", {}, "cuda", "cuda", (), (), "all", (), "the first choice"),
    ("9", "rtx-4090-without-cdi", "auto", "podman", {}, "cpu", "ramalama", (), (), "", (),
     "is unused: no CDI spec of kind nvidia.com/gpu exists; run: sudo nvidia-ctk cdi generate"),
    ("10", "rtx-4090-without-cdi", "auto", "docker", {}, "cuda", "cuda", (), (), "all", (), "the first choice"),
    ("10", "rtx-4090-without-cdi", "auto", "docker with CDI", {}, "cuda", "cuda", (), (), "all", (), "first choice"),
    ("11", "gtx-1080-driver-470", "auto", "podman", {}, "vulkan", "ramalama", (), ALL, "", (), "older than 525"),
    ("11b", "gtx-1080-nouveau", "auto", "podman", {}, "vulkan", "ramalama", (RENDER,), (), "", (), "runs on nouveau"),
    ("12", "two-rtx-3090", "auto", "podman", SECOND, "cuda", "cuda", (), ("nvidia.com/gpu=1",), "", (), "0000:4b:00.0"),
    ("12", "two-rtx-3090", "auto", "docker", SECOND, "cuda", "cuda", (), (), "device=1", (), "at 0000:4b:00.0"),
    ("13", "laptop-nvidia-and-intel", "auto", "podman", {}, "cuda", "cuda", (), ALL, "", (), "the first choice"),
    ("14", "arc-a770-xe", "auto", "podman", {}, "vulkan", "ramalama", (RENDER,), (), "", (), "(8086:56af)"),
    ("15", "core-ultra-with-npu", "auto", "podman", {}, "vulkan", "ramalama", (RENDER,), (), "", (), "(8086:7d55)"),
    ("15", "core-ultra-with-npu", "openvino", "podman", {}, "openvino", "openvino", ("/dev/accel/accel0", RENDER), (),
     "", OPENVINO, "asked for"),
    ("16", "arm64-rx-6700-xt", "auto", "podman", {}, "vulkan", "ramalama", (RENDER,), (), "", (),
     "no arm64 build of rocm"),
    ("17", "asahi-m1", "auto", "podman", {}, "vulkan", "ramalama", (RENDER,), (), "", (), "Apple GPU"),
    ("18", "wsl-nvidia", "auto", "podman", {}, "cuda", "cuda", (), ALL, "", (), "the first choice"),
    ("18", "wsl-nvidia", "auto", "docker", {}, "cuda", "cuda", (), (), "all", (), "the first choice"),
    ("19", "wsl-without-nvidia", "auto", "podman", {}, "cpu", "ramalama", (), (), "", (), "only as /dev/dxg"),
    ("20", "ascend-910b", "auto", "podman", {}, "cann", "cann", DAVINCI, (), "", (), "(19e5:d802)"),
    ("20", "ascend-910b", "auto", "docker", {}, "cann", "cann", DAVINCI, (), "", (), "the first choice"),
    ("21", "mtt-s80", "auto", "podman", {}, "musa", "musa", ("/dev/mtgpu.0",), (), "", MUSA, "(1ed5:0201)"),
    ("21", "mtt-s80", "auto", "docker", {}, "musa", "musa", (), (), "", MUSA, "the first choice"),
    ("22", "mac-podman-libkrun", "auto", "podman", {}, "vulkan", "ramalama", ("/dev/dri",), (), "", (), "Apple GPU"),
    ("22", "mac-podman-libkrun", "auto", "docker", {}, "cpu", "ramalama", (), (), "", (), "docker does not pass"),
    ("22", "mac-podman-libkrun", "auto", "none", {}, "metal", "", (), (), "", (), "Metal is at hand"),
    ("23", "mac-podman-applehv", "auto", "podman", {}, "cpu", "ramalama", (), (), "", (),
     "libkrun would give the GPU, --nocontainer would use Metal"),
    ("23", "mac-podman-applehv", "auto", "none", {}, "metal", "", (), (), "", (), "Metal is at hand"),
    ("24", "rx-580", "auto", "podman", {}, "vulkan", "ramalama", (RENDER,), (), "", (), "gfx803"),
    ("25", "ten-mi50-and-mi100", "rocm", "podman", {}, "rocm", "rocm", ("/dev/kfd", "/dev/dri/renderD137"), (), "", (),
     "asked for"),
    ("26", "s390x", "auto", "podman", {}, "cpu", S390X, (), (), "", (), "--image-family llama.cpp has one"),
    # Besides the list.
    ("+", "jetson-agx-orin", "auto", "podman", {}, "cuda", "cuda", (), ALL, "", (), "Jetson AGX Orin"),
    ("+", "eight-h100", "auto", "podman", {}, "cuda", "cuda", (), ALL, "", (), "8 × NVIDIA H100"),
    ("+", "eight-h100", "auto", "podman", {"CUDA_VISIBLE_DEVICES": "6,2"}, "cuda", "cuda", (),
     ("nvidia.com/gpu=2", "nvidia.com/gpu=6"), "", (("CUDA_VISIBLE_DEVICES", "1,0"),), "0000:d1:00.0"),
    ("+", "two-flex-170", "auto", "podman", {}, "vulkan", "ramalama", (RENDER, "/dev/dri/renderD129"), (), "", (),
     "(8086:56c0)"),
    ("+", "amd-and-nvidia", "auto", "podman", {}, "cuda", "cuda", (), ALL, "", (), "RTX 4090"),
    ("+", "amd-and-nvidia", "rocm", "podman", {}, "rocm", "rocm", ("/dev/kfd", RENDER), (), "", (), "asked for"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join((*row[:4], *row[4])))
def test_machines_that_must_come_out_right(row):
    _, name, wish, engine, environment, backend, ref, nodes, cdi, gpus, env, words = row
    found, image = decide(host(name), wish, engine, environment)
    assert (found.backend, found.device_nodes, found.cdi_devices, found.docker_gpus, found.env, found.groups) == (
        backend, nodes, cdi, gpus, env, (),
    )  # fmt: skip
    assert found.oci_runtime == ("mthreads" if (name, engine) == ("mtt-s80", "docker") else "")
    if engine != "none":
        assert image.ref == (ref if ":" in ref else f"quay.io/ramalama/{ref}:0.25")
    assert [candidate.backend for candidate in found.candidates if candidate.chosen] == [backend]
    assert words in " | ".join((found.why, *found.warnings, image.why))


def test_every_number_of_the_list_is_there():
    assert {row[0] for row in ROWS} >= {*map(str, range(1, 27)), "11b"}


def test_only_cards_that_lie_idle_are_warned_about():
    idle = {"rtx-4090-without-cdi", "mac-podman-applehv"}
    assert {name for name in MACHINES if choose(host(name)).warnings} == idle


def test_the_card_of_the_last_node_has_the_number_of_hip():
    facts = host("ten-mi50-and-mi100")
    assert [(node.number, node.hip_index) for node in facts.kfd_nodes] == [(node, node - 2) for node in range(2, 12)]
    (card,) = [card for card in facts.gpus if card.kfd_node == 11]
    assert (card.hip_index, card.render_node) == (9, "/dev/dri/renderD137")
    told = json.loads(run_cli("--nocontainer", "info", "--host-facts", str(HOSTS / "ten-mi50-and-mi100")).out)
    numbers = {gpu["render_node"]: gpu["hip_index"] for gpu in told["HostFacts"]["gpus"]}
    assert numbers["/dev/dri/renderD137"] == 9


# What is written for people. UPDATE_GOLDEN=1 writes it anew.


def compare(file, text):
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


@pytest.mark.parametrize("name", MACHINES)
def test_decisions_are_the_recorded_ones(name):
    compare(TEST / "golden" / "hosts" / f"{name}.txt", golden(name))


def test_the_document_is_made_from_the_recorded_hosts():
    compare(DOCUMENT, document())


def test_every_folder_has_a_title_a_source_and_a_golden_file():
    folders = {path.name for path in HOSTS.iterdir() if path.is_dir()}
    assert folders == set(MACHINES)
    assert folders == {path.stem for path in (TEST / "golden" / "hosts").iterdir()}
    sources = (HOSTS / "README.md").read_text("utf-8")
    assert {name for name in folders if f"| `{name}` |" not in sources} == set()
