"""Which image is chosen."""

import pytest

from ramalama_like import __version__
from ramalama_like.accelerator import Accelerator
from ramalama_like.errors import ValueProblem
from ramalama_like.image import choose_image
from ramalama_like.options import IMAGE_FAMILIES, Setting


def choose(backend, arch="amd64", family="", explicit="", overrides=None, default_image=""):
    return choose_image(
        accelerator=Accelerator(backend, "hardware", "reason", "default"),
        facts_arch=arch,
        family=Setting(family, "--image-family") if family else Setting("ramalama"),
        explicit=Setting(explicit, "--image") if explicit else Setting(""),
        overrides=Setting(overrides, "ramalama.conf:3") if overrides else Setting({}),
        default_image=Setting(default_image, "ramalama.conf:2") if default_image else Setting(""),
    )


@pytest.mark.parametrize(
    ("family", "backend", "ref"),
    [
        ("ramalama", "cpu", "quay.io/ramalama/ramalama:0.25"),
        ("ramalama", "vulkan", "quay.io/ramalama/ramalama:0.25"),
        ("ramalama", "rocm", "quay.io/ramalama/rocm:0.25"),
        ("ramalama", "cuda", "quay.io/ramalama/cuda:0.25"),
        ("ramalama", "sycl", "quay.io/ramalama/intel-gpu:0.25"),
        ("ramalama", "openvino", "quay.io/ramalama/openvino:0.25"),
        ("ramalama", "cann", "quay.io/ramalama/cann:0.25"),
        ("ramalama", "musa", "quay.io/ramalama/musa:0.25"),
        ("llama.cpp", "cpu", "ghcr.io/ggml-org/llama.cpp:server"),
        ("llama.cpp", "vulkan", "ghcr.io/ggml-org/llama.cpp:server-vulkan"),
        ("llama.cpp", "rocm", "ghcr.io/ggml-org/llama.cpp:server-rocm"),
        ("llama.cpp", "cuda", "ghcr.io/ggml-org/llama.cpp:server-cuda"),
        ("llama.cpp", "sycl", "ghcr.io/ggml-org/llama.cpp:server-intel"),
        ("llama.cpp", "openvino", "ghcr.io/ggml-org/llama.cpp:server-openvino"),
        ("llama.cpp", "musa", "ghcr.io/ggml-org/llama.cpp:server-musa"),
        ("local", "cpu", f"localhost/ramalama-like/cpu:{__version__}"),
        ("local", "vulkan", f"localhost/ramalama-like/vulkan:{__version__}"),
        ("local", "rocm", f"localhost/ramalama-like/rocm:{__version__}"),
    ],
)
def test_families(family, backend, ref):
    found = choose(backend, family=family)
    assert found.ref == ref
    assert found.warnings == ()
    assert found.origin == "--image-family"
    assert family in found.why


def test_a_family_without_an_image_borrows_with_a_warning():
    found = choose("cann", family="llama.cpp")
    assert found.ref == "quay.io/ramalama/cann:0.25"
    assert found.warnings
    assert choose("cuda", family="local").ref == "quay.io/ramalama/cuda:0.25"


@pytest.mark.parametrize("family", IMAGE_FAMILIES)
def test_metal_has_no_image(family):
    found = choose("metal", family=family)
    assert found.ref == choose("cpu", family=family).ref
    assert "Metal" in found.warnings[0]


def test_s390x_switches_the_family_because_nobody_chose_it():
    found = choose("cpu", "s390x")
    assert found.ref == "ghcr.io/ggml-org/llama.cpp:server-s390x"
    assert "--image-family llama.cpp" in found.why
    assert found.warnings == ()
    chosen = choose("cpu", "s390x", family="ramalama")
    assert chosen.ref == "quay.io/ramalama/ramalama:0.25"
    assert "--image-family llama.cpp" in chosen.warnings[0]
    assert choose("cpu", "s390x", family="local").warnings == ()


def test_an_architecture_without_any_build_is_obeyed_with_a_warning():
    for backend, arch in (("rocm", "arm64"), ("cpu", "ppc64le"), ("vulkan", "s390x")):
        found = choose(backend, arch)
        assert found.ref.startswith("quay.io/ramalama/")
        assert arch in found.warnings[0]
    assert choose("rocm", "").warnings == ()  # unknown


@pytest.mark.parametrize(
    ("given", "ref"),
    [
        ("quay.io/x/y", "quay.io/x/y:latest"),
        ("quay.io/x/y:1", "quay.io/x/y:1"),
        ("localhost:5000/x", "localhost:5000/x:latest"),
        ("localhost:5000/x:2", "localhost:5000/x:2"),
        ("x@sha256:ab", "x@sha256:ab"),
        ("x:1@sha256:ab", "x:1@sha256:ab"),
        (" debian ", "debian:latest"),
    ],
)
def test_an_explicit_image_beats_everything(given, ref):
    found = choose("rocm", explicit=given, overrides={"rocm": "a"}, default_image="b")
    assert (found.ref, found.origin, found.why) == (ref, "--image", "given by --image")


@pytest.mark.parametrize("given", ["-v", "a b", "a\n", "--privileged"])
def test_what_cannot_be_an_image_is_refused(given):
    if given == "a\n":
        assert choose("cpu", explicit=given).ref == "a:latest"
        return
    with pytest.raises(ValueProblem):
        choose("cpu", explicit=given)


@pytest.mark.parametrize(
    ("backend", "key"),
    [
        ("rocm", "rocm"), ("rocm", "HIP_VISIBLE_DEVICES"), ("cuda", "CUDA_VISIBLE_DEVICES"), ("sycl", "intel"),
        ("vulkan", "GGML_VK_VISIBLE_DEVICES"), ("sycl", "INTEL_VISIBLE_DEVICES"), ("cann", "ASCEND_VISIBLE_DEVICES"),
        ("musa", "MUSA_VISIBLE_DEVICES"), ("vulkan", "ASAHI_VISIBLE_DEVICES"), ("cpu", "cpu"),
    ],
)  # fmt: skip
def test_overrides(backend, key):
    found = choose(backend, overrides={key: "mine", "other": "x"}, default_image="b")
    assert (found.ref, found.origin) == ("mine:latest", "ramalama.conf:3")
    assert key in found.why
    other = "cuda" if backend != "cuda" else "rocm"
    assert choose(other, overrides={key: "mine"}).ref.startswith("quay.io/")


@pytest.mark.parametrize("ref", ["-x", "a b", "a\nb", "a\x07", "\x1b[2J", "a\u2028b"])
def test_what_is_no_name_of_an_image_is_refused(ref):
    for given in ({"explicit": ref}, {"overrides": {"cpu": ref}}, {"default_image": ref}):
        with pytest.raises(ValueProblem, match="is not the name of an image"):
            choose("cpu", **given)


def test_the_own_name_of_a_backend_beats_the_variable():
    assert choose("rocm", overrides={"HIP_VISIBLE_DEVICES": "a", "rocm": "b"}).ref == "b:latest"


def test_default_image_replaces_only_the_plain_one():
    for backend in ("cpu", "vulkan"):
        found = choose(backend, default_image="mine:1")
        assert (found.ref, found.origin) == ("mine:1", "ramalama.conf:2")
    assert choose("cuda", default_image="mine:1").ref == "quay.io/ramalama/cuda:0.25"
    assert choose("vulkan", family="llama.cpp", default_image="mine:1").ref.endswith(":server-vulkan")
    assert choose("cpu", "s390x", default_image="mine:1").ref == "mine:1"
