"""What people see while files are fetched: a line that moves on a terminal, else one line for each file."""

from __future__ import annotations

from time import monotonic

from ramalama_like import measurement, ui

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY_S = 0.1  # between two looks of the line
_LONGEST_S = 100 * 3600
_RATE_OVER_S = 5.0  # the rate is that of the last seconds: what it was before tells little about what is left


class Transfers:
    """Tells about one file after the other. ``clock`` is for tests."""

    def __init__(self, *, moving: bool | None = None, clock: Callable[[], float] = monotonic) -> None:
        self._moving = ui.is_terminal(2) if moving is None else moving
        self._clock = clock
        self._name, self._size, self._done = "", -1, 0
        self._begun = self._shown = 0.0
        self._first = -1  # bytes that were here before, by the first report
        self._samples: list[tuple[float, int]] = []
        self._sharing = False

    def begin(self, name: str, size_bytes: int) -> None:
        """A file is going to be fetched. -1: nobody knows its size."""
        self._name, self._size, self._done, self._first = name, size_bytes, 0, -1
        self._begun, self._shown, self._samples, self._sharing = self._clock(), 0.0, [], False

    def advance(self, done_bytes: int) -> None:
        """So much of it is here."""
        now = self._clock()
        self._done = done_bytes
        if self._first < 0:
            self._first = done_bytes
        if not self._moving or now - self._shown < _EVERY_S:
            return
        self._shown = now
        if self._samples and done_bytes < self._samples[-1][1]:
            self._samples = []  # begun anew
        self._samples = [each for each in self._samples if now - each[0] <= _RATE_OVER_S] + [(now, done_bytes)]
        ui.rewrite(progress_line(self._name, done_bytes, self._size, self._rate(), ui.terminal_width() - 1))

    def end(self, *, fetched: bool) -> None:
        """It is here; not ``fetched``: it was already."""
        self.stop()
        if not fetched:
            ui.say(f"{self._name}: is here already")
            return
        seconds = self._clock() - self._begun
        came = max(0, self._done - max(0, self._first))
        size = f"{size_text(self._done)}, " if self._done else ""
        rate = f", {size_text(round(came / seconds))}/s" if seconds >= 1 and came else ""
        ui.say(f"{self._name}: {size}{time_text(seconds)}{rate}")

    def wait(self, seconds: float, host: str) -> None:
        """A host has asked to be left alone for a while."""
        self.stop()
        ui.say(f"{host} asks to wait: going on in {time_text(seconds)}")

    def share(self) -> None:
        """Another process fetches the same file."""
        if not self._sharing:
            self._sharing = True
            ui.say(f"{self._name}: another process is fetching it; waiting")

    def stop(self) -> None:
        """Leave the terminal clean, whatever happened."""
        if self._moving and self._shown:
            ui.rewrite("")
        self._shown = 0.0

    def _rate(self) -> float:
        """Bytes per second of late; 0 where there is nothing to go by yet."""
        (begin, before), (now, done) = self._samples[0], self._samples[-1]
        return (done - before) / (now - begin) if now - begin >= 0.5 else 0.0


def progress_line(name: str, done: int, size: int, rate: float, width: int) -> str:
    """One line about a file: how much, how fast, how long still. The name gives way where it does not fit."""
    parts = []
    if size > 0:
        parts.append(f"{min(100, done * 100 // size):3d} %")
        parts.append(f"{size_text(done)} of {size_text(size)}")
    else:
        parts.append(size_text(done))
    if rate >= 1:
        parts.append(f"{size_text(round(rate))}/s")
        if size > done:
            parts.append(f"{time_text((size - done) / rate)} left")
    told = "  ".join(parts)
    room = width - len(told) - 2
    if room < 4:
        return told[:width]
    return f"{name if len(name) <= room else name[: room - 1] + '…'}  {told}"


def size_text(size_bytes: int) -> str:
    """A size of a file for people: 8.1 GB, 638 MB, 1.2 kB, 12 bytes."""
    if size_bytes < 1000:
        return f"{size_bytes} bytes"
    return f"{size_bytes / 1e3:.1f} kB" if size_bytes < 10**6 else measurement.size_text(size_bytes)


def time_text(seconds: float) -> str:
    """A time for people: 0:07, 12:30, 1:02:03."""
    if seconds >= _LONGEST_S:
        return "days"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
