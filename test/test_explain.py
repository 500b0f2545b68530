"""``explain``: of every command the settings that count, the engine, and the lines of its own dry run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import HOSTS, Recorder, Result, language_model, run_cli
from store_worker import fetch, pull

from ramalama_like.models.portable import export_model
from ramalama_like.models.store import Store
from ramalama_like.options import COMMANDS

Install = Callable[..., Recorder]
PODMAN_PS = json.dumps([{"Names": ["mine"], "Id": "abc", "Image": "i", "State": "running", "Labels": {}}])
WORDS = {"run": "demo", "serve": "demo", "bench": "demo", "perplexity": "demo", "stop": "mine", "logs": "mine",
         "chat": "hello", "explain": "version", "fit": "demo", "benchmarks show": "0a1b",
         "rm": "hf://a/b", "prune": "--older-than 0", "tag": "hf://a/b hf://a/c", "export": "hf://a/b a.tar",
         "import": "a.tar", "pull": "demo", "inspect": "demo", "push": "demo oci://localhost/x",
         "login": "localhost", "logout": "localhost", "convert": "plain.gguf hf://a/c:Q4_0 --gguf Q4_0"}  # fmt: skip
# Their dry run is the command itself.
SILENT = ("info", "config show", "version", "help", "explain", "fit", "benchmarks list", "benchmarks show",
          "benchmarks compare", "df", "fsck", "shortnames", "list", "inspect")  # fmt: skip
# What they do is said in no program's words, so there is no line.
LINELESS = ("pull", "push", "login", "logout")

WORDS |= {"push": "demo 127.0.0.1:1/x", "login": "127.0.0.1:1", "logout": "127.0.0.1:1"}
SILENT += ("push", "login", "logout")  # no program is started


def line(name: str) -> list[str]:
    return [*name.split(), *WORDS.get(name, "").split(), *(["--file", __file__] if name == "perplexity" else [])]


def steps(text: str) -> list[list[str]]:
    return [shlex.split(row.partition(": ")[2]) for row in text.splitlines() if row.startswith("step ")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_explained_by_its_own_dry_run(
    name: str, fake_engine: Install, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine("podman-5.4", output=PODMAN_PS)
    monkeypatch.setenv("RAMALAMA_STORE", str(world / "store"))
    store = Store(str(world / "store"))
    pull(store, "hf://a/b", [1])
    monkeypatch.chdir(world)
    record = store.find_record("hf://a/b")
    assert record
    export_model(store, record, "a.tar")
    (world / "plain.gguf").write_bytes(language_model())
    with store.adopting():
        fetch(store, 2)  # for prune
    explained = run_cli("explain", *line(name))
    assert (explained.code, explained.err, explained.out != "") == (0, "", True)
    if name not in SILENT:
        dry = run_cli("--dryrun", *line(name))
        assert steps(explained.out) == [shlex.split(row) for row in dry.out.splitlines()]
        assert (dry.out == "") == (name in LINELESS)
    document = json.loads(run_cli("explain", "--json", *line(name)).out)
    assert list(document) == ["command", "decisions", "candidates", "ignored", "warnings", "configuration", "steps"]
    assert document["command"] == name
    assert [step["argv"] for step in document["steps"]] == steps(explained.out)
    told = [row for row in explained.out.splitlines() if row[:1] not in (" ", "") and not row.startswith("step ")]
    decided = [f"{what}: {row['value']}" for what, row in document["decisions"].items()]
    assert told == decided or (told, decided) == ([f"{name} decides nothing"], [])


def test_the_text_of_a_small_command(fake_engine: Install) -> None:
    fake_engine("podman-5.4", output=PODMAN_PS)
    assert run_cli("explain", "logs", "-f", "--tail", "3", "mine") == Result(0, (
        "engine: podman 5.4.2\n    why: it is on PATH\n"
        "follow: yes\n    why: as asked (-f)\n"
        "tail: 3\n    why: as asked (--tail)\n"
        "step 1: podman logs -f --tail 3 mine\n"
    ), "")  # fmt: skip
    assert run_cli("explain", "stop", "--all").out == (
        "engine: podman 5.4.2\n    why: it is on PATH\n"
        "all: yes\n    why: as asked (--all)\n"
        "step 1: podman stop -t 10 mine\nstep 2: podman rm -f mine\n"
    )


def test_global_options_before_and_after(fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine("podman-5.4")
    monkeypatch.setenv("RAMALAMA_ENGINE", "docker")
    for words in (["--engine", "podman", "explain", "ps"], ["explain", "--engine", "podman", "ps"],
                  ["explain", "ps", "--engine", "podman"],
                  ["--engine", "docker", "explain", "ps", "--engine", "podman"]):  # fmt: skip
        assert run_cli(*words).out.splitlines()[:2] == ["engine: podman 5.4.2", "    why: as asked (--engine)"]
    assert run_cli("explain", "ps").code == 5  # docker, of which the variable speaks, is not here


def test_a_key_is_never_shown(fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    for form in ([], ["--json"]):
        told = run_cli("explain", *form, "chat", "--api-key", "very-secret", "hi")
        assert (told.code, "very-secret" in told.out + told.err) == (0, False)
        assert "set, and not shown" in told.out


def test_another_machine(fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    for path in (["--host-facts", str(HOSTS / "two-mi300x"), "explain"],
                 ["explain", "--host-facts", str(HOSTS / "two-mi300x")]):  # fmt: skip
        assert "accelerator: rocm" in run_cli(*path, "serve", "demo", "--backend", "rocm").out
        assert steps(run_cli(*path, "stop", "x").out) == [["podman", "stop", "-t", "10", "x"],
                                                          ["podman", "rm", "-f", "x"]]  # fmt: skip
        assert steps(run_cli(*path, "doctor").out) == []
    assert recorder.take() == []


def test_no_reason_is_told_twice(fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    for host in sorted(path.name for path in HOSTS.iterdir()):
        rows = run_cli("explain", "--host-facts", str(HOSTS / host), "serve", "demo").out.splitlines()
        losers = [row for row in rows if row.startswith("    not ")]
        assert len(losers) == len(set(losers)), host


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 2),
        (["--json"], 2),
        (["nonsense"], 2),
        (["stop"], 22),
        (["sandbox", "x"], 38),
        (["chat", "--url", "x://"], 22),
    ],
)
def test_what_cannot_be_explained(words: list[str], code: int, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    result = run_cli("explain", *words)
    assert (result.code, result.out) == (code, "")
