"""Starting programs: their output, their end, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import ROOT

from ramalama_like.errors import EngineError, TimedOut
from ramalama_like.process import KEPT_LINES, Child, Finished, capture, hand_over, start

SH = ("/bin/sh", "-c")


def finished(*argv: str, keep_output: bool = False) -> tuple[Child, int | None]:
    """A program at its end, with all of its log read."""
    child = start(argv, keep_output=keep_output)
    child.collect(None)
    code = child.wait()
    child.finish_log(5)
    return child, code


def open_descriptors() -> set[str]:
    # The listing itself needs one, which is closed again when it is looked at.
    return {name for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")}


def is_alive(pid: int) -> bool:
    """Whether a process still runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition: object, timeout_s: float = 5) -> bool:
    """Wait for a condition."""
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


# capture


def test_capture_keeps_output_and_errors_apart() -> None:
    assert capture((*SH, "cat; echo err >&2; exit 7"), 5, text="in") == Finished(7, "in", "err\n")
    assert capture((*SH, "printf '\\377'"), 5) == Finished(0, "\ufffd", "")
    assert capture((*SH, "kill -9 $$"), 5) == Finished(-9, "", "")


def test_capture_ends_what_hangs() -> None:
    began = time.monotonic()
    with pytest.raises(TimedOut) as caught:
        capture(("sleep", "1000"), 0.1)
    assert time.monotonic() - began < 5
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (
        "sleep did not answer within 0.1 seconds", "see what `sleep 1000` does", 110
    )  # fmt: skip


STARTERS = {"capture": lambda argv: capture(argv, 5), "start": start, "hand_over": hand_over}


@pytest.mark.parametrize("how", STARTERS)
def test_what_cannot_be_started(how: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program")
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    for program, why in (
        ("/no/such/program", "No such file or directory"),
        ("no-such-program-on-path", "No such file or directory"),
        (str(tmp_path), "Permission denied"),
        (str(tmp_path / "plain"), "Permission denied"),
        (str(tmp_path / "broken"), "No such file or directory"),
    ):
        before = open_descriptors()
        with pytest.raises(EngineError) as caught:
            STARTERS[how]((program, "x"))
        assert (caught.value.message, caught.value.exit_code) == (f"{program} cannot be started: {why}", 5)
        assert open_descriptors() == before


# start


def test_both_outputs_are_the_log() -> None:
    child, code = finished(*SH, "echo one; echo two >&2; printf three; exit 5")
    assert (child.lines, code, child.poll()) == (["one", "two", "three"], 5, 5)


def test_output_can_be_kept_apart() -> None:
    child = start((*SH, "printf 'a\\0b'; echo log >&2"), keep_output=True)
    child.collect(None)
    assert (child.read_output(), child.wait()) == (b"a\0b", 0)
    child.finish_log(5)
    assert child.lines == ["log"]


def test_lines_are_given_on_as_they_come() -> None:
    heard: list[str] = []
    child = start((*SH, "echo one; sleep 1000"))
    child.collect(heard.append)
    assert until(lambda: heard == ["one"])
    assert (child.poll(), child.wait(0.01)) == (None, None)
    assert child.stop() == -signal.SIGTERM


def test_only_the_last_lines_are_kept() -> None:
    heard: list[str] = []
    child = start((*SH, f"i=0; while [ $i -lt {KEPT_LINES + 50} ]; do echo $i; i=$((i + 1)); done; printf '\\r\\n'"))
    child.collect(heard.append)
    child.wait()
    child.finish_log(5)
    expected = [*map(str, range(KEPT_LINES + 50)), ""]
    assert (heard, child.lines) == (expected, expected[-KEPT_LINES:])


def test_bytes_that_are_no_text() -> None:
    child, _ = finished(*SH, "printf 'a\\377b\\n'")
    assert child.lines == ["a\ufffdb"]


def test_arguments_arrive_as_they_are() -> None:
    words = ["", " ", "a\nb", "é", "\udcff\udc81", "$(x)", "-"]
    child = start((sys.executable, "-c", "import os, sys; os.write(1, b'|'.join(map(os.fsencode, sys.argv[1:])))",
                   *words), keep_output=True)  # fmt: skip
    child.collect(None)
    assert child.read_output() == b"|".join(map(os.fsencode, words))
    assert child.wait() == 0


def test_a_child_has_an_empty_input_and_a_session_of_its_own() -> None:
    child, code = finished(*SH, "wc -c; ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat; echo $$")
    assert code == 0
    count, session, pid = (line.strip() for line in child.lines)
    assert (count, session) == ("0", pid)


def test_a_child_inherits_nothing_but_its_outputs(tmp_path: Path) -> None:
    """But what whoever started us has left open: a shell would hand that on too."""
    with (tmp_path / "file").open("w") as file:
        listing = ("ls", "-1", "/proc/self/fd")
        expected = subprocess.run(listing, close_fds=False, capture_output=True, text=True, check=True).stdout
        child, _ = finished(*listing)
        assert child.lines == expected.split()
        assert str(file.fileno()) not in child.lines or len(child.lines) == file.fileno() + 1


@pytest.mark.parametrize(("script", "expected"), [("exit 0", 0), ("exit 255", 255), ("kill -15 $$", -15)])
def test_exit_codes(script: str, expected: int) -> None:
    child, code = finished(*SH, script)
    assert (code, child.wait(), child.wait(0.1), child.stop()) == (expected,) * 4


def test_waiting_takes_no_longer_than_needed() -> None:
    child = start((*SH, "sleep 0.2"))
    child.collect(None)
    began = time.monotonic()
    assert child.wait(30) == 0
    assert time.monotonic() - began < 5


def test_a_grandchild_that_keeps_the_log_open_does_not_stop_us() -> None:
    child = start((*SH, "echo said; sleep 1000 & echo $!"))
    child.collect(None)
    assert child.wait() == 0
    child.finish_log(0.1)
    assert child.lines[0] == "said"
    os.kill(int(child.lines[1]), signal.SIGKILL)
    child.finish_log(5)


# The end


def test_stop_asks_first() -> None:
    child = start((*SH, "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.01; done"))
    child.collect(None)
    assert until(lambda: child.lines == ["ready"])
    assert child.stop() == 3
    child.finish_log(5)
    assert child.lines == ["ready", "asked"]


def test_stop_asks_twice_and_then_forces() -> None:
    child = start((*SH, "trap 'echo no' TERM; echo ready; while :; do sleep 0.01; done"))
    child.collect(None)
    assert until(lambda: child.lines == ["ready"])
    began = time.monotonic()
    assert child.stop(grace_s=0.2) == -signal.SIGKILL
    assert 2.1 < time.monotonic() - began < 8
    child.finish_log(5)
    assert child.lines == ["ready", "no", "no"]


PARENT = """
import os, sys
from ramalama_like.process import start
child = start(("sleep", "1000"))
child.collect(None)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_child_ends_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                          ) as parent:  # fmt: skip
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
        parent.wait()
        assert until(lambda: not is_alive(pid))


# What is left


def test_many_starts_leave_no_descriptor_and_no_process() -> None:
    finished("true")
    before = open_descriptors()
    for number in range(100):
        child = start(("true",), keep_output=bool(number % 2))
        child.collect(None)
        if number % 2:
            assert child.read_output() == b""
        assert child.wait() == 0
        child.finish_log(5)
    assert open_descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


CLOSED = """
import os, sys
from ramalama_like import main, ui
from ramalama_like.cli import version
from ramalama_like.process import start

def execute(request):
    child = start(("/bin/sh", "-c", "cat; echo out; echo err >&2"), keep_output=True)
    child.collect(None)
    output = child.read_output()
    code = child.wait()
    child.finish_log(5)
    ui.write("a result"), ui.say("talk")
    os.write(9, repr((output, code, child.lines)).encode())
    return 0

version.execute = execute
sys.exit(main.run_argv(["version"]))
"""


@pytest.mark.parametrize(("closed", "out", "err"), [
    ("<&-", b"a result", b"talk\n"), (">&-", b"", b"talk\n"), ("2>&-", b"a result", b""), ("<&- >&-", b"", b"talk\n"),
    ("<&- >&- 2>&-", b"", b""),
])  # fmt: skip
def test_a_program_without_standard_descriptors(closed: str, out: bytes, err: bytes, tmp_path: Path) -> None:
    """It starts others as always, and nothing that it says goes where it should not."""
    line = f'exec "$0" -c "$1" 9>"$2" {closed}'
    done = subprocess.run([*SH, line, sys.executable, CLOSED, str(tmp_path / "said")], cwd=ROOT, capture_output=True,
                          check=False)  # fmt: skip
    assert (tmp_path / "said").read_text() == "(b'out\\n', 0, ['err'])"
    assert (done.returncode, done.stdout, done.stderr) == (0, out, err)


# In the foreground


def test_hand_over_gives_the_exit_code() -> None:
    assert hand_over((*SH, "exit 9")) == 9
    assert hand_over(("true",)) == 0
