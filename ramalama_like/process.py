"""The only door through which programs are started. Nothing is ever given to a shell."""

from __future__ import annotations

import os
import sys

from ramalama_like.errors import EngineError, TimedOut
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KEPT_LINES = 200  # of a child's log, for telling why it died
TERM, KILL = 15, 9
UNKNOWN = 255  # the exit code of a child that somebody else has waited for


@value
class Finished:
    """A program that ran to its end."""

    code: int
    stdout: str
    stderr: str


def capture(argv: Sequence[str], timeout_s: float, *, text: str = "") -> Finished:
    """Run a program to its end and collect what it prints.

    Raises EngineError where it cannot be started, TimedOut where it takes longer than ``timeout_s`` seconds (it is
    killed then).
    """
    import subprocess

    try:
        done = subprocess.run(argv, input=text.encode(), capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise TimedOut(f"{argv[0]} did not answer within {timeout_s:g} seconds",
                       f"see what `{' '.join(argv[:3])}` does") from None  # fmt: skip
    except OSError as error:
        raise EngineError(f"{argv[0]} cannot be started: {error.strerror}") from None
    return Finished(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class Child:
    """A program that runs beside this one, with its output collected line by line.

    It is in a session of its own, so that Ctrl-C on the terminal reaches only this program, which decides; and on
    Linux the kernel ends it when this program dies without a chance to do so.
    """

    def __init__(self, pid: int, log: int, output: int) -> None:
        self.pid = pid
        self.lines: list[str] = []
        self.last_line_at = _now()
        self._log = log
        self._output = output
        self._code: int | None = None
        self._reader: object = None

    def collect(self, sink: Callable[[str], None] | None) -> None:
        """Begin to read the log in the background; each line is kept and also given to ``sink``."""
        from threading import Thread

        reader = Thread(target=self._read_log, args=(sink,), daemon=True, name="log of a child")
        reader.start()
        self._reader = reader

    def _read_log(self, sink: Callable[[str], None] | None) -> None:
        with os.fdopen(self._log, "rb", buffering=-1) as log:
            for raw in log:
                line = raw.decode(errors="replace").rstrip("\r\n")
                self.last_line_at = _now()
                self.lines.append(line)
                del self.lines[:-KEPT_LINES]
                if sink is not None:
                    sink(line)

    def read_output(self) -> bytes:
        """All of its standard output, once it has ended; only where that was asked for."""
        with os.fdopen(self._output, "rb") as output:
            return output.read()

    def poll(self) -> int | None:
        """Its exit code (negative: the signal that ended it), or None while it runs."""
        if self._code is None:
            self._reap(os.WNOHANG)
        return self._code

    def _reap(self, flags: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, flags)
        except ChildProcessError:  # the program around this library has waited for all of its children
            self._code = UNKNOWN
            return
        if pid:
            self._ended(status)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for its end, at most ``timeout_s`` seconds. Its exit code, or None where it still runs."""
        if self._code is None and timeout_s is None:
            self._reap(0)
        if self._code is None and timeout_s is not None:
            self._wait_for_end(timeout_s)
        return self.poll()

    def _wait_for_end(self, timeout_s: float) -> None:
        try:
            handle = os.pidfd_open(self.pid)  # Linux 5.3: readable when the process has ended
        except (AttributeError, OSError):
            deadline = _now() + timeout_s
            while self.poll() is None and _now() < deadline:
                _sleep(0.005)
            return
        from select import select

        try:
            select([handle], [], [], timeout_s)
        finally:
            os.close(handle)

    def _ended(self, status: int) -> None:
        self._code = os.waitstatus_to_exitcode(status)

    def finish_log(self, timeout_s: float = 0.5) -> None:
        """Let the last lines arrive after the end. A grandchild may hold the pipe open, so not for ever."""
        from threading import Thread

        if isinstance(self._reader, Thread):
            self._reader.join(timeout_s)

    def stop(self, grace_s: float = 5.0) -> int | None:
        """Ask it to end, twice, then end it. Its exit code; None where even that did not help in a second."""
        # llama.cpp takes a second signal as "now, whatever you are doing"; engines hand both on.
        for signal, patience in ((TERM, grace_s), (TERM, 2.0), (KILL, 1.0)):
            if self.poll() is not None:
                break
            os.kill(self.pid, signal)  # not waited for yet, so the number is still its own
            self.wait(patience)
        return self.poll()


def start(argv: Sequence[str], *, keep_output: bool = False) -> Child:
    """Start a program without waiting for it. Standard output and error are its log, or only error (``keep_output``).

    Raises EngineError where it cannot be started.

    This does by hand what ``subprocess`` does, since importing that costs a fifth of what may pass before the engine
    starts (test/bench), and it can ask the kernel for the end of the child without its slow ``preexec_fn``.
    """
    log_read, log_write = os.pipe()
    out_read, out_write = os.pipe() if keep_output else (-1, log_write)
    failed_read, failed_write = os.pipe()  # closed by a successful exec, else it carries the error number
    for stream in (sys.stdout, sys.stderr):
        if stream:  # None where the descriptor was closed
            stream.flush()
    parent, control_process = os.getpid(), _control_process()
    pid = _fork()
    if pid == 0:
        try:
            os.setsid()
            _end_with_parent(parent, control_process)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out_write, 1)
            os.dup2(log_write, 2)
            os.execvp(argv[0], list(argv))  # noqa: S606 - no shell is the point
        except OSError as error:
            os.write(failed_write, str(error.errno).encode())
        finally:
            os._exit(127)
    for descriptor in {log_write, out_write, failed_write}:
        os.close(descriptor)
    failure = os.read(failed_read, 16)
    os.close(failed_read)
    if failure:
        os.waitpid(pid, 0)
        for descriptor in {log_read, out_read} - {-1}:
            os.close(descriptor)
        raise EngineError(f"{argv[0]} cannot be started: {os.strerror(int(failure))}")
    return Child(pid, log_read, out_read)


def _control_process() -> Callable[..., int] | None:
    """prctl(2), where there is one. Found before the fork: in a child of a program with several threads, a lock that
    another thread held, such as that of an import, is held for ever."""
    if sys.platform != "linux":
        return None
    from ctypes import CDLL

    found: Callable[..., int] = CDLL(None).prctl
    return found


def _fork() -> int:
    if "threading" not in sys.modules:
        return os.fork()
    # Python 3.12 warns of forks where there are several threads. The child does nothing but what is safe there.
    from warnings import catch_warnings, simplefilter

    with catch_warnings():
        simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _end_with_parent(parent: int, control_process: Callable[..., int] | None) -> None:
    """Ask the kernel for an end when the *thread* that started this process ends, as it does with its process."""
    if control_process is None:
        return
    set_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    control_process(set_death_signal, TERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel was asked
        os._exit(127)


def hand_over(argv: Sequence[str]) -> int:
    """Run a program in the foreground with this program's own input and output; its exit code."""
    import subprocess

    try:
        return subprocess.run(argv, check=False).returncode
    except OSError as error:
        raise EngineError(f"{argv[0]} cannot be started: {error.strerror}") from None


def _now() -> float:
    from time import monotonic

    return monotonic()


def _sleep(seconds: float) -> None:
    from time import sleep

    sleep(seconds)
