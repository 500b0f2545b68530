"""The image with llama-server, in real engines, under the flags that the program uses."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from engine.conftest import Engine

MODEL = Path(os.environ.get("ENGINE_TEST_MODEL", Path(__file__).parents[2] / "ramalama_like/data/demo/demo.gguf"))
CONTAINER = ("run", "--rm", "--label", "ai.ramalama")
LOCKED = ("--cap-drop=all", "--security-opt=no-new-privileges", "--read-only")
ALONE = ("--network", "none", *LOCKED)
SERVER = ("llama-server", "--model", "/mnt/model.gguf", "--ctx-size", "512", "--threads", "2")
HEALTHY_WITHIN_S = 60
ENDED_WITHIN_S = 20


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


# Takes how long one request may last. It matters: podman holds a published port with a listener that never
# answers until the network of the container is up, so that a request which comes too early hangs for good.
Connect = Callable[[float], http.client.HTTPConnection]


def ask(connect: Connect, method: str, path: str, body: object = None, timeout_s: float = 60) -> tuple[int, bytes]:
    connection = connect(timeout_s)
    try:
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def wait_until_healthy(server: subprocess.Popen[bytes], connect: Connect, log: Path) -> None:
    deadline = time.monotonic() + HEALTHY_WITHIN_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.fail(f"the server ended with {server.returncode}:\n{log.read_text(errors='replace')}")
        try:
            if ask(connect, "GET", "/health", timeout_s=1)[0] == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    pytest.fail(f"not healthy within {HEALTHY_WITHIN_S} s:\n{log.read_text(errors='replace')}")


def serve_and_ask(engine: Engine, args: tuple[str, ...], connect: Connect, log: Path) -> None:
    """One life of a server: starts, answers, ends on SIGTERM, and takes its container along."""
    before = engine.containers()
    server = engine.start(*CONTAINER, *args, log=log)
    try:
        wait_until_healthy(server, connect, log)
        assert len(engine.containers() - before) == 1
        status, answer = ask(connect, "POST", "/completion", {"prompt": "What is", "n_predict": 4})
        assert status == 200, answer
        assert json.loads(answer)["tokens_predicted"] > 0
        server.send_signal(signal.SIGTERM)
        assert server.wait(ENDED_WITHIN_S) == 0, log.read_text(errors="replace")
    finally:
        if server.poll() is None:
            server.terminate()
            server.wait(ENDED_WITHIN_S)


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run_in(engine: Engine, *args: str) -> str:
    return engine.run(*CONTAINER, *args, check=True).stdout


@pytest.fixture
def model() -> Path:
    assert MODEL.is_file(), f"there is no model at {MODEL}"
    return MODEL


def test_the_server_says_its_version(engine: Engine) -> None:
    done = engine.run(*CONTAINER, *ALONE, engine.image, "llama-server", "--version", check=True)
    assert "version" in done.stdout + done.stderr


@pytest.mark.parametrize("tool", ["llama-server", "llama-bench", "llama-perplexity", "llama-quantize"])
def test_a_tool_is_there(engine: Engine, tool: str) -> None:
    assert tool in run_in(engine, engine.image, "sh", "-c", f"command -v {tool}")


def test_the_command_is_not_swallowed(engine: Engine) -> None:
    config = json.loads(engine.run("image", "inspect", engine.image, check=True).stdout)[0]["Config"]
    assert not config.get("Entrypoint")
    assert config["Labels"]["io.ramalama-like.backend"] == "cpu"
    assert run_in(engine, engine.image, "echo", "one  two") == "one  two\n"


def test_only_loopback_and_no_capability(engine: Engine) -> None:
    network, _, status = run_in(
        engine, *ALONE, engine.image, "sh", "-c", "cat /proc/net/dev; echo ===; cat /proc/self/status"
    ).partition("===\n")
    interfaces = [line.split(":")[0].strip() for line in network.splitlines() if ":" in line]
    assert interfaces == ["lo"]
    facts = dict(line.split(":", 1) for line in status.splitlines())
    assert int(facts["CapEff"], 16) == int(facts["CapBnd"], 16) == 0
    assert facts["NoNewPrivs"].strip() == "1"


def test_the_root_cannot_be_written(engine: Engine) -> None:
    done = engine.run(*CONTAINER, *ALONE, engine.image, "touch", "/usr/bin/new")
    assert done.returncode != 0
    assert "Read-only file system" in done.stderr


def test_an_exit_code_comes_through(engine: Engine) -> None:
    assert engine.run(*CONTAINER, *ALONE, engine.image, "sh", "-c", "exit 7").returncode == 7


def test_serves_over_a_loopback_port(engine: Engine, model: Path, tmp_path: Path) -> None:
    port = find_free_port()
    container = ("--publish", f"127.0.0.1:{port}:{port}", *LOCKED, "--volume", f"{model}:/mnt/model.gguf:ro")
    args = (*container, engine.image, *SERVER, "--host", "0.0.0.0", "--port", str(port))
    connect = lambda timeout_s: http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)  # noqa: E731
    serve_and_ask(engine, args, connect, tmp_path / "log")


def socket_args(engine: Engine, model: Path, folder: Path) -> tuple[str, ...]:
    mounts = ("--volume", f"{model}:/mnt/model.gguf:ro", "--volume", f"{folder}:/run/server")
    return (*ALONE, *mounts, engine.image, *SERVER, "--host", "/run/server/llama.sock")


@pytest.mark.parametrize("engine", ["podman"], indirect=True)
def test_serves_over_a_socket_without_a_network(engine: Engine, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    connect = lambda timeout_s: UnixConnection(folder / "llama.sock", timeout_s)  # noqa: E731
    serve_and_ask(engine, socket_args(engine, model, folder), connect, tmp_path / "log")


def test_serves_over_a_socket_rootless(rootless_podman: Engine, model: Path, tmp_path: Path) -> None:
    work = rootless_podman.folder / "test_image"
    folder = work / "private"
    shutil.rmtree(work, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    user = rootless_podman.environment["USER"]
    shutil.chown(folder, user, user)
    readable = work / "model.gguf"
    readable.write_bytes(model.read_bytes())
    try:
        connect = lambda timeout_s: UnixConnection(folder / "llama.sock", timeout_s)  # noqa: E731
        serve_and_ask(rootless_podman, socket_args(rootless_podman, readable, folder), connect, tmp_path / "log")
    finally:
        shutil.rmtree(work)
