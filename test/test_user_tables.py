"""Rows of the user's own in the tables: every example of docs/adding-an-accelerator.md, and what is refused."""

from __future__ import annotations

import contextlib
import json
import os
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import HOSTS, PACKAGE, ROOT, Recorder, Result, run_cli
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from ramalama_like import settings
from ramalama_like.accelerator import choose_accelerator
from ramalama_like.causes import find_cause
from ramalama_like.data import built_in, load_table, overlay, use_tables
from ramalama_like.errors import ValueProblem
from ramalama_like.facts import EngineFacts
from ramalama_like.image import choose_image
from ramalama_like.options import Setting
from ramalama_like.probe import probe
from ramalama_like.request import Request

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
    monkeypatch.setattr("ramalama_like.toml_files.parse", None)
    asked: list[str] = []
    real = os.path.isdir
    monkeypatch.setattr(os.path, "isdir", lambda path: asked.append(str(path)) or real(path))
    loaded = settings.load_settings(Request("info"))
    assert loaded.tables == ()
    assert [path for path in asked if "tables" in path] == [f"{world}/{SYSTEM}", f"{world}/{USER}"]


# What is refused.

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
    ("accelerators", "[aliases]\nfast = 'vulcan'"): "1: aliases names the back end vulcan, which does not exist",
    ("accelerators", "[backends.vulkan.drivers]\nacme = []"): (
        "1: backends.vulkan.drivers names the vendor acme, which does not exist"),
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


def test_too_many_rows_are_refused_soon(world: Path, podman: Recorder) -> None:
    row = '[[cause]]\ntext = "t"\nwhy = "w"\nhint = "h"\n'
    folder = put(world, {"causes.toml": row * 20_000})
    began = time.process_time()
    assert f"{folder}/causes.toml:1: cause has 20000 rows, and 1000 are the most" in run_cli("config", "show").err
    put(world, {"causes.toml": row.replace('"t"', f'"{"(a+)+" * 100}"') * 1000})
    assert run_cli("config", "show").code == 0
    assert find_cause(["a" * 1000] * 200) is None
    assert time.process_time() - began < 10
    put(world, {"causes.toml": "#" * (1 << 20) + "\n"})
    assert f"{folder}/causes.toml is larger than 1048576 bytes" in run_cli("config", "show").err


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


SHALLOW = st.text("abc+", max_size=3) | st.integers(0, 3) | st.booleans() | st.lists(st.text(max_size=2), max_size=2)
PATHS = {
    "images": [("families",), ("families", "ramalama"), ("families", "ramalama", "images", "cuda"),
               ("families", "new"), ("families", "ramalama", "images", "new"), ("override_keys",), ()],
    "accelerators": [("vendors", "amd"), ("vendors", "new"), ("backends", "vulkan"), ("backends", "new"),
                     ("backends", "musa", "native"), ("variables", "new"), ("backends", "cuda", "drivers"), ()],
}  # fmt: skip


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
    keys = st.sampled_from([*known, *(f"{key}+" for key in known), "title", "pci", "name", "ref", "new"])
    row: dict[str, object] = data.draw(st.dictionaries(keys, SHALLOW | st.dictionaries(keys, SHALLOW, max_size=2)))
    for part in reversed(path):
        row = {part: row}
    try:
        merged = overlay.merge_table(name, built_in(name), row, no_place)
        tables = {other: dict(built_in(other)) for other in PATHS} | {name: merged}
        overlay.complete_names(tables, lambda _, place: no_place(place))
    except ValueProblem as problem:
        assert problem.message.startswith("file:1: ") and problem.hint
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
    return st.sampled_from([item, item, "", "x", "1"])


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
@given(changed(built_in("accelerators")), changed(built_in("images")), st.sampled_from(["podman", "docker", "none"]),
       st.sampled_from(["auto", *built_in("accelerators")["backends"]]), st.booleans())  # fmt: skip
def test_what_is_merged_decides_or_refuses_in_our_words(
    accelerators: dict[str, object], images: dict[str, object], engine: str, backend: str, with_variables: bool
) -> None:
    try:
        tables = {name: overlay.merge_table(name, built_in(name), row, no_place)
                  for name, row in (("accelerators", accelerators), ("images", images))}  # fmt: skip
        overlay.complete_names(tables, lambda _, place: no_place(place))
    except ValueProblem:
        return
    use_tables(tables)
    try:
        for facts in HOSTS_TRIED:
            with contextlib.suppress(ValueProblem):
                found = choose_accelerator(
                    backend=Setting(backend), devices=Setting(()), keep_groups=Setting(False), gpus=Setting(()),
                    facts=facts, engine=EngineFacts(engine), family="ramalama",
                    environment={name: "0" for name in tables["accelerators"]["variables"] if with_variables},
                )  # fmt: skip
                choose_image(accelerator=found, facts_arch=facts.arch, family=Setting("ramalama"),
                             explicit=Setting(""), overrides=Setting({}), default_image=Setting(""))  # fmt: skip
    finally:
        use_tables({})
