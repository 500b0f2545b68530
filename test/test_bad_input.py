"""Bad input: one error line, its hint, the right exit code, nothing started and nothing left behind."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from harness import (
    ENGINES,
    Recorder,
    Result,
    error_text,
    files_below,
    gguf_bytes,
    gguf_pair,
    gguf_tensor,
    language_model,
    run_cli,
    run_program,
    snapshot,
)

from ramalama_like.options import COMMANDS

Install = Callable[..., Recorder]

STARTERS = [name for name, command in COMMANDS.items() if command.starts]
AGAIN = "download the model again"
FREE = "choose another one, or leave --port out for the next free one"


@pytest.fixture
def model(world: Path) -> str:
    """A model that nothing is wrong with."""
    (world / "models").mkdir()
    (world / "models" / "good.gguf").write_bytes(language_model())
    return f"{world}/models/good.gguf"


def line_for(command: str, model: str, *options: str) -> list[str]:
    """A command line that lacks nothing but what is wrong with the options or the model."""
    text = ["--file", __file__] if command == "perplexity" and "--file" not in options else []
    return [command, *options, *text, "--", model, *(["hello"] if command == "run" else [])]


def refused(world: Path, recorder: Recorder | None, argv: Sequence[str], code: int, message: str, hint: str = ""
            ) -> None:  # fmt: skip
    """The line is refused in these words, as is its dry run, and nothing at all happens."""
    for line in ([*argv], ["--dryrun", *argv]):
        before = snapshot(world / "home", world / "run", world / "tmp", world / "models")
        assert run_cli(*line) == Result(code, "", error_text(message, hint))
        assert snapshot(world / "home", world / "run", world / "tmp", world / "models") == before
        assert recorder is None or recorder.take() == []


# Options


@pytest.mark.parametrize("command", STARTERS)
def test_an_unknown_back_end(command: str, world: Path, model: str, fake_engine: Install) -> None:
    known = "cuda, cpu, auto, rocm, sycl, cann, musa, vulkan, intel, openvino, metal"
    refused(world, fake_engine("podman-4.9"), line_for(command, model, "--backend", "cud"), 22,
            f"--backend: 'cud' is not one of {known}", "did you mean cuda?")  # fmt: skip


PORTS = "give a number from 1 to 65535"
# Where nothing better is known, the hint is what the option is for.
PORT = "port of the API; the default is the first free one from 8080."
TEMP = "temperature of sampling; 0 always takes the likeliest token."
LAYERS = "layers to offload: a number, 'all' (or -1), 'auto'; the default leaves it to the server."
OPTIONS = {
    ("--port", "0"): ("0 is not between 1 and 65535", PORTS),
    ("--port", "65536"): ("65536 is not between 1 and 65535", PORTS),
    ("--port", "-1"): ("-1 is not between 1 and 65535", PORTS),
    ("--port", "http"): ("'http' is not a whole number", PORT),
    ("--port", "80.5"): ("'80.5' is not a whole number", PORT),
    ("--port", ""): ("'' is not a whole number", PORT),
    ("--port", "9" * 5000): ("the number is too large", PORT),
    ("--temp", "nan"): ("'nan' is not a finite number", TEMP),
    ("--temp", "-1"): ("-1.0 is less than 0", "give a number from 0 up"),
    ("--temp", "hot"): ("'hot' is not a number", TEMP),
    ("--threads", "0"): ("0 is less than 1", "give a number from 1 up"),
    ("--cpus", "0"): ("0.0 is not between 0.01 and 65536", "give a number from 0.01 to 65536"),
    ("--cpus", "-1"): ("-1.0 is not between 0.01 and 65536", "give a number from 0.01 to 65536"),
    ("--cpus", "two"): ("'two' is not a number",
                        "most processors to use, such as 1.5; the server starts no more threads than that."),
    ("--memory", "-1g"): ("'-1g' is not a size", "write it like 8g or 512m"),
    ("--memory", "8 apples"): ("'8 apples' is not a size", "write it like 8g or 512m"),
    ("--memory", "9" * 18 + "t"): ("the size is too large",
                                   "most memory that the container may use, such as 8g or 512m; it gets no swap "
                                   "besides."),
    ("--memory", "0"): ("'0' is less than 6m, the least that engines take", "write it like 8g or 512m"),
    ("--memory", "5m"): ("'5m' is less than 6m, the least that engines take", "write it like 8g or 512m"),
    ("--ngl", "some"): ("'some' is neither a number nor all nor auto", LAYERS),
    ("--ngl", "-2"): ("-2 is less than -1", LAYERS),
    ("--pull", "sometimes"): ("'sometimes' is not one of never, newer, missing, always",
                             "when to ask for a newer image, and for a newer model."),
    ("--pull", "allways"): ("'allways' is not one of always, newer, missing, never", "did you mean always?"),
    ("--engine", "nerdctl"): ("'nerdctl' is not one of none, docker, podman",
                              "container engine; the default is podman, else docker, else none."),
    ("--selinux", "maybe"): ("'maybe' is neither on nor off", "write on or off"),
    ("--engine-args", "'"): ('a quotation is not closed in "\'"',
                             "more arguments for the engine, right before the image."),
}  # fmt: skip


@pytest.mark.parametrize("given", OPTIONS, ids=lambda given: " ".join(given)[:20])
def test_values_that_cannot_be(given: tuple[str, str], world: Path, model: str, fake_engine: Install) -> None:
    recorder = fake_engine("docker-28")
    for command in ("serve", "bench"):
        refused(world, recorder, line_for(command, model, *given), 22, f"{given[0]}: {OPTIONS[given][0]}",
                OPTIONS[given][1])  # fmt: skip


MORE_OPTIONS = {
    ("--image", "a b"): ("--image: 'a b' is not the name of an image", "write it like quay.io/ramalama/ramalama:0.25"),
    ("--env", "=x"): ("--env =x: no name stands before the =", "write --env NAME=VALUE"),
    ("--host", ""): ("--host: the address is empty", "0.0.0.0 stands for all addresses"),
    ("--network", "none"): ("--network none leaves no port to publish",
                            "leave --network out: run then talks over a Unix socket where it can"),
    ("--authfile", "/no/file"): ("--authfile: /no/file does not exist", "give the path of a file"),
    ("--authfile", "/etc"): ("--authfile: /etc is not a file", "give the path of a file"),
    ("--logfile", "/no/folder/x"): ("--logfile: /no/folder/x cannot be written", "name a file in a folder that exists"),
    ("--logfile", "/etc"): ("--logfile: /etc cannot be written", "name a file in a folder that exists"),
    ("--host-facts", "/no/facts"): ("host facts: /no/facts: No such file or directory",
                                    "Give a folder that stands for /, or a JSON file of facts."),
}  # fmt: skip


@pytest.mark.parametrize("given", MORE_OPTIONS, ids=" ".join)
def test_values_that_do_not_work(given: tuple[str, str], world: Path, model: str, fake_engine: Install) -> None:
    refused(world, fake_engine("podman-5.4"), line_for("serve", model, *given), 22, *MORE_OPTIONS[given])


def test_run_without_a_network_has_no_port(world: Path, model: str, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    expected = MORE_OPTIONS["--network", "none"]
    refused(world, recorder, line_for("run", model, "--network", "none", "--port", "20001"), 22, *expected)


def test_perplexity_needs_a_text(world: Path, model: str, fake_engine: Install) -> None:
    recorder = fake_engine("podman-4.3")
    refused(
        world, recorder, ["perplexity", model], 22, "perplexity needs a text to measure", "name it with --file PATH"
    )
    hint = "give the path of a file"
    refused(world, recorder, ["perplexity", model, "--file", "/no"], 22, "--file: /no does not exist", hint)
    refused(world, recorder, ["perplexity", model, "--file", "/etc"], 22, "--file: /etc is not a file", hint)
    refused(world, recorder, ["perplexity", model, "--file", ""], 22, "--file: the path is empty",
            "text whose perplexity is measured.")  # fmt: skip


USAGE: dict[tuple[str, ...], tuple[int, str, str]] = {
    ("rum", "m"): (2, "no such command: rum", "did you mean rm or run?"),
    ("xyzzy",): (2, "no such command: xyzzy", "see ramalama-like --help"),
    ("config",): (2, "config needs a command", "one of: show"),
    ("sandbox", "m"): (38, "sandbox: sandboxed agents are not built yet", "see ramalama-like --help for what there is"),
    ("run", "m", "--temprature", "1"): (2, "no such option: --temprature", "did you mean --temp?"),
    ("run", "m", "--xyzzy"): (2, "no such option: --xyzzy", "see ramalama-like run --help"),
    ("bench", "m", "--detach"): (2, "no such option: --detach", "it is an option of serve"),
    ("--port", "1", "serve", "m"): (
        2, "no such option before the command: --port", "put it after the command, as in run"),
    ("run",): (2, "missing argument: MODEL", "usage: ramalama-like run [OPTION]... MODEL [PROMPT]..."),
    ("bench", "m", "x"): (2, "unexpected argument: x", "usage: ramalama-like bench [OPTION]... MODEL"),
    ("serve", "m", "--port"): (2, "--port needs a value", ""),
    ("serve", "m", "--debug=yes"): (2, "--debug takes no value", ""),
    ("run", "--quiet", "--debug", "m"): (2, "--quiet and --debug exclude each other", ""),
    ("--quiet", "serve", "m", "--debug"): (2, "--quiet and --debug exclude each other", ""),
    ("run", "--rag", "x", "m"): (38, "--rag: RAG is not supported yet", ""),
    ("run", "--runtime", "vllm", "m"): (38, "--runtime: runtime vllm comes in a later version", ""),
    ("stop",): (22, "stop needs a name or --all, and not both", "see the names with: ramalama-like ps"),
    ("stop", "--all", "x"): (22, "stop needs a name or --all, and not both", "see the names with: ramalama-like ps"),
    ("chat", "--url", "nope://x", "hi"): (
        22, "--url nope://x: not the address of a server", "write http://HOST:PORT/v1 or unix:///PATH"),
    ("explain", "stop"): (22, "stop needs a name or --all, and not both", "see the names with: ramalama-like ps"),
}  # fmt: skip


@pytest.mark.parametrize("line", USAGE, ids=" ".join)
def test_command_lines_that_cannot_be_understood(line: tuple[str, ...], world: Path, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    code, message, hint = USAGE[line]
    before = snapshot(world)
    assert run_cli(*line) == Result(code, "", error_text(message, hint))
    assert snapshot(world) == before
    assert recorder.take() == []


def test_the_process_ends_with_the_code(world: Path) -> None:
    for line in (("rum", "m"), ("sandbox", "m"), ("stop",)):
        code, message, hint = USAGE[line]
        assert run_program(*line) == Result(code, "", error_text(message, hint))
    shown = run_program("rum", "m", "--debug")
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("Traceback (most recent call last):\n")
    assert shown.err.endswith("\n" + error_text(*USAGE["rum", "m"][1:]))


# Ports


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody listens, with a free one after it."""
    with socket.socket() as server:
        for port in range(23000 + os.getpid() % 5000, 32000):
            try:
                server.bind(("127.0.0.1", port))
            except OSError:
                continue
            break
        server.listen()
        yield port


@pytest.mark.parametrize("command", ["run", "serve"])
def test_a_port_that_is_taken(command: str, taken: int, world: Path, model: str, fake_engine: Install) -> None:
    refused(world, fake_engine("podman-5.4"), line_for(command, model, "--port", str(taken)), 22,
            f"--port {taken}: the port is taken on 127.0.0.1", FREE)  # fmt: skip


def test_an_address_that_this_machine_does_not_have(world: Path, model: str, fake_engine: Install) -> None:
    recorder = fake_engine("docker-28")
    for host in ("192.0.2.1", "\u0334 no name", "a..b"):
        refused(world, recorder, line_for("serve", model, "--host", host), 22,
                f"no port from 8080 to 8180 is free on {host}",
                "choose one with --port, or check --host")  # fmt: skip


def test_a_configured_port_that_is_taken_gives_way(
    taken: int, model: str, fake_engine: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = fake_engine("docker-28", message="done")
    monkeypatch.setenv("RAMALAMA_PORT", str(taken))
    result = run_cli("serve", model)
    (call,) = recorder.take_runs()
    port = int(call[call.index("-p") + 1].split(":")[1])
    assert port > taken
    assert result.err.splitlines()[0] == f"Port {taken} is taken; using {port}"


# Models


WHOLE = gguf_bytes(
    gguf_pair("general.architecture", "text", "llama"), gguf_pair("tokens", "[text]", ["a", "b"]),
    tensors=[gguf_tensor("a", [4]), gguf_tensor("b", [4], 0, 32)], data=48,
)  # fmt: skip
CUT = "the header is damaged or cut off"
FILES: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "the file is empty", AGAIN),
    "PE": (b"MZ" + bytes(99), "not a GGUF file", "get the model as GGUF"),
    "zip": (b"PK\3\4" + bytes(99), "not a GGUF file", "this looks like a PyTorch archive: get the model as GGUF"),
    "html": (b"<html>", "not a GGUF file", f"this looks like a web page or an error message: {AGAIN}"),
    "ggml": (b"lmgg" + bytes(99), "not a GGUF file", "this is an old GGML file: get the model as GGUF"),
    "cut in the magic": (WHOLE[:3], "not a GGUF file", "get the model as GGUF"),
    "cut after the magic": (WHOLE[:4], CUT, AGAIN),
    "cut in the version": (WHOLE[:6], CUT, AGAIN),
    "cut in the counts": (WHOLE[:20], CUT, AGAIN),
    "cut in a key": (WHOLE[:40], CUT, AGAIN),
    "cut in an array": (WHOLE[: WHOLE.index(b"tokens") + 30], CUT, AGAIN),
    "cut in a description": (WHOLE[: WHOLE.index(b"tokens") + 60], CUT, AGAIN),
    "cut before the data": (WHOLE[:-48], f"truncated: {len(WHOLE) - 48} bytes of {len(WHOLE)} are there", AGAIN),
    "cut in the data": (WHOLE[:-1], f"truncated: {len(WHOLE) - 1} bytes of {len(WHOLE)} are there", AGAIN),
    "big-endian": (b"GGUF" + struct.pack(">I", 3) + bytes(99), "a big-endian GGUF file, which this machine cannot use",
                   "get the little-endian file of the same model"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_model(name: str, world: Path, fake_engine: Install) -> None:
    content, message, hint = FILES[name]
    recorder = fake_engine("podman-5.4")
    path = world / "bad.gguf"
    path.write_bytes(content)
    for command in STARTERS:
        refused(world, recorder, line_for(command, str(path)), 22, f"{path}: {message}", hint)


NO_MODEL: dict[str, tuple[str, str]] = {
    "WORLD/no.gguf": ("WORLD/no.gguf: No such file or directory",
                      "check the path; 'demo' is a model that is always there"),
    "WORLD/models": ("WORLD/models: is a folder, not a GGUF file", "it holds good.gguf"),
    "WORLD/home": ("WORLD/home: is a folder, not a GGUF file", "give the path of a file"),
    "WORLD/models/x-00001-of-00002.gguf": (
        "WORLD/models/x-00001-of-00002.gguf: parts are missing: x-00001-of-00002.gguf, x-00002-of-00002.gguf",
        "put all parts of the model into one folder"),
    "": ("the model's name is empty", "give a path to a GGUF file, or 'demo'"),
    "file://elsewhere/m": ("file://elsewhere/m: a file on another host cannot be opened", "write file:///PATH"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_MODEL)
def test_a_path_that_leads_to_no_model(name: str, world: Path, model: str, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    text, message, hint = (part.replace("WORLD", str(world)) for part in (name, *NO_MODEL[name]))
    for command in STARTERS:
        refused(world, recorder, line_for(command, text), 22, message, hint)


ABSENT = "is not on this machine, and nothing is fetched while offline"
ONLINE = "leave out --offline, and unset HF_HUB_OFFLINE"


@pytest.mark.parametrize("name", ["hf://o/m", "o/m", "ollama://x", "oci://q.io/m", "https://h/m.gguf", "rlcr://m"])
def test_a_name_that_cannot_be_had(name: str, world: Path, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    before = snapshot(world / "home", world / "run", world / "tmp")
    for command in STARTERS:
        line = ["--offline", *line_for(command, name)]
        assert run_cli(*line) == Result(5, "", error_text(f"{name}: {ABSENT}", ONLINE))
        dry = run_cli("--dryrun", *line)
        assert (dry.code, dry.err.splitlines()[0]) == (0, f"Note: {name} has not been resolved: {name}: {ABSENT}")
    assert snapshot(world / "home", world / "run", world / "tmp") == before
    assert recorder.take() == []


def test_a_name_that_nobody_knows(world: Path, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    message = "nosuch: no file and no known model has this name"
    hint = "write hf://OWNER/REPOSITORY, ollama://NAME or the path of a file; `shortnames` lists short names"
    for command in STARTERS:
        assert run_cli(*line_for(command, "nosuch")) == Result(22, "", error_text(message, hint))
    assert recorder.take() == []


def test_a_draft_model_counts_too(world: Path, model: str, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    assert run_cli("--offline", "serve", "--model-draft", "hf://o/m", model) == Result(
        5, "", error_text(f"hf://o/m: {ABSENT}", ONLINE)
    )
    refused(world, recorder, ["serve", "--model-draft", f"{world}/home", model], 22,
            f"{world}/home: is a folder, not a GGUF file", "give the path of a file")  # fmt: skip


# Configuration. What cannot be read for lack of permission is not tested: root, who often runs tests, may read all.

CONFIGURATIONS: dict[str, tuple[bytes, str, str]] = {
    "syntax": (b"[ramalama]\nport = \n", ":2: invalid value", "the file must be TOML"),
    "not closed": (b"[ramalama]\nimage = 'x\n", ":2: expected \"'\"", "the file must be TOML"),
    "wrong type": (b"[ramalama]\n\nport = 'many'\n", ":3: port: 'many' is not a whole number", PORT),
    "wrong value": (b"[ramalama]\nport = 0\n", ":2: port: 0 is not between 1 and 65535", PORTS),
    "not text": (b"[ramalama]\nimage = 5\n", ":2: image: not text: put it in quotes",
                 "container image; beats every other choice."),
    "unknown back end": (
        b"[ramalama.runtimes.llama_cpp]\nbackend = 'cud'\n",
        ":2: runtimes.llama_cpp.backend: 'cud' is not one of "
        "cuda, cpu, auto, rocm, sycl, cann, musa, vulkan, intel, openvino, metal", "did you mean cuda?"),
    "no table": (b"ramalama = 1\n", ":1: ramalama is not a table", ""),
    "not UTF-8": (b"[ramalama]\nimage = '\xff'\n", ":2: not UTF-8 text", "save the file in UTF-8"),
    "binary": (b"\x7fELF\x00", ":1: invalid statement", "the file must be TOML"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_that_cannot_be_used(name: str, world: Path, model: str, fake_engine: Install) -> None:
    content, message, hint = CONFIGURATIONS[name]
    recorder = fake_engine("podman-5.4")
    path = world / "home" / ".config" / "ramalama" / "ramalama.conf"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for argv in (line_for("run", model), line_for("bench", model), ["ps"], ["config", "show"]):
        refused(world, recorder, argv, 22, f"{path}{message}", hint)


def test_a_configuration_that_is_a_folder(world: Path, model: str, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    path = world / "home" / ".config" / "ramalama" / "ramalama.conf"
    path.mkdir(parents=True)
    message = f"{path} is a folder, not a configuration file"
    refused(world, recorder, line_for("serve", model), 22, message)


def test_a_named_configuration_that_is_missing(
    world: Path, model: str, fake_engine: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = fake_engine("podman-5.4")
    monkeypatch.setenv("RAMALAMA_CONFIG", "/no/such.conf")
    refused(world, recorder, line_for("serve", model), 22, "$RAMALAMA_CONFIG: '/no/such.conf' does not exist",
            "unset it, or name an existing file")  # fmt: skip


def test_a_variable_that_is_no_text(
    world: Path, model: str, fake_engine: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = fake_engine("podman-5.4")
    monkeypatch.setenv("RAMALAMA_IMAGES", r'{"cpu": "\ud800:1"}')
    refused(world, recorder, line_for("serve", model), 22, "$RAMALAMA_IMAGES: half of a surrogate pair is no text",
            "image for each back end, instead of the family's.")  # fmt: skip


# Engines


def test_an_engine_that_is_missing(world: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(world))
    for kind in ("podman", "docker"):
        refused(world, None, line_for("serve", model, "--engine", kind), 5, f"{kind} is not on PATH",
                f"install {kind}, or run without containers: --nocontainer")  # fmt: skip
    assert run_cli("ps") == Result(
        22, "", error_text("ps needs a container engine, and neither podman nor docker is on PATH",
                           "install podman or docker")
    )  # fmt: skip
    refused(world, None, line_for("bench", model), 22, "bench without a container engine needs llama-bench on PATH",
            "install podman, or llama.cpp's programs")  # fmt: skip
    refused(world, None, line_for("serve", model, "--image", "x"), 22,
            "--image needs a container engine, and neither podman nor docker is on PATH",
            "install podman, or leave --image out")  # fmt: skip


def test_an_engine_that_may_not_be_executed(world: Path, model: str, fake_engine: Install) -> None:
    """It does not count as one, as for every shell."""
    recorder = fake_engine("podman-5.4")
    os.chmod(f"{recorder.path}/podman", 0o644)
    refused(world, recorder, line_for("serve", model, "--engine", "podman"), 5, "podman is not on PATH",
            "install podman, or run without containers: --nocontainer")  # fmt: skip


def test_an_engine_that_is_no_program(world: Path, model: str, fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    Path(recorder.path, "podman").write_bytes(b"\x7fELF and nothing else")
    message = "podman cannot be started: Exec format error"
    refused(world, recorder, line_for("serve", model), 5, message)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_fails(engine: str, world: Path, model: str, fake_engine: Install) -> None:
    recorder = fake_engine(engine, asked="fail")
    kind = recorder.kind
    said = f"{kind} --version failed with exit code 125: {kind}: cannot find its own libraries"
    hint = f"repair {kind}, or run without containers: --nocontainer"
    for command in STARTERS:
        refused(world, recorder, line_for(command, model), 5, said, hint)
    for line in (["ps"], ["stop", "--all"], ["logs", "x"]):
        refused(world, recorder, line, 5, said, hint)


def test_an_engine_that_hangs(world: Path, model: str, fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = fake_engine("podman-5.4", asked="hang")
    said, hint = "podman did not answer within 0.1 seconds", "see what `podman --version` does"
    began = time.monotonic()
    refused(world, recorder, line_for("serve", model, "--timeout", "0.1"), 110, said, hint)
    monkeypatch.setenv("RAMALAMA_TIMEOUT", "0.1")
    for argv in (*(line_for(command, model) for command in STARTERS), ["ps"]):
        refused(world, recorder, argv, 110, said, hint)
    assert time.monotonic() - began < 20


FAILED = "short-name resolution enforced but cannot prompt without a TTY"


@pytest.mark.parametrize("engine", ["podman-4.3", "docker-28"])
@pytest.mark.parametrize("command", STARTERS)
def test_an_engine_that_cannot_run_it(command: str, engine: str, world: Path, model: str, fake_engine: Install
                                      ) -> None:  # fmt: skip
    """It is told in the engine's own words, with its own exit code. No file is left, only the folders of sockets."""
    recorder = fake_engine(engine, code="125", message=f"Error: {FAILED}", lines="20")
    before = files_below(world / "home", world / "run", world / "tmp")
    result = run_cli(*line_for(command, model))
    what = "the server" if command in ("run", "serve") else f"llama-{command}"
    log = [*(f"line {number} of the log" for number in range(1, 21)), f"Error: {FAILED}"]
    # What goes on for long has been shown as it came; `run` shows only the end of it.
    shown = [f"  {line}" for line in log[-12:]] if command == "run" else log
    assert result == Result(125, "", "".join(f"{line}\n" for line in shown) + error_text(
        f"{what} ended with exit code 125: Error: {FAILED}", "see its last lines above"
    ))  # fmt: skip
    assert files_below(world / "home", world / "run", world / "tmp") == before
    calls = [call[1] for call in recorder.take()]
    assert (calls[0], set(calls[1:]) <= {"inspect"}) == ("run", True)


def test_an_engine_that_says_nothing(model: str, fake_engine: Install) -> None:
    fake_engine("podman-5.4", code="3")
    assert run_cli("serve", model) == Result(3, "", error_text("the server ended with exit code 3 and without a word"))
    assert run_cli("bench", model) == Result(3, "", error_text("llama-bench ended with exit code 3 and without a word"))


CAUSES = {
    "Error: unable to copy from source docker://x: manifest unknown": "the registry has no such image",
    "docker: Error response from daemon: Bind for 127.0.0.1:1 failed: port is already allocated.": "the port is taken",
    "error: unknown model architecture: 'x'": "this build of llama.cpp does not know the model's architecture",
}


@pytest.mark.parametrize("said", CAUSES)
def test_a_cause_that_is_known_is_named(said: str, model: str, fake_engine: Install, monkeypatch: pytest.MonkeyPatch
                                        ) -> None:  # fmt: skip
    first = 20000 + os.getpid() % 10000  # somebody may really have 8080
    monkeypatch.setenv("RAMALAMA_PORT", str(first))
    fake_engine("docker-28", code="125", message=said, lines="2")
    result = run_cli("serve", model)
    who, log = "the server", ["line 1 of the log", "line 2 of the log", said]
    if "port" in said:  # that is taken: the next ones are tried, and the log of each is shown
        later = [[f"Port {first} is taken; using {port}", *log] for port in range(first + 1, first + 10)]
        who, log = "docker", [*log, *(line for lines in later for line in lines)]
    *told, message, hint = result.err.splitlines()
    assert told == log
    assert (result.code, message) == (125, f"Error: {who} ended with exit code 125: {CAUSES[said]}")
    assert hint.startswith("Hint: ")


@pytest.mark.parametrize("engine", ["podman-5.4", "docker-20.10"])
@pytest.mark.parametrize("command", ["run", "serve"])
def test_a_server_that_never_gets_ready(command: str, engine: str, world: Path, model: str, fake_engine: Install
                                        ) -> None:  # fmt: skip
    recorder = fake_engine(engine, run="hang")
    before = files_below(world / "home", world / "run", world / "tmp")
    began = time.monotonic()
    assert run_cli(*line_for(command, model, "--timeout", "0.2")) == Result(
        110, "", error_text("the server was silent for 0.2 seconds and is not ready",
                            "see its log with --debug, or wait longer with --timeout")
    )  # fmt: skip
    assert time.monotonic() - began < 5
    assert files_below(world / "home", world / "run", world / "tmp") == before
    assert [call[1] for call in recorder.take()] == ["run", "inspect"]


def test_a_result_that_is_none(model: str, fake_engine: Install) -> None:
    fake_engine("podman-5.4", code="0", output="no JSON")
    assert run_cli("bench", model) == Result(
        1, "", error_text("llama-bench printed something else than its results",
                          "run it with --debug, or look at what --runtime-args asks for")
    )  # fmt: skip


def test_pipes_are_not_waited_for(
    world: Path, model: str, fake_engine: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = world / "pipe"
    os.mkfifo(pipe)
    recorder = fake_engine("podman-5.4")
    hint = "Give a folder that stands for /, or a JSON file of facts."
    refused(world, recorder, line_for("serve", model, "--host-facts", str(pipe)), 22,
            f"host facts: {pipe} is neither a folder nor a file", hint)  # fmt: skip
    refused(world, recorder, line_for("serve", model, "--host-facts", str(world)), 22,
            f"host facts: {world} holds no proc, sys, dev or etc", "give a folder that stands for /")  # fmt: skip
    monkeypatch.setenv("RAMALAMA_CONFIG", str(pipe))
    refused(world, recorder, line_for("serve", model), 22, f"{pipe} is not a file")
