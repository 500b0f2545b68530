"""The door to programs: output, exit codes, ends, and nothing that stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import ROOT

from ramalama_like.errors import EngineError, TimedOut
from ramalama_like.process import Child, capture, start

WITHIN_S = 10.0


def wait_for(condition: Callable[[], bool]) -> None:
    """Poll until it is so."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def shell(script: str, *, keep_output: bool = False, sink: Callable[[str], None] | None = None) -> Child:
    """A child that runs a script; its log is collected."""
    child = start(("sh", "-c", script), keep_output=keep_output)
    child.collect(sink)
    return child


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_output_and_error_are_one_log_in_order() -> None:
    seen: list[str] = []
    child = shell("echo one; echo two >&2; printf three", sink=seen.append)
    assert child.wait() == 0
    child.finish_log()
    assert child.lines == seen == ["one", "two", "three"]


def test_output_is_kept_apart_where_that_is_asked() -> None:
    child = shell("echo result; echo talk >&2", keep_output=True)
    assert child.read_output() == b"result\n"
    assert child.wait() == 0
    child.finish_log()
    assert child.lines == ["talk"]


def test_arguments_arrive_byte_for_byte() -> None:
    words = ["", " ", "a b", "'", '"', "$(x)", "\\", "\n", "-x", "ä", "\udcff"]
    child = start(("printf", r"%s\0", *words), keep_output=True)
    child.collect(None)
    assert child.read_output() == b"".join(os.fsencode(word) + b"\0" for word in words)
    assert child.wait() == 0


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", -9), ("true", 0)])
def test_exit_codes(script: str, code: int) -> None:
    assert shell(script).wait(WITHIN_S) == code


def test_waiting_gives_up_in_time() -> None:
    child = shell("exec sleep 60")
    began = time.monotonic()
    assert child.wait(0.05) is None
    assert time.monotonic() - began < WITHIN_S
    assert child.stop() == -signal.SIGTERM


def test_stopping_insists() -> None:
    child = shell("trap '' TERM; echo ready; while :; do sleep 0.05; done")
    wait_for(lambda: child.lines == ["ready"])
    assert child.stop(grace_s=0.05) == -signal.SIGKILL


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no-such-program cannot be started: No such file or directory"):
        start(("no-such-program",))
    plain = tmp_path / "plain"
    plain.write_text("", "utf-8")
    with pytest.raises(EngineError, match="cannot be started: Permission denied"):
        start((str(plain),))
    with pytest.raises(EngineError, match="cannot be started"):
        capture(("no-such-program",), 1)


def test_nothing_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(50):
        child = shell("echo x", keep_output=bool(number % 2))
        if number % 2:
            child.read_output()
        child.wait()
        child.finish_log(WITHIN_S)
        with pytest.raises(EngineError):
            start(("no-such-program",))
    wait_for(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_the_child_reads_nothing_and_has_a_session_of_its_own() -> None:
    child = shell("cat; ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat", keep_output=True)
    assert child.read_output().strip() == str(child.pid).encode()
    assert child.wait() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_the_child_ends_with_a_parent_that_is_killed() -> None:
    script = (
        "from ramalama_like.process import start\n"
        "import time\n"
        "child = start(('sleep', '60'))\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
        assert not is_gone(pid)
        parent.kill()
        parent.wait()
        wait_for(lambda: is_gone(pid))


def test_a_program_that_hangs_is_killed() -> None:
    with pytest.raises(TimedOut, match=r"sleep did not answer within 0\.05 seconds"):
        capture(("sleep", "60"), 0.05)


def test_capture() -> None:
    done = capture(("sh", "-c", "cat; echo e >&2; exit 4"), WITHIN_S, text="in")
    assert (done.code, done.stdout, done.stderr) == (4, "in", "e\n")
