"""Tables: what is laid out without rich looks as rich would have laid it out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramalama_like import ui

CELLS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=12).map(str.strip)


@settings(max_examples=60)
@given(st.data(), st.booleans())
def test_both_ways_agree(data: st.DataObject, show_heading: bool) -> None:
    width = data.draw(st.integers(1, 4))
    row = st.lists(CELLS, min_size=width, max_size=width)
    heading, rows = data.draw(row), data.draw(st.lists(row, min_size=1, max_size=5))
    shown: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ui, "write", shown.append)
        patch.setattr(ui.os, "isatty", lambda _: False)  # type: ignore[attr-defined]
        ui.table(heading, rows, show_heading=show_heading)
        cells = [heading, *rows] if show_heading else rows
        ui._rich_table(heading, cells, show_heading=show_heading, flexible=(), terminal=False)
    assert shown[0] == shown[1]


def test_no_rows() -> None:
    shown: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ui, "write", shown.append)
        ui.table(("A", "BC"), [])
        ui.table(("A", "BC"), [], show_heading=False)
    assert shown == ["A  BC\n", ""]


def test_wide_letters_are_left_to_rich() -> None:
    shown: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ui, "write", shown.append)
        ui.table(("A", "B"), [("模型", "x"), ("m", "y")])
    assert shown == ["A     B\n模型  x\nm     y\n"]
