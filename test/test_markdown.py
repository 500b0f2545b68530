"""Markdown on a terminal: what a terminal shows in the end, by a terminal of software (pyte), whatever the pieces."""

from __future__ import annotations

import re

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.chat.markdown import Markdown


def fed(text: str, sizes: list[int], width: int = 0) -> str:
    """The whole output for a text that comes in pieces of these sizes, in turn."""
    out, written, at, turn = Markdown(width), [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        written.append(out.feed(text[at : at + size]))
        at, turn = at + size, turn + 1
    return "".join([*written, out.end()])


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def screen(text: str, width: int, height: int = 40) -> list[str]:
    shown = pyte.Screen(width, height)
    stream = pyte.Stream(shown)
    stream.feed(text.replace("\n", "\r\n"))
    return [line.rstrip() for line in shown.display if line.strip()]


SHOWN = {
    "# Title\ntext": "Title\ntext",
    "### Three\n": "Three\n",
    "#hash": "#hash",
    "a **bold** b": "a bold b",
    "an *italic* word": "an italic word",
    "2 * 3 * 4": "2 * 3 * 4",
    "`code * x`": "code * x",
    "- one\n* two\n+ three\n": "• one\n• two\n• three\n",
    "  - inner": "  • inner",
    "-5 degrees": "-5 degrees",
    "1. first\n2. second": "1. first\n2. second",
    "> quoted": "│ quoted",
    "---\n": "-" * 40 + "\n",
    "snake_case_name": "snake_case_name",
    "\\*not italic\\*": "*not italic*",
    "C:\\dir": "C:\\dir",
    "end\\": "end\\",
    "```python\nx = **y**\n# no title\n```\nafter": "x = **y**\n# no title\nafter",
    "```\n- a\n``` \nb": "- a\nb",
    "~~~\n```\n~~~\nb": "```\nb",
    "```x``` y": "x y",
    "**not closed\nnext": "not closed\nnext",
    "*": "*",
    "": "",
    "\n\n": "\n\n",
}


@pytest.mark.parametrize("text", SHOWN)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_what_is_left_when_styles_are_taken_away(text: str, size: int) -> None:
    assert bare(fed(text, [size])) == SHOWN[text]


def test_styles() -> None:
    assert fed("a **b** `c`", [1]) == "a \x1b[0;1mb\x1b[0m \x1b[0;36mc\x1b[0m"
    assert fed("# T\nx", [1]) == "\x1b[0;1;4mT\x1b[0m\nx"
    assert fed("**b\nx", [1]) == "\x1b[0;1mb\x1b[0m\nx"
    assert fed("```\nx\n```\ny", [1]) == "\x1b[0;36mx\x1b[0m\ny"


TEXTS = st.text(st.sampled_from("ab *`#->\\\n1.~ é模"), max_size=60)


@given(TEXTS, st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_the_pieces_do_not_matter(text: str, sizes: list[int]) -> None:
    assert fed(text, sizes) == fed(text, [1])


@given(TEXTS)
def test_no_letter_is_lost_and_styles_end(text: str) -> None:
    out = fed(text, [1])
    letters = [letter for letter in bare(out) if letter in "abé模"]
    assert letters == [letter for letter in text if letter in "abé模"] or "```" in text or "~~~" in text
    styles = re.findall(r"\x1b\[[0-9;]*m", out)
    assert not styles or styles[-1] == "\x1b[0m"


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=9), min_size=1, max_size=40), st.integers(20, 60))
def test_lines_are_broken_between_words(words: list[str], width: int) -> None:
    lines = screen(fed(" ".join(words), [3], width), width)
    assert " ".join(line.strip() for line in lines) == " ".join(words)
    assert max(map(len, lines)) < width


def test_a_word_longer_than_a_line() -> None:
    assert screen(fed("ab " + "x" * 50, [1], 20), 20) == ["ab xxxxxxxxxxxxxxxx", "x" * 19, "x" * 15]


def test_wide_letters() -> None:
    assert [line.replace(" ", "") for line in screen(fed("模" * 12, [1], 20), 20)] == ["模" * 9, "模" * 3]
