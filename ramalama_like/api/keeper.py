"""The thread that owns a running server.

The kernel ends a server when the thread that started it ends (``process.start``), so that nothing is left where a
program is killed. Programs start models in threads that soon end; hence each model has a thread of its own, which
lives as long as the model does. Everything about the server's process happens in it.
"""

from __future__ import annotations

import atexit
import sys
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from weakref import WeakSet

from ramalama_like import launch, pipeline
from ramalama_like.api.talk import take_server_line, told_to_log
from ramalama_like.chat.client import preload
from ramalama_like.errors import AppError
from ramalama_like.execute import RunningServer, with_free_name
from ramalama_like.signals import NoGuard
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ramalama_like.pipeline import Decided
    from ramalama_like.request import Request

    T = TypeVar("T")

_deciding = Lock()  # user tables are the whole program's, and so are the ports that are promised
_promised: set[int] = set()  # ports of this program's models, from the plan to the end
_running: WeakSet[Keeper] = WeakSet()


def decide(request: Request) -> Decided:
    """The plan of a request, with nothing started. Raises AppError."""
    with _deciding, told_to_log():
        return without_chat(pipeline.decide(request))


def without_chat(decided: Decided) -> Decided:
    """The plan of ``run`` without the conversation at the terminal, which a library does not have."""
    return replace(decided, plan=replace(decided.plan, chat=()))


class Keeper:
    """Starts one server, and ends it. ``start`` and ``close`` may be called from any thread."""

    def __init__(self, request: Request, decided: Decided) -> None:
        self.request = request
        self.decided = decided
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._server: RunningServer | None = None
        self._port = 0

    def start(self) -> Decided:
        """Start the server and wait until it answers; what was decided in the end. Raises AppError."""
        preload()
        self._thread = Thread(target=self._live, name="owner of a model server", daemon=True)
        self._thread.start()
        _running.add(self)
        try:
            self.decided = self._call(self._start)
        except BaseException:
            if self._server is not None:
                self._server.given_up = True  # Ctrl-C reaches the caller, not the thread that waits
            self.close()
            raise
        return self.decided

    def check_alive(self) -> None:
        """Raise ChildFailed where the server has died."""
        server = self._server
        if server is not None:
            self._call(server.check_alive)

    def close(self) -> None:
        """End the server and remove whatever it left. Harmless when done twice."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._work.put(self._end)
        self._work.put(None)
        thread.join()
        _running.discard(self)

    def _call(self, work: Callable[[], T]) -> T:
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except AppError as error:
                done.set_exception(error)
            except BaseException as error:
                done.set_exception(error)
                raise

        self._work.put(run)
        return done.result()

    def _live(self) -> None:
        with told_to_log():
            while (work := self._work.get()) is not None:
                work()

    def _start(self) -> Decided:
        return with_free_name(self.request, self._attempt)

    def _attempt(self, request: Request) -> Decided:
        with _deciding:
            decided = without_chat(launch.prepare_start(_passing_over(request, _promised)))
            self._port = decided.plan.endpoint.port if decided.plan.endpoint else 0
            _promised.add(self._port)
        server = RunningServer(decided.plan, log_sink=take_server_line, signals=NoGuard())
        try:
            self._server = server
            server.__enter__()
            try:
                server.wait_ready()
                server.prove(decided.loaded.settings.require_gpu)
            except BaseException:
                server.__exit__(*sys.exc_info())
                raise
        except BaseException:
            self._forget()
            raise
        return decided

    def _end(self) -> None:
        server = self._server
        self._forget()
        if server is not None:
            server.__exit__(None, None, None)

    def _forget(self) -> None:
        self._server = None
        _promised.discard(self._port)


def _passing_over(request: Request, ports: set[int]) -> Request:
    return replace(request, passed_over=(*request.passed_over, *sorted(ports - set(request.passed_over))))


def _close_all() -> None:
    """At the end of the program: whoever forgot to close a model leaves no container."""
    for keeper in list(_running):
        keeper.close()


atexit.register(_close_all)
