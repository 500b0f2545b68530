"""The schedule of a download, and what is remembered of it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.models.ranges import FIRST_PIECE, LARGEST_PIECE, LEAST_SHARE, Ranges, Span, piece_size
from ramalama_like.models.resume import Resumed, Version, read_state, validator_of, write_state


def pairs(size: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Spans of a file, in any order, overlapping or not."""
    numbers = st.tuples(st.integers(0, size), st.integers(0, size))
    return st.lists(numbers.map(lambda two: (min(two), max(two))).filter(lambda two: two[0] < two[1]), max_size=6)


@given(st.integers(1, 400), st.data(), st.integers(0, 1 << 30))
def test_whatever_happens_each_byte_is_fetched_and_accounted_for(size: int, data: st.DataObject, seed: int) -> None:
    done = data.draw(pairs(size))
    here = {byte for begin, end in done for byte in range(begin, end)}
    ranges = Ranges(size, done)
    assert ranges.done_bytes == len(here)
    dice = random.Random(seed)
    claimed: list[Span] = []
    while ranges.done_bytes < size:
        step = dice.choice(("take", "take", "advance", "advance", "advance", "give back", "split", "take over"))
        if step == "take":
            span = ranges.take(dice.randint(1, 50))
            assert (span is None) == (not ranges.unclaimed_bytes) or span is not None
            claimed += [span] if span is not None else []
        elif claimed:
            span = dice.choice(claimed)
            if step == "advance":
                count = dice.randint(0, 60)
                here.update(range(span.position, min(span.position + count, span.end)))
                assert ranges.advance(span, count) == (span.left == 0)
            elif step == "give back":
                claimed.remove(span)
                ranges.give_back(span)
            elif span.left:
                claimed.append(ranges.split(span) if step == "split" else ranges.take_over(span))
        assert ranges.done_bytes == len(here)
        assert {byte for begin, end in ranges.done() for byte in range(begin, end)} == here
        assert ranges.frontier == next((byte for byte in range(size) if byte not in here), size)
        assert ranges.unclaimed_bytes == size - len(here) - sum(span.left for span in claimed)
    assert ranges.done() == [(0, size)]


PIECES = [(0, 3), (5, 9), (9, 13), (13, 17), (17, 20)]  # MiB


def test_pieces_come_in_order() -> None:
    ranges = Ranges(20 << 20, [(3 << 20, 5 << 20)])
    spans = [ranges.take(4 << 20) for _ in range(5)]
    assert [(span.begin >> 20, span.end >> 20) for span in spans if span] == [
        (0, 3),
        (5, 9),
        (9, 13),
        (13, 17),
        (17, 20),
    ]


def test_no_crumb_is_left() -> None:
    span = Ranges((8 << 20) + 5).take(8 << 20)
    assert span is not None
    assert span.left == (8 << 20) + 5


@pytest.mark.parametrize(
    ("unclaimed", "workers", "rate", "answer_s", "size"),
    [
        (128 << 20, 8, 0, 0, FIRST_PIECE),  # two rounds of all workers
        (1 << 30, 8, 1e9, 0.0001, FIRST_PIECE),  # on this machine: nearly in order
        (40 << 30, 8, 15e6, 0.05, 15_000_000),  # a twentieth of the time is spent on asking
        (40 << 30, 8, 1e9, 0.2, LARGEST_PIECE),
        (3 << 20, 8, 1e9, 0.2, LEAST_SHARE),
        (1, 1, 0, 0, LEAST_SHARE),
        (24 << 20, 2, 1e9, 1, 6 << 20),
    ],
)
def test_sizes_of_pieces(unclaimed: int, workers: int, rate: float, answer_s: float, size: int) -> None:
    assert piece_size(unclaimed, workers, rate, answer_s) == size


VERSION = Version("a" * 64, 100, '"one"', "b" * 64)


def test_a_state_comes_back(tmp_path: Path) -> None:
    path = str(tmp_path / "state.json")
    write_state(path, VERSION, [(0, 10), (50, 100)])
    assert read_state(path) == Resumed(VERSION, ((0, 10), (50, 100)))
    write_state(path, VERSION, [], "c" * 64)
    assert read_state(path) == Resumed(VERSION, (), "c" * 64)
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


@given(st.one_of(st.binary(max_size=80), st.builds(
    lambda key, junk: json.dumps({"url": "u", "size": 9, "validator": "", "sha256": "", "done": [], "finished": ""}
                                 | {key: junk}).encode(),
    st.sampled_from(("url", "size", "validator", "sha256", "done", "finished")),
    st.recursive(st.none() | st.booleans() | st.floats() | st.integers(-5, 20) | st.text(max_size=3),
                 lambda inner: st.lists(inner, max_size=3)),
)))  # fmt: skip
def test_a_damaged_state_is_none_or_makes_sense(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("state") / "state.json"
    path.write_bytes(content)
    found = read_state(str(path))
    if found is not None:
        assert all(0 <= begin < end <= found.version.size_bytes for begin, end in found.done)
        Ranges(max(0, found.version.size_bytes), found.done)


@pytest.mark.parametrize(
    ("headers", "published", "validator"),
    [
        ({"etag": '"a"', "last-modified": "x"}, False, '"a"'),
        ({"etag": 'W/"a"', "last-modified": "x"}, False, "changed x"),
        ({"etag": 'W/"a"', "last-modified": "x"}, True, 'W/"a"'),
        ({"last-modified": "x"}, True, "changed x"),
        ({}, True, ""),
    ],
)
def test_validators(headers: dict[str, str], published: bool, validator: str) -> None:
    assert validator_of(headers, published=published) == validator
