"""Rows of the user's own in the tables: every example of docs/adding-an-accelerator.md, and what is refused."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import HOSTS, PACKAGE, ROOT, Recorder, Result, error_text, run_cli
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from ramalama_like import __version__, settings
from ramalama_like.accelerator import choose_accelerator
from ramalama_like.causes import find_cause
from ramalama_like.data import built_in, load_table, overlay, use_tables
from ramalama_like.errors import ValueProblem
from ramalama_like.facts import EngineFacts
from ramalama_like.image import choose_image
from ramalama_like.options import Setting, all_options
from ramalama_like.probe import probe
from ramalama_like.request import Request
from ramalama_like.value import replace

Install = Callable[..., Recorder]

DOCUMENT = ROOT / "docs" / "adding-an-accelerator.md"
SERVE = ("--dryrun", "serve", "demo", "--host-facts")
USER = "home/.config/ramalama-like/tables"
SYSTEM = "system/etc/ramalama-like/tables"


def examples() -> dict[str, dict[str, str]]:
    """The TOML blocks of the document: by heading, then by the name of the file that the first line tells."""
    found: dict[str, dict[str, str]] = {}
    for section in DOCUMENT.read_text("utf-8").split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        for block in section.split("```toml\n")[1:]:
            text = block.partition("```")[0]
            found.setdefault(heading, {})[text.partition("\n")[0].removeprefix("# ")] = text
    return found


EXAMPLES = examples()


@pytest.fixture
def podman(fake_engine: Install) -> Recorder:
    """An engine that need not be asked."""
    recorder = fake_engine("podman-5.4")
    recorder.make_known()
    return recorder


def put(world: Path, files: dict[str, str], where: str = USER) -> Path:
    """Write files of tables; their folder."""
    folder = world / where
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def serve(host: Path, *words: str) -> Result:
    done = run_cli(*SERVE, str(host), *words)
    assert done.code == 0, done.err
    return done


def image_of(done: Result) -> str:
    """The word before the server's own command line."""
    words = done.out.split()
    return words[words.index("llama-server") - 1]


def card(root: Path, vendor: str, device: str, kind: str, driver: str, *nodes: str) -> Path:
    """A recorded machine with one card."""
    folder = "sys/bus/pci/devices/0000:00:02.0"
    files = {"proc/sys/kernel/ostype": "Linux", "proc/sys/kernel/arch": "x86_64", f"{folder}/class": kind,
             f"{folder}/vendor": vendor, f"{folder}/device": device, f"{folder}/uevent": f"DRIVER={driver}",
             **dict.fromkeys(nodes, "")}  # fmt: skip
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{text}\n")
    return root


# What the document promises.


def test_every_example_of_the_document_is_tried() -> None:
    assert sorted(EXAMPLES) == [
        "A GPU that an image supports", "A back end of its own", "A driver rule", "A family of images",
        "A vendor whose cards an existing back end drives", "Why a start failed",
    ]  # fmt: skip


def test_a_gpu_that_an_image_supports(world: Path, podman: Recorder) -> None:
    host = HOSTS / "radeon-890m"
    warning = "rocm: gfx1150 is not in the rocm image of the ramalama family"
    assert warning in serve(host, "--backend", "rocm").err
    put(world, EXAMPLES["A GPU that an image supports"])
    done = serve(host, "--backend", "rocm")
    assert warning not in done.err
    assert image_of(done) == "quay.io/ramalama/rocm:0.25"
    # The list was added to, not replaced.
    before = built_in("images")["families"]["ramalama"]["images"]["rocm"]["gfx"]
    assert load_table("images")["families"]["ramalama"]["images"]["rocm"]["gfx"] == (*before, "gfx1150")


def test_a_driver_rule(world: Path, podman: Recorder) -> None:
    host = HOSTS / "rtx-4090"
    assert image_of(serve(host)) == "quay.io/ramalama/cuda:0.25"
    put(world, EXAMPLES["A driver rule"])
    assert image_of(serve(host)) == "quay.io/ramalama/ramalama:0.25"
    warning = "Warning: cuda: driver 570.86.15 is older than 580.65.06, the oldest for CUDA 13.0\n"
    assert warning in serve(host, "--backend", "cuda").err


def test_a_family_of_images(world: Path, podman: Recorder) -> None:
    host = HOSTS / "radeon-890m"
    refused = run_cli(*SERVE, str(host), "--image-family", "mine")
    assert (refused.code, refused.out) == (22, "")
    put(world, EXAMPLES["A family of images"])
    assert image_of(serve(host, "--image-family", "mine")) == "registry.example/llm/vulkan:7"
    assert image_of(serve(host, "--image-family", "mine", "--backend", "rocm")) == "quay.io/ramalama/rocm:0.25"
    assert image_of(serve(host)) == "quay.io/ramalama/ramalama:0.25"


def test_a_vendor_whose_cards_an_existing_back_end_drives(world: Path, podman: Recorder) -> None:
    host = card(world / "host", "0x1af4", "0x1050", "0x038000", "virtio_gpu", "dev/dri/renderD128", "dev/dri/card0")
    drm = host / "sys/class/drm/renderD128/device"
    drm.mkdir(parents=True)
    for name in ("vendor", "device", "uevent"):
        (drm / name).write_text((host / "sys/bus/pci/devices/0000:00:02.0" / name).read_text())
    (drm / "uevent").write_text("DRIVER=virtio_gpu\nPCI_SLOT_NAME=0000:00:02.0\n")
    assert "/dev/dri" not in serve(host).out
    put(world, EXAMPLES["A vendor whose cards an existing back end drives"])
    done = serve(host)
    assert " --device /dev/dri/renderD128 " in done.out
    explained = run_cli("explain", "serve", "demo", "--host-facts", str(host)).out
    assert "vulkan (virtio GPU" in explained
    # Its cards come after those of the vendors that are built in.
    assert load_table("accelerators")["vendor_order"] == (*built_in("accelerators")["vendor_order"], "virtio")


def test_a_back_end_of_its_own(world: Path, podman: Recorder) -> None:
    host = card(world / "host", "0x1e52", "0xb140", "0x120000", "tenstorrent", "dev/tenstorrent/0")
    refused = run_cli(*SERVE, str(host), "--backend", "metalium")
    assert (refused.code, refused.out) == (22, "")
    put(world, EXAMPLES["A back end of its own"])
    for words in ((), ("--backend", "metalium")):
        done = serve(host, "--image-family", "mine", *words)
        assert " --device /dev/tenstorrent/0 " in done.out
        assert image_of(done) == "registry.example/llm/metalium:7"
    # No image of the built-in family holds it, so auto leaves it alone there.
    assert "/dev/tenstorrent" not in serve(host).out


def test_why_a_start_failed(world: Path, fake_engine: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    example = EXAMPLES["Why a start failed"]
    text = tomllib.loads(example["causes.toml"])["cause"][0]
    fake_engine("podman-5.4", message=f"Error: x509: {text['text']}", code="125").make_known()
    assert text["why"] not in run_cli("serve", "demo", "--backend", "cpu").err
    put(world, example)
    done = run_cli("serve", "demo", "--backend", "cpu")
    assert text["why"] in done.err and f"Hint: {text['hint']}\n" in done.err


# Where the files are, and which counts.

ROW = '[families.ramalama]\ntag = "{}"\n'


def test_the_user_beats_the_system_beats_what_is_built_in(world: Path, podman: Recorder) -> None:
    host = HOSTS / "no-gpu"
    assert image_of(serve(host)) == "quay.io/ramalama/ramalama:0.25"
    put(world, {"images.toml": ROW.format("system") + 'also = ["local"]\n'}, SYSTEM)
    assert image_of(serve(host)) == "quay.io/ramalama/ramalama:system"
    put(world, {"images.toml": ROW.format("user")})
    assert image_of(serve(host)) == "quay.io/ramalama/ramalama:user"
    assert load_table("images")["families"]["ramalama"]["also"] == ("local",)


def test_the_files_are_named(world: Path, podman: Recorder) -> None:
    assert json.loads(run_cli("info").out)["Tables"] == {"Files": []}
    user = put(world, {"images.toml": ROW.format("x"), ".images.toml": "=", "images.toml~": "="}) / "images.toml"
    system = put(world, {"causes.toml": ""}, SYSTEM) / "causes.toml"
    assert json.loads(run_cli("info").out)["Tables"] == {"Files": [str(system), str(user)]}
    assert run_cli("config", "show").out.startswith(f"# read: {system}\n# read: {user}\n")
    assert json.loads(run_cli("config", "show", "--json").out)["tables"] == [str(system), str(user)]


def test_rows_are_gone_with_their_file(world: Path, podman: Recorder) -> None:
    folder = put(world, {"images.toml": ROW.format("x")})
    assert image_of(serve(HOSTS / "no-gpu")).endswith(":x")
    (folder / "images.toml").unlink()
    assert image_of(serve(HOSTS / "no-gpu")).endswith(":0.25")
    assert load_table("images") is built_in("images")


def test_the_only_file_is_the_only_file(world: Path, podman: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    put(world, {"images.toml": ROW.format("x")})
    monkeypatch.setenv("RAMALAMA_CONFIG", os.devnull)
    assert image_of(serve(HOSTS / "no-gpu")).endswith(":0.25")


def test_a_file_for_no_table_is_warned_about(world: Path, podman: Recorder) -> None:
    folder = put(world, {"accelerator.toml": "=", "notes.txt": "="})
    assert serve(HOSTS / "no-gpu").err.count("Warning") == 1
    warning = f"{folder}/accelerator.toml has no effect: the tables are accelerators, images, engines, causes"
    assert f"Warning: {warning}\n" in serve(HOSTS / "no-gpu").err


def test_without_folders_nothing_is_read(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramalama_like.toml_files.parse_with_lines", None)
    asked: list[str] = []
    real = os.path.isdir
    monkeypatch.setattr(os.path, "isdir", lambda path: asked.append(str(path)) or real(path))
    loaded = settings.load_settings(Request("info"))
    assert loaded.tables == ()
    assert [path for path in asked if "tables" in path] == [f"{world}/{SYSTEM}", f"{world}/{USER}"]


# What is refused.

REF = "2: families.ramalama.ref must be like quay.io/ramalama/{name}:{tag}"
REFUSED = {
    ("images", "[families.ramalama.images.rocm]\ngfxs = []"): "2: unknown key gfxs",
    ("images", "[familys.x]\nref = ''"): "1: unknown key familys",
    ("images", "[families.ramalama.images.rocm]\n\ngfx = 'gfx1150'"): (
        "3: families.ramalama.images.rocm.gfx must be a list"),
    ("images", "[families.ramalama.images.rocm]\ngfx = ['a',\n 7]"): (
        "3: families.ramalama.images.rocm.gfx.1 must be text"),
    ("images", "[families.ramalama.images.rocm]\n'name+' = ['a']"): (
        "2: families.ramalama.images.rocm.name+ is no list, so nothing can be added"),
    ("images", "[families.ramalama]\ntag = 7"): "2: families.ramalama.tag must be text",
    ("images", "[families.ramalama]\nimages = 7"): "2: families.ramalama.images must be a table",
    ("images", "[families.ramalama.images.cpu]\nplain = 1"): (
        "2: families.ramalama.images.cpu.plain must be true or false"),
    ("images", "[families.mine]\nref = 'x'\ntag = ''"): "1: families.mine lacks also, images",
    ("images", "[families.mine.images.cpu]\nname = 'x'"): "1: families.mine.images.cpu lacks architectures",
    ("images", "[families.ramalama.images.vulcan]\nmissing = 'x'"): (
        "1: families.ramalama.images names the back end vulcan, which does not exist"),
    ("images", "[families.ramalama]\nalso = ['mine']"): (
        "2: families.ramalama.also names the family mine, which does not exist"),
    ("images", "default_family = 'mine'"): "1: default_family names the family mine, which does not exist",
    ("images", "[families.ramalama.images.cuda]\ndriver_minimum = 'new'"): (
        "2: families.ramalama.images.cuda.driver_minimum must be like 525.60.13"),
    ("images", "[families.ramalama.images.vulkan]\ndriver_minimum = '1'"): (
        "1: families.ramalama.images.vulkan has driver_minimum, and so needs driver_full, contains"),
    ("accelerators", "[vendors.acme]\ntitle = 'x'"): "1: vendors.acme lacks pci, classes, preference",
    ("accelerators", "[vendors.amd]\npci = '0x1002'"): "2: vendors.amd.pci must be like 10de",
    ("accelerators", "[vendors.amd]\npreference = ['vulcan']"): (
        "2: vendors.amd.preference names the back end vulcan, which does not exist"),
    ("accelerators", "[vendors.amd]\npreference = ['cuda']"): "2: cuda is not for cards of amd",
    ("accelerators", "[backends.vulkan]\n'vendors+' = ['acme']"): (
        "2: backends.vulkan.vendors names the vendor acme, which does not exist"),
    ("accelerators", "vendor_order = ['acme']"): "1: vendor_order names the vendor acme, which does not exist",
    ("accelerators", "[variables.X]\nvendor = 'acme'"): (
        "2: variables.X.vendor names the vendor acme, which does not exist"),
    ("accelerators", "[variables.X]\nread_by = ['cuda']"): "1: variables.X has read_by, and so needs numbering",
    ("accelerators", "[variables.X]\nnumbering = 'mine'"): "2: variables.X.numbering must be like own",
    ("accelerators", "[variables.X]\nmisread_by = ['cuda']"): (
        "1: variables.X has misread_by, and so needs numbering, vendor"),
    ("accelerators", "[variables.X]\nby_runtime = true"): (
        "1: variables.X has by_runtime, and so needs numbering, vendor"),
    ("accelerators", "[variables.X]\ncounts_within = 'Y'"): (
        "1: variables.X has counts_within, and so needs numbering, vendor"),
    ("accelerators", "[variables.X]\ncards_in = 'GPU.'"): "1: variables.X has cards_in, and so needs read_by",
    ("accelerators", "[variables.CUDA_VISIBLE_DEVICES]\nmisread_by = ['vulcan']"): (
        "2: variables.CUDA_VISIBLE_DEVICES.misread_by names the back end vulcan, which does not exist"),
    ("accelerators", "[variables.HIP_VISIBLE_DEVICES]\ncounts_within = 'Y'"): (
        "2: variables.HIP_VISIBLE_DEVICES.counts_within names the variable Y, which does not exist"),
    ("accelerators", "[backends.metal]\nonly_card = 'acme'"): (
        "2: backends.metal.only_card names the vendor acme, which does not exist"),
    ("accelerators", "[aliases]\nfast = 'vulcan'"): "1: aliases names the back end vulcan, which does not exist",
    ("accelerators", "[backends.vulkan.drivers]\nacme = []"): (
        "1: backends.vulkan.drivers names the vendor acme, which does not exist"),
    ("accelerators", "[vendors.amd]\nvirtual_nodes = ['/dev/dri']"): (
        "1: vendors.amd has virtual_nodes, and so needs engines, engine_reason, driver_reason"),
    ("accelerators", "[vendors.amd]\nnode = '/dev/../etc/#'"): "2: vendors.amd.node must be like /dev/davinci#",
    ("accelerators", "device_nodes = ['/etc/passwd']"): "1: device_nodes.0 must be like /dev/nvidia#",
    ("accelerators", "[vendors.amd]\ntitle = ''"): "2: vendors.amd.title must not be empty",
    ("accelerators", "[vendors.amd]\ntitle = '\t'"): "2: vendors.amd.title must not hold control characters",
    ("accelerators", "[vendors.amd]\nclasses = ['3']"): "2: vendors.amd.classes.0 must be like 03",
    ("accelerators", "[vendors.'']\n"): '1: vendors."" is no name',
    ("accelerators", "[backends.auto]\n"): "1: backends.auto is no name",
    ("accelerators", "[variables.'A=B']\n"): '1: variables."A=B" is no name',
    ("accelerators", "[backends.vulkan.defaults]\n'1A' = 'x'"): "2: backends.vulkan.defaults.1A is no name",
    ("accelerators", "[aliases]\nvulkan = 'cpu'"): "2: aliases.vulkan is the name of a back end",
    ("accelerators", "a.'b\"\t'.c = 1"): "1: unknown key a",
    ("images", "'a b' = 1"): '1: unknown key "a b"',
    ("images", "[families.'-x']\n"): '1: families."-x" is no name',
    ("images", "[families.ramalama]\nref = ''"): "2: families.ramalama.ref must not be empty",
    ("images", "[families.ramalama]\nref = ' '"): "2: families.ramalama.ref must not be empty",
    ("images", "[families.ramalama]\nref = 'a b/{name}:{tag}'"): REF,
    ("images", "[families.ramalama]\nref = '--privileged'"): REF,
    ("images", "[families.ramalama]\nref = '-x/{name}:{tag}'"): REF,
    ("images", "[families.ramalama]\nref = 'x/{nam}:{tag}'"): REF,
    ("images", "[families.ramalama]\nref = 'x//{name}:{tag}'"): REF,
    ("images", '[families.ramalama]\nref = "x/{name}:\\u0007"'): (
        "2: families.ramalama.ref must not hold control characters"),
    ("images", "[families.ramalama]\ntag = '-x'"): "2: families.ramalama.tag must be like 0.25",
    ("images", "[families.ramalama]\ntag = 'a b'"): "2: families.ramalama.tag must be like 0.25",
    ("images", "[families.ramalama]\ntag = ':'"): "2: families.ramalama.tag must be like 0.25",
    ("images", "[families.ramalama]\ntag = ''"): (
        "1: families.ramalama.images.cpu makes quay.io/ramalama/ramalama:, which is not the name of an image"),
    ("images", "[families.ramalama.images.cpu]\nname = '-x'"): (
        "2: families.ramalama.images.cpu.name must be like ramalama"),
    ("images", "[families.'llama.cpp'.images.cpu]\nname = 'a/b'"): (
        "1: families.llama.cpp.images.cpu makes ghcr.io/ggml-org/llama.cpp:a/b, which is not the name of an image"),
    ("engines", "[podman.pull]\nnever = ''"): "2: podman.pull.never must not be empty",
    ("engines", "[podman.pull]\nnever = 'x'"): "2: podman.pull.never must be like missing",
    ("causes", "[[cause]]\nwhy = 'x'\nhint = 'y'"): "1: cause.0 lacks text or exit_codes",
    ("causes", "[[cause]]\ntext = ''\nwhy = 'x'\nhint = 'y'"): "2: cause.0.text must not be empty",
    ("engines", "[podman]\nassumed = 'new'"): "2: podman.assumed must be like 5.4",
    ("engines", "[nerdctl]\noldest = '1'"): "1: unknown key nerdctl",
    ("engines", "[[entrypoint]]\nprefix = 'x'"): "1: entrypoint.0 lacks other, words",
    ("causes", "[[cause]]\ntext = 'x'\nwhy = 'y'"): "1: cause.0 lacks hint",
    ("causes", "cause = 7"): "1: cause must be a list",
    ("causes", "cause = [7]"): "1: cause.0 must be a table",
    ("causes", "[[cause]\n"): "1: expected ']]' at the end of an array declaration",
    ("causes", "a = 1\na = 2"): "2: cannot overwrite a value",
    ("causes", "a = '\x00'"): "1: found invalid character '\\x00'",
}  # fmt: skip


@pytest.mark.parametrize("given", REFUSED, ids=lambda given: REFUSED[given][:40])
def test_what_does_not_fit_is_refused_by_file_and_line(given: tuple[str, str], world: Path, podman: Recorder) -> None:
    name, text = given
    folder = put(world, {f"{name}.toml": text})
    done = run_cli(*SERVE, str(HOSTS / "no-gpu"))
    assert (done.code, done.out) == (22, "")
    first, second = done.err.splitlines()
    assert first == f"Error: {folder}/{name}.toml:{REFUSED[given]}"
    assert second.startswith("Hint: ")


def test_near_names_are_told(world: Path, podman: Recorder) -> None:
    put(world, {"images.toml": "[families.ramalama.images.rocm]\narchitecture = []\n"})
    assert run_cli("config", "show").err.endswith("Hint: did you mean architectures?\n")


def test_other_files_than_text(world: Path, podman: Recorder) -> None:
    folder = put(world, {})
    (folder / "images.toml").write_bytes(b"# \xff\n")
    assert f"{folder}/images.toml:1: not UTF-8 text" in run_cli("config", "show").err
    (folder / "images.toml").unlink()
    (folder / "images.toml").mkdir()
    assert f"{folder}/images.toml is a folder" in run_cli("config", "show").err
    (folder / "images.toml").rmdir()
    os.mkfifo(folder / "images.toml")
    assert f"{folder}/images.toml is not a file" in run_cli("config", "show").err


# The default family, and families without an image for the CPU.

MINE = EXAMPLES["A family of images"]["images.toml"]


def test_the_default_family_is_that_of_the_tables(world: Path, podman: Recorder) -> None:
    assert all_options()["image_family"].default == built_in("images")["default_family"]
    path = put(world, {"images.toml": f'default_family = "mine"\n{MINE}'}) / "images.toml"
    assert image_of(serve(HOSTS / "radeon-890m")) == "registry.example/llm/vulkan:7"
    assert (
        image_of(serve(HOSTS / "radeon-890m", "--image-family", "local"))
        == f"localhost/ramalama-like/vulkan:{__version__}"
    )
    shown = run_cli("config", "show", "--origin").out.splitlines()
    assert f'image_family = "mine"  # {path}:1' in shown
    explained = run_cli("explain", "serve", "demo", "--host-facts", str(HOSTS / "radeon-890m")).out
    assert f"    why: the mine family's image for vulkan ({path}:1)\n" in explained


def test_the_users_default_family_beats_the_systems(world: Path, podman: Recorder) -> None:
    put(world, {"images.toml": 'default_family = "local"'}, SYSTEM)
    assert image_of(serve(HOSTS / "no-gpu")) == f"localhost/ramalama-like/cpu:{__version__}"
    put(world, {"images.toml": 'default_family = "llama.cpp"'})
    assert " ghcr.io/ggml-org/llama.cpp:server " in serve(HOSTS / "no-gpu").out
    put(world, {"images.toml": ""})
    assert image_of(serve(HOSTS / "no-gpu")) == f"localhost/ramalama-like/cpu:{__version__}"


def test_a_family_without_an_image_for_the_cpu(world: Path, podman: Recorder, tmp_path: Path) -> None:
    host = HOSTS / "no-gpu"
    missing = '[families.ramalama]\nalso = {}\n[families.ramalama.images.cpu]\nmissing = "it is gone"\n'
    put(world, {"images.toml": missing.format("[]")})
    done = run_cli(*SERVE, str(host))
    said = (
        "the ramalama family has no image for cpu: it is gone, and no family that families.ramalama.also names has one"
    )
    assert done == Result(22, "", error_text(said, "name an image with --image, or another family with --image-family"))
    assert run_cli(*SERVE, str(host), "--image", "x").code == 0
    put(world, {"images.toml": missing.format('["ramalama"]')})  # round in a circle
    assert run_cli(*SERVE, str(host)).err == error_text(
        said, "name an image with --image, or another family with --image-family"
    )
    put(world, {"images.toml": missing.format('["local"]')})
    assert image_of(serve(host)) == f"localhost/ramalama-like/cpu:{__version__}"
    # Of an architecture that no family knows, the nearest is taken and said.
    shutil.copytree(host, tmp_path / "host")
    (tmp_path / "host/proc/sys/kernel/arch").write_text("riscv64\n")
    done = serve(tmp_path / "host")
    assert image_of(done) == f"localhost/ramalama-like/cpu:{__version__}"
    assert "in spite of the architecture" in done.err


def test_an_alias_of_ones_own_is_understood(world: Path, podman: Recorder) -> None:
    put(world, {"accelerators.toml": '[aliases]\nfast = "vulkan"\n'})
    assert "quay.io/ramalama/ramalama:0.25" in serve(HOSTS / "radeon-890m", "--backend", "fast").out
    assert run_cli("benchmarks", "list", "--backend", "fast").code == 0


@pytest.mark.parametrize("text", [
    "a = " + "[" * 20000 + "]" * 20000, "a = " + "{b = " * 5000 + "1" + "}" * 5000, "a" + ".a" * 3000 + " = 1",
    "[a" + ".a" * 3000 + "]", *(f"a = {'[' * depth}{']' * depth}" for depth in range(150, 500, 50)),
    *(f"a = {'{b = ' * depth}1{'}' * depth}" for depth in range(80, 260, 30)),
], ids=len)  # fmt: skip
@pytest.mark.parametrize("name", ["ramalama/ramalama.conf", "ramalama-like/tables/images.toml"])
def test_nesting_without_end(text: str, name: str, world: Path) -> None:
    path = world / "home/.config" / name
    path.parent.mkdir(parents=True)
    path.write_text(text if "tables" in name else f"[ramalama]\n{text}")
    done = run_cli("config", "show")
    assert done.code == (22 if "tables" in name or "too deeply" in done.err else 0)
    assert done.err.startswith((f"Error: {path}:", f"Warning: {path}:2: "))


def test_a_file_without_end(world: Path) -> None:
    folder = put(world, {"causes.toml": "# " + "x" * (1 << 20)})
    said = f"{folder}/causes.toml: is larger than 1 MiB"
    assert run_cli("config", "show") == Result(22, "", error_text(said, "name another file, or make it smaller"))
    (folder / "causes.toml").write_text("#" * ((1 << 20) - 1))
    assert run_cli("config", "show").code == 0


def test_too_many_rows_are_refused_soon(world: Path, podman: Recorder) -> None:
    row = '[[cause]]\ntext = "t"\nwhy = "w"\nhint = "h"\n'
    folder = put(world, {"causes.toml": row * 20_000})
    began = time.process_time()
    assert f"{folder}/causes.toml:1: cause has 20000 rows, and 1000 are the most" in run_cli("config", "show").err
    put(world, {"causes.toml": row.replace('"t"', f'"{"(a+)+" * 100}"') * 1000})
    assert run_cli("config", "show").code == 0
    assert find_cause(["a" * 1000] * 200) is None
    assert time.process_time() - began < 10


# The merging itself.


def no_place(place: tuple[str | int, ...]) -> str:
    return "file:1"


@pytest.mark.parametrize("name", overlay.OPEN)
def test_the_built_in_tables_have_their_own_shape(name: str) -> None:
    content = tomllib.loads((PACKAGE / "data" / f"{name}.toml").read_text("utf-8"))
    merged = overlay.merge_table(name, built_in(name), content, no_place)
    for key, item in built_in(name).items():
        rows = isinstance(item, tuple) and isinstance(item[0], dict)
        assert merged[key] == ((*item, *item) if rows else item)  # rows are put in front


AWKWARD = ("", " ", "+", "a+", "-x", "--help", "a b", "a,b", "a=b", "a\n", "\x00", "\x1b[2J", "é", "..", "auto",
           "x" * 99, "{name}", "{tag}", "/dev/../x#", "/dev/##", "a.b")  # fmt: skip
TEXT = st.text(max_size=3) | st.sampled_from(AWKWARD)
SCALAR = TEXT | st.integers() | st.booleans() | st.floats() | st.dates()
ANYTHING = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
                        max_leaves=6)  # fmt: skip
PATHS = {
    "images": [("families",), ("families", "ramalama"), ("families", "ramalama", "images", "cuda"),
               ("families", "new"), ("families", "ramalama", "images", "new"), ("override_keys",), ()],
    "accelerators": [("vendors", "amd"), ("vendors", "new"), ("backends", "vulkan"), ("backends", "new"),
                     ("backends", "musa", "native"), ("variables", "new"), ("backends", "cuda", "drivers"),
                     ("aliases",), ()],
    "engines": [("podman",), ("podman", "pull"), ("docker", "has"), ("new",), ()],
    "causes": [()],
}  # fmt: skip


@settings_of_hypothesis(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_row_is_merged_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(PATHS)))
    path = data.draw(st.sampled_from(PATHS[name]))
    here: object = built_in(name)
    known: list[str] = []
    for part in path:
        here = here.get(part, {}) if isinstance(here, dict) else {}
    if isinstance(here, dict):
        known = list(here)
    keys = st.sampled_from([*known, *(f"{key}+" for key in known), "title", "pci", "name", "ref", "new"]) | TEXT
    row: dict[str, object] = data.draw(st.dictionaries(keys, ANYTHING | st.dictionaries(keys, ANYTHING, max_size=2)))
    for part in reversed(path):
        row = {part: row}
    try:
        merged = overlay.merge_table(name, built_in(name), row, no_place)
        tables = {other: dict(built_in(other)) for other in PATHS} | {name: merged}
        overlay.complete_names(tables, lambda _, place: no_place(place))
    except ValueProblem as problem:
        assert problem.message.startswith("file:1: ") and problem.hint
        assert problem.message.isprintable()
    else:
        assert set(tables["accelerators"]["backends"]) == set(tables["images"]["families"]["ramalama"]["images"])


def changed(item: object) -> st.SearchStrategy[object]:
    """Some of a built-in table, with other values of the same kinds: what a user's file could say."""
    if isinstance(item, dict):
        return st.fixed_dictionaries({}, optional={key: changed(member) for key, member in item.items()})
    if isinstance(item, tuple):
        if item and isinstance(item[0], dict):
            return st.lists(st.sampled_from(item).map(dict), max_size=1)
        return st.lists(st.sampled_from([*item, "x", "/dev/x#"]), max_size=3, unique=True)
    if isinstance(item, bool):
        return st.booleans()
    return st.sampled_from([item, item, "x", "1"])


NEW_VENDOR = st.fixed_dictionaries(
    {"title": st.just("x"), "pci": st.sampled_from(["", "10de", "1002", "8086"]), "classes": st.just(["03"]),
     "preference": st.lists(st.sampled_from(["vulkan", "cpu", "new"]), max_size=2)},
    optional={"virtual_nodes": st.just(["/dev/dri"]), "engines": st.just(["podman"]), "engine_reason": st.just("x"),
              "driver_reason": st.just("x"), "node": st.just("/dev/kfd"), "docker_gpus": st.booleans(),
              "cdi_drivers": st.just(["nvidia", "amdgpu"]), "cdi_kind": st.just("x/y"), "cdi_repair": st.just("x")},
)  # fmt: skip
NEW_BACKEND = st.fixed_dictionaries(
    {"title": st.just("x"), "vendors": st.lists(st.sampled_from(["new", "nvidia", "amd"]), max_size=2)},
    optional={"needs": st.just(["/dev/kfd"]), "render_node": st.booleans(), "per_card": st.just("/dev/nvidia#"),
              "docker_runtime": st.just("x"), "docker_runtime_variable": st.just("X"), "no_container": st.just("x"),
              "npu_defaults": st.just({"X": "1"}), "native": st.just({"variable": "X"}), "system": st.just("darwin")},
)  # fmt: skip
NEW_FAMILY = st.fixed_dictionaries(
    {"ref": st.just("x/{name}:{tag}"), "tag": st.just("1"),
     "also": st.lists(st.sampled_from(["new", "ramalama", "llama.cpp"]), max_size=2),
     "images": st.dictionaries(
         st.sampled_from(["cpu", "vulkan", "new"]),
         st.sampled_from([{"missing": "x"}, {"name": "y", "architectures": ["riscv64"]},
                          {"name": "y", "architectures": ["amd64"], "gfx": []}]))},
)  # fmt: skip


def with_new(table: st.SearchStrategy[object], key: str, row: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """A table with one more row, or without."""

    def add(both: tuple[dict[str, dict[str, object]], object]) -> object:
        content, new = both
        return content if new is None else {**content, key: {**content.get(key, {}), "new": new}}

    return st.tuples(table, st.none() | row).map(add)  # type: ignore[arg-type]


ACCELERATORS = with_new(with_new(changed(built_in("accelerators")), "vendors", NEW_VENDOR), "backends", NEW_BACKEND)
IMAGES = with_new(changed(built_in("images")), "families", NEW_FAMILY)
HOSTS_TRIED = [probe(str(HOSTS / name)) for name in ("laptop-nvidia-and-intel", "two-mi300x", "no-gpu")]


@settings_of_hypothesis(
    max_examples=120,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.large_base_example,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
@given(ACCELERATORS | st.just({}), IMAGES | st.just({}), st.sampled_from(["podman", "docker", "none"]),
       st.sampled_from(["auto", "new", *built_in("accelerators")["backends"]]), st.booleans(),
       st.sampled_from(["ramalama", "new"]), st.sampled_from(["", "riscv64"]))  # fmt: skip
def test_what_is_merged_decides_or_refuses_in_our_words(
    accelerators: dict[str, object], images: dict[str, object], engine: str, backend: str, with_variables: bool,
    family: str, arch: str,
) -> None:  # fmt: skip
    try:
        tables = {name: overlay.merge_table(name, built_in(name), row, no_place)
                  for name, row in (("accelerators", accelerators), ("images", images))}  # fmt: skip
        overlay.complete_names(tables, lambda _, place: no_place(place))
    except ValueProblem:
        return
    if backend not in ("auto", *tables["accelerators"]["backends"]) or family not in tables["images"]["families"]:
        return
    use_tables(tables)
    try:
        for facts in (probe(facts.root) for facts in HOSTS_TRIED):
            facts = replace(facts, arch=arch or facts.arch)
            with contextlib.suppress(ValueProblem):
                found = choose_accelerator(
                    backend=Setting(backend), devices=Setting(()), keep_groups=Setting(False), gpus=Setting(()),
                    facts=facts, engine=EngineFacts(engine), family=family,
                    environment={name: "0" for name in tables["accelerators"]["variables"] if with_variables},
                )  # fmt: skip
                choose_image(accelerator=found, facts_arch=facts.arch, family=Setting(family),
                             explicit=Setting(""), overrides=Setting({}), default_image=Setting(""))  # fmt: skip
    finally:
        use_tables({})
