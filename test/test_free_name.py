"""A name or port that somebody else takes between the plan and the start: the next one is tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Recorder, free_all_ports, run_cli

Install = Callable[..., Recorder]

FIRST = 20001  # all ports count as free
BUSY = {
    "podman-4.9": 'Error: the container name "ramalama-demo-8080" is already in use by 1',
    "docker-28": 'docker: Conflict. The container name "/x" is already in use by container 1',
}
PORT = "docker: Error response from daemon: Bind for 127.0.0.1:8080 failed: port is already allocated"


def names(runs: list[list[str]]) -> list[str]:
    return [run[run.index("--name") + 1] for run in runs]


@pytest.fixture(autouse=True)
def text(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    free_all_ports(monkeypatch)
    monkeypatch.setenv("RAMALAMA_PORT", str(FIRST))
    path = world / "text"
    path.write_text("words", "utf-8")
    return path


@pytest.mark.parametrize("which", BUSY)
@pytest.mark.parametrize("command", ["bench", "perplexity"])
def test_tools_take_the_next_name(which: str, command: str, fake_engine: Install, text: Path) -> None:
    engine = fake_engine(which, code="0", code_1="125", message=BUSY[which], output="[]")
    run_cli(command, "demo", *(["--file", str(text)] if command == "perplexity" else []))
    assert names(engine.take_runs()) == [f"ramalama-demo-{FIRST}", f"ramalama-demo-{FIRST + 1}"]


@pytest.mark.parametrize("command", ["run", "serve"])
def test_servers_take_the_next_port(command: str, fake_engine: Install) -> None:
    engine = fake_engine("docker-28", code="1", code_1="125", message=PORT)
    done = run_cli(command, "demo", *(["hello"] if command == "run" else []))
    assert done.code == 1
    runs = engine.take_runs()
    assert names(runs) == [f"ramalama-demo-{FIRST}", f"ramalama-demo-{FIRST + 1}"]
    assert [run[run.index("-p") + 1] for run in runs] == [f"127.0.0.1:{port}:{port}" for port in (FIRST, FIRST + 1)]


def test_it_ends(fake_engine: Install, text: Path) -> None:
    engine = fake_engine("podman-4.9", code="125", message=BUSY["podman-4.9"])
    done = run_cli("perplexity", "demo", "--file", str(text))
    assert (done.code, done.err.splitlines()[-2:]) == (125, [
        "Error: podman ended with exit code 125: a container of this name exists",
        "Hint: stop it with `ramalama-like stop NAME`, or choose another name with --name",
    ])  # fmt: skip
    assert names(engine.take_runs()) == [f"ramalama-demo-{FIRST + number}" for number in range(10)]


@pytest.mark.parametrize("words", [("--name", "mine"), ("--name", "mine-7")])
def test_a_name_that_was_given_is_taken_or_not(words: tuple[str, str], fake_engine: Install, text: Path) -> None:
    engine = fake_engine("podman-4.9", code="125", message=BUSY["podman-4.9"])
    assert run_cli("perplexity", "demo", "--file", str(text), *words).code == 125
    assert names(engine.take_runs()) == [words[1]]
