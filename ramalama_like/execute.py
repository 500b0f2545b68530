"""Executing a plan: the other sink beside showing it. Every argument list comes from ``render_steps``.

Whatever happens (an answer, an error, Ctrl-C, SIGTERM, a closed terminal), no container, socket or folder is left.
"""

from __future__ import annotations

import os
from time import time

from ramalama_like import ui
from ramalama_like.causes import find_cause
from ramalama_like.errors import AppError, ChildFailed, EngineError, Interrupted, TimedOut, ValueProblem
from ramalama_like.limits import show_size
from ramalama_like.log_sinks import OwnLog, show_log
from ramalama_like.planner import LOGS
from ramalama_like.probe.engine import remember_engine
from ramalama_like.probe.sockets import LOCK
from ramalama_like.process import capture, start
from ramalama_like.render.argv import render_steps
from ramalama_like.signals import SignalGuard
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import TypeVar

    from ramalama_like.chat.client import Address
    from ramalama_like.options import Setting
    from ramalama_like.plan import Plan, Step
    from ramalama_like.process import Child
    from ramalama_like.proof import Proof
    from ramalama_like.request import Request

    T = TypeVar("T")

TRIES = 10  # when others start at the same moment
TAKEN = ("is already in use by", "port is already allocated", "address already in use")  # an engine's words
TAKEN_NATIVE = ("the address is already in use", "couldn't bind http server socket")  # the servers' own words
LAST_LINES = 12  # of the log, shown when a server dies
# Of the log, kept until the server is ready. With --debug it prints about 1000, and one for each odd token.
REPORT_LINES = 20_000
REPORT_S = 0.3  # how long the last of these lines may be on their way when the server is ready already
KILLED = 9  # SIGKILL; engines exit with 128 more
ENGINE_PATIENCE_S = 10.0  # for small engine commands while cleaning up


class NameTaken(AppError):
    """Somebody else was quicker: the name or port that was free when the plan was made is so no more.

    ``name`` is the container's, which ends with the number (the port, where there is one) that made it free.
    """

    exit_code = ValueProblem.exit_code

    def __init__(self, message: str, hint: str, name: str, exit_code: int | None = None) -> None:
        super().__init__(message, hint, exit_code)
        self.name = name


def with_free_name(request: Request, attempt: Callable[[Request], T]) -> T:
    """Try something that starts a container, with the next name each time others were quicker. Raises what it raises.

    A name or port that was given is taken or it is not, and nothing else is tried.
    """
    asked = request
    for _ in range(TRIES - 1):
        try:
            return attempt(asked)
        except NameTaken as taken:
            number = taken.name.rpartition("-")[2]
            if "name" in request.given or not number.isdigit() or int(number) in asked.passed_over:
                raise
            asked = replace(asked, passed_over=(*asked.passed_over, int(number)))
    return attempt(asked)


class RunningServer:
    """A server that was started from a plan. Leaving the ``with`` block ends it, unless it was detached."""

    def __init__(self, plan: Plan, *, log_sink: Callable[[str], None] | None = None,
                 signals: SignalGuard | None = None) -> None:  # fmt: skip
        self.plan = plan
        self.step: Step = render_steps(plan)[0]
        self.log_sink = log_sink
        self.child: Child | None = None
        self.container_id = ""
        self.is_ready = False
        self.given_up = False  # set from another thread, it ends the wait for the server
        self.report: list[str] = []  # the beginning of the log: what the server says of its devices is there
        self._reporting = True
        self._lock = -1
        self._began = time()
        self._signals = signals or SignalGuard()

    def __enter__(self) -> RunningServer:
        self._make_folder()
        try:
            self.child = start(self.step.argv, keep_output=self._detached)
        except BaseException:
            self._remove_folder()
            raise
        # From here on the slow imports happen while the engine is at work.
        try:
            self._signals.catch()
            self.child.collect(self._take)
        except BaseException:
            self.__exit__(Interrupted, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._signals.ignore()
        failed = kind is not None or not self.is_ready
        try:
            if self.child is not None and (failed or not self._detached):
                self.child.stop()
            if failed:
                _remove_container(self.plan, self._began, self.child.lines if self.child else [])
        finally:
            self._remove_folder()
            self._signals.restore()

    def _take(self, line: str) -> None:
        if self._reporting and len(self.report) < REPORT_LINES:
            self.report.append(line)
        if self.log_sink is not None:
            self.log_sink(line)

    @property
    def _detached(self) -> bool:
        return bool(self.plan.container and self.plan.container.detach)

    @property
    def address(self) -> Address:
        """Where clients find the API."""
        from ramalama_like.chat.client import parse_address

        if self.plan.endpoint is None:
            raise EngineError("this plan starts no server")
        return parse_address(self.plan.endpoint.url)

    def wait_ready(self) -> None:
        """Wait until the API answers. Raises ChildFailed where the server dies, TimedOut where it falls silent."""
        from time import monotonic, sleep

        from ramalama_like.chat.client import is_healthy, polling, serves_model

        child = self._child()
        address, attempts = self.address, polling()
        watched = child
        began = monotonic()
        while True:
            patience, pause = next(attempts)
            if self.given_up:
                raise Interrupted("the start was given up")
            # A detached container is there only when the engine has said so; and on a port that somebody else has
            # taken meanwhile, another server would answer.
            there = not self._detached or bool(self.container_id)
            if (
                there
                and is_healthy(address, patience)
                and (address.scheme == "unix" or serves_model(address, self.plan.model.alias, max(patience, 1.0)))
                and (self._detached or child.poll() is None)
            ):
                break
            if watched.poll() is not None:
                if not self._detached or self.container_id or watched.poll():
                    raise self._died(watched)
                # The engine has put the container into the background: from now on its end is what matters.
                self.container_id = child.read_output().decode(errors="replace").strip() or self._name
                watched = start((self.plan.engine.program, "wait", self._name))
                watched.collect(None)
            if monotonic() - max(began, child.last_line_at) > self.plan.timeout_s:
                raise TimedOut(f"the server was silent for {self.plan.timeout_s:g} seconds and is not ready",
                               "see its log with --debug, or wait longer with --timeout")  # fmt: skip
            sleep(pause)
        self.is_ready = True
        if self._detached:
            watched.stop()
        remember_engine_of(self.plan)

    def find_proof(self) -> Proof:
        """Where the server computes, as far as its own report tells; only once it is ready."""
        from ramalama_like.proof import MARKS, make_proof, unproved
        from ramalama_like.runtimes.llama_cpp import loads_draft

        models = 2 if loads_draft(self.plan.server) else 1
        report = self._whole_report()
        proof = make_proof(self.plan.accelerator, report, models=models, complete=len(report) < REPORT_LINES)
        if proof.on_gpu and _may_write(self.plan, MARKS):
            return unproved()
        return proof

    def prove(self, require_gpu: Setting[bool]) -> None:
        """Tell where the server computes, as far as it says. Raises ValueProblem where a GPU must and none does."""
        from ramalama_like.proof import demand_gpu

        proof = self.find_proof()
        if proof.sentence:
            ui.say(ui.one_line(proof.sentence))
        if require_gpu.value:
            demand_gpu(proof, require_gpu.origin)

    def _whole_report(self) -> list[str]:
        if self._detached:
            done = capture((self.plan.engine.program, "logs", self._name), ENGINE_PATIENCE_S)
            return (done.stdout + done.stderr).split("\n")[:REPORT_LINES]
        from time import monotonic, sleep

        from ramalama_like.server_log import is_complete

        # The API may answer a moment before the log has come through the engine.
        deadline = monotonic() + REPORT_S
        while monotonic() < min(deadline, self._child().last_line_at + REPORT_S / 3):
            if any(map(is_complete, self.report[-20:])):
                break
            sleep(0.005)
        self._reporting = False
        return self.report

    def wait(self) -> int:
        """Wait for the server's end. Its exit code; raises ChildFailed where it did not end well."""
        child = self._child()
        code = child.wait()
        if code:
            raise self._died(child)
        return 0

    def check_alive(self) -> None:
        """Raise ChildFailed where the server has died: that is the reason for whatever else went wrong."""
        child = self._child()
        # The connection breaks a moment before the engine's own program has ended.
        if not self._detached and child.wait(0.5) is not None:
            raise self._died(child)

    def _child(self) -> Child:
        if self.child is None:
            raise EngineError("the server was not started")
        return self.child

    @property
    def _name(self) -> str:
        return self.plan.container.name if self.plan.container else ""

    def _died(self, child: Child) -> AppError:
        child.finish_log()
        lines, code = child.lines, child.poll() or 0
        if self._detached and self.container_id:
            # The child is the engine's `wait`, which prints how the container ended.
            code = int(lines[-1]) if lines and _is_exit_code(lines[-1]) else code
            done = capture((self.plan.engine.program, "logs", "--tail", str(LAST_LINES * 4), self._name),
                           ENGINE_PATIENCE_S)  # fmt: skip
            lines = (done.stdout + done.stderr).split("\n")
        elif taken := find_taken(self.plan, code, lines):
            return taken
        shown = self.log_sink is show_log or isinstance(self.log_sink, OwnLog)
        if not shown or self._detached:  # the lines have not been shown yet, or not all of them
            for line in lines[-LAST_LINES:]:
                ui.say(f"  {ui.one_line(line)}")
        return explain_end(code, lines, "the server", self.plan)

    def _make_folder(self) -> None:
        self._make_log_file()
        folder = self._folder
        if not folder:
            return
        import fcntl

        try:
            # One by one, since makedirs gives only the last its mode.
            for path in (os.path.dirname(folder), folder):
                os.makedirs(path, mode=0o700, exist_ok=True)
                _refuse_foreign(path)
            self._lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EngineError(f"{folder}: {error.strerror}", "set XDG_RUNTIME_DIR to a folder of your own") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = -1
            raise NameTaken(f"a server of the name {self._name} is running", "choose another one with --name",
                            self._name) from None  # fmt: skip
        if self.plan.endpoint:
            _remove_file(self.plan.endpoint.socket)  # a killed server's, on which a new one could not listen

    def _make_log_file(self) -> None:
        # Only the file itself is mounted, so it has to be there before the engine starts.
        # Without blocking, since a pipe would otherwise wait for somebody to read it.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
        for mount in self.plan.container.mounts if self.plan.container else ():
            if mount.target.startswith(LOGS):
                try:
                    os.close(os.open(mount.source, flags, 0o600))
                except OSError as error:
                    raise ValueProblem(f"--logfile: {mount.source}: {error.strerror}", "name a file that you may write"
                                       ) from None  # fmt: skip

    def _remove_folder(self) -> None:
        if self._lock < 0 or not self.plan.endpoint:
            return
        folder = self._folder
        for path in (self.plan.endpoint.socket, os.path.join(folder, LOCK)):
            _remove_file(path)
        try:
            os.rmdir(folder)
        except OSError as error:
            ui.say(f"{folder} is left behind: {error.strerror}")
        os.close(self._lock)
        self._lock = -1

    @property
    def _folder(self) -> str:
        return os.path.dirname(self.plan.endpoint.socket) if self.plan.endpoint else ""


def _is_exit_code(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 4


def _may_write(plan: Plan, texts: tuple[str, ...]) -> bool:
    """Whether the model's own texts, which its server prints, hold one of these; also where that cannot be seen."""
    from ramalama_like.models.gguf import header_mentions

    files = [*plan.model.files, *(plan.draft.files if plan.draft else ())]
    try:
        return any(header_mentions(file.path, texts) for file in files)
    except ValueProblem:
        return True


def remember_engine_of(plan: Plan) -> None:
    """Keep the engine's version for the next start: it was just seen to work."""
    from ramalama_like import settings

    engine = plan.engine
    path = settings.find_program(engine.program) if engine.program else ""
    if path:
        remember_engine(path, f"{engine.kind} version {engine.version_text}", settings.user_cache_dir())


def run_tool(plan: Plan, *, keep_output: bool) -> bytes:
    """Run a plan that starts no server to its end; what it printed, where that is kept. Raises ChildFailed."""
    step = render_steps(plan)[0]
    began = time()
    child = start(step.argv, keep_output=keep_output)
    signals = SignalGuard()
    output = b""
    try:
        signals.catch()
        child.collect(show_log)
        if keep_output:
            output = child.read_output()
        code = child.wait()
    except BaseException:
        signals.ignore()
        child.stop()
        _remove_container(plan, began, child.lines)
        raise
    finally:
        signals.restore()
    child.finish_log()
    if code:
        raise find_taken(plan, code, child.lines) or explain_end(code, child.lines, f"{plan.server[0]}", plan)
    remember_engine_of(plan)
    return output


def run_container(argv: Sequence[str], name: str, what: str) -> None:
    """Run one container of this name to its end, its log shown. ``what`` runs in it. Raises ChildFailed.

    Whatever ends this, the container is gone afterwards.
    """
    began = time()
    child = start(argv)
    signals = SignalGuard()
    try:
        signals.catch()
        child.collect(show_log)
        code = child.wait()
    except BaseException:
        signals.ignore()
        child.stop()
        _remove_named(argv[0], name, began, child.lines)
        raise
    finally:
        signals.restore()
    child.finish_log()
    if code:
        raise explain_end(code, child.lines, what)


def _remove_container(plan: Plan, since: float, log: list[str]) -> None:
    """Make sure that nothing is left: an engine that was stopped while starting may not have cleaned up."""
    if plan.container:
        _remove_named(plan.engine.program, plan.container.name, since, log)


def _remove_named(program: str, name: str, since: float, log: list[str]) -> None:
    """Remove the container that we have started, if it is there.

    Where the engine says in its ``log`` that the name is in use, and where the container was created before ``since``
    (in seconds of the clock), it is somebody else's, and the reason why ours could not start.
    """
    if any("already in use" in line.lower() for line in log):
        return
    try:
        found = capture((program, "inspect", "--type", "container", "--format", "{{json .Created}}", name),
                        ENGINE_PATIENCE_S)  # fmt: skip
        if not found.code and _created(found.stdout) > since:
            capture((program, "rm", "-f", name), ENGINE_PATIENCE_S)
    except AppError as error:
        ui.say(f"{program} could not be asked to remove {name}: {error.message}")


def _created(text: str) -> float:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text.strip().strip('"')).timestamp()
    except ValueError:
        return 0.0


def find_taken(plan: Plan, code: int, lines: list[str]) -> NameTaken | None:
    """The error where the engine refused to start a container since its name or port has been taken meanwhile, or
    where a server without a container found its port taken.

    Seen: docker 26 (125) and podman 4.3 (125 for the name, 126 for the port). Of the port a server itself would say so
    with another exit code.
    """
    said = "\n".join(lines[-LAST_LINES:]).lower()
    if plan.container is None:
        if plan.endpoint is None or not any(words in said for words in TAKEN_NATIVE):
            return None
        explained = explain_end(code, lines, "the server")
        return NameTaken(explained.message, explained.hint, f"port-{plan.endpoint.port}", explained.exit_code)
    if code not in (125, 126) or not any(words in said for words in TAKEN):
        return None
    explained = explain_end(code, lines, plan.engine.kind)
    return NameTaken(explained.message, explained.hint, plan.container.name, code)


def explain_end(code: int, lines: list[str], what: str, plan: Plan | None = None) -> AppError:
    """The error for a program that ended: its likely cause, found in its last lines by data/causes.toml.

    ``plan`` tells what the program was allowed: one that was killed has most likely exceeded it.
    """
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    exit_code = 128 - code if code < 0 else code or 1
    cause = find_cause(lines[-100:], exit_code=exit_code)
    if code in (-KILLED, 128 + KILLED):
        how = "was killed (SIGKILL)"
        cause = cause or _why_killed(plan)
    if cause:
        return ChildFailed(f"{what} {how}: {cause[0]}", cause[1], exit_code)
    # Where an engine tells how to get help, the reason stands above that.
    said = next((line for line in reversed(lines) if line.strip() and not line.startswith(("See '", "Run '"))), "")
    if not said:
        return ChildFailed(f"{what} {how} and without a word", exit_code=exit_code)
    return ChildFailed(f"{what} {how}: {said.strip()}", "see its last lines above", exit_code)


def _why_killed(plan: Plan | None) -> tuple[str, str]:
    """The likely reason, and the next step. The kernel kills without a word to the program or to its log."""
    limit = plan.container.memory_bytes if plan is not None and plan.container is not None else None
    if limit is None:
        return ("perhaps the machine ran out of memory",
                "try a smaller --ctx-size or a smaller model; the kernel's messages tell: journalctl -k | grep -i oom"
                )  # fmt: skip
    return (f"it has most likely exceeded the {show_size(limit)} of memory that it may use",
            "allow more with --memory, or try a smaller --ctx-size or a smaller model")  # fmt: skip


def _refuse_foreign(folder: str) -> None:
    """Below a shared /tmp somebody else may have made the folders first: they could then read or replace the socket."""
    status, above = os.lstat(folder), os.stat(os.path.dirname(folder))
    sticky = 0o1000  # as /tmp is: others can add folders, but not move this one away
    exposed = above.st_uid not in (0, os.geteuid()) or (above.st_mode & 0o022 and not above.st_mode & sticky)
    if exposed or not os.path.isdir(folder) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise EngineError(f"{folder}: is not a folder of yours alone", "set XDG_RUNTIME_DIR to a folder of your own")


def _remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        ui.say(f"{path} is left behind: {error.strerror}")
