"""Which accelerator is chosen: the rules one by one. The recorded hosts are in test_machines.py."""

from pathlib import Path

import pytest

from ramalama_like.accelerator import choose_accelerator, gpu_variables
from ramalama_like.errors import ValueProblem
from ramalama_like.facts import CdiSpec, DeviceNode, EngineFacts, Gpu, HostFacts, KfdNode, Npu
from ramalama_like.image import choose_image
from ramalama_like.options import BACKENDS, Setting
from ramalama_like.probe import probe
from ramalama_like.value import replace

HERE = Path(__file__).parent
HOSTS = sorted(path.name for path in (HERE / "hosts").iterdir() if path.is_dir())
ENGINES = {
    "podman": EngineFacts("podman"),
    "docker": EngineFacts("docker"),
    "docker with CDI": EngineFacts("docker", cdi_directories=("/etc/cdi", "/var/run/cdi")),
    "none": EngineFacts("none"),
}
PODMAN = ENGINES["podman"]


def choose(facts, backend="auto", engine=PODMAN, environment=None, devices=(), keep_groups=None, family="ramalama",
           gpus=()):  # fmt: skip
    return choose_accelerator(
        backend=Setting(backend, "default" if backend == "auto" else "--backend"),
        devices=Setting(devices, "--device" if devices else "default"),
        keep_groups=Setting(bool(keep_groups), "default" if keep_groups is None else "--keep-groups"),
        gpus=Setting(gpus, "--gpu" if gpus else "default"),
        facts=facts,
        engine=engine,
        family=family,
        environment=environment or {},
    )


def image_of(accelerator, facts, family="ramalama"):
    return choose_image(
        accelerator=accelerator,
        facts_arch=facts.arch,
        family=Setting(family),
        explicit=Setting(""),
        overrides=Setting({}),
        default_image=Setting(""),
    )


def host(name):
    return probe(str(HERE / "hosts" / name))


RENDER = "/dev/dri/renderD128"


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_explicit_backend_is_always_obeyed(name, backend, engine):
    facts = host(name)
    found = choose(facts, backend, ENGINES[engine])
    assert backend == "auto" or found.backend == {"intel": "sycl"}.get(backend, backend)
    virtual = {"/dev/dri"} if facts.os == "darwin" else set()  # nodes of podman's virtual machine
    assert set(found.device_nodes) <= {node.path for node in facts.nodes} | virtual
    assert not (ENGINES[engine].kind != "docker" and (found.docker_gpus or found.oci_runtime or found.groups))
    assert not (engine == "none" and (found.device_nodes or found.cdi_devices))
    for family in ("ramalama", "llama.cpp", "local"):
        assert image_of(choose(facts, backend, ENGINES[engine], family=family), facts, family).ref


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_device_none_alone_keeps_everything_out(name, backend):
    found = choose(host(name), backend, devices=("none",), environment=dict.fromkeys(gpu_variables(), "0"))
    assert (found.device_nodes, found.cdi_devices, found.docker_gpus, found.env, found.groups) == ((), (), "", (), ())
    assert found.backend == ("cpu" if backend == "auto" else {"intel": "sycl"}.get(backend, backend))


# Rules one by one.


def amd(number=0, **changes):
    fields = {
        "vendor": "amd", "pci_address": f"0000:0{number + 1}:00.0", "driver": "amdgpu", "integrated": False,
        "gfx": "gfx1100", "hip_index": number, "render_node": f"/dev/dri/renderD{128 + number}", "vram_bytes": 24 << 30,
    }  # fmt: skip
    return Gpu(**{**fields, **changes})


def nvidia(number=0, **changes):
    fields = {
        "vendor": "nvidia", "pci_address": f"0000:0{number + 1}:00.0", "driver": "nvidia", "integrated": False,
        "name": "NVIDIA RTX A6000", "nvidia_index": number, "nvidia_uuid": f"GPU-{number}aaa-bbb",
    }  # fmt: skip
    return Gpu(**{**fields, **changes})


def machine(*gpus, **more):
    nodes = [DeviceNode("/dev/kfd"), *(DeviceNode(gpu.render_node) for gpu in gpus if gpu.render_node)]
    return HostFacts(**{"root": "/x", "arch": "amd64", "gpus": gpus, "nodes": tuple(nodes), **more})


def spec(*names, file="/etc/cdi/nvidia.yaml", missing=()):
    return CdiSpec("nvidia.com/gpu", names, file, missing=missing)


def quad(*names, **more):
    return machine(*(nvidia(number) for number in range(4)), nvidia_driver="580.1", cdi=(spec(*names),), **more)


def cuda(facts, text, engine=PODMAN):
    found = choose(facts, environment={"CUDA_VISIBLE_DEVICES": text}, engine=engine)
    return tuple(device.partition("=")[2] for device in found.cdi_devices) or found.docker_gpus, dict(found.env)


INDEXED = ("0", "1", "2", "3", "all")


def test_cards_of_nvidia_are_narrowed_to_those_the_user_named():
    facts = quad(*INDEXED)
    assert cuda(facts, "2") == (("2",), {})
    assert cuda(facts, "1,3") == (("1", "3"), {})
    assert cuda(facts, "GPU-2aaa") == (("2",), {})
    assert cuda(facts, "0,0") == (("0",), {})
    # The order is the user's, so the numbers of the inside say it.
    assert cuda(facts, "3,1") == (("1", "3"), {"CUDA_VISIBLE_DEVICES": "1,0"})
    assert cuda(facts, "0,9") == (("0",), {})
    assert cuda(facts, "") == (("all",), {})


def test_cards_are_found_under_the_names_of_the_spec():
    assert cuda(quad("gpu0", "gpu1", "gpu2", "gpu3"), "1") == (("gpu1",), {})
    uuids = [f"GPU-{number}aaa-bbb" for number in range(4)]
    assert cuda(quad(*uuids), "1") == (("GPU-1aaa-bbb",), {})
    assert cuda(quad(*uuids), "") == (tuple(uuids), {})
    # Names that only the spec knows: the cards sleep.
    sleeping = machine(nvidia(nvidia_uuid=""), nvidia_driver="580.1", cdi=(spec("0", "GPU-77", "all"),))
    assert cuda(sleeping, "GPU-77") == (("GPU-77",), {})
    assert cuda(sleeping, "GPU-88") == (("all",), {"CUDA_VISIBLE_DEVICES": "GPU-88"})
    assert cuda(quad(*INDEXED), "MIG-1") == (("all",), {"CUDA_VISIBLE_DEVICES": "MIG-1"})


def test_every_spelling_is_honoured_exactly_or_refused():
    facts = quad(*INDEXED)
    for text, names in {" 1": ("1",), "1,": ("1",), "0,-1,1": ("0",), "0,9,1": ("0",), "0,x": ("0",),
                        "0,GPU-1aaa": ("0", "1"), "GPU-1aaa,0": ("0", "1")}.items():  # fmt: skip
        assert cuda(facts, text)[0] == names
    for text in ("9", "x", "\u00b2", "\u0663", "0,,1", ",", " ", "9,0", "01", "all", "GPU-", "+1", "0-1"):
        for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
            if (name, text) == ("NVIDIA_VISIBLE_DEVICES", "all"):
                continue
            with pytest.raises(ValueProblem) as caught:
                choose(facts, environment={name: text})
            assert caught.value.message.startswith(f"{name}={text}")
            assert caught.value.hint.startswith("Known cards: 0 (NVIDIA RTX A6000 at 0000:01:00.0), 1 (")
    found = choose(facts, environment={"CUDA_VISIBLE_DEVICES": "0,9,1"})
    assert found.warnings == ("CUDA_VISIBLE_DEVICES: 9 names no known card, and so 1 does not count",)
    # Without a container the server reads it itself: nothing that it would read in another way is left in it.
    for text, plain in {"0,0": "0", " 1": "1", "0,GPU-1aaa": "GPU-0aaa-bbb,GPU-1aaa-bbb", "1,0": "1,0"}.items():
        assert cuda(facts, text, ENGINES["none"])[1] == {"CUDA_VISIBLE_DEVICES": plain}


def test_what_starts_containers_reads_its_own_variables():
    facts = quad(*INDEXED)

    def choice(text, engine="podman", facts=facts, **more):
        found = choose(facts, engine=ENGINES[engine], environment={"NVIDIA_VISIBLE_DEVICES": text, **more})
        return found.backend, found.cdi_devices, found.docker_gpus, dict(found.env)

    assert choice("2") == ("cuda", ("nvidia.com/gpu=2",), "", {})
    assert choice("2", "docker") == ("cuda", (), "device=2", {})
    assert choice("2", "none") == ("cuda", (), "", {"CUDA_VISIBLE_DEVICES": "GPU-2aaa-bbb"})
    assert choice("all") == ("cuda", ("nvidia.com/gpu=all",), "", {})
    assert [choice(text)[0] for text in ("none", "void")] == ["cpu", "cpu"]
    assert choice("1,2", CUDA_VISIBLE_DEVICES="3,2")[1:] == (("nvidia.com/gpu=2",), "", {})
    with pytest.raises(ValueProblem, match="CUDA_VISIBLE_DEVICES=3 and NVIDIA_VISIBLE_DEVICES=1 have no card"):
        choice("1", CUDA_VISIBLE_DEVICES="3")
    # In a container it has been obeyed, and CDI itself sets it to void.
    inside = replace(facts, in_container="container")
    assert choice("void", "none", inside) == ("cuda", (), "", {})
    npus = [Gpu("ascend", pci_address=f"0000:0{number}:00.0") for number in (1, 2)]
    nodes = tuple(DeviceNode(f"/dev/{name}") for name in ("davinci0", "davinci1", "davinci_manager"))
    ascend = machine(*npus, nodes=nodes, arch="arm64")
    for text, passed in {"1": nodes[1:], "0-1": nodes, "all": nodes}.items():
        found = choose(ascend, environment={"ASCEND_VISIBLE_DEVICES": text})
        assert found.device_nodes == tuple(node.path for node in passed)
        assert found.env == (("ASCEND_VISIBLE_DEVICES", text),)
    # The server's own counts all cards.
    found = choose(ascend, environment={"ASCEND_RT_VISIBLE_DEVICES": "1"})
    assert (found.device_nodes, found.env) == (
        tuple(node.path for node in nodes), (("ASCEND_RT_VISIBLE_DEVICES", "1"),)
    )  # fmt: skip
    assert found.cards == (npus[1],)


def test_hip_would_read_a_variable_of_cuda():
    two = machine(amd(0), amd(1))
    both = machine(amd(0), amd(1), nvidia(0, pci_address="0000:09:00.0"), nvidia_driver="580.1", cdi=(spec("all"),))
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
    for facts in (two, both):
        found = choose(facts, "rocm", environment=hidden)
        assert (found.device_nodes, found.env) == (("/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"), ())
        # Without a container the server inherits it; HIP's own comes first.
        assert choose(facts, "rocm", ENGINES["none"], hidden).env == (("HIP_VISIBLE_DEVICES", "0,1"),)
    assert choose(two, "rocm", environment=hidden).warnings == (
        "CUDA_VISIBLE_DEVICES is not passed: no NVIDIA card was found, and rocm would take it for its own",
    )
    # AMD's manual has it so where there are only AMD's cards.
    found = choose(two, "rocm", environment={"CUDA_VISIBLE_DEVICES": "1"})
    assert (found.env, found.cards) == ((("CUDA_VISIBLE_DEVICES", "1"),), (two.gpus[1],))
    assert choose(both, "rocm", environment={"CUDA_VISIBLE_DEVICES": "0"}).env == ()


def test_several_variables_of_amd_leave_what_all_of_them_leave():
    facts = machine(amd(0), amd(1), amd(2))
    nested = {"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"}  # HIP counts among those of ROCr
    assert choose(facts, "vulkan", environment=nested).device_nodes == ("/dev/dri/renderD130",)
    found = choose(facts, "rocm", environment=nested)
    assert (len(found.device_nodes), dict(found.env), found.cards) == (4, nested, (facts.gpus[2],))
    # What HIP may not read does not stay a number: the cards are narrowed.
    found = choose(facts, "rocm", environment={"GPU_DEVICE_ORDINAL": "1"})
    assert found.device_nodes == ("/dev/kfd", "/dev/dri/renderD129")
    with pytest.raises(ValueProblem, match="have no card in common"):
        choose(facts, "rocm", environment={"GPU_DEVICE_ORDINAL": "1", "HIP_VISIBLE_DEVICES": "0"})


def test_a_back_end_that_would_not_keep_to_a_variable():
    intel = [Gpu("intel", pci_address=f"0000:0{number}:00.0", driver="xe", integrated=False,
                 render_node=f"/dev/dri/renderD{128 + number}") for number in (0, 1)]  # fmt: skip
    found = choose(machine(*intel), environment={"ONEAPI_DEVICE_SELECTOR": "level_zero:1"})
    assert (found.backend, len(found.device_nodes)) == ("sycl", 2)
    assert choose(machine(*intel[:1]), environment={"ONEAPI_DEVICE_SELECTOR": "level_zero:0"}).backend == "vulkan"
    # Without a container nothing narrows Vulkan.
    hip = {"HIP_VISIBLE_DEVICES": "1"}
    two = machine(amd(0), amd(1))
    assert choose(two, engine=ENGINES["none"], environment=hip).backend == "rocm"
    with pytest.raises(ValueProblem, match="HIP_VISIBLE_DEVICES=1 chooses cards, which Vulkan does not read"):
        choose(two, "vulkan", ENGINES["none"], hip)
    with pytest.raises(ValueProblem, match="HIP_VISIBLE_DEVICES=1 and GGML_VK_VISIBLE_DEVICES=0 both choose cards"):
        choose(two, "vulkan", environment={**hip, "GGML_VK_VISIBLE_DEVICES": "0"})
    closed = machine(amd(0), nvidia(0, pci_address="0000:09:00.0"), nvidia_driver="580.1")
    with pytest.raises(ValueProblem, match=r"GGML_VK_VISIBLE_DEVICES=0 counts NVIDIA RTX A6000 .* cannot be passed"):
        choose(closed, "vulkan", environment={"GGML_VK_VISIBLE_DEVICES": "0"})


def test_numbers_of_vulkan_in_every_spelling():
    facts = machine(amd(0), amd(1))
    for text in ("2", "\u00b2", "0,2", "x", "0,,1", "1.0"):
        with pytest.raises(ValueProblem) as caught:
            choose(facts, environment={"GGML_VK_VISIBLE_DEVICES": text})
        assert caught.value.hint == "There are 2 cards, counted from 0. Or unset GGML_VK_VISIBLE_DEVICES."
    assert choose(facts, environment={"GGML_VK_VISIBLE_DEVICES": "1, 1"}).env == (("GGML_VK_VISIBLE_DEVICES", "1"),)
    found = choose(facts, environment={"GGML_VK_VISIBLE_DEVICES": "-1"})
    assert found.backend == "rocm"
    found = choose(facts, "vulkan", environment={"GGML_VK_VISIBLE_DEVICES": "-1"})
    assert (found.device_nodes, found.env, found.warnings) == (
        (), (), ("vulkan: GGML_VK_VISIBLE_DEVICES=-1 hides every card",)
    )  # fmt: skip


def test_unlike_cards_are_counted_in_the_order_in_which_they_are_named():
    cards = [nvidia(0), nvidia(1, name="NVIDIA L4")]
    facts = machine(*cards, nvidia_driver="580.1", cdi=(spec("0", "1", "all"),))
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert cuda(facts, "1", ENGINES["none"])[1] == {"CUDA_VISIBLE_DEVICES": "1", **order}
    assert cuda(facts, "1,0")[1] == {"CUDA_VISIBLE_DEVICES": "1,0", **order}
    assert cuda(facts, "1") == (("1",), {})
    assert choose(facts, environment={"CUDA_VISIBLE_DEVICES": "1", **order}).warnings == ()
    with pytest.raises(ValueProblem, match="with CUDA_DEVICE_ORDER=FASTEST_FIRST is not known here"):
        choose(facts, environment={"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"})


def test_cards_that_are_left_out_are_not_passed():
    cards = [nvidia(0, vram_bytes=8 << 30), nvidia(1, vram_bytes=24 << 30)]
    facts = machine(*cards, nvidia_driver="580.1", cdi=(spec("0", "1", "all"),))
    assert choose(facts).cdi_devices == ("nvidia.com/gpu=1",)
    assert choose(facts, engine=ENGINES["docker"]).docker_gpus == "device=1"
    assert choose(facts, engine=ENGINES["none"]).env == (("CUDA_VISIBLE_DEVICES", "GPU-1aaa-bbb"),)
    whole = replace(facts, cdi=(spec("all"),))
    assert (choose(whole).cdi_devices, "left out" in choose(whole).why) == (("nvidia.com/gpu=all",), False)


def test_a_variable_that_names_an_unfit_card_says_so():
    facts = machine(amd(0), amd(1, gfx="gfx1150"))
    found = choose(facts, "rocm", environment={"HIP_VISIBLE_DEVICES": "1,0"})
    assert found.device_nodes == ("/dev/kfd", "/dev/dri/renderD128")
    assert found.env == ()
    assert found.warnings == (
        "AMD Radeon (gfx1150) at 0000:02:00.0 is not used, though HIP_VISIBLE_DEVICES=1,0 names it: "
        "gfx1150 is not in the rocm image of the ramalama family",
    )


def test_specs_that_this_user_may_not_read():
    card = nvidia()
    for note in (
        "/etc/cdi cannot be read: Permission denied",
        "/etc/cdi/nvidia.yaml cannot be read: Permission denied",
    ):
        facts = machine(card, nvidia_driver="580.1", notes=(note,))
        words = f"{note.replace('Permission', 'permission')}; run: sudo chmod -R a+rX /etc/cdi"
        assert words in choose(facts).why
        assert choose(facts, engine=ENGINES["docker"]).docker_gpus == "all"
    named = machine(card, nvidia_driver="580.1", cdi=(spec("0", file="/var/run/cdi/nvidia.yaml"),), notes=(note,))
    assert choose(named).cdi_devices == ("nvidia.com/gpu=0",)


def test_where_the_spec_cannot_narrow_numbers_keep_their_meaning():
    assert cuda(quad("all"), "2") == (("all",), {"CUDA_VISIBLE_DEVICES": "2"})


def test_docker_narrows_too():
    docker = ENGINES["docker"]
    assert cuda(quad(), "2", docker) == ("device=2", {})
    assert cuda(quad(), "1,3", docker) == ("device=1,3", {})
    assert cuda(quad(), "3,1", docker) == ("device=1,3", {"CUDA_VISIBLE_DEVICES": "1,0"})
    assert cuda(quad(), "", docker) == ("all", {})


@pytest.mark.parametrize("text", ["7", "all", "GPU-ffff", "x,y"])
@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_a_variable_that_names_no_known_card_is_an_error(text, backend):
    with pytest.raises(ValueProblem) as caught:
        choose(quad(*INDEXED), backend, environment={"CUDA_VISIBLE_DEVICES": text})
    assert caught.value.exit_code == 22
    assert "CUDA_VISIBLE_DEVICES" in caught.value.hint
    assert "RTX A6000" in caught.value.hint


def test_such_a_variable_does_not_matter_for_other_backends():
    assert choose(quad(*INDEXED), "cpu", environment={"CUDA_VISIBLE_DEVICES": "7"}).backend == "cpu"


def test_a_variable_can_hide_every_card():
    found = choose(quad(*INDEXED), environment={"CUDA_VISIBLE_DEVICES": "-1"})
    assert (found.backend, found.cdi_devices) == ("cpu", ())
    assert "hides every card" in found.why
    assert not any("is unused" in text for text in found.warnings)


def test_a_variable_of_a_vendor_without_cards_is_passed_with_a_warning():
    found = choose(machine(), environment={"CUDA_VISIBLE_DEVICES": "1"})
    assert found.env == (("CUDA_VISIBLE_DEVICES", "1"),)
    assert any("CUDA_VISIBLE_DEVICES" in text for text in found.warnings)


def test_numbers_of_amd_keep_their_meaning_because_all_cards_are_passed():
    facts = machine(amd(0), amd(1), amd(2, gfx="gfx1036", integrated=True, vram_bytes=1 << 29))
    found = choose(facts, "rocm", environment={"HIP_VISIBLE_DEVICES": "1"})
    assert found.device_nodes == ("/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/dri/renderD130")
    assert found.env == (("HIP_VISIBLE_DEVICES", "1"),)
    assert found.name.endswith("at 0000:02:00.0")
    # Vulkan does not read the variable, so the nodes say it.
    found = choose(facts, "vulkan", environment={"HIP_VISIBLE_DEVICES": "1"})
    assert found.device_nodes == ("/dev/dri/renderD129",)
    with pytest.raises(ValueProblem):
        choose(facts, "rocm", environment={"HIP_VISIBLE_DEVICES": "3"})


def test_amd_cards_by_unique_id():
    nodes = (KfdNode(1, 0, unique_id="GPU-00ab"), KfdNode(2, 1, unique_id="GPU-00cd"))
    facts = machine(amd(0), amd(1), kfd_nodes=nodes)
    assert choose(facts, environment={"ROCR_VISIBLE_DEVICES": "gpu-00cd"}).name.endswith("at 0000:02:00.0")


def test_numbers_of_vulkan_count_all_cards():
    facts = machine(amd(0), amd(1, integrated=True, gfx="gfx1036"))
    found = choose(facts, environment={"GGML_VK_VISIBLE_DEVICES": "1"})
    assert found.device_nodes == ("/dev/dri/renderD128", "/dev/dri/renderD129")
    assert found.env == (("GGML_VK_VISIBLE_DEVICES", "1"),)
    with pytest.raises(ValueProblem):
        choose(facts, environment={"GGML_VK_VISIBLE_DEVICES": "2"})


def test_only_the_largest_of_unequal_cards_is_passed():
    cards = [amd(number, vram_bytes=(8 + number) << 30) for number in range(10)]
    found = choose(machine(*cards), "rocm")
    assert found.device_nodes == ("/dev/kfd", "/dev/dri/renderD137")
    assert "9 with less memory left out" in choose(machine(*cards)).why


def test_an_override_of_the_instruction_set_is_believed():
    facts = machine(amd(gfx="gfx1103"))
    assert choose(facts, "rocm").warnings
    found = choose(facts, "rocm", environment={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"})
    assert not found.warnings
    assert found.env == (("HSA_OVERRIDE_GFX_VERSION", "11.0.0"),)


def test_the_image_of_another_family_carries_other_code():
    facts = machine(amd(gfx="gfx1150"))
    assert choose(facts, "rocm").warnings
    assert not choose(facts, "rocm", family="llama.cpp").warnings


def test_stale_and_conflicting_specs_are_not_used():
    card = nvidia()
    stale = machine(card, nvidia_driver="580.1", cdi=(spec("all", missing=("/dev/nvidia0",)),))
    found = choose(stale)
    assert found.backend == "cpu"
    assert any("/dev/nvidia0 does not exist" in text for text in found.warnings)
    twice = machine(card, nvidia_driver="580.1", cdi=(spec("all"), spec("all", file="/etc/cdi/nvidia.json")))
    assert any("remove one of them" in text for text in choose(twice).warnings)
    # A fresh one in the folder that comes later hides the stale one.
    fresh = machine(card, nvidia_driver="580.1", cdi=(*stale.cdi, spec("all", file="/var/run/cdi/nvidia.yaml")))
    assert choose(fresh).cdi_devices == ("nvidia.com/gpu=all",)
    other = machine(card, nvidia_driver="580.1", cdi=(CdiSpec("nvidia.com/gpux", ("all",), "/etc/cdi/a.json"),))
    assert choose(other).backend == "cpu"


def test_docker_reads_only_its_own_folders():
    facts = machine(nvidia(), nvidia_driver="580.1", cdi=(spec("all", file="/run/cdi/nvidia.yaml"),))
    linked = EngineFacts("docker", cdi_directories=("/var/run/cdi",))
    assert choose(facts, engine=linked).cdi_devices == ("nvidia.com/gpu=all",)
    assert choose(facts, engine=EngineFacts("docker", cdi_directories=("/etc/cdi",))).docker_gpus == "all"


def test_vulkan_through_docker_asks_for_the_graphics_part_of_the_driver():
    found = choose(machine(nvidia(), nvidia_driver="470.1"), engine=ENGINES["docker"])
    assert (found.backend, found.docker_gpus) == ("vulkan", "all")
    assert found.env == (("NVIDIA_DRIVER_CAPABILITIES", "compute,graphics,utility"),)


def test_an_unusable_card_gives_way_to_the_next():
    intel = Gpu("intel", pci_address="0000:00:02.0", driver="i915", integrated=True, render_node=RENDER)
    found = choose(machine(intel, nvidia(), nvidia_driver="580.1"))
    assert (found.backend, found.device_nodes) == ("vulkan", (RENDER,))
    assert any("RTX A6000" in text and "is unused" in text for text in found.warnings)


def test_a_discrete_card_comes_before_an_integrated_one_of_any_vendor():
    arc = Gpu("intel", pci_address="0000:03:00.0", driver="xe", integrated=False, render_node="/dev/dri/renderD129")
    found = choose(machine(amd(integrated=True, gfx="gfx1036"), arc))
    assert found.device_nodes == ("/dev/dri/renderD129",)


def test_a_vendor_that_nobody_knows_is_not_chosen_but_can_be_asked_for():
    virtio = Gpu("0x1af4", pci_address="0000:00:01.0", driver="virtio-pci", render_node=RENDER)
    assert choose(machine(virtio)).backend == "cpu"
    assert choose(machine(virtio)).ignored == (
        "card of vendor 0x1af4 at 0000:00:01.0: not a vendor whose cards are known to compute",
    )
    found = choose(machine(virtio), "vulkan")
    assert found.device_nodes == (RENDER,)
    assert found.warnings


def test_a_card_on_the_wrong_driver():
    passed_on = amd(driver="vfio-pci", render_node="")
    found = choose(machine(passed_on))
    assert found.backend == "cpu"
    assert any("vfio-pci" in text for text in found.warnings)
    bare = nvidia(driver="", nvidia_index=None)
    assert any("no driver is loaded" in text for text in choose(machine(bare)).warnings)


def test_openvino_gets_its_variables_and_nodes():
    card = Gpu("intel", pci_address="0000:00:02.0", driver="xe", integrated=True, render_node=RENDER)
    nodes = (DeviceNode("/dev/accel/accel0"), DeviceNode(RENDER))
    found = choose(machine(card, nodes=nodes), "openvino")
    assert found.device_nodes == ("/dev/accel/accel0", RENDER)
    assert found.env == (("GGML_OPENVINO_DEVICE", "GPU"), ("GGML_OPENVINO_STATEFUL_EXECUTION", "1"))
    found = choose(machine(card, nodes=nodes), "openvino", environment={"GGML_OPENVINO_DEVICE": "NPU"})
    assert dict(found.env)["GGML_OPENVINO_DEVICE"] == "NPU"


def test_musa_and_cann():
    card = Gpu("moore-threads", pci_address="0000:01:00.0")
    for node in ("/dev/mtgpu0", "/dev/mtgpu.0"):  # drivers differ in it
        facts = machine(card, nodes=(DeviceNode(node),))
        found = choose(facts)
        assert (found.backend, found.device_nodes) == ("musa", (node,))
    assert found.env == (("MTHREADS_VISIBLE_DEVICES", "all"),)
    found = choose(facts, engine=ENGINES["docker"])
    assert (found.oci_runtime, found.device_nodes) == ("mthreads", ())
    ascend = [DeviceNode(f"/dev/{name}") for name in ("davinci0", "davinci1", "davinci_manager", "hisi_hdc")]
    found = choose(machine(Gpu("ascend"), nodes=tuple(ascend), arch="arm64"))
    assert (found.backend, found.device_nodes) == ("cann", tuple(node.path for node in ascend))


def test_docker_adds_the_groups_that_own_the_nodes():
    nodes = (DeviceNode("/dev/kfd", True, 992), DeviceNode(RENDER, True, 989))
    facts = machine(amd(), nodes=nodes)
    assert choose(facts, "rocm", ENGINES["docker"]).groups == (989, 992)
    assert choose(facts, "rocm").groups == ()


def test_nodes_that_the_user_may_not_use_are_warned_about():
    closed = machine(amd(), nodes=(DeviceNode(RENDER, False, 989),))
    assert any(RENDER in text and "989" in text for text in choose(closed).warnings)
    assert not choose(closed, engine=ENGINES["docker"]).warnings  # its daemon may


def test_rootless_podman_keeps_groups_where_a_node_needs_them_and_the_runtime_can():
    by_group = machine(amd(), nodes=(DeviceNode(RENDER, True, 989, True),))
    for runtime in ("", "crun", "/usr/bin/crun"):
        found = choose(by_group, engine=replace(PODMAN, oci_runtime=runtime))
        assert (found.keep_groups, found.warnings) == (True, ())
        assert found.access == ((RENDER, "this user may open it as member of the group 989, which is kept"),)
    unable = choose(by_group, engine=replace(PODMAN, oci_runtime="/usr/sbin/runc"))
    assert (unable.keep_groups, unable.warnings) == (
        False,
        (f"{RENDER} can be used only as member of the group 989, which runc cannot keep: install crun",),
    )
    # What the user says is obeyed, either way.
    assert choose(by_group, keep_groups=True, engine=replace(PODMAN, oci_runtime="runc")).keep_groups
    refused = choose(by_group, keep_groups=False)
    assert (refused.keep_groups, refused.warnings) == (
        False,
        (f"{RENDER} can be used only as member of the group 989, and --keep-groups says not to keep groups",),
    )
    assert not choose(machine(amd(), nodes=(DeviceNode(RENDER, True, 989, False),))).keep_groups
    assert not choose(by_group, engine=ENGINES["docker"]).keep_groups


def test_no_engine_needs_no_devices():
    native = ENGINES["none"]
    found = choose(machine(nvidia(), nvidia_driver="470.1"), engine=native, environment={"CUDA_VISIBLE_DEVICES": "0"})
    assert (found.backend, found.cdi_devices) == ("cuda", ())  # the limits of images do not count
    assert found.env == (("CUDA_VISIBLE_DEVICES", "0"),)


def apple(provider):
    return HostFacts(root="/x", os="darwin", arch="arm64", gpus=(Gpu("apple", driver=provider, integrated=True),))


def test_macos():
    mac = apple("")
    assert choose(mac, engine=ENGINES["none"]).backend == "metal"
    found = choose(mac)
    assert found.backend == "cpu"
    assert "Metal works only outside of containers" in found.why
    assert "the podman machine's provider is unknown" in found.why
    asked = choose(mac, "metal")
    assert asked.backend == "metal"
    assert any("Metal works only outside" in text for text in asked.warnings)
    assert choose(replace(mac, arch="amd64"), engine=ENGINES["none"]).backend == "cpu"


def test_only_a_podman_machine_on_libkrun_passes_the_gpu_of_a_mac_on():
    assert choose(apple("libkrun")).device_nodes == ("/dev/dri",)
    for facts, engine in ((apple("applehv"), "podman"), (apple(""), "podman"), (apple("libkrun"), "docker")):
        found = choose(facts, "vulkan", ENGINES[engine])  # what is not there is not passed: no container would start
        assert (found.backend, found.device_nodes, len(found.warnings)) == ("vulkan", (), 1)
        assert "libkrun would" in found.warnings[0]


def test_cards_that_no_file_shows_are_spoken_of():
    assert "/dev/dxg" in choose(machine(wsl=True)).why
    assert "inside a container" in choose(machine(in_container="toolbox")).why
    for facts in (machine(wsl=True, in_container="container"),):
        assert choose(facts).why.startswith("no card was found: WSL")
    # Where a card is known, its own story is told.
    closed = machine(nvidia(pci_address=""), wsl=True)
    assert "nvidia-ctk cdi generate" in choose(closed).why
    assert "dxg" not in choose(closed).why


def test_nodes_of_another_vendors_npu_are_not_passed():
    card = Gpu("intel", pci_address="0000:03:00.0", driver="xe", integrated=False, render_node=RENDER)
    nodes = (DeviceNode("/dev/accel/accel0"), DeviceNode("/dev/accel/accel1"), DeviceNode(RENDER))
    npus = (Npu("amd", node="/dev/accel/accel0"), Npu("intel", node="/dev/accel/accel1"))
    found = choose(machine(card, nodes=nodes, npus=npus), "openvino")
    assert found.device_nodes == ("/dev/accel/accel1", RENDER)


def test_openvino_can_do_with_an_npu_alone():
    nodes = (DeviceNode("/dev/accel/accel0"),)
    npu = Npu("intel", driver="intel_vpu", node="/dev/accel/accel0")
    found = choose(machine(nodes=nodes, npus=(npu,)), "openvino")
    assert (found.device_nodes, found.warnings) == (("/dev/accel/accel0",), ())
    assert dict(found.env)["GGML_OPENVINO_DEVICE"] == "NPU"
    asleep = choose(machine(nodes=nodes, npus=(replace(npu, node=""),)), "openvino")
    assert asleep.warnings == ("openvino: no card that OpenVINO can use was found",)
    assert dict(asleep.env)["GGML_OPENVINO_DEVICE"] == "GPU"


def test_variables_come_from_the_table():
    assert {"CUDA_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "MTHREADS_VISIBLE_DEVICES"} <= set(gpu_variables())


def test_origin_and_purity():
    facts, environment = host("two-rtx-3090"), {"CUDA_VISIBLE_DEVICES": "1"}
    first = choose(facts, "vulkan", environment=environment)
    assert first.origin == "--backend"
    assert first == choose(facts, "vulkan", environment=environment)
    assert environment == {"CUDA_VISIBLE_DEVICES": "1"}
    assert [candidate.backend for candidate in first.candidates if candidate.chosen] == ["vulkan"]
    assert any("auto would choose it" in candidate.why for candidate in first.candidates)
