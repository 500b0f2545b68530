"""What people see while files are fetched."""

from __future__ import annotations

import contextlib
import os
import pty
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like import ui
from ramalama_like.transfers import Transfers, progress_line, size_text, time_text

SIZES = {0: "0 bytes", 999: "999 bytes", 1000: "1.0 kB", 999_000: "999.0 kB", 2_600_000: "2.6 MB",
         638_000_000: "638 MB", 8_100_000_000: "8.1 GB"}  # fmt: skip
TIMES = {0: "0:00", 0.4: "0:00", 59.6: "1:00", 7: "0:07", 750: "12:30", 3723: "1:02:03", 1e9: "days"}


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: int) -> None:
    assert size_text(size) == SIZES[size]


@pytest.mark.parametrize("seconds", TIMES)
def test_times(seconds: float) -> None:
    assert time_text(seconds) == TIMES[seconds]


LINES = {
    (0, 2_000_000_000, 0.0): "m.gguf    0 %  0 bytes of 2.0 GB",
    (500_000_000, 2_000_000_000, 1e8): "m.gguf   25 %  500 MB of 2.0 GB  100 MB/s  0:15 left",
    (2_000_000_000, 2_000_000_000, 1e8): "m.gguf  100 %  2.0 GB of 2.0 GB  100 MB/s",
    (500_000_000, -1, 1e8): "m.gguf  500 MB  100 MB/s",
    (500_000_000, -1, 0.0): "m.gguf  500 MB",
}


@pytest.mark.parametrize("what", LINES)
def test_lines(what: tuple[int, int, float]) -> None:
    assert progress_line("m.gguf", *what, 79) == LINES[what]


def test_a_long_name_gives_way() -> None:
    line = progress_line("a-very-long-name-of-a-model-Q4_K_M.gguf", 1, 2, 0.0, 40)
    assert len(line) == 40 and "…   50 %  1 bytes of 2 bytes" in line
    assert progress_line("name", 1, 2, 0.0, 10) == " 50 %  1 b"


@given(st.text(max_size=60), st.integers(0, 10**15), st.integers(-1, 10**15), st.floats(0, 1e12), st.integers(1, 200))
def test_a_line_is_never_too_long(name: str, done: int, size: int, rate: float, width: int) -> None:
    assert len(progress_line(name, done, size, rate, width)) <= width


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    lines: list[str] = []
    monkeypatch.setattr(ui, "say", lines.append)
    monkeypatch.setattr(ui, "rewrite", lambda text: lines.append(f"~{text}"))
    monkeypatch.setattr(ui, "terminal_width", lambda: 80)
    yield lines


def test_one_line_for_each_file_where_nobody_watches(said: list[str]) -> None:
    clock = Clock()
    told = Transfers(moving=False, clock=clock)
    told.begin("m.gguf", 3_000_000)
    for done in (1_000_000, 2_000_000, 3_000_000):
        clock.now += 1
        told.advance(done)
    told.end(fetched=True)
    told.begin("mmproj.gguf", 5)
    told.end(fetched=False)
    told.stop()
    assert said == ["m.gguf: 3.0 MB, 0:03, 666.7 kB/s", "mmproj.gguf: is here already"]


def test_a_line_that_moves(said: list[str]) -> None:
    clock = Clock()
    told = Transfers(moving=True, clock=clock)
    told.begin("m.gguf", 10_000_000)
    for done in (1_000_000, 1_100_000, 3_000_000, 500_000, 10_000_000):  # it was begun anew once
        clock.now += 1 if done != 1_100_000 else 0.01
        told.advance(done)
    told.end(fetched=True)
    assert said == [
        "~m.gguf   10 %  1.0 MB of 10.0 MB", "~m.gguf   30 %  3.0 MB of 10.0 MB  2.0 MB/s  0:04 left",
        "~m.gguf    5 %  500.0 kB of 10.0 MB", "~m.gguf  100 %  10.0 MB of 10.0 MB  9.5 MB/s", "~",
        "m.gguf: 10.0 MB, 0:04, 2.2 MB/s",
    ]  # fmt: skip


def test_waits_are_told_once_each(said: list[str]) -> None:
    told = Transfers(moving=False)
    told.begin("m", 1)
    told.wait(90, "hub.example")
    for _ in range(3):
        told.share()
    assert said == ["hub.example asks to wait: going on in 1:30", "m: another process is fetching it; waiting"]


def test_the_line_goes_to_the_terminal_and_leaves_it_clean() -> None:
    leader, follower = pty.openpty()
    saved = os.dup(2)
    try:
        os.dup2(follower, 2)
        told = Transfers()
        told.begin("m\x1b.gguf", 10)
        told.advance(5)
        told.stop()
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # which is how a terminal ends
        while piece := os.read(leader, 1000):
            shown += piece
    os.close(leader)
    assert shown == b"\r\x1b[Km\\x1b.gguf   50 %  5 bytes of 10 bytes\r\x1b[K"
