"""``--gpu``: which cards a selector means, how they reach each engine and backend, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_accelerator import ENGINES, INDEXED, amd, choose, host, machine, nvidia, quad, spec

from ramalama_like.errors import ValueProblem
from ramalama_like.facts import DeviceNode, Gpu, KfdNode
from ramalama_like.gpu_selectors import card_selectors
from ramalama_like.options import BACKENDS
from ramalama_like.value import replace

PODMAN, DOCKER, NATIVE = ENGINES["podman"], ENGINES["docker"], ENGINES["none"]
WITH_CDI = ENGINES["docker with CDI"]


def passed(facts, *gpus, backend="auto", engine=PODMAN, environment=None):
    found = choose(facts, backend, engine, environment, gpus=gpus)
    devices = (*found.device_nodes, *found.cdi_devices, *((found.docker_gpus,) if found.docker_gpus else ()))
    return found.backend, devices, dict(found.env)


def refusal(facts, *gpus, backend="auto", engine=PODMAN, environment=None):
    with pytest.raises(ValueProblem) as caught:
        choose(facts, backend, engine, environment, gpus=gpus)
    assert caught.value.exit_code == 22
    return caught.value.message, caught.value.hint


THREE_AMD = machine(
    amd(0, pci_address="0000:83:00.0", kfd_node=1, name="AMD Radeon Pro W7900"),
    amd(1, pci_address="0000:03:00.0", kfd_node=2),
    amd(2, pci_address="0000:c1:00.0", kfd_node=3, gfx="gfx1036", integrated=True, vram_bytes=1 << 29),
    kfd_nodes=(KfdNode(1, 0, unique_id="GPU-00000000000000ab"), KfdNode(2, 1, unique_id="GPU-00000000000000cd")),
)


@pytest.mark.parametrize(
    "selector",
    ["2", "GPU-2aaa-bbb", "gpu-2aaa", "0000:03:00.0", "03:00.0", "00000000:03:00.0", "nvidia:2", "NVIDIA:2", "02,2"],
)
def test_every_way_to_name_one_of_four_cards(selector):
    facts = quad(*INDEXED)
    assert passed(facts, selector) == ("cuda", ("nvidia.com/gpu=2",), {})
    assert passed(facts, selector, backend="cuda", engine=DOCKER) == ("cuda", ("device=2",), {})
    assert passed(facts, selector, engine=WITH_CDI) == ("cuda", ("nvidia.com/gpu=2",), {})
    # Without a container the variable narrows; a UUID means the same whatever the order.
    assert passed(facts, selector, engine=NATIVE) == ("cuda", (), {"CUDA_VISIBLE_DEVICES": "GPU-2aaa-bbb"})


def test_several_cards_in_whatever_order_and_spelling():
    facts = quad(*INDEXED)
    for gpus in (("3", "1"), ("1,3",), ("1", "GPU-3aaa", "3")):
        assert passed(facts, *gpus) == ("cuda", ("nvidia.com/gpu=1", "nvidia.com/gpu=3"), {})
        assert passed(facts, *gpus, engine=DOCKER) == ("cuda", ("device=1,3",), {})
    assert passed(facts, "all")[1] == tuple(f"nvidia.com/gpu={number}" for number in range(4))
    assert passed(facts, "a6000")[1] == tuple(f"nvidia.com/gpu={number}" for number in range(4))


@pytest.mark.parametrize("selector", ["1", "amd:1", "03:00.0", "GPU-00000000000000cd", "/dev/dri/renderD129"])
def test_amd_cards_are_narrowed_by_their_nodes_and_numbered_as_hip_does(selector):
    assert passed(THREE_AMD, selector) == ("vulkan", ("/dev/dri/renderD129",), {})
    assert passed(THREE_AMD, selector, backend="rocm") == ("rocm", ("/dev/kfd", "/dev/dri/renderD129"), {})
    assert passed(THREE_AMD, selector, backend="rocm", engine=NATIVE) == ("rocm", (), {"HIP_VISIBLE_DEVICES": "1"})


def test_a_part_of_the_name():
    assert passed(THREE_AMD, "W7900")[1] == ("/dev/dri/renderD128",)
    assert passed(THREE_AMD, "radeon w7900")[1] == ("/dev/dri/renderD128",)
    assert passed(THREE_AMD, "gfx1036")[1] == ("/dev/dri/renderD130",)
    # Both, though the one without --gpu would be left out for having less memory.
    assert passed(THREE_AMD, "0,2")[1] == ("/dev/dri/renderD128", "/dev/dri/renderD130")


def test_recorded_hosts():
    two = host("two-rtx-3090")
    assert passed(two, "1") == ("cuda", ("nvidia.com/gpu=1",), {})
    assert passed(two, "4b:00.0", engine=DOCKER) == ("cuda", ("device=1",), {})
    discrete = host("rx-7900-xtx-and-igpu")
    assert list(card_selectors(discrete)) == ["amd:0", "amd:1"]
    assert passed(discrete, "gfx1036")[0] == "vulkan"
    assert passed(host("two-mi300x"), "1", backend="rocm")[1] == ("/dev/kfd", "/dev/dri/renderD136")
    laptop = host("laptop-nvidia-and-intel")
    assert passed(laptop, "intel:0")[:1] == ("vulkan",)
    assert passed(laptop, "nvidia:0") == ("cuda", ("nvidia.com/gpu=0",), {})


def test_a_number_that_two_vendors_have_is_refused():
    message, hint = refusal(host("laptop-nvidia-and-intel"), "0")
    assert message == "--gpu 0 may mean cards of several vendors"
    assert hint.startswith("known: nvidia:0 (NVIDIA GeForce RTX 4060 Laptop GPU at 0000:01:00.0), intel:0 (")
    # A backend may leave only one vendor to choose from.
    assert passed(host("laptop-nvidia-and-intel"), "0", backend="cuda")[0] == "cuda"


@pytest.mark.parametrize(
    "selector", ["9", "x", "GPU-ffff", "amd:0", "0000:09:00.0", "/dev/dri/renderD200", ":", "nvidia:"]
)
def test_a_selector_that_names_no_card(selector):
    message, hint = refusal(quad(*INDEXED), selector)
    assert message == f"--gpu {selector} names no card of this machine"
    assert hint.startswith("known: nvidia:0 (NVIDIA RTX A6000 at 0000:01:00.0), nvidia:1 (")


def test_what_cannot_be_honoured_is_an_error_and_not_the_processor():
    assert refusal(machine(), "0") == (
        "--gpu 0: no card was found on this machine",
        "see what was found with: ramalama-like info",
    )
    assert refusal(quad(*INDEXED), ",") == (
        "--gpu: the selector is empty",
        refusal(quad(*INDEXED), "9")[1],
    )
    assert refusal(quad(*INDEXED), "0", backend="rocm")[0] == "--gpu 0: no card for ROCm was found on this machine"
    assert refusal(quad(*INDEXED), "0", backend="cpu") == (
        "--gpu 0: CPU uses no card that could be chosen",
        "leave out --gpu, or the backend",
    )
    both = machine(amd(0), nvidia(0, pci_address="0000:09:00.0"), nvidia_driver="580.1", cdi=(spec("0", "all"),))
    assert refusal(both, "amd:0,nvidia:0")[0] == (
        "--gpu amd:0,nvidia:0 names cards of several vendors, and one server computes with those of one"
    )
    no_spec = machine(nvidia(), nvidia_driver="580.1")
    message, _ = refusal(no_spec, "0")
    assert message.startswith("--gpu 0 cannot be used: cuda: no CDI spec of kind nvidia.com/gpu exists; run: sudo ")
    assert refusal(no_spec, "0", backend="cuda") == (
        "--gpu 0: no CDI spec of kind nvidia.com/gpu exists",
        "run: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
    )
    assert refusal(machine(amd(driver="vfio-pci", render_node="")), "0", backend="rocm")[0] == (
        "--gpu 0: AMD Radeon (gfx1100) at 0000:01:00.0 has no render node that could be passed"
    )
    with pytest.raises(ValueProblem, match="--gpu 0 and --device none exclude each other"):
        choose(quad(*INDEXED), devices=("none",), gpus=("0",))


def test_a_spec_that_cannot_narrow():
    assert refusal(quad("all"), "2") == (
        "--gpu 2: the CDI spec has no name for NVIDIA RTX A6000 at 0000:03:00.0 alone",
        "write it anew: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
    )
    assert passed(quad("all"), "0,1,2,3") == ("cuda", ("nvidia.com/gpu=all",), {})
    assert passed(quad("all"), "2", engine=WITH_CDI) == ("cuda", ("device=2",), {})  # docker can, without CDI
    assert passed(quad("gpu0", "gpu1", "gpu2", "gpu3"), "2")[1] == ("nvidia.com/gpu=gpu2",)


def test_the_users_variables_are_never_widened():
    facts = quad(*INDEXED)
    cuda = {"CUDA_VISIBLE_DEVICES": "3,1"}
    assert passed(facts, "1", environment=cuda) == ("cuda", ("nvidia.com/gpu=1",), {})
    assert passed(facts, "0,1,3", environment=cuda) == (
        "cuda",
        ("nvidia.com/gpu=1", "nvidia.com/gpu=3"),
        {"CUDA_VISIBLE_DEVICES": "1,0"},  # the user's order, in the numbers of the inside
    )
    assert passed(facts, "3", environment=cuda, engine=NATIVE)[2] == {"CUDA_VISIBLE_DEVICES": "GPU-3aaa-bbb"}
    assert refusal(facts, "0,2", environment=cuda) == (
        "--gpu 0,2 and CUDA_VISIBLE_DEVICES=3,1 have no card in common",
        "leave one of them out: unset CUDA_VISIBLE_DEVICES",
    )
    hip = {"HIP_VISIBLE_DEVICES": "1,0"}
    assert passed(THREE_AMD, "0,1", environment=hip, backend="rocm") == (
        "rocm",
        ("/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"),
        {"HIP_VISIBLE_DEVICES": "1,0"},
    )
    assert passed(THREE_AMD, "1", environment=hip, backend="rocm") == ("rocm", ("/dev/kfd", "/dev/dri/renderD129"), {})
    assert refusal(THREE_AMD, "0", environment={"ROCR_VISIBLE_DEVICES": "0,1", **hip}, backend="rocm")[0] == (
        "--gpu 0 and HIP_VISIBLE_DEVICES both choose cards, and cannot be combined"
    )
    assert refusal(THREE_AMD, "0", environment={"GGML_VK_VISIBLE_DEVICES": "0"})[0] == (
        "--gpu 0 and GGML_VK_VISIBLE_DEVICES both choose cards, and cannot be combined"
    )


def test_npus_by_the_number_of_their_nodes():
    nodes = [DeviceNode(f"/dev/{name}") for name in ("davinci0", "davinci1", "davinci_manager", "hisi_hdc")]
    cards = (Gpu("ascend", pci_address="0000:01:00.0"), Gpu("ascend", pci_address="0000:02:00.0"))
    facts = machine(*cards, nodes=tuple(nodes), arch="arm64")
    assert passed(facts, "1")[1] == ("/dev/davinci1", "/dev/davinci_manager", "/dev/hisi_hdc")
    assert passed(facts, "1", engine=NATIVE)[2] == {"ASCEND_RT_VISIBLE_DEVICES": "1"}
    fewer = replace(facts, nodes=tuple(nodes[1:]))
    assert refusal(fewer, "1")[0] == (
        "--gpu 1: which of the nodes /dev/davinci* belongs to which card is unknown: there are 1 for 2 cards"
    )
    musa = machine(
        Gpu("moore-threads", pci_address="0000:01:00.0"),
        Gpu("moore-threads", pci_address="0000:02:00.0"),
        nodes=(DeviceNode("/dev/mtgpu0"), DeviceNode("/dev/mtgpu1")),
    )
    assert passed(musa, "1") == ("musa", ("/dev/mtgpu1",), {"MTHREADS_VISIBLE_DEVICES": "all"})
    assert passed(musa, "1", engine=DOCKER) == ("musa", (), {"MTHREADS_VISIBLE_DEVICES": "1"})


def test_cards_that_only_their_nodes_tell_of():
    nodes = [DeviceNode(f"/dev/{name}") for name in ("davinci0", "davinci1", "davinci_manager")]
    facts = machine(*(Gpu("ascend", own_node=node.path) for node in nodes[:2]), nodes=tuple(nodes), arch="arm64")
    for selector in ("1", "/dev/davinci1"):
        assert passed(facts, selector)[1] == ("/dev/davinci1", "/dev/davinci_manager")
    assert "Ascend NPU at /dev/davinci1" in choose(facts, gpus=("1",)).why
    # Facts of older versions do not tell them apart.
    older = replace(facts, gpus=(Gpu("ascend"), Gpu("ascend")))
    assert refusal(older, "1")[0] == "--gpu 1: nothing that is known of these cards tells them apart"
    assert len(passed(older, "all")[1]) == 3


def test_numbers_are_those_of_the_vendors_tools_even_where_one_card_has_none():
    cards = (nvidia(0, driver="vfio-pci", nvidia_index=None, nvidia_uuid=""), nvidia(1, nvidia_index=0))
    facts = machine(*cards, nvidia_driver="580.1", cdi=(spec("0", "all"),))
    assert passed(facts, "0") == ("cuda", ("nvidia.com/gpu=0",), {})
    assert "runs on vfio-pci" in refusal(facts, "1", backend="cuda")[0]


def test_a_beginning_of_several_uuids_is_refused():
    cards = (nvidia(0, nvidia_uuid="GPU-77aa-1"), nvidia(1, nvidia_uuid="GPU-77aa-2"))
    facts = machine(*cards, nvidia_driver="580.1", cdi=(spec("0", "1", "all"),))
    assert refusal(facts, "GPU-77aa")[0] == "--gpu GPU-77aa is how several UUIDs begin"
    assert passed(facts, "GPU-77aa-2")[1] == ("nvidia.com/gpu=1",)


@pytest.mark.parametrize("selector", ["0000:0", "00:", "0000:03:00", "03:00", "1:03:00.0", "\u00b2", "\u0662", "GPU-"])
def test_a_part_of_an_address_names_no_card(selector):
    assert refusal(quad(*INDEXED), selector)[0] == f"--gpu {selector} names no card of this machine"


def test_a_card_that_the_backend_cannot_use():
    both = host("amd-and-nvidia")
    assert refusal(both, "nvidia:0", backend="rocm") == (
        "--gpu nvidia:0: ROCm cannot use NVIDIA GeForce RTX 4090 at 0000:01:00.0",
        "known: amd:0 (AMD Radeon (gfx1100) at 0000:03:00.0)",
    )
    for engine in ENGINES.values():
        assert refusal(host("gtx-1080-nouveau"), "0", backend="cuda", engine=engine)[0] == (
            "--gpu 0: NVIDIA card (10de:1b80) at 0000:01:00.0 runs on nouveau, CUDA needs nvidia"
        )


def test_metal_computes_on_the_only_card():
    for name in ("mac-podman-libkrun", "mac-podman-applehv"):
        mac = host(name)
        for backend in ("auto", "metal"):
            assert passed(mac, "0", backend=backend, engine=NATIVE) == ("metal", (), {})
            assert "--gpu 0" in choose(mac, backend, NATIVE, gpus=("0",)).why
        assert refusal(mac, "1", backend="metal", engine=NATIVE)[0] == "--gpu 1 names no card of this machine"
        assert (
            refusal(mac, "0", backend="metal")[0] == "--gpu 0: Metal works only outside of containers (--nocontainer)"
        )


def test_beside_a_variable_that_says_what_nobody_here_knows():
    for engine in ENGINES.values():
        assert refusal(quad(*INDEXED), "1", environment={"CUDA_VISIBLE_DEVICES": "MIG-1"}, engine=engine)[0] == (
            "--gpu 1 and CUDA_VISIBLE_DEVICES=MIG-1 both choose cards, and cannot be combined"
        )
    with_npu = host("core-ultra-with-npu")
    for device in ("NPU", "CPU", "GPU.1"):
        found = refusal(with_npu, "0", backend="openvino", environment={"GGML_OPENVINO_DEVICE": device})
        assert found[0] == "--gpu 0 and GGML_OPENVINO_DEVICE both choose cards, and cannot be combined"
    assert passed(with_npu, "0", backend="openvino", environment={"GGML_OPENVINO_DEVICE": "gpu"})[0] == "openvino"


def test_without_a_container_vulkan_cannot_be_narrowed():
    assert passed(machine(amd(0)), "0", engine=NATIVE, backend="vulkan") == ("vulkan", (), {})
    assert refusal(THREE_AMD, "1", engine=NATIVE, backend="vulkan") == (
        "--gpu 1: Vulkan numbers cards by itself, so they cannot be chosen without a container",
        "look at llama-server --list-devices, and use --runtime-args '--device NAME'",
    )


def test_the_reason_tells_of_it():
    assert choose(quad(*INDEXED), gpus=("2",)).why == (
        "cuda is the first choice for NVIDIA RTX A6000 at 0000:03:00.0, which --gpu 2 asks for"
    )
    assert choose(quad(*INDEXED), "vulkan", gpus=("2",)).why == (
        "Vulkan was asked for by --backend, on the cards of --gpu 2"
    )


SOME = st.one_of(
    st.text(max_size=12), st.sampled_from(["0", "1", "all", "GPU-2aaa", "0000:03:00.0", "nvidia:1", "a6000"])
)


@given(st.lists(SOME, min_size=1, max_size=3), st.sampled_from(BACKENDS), st.sampled_from(sorted(ENGINES)))
def test_never_more_than_was_asked_for(gpus, backend, engine):
    facts = quad(*INDEXED)
    try:
        found = choose(facts, backend, ENGINES[engine], gpus=tuple(gpus))
    except ValueProblem as error:
        assert error.message and error.hint
        return
    wanted = {number for number in range(4) if facts.gpus[number].pci_address in found.name}
    assert wanted
    if found.cdi_devices:
        assert found.cdi_devices == tuple(f"nvidia.com/gpu={number}" for number in sorted(wanted))
    elif found.docker_gpus:
        assert found.docker_gpus == f"device={','.join(map(str, sorted(wanted)))}"
