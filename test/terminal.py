"""A program in a terminal of software: what a person would see, key by key (pty and pyte; nothing sleeps)."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pyte

ROOT = Path(__file__).parents[1]
PATIENCE_S = 20.0


class Terminal:
    """This program in a terminal of ``width`` columns. ``see`` waits for what the screen has to show."""

    def __init__(self, *words: str, width: int = 80, height: int = 50, env: Mapping[str, str] | None = None,
                 history: int = 500) -> None:  # fmt: skip
        self.screen = pyte.HistoryScreen(width, height, history=history, ratio=0.5)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.status: int | None = None
        argv = [sys.executable, "-m", "ramalama_like", *words]
        own = {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        environment = {**os.environ, **own, **(env or {})}
        for name in ("COLUMNS", "LINES"):  # they would count before the terminal's own size
            environment.pop(name, None)
        self.child, self.master = pty.fork()
        if not self.child:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
            os.execve(sys.executable, argv, environment)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.status is None:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
        os.close(self.master)

    def type(self, text: str) -> None:
        """Press keys; a line ends with a carriage return."""
        data = text.encode()
        while data:
            data = data[os.write(self.master, data) :]

    def lines(self) -> list[str]:
        """What is on the screen, without blanks at the ends of lines and without the empty lines at its end."""
        found = [line.rstrip() for line in self.screen.display]
        while found and not found[-1]:
            found.pop()
        return found

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(self.lines())

    def see(self, wanted: str, count: int = 1) -> None:
        """Wait until the screen shows a text, so many times."""
        deadline = time.monotonic() + PATIENCE_S
        while self.text.count(wanted) < count:
            if not self._read(deadline):
                raise AssertionError(f"{wanted!r} is not to be seen in:\n{self.text}")

    def wait(self) -> int:
        """Wait for the end of the program; its exit code, negative for a signal."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        _, status = os.waitpid(self.child, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def _read(self, deadline: float) -> bool:
        """Take what the program writes next; False at its end, AssertionError where it writes nothing for too long."""
        ready, _, _ = select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError(f"nothing happens any more:\n{self.text}")
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other side is closed
            return False
        self.raw += data
        self.stream.feed(data)
        return bool(data)
