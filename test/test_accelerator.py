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
