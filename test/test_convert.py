"""``convert`` with engines that only write down what they are asked for; test/engine has real ones."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import ENGINES, HOSTS, Recorder, Result, error_text, gguf_pair, language_model, run_cli, snapshot
from hubs.huggingface import HuggingFaceHub
from hubs.registry import FakeRegistry
from made_safetensors import make_safetensors

from ramalama_like.cli.parse import parse_argv
from ramalama_like.measurement import size_text
from ramalama_like.models import usage
from ramalama_like.models.store import Store
from ramalama_like.options import QUANTIZATIONS, own_options
from ramalama_like.record import StoredFile
from ramalama_like.request import Given

Install = Callable[..., Recorder]
RESULT = language_model(64, gguf_pair("general.name", "text", "what the converter made"))
SUM = hashlib.sha256(RESULT).hexdigest()
# Everything that may be given to convert; that is all, as a test demands.
OPTIONS = {
    "none": [],
    "container": ["--image-family", "llama.cpp", "--pull", "newer", "--network", "net1", "--selinux", "on", "--cpus",
                  "1.5", "--memory", "2g", "--oci-runtime", "crun", "--engine-args", "--shm-size 2g -a 'b c'"],
    "images": ["--image", "example.org/img", "--tools-image", "example.org/tools:7", "--type", "artifact",
               "--carimage", "example.org/base"],
    "registry": ["--authfile", "AUTH", "--tls-verify", "off"],
}  # fmt: skip


@pytest.fixture
def tiny(world: Path) -> Path:
    """A model in safetensors."""
    return make_safetensors(world / "tiny")


@pytest.fixture
def store(world: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("RAMALAMA_STORE", str(world / "store"))
    return Store(str(world / "store"))


@pytest.fixture
def plain(world: Path) -> str:
    """A GGUF file that nobody has quantized."""
    (world / "plain.gguf").write_bytes(language_model())
    return str(world / "plain.gguf")


@pytest.fixture
def engine(fake_engine: Install, world: Path, store: Store) -> Recorder:
    """One that makes a GGUF file, whatever is asked."""
    (world / "result").write_bytes(RESULT)
    recorder = fake_engine("podman-5.4", code="0", result=str(world / "result"))
    recorder.make_known()
    return recorder


def left(store: Store) -> list[str]:
    """What is in the store, besides folders and locks."""
    return sorted(path for path, facts in snapshot(store.folder).items()
                  if not str(facts[0]).startswith("0o4") and not path.endswith("/lock"))  # fmt: skip


# The dry run is the real run.


@pytest.mark.parametrize("gguf", [[], ["--gguf"], ["--gguf=Q8_0"]])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("which", ENGINES)
def test_what_is_shown_is_executed(
    which: str, options: str, gguf: list[str], fake_engine: Install, world: Path, tiny: Path, store: Store
) -> None:
    (world / "auth.json").write_text("{}")
    (world / "result").write_bytes(RESULT)
    (world / "plain.gguf").write_bytes(language_model())
    recorder = fake_engine(which, code="0", result=str(world / "result"))
    for source in (str(tiny), str(world / "plain.gguf")):
        target = str(world / f"{Path(source).stem}.made.gguf")
        words = [str(world / "auth.json") if word == "AUTH" else word for word in OPTIONS[options]]
        line = ["convert", *words, *gguf, "--", source, target]
        before = snapshot(world / "home", world / "store")
        dry = run_cli("--dryrun", *line)
        assert snapshot(world / "home", world / "store") == before
        shown = [shlex.split(row) for row in dry.out.splitlines()]
        recorder.take()
        real = run_cli(*line)
        if options == "registry" and recorder.kind == "docker":
            assert (dry.code, real.code, recorder.take_runs()) == (22, 22, [])
            continue
        if source != str(tiny) and not gguf:
            refused = error_text(f"{source}: is a GGUF already", "name a quantization, as in --gguf Q4_K_M")
            assert (dry, real) == (Result(22, "", refused), Result(22, "", refused))
            continue
        assert (dry.code, dry.err) == (0, f"Note: the result would become {target}\n")
        assert recorder.take_runs() == shown
        assert len(shown) == (source == str(tiny)) + bool(gguf)
        assert (real.code, real.out) == (0, f"{target}\n"), real.err
        assert Path(target).read_bytes() == RESULT
        assert left(store) == []
        steps = json.loads(run_cli("--dryrun=json", *line[:-1], f"{target}.x.gguf").out)["steps"]
        assert [step["kind"] for step in steps] == ["engine"] * len(shown)


def test_no_option_is_forgotten() -> None:
    given = parse_argv(["convert", *(word for words in OPTIONS.values() for word in words), "--gguf", "a", "b"]).given
    assert set(given) == set(own_options("convert"))


def test_the_lines_themselves(engine: Recorder, tiny: Path, world: Path, store: Store) -> None:
    dry = run_cli("--dryrun", "convert", "--gguf", "Q4_0", str(tiny), "hf://me/tiny:Q4_0")
    key = hashlib.sha256(f"{tiny}\0hf://me/tiny:Q4_0\0Q4_0".encode()).hexdigest()[:12]
    begin = ["podman", "run", "--rm", "--label", "ai.ramalama", "--label", f"ai.ramalama.model={tiny}", "--label",
             "ai.ramalama.command=convert", "--network", "none", "--security-opt=label=disable", "--cap-drop=all",
             "--security-opt=no-new-privileges", "--read-only", "--pull", "missing", "--name"]  # fmt: skip
    env = ["--env", "HOME=/tmp", "--env", "HF_HUB_OFFLINE=1", "--init"]
    output = f"--mount=type=bind,src={store.folder}/partial/convert-{key}/data,destination=/output"
    assert [shlex.split(row) for row in dry.out.splitlines()] == [
        [*begin, f"ramalama-convert-{key}-1", *env, f"--mount=type=bind,src={tiny},destination=/mnt/models/tiny,ro",
         output, "quay.io/ramalama/ramalama-tools:0.25", "llama-convert-hf-to-gguf", "--outtype", "auto", "--outfile",
         "/output/whole.gguf", "/mnt/models/tiny"],
        [*begin, f"ramalama-convert-{key}-2", *env, output, "quay.io/ramalama/ramalama:0.25", "llama-quantize",
         "/output/whole.gguf", "/output/model.gguf", "Q4_0"],
    ]  # fmt: skip
    assert dry.err == "Note: the result would become hf://me/tiny:Q4_0\n"


def test_docker_writes_as_the_user(fake_engine: Install, tiny: Path, world: Path, store: Store,
                                   monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Its root has no capability to write into somebody else's folder."""
    fake_engine("docker-28")
    users: list[tuple[int, list[str]]] = [(0, []), (1234, ["--user", "1234:77"])]
    for uid, words in users:
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        monkeypatch.setattr(os, "getegid", lambda: 77)
        line = shlex.split(run_cli("--dryrun", "convert", str(tiny), "a.gguf").out)
        at = line.index("quay.io/ramalama/ramalama-tools:0.25")
        assert line[at - len(words) : at] == words
        assert ("--user" in line) is bool(words)


def test_a_folder_of_links(engine: Recorder, tiny: Path, world: Path) -> None:
    """As Hugging Face's cache has them: what they lead to is mounted, under the names that they have."""
    folder = world / "links"
    folder.mkdir()
    for path in tiny.iterdir():
        (folder / path.name).symlink_to(path)
    line = shlex.split(run_cli("--dryrun", "convert", str(folder), "a.gguf").out)
    assert [word for word in line if "/mnt/models/links/" in word] == [
        f"--mount=type=bind,src={tiny}/{name},destination=/mnt/models/links/{name},ro"
        for name in ("config.json", "model.safetensors", "tokenizer.model", "tokenizer_config.json")
    ]


# Images.


@pytest.mark.parametrize(("words", "config", "images"), [
    ([], "", ["quay.io/ramalama/ramalama-tools:0.25", "quay.io/ramalama/ramalama:0.25"]),
    (["--image-family", "local"], "", ["localhost/ramalama-like/tools:", "localhost/ramalama-like/cpu:"]),
    ([], 'tools_image = "a.b/c"\ndefault_tools_image = "x"', ["a.b/c:latest", "quay.io/ramalama/ramalama:0.25"]),
    ([], 'default_tools_image = "a.b/c:1"\nimage = "q:2"', ["a.b/c:1", "q:2"]),
    (["--tools-image", "t:9", "--image", "q:1"], 'tools_image = "a.b/c"', ["t:9", "q:1"]),
])  # fmt: skip
def test_which_images(words: list[str], config: str, images: list[str], engine: Recorder, tiny: Path, world: Path,
                      monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    (world / "c.conf").write_text(f"[ramalama]\n{config}\n")
    monkeypatch.setenv("RAMALAMA_CONFIG", str(world / "c.conf"))
    lines = run_cli("--dryrun", "convert", "--gguf", *words, str(tiny), "a.gguf").out.splitlines()
    for line, image in zip(lines, images, strict=True):
        found = [word for word in shlex.split(line) if word.startswith(image)]
        assert len(found) == 1 and (image.endswith(":") or found == [image])


def test_images_that_start_programs_by_themselves(engine: Recorder, tiny: Path) -> None:
    lines = run_cli(
        "--dryrun", "convert", "--image-family", "llama.cpp", "--gguf", str(tiny), "a.gguf"
    ).out.splitlines()
    full = "ghcr.io/ggml-org/llama.cpp:full"
    assert [line.partition(f" {full} ")[2] for line in lines] == [
        "--convert --outtype auto --outfile /output/whole.gguf /mnt/models/tiny",
        "--quantize /output/whole.gguf /output/model.gguf Q4_K_M",
    ]


def test_a_family_of_ones_own(engine: Recorder, tiny: Path, world: Path) -> None:
    """Without a row in `tools` the family that it names besides has the converter; with one, it has its own."""
    folder = world / "home/.config/ramalama-like/tables"
    folder.mkdir(parents=True)
    family = ('[families.mine]\nref = "a.b/{name}:{tag}"\ntag = "1"\nalso = ["local"]\n'
              '[families.mine.images.cpu]\nname = "c"\narchitectures = ["amd64"]\n')  # fmt: skip
    for more, image in (("", "localhost/ramalama-like/tools:"), ('[tools]\nmine = "t"\n', "a.b/t:1")):
        (folder / "images.toml").write_text(family + more)
        out = run_cli("--dryrun", "convert", "--image-family", "mine", str(tiny), "a.gguf").out
        assert [word for word in shlex.split(out) if word.startswith(image)] != [], out


# --gguf.


@pytest.mark.parametrize(("words", "given", "arguments"), [
    (["--gguf", "a", "b"], "", ("a", "b")),
    (["--gguf", "Q4_0", "a", "b"], "Q4_0", ("a", "b")),
    (["--gguf", "q4_0", "a", "b"], "q4_0", ("a", "b")),
    (["a", "b", "--gguf"], "", ("a", "b")),
    (["a", "--gguf=Q5_K_M", "b"], "Q5_K_M", ("a", "b")),
    (["--gguf", "--", "Q4_0", "b"], "", ("Q4_0", "b")),
    (["--gguf=", "a", "b"], "", ("a", "b")),
])  # fmt: skip
def test_forms_of_gguf(words: list[str], given: str, arguments: tuple[str, ...]) -> None:
    request = parse_argv(["convert", *words])
    assert (request.arguments, request.given) == (arguments, {"gguf": Given(given, "--gguf")})


@pytest.mark.parametrize("quantization", [*QUANTIZATIONS, "q6_k"])
def test_every_quantization(quantization: str, engine: Recorder, plain: str) -> None:
    out = run_cli("--dryrun", "convert", plain, "a.gguf", "--gguf", quantization).out
    assert shlex.split(out)[-1] == quantization.upper()


def test_what_gguf_alone_means(engine: Recorder, plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shlex.split(run_cli("--dryrun", "convert", plain, "a.gguf", "--gguf").out)[-1] == "Q4_K_M"
    monkeypatch.setenv("RAMALAMA_RUNTIMES__LLAMA_CPP__GGUF_QUANTIZATION_MODE", "Q6_K")
    assert shlex.split(run_cli("--dryrun", "convert", plain, "a.gguf", "--gguf").out)[-1] == "Q6_K"
    assert shlex.split(run_cli("--dryrun", "convert", plain, "a.gguf", "--gguf", "Q8_0").out)[-1] == "Q8_0"


# Where the result goes.


def test_a_model_of_the_store(engine: Recorder, tiny: Path, store: Store) -> None:
    done = run_cli("convert", "--gguf", "Q8_0", str(tiny), "me/tiny:Q8_0")
    assert (done.code, done.out) == (0, "hf://me/tiny:Q8_0\n"), done.err
    record = store.find_record("hf://me/tiny:Q8_0")
    assert record and record.files == (StoredFile("model", "tiny-Q8_0.gguf", len(RESULT), SUM),)
    assert record.source == str(tiny)
    assert left(store) == sorted([store.blob_path(SUM), store.record_path(record.name)])
    engine.take()
    assert store.blob_path(SUM) in run_cli("--dryrun", "serve", "hf://me/tiny:Q8_0").out


def test_what_belongs_to_the_model_stays_with_it(engine: Recorder, store: Store, world: Path) -> None:
    """A projector beside a file is used where it lies; one of the store is shared."""
    (world / "m").mkdir()
    model = world / "m" / "model-F16.gguf"
    model.write_bytes(language_model(64))
    projector = world / "m" / "mmproj-model.gguf"
    projector.write_bytes(language_model(64).replace(b"llama", b"clipp"))
    done = run_cli("convert", "--gguf", "Q8_0", str(model), "hf://me/one")
    assert done.code == 0, done.err
    record = store.find_record("hf://me/one")
    assert record and [(file.role, file.path) for file in record.files] == [("model", ""), ("mmproj", str(projector))]
    again = run_cli("convert", "--gguf", "Q4_0", "hf://me/one", "hf://me/two")
    assert again.code == 0, again.err
    second = store.find_record("hf://me/two")
    assert second and second.files[1].path == str(projector)


def test_a_registry(engine: Recorder, tiny: Path, store: Store, world: Path) -> None:
    with FakeRegistry() as registry:
        name = f"oci://{registry.place}/t/tiny:1"
        dry = run_cli("--dryrun", "convert", str(tiny), name, "--type", "artifact")
        assert dry.err == f"Note: the result would be pushed to {name} as an artifact\n"
        assert registry.manifests == {}
        done = run_cli("convert", str(tiny), name, "--type", "artifact")
        digest = hashlib.sha256(registry.manifests["t/tiny", "1"][0]).hexdigest()
        assert (done.code, done.out) == (0, f"oci://{registry.place}/t/tiny@sha256:{digest}\n"), done.err
        other = str(world / "other")
        assert run_cli("--store", other, "pull", name).code == 0
        assert Path(Store(other).blob_path(SUM)).read_bytes() == RESULT
        # What is no work for a container is pushed as it is.
        engine.take()
        assert run_cli("--dryrun", "convert", "demo", name).out == ""
        assert run_cli("convert", "demo", name).code == 0
        assert engine.take() == []


def test_what_cannot_be_pushed_is_kept(engine: Recorder, tiny: Path, store: Store) -> None:
    name = "oci://127.0.0.1:1/t/tiny:1"
    done = run_cli("convert", str(tiny), name)
    assert (done.code, done.out) == (5, "")
    assert store.find_record(name)


# Hubs.


def test_a_model_at_a_hub(engine: Recorder, tiny: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetched as `pull` would, and mounted file by file from the store, under the names of its repository."""
    with HuggingFaceHub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        files = {path.name: path.read_bytes() for path in tiny.iterdir()}
        hub.add("org/tiny", {**files, "README.md": b"# tiny", "notes.bin": b"x"})
        words = ("convert", "org/tiny", "hf://me/tiny", "--gguf")
        dry = run_cli("--dryrun", *words)
        assert dry.code == 0
        size = size_text(len(files["model.safetensors"]))
        assert dry.err == (
            f"Note: org/tiny would be pulled first ({size})\n"
            "Note: paths of the source may be others: the hub publishes no SHA-256 sums of some files, by which the "
            "store names them\n"
            "Note: the result would become hf://me/tiny\n"
        )  # fmt: skip
        done = run_cli(*words)
        assert (done.code, done.out) == (0, "hf://me/tiny\n"), done.err
        executed = engine.take_runs()
        for name, data in files.items():
            blob = store.blob_path(hashlib.sha256(data).hexdigest())
            assert f"--mount=type=bind,src={blob},destination=/mnt/models/tiny/{name},ro" in executed[0]
        asked = len(hub.requests)
        assert [shlex.split(row) for row in run_cli("--dryrun", *words).out.splitlines()] == executed
        assert run_cli("--offline", *words).code == 0
        assert len(hub.requests) == asked


def test_what_is_not_here_and_may_not_be_fetched(engine: Recorder) -> None:
    for words, code in ((["--offline"], 5), (["--pull", "never"], 22)):
        done = run_cli("convert", *words, "org/tiny", "a.gguf", "--gguf")
        assert (done.code, done.out, "org/tiny: is not on this machine" in done.err) == (code, "", True)
    assert engine.take() == []


# What is refused.


def refusals(world: Path) -> dict[tuple[str, ...], tuple[int, str, str]]:
    here = str(world)
    return {
        (f"{here}/tiny", "name"): (22, "name: is neither a path nor a name that a model can have",
                                   "write FILE.gguf, a name such as hf://OWNER/NAME:TAG, or oci://HOST/NAME:TAG"),
        (f"{here}/tiny", f"{here}/out.bin"): (22, f"{here}/out.bin: is no name of a GGUF file",
                                              "give it the ending .gguf"),
        (f"{here}/tiny", "oci://h.example/a@sha256:" + "0" * 64): (
            22, f"oci://h.example/a@sha256:{'0' * 64}: a digest cannot be pushed to", "name a tag"),
        (f"{here}/tiny", f"{here}/there.gguf"): (22, f"{here}/there.gguf: is there already",
                                                 "remove it, or name another file"),
        (f"{here}/tiny", f"{here}/no/a.gguf"): (
            22, f"{here}/no/a.gguf: {here}/no is no folder that you may write to", "make it first"),
        (f"{here}/empty", "a.gguf"): (22, f"{here}/empty: the folder holds no .safetensors files",
                                      "name a folder with config.json, the tokenizer and the weights"),
        (f"{here}/ggufs", "a.gguf"): (22, f"{here}/ggufs: the folder holds no .safetensors files",
                                      "it holds m.gguf: name the file"),
        (f"{here}/lone", "a.gguf"): (22, f"{here}/lone: the folder holds no config.json, which tells what the weights "
                                     "are", "put all files of the model's repository into it"),
        (f"{here}/cut", "a.gguf"): (22, f"{here}/cut/model.safetensors: is no safetensors file, or not all of it",
                                    "download the model again"),
        (f"{here}/quantized.gguf", "a.gguf", "--gguf"): (
            22, f"{here}/quantized.gguf: is quantized already (Q4_K_M), and would lose even more",
            "quantize the model in F16, BF16 or F32, or its safetensors"),
        ("demo", "a.gguf", "--gguf=Q4_1"): (22, "--gguf: 'Q4_1' is not one of ", "did you mean Q4_0?"),
        ("demo", "a.gguf", "--gguf"): (22, "demo: is quantized already (Q8_0), and would lose even more",
                                       "quantize the model in F16, BF16 or F32, or its safetensors"),
        ("demo", "a.gguf", "--nocontainer", "--gguf"): (22, "convert needs a container engine, and ",
                                                        "install podman or docker"),
        (f"{here}/plain.gguf", "a.gguf", "--gguf", "--host-facts", str(HOSTS / "two-mi300x")): (
            22, "--host-facts decides for another machine, whose containers convert cannot reach",
            "add --dryrun to see the commands"),
        ("demo",): (2, "missing argument: TARGET", "usage: ramalama-like convert [OPTION]... SOURCE TARGET"),
    }  # fmt: skip


@pytest.mark.parametrize("number", range(15))
def test_exact_refusals(number: int, engine: Recorder, plain: str, tiny: Path, world: Path, store: Store) -> None:
    (world / "there.gguf").write_bytes(b"mine")
    for name in ("empty", "ggufs", "lone", "cut"):
        (world / name).mkdir()
    (world / "ggufs" / "m.gguf").write_bytes(RESULT)
    data = (tiny / "model.safetensors").read_bytes()
    (world / "lone" / "model.safetensors").write_bytes(data)
    (world / "cut" / "model.safetensors").write_bytes(data[:100])
    (world / "cut" / "config.json").write_text("{}")
    (world / "quantized.gguf").write_bytes(language_model(64, gguf_pair("general.file_type", "u32", 15)))
    (words, (code, message, hint)) = list(refusals(world).items())[number]
    done = run_cli("convert", *words)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(f"Error: {message}") and done.err.endswith(f"Hint: {hint}\n"), done.err
    assert engine.take() == []
    assert (world / "there.gguf").read_bytes() == b"mine"
    assert left(store) == []


def test_every_refusal_is_tried(world: Path) -> None:
    assert len(refusals(world)) == 15


def test_a_result_that_would_replace_its_source(engine: Recorder, store: Store, tiny: Path) -> None:
    assert run_cli("convert", str(tiny), "hf://me/tiny").code == 0
    engine.take()
    assert run_cli("convert", "--gguf", "me/tiny", "hf://me/tiny") == Result(
        22, "", error_text("hf://me/tiny: is the source itself", "give the result another name")
    )
    assert engine.take() == []


# Whatever happens, nothing is left.


def spoil(world: Path, how: str) -> None:
    path = world / "result"
    content = RESULT[:200] if how == "truncated" else b"<html>" if how == "no GGUF" else RESULT
    path.write_bytes(content)


@pytest.mark.parametrize(("how", "message"), [
    ("truncated", "data/model.gguf: the header is damaged or cut off"),
    ("no GGUF", "data/model.gguf: not a GGUF file"),
    ("nothing", "the converter left no GGUF file"),
    ("the first fails", "llama-convert-hf-to-gguf ended with exit code 3: "),
    ("the second fails", "llama-quantize ended with exit code 4: "),
])  # fmt: skip
@pytest.mark.parametrize("target", ["file", "store"])
def test_failures(how: str, message: str, target: str, engine: Recorder, tiny: Path, world: Path, store: Store,
                  monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    spoil(world, how)
    if how == "nothing":
        monkeypatch.delenv("FAKE_RESULT")
    if how == "the first fails":
        monkeypatch.setenv("FAKE_CODE_1", "3")
    if how == "the second fails":
        monkeypatch.setenv("FAKE_CODE_2", "4")
    monkeypatch.setenv("FAKE_MESSAGE", "the last words")
    before = snapshot(world / "home", world / "tiny", world / "tmp")
    done = run_cli("convert", "--gguf", str(tiny), str(world / "a.gguf") if target == "file" else "hf://me/a")
    assert (done.out, message in done.err) == ("", True), done.err
    assert done.code == {"the first fails": 3, "the second fails": 4}.get(how, 22)
    assert left(store) == [] and not (world / "a.gguf").exists()
    assert os.listdir(f"{store.folder}/partial") == []
    assert snapshot(world / "home", world / "tiny", world / "tmp") == before


def test_a_link_is_no_result(engine: Recorder, tiny: Path, world: Path, store: Store) -> None:
    """A model's own code may have run in the container: what it links to is none of its business."""
    secret = world / "secret.gguf"
    secret.write_bytes(RESULT)
    (world / "bin").mkdir()
    script = Path(engine.path) / "podman"
    script.write_text(script.read_text().replace('/bin/cp "$FAKE_RESULT"', f"/bin/ln -s {secret}"))
    done = run_cli("convert", str(tiny), "hf://me/a")
    assert (done.code, done.out) == (22, "")
    assert done.err.endswith(error_text(f"{tiny}: the converter left no GGUF file", "see what it said above"))
    assert left(store) == []


def test_a_file_that_appears_meanwhile_is_not_replaced(engine: Recorder, tiny: Path, world: Path, store: Store) -> None:
    script = Path(engine.path) / "podman"
    script.write_text(script.read_text().replace("set -C", f'[ "$1" != run ] || echo mine >{world}/a.gguf\nset -C'))
    done = run_cli("convert", str(tiny), str(world / "a.gguf"))
    assert (done.code, (world / "a.gguf").read_text()) == (22, "mine\n")
    assert done.err.endswith(error_text(f"{world}/a.gguf: is there already", "remove it, or name another file"))
    assert sorted(path.name for path in world.glob("*a.gguf*")) == ["a.gguf"]
    assert left(store) == []


def test_another_file_system(engine: Recorder, tiny: Path, world: Path, store: Store,
                             monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Where no link can be made, the file is copied and gets its name at once."""
    real = os.link

    def link(source: str, target: str) -> None:
        if os.path.dirname(source) != os.path.dirname(target):
            raise OSError(18, "Invalid cross-device link")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    assert run_cli("convert", str(tiny), str(world / "a.gguf")).code == 0
    assert (world / "a.gguf").read_bytes() == RESULT
    assert [path.name for path in world.iterdir() if path.name.startswith(".new")] == []


def test_a_disk_that_is_too_small(engine: Recorder, tiny: Path, world: Path, store: Store,
                                  monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    size = (tiny / "model.safetensors").stat().st_size
    for free, code in ((2 * size - 1, 5), (2 * size, 0)):
        monkeypatch.setattr(usage, "disk_free", lambda _, free=free: free)
        done = run_cli("convert", str(tiny), "hf://me/a")
        assert done.code == code, done.err
        assert (len(engine.take_runs()), "are needed" in done.err) == (code == 0, code == 5)


def test_the_same_conversion_twice_at_once(engine: Recorder, tiny: Path, store: Store) -> None:
    key = hashlib.sha256(f"{tiny}\0hf://me/a\0".encode()).hexdigest()[:12]
    with store.partial(f"convert-{key}"):
        assert run_cli("convert", str(tiny), "hf://me/a") == Result(
            22, "", error_text("hf://me/a: this very conversion is running already", "wait for it to end")
        )
    assert engine.take_runs() == []


def start_hanging(tiny: Path, monkeypatch: pytest.MonkeyPatch, engine: Recorder) -> subprocess.Popen[bytes]:
    monkeypatch.setenv("FAKE_RUN", "hang")
    child = subprocess.Popen([sys.executable, "-m", "ramalama_like", "convert", str(tiny), "hf://me/a"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    deadline = time.monotonic() + 60
    while not (engine.folder / "records" / "1").exists():
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    return child


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_whoever_stops_it(number: signal.Signals, code: int, engine: Recorder, tiny: Path, store: Store, world: Path,
                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    child = start_hanging(tiny, monkeypatch, engine)
    child.send_signal(number)
    out, _ = child.communicate(timeout=60)
    assert (child.returncode, out) == (code, b"")
    assert os.listdir(f"{store.folder}/partial") == []
    assert left(store) == []


def test_what_kill_leaves_is_found_by_prune_and_by_the_next(engine: Recorder, tiny: Path, store: Store,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    child = start_hanging(tiny, monkeypatch, engine)
    work = Path(next(word for word in engine.take()[0] if "/output" in word).split("src=")[1].split(",")[0])
    (work / "whole.gguf").write_bytes(b"x" * 5000)
    child.kill()
    child.communicate()
    (found,) = store.find_unused(0)
    assert (found.kind, found.path, found.why) == ("partial", str(work.parent), "nobody goes on with this conversion")
    assert found.size_bytes >= 5000
    monkeypatch.setenv("FAKE_RUN", "exit")
    assert run_cli("convert", str(tiny), "hf://me/a").code == 0
    assert os.listdir(f"{store.folder}/partial") == []
    work.mkdir(parents=True)
    (work / "whole.gguf").write_bytes(b"x")
    assert run_cli("prune", "--older-than", "0").code == 0
    assert os.listdir(f"{store.folder}/partial") == []
