"""The program's own commands with real engines and the real server: what a user does, from start to end."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from demo_model.corpus import FIXED_ANSWER, FIXED_PROMPT

if TYPE_CHECKING:
    from engine.conftest import Engine

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "ramalama_like")
WITHIN_S = 90


class User:
    """Somebody who types commands, with one engine, in folders of their own."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder  # where they are: podman 4.3 leaves a file "oom" there when the kernel kills a container
        self.runtime = folder / "run"
        self.runtime.mkdir(mode=0o700, parents=True)
        self.environment = {
            name: text for name, text in engine.environment.items() if not name.startswith(("RAMALAMA_", "XDG_"))
        } | {
            "HOME": str(folder), "XDG_RUNTIME_DIR": str(self.runtime), "RAMALAMA_ENGINE": engine.name,
            "PYTHONPATH": str(ROOT), "COLUMNS": "80",
        }  # fmt: skip

    def types(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """One command, run to its end."""
        return subprocess.run(
            [*PROGRAM, *words], env=self.environment, cwd=self.folder, input=stdin, capture_output=True, text=True,
            timeout=WITHIN_S, stdin=subprocess.DEVNULL if stdin is None else None, check=False,
        )  # fmt: skip

    def starts(self, *words: str) -> subprocess.Popen[str]:
        """One command, left running, with its input open."""
        return subprocess.Popen([*PROGRAM, *words], env=self.environment, cwd=self.folder, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip

    def dry_run(self, *words: str) -> list[list[str]]:
        """The argument lists of a dry run."""
        shown = self.types("--dryrun", *words)
        assert shown.returncode == 0, shown.stderr
        return [shlex.split(line) for line in shown.stdout.splitlines()]

    def leftovers(self) -> list[str]:
        """What is left of sockets and folders, the program's own folder excepted."""
        own = self.runtime / "ramalama-like"
        return sorted(path.name for path in own.iterdir()) if own.exists() else []


@pytest.fixture
def user(engine: Engine, world: Path) -> User:
    """A user of each engine in turn, with folders short enough for a socket's path."""
    return User(engine, world / "user")


@pytest.fixture
def port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def wait_for(condition: object, what: str) -> None:
    """Poll until ``condition()`` is true."""
    assert callable(condition)
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {WITHIN_S} s: {what}"
        time.sleep(0.02)


def ask(port: int, prompt: str) -> str:
    """One chat request in OpenAI's form, by a client that is not ours."""
    body = {"messages": [{"role": "user", "content": prompt}], "temperature": 0}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})  # fmt: skip
    with urllib.request.urlopen(request, timeout=WITHIN_S) as response:
        answer = json.load(response)
    content = answer["choices"][0]["message"]["content"]
    assert isinstance(content, str)
    return content


def test_run_answers_a_prompt(user: User) -> None:
    done = user.types("run", "demo", "--temp", "0", FIXED_PROMPT)
    assert (done.returncode, done.stdout) == (0, FIXED_ANSWER + "\n"), done.stderr
    assert user.leftovers() == []


def test_run_reads_standard_input(user: User) -> None:
    done = user.types("run", "demo", "--temp", "0", stdin=FIXED_PROMPT + "\n")
    assert (done.returncode, done.stdout) == (0, FIXED_ANSWER + "\n"), done.stderr


def test_serve_is_what_the_dry_run_said_and_answers(user: User, port: int) -> None:
    words = ("serve", "demo", "--port", str(port), "--env", "A=b c", "--seed", "7")
    (shown,) = user.dry_run(*words)
    server = user.starts(*words)
    try:
        assert server.stderr is not None
        wait_for(lambda: "is served at" in server.stderr.readline(), "the server is ready")
        assert ask(port, FIXED_PROMPT) == FIXED_ANSWER
        chat = user.types("chat", "--url", f"http://127.0.0.1:{port}/v1", "--temp", "0", FIXED_PROMPT)
        assert (chat.returncode, chat.stdout) == (0, FIXED_ANSWER + "\n"), chat.stderr
        listed = json.loads(user.types("ps", "--json").stdout)
        mine = [each for each in listed if each["name"] == f"ramalama-demo-{port}"]
        assert [(each["state"], each["labels"]["ai.ramalama.port"]) for each in mine] == [("running", str(port))]
        if user.engine.name == "podman":
            inspected = user.engine.run("inspect", f"ramalama-demo-{port}", check=True)
            assert json.loads(inspected.stdout)[0]["Config"]["CreateCommand"] == shown
    finally:
        server.terminate()
        _, errors = server.communicate(timeout=WITHIN_S)
    assert server.returncode == 143, errors


def test_serve_in_the_background_then_logs_and_stop(user: User, port: int) -> None:
    done = user.types("serve", "-d", "demo", "--port", str(port))
    assert done.returncode == 0, done.stderr
    container_id = done.stdout.strip()
    assert re.fullmatch("[0-9a-f]{64}", container_id)
    name = f"ramalama-demo-{port}"
    assert ask(port, FIXED_PROMPT) == FIXED_ANSWER
    assert name in user.types("ps").stdout
    assert "listening" in "".join((logs := user.types("logs", name)).stdout + logs.stderr)
    assert user.dry_run("stop", name) == [[user.engine.name, "stop", "-t", "10", name],
                                          [user.engine.name, "rm", "-f", name]]  # fmt: skip
    stopped = user.types("stop", name)
    assert (stopped.returncode, stopped.stdout) == (0, name + "\n"), stopped.stderr
    assert name not in user.types("ps").stdout
    again = user.types("stop", name)
    assert again.returncode == 22
    assert again.stderr.splitlines()[0] == f"Error: {name}: no container of this program has this name"
    assert user.types("stop", "--ignore", name).returncode == 0


def test_bench_measures_each_back_end_and_the_choice_tells_of_it(user: User) -> None:
    """On a machine without a card: the run with vulkan is one of the processor, and does not count."""
    done = user.types("bench", "--backend", "cpu,vulkan", "demo", "--plot", "--runtime-args", "-p 16 -n 8 -r 1")
    assert done.returncode == 0, done.stderr
    assert [line.split()[3:4] for line in done.stdout.splitlines()[:3]] == [["device"], ["cpu"], ["vulkan"]]
    assert "generation, tokens per second (tg8)\n  cpu    █" in done.stdout
    listed = json.loads(user.types("benchmarks", "list", "--json").stdout)
    assert [(each["backend"], each["test"]) for each in listed] == [
        ("vulkan", "pp16"), ("vulkan", "tg8"), ("cpu", "pp16"), ("cpu", "tg8")
    ]  # fmt: skip
    shown = json.loads(user.engine.run("image", "inspect", user.engine.image, check=True).stdout)[0]
    for each in listed:
        assert each["image"] == user.engine.image
        assert each["image_id"].removeprefix("sha256:") == shown["Id"].removeprefix("sha256:")
        assert each["image_digest"] == shown.get("Digest", "")
        assert (each["avg_ts"] > 0, each["on_gpu"], each["engine"]) == (True, False, user.engine.name)
    runs = [each["id"] for each in listed if each["test"] == "tg8"]
    compared = user.types("benchmarks", "compare", *runs)
    assert compared.returncode == 0, compared.stderr
    assert [line.split()[-2:] for line in compared.stdout.splitlines()[1:3]] == [["1.00", "×"]] * 2
    explained = user.types("explain", "run", "demo").stdout
    date = listed[0]["time"][:10]
    reason = explained.partition("\nmeasured: cpu\n")[2].splitlines()[0]
    assert re.fullmatch(
        rf"    why: measured here on {date}: cpu \d+ t/s \(2\.6 MB model\); "
        rf"vulkan of {date} does not count: the processor computed it", reason,
    )  # fmt: skip


def test_bench_and_perplexity(user: User, tmp_path: Path) -> None:
    done = user.types("bench", "demo", "--format", "json", "--runtime-args", "-p 16 -n 8 -r 1")
    assert done.returncode == 0, done.stderr
    assert [(row["n_prompt"], row["n_gen"]) for row in json.loads(done.stdout)] == [(16, 0), (0, 8)]
    table = user.types("bench", "demo", "--runtime-args", "-p 16 -n 8 -r 1")
    heading = "model  size    backend  device"
    assert table.stdout.startswith(heading), table.stdout
    text = tmp_path / "text.txt"
    text.write_text((ROOT / "README.md").read_text("utf-8"), "utf-8")
    measured = user.types("perplexity", "demo", "--file", str(text), "--ctx-size", "64")
    assert measured.returncode == 0, measured.stderr
    assert "PPL" in measured.stdout + measured.stderr


def test_run_is_locked_in(user: User, port: int) -> None:
    """What the container of ``run`` can reach: nothing."""
    # Docker has no socket to cross, so it gets a loopback port; everything else holds for both.
    words = ("run", "demo") if user.engine.name == "podman" else ("run", "demo", "--port", str(port))
    shown = user.dry_run(*words)
    name = shown[0][shown[0].index("--name") + 1]
    running = user.starts(*words)  # it waits for standard input
    try:
        wait_for(lambda: user.engine.run("exec", name, "true").returncode == 0, "the container runs")

        def inside(script: str) -> str:
            return user.engine.run("exec", name, "sh", "-c", script, check=True).stdout

        status = dict(line.split(":\t", 1) for line in inside("cat /proc/1/status").splitlines() if ":\t" in line)
        assert status["CapEff"].strip("0") == "" and status["CapBnd"].strip("0") == ""
        assert status["NoNewPrivs"] == "1"
        assert inside("touch /x 2>/dev/null || echo refused") == "refused\n"
        assert inside("touch /mnt/models/demo.gguf 2>/dev/null || echo refused") == "refused\n"
        if user.engine.name == "podman":
            interfaces = [line.split(":")[0].strip() for line in inside("cat /proc/net/dev").splitlines()[2:]]
            assert interfaces == ["lo"]
    finally:
        answer, errors = running.communicate(FIXED_PROMPT, timeout=WITHIN_S)
    assert (running.returncode, bool(answer.strip())) == (0, True), errors
    assert user.leftovers() == []


@pytest.mark.parametrize("when", ["starting", "ready"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_signal_leaves_a_container(user: User, number: signal.Signals, when: str) -> None:
    shown = user.dry_run("run", "demo")
    name = shown[0][shown[0].index("--name") + 1]
    running = user.starts("run", "demo")
    if when == "ready":
        wait_for(lambda: user.engine.run("exec", name, "true").returncode == 0, "the container runs")
    else:
        wait_for(lambda: bool(_children(running.pid)), "the engine was started")
    running.send_signal(number)
    running.communicate(timeout=WITHIN_S)
    assert running.returncode in (-number, 128 + number)
    # The kernel tells the engine of a kill -9, and the engine then ends the container by itself.
    wait_for(lambda: not user.engine.containers(), "no container is left")
    if number != signal.SIGKILL:
        assert user.leftovers() == []
    elif user.engine.name == "podman":
        assert user.dry_run("run", "demo") == shown, "what a kill left behind does not get in the way"


def _children(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8")
    except OSError:
        return ""


def test_a_server_that_dies_tells_why(user: User) -> None:
    done = user.types("run", "demo", "--runtime-args", "--no-such-option", "hello")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        "Error: the server ended with exit code 1: the server does not know an argument",
        "Hint: check --runtime-args against the image's llama-server --help",
    ]
    assert user.leftovers() == []


def test_a_background_server_that_dies_tells_why(user: User, port: int) -> None:
    done = user.types("serve", "-d", "demo", "--port", str(port), "--runtime-args", "--no-such-option")
    assert done.stderr.splitlines()[-2:] == [
        "Error: the server ended with exit code 1: the server does not know an argument",
        "Hint: check --runtime-args against the image's llama-server --help",
    ]
    assert (done.returncode, done.stdout) == (1, "")


def test_an_image_that_is_not_here(user: User) -> None:
    done = user.types("run", "demo", "--image", "localhost/no-such-image:1", "--pull", "never", "hello")
    assert done.returncode == 125
    assert done.stderr.splitlines()[-2:] == [
        "Error: the server ended with exit code 125: the image is not here",
        "Hint: let it be pulled with --pull missing, or choose another with --image",
    ]
    assert user.leftovers() == []


def test_a_name_that_is_taken(user: User, port: int) -> None:
    assert user.types("serve", "-d", "demo", "--port", str(port), "--name", "held").returncode == 0
    try:
        done = user.types("serve", "demo", "--name", "held")
        assert done.stderr.splitlines()[-1] == (
            "Hint: stop it with `ramalama-like stop NAME`, or choose another name with --name"
        )
        # The other one's container is not ours to remove.
        assert ask(port, FIXED_PROMPT) == FIXED_ANSWER
    finally:
        user.types("stop", "held")


def test_a_taken_port(user: User, taken_port: int) -> None:
    asked = user.types("serve", "demo", "--port", str(taken_port))
    assert (asked.returncode, asked.stderr.splitlines()[0]) == (
        22, f"Error: --port {taken_port}: the port is taken on 127.0.0.1"
    )  # fmt: skip
    user.environment["RAMALAMA_PORT"] = str(taken_port)  # not a flag: the first of a range
    done = user.types("serve", "-d", "demo")
    next_port = taken_port + 1
    try:
        assert f"Port {taken_port} is taken; using {next_port}" in done.stderr.splitlines()
    finally:
        user.types("stop", "--all")


def test_rootless_podman(rootless_podman: Engine, tmp_path: Path) -> None:
    """The package needs nothing but Python's standard library to run a model."""
    home = Path(rootless_podman.environment["HOME"])
    copy = home / "package"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / "ramalama_like", copy / "ramalama_like", ignore=shutil.ignore_patterns("__pycache__"))
    python = next(path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if os.access(path, os.X_OK))
    environment = rootless_podman.environment | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [python, "-m", "ramalama_like", "run", "demo", "--temp", "0", FIXED_PROMPT], env=environment, cwd=home,
            user=rootless_podman.user, group=rootless_podman.user, extra_groups=[], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=WITHIN_S, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, FIXED_ANSWER + "\n"), done.stderr
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def test_servers_conversations_and_tools_side_by_side(user: User) -> None:
    """Names do not collide: each takes the next number."""
    served = user.types("serve", "-d", "demo")
    assert served.returncode == 0, served.stderr
    running = user.starts("run", "demo")
    try:
        wait_for(lambda: len(user.engine.containers()) == 2, "the conversation's container runs")
        bench = user.types("bench", "demo", "--format", "json", "--runtime-args", "-p 16 -n 8 -r 1")
        assert bench.returncode == 0, bench.stderr
        other = user.types("run", "demo", "--temp", "0", FIXED_PROMPT)
        assert (other.returncode, other.stdout) == (0, FIXED_ANSWER + "\n"), other.stderr
    finally:
        running.communicate(FIXED_PROMPT, timeout=WITHIN_S)
        user.types("stop", "--all")
    assert running.returncode == 0


@pytest.mark.parametrize("engine", ["podman"], indirect=True)
def test_conversations_that_start_at_the_same_moment(user: User) -> None:
    """With sockets each takes the next name. (Docker has ports, which can still be lost to somebody quicker.)"""
    running = [user.starts("run", "demo", "--temp", "0", FIXED_PROMPT) for _ in range(4)]
    ends = [process.communicate("", timeout=WITHIN_S) for process in running]
    assert [(process.returncode, out) for process, (out, _) in zip(running, ends, strict=True)] == [
        (0, FIXED_ANSWER + "\n")
    ] * 4, ends
    assert user.leftovers() == []


def test_stop_without_a_name_stops_nothing(user: User, port: int) -> None:
    assert user.types("serve", "-d", "demo", "--port", str(port)).returncode == 0
    try:
        assert user.types("stop", "").returncode == 22
        assert ask(port, FIXED_PROMPT) == FIXED_ANSWER
    finally:
        user.types("stop", "--all")
    assert json.loads(user.types("ps", "--json").stdout) == []


def test_a_log_file_is_all_that_the_container_can_write(user: User, port: int, world: Path) -> None:
    log = world / "folder" / "server.log"
    log.parent.mkdir()
    done = user.types("serve", "-d", "demo", "--port", str(port), "--logfile", str(log))
    try:
        assert done.returncode == 0, done.stderr
        mounts = json.loads(user.engine.run("inspect", f"ramalama-demo-{port}", check=True).stdout)[0]["Mounts"]
        assert [mount["Source"] for mount in mounts if mount["RW"]] == [str(log)]
        wait_for(lambda: "listening" in log.read_text("utf-8"), "the log is written")
    finally:
        user.types("stop", "--all")
