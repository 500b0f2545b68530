"""The dry run cannot lie: given to a shell, its lines ask the engine for exactly what the real execution asks for."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from harness import (
    ENGINES,
    HOSTS,
    PROGRAM,
    Recorder,
    Result,
    error_text,
    free_all_ports,
    language_model,
    run_cli,
    snapshot,
)  # fmt: skip
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from store_worker import SUMS, fetch, pull

from ramalama_like import pipeline
from ramalama_like.cli.parse import parse_argv
from ramalama_like.facts import HostFacts, facts_from_plain, facts_to_plain
from ramalama_like.models.portable import export_model
from ramalama_like.models.store import Store
from ramalama_like.options import BACKENDS, COMMANDS, options_of
from ramalama_like.probe import probe
from ramalama_like.render.argv import render_steps
from ramalama_like.value import replace

Install = Callable[..., Recorder]

STARTERS = [name for name, command in COMMANDS.items() if command.starts]
PORT = 20001  # on which nobody looks: all ports count as free
# Options by name with the words that give them. Together with EXEMPT they are all that there is, as a test demands.
SERVER = {
    "host": ("--host", "127.0.0.2"),
    "port": ("--port", str(PORT + 1)),
    "timeout": ("--timeout", "5.5"),
    "ctx_size": ("-c", "4096"),
    "max_tokens": ("--max-tokens=7",),
    "temp": ("--temp", "0"),
    "seed": ("--seed", "42"),
    "ngl": ("--ngl", "-1"),
    "ncmoe": ("--ncmoe", "3"),
    "threads": ("-t5",),
    "cache_reuse": ("--cache-reuse", "256"),
    "logfile": ("--logfile", "LOGFILE"),
    "thinking": ("--thinking", "off"),
    "model_draft": ("--model-draft", "DRAFT"),
    "spec_type": ("--spec-type", "draft-simple"),
    "spec_draft_n_max": ("--spec-draft-n-max", "9"),
    "spec_draft_n_min": ("--spec-draft-n-min", "1"),
    "spec_draft_p_min": ("--spec-draft-p-min", "0.25"),
    "webui": ("--webui", "off"),
    "chat_template": ("--chat-template", "TEXT"),
    "lora": ("--lora", "TEXT", "--lora", "SCALED"),
    "slot_save_path": ("--slot-save-path", "FOLDER"),
    "embedding": ("--embedding",),
    "runtime_args": ("--runtime-args", "--foo 'b a r' -x", "--runtime-args=--baz"),
    "color": ("--color", "never"),
    "prefix": ("--prefix", "-> "),
    "interactive": ("--interactive",),
    "keepalive": ("--keepalive", "5m"),
    "summarize_after": ("--summarize-after", "9"),
    "files": ("--file", "TEXT"),
    "mcp": ("--mcp", "http://127.0.0.1:1/mcp", "--mcp=localhost:2"),
    "system": ("--system", "Say 'no'."),
    "schema": ("--schema", "AUTH"),
    "thoughts": ("--thoughts", "fold"),
    "format": ("--format", "json"),
    "plot": ("--plot",),
    "save": ("--no-save",),
    "file": ("--file", "TEXT"),
    "noout": ("--noout", "x"),
    "api": ("--api", "none"),
    "dri": ("--dri", "off"),
    "force": ("--force",),
}
CONTAINER = {
    "engine": ("--engine", "KIND"),
    "container": ("--container",),
    "runtime": ("--runtime", "llama.cpp"),
    "store": ("--store", "STORE"),
    "quiet": ("--quiet",),
    "image_family": ("--image-family", "local"),
    "device": ("--device", "/dev/fuse", "--device=/dev/net/tun:/dev/tun:rw"),
    "pull": ("--pull", "newer"),
    "name": ("--name", "one_Name.2"),
    "env": ("--env", "A=1", "--env", "HANDED_ON", "--env=B=two words=2"),
    "network": ("--network", "net1"),
    "selinux": ("--selinux", "true"),
    "cpus": ("--cpus", "1.5"),
    "memory": ("--memory", "2g"),
    "oci_runtime": ("--oci-runtime", "crun"),
    "engine_args": ("--engine-args", "--shm-size 2g --annotation 'a b=c'"),
    "detach": ("--detach",),
    "rerank": ("--rerank",),
    "file": ("--file", "TEXT"),
    "grammar": ("--grammar", "TEXT"),
    "answer_json": ("--json",),
}
RIGHTS = {
    "debug": ("--debug",),
    "image": ("--image", "example.org/img"),
    "privileged": ("--privileged",),
    "network": ("--network", "host"),
    "file": ("--file", "TEXT"),
}
ONLY_PODMAN = {
    "keep_groups": ("--keep-groups",),
    "authfile": ("--authfile", "AUTH"),
    "tls_verify": ("--tls-verify", "false"),
    "device": ("--device", "none"),
    "file": ("--file", "TEXT"),
}
OPTION_SETS = {"none": {"file": ("--file", "TEXT")}, "server": SERVER, "container": CONTAINER, "rights": RIGHTS,
               "only-podman": ONLY_PODMAN}  # fmt: skip
EXEMPT = {
    "offline": "no hub is asked for files; test_pull.py shows what it does to other names",
    "dryrun": "this is what is compared",
    "host_facts": "nothing may be started for another machine",
    "backend": "goes through all of its values",
    "require_gpu": "plans without a GPU are refused; test_proof.py shows it",
    "gpu": "machines of all kinds run these tests; test_gpu_option.py shows what it leads to",
}


def test_a_port_that_somebody_has_meanwhile_changes_nothing(fake_engine: Install, files: dict[str, str]) -> None:
    """Which made tests of this file fail now and then, beside others that listen."""
    recorder = fake_engine("docker-28")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = str(server.getsockname()[1])
        assert (
            compare_one(recorder, ["serve", files["MODEL"], "--port", port])[0].count(f"127.0.0.1:{port}:{port}") == 1
        )


def test_no_option_is_forgotten() -> None:
    tried = {name for options in OPTION_SETS.values() for name in options}
    for command in STARTERS:
        takes = {name for name, option in options_of(command).items() if not option.not_yet}
        assert takes - tried - set(EXEMPT) == set()
    assert tried & set(EXEMPT) == set()


@pytest.mark.parametrize("command", STARTERS)
def test_every_set_gives_what_it_says(command: str) -> None:
    for options in OPTION_SETS.values():
        names = [name for name in options if name in options_of(command)]
        request = parse_argv([command, *(word for name in names for word in options[name]), "m"])
        assert sorted(request.given) == sorted(names)


@pytest.fixture(autouse=True)
def a_port_of_our_own(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configured port, from which the first free one is looked for. Whoever has it meanwhile is of no account."""
    free_all_ports(monkeypatch)
    monkeypatch.setenv("RAMALAMA_PORT", str(PORT))


def stand_in(monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    """Let the chat line of a plan start a recorder instead of this program."""
    monkeypatch.setattr(sys, "argv", [f"{recorder.path}/{PROGRAM}"])


def read_machine() -> HostFacts:
    """Two recorded machines together, taken for the one that the program runs on: a card of each vendor."""
    both = probe(str(HOSTS / "laptop-nvidia-and-intel"))
    text = json.dumps(facts_to_plain(probe(str(HOSTS / "radeon-890m"))))
    amd = facts_from_plain(json.loads(text.replace("renderD128", "renderD190").replace("/card", "/card9")))
    return replace(both, root="/", gpus=both.gpus + amd.gpus, kfd_nodes=amd.kfd_nodes, nodes=both.nodes + amd.nodes)


MACHINE = read_machine()


def compare(recorder: Recorder, *lines: Sequence[str]) -> list[list[list[str]]]:
    """Hold the dry run of command lines to their execution.

    Returns for each what the programs received from the shell; nothing where dry run and execution were refused alike.
    """
    dry_runs = [run_cli("--dryrun", *argv) for argv in lines]
    assert recorder.take_runs() == []
    received = recorder.shell("".join(dry.out for dry in dry_runs))
    all_calls = []
    for argv, dry in zip(lines, dry_runs, strict=True):
        real = run_cli(*argv)
        runs = recorder.take_runs()
        if dry.code:
            assert (dry.out, dry.code, dry.err, []) == ("", real.code, real.err, runs)
            all_calls.append([])
            continue
        assert len(runs) == 1, real.err
        calls, received = received[: 1 + (argv[0] == "run")], received[1 + (argv[0] == "run") :]
        assert calls[0] == runs[0]
        assert [call[0] for call in calls[1:]] == [PROGRAM] * (argv[0] == "run")
        all_calls.append(calls)
    assert received == []
    return all_calls


def compare_one(recorder: Recorder, argv: Sequence[str]) -> list[list[str]]:
    """As ``compare``; the chat line of a plan, too, must arrive as it was planned, and must be understood."""
    (calls,) = compare(recorder, argv)
    if calls:
        plan = pipeline.decide(parse_argv(argv)).plan
        assert calls == [list(step.argv) for step in render_steps(plan)]
        assert calls[1:] == ([list(plan.chat)] if plan.chat else [])
        for chat in calls[1:]:
            parse_argv(chat[1:])
    return calls


@pytest.fixture
def files(world: Path) -> dict[str, str]:
    """Files that options name, by the words that stand for them."""
    (world / "models").mkdir()
    for name in ("model", "draft"):
        (world / "models" / f"{name}.gguf").write_bytes(language_model())
    (world / "text.txt").write_text("text")
    (world / "auth.json").write_text("{}")
    return {
        "MODEL": f"{world}/models/model.gguf",
        "DRAFT": f"{world}/models/draft.gguf",
        "TEXT": f"{world}/text.txt",
        "SCALED": f"{world}/text.txt:0.5",
        "FOLDER": f"{world}/models",
        "AUTH": f"{world}/auth.json",
        "LOGFILE": f"{world}/server.log",
        "STORE": f"{world}/store",
        "ARCHIVE": f"{world}/archive.tar",
    }


@pytest.mark.parametrize("options", OPTION_SETS)
@pytest.mark.parametrize("command", STARTERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_shell_and_execution_agree(
    engine: str,
    command: str,
    options: str,
    fake_engine: Install,
    files: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = fake_engine(engine)
    recorder.make_known()
    stand_in(monkeypatch, recorder)
    words = {**files, "KIND": recorder.kind}
    chosen = [words.get(w, w) for name, ws in OPTION_SETS[options].items() if name in options_of(command) for w in ws]
    refused = options == "only-podman" and recorder.kind == "docker"
    # Two of the sets meet every back end on every engine, the others a third of them on each engine in turn.
    backends = BACKENDS if options in ("none", "container") else BACKENDS[list(ENGINES).index(engine) % 3 :: 3]
    lines = []
    for number, backend in enumerate(backends):
        prompt = ["it's a", "$(prompt)"] if command == "run" else []
        # Options before and after the model.
        split = len(chosen) if number % 2 else 0
        lines.append([command, *chosen[:split], "--backend", backend, files["MODEL"], *chosen[split:], *prompt])
    if options != "none":
        # The machine at hand has none of the hardware, or only some of it.
        monkeypatch.setattr(pipeline, "probe", lambda _root: MACHINE)
    for argv, calls in zip(lines, compare(recorder, *lines), strict=True):
        assert bool(calls) != refused, argv


@pytest.mark.parametrize("flag", ["keep_groups", "authfile", "tls_verify"])
@pytest.mark.parametrize("engine", ["docker-20.10", "docker-28"])
def test_what_docker_lacks_is_refused_alike(
    engine: str, flag: str, fake_engine: Install, files: dict[str, str]
) -> None:
    recorder = fake_engine(engine)
    words = [files.get(word, word) for word in ONLY_PODMAN[flag]]
    assert compare_one(recorder, ["serve", files["MODEL"], *words]) == []


def test_devices_were_really_passed(
    fake_engine: Install, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded machines give the comparison above something to compare."""
    monkeypatch.setattr(pipeline, "probe", lambda _root: MACHINE)
    found: dict[str, list[list[str]]] = {}
    for engine in ("podman-5.4", "docker-20.10"):
        recorder = fake_engine(engine)
        backends = ("cpu", "vulkan", "rocm", "cuda", "sycl")
        for (call,) in compare(recorder, *(["serve", "--backend", name, files["MODEL"]] for name in backends)):
            pairs = itertools.pairwise(call)
            found.setdefault(engine, []).append([word for flag, word in pairs if flag in ("--device", "--gpus")])
    amd, intel = "/dev/dri/renderD190", "/dev/dri/renderD128"
    assert found == {
        "podman-5.4": [[], ["nvidia.com/gpu=all"], ["/dev/kfd", amd], ["nvidia.com/gpu=all"], [intel]],
        "docker-20.10": [[], ["all"], ["/dev/kfd", amd], ["all"], [intel]],
    }


def test_the_program_that_chat_starts(
    fake_engine: Install, files: dict[str, str], monkeypatch: pytest.MonkeyPatch, world: Path
) -> None:
    """However this program was started, the chat line starts the same one again."""
    recorder = fake_engine("podman-4.9")
    elsewhere = world / "else where"
    elsewhere.mkdir()
    os.link(f"{recorder.path}/{PROGRAM}", elsewhere / PROGRAM)
    copy = elsewhere / f"copy of {PROGRAM}"
    copy.write_bytes(Path(recorder.path, PROGRAM).read_bytes())
    copy.chmod(0o755)
    chat = ["chat", "--url", f"unix://{world}/run/ramalama-like/ramalama-model-{PORT}/s.sock",
            "--model", "model", "--wait", "180.0", "--", "hello"]  # fmt: skip
    for started, executable, first in (
        (f"{recorder.path}/{PROGRAM}", "unused", [PROGRAM]),
        (str(elsewhere / PROGRAM), "unused", [PROGRAM]),  # the same file, which PATH has too
        ("/somewhere/__main__.py", str(copy), [copy.name, "-m", "ramalama_like"]),
    ):
        monkeypatch.setattr(sys, "argv", [started])
        monkeypatch.setattr(sys, "executable", executable)
        dry = run_cli("--dryrun", "run", files["MODEL"], "hello")
        assert recorder.shell(dry.out)[1:] == [[*first, *chat]]


# Awkward values.

AWKWARD = " \t\n\r'\"`$(){}[]\\-=,;:&|<>*?!#~%^@+./aZ09_é日\u2028\x7f\x01"
ANY_BYTES = st.binary(max_size=12).filter(lambda raw: b"\0" not in raw).map(os.fsdecode)
TEXTS = st.one_of(
    st.text(AWKWARD, max_size=12),
    ANY_BYTES,
    st.sampled_from(["", " ", "-", "--", "-x", "--help", "$(id)", "`id`", "a b", "it's", '"', "\\", "\n", "a\nb",
                     "\\\n", "$HOME", "*", "~", "!!", "{a,b}", "é", "日本語", "\udcff", "a=b", "=", "'\\''", "#x"]),
)  # fmt: skip
VARIABLES = st.one_of(TEXTS, st.builds("{}={}".format, st.sampled_from(["A", "B_1", "é"]), TEXTS))
QUOTED = st.lists(TEXTS, max_size=3).map(shlex.join)
VALUES = {
    "--env": VARIABLES,
    "--network": TEXTS,
    "--device": TEXTS,
    "--engine-args": st.one_of(QUOTED, TEXTS),
    "--runtime-args": st.one_of(QUOTED, TEXTS),
    "--oci-runtime": TEXTS,
    "--seed": TEXTS,
    "--spec-type": TEXTS,
}
RARE = {
    "--name": st.one_of(TEXTS, st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,12}", fullmatch=True)),
    "--image": st.one_of(TEXTS, st.text("abc/:.@-_0", min_size=1, max_size=12)),
    "--host": st.one_of(TEXTS, st.sampled_from(["0.0.0.0", "localhost", "127.0.0.1", "::1", "[::1]", "::"])),
    "--logfile": TEXTS,
    "--authfile": TEXTS,
    "--prefix": TEXTS,
}


def given_as(flag: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    """The option with its value in the next word, or after an equals sign."""
    return st.tuples(st.just(flag), values, st.booleans()).map(lambda t: [f"{t[0]}={t[1]}"] if t[2] else list(t[:2]))


OPTIONS = st.tuples(
    st.lists(st.one_of([given_as(flag, values) for flag, values in VALUES.items()]), max_size=4),
    st.lists(st.one_of([given_as(flag, values) for flag, values in RARE.items()]), max_size=1),
).map(lambda both: [word for option in (*both[0], *both[1]) for word in option])


@contextlib.contextmanager
def recording(which: str) -> Iterator[tuple[Recorder, Path]]:
    """A fresh world for one example of hypothesis, whose fixtures live too long for that."""
    kind, version = ENGINES[which]
    base = Path(os.environ["TMPDIR"])
    with pytest.MonkeyPatch.context() as patch:
        folder = base / str(len(os.listdir(base)))
        recorder = Recorder.install(folder, kind, PROGRAM, kind=kind)
        (folder / "run").mkdir(mode=0o700)
        patch.setenv("PATH", recorder.path)
        patch.setenv("FAKE_RECORDS", str(folder / "records"))
        patch.setenv("FAKE_VERSION", version)
        patch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        stand_in(patch, recorder)
        patch.chdir(folder)
        recorder.make_known()
        yield recorder, folder


@settings(max_examples=100)
@given(st.sampled_from(["podman-4.3", "podman-5.4", "docker-28"]), st.sampled_from(STARTERS), OPTIONS,
       st.lists(TEXTS, max_size=3))  # fmt: skip
@example("podman-5.4", "run", ["--env", "A=\udcff\udc81"], ["\udcff\udc81\udc88"])
@example("podman-5.4", "run", ["--name", "../../x"], [])
@example("docker-28", "serve", ["--device", "none", "--device", ""], [])
@example("podman-4.3", "run", ["--prefix", "--list"], ["--dryrun", "--", "-x"])
def test_any_value_arrives_unchanged(which: str, command: str, options: list[str], prompt: list[str]) -> None:
    with recording(which) as (recorder, folder):
        model = folder / "model.gguf"
        model.write_bytes(language_model())
        text = ["--file", str(model)] if command == "perplexity" and "--file" not in " ".join(options) else []
        takes = {flag for option in options_of(command).values() for flag in option.flags}
        assume({word.partition("=")[0] for word in options if word.startswith("--") and word.partition("=")[0]
                in {**VALUES, **RARE}} <= takes)  # fmt: skip
        compare_one(recorder, [command, *options, *text, "--", str(model), *(prompt if command == "run" else ())])


FILE_NAMES = (
    st.one_of(TEXTS, st.binary(min_size=1, max_size=30).filter(lambda raw: b"\0" not in raw).map(os.fsdecode))
    .filter(lambda name: "/" not in name)
    .map(lambda name: f"{name}.gguf")
)


@settings(max_examples=100)
@given(st.sampled_from(["podman-4.3", "docker-28"]), st.sampled_from(["run", "bench"]), FILE_NAMES, FILE_NAMES,
       st.sampled_from(["true", "false"]), st.booleans())  # fmt: skip
@example("podman-4.3", "run", "a,b:c", "x", "false", True)
@example("docker-28", "run", "a:b", "x", "true", True)
@example("docker-28", "run", "-", "--", "false", False)
def test_any_path_arrives_unchanged(
    which: str, command: str, folder_name: str, name: str, selinux: str, whole: bool
) -> None:
    with recording(which) as (recorder, folder):
        (folder / folder_name).mkdir()
        (folder / folder_name / name).write_bytes(language_model())
        path = f"{folder}/{folder_name}/{name}" if whole else f"./{folder_name}/{name}"
        calls = compare_one(recorder, [command, "--selinux", selinux, "--", path])
        source = f"{folder}/{folder_name}/{name}"
        if calls:
            assert any(source in word for word in calls[0])
        else:
            assert ":" in source


@settings(max_examples=50)
@given(st.sampled_from(STARTERS), OPTIONS, st.lists(TEXTS.filter(lambda text: "\n" not in text), max_size=2))
def test_json_and_text_are_the_same_lists(command: str, options: list[str], prompt: list[str]) -> None:
    with recording("podman-5.4") as (_, folder):
        (folder / "model.gguf").write_bytes(language_model())
        argv = [command, *options, "--", str(folder / "model.gguf"), *(prompt if command == "run" else ())]
        text, document = run_cli("--dryrun", *argv), run_cli("--dryrun=json", *argv)
        assert (text.code, text.err) == (document.code, document.err)
        if not text.code:
            steps = [step["argv"] for step in json.loads(document.out)["steps"]]
            assert text.out == "".join(f"{shlex.join(argv)}\n" for argv in steps)
            if "\n" not in "".join(argv):
                assert [shlex.split(line) for line in text.out.split("\n")[:-1]] == steps


# A dry run changes nothing, and talks where it should.

DRY_LINES = {
    **{name: [name, "MODEL"] for name in ("run", "serve", "bench", "explain serve")},
    "perplexity": ["perplexity", "MODEL", "--file", "TEXT"],
    "chat": ["chat", "hello"],
    "ps": ["ps"],
    "stop": ["stop", "--all"],
    "logs": ["logs", "some-name"],
    "info": ["info"],
    "fit": ["fit", "demo"],
    "doctor": ["doctor", "--smoke"],
    "explain": ["explain", "ps"],
    "config show": ["config", "show"],
    "benchmarks list": ["benchmarks", "list"],
    "rm": ["rm", "hf://a/b", "--store", "STORE"],
    "df": ["df", "--store", "STORE"],
    "prune": ["prune", "--older-than", "0", "--store", "STORE"],
    "fsck": ["fsck", "--repair", "--store", "STORE"],
    "tag": ["tag", "hf://a/b", "hf://a/c", "--store", "STORE"],
    "export": ["export", "hf://a/b", "new.tar", "--store", "STORE"],
    "import": ["import", "ARCHIVE", "--store", "STORE"],
    "version": ["version"],
    "help": ["help"],
    "pull": ["pull", "demo"],
    "shortnames": ["shortnames"],
    "list": ["list", "--all-stores"],
    "inspect": ["inspect", "MODEL"],
    "push": ["push", "MODEL", "oci://localhost/x"],
    "convert": ["convert", "MODEL", "hf://a/c", "--gguf", "--store", "STORE"],
    "login": ["login", "localhost"],
    "logout": ["logout", "localhost"],
}
# They start no program: their dry run has no line, and tells what would be done.
LINELESS = ("pull", "push", "login", "logout")
PODMAN_PS = json.dumps([{"Names": ["mine"], "Id": "abc", "Image": "i", "State": "running", "Labels": {}}])
DOCKER_PS = json.dumps({"Names": "mine", "ID": "abc", "Image": "i", "State": "running", "Labels": "ai.ramalama="})


def test_every_command_has_a_dry_line() -> None:
    assert {name.partition(" ")[0] for name in DRY_LINES} == {name.partition(" ")[0] for name in COMMANDS}


@pytest.mark.parametrize("form", ["--dryrun", "--dryrun=json"])
@pytest.mark.parametrize("engine", ["podman-4.9", "docker-28"])
@pytest.mark.parametrize("name", DRY_LINES)
def test_a_dry_run_changes_nothing(
    name: str, engine: str, form: str, fake_engine: Install, files: dict[str, str], world: Path
) -> None:
    recorder = fake_engine(engine, output=PODMAN_PS if engine.startswith("podman") else DOCKER_PS)
    (world / "home" / ".cache" / "ramalama-like").mkdir(parents=True)
    (world / "home" / ".config").mkdir()
    store = Store(files["STORE"])
    pull(store, "hf://a/b", [1])
    with store.adopting():
        fetch(store, 2)  # for prune
    record = store.find_record("hf://a/b")
    assert record
    export_model(store, record, files["ARCHIVE"])
    Path(store.blob_path(SUMS[1])).unlink()
    Path(store.blob_path(SUMS[1])).write_text("spoilt")  # for fsck
    words = [files.get(word, word) for part in DRY_LINES[name] for word in part.split()]
    watched = [world / below for below in ("home", "tmp", "run", "models", "store", "system")]
    system = ["/var/lib/ramalama"] if os.getuid() == 0 else []
    before = snapshot(*watched, *system)
    result = run_cli(form, *words) if name != "explain serve" else run_cli(words[0], *words[1:], form)
    assert (result.code, result.out != "") == (0, form == "--dryrun=json" or name not in LINELESS)
    assert snapshot(*watched, *system) == before
    assert [call[1] for call in recorder.take() if call[1] != "ps"] == []
    if name in STARTERS:
        assert result.err == ("" if name != "run" or recorder.kind == "docker" else (
            "Note: to run these lines by hand, first make the socket's folder: mkdir -pm 700 "
            f"{world}/run/ramalama-like/ramalama-model-{PORT}\n"
        ))  # fmt: skip


def test_the_lines_of_the_small_commands(fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = fake_engine("podman-5.4", output=PODMAN_PS)
    stand_in(monkeypatch, recorder)
    assert run_cli("stop", "mine", "--dryrun") == Result(0, "podman stop -t 10 mine\npodman rm -f mine\n", "")
    assert run_cli("logs", "-f", "--tail", "3", "a b", "--dryrun") == Result(0, "podman logs -f --tail 3 'a b'\n", "")
    assert run_cli("ps", "--format", "{{.ID}}", "--dryrun") == Result(
        0, "podman ps -a --filter label=ai.ramalama --format '{{.ID}}'\n", ""
    )
    assert run_cli("ps", "--dryrun") == Result(
        0, "podman ps -a --no-trunc --filter label=ai.ramalama --format json\n", ""
    )
    line = ["chat", "--url", "unix:///s", "--temp", "0", "--prefix=-> ", "-i", "--", "-v", "a\nb"]
    dry = run_cli(*line[:-3], "--dryrun", "--api-key", "very-secret", *line[-3:])
    (call,) = recorder.shell(dry.out)
    assert parse_argv(call[1:]).arguments == ("-v", "a\nb")
    assert {name: given.value for name, given in parse_argv(call[1:]).given.items()} == {
        "url": "unix:///s", "temp": "0", "prefix": "-> ", "interactive": True,
    }  # fmt: skip
    assert "very-secret" not in dry.out + dry.err


def test_the_lines_of_the_small_commands_as_json(fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = fake_engine("docker-28", output=DOCKER_PS)
    stand_in(monkeypatch, recorder)
    for line, kind in ((["stop", "--all"], "engine"), (["logs", "x"], "engine"), (["ps"], "engine"),
                       (["ps", "--format", "{{.ID}}"], "engine"), (["chat", "a b"], "chat")):  # fmt: skip
        text, document = run_cli(*line, "--dryrun"), run_cli(*line, "--dryrun=json")
        steps = [{"kind": kind, "argv": shlex.split(shown)} for shown in text.out.splitlines()]
        assert steps != []
        assert (json.loads(document.out), document.err) == ({"command": line[0], "steps": steps}, "")


def test_stop_shows_what_it_executes(fake_engine: Install) -> None:
    for engine, listed in (("podman-4.9", PODMAN_PS), ("docker-20.10", DOCKER_PS)):
        recorder = fake_engine(engine, output=listed)
        calls = recorder.shell(run_cli("stop", "--all", "--dryrun").out)
        assert run_cli("stop", "--all").code == 0
        assert [call for call in recorder.take() if call[1] != "ps"] == calls
        assert calls == [[recorder.kind, "stop", "-t", "10", "mine"], [recorder.kind, "rm", "-f", "mine"]]


def test_results_and_talk_are_kept_apart(fake_engine: Install, files: dict[str, str]) -> None:
    fake_engine("podman-5.4")
    result = run_cli("bench", "--dryrun", "--port", str(PORT), "--backend", "cuda", files["MODEL"])
    assert result.code == 0
    assert [shlex.split(line)[:2] for line in result.out.splitlines()] == [["podman", "run"]]
    assert result.err.splitlines()[-1] == "Warning: --port has no meaning for bench"
    assert {line.partition(":")[0] for line in result.err.splitlines()} == {"Warning"}
    assert run_cli("-q", "bench", "--dryrun", "--port", str(PORT), "--backend", "cuda", files["MODEL"]) == Result(
        0, result.out, ""
    )


@pytest.mark.parametrize("name", ["../../x", "a/b", ".", "-x", " ", "a b", "é", "a\n"])
def test_a_name_leads_nowhere_else(name: str, fake_engine: Install, files: dict[str, str], world: Path) -> None:
    """The name of a container is the name of a folder too."""
    recorder = fake_engine("podman-5.4")
    before = snapshot(world / "home", world / "run", world / "tmp")
    said = name.replace("\n", "\\n")
    refused = error_text(f"--name {said}: not the name of a container",
                         "letters, digits and _ . - make one, and it begins with a letter or digit")  # fmt: skip
    for line in (["run"], ["serve"], ["--dryrun", "run"]):
        assert run_cli(*line, f"--name={name}", files["MODEL"], *(["x"] if "run" in line else [])).err == refused
    assert snapshot(world / "home", world / "run", world / "tmp") == before
    assert recorder.take() == []


def test_another_machine_can_only_be_shown(fake_engine: Install, files: dict[str, str]) -> None:
    recorder = fake_engine("podman-5.4")
    host = str(HOSTS / "radeon-890m")
    assert run_cli("serve", "--dryrun", "--host-facts", host, files["MODEL"]).code == 0
    assert run_cli("serve", "--host-facts", host, files["MODEL"]) == Result(
        22, "", error_text("--host-facts decides for another machine, so nothing can be started",
                           "add --dryrun to see the commands")
    )  # fmt: skip
    assert recorder.take() == []
