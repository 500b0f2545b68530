"""Pulling, and using models by any name: against hubs on the loopback, from the name to the engine's command line."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness import (
    HOSTS,
    Recorder,
    Result,
    error_text,
    gguf_bytes,
    gguf_pair,
    gguf_tensor,
    language_model,
    run_cli,
    snapshot,
)
from hubs.huggingface import LFS_FROM, HuggingFaceHub
from hubs.ollama import OllamaRegistry
from hubs.registry import FakeRegistry
from hubs.server import status

from ramalama_like.cli.pull import named
from ramalama_like.listing import Listing, RemoteFile
from ramalama_like.models.choices import candidates_of
from ramalama_like.models.store import Store
from ramalama_like.probe import probe
from ramalama_like.reference import parse_reference
from ramalama_like.transfers import size_text
from ramalama_like.value import replace

Install = Callable[..., Recorder]
TEMPLATE = b"{{ if .System }}<s>{{ .System }}{{ end }}<u>{{ .Prompt }}<a>{{ .Response }}"
PORT = "18080"
# Hugging Face publishes sums of large files only, which models are.
LONG = gguf_pair("general.description", "text", "x" * LFS_FROM)


def model_bytes(which: int, *more: bytes) -> bytes:
    """Small models that differ."""
    return language_model(64, gguf_pair("general.name", "text", f"model {which}"), LONG, *more)


def part(number: int) -> bytes:
    return gguf_bytes(
        gguf_pair("general.architecture", "text", "llama"), gguf_pair("llama.embedding_length", "u32", 64),
        gguf_pair("split.no", "u16", number), LONG, tensors=[gguf_tensor("output_norm.weight", [4])], data=16,
    )  # fmt: skip


def image_layer(**files: bytes) -> bytes:
    """A layer of an image, packed."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return out.getvalue()


def clip() -> bytes:
    return gguf_bytes(gguf_pair("general.architecture", "text", "clip"), LONG)


class Hubs:
    """A hub of each kind, with one model or several."""

    def __init__(self, world: Path) -> None:
        self.huggingface = HuggingFaceHub()
        self.ollama = OllamaRegistry()
        self.registry = FakeRegistry()
        self.store = world / "store"

    def fill(self) -> None:
        self.files = {
            "m-Q4_K_M.gguf": model_bytes(1), "m-Q8_0.gguf": model_bytes(2), "mmproj-m-f16.gguf": clip(),
            "big-Q5_K_M-00001-of-00002.gguf": part(0), "big-Q5_K_M-00002-of-00002.gguf": part(1), "README.md": b"read",
        }  # fmt: skip
        self.repository = self.huggingface.add("o/m", self.files)
        self.huggingface.add("o/double", {"a-Q4_0.gguf": model_bytes(3), "b-Q4_0.gguf": model_bytes(4)})
        self.ollama.add_model("library/tiny", "latest", model=model_bytes(5), template=TEMPLATE)
        own = gguf_pair("tokenizer.chat_template", "text", "{{ messages }}")
        self.ollama.add_model("library/own", "1b", model=model_bytes(6, own), template=TEMPLATE, adapter=model_bytes(7))
        kind = "application/vnd.cncf.model.weight.v1.raw"
        layer = self.registry.layer(kind, model_bytes(8), org_cncf_model_filepath="pack.gguf")
        self.registry.add_layers("team/pack", "v1", layer,
                                 artifactType="application/vnd.cncf.model.manifest.v1+json")  # fmt: skip

    @property
    def names(self) -> dict[str, list[str]]:
        """Names of every kind, and the files of which the model consists."""
        return {
            "hf://o/m": ["m-Q4_K_M.gguf", "mmproj-m-f16.gguf"],
            "o/m:q8_0": ["m-Q8_0.gguf", "mmproj-m-f16.gguf"],
            "hf.co/o/m/m-Q8_0.gguf": ["m-Q8_0.gguf", "mmproj-m-f16.gguf"],
            "https://huggingface.co/o/m/blob/main/m-Q4_K_M.gguf": ["m-Q4_K_M.gguf", "mmproj-m-f16.gguf"],
            f"hf://o/m@{self.repository.refs['main']}": ["m-Q4_K_M.gguf", "mmproj-m-f16.gguf"],
            "hf://o/m:Q5_K_M": ["big-Q5_K_M-00001-of-00002.gguf", "big-Q5_K_M-00002-of-00002.gguf"],
            "short": ["m-Q8_0.gguf", "mmproj-m-f16.gguf"],
            "ollama://tiny": ["tiny.gguf", "chat_template.jinja"],
            "https://ollama.com/library/own:1b": ["own.gguf", "own-lora.gguf"],
            f"oci://{self.registry.place}/team/pack:v1": ["pack.gguf"],
            f"{self.registry.place}/team/pack:v1": ["pack.gguf"],
        }  # fmt: skip

    def requests(self) -> int:
        """How many there were, of all hubs."""
        return sum(hub.count() for hub in (self.huggingface, self.ollama.hub, self.registry.hub))

    def fetches(self) -> int:
        """How many requests there were for files of Hugging Face."""
        return sum("/resolve/" in seen.path for seen in self.huggingface.requests)

    def blob(self, name: str) -> str:
        return Store(str(self.store)).blob_path(hashlib.sha256(self.files[name]).hexdigest())


@pytest.fixture
def hubs(world: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hubs]:
    with ExitStack() as stack:
        hubs = Hubs(world)
        for hub in (hubs.huggingface, hubs.ollama, hubs.registry):
            stack.enter_context(hub)
        hubs.fill()
        monkeypatch.setenv("HF_ENDPOINT", hubs.huggingface.url)
        monkeypatch.setenv("RAMALAMA_OLLAMA_REGISTRY", f"http://{hubs.ollama.place}")
        monkeypatch.setenv("RAMALAMA_STORE", str(hubs.store))
        monkeypatch.setenv("RAMALAMA_PORT", PORT)
        (world / "home/.config/ramalama").mkdir(parents=True)
        (world / "home/.config/ramalama/shortnames.conf").write_text('[shortnames]\n"short" = "hf://o/m:Q8_0"\n')
        yield hubs


NAMES = ["hf", "quantization", "file", "page", "pinned", "parts", "short", "ollama", "ollama page", "oci", "host"]


@pytest.mark.parametrize("which", range(len(NAMES)), ids=NAMES)
def test_what_is_shown_before_the_pull_is_executed_after_it(
    which: int, hubs: Hubs, fake_engine: Install, world: Path
) -> None:
    name, files = list(hubs.names.items())[which]
    recorder = fake_engine("podman-5.4")
    before = snapshot(world / "home", world / "run", world / "tmp")
    dry = run_cli("--dryrun", "serve", name)
    assert dry.code == 0
    assert snapshot(world / "home", world / "run", world / "tmp") == before and not hubs.store.exists()
    assert dry.err.startswith(f"Note: {name} would be pulled first (")
    (shown,) = recorder.shell(dry.out)
    real = run_cli("serve", name)
    assert recorder.take_runs() == [shown], real.err
    # What is mounted is what the store has, and all of it.
    mounted = [
        (word.partition("src=")[2].partition(",")[0], word.partition("destination=/mnt/models/")[2].partition(",")[0])
        for word in shown if "destination=/mnt/models/" in word
    ]  # fmt: skip
    assert [target for _, target in mounted] == files
    assert all(path.startswith(f"{hubs.store}/ramalama-like/blobs/sha256-") for path, _ in mounted)
    for path, _ in mounted:
        assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == path.rpartition("-")[2]
    # And once it is here, nobody is asked any more.
    asked = hubs.requests()
    assert run_cli("--dryrun", "serve", name) == Result(0, dry.out, "")
    assert run_cli("--dryrun", "--offline", "serve", name) == Result(0, dry.out, "")
    assert hubs.requests() == asked


def test_the_plan_tells_where_the_model_comes_from(hubs: Hubs, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    commit = hubs.repository.refs["main"]
    place = hubs.huggingface.netloc
    why = f"not on this machine yet; it is to be had from {place}, revision {commit[:19]}"
    assert f"model: hf://o/m\n    why: {why} (argument)\n" in run_cli("explain", "serve", "hf://o/m").out
    document = json.loads(run_cli("--dryrun=json", "serve", "hf://o/m").out)["model"]
    assert (document["why"], document["resolved"]) == (why, True)
    assert [file["path"] for file in document["files"]] == [hubs.blob("m-Q4_K_M.gguf"), hubs.blob("mmproj-m-f16.gguf")]
    run_cli("pull", "hf://o/m")
    why = f"in the store, pulled from {hubs.huggingface.url}/o/m/resolve/{commit}/m-Q4_K_M.gguf"
    assert f"model: hf://o/m\n    why: {why} (argument)\n" in run_cli("explain", "serve", "hf://o/m").out


def test_pull_fetches_each_byte_once(hubs: Hubs) -> None:
    first = run_cli("pull", "hf://o/m")
    assert (first.code, first.out) == (0, "")
    assert [line.partition(":")[0] for line in first.err.splitlines()] == ["m-Q4_K_M.gguf", "mmproj-m-f16.gguf", "hf"]
    fetches = hubs.fetches()
    assert fetches >= 2
    again = run_cli("pull", "hf://o/m")
    assert again == Result(0, "", "hf://o/m: is here already, and nothing of it is new\n")
    # Another name for the same bytes, and one that shares the projector.
    other = run_cli("pull", "hf://o/m/m-Q4_K_M.gguf")
    assert other.err.splitlines()[:2] == ["m-Q4_K_M.gguf: is here already", "mmproj-m-f16.gguf: is here already"]
    assert hubs.fetches() == fetches
    mixed = run_cli("pull", "hf://o/m:Q8_0")
    assert [line.partition(":")[2].strip() == "is here already" for line in mixed.err.splitlines()] == [
        False, True, False,
    ]  # fmt: skip
    blobs = sorted((hubs.store / "ramalama-like/blobs").iterdir())
    names = ("m-Q4_K_M.gguf", "m-Q8_0.gguf", "mmproj-m-f16.gguf")
    assert [str(path) for path in blobs] == sorted(map(hubs.blob, names))


def test_a_new_revision_is_fetched_and_only_what_is_new(hubs: Hubs) -> None:
    run_cli("pull", "hf://o/m")
    hubs.files["m-Q4_K_M.gguf"] = model_bytes(9)
    commit = hubs.repository.commit(hubs.files)
    pulled = run_cli("pull", "hf://o/m")
    assert [line.partition(":")[0] for line in pulled.err.splitlines()] == ["m-Q4_K_M.gguf", "mmproj-m-f16.gguf", "hf"]
    record = Store(str(hubs.store)).find_record("hf://o/m")
    assert record is not None and record.revision == commit
    assert hashlib.sha256(model_bytes(9)).hexdigest() in [file.sha256 for file in record.files]
    assert not os.path.exists(Store(str(hubs.store)).blob_path(hashlib.sha256(model_bytes(1)).hexdigest()))


POLICIES = {"missing": (1, False), "never": (1, False), "newer": (9, True), "always": (9, True)}


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policy_says_when_a_hub_is_asked(policy: str, hubs: Hubs, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    run_cli("pull", "hf://o/m")
    hubs.files["m-Q4_K_M.gguf"] = model_bytes(9)
    hubs.repository.commit(hubs.files)
    asked = hubs.requests()
    which, asks = POLICIES[policy]
    dry = run_cli("--dryrun", "serve", "--pull", policy, "hf://o/m")
    total = hashlib.sha256(model_bytes(which)).hexdigest()
    assert f"sha256-{total}" in dry.out
    assert (hubs.requests() > asked) == asks
    (shown,) = recorder.shell(dry.out)
    run_cli("serve", "--pull", policy, "hf://o/m")
    assert recorder.take_runs() == [shown]


def test_never_fetches_nothing(hubs: Hubs, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    said = "hf://o/m: is not on this machine, and --pull=never forbids to fetch it"
    assert run_cli("serve", "--pull", "never", "hf://o/m") == Result(22, "", error_text(said, "leave out --pull=never"))
    assert (recorder.take_runs(), hubs.requests()) == ([], 0)


def test_newer_is_content_with_what_is_here_where_nobody_answers(hubs: Hubs, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    run_cli("pull", "hf://o/m")
    del hubs.huggingface.repositories["o/m"]
    here = run_cli("--dryrun", "serve", "hf://o/m")
    newer = run_cli("--dryrun", "serve", "--pull", "newer", "hf://o/m")
    assert newer.out.replace("--pull newer", "--pull missing") == here.out.replace("--pull newer", "--pull missing")
    assert newer.err.startswith("Warning: whether there is a newer one is unknown: ")
    assert run_cli("serve", "--pull", "always", "hf://o/m").code == 22


@pytest.mark.parametrize("command", ["run", "serve", "bench"])
def test_offline_and_unknown(command: str, hubs: Hubs, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    dry = run_cli("--dryrun", "--offline", command, "hf://o/m")
    said = "hf://o/m: is not on this machine, and nothing is fetched while offline"
    assert dry.code == 0
    assert f"{hubs.store}/ramalama-like/blobs/sha256-of-m.gguf" in dry.out
    assert f"Note: hf://o/m has not been resolved: {said}\n" in dry.err
    hint = "leave out --offline, and unset HF_HUB_OFFLINE"
    real = run_cli("--offline", command, "hf://o/m")
    assert (real.code, real.err.endswith(error_text(said, hint))) == (5, True)
    assert run_cli("--offline", "pull", "hf://o/m") == Result(5, "", error_text(said, hint))
    assert (recorder.take_runs(), hubs.requests()) == ([], 0)


def test_the_hub_s_own_variable_means_offline_too(hubs: Hubs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert run_cli("pull", "hf://o/m").code == 5
    assert run_cli("--no-offline", "pull", "hf://o/m").code == 0
    assert run_cli("pull", "hf://o/m").err == (
        f"hf://o/m: in the store, pulled from {hubs.huggingface.url}/o/m/resolve/{hubs.repository.refs['main']}"
        "/m-Q4_K_M.gguf; whether there is a newer one is unknown while offline\n"
    )
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert run_cli("pull", "hf://o/m").err == "hf://o/m: is here already, and nothing of it is new\n"


def test_a_finished_file_is_kept_where_another_fails(hubs: Hubs) -> None:
    path = f"/o/m/resolve/{hubs.repository.refs['main']}/mmproj-m-f16.gguf"
    url = hubs.huggingface.put(path, b"", always=status(403))
    failed = run_cli("pull", "hf://o/m")
    assert (failed.code, failed.out) == (22, "")
    assert failed.err.splitlines()[1].startswith(f"Error: {url}: ")
    assert os.path.exists(hubs.blob("m-Q4_K_M.gguf")) and not os.path.exists(hubs.blob("mmproj-m-f16.gguf"))
    assert Store(str(hubs.store)).records() == []
    del hubs.huggingface.pages[path]
    weights = f"/o/m/resolve/{hubs.repository.refs['main']}/m-Q4_K_M.gguf"
    before = hubs.huggingface.count(weights)
    assert run_cli("pull", "hf://o/m").code == 0
    assert hubs.huggingface.count(weights) == before
    assert os.path.exists(hubs.blob("mmproj-m-f16.gguf"))


def test_a_model_that_does_not_exist(hubs: Hubs, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    pulled = run_cli("pull", "hf://o/nothing")
    assert (pulled.code, pulled.out, len(pulled.err.splitlines())) == (22, "", 2)
    served = run_cli("serve", "hf://o/nothing")
    assert served == pulled
    dry = run_cli("--dryrun", "serve", "hf://o/nothing")
    assert (dry.code, "sha256-of-nothing.gguf" in dry.out) == (0, True)
    said = pulled.err.splitlines()[0].removeprefix("Error: ")
    assert f"Note: hf://o/nothing has not been resolved: {said}\n" in dry.err
    assert not hubs.store.exists()


def test_a_word_that_nobody_knows(hubs: Hubs) -> None:
    said = "shorty: no file and no known model has this name"
    assert run_cli("pull", "shorty") == Result(22, "", error_text(said, "did you mean short?"))


def test_local_models_need_no_pull(hubs: Hubs, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(model_bytes(1))
    path = f"{tmp_path}/x.gguf"
    assert run_cli("pull", path) == Result(0, "", f"{path}: is used where it lies: {path}\n")
    assert run_cli("-q", "pull", "demo") == Result(0, "", "")
    assert run_cli("pull", "./nothing.gguf").code == 22


# Choosing.


def test_the_list_of_choices(hubs: Hubs) -> None:
    sizes = {name: len(body) for name, body in hubs.files.items()}
    big = sizes["big-Q5_K_M-00001-of-00002.gguf"] + sizes["big-Q5_K_M-00002-of-00002.gguf"]
    listed = run_cli("pull", "--list", "hf://o/m")
    assert (listed.code, listed.err) == (0, "")
    assert [line.split() for line in listed.out.splitlines()] == [
        ["QUANTIZATION", "SIZE", "FILE", "NAME"],
        ["Q4_K_M", *size_text(sizes["m-Q4_K_M.gguf"]).split(), "m-Q4_K_M.gguf", "hf://o/m:Q4_K_M"],
        ["Q5_K_M", *size_text(big).split(), "big-Q5_K_M-00001-of-00002.gguf", "and", "1", "more", "hf://o/m:Q5_K_M"],
        ["Q8_0", *size_text(sizes["m-Q8_0.gguf"]).split(), "m-Q8_0.gguf", "hf://o/m:Q8_0"],
    ]
    assert run_cli("pull", "--list", "hf://o/m:IQ1_S").out == listed.out, "whatever the name asks for"
    document = json.loads(run_cli("pull", "--list", "--json", "hf://o/m").out)
    assert list(document) == ["name", "revision", "choices", "others"]
    assert document["choices"][1] == {
        "quantization": "Q5_K_M", "size": big, "usable": True, "name": "hf://o/m:Q5_K_M",
        "files": ["big-Q5_K_M-00001-of-00002.gguf", "big-Q5_K_M-00002-of-00002.gguf"],
    }  # fmt: skip
    assert document["others"] == [
        {"role": "other", "path": "README.md", "size": 4},
        {"role": "mmproj", "path": "mmproj-m-f16.gguf", "size": sizes["mmproj-m-f16.gguf"]},
    ]
    assert not hubs.store.exists()


def test_every_name_in_the_list_means_its_row(hubs: Hubs) -> None:
    for repository in ("hf://o/m", "hf://o/double"):
        for row in json.loads(run_cli("pull", "--list", "--json", repository).out)["choices"]:
            shown = json.loads(run_cli("--dryrun=json", "pull", row["name"]).out)
            assert [file["name"] for file in shown["files"] if file["role"] != "mmproj"] == row["files"]


def test_an_ambiguous_name_lists_what_there_is(hubs: Hubs) -> None:
    pulled = run_cli("pull", "hf://o/double:Q4_0")
    assert (pulled.code, pulled.out) == (22, "")
    message, hint = pulled.err.splitlines()
    assert message == "Error: hf://o/double: has 2 models in Q4_0"
    assert "a-Q4_0.gguf" in hint and "b-Q4_0.gguf" in hint and " kB)" in hint


@pytest.mark.parametrize("text", ["hf://o/m:Q2_K", "hf://o/m@v1/s/x.gguf", "modelscope://o/m"])
def test_a_choice_has_a_name_that_means_it(text: str) -> None:
    files = tuple(RemoteFile(path, "", 1) for path in ("a-Q4_0.gguf", "b-Q4_0.gguf", "s/b-Q8_0.gguf", "x.gguf"))
    candidates = candidates_of(Listing("", files))
    reference = parse_reference(text)
    found = [named(reference, candidate, candidates) for candidate in candidates]
    assert sorted((each.tag, each.path) for each in found) == [
        ("", "a-Q4_0.gguf"), ("", "b-Q4_0.gguf"), ("", "x.gguf"), ("Q8_0", ""),
    ]  # fmt: skip
    assert {(each.repository, each.revision) for each in found} == {("o/m", reference.revision)}


# Dry runs of pull.


def test_the_dry_run_of_a_pull_fetches_nothing(hubs: Hubs) -> None:
    dry = run_cli("--dryrun", "pull", "hf://o/m")
    sizes = [size_text(len(hubs.files[name])) for name in ("m-Q4_K_M.gguf", "mmproj-m-f16.gguf")]
    assert dry == Result(0, "", f"Note: m-Q4_K_M.gguf would be fetched ({sizes[0]})\n"
                                f"Note: mmproj-m-f16.gguf would be fetched ({sizes[1]})\n")  # fmt: skip
    assert not hubs.store.exists()
    document = json.loads(run_cli("-q", "--dryrun=json", "pull", "hf://o/m").out)
    assert (document["command"], document["steps"], document["name"]) == ("pull", [], "hf://o/m")
    assert [(file["path"], file["here"]) for file in document["files"]] == [
        (hubs.blob("m-Q4_K_M.gguf"), False), (hubs.blob("mmproj-m-f16.gguf"), False),
    ]  # fmt: skip
    run_cli("pull", "hf://o/m")
    assert run_cli("--dryrun", "pull", "hf://o/m") == Result(0, "", "Note: all files of hf://o/m are here\n")


# Memory.


def test_what_a_model_needs_is_known_before_it_is_here(hubs: Hubs, tiny_gguf: Path, tmp_path: Path) -> None:
    hubs.huggingface.add("o/real", {"real-Q8_0.gguf": tiny_gguf.read_bytes()})
    remote = json.loads(run_cli("fit", "--json", "hf://o/real").out)
    local = json.loads(run_cli("fit", "--json", str(tiny_gguf)).out)
    assert remote["places"] == local["places"] and remote["size_bytes"] == local["size_bytes"]
    assert not hubs.store.exists()


# Other names that are here already.


def test_a_model_of_another_store_is_used_where_it_lies(hubs: Hubs, world: Path, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    commit = "0123456789abcdef0123456789abcdef01234567"
    cache = world / "home/.cache/huggingface/hub/models--o--m"
    (cache / "blobs").mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / f"snapshots/{commit}").mkdir(parents=True)
    (cache / "refs/main").write_text(commit)
    (cache / "blobs/one").write_bytes(model_bytes(1))
    (cache / f"snapshots/{commit}/m-Q4_K_M.gguf").symlink_to("../../blobs/one")
    dry = run_cli("--dryrun", "serve", "hf://o/m")
    assert (dry.code, dry.err, f"{cache}/blobs/one" in dry.out) == (0, "", True)
    assert hubs.requests() == 0
    assert shlex.split(run_cli("--dryrun", "--offline", "serve", "hf://o/m").out) == shlex.split(dry.out)


# Commands that need several things at once.


@pytest.mark.parametrize("backends", ["cpu", "vulkan,cpu"])
def test_bench_pulls_once_for_all_back_ends(backends: str, hubs: Hubs, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    dry = run_cli("--dryrun", "bench", "--backend", backends, "hf://o/m:Q8_0")
    shown = recorder.shell(dry.out)
    assert len(shown) == len(backends.split(","))
    asked = hubs.requests()
    run_cli("bench", "--backend", backends, "hf://o/m:Q8_0")
    assert recorder.take_runs() == shown
    fetched = [seen.path for seen in hubs.huggingface.requests[asked:] if seen.path.endswith("/revision/main")]
    assert len(fetched) == 2, "one question for the plan, one for the pull"


def test_a_draft_model_is_pulled_too(hubs: Hubs, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    line = ["serve", "--model-draft", "ollama://own:1b", "short"]
    dry = run_cli("--dryrun", *line)
    assert [note.partition(" would be")[0] for note in dry.err.splitlines()] == ["Note: short", "Note: ollama://own:1b"]
    (shown,) = recorder.shell(dry.out)
    real = run_cli(*line)
    assert recorder.take_runs() == [shown]
    assert [row for row in real.err.splitlines() if row.startswith("Pulling")] == [
        "Pulling hf://o/m:Q8_0", "Pulling ollama://own:1b",
    ]  # fmt: skip


def test_what_cannot_fit_is_refused_before_it_is_fetched(
    hubs: Hubs, fake_engine: Install, monkeypatch: pytest.MonkeyPatch, big_header: bytes
) -> None:
    recorder = fake_engine("podman-5.4")
    hubs.huggingface.add("o/huge", {"huge-Q8_0.gguf": big_header})
    facts = replace(probe(str(HOSTS / "no-gpu")), root="/", memory_bytes=1 << 20)
    monkeypatch.setattr("ramalama_like.pipeline.probe", lambda _root: facts)
    refused = run_cli("serve", "hf://o/huge")
    assert (refused.code, recorder.take_runs(), hubs.store.exists()) == (22, [], False)
    assert "needs at least" in refused.err


@pytest.fixture
def big_header(tiny_gguf: Path) -> bytes:
    """A model that needs more than a MiB."""
    return tiny_gguf.read_bytes()


# Other hubs.


def test_a_file_on_the_web(hubs: Hubs, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    url = hubs.huggingface.put("/files/web-Q8_0.gguf", model_bytes(10))
    secret = url.replace("http://", "http://user:secret@") + "?token=secret"
    dry = run_cli("--dryrun", "serve", secret)
    assert dry.code == 0
    assert f"{hubs.store}/ramalama-like/blobs/sha256-of-web-Q8_0.gguf" in dry.out
    place = hubs.huggingface.netloc
    assert f"may be another one: {place} publishes no SHA-256 sums, by which the store names files" in dry.err
    real = run_cli("serve", secret)
    (run,) = recorder.take_runs()
    total = hashlib.sha256(model_bytes(10)).hexdigest()
    assert any(f"sha256-{total}" in word for word in run)
    assert "secret" not in dry.out + dry.err + real.out + real.err + " ".join(run)
    (record,) = Store(str(hubs.store)).records()
    assert record.name == url
    asked = hubs.requests()
    assert recorder.shell(run_cli("--dryrun", "serve", secret).out) == [run]
    assert hubs.requests() == asked


def test_a_published_sum_makes_the_path_known(hubs: Hubs, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    total = hashlib.sha256(model_bytes(10)).hexdigest()
    url = hubs.huggingface.put("/files/web.gguf", model_bytes(10), headers={"X-Checksum-Sha256": total})
    dry = run_cli("--dryrun", "serve", url)
    assert len(dry.err.splitlines()) == 1
    (shown,) = recorder.shell(dry.out)
    run_cli("serve", url)
    assert recorder.take_runs() == [shown]


def test_an_image_shows_its_files_when_it_is_unpacked(hubs: Hubs, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    kind = "application/vnd.oci.image.layer.v1.tar+gzip"
    layer = image_layer(**{"models/m/m.gguf": model_bytes(11)})
    hubs.registry.add_layers("team/image", "latest", hubs.registry.layer(kind, layer))
    name = f"oci://{hubs.registry.place}/team/image"
    dry = run_cli("--dryrun", "serve", name)
    assert dry.err.splitlines()[-1] == (
        "Note: the path of the model may be another one: which files it holds shows when they are unpacked"
    )
    run_cli("serve", name)
    (run,) = recorder.take_runs()
    total = hashlib.sha256(model_bytes(11)).hexdigest()
    assert any(f"sha256-{total},destination=/mnt/models/m.gguf" in word for word in run)
    asked = hubs.requests()
    assert recorder.shell(run_cli("--dryrun", "serve", name).out) == [run]
    assert hubs.requests() == asked


# Choosing on a terminal.


def test_a_person_may_choose(hubs: Hubs, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["9", "two", "2"])
    monkeypatch.setattr("ramalama_like.ui.is_terminal", lambda _: True)
    monkeypatch.setattr("ramalama_like.ui.ask", lambda prompt: next(answers))
    pulled = run_cli("pull", "hf://o/double:Q4_0")
    assert pulled.code == 0, pulled.err
    size = size_text(len(model_bytes(3)))
    assert pulled.err.splitlines()[:3] == [
        "hf://o/double: has 2 models in Q4_0", f"  1  Q4_0           {size}  a-Q4_0.gguf",
        f"  2  Q4_0           {size}  b-Q4_0.gguf",
    ]  # fmt: skip
    (record,) = Store(str(hubs.store)).records()
    assert record.name == "hf://o/double/b-Q4_0.gguf"


@pytest.mark.parametrize("answer", ["q", "", " QUIT "])
def test_a_person_may_leave(answer: str, hubs: Hubs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramalama_like.ui.is_terminal", lambda _: True)
    monkeypatch.setattr("ramalama_like.ui.ask", lambda prompt: answer)
    pulled = run_cli("pull", "hf://o/double")
    assert (pulled.code, pulled.err.splitlines()[-1]) == (130, "Error: nothing was chosen")
    assert not hubs.store.exists()


# The default transport.


def test_the_configured_transport_is_asked(hubs: Hubs, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_cli("pull", "tiny:latest").code == 22
    monkeypatch.setenv("RAMALAMA_TRANSPORT", "ollama")
    assert run_cli("pull", "tiny:latest").code == 0
    (record,) = Store(str(hubs.store)).records()
    assert record.name == "ollama://tiny:latest"
    assert run_cli("pull", "short").code == 0, "a short name comes first"


# What is told about what is here.


def test_list_and_inspect_know_what_was_pulled(hubs: Hubs) -> None:
    run_cli("pull", "hf://o/m:Q8_0")
    listed = json.loads(run_cli("list", "--json").out)
    size = len(hubs.files["m-Q8_0.gguf"]) + len(hubs.files["mmproj-m-f16.gguf"])
    assert [(row["shortname"], row["name"], row["size"]) for row in listed] == [("short", "hf://o/m:Q8_0", size)]
    shown = json.loads(run_cli("inspect", "--json", "short").out)
    assert (shown["Name"], shown["Path"], shown["Registry"]) == (
        "hf://o/m:Q8_0", hubs.blob("m-Q8_0.gguf"), "huggingface",
    )  # fmt: skip
    absent = run_cli("inspect", "hf://o/m")
    hint = "fetch it: ramalama-like pull hf://o/m"
    assert absent == Result(22, "", error_text("hf://o/m: is not on this machine", hint))


def test_a_model_whose_file_is_lost_is_pulled_again(hubs: Hubs, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    run_cli("pull", "hf://o/m")
    os.unlink(hubs.blob("mmproj-m-f16.gguf"))
    assert run_cli("--dryrun", "serve", "hf://o/m").err.startswith("Note: hf://o/m would be pulled first (")
    assert run_cli("pull", "hf://o/m").err.splitlines()[0] == "m-Q4_K_M.gguf: is here already"
    assert os.path.exists(hubs.blob("mmproj-m-f16.gguf"))


def test_without_a_container_files_are_used_by_their_paths(
    hubs: Hubs, fake_engine: Install, monkeypatch: pytest.MonkeyPatch, world: Path
) -> None:
    recorder = Recorder.install(world / "native", "llama-server")
    monkeypatch.setenv("PATH", recorder.path)
    (shown,) = run_cli("--dryrun", "--nocontainer", "serve", "ollama://tiny").out.splitlines()
    words = shlex.split(shown)
    run_cli("pull", "ollama://tiny")
    assert Path(words[words.index("--model") + 1]).read_bytes() == model_bytes(5)
    assert "{{" in Path(words[words.index("--chat-template-file") + 1]).read_text()
    said = "hf://o/m:Q5_K_M: is in parts, which the store can give to a container only"
    assert run_cli("--dryrun", "--nocontainer", "serve", "hf://o/m:Q5_K_M") == Result(
        22, "", error_text(said, "use an engine, or give the path of the first part")
    )
