"""Our frozen values behave as the standard library's frozen dataclasses do."""

from __future__ import annotations

import dataclasses
import keyword
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.value import fields_of, replace, to_plain, value

NAMES = st.from_regex(r"[a-z]{1,3}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name))
VALUES = st.one_of(st.integers(0, 3), st.text("ab", max_size=2), st.none(), st.tuples(st.integers(0, 1)))


@st.composite
def kinds(draw: st.DrawFn) -> tuple[type, type]:
    """The same class twice: one of ours and a frozen dataclass. Fields without a default come first."""
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    required = draw(st.integers(0, len(names)))
    body: dict[str, Any] = {name: draw(VALUES) for name in names[required:]}
    body |= {"__annotations__": dict.fromkeys(names, "object"), "__qualname__": "Kind"}
    ours, theirs = (type("Kind", (), dict(body)) for _ in range(2))
    return value(ours), dataclasses.dataclass(frozen=True)(theirs)


def outcome(kind: type, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    try:
        return kind(*args, **kwargs)
    except TypeError:
        return None


ARGUMENTS = st.tuples(st.lists(VALUES, max_size=4).map(tuple), st.dictionaries(NAMES, VALUES, max_size=3))


@given(st.data(), kinds(), st.lists(ARGUMENTS, min_size=2, max_size=2))
def test_like_a_frozen_dataclass(data: st.DataObject, both: tuple[type, type], calls: list[Any]) -> None:
    ours, theirs = both
    names = list(fields_of(ours))
    assert names == [field.name for field in dataclasses.fields(theirs)]
    made = []
    for args, kwargs in calls:
        if data.draw(st.booleans()):  # mostly complete calls: random ones seldom are
            args = tuple(data.draw(VALUES) for _ in names)
            split = data.draw(st.integers(0, len(names)))
            args, kwargs = args[:split], dict(zip(names[split:], args[split:], strict=True))
        left, right = outcome(ours, args, kwargs), outcome(theirs, args, kwargs)
        assert (left is None) == (right is None)
        if left is not None:
            assert repr(left) == repr(right)
            assert {n: getattr(left, n) for n in names} == dataclasses.asdict(right)
            assert to_plain(left) == {n: list(v) if isinstance(v, tuple) else v for n, v in vars(right).items()}
            for name in [*names, "new"]:
                with pytest.raises(AttributeError):
                    setattr(left, name, 1)
                with pytest.raises(AttributeError):
                    delattr(left, name)
            made.append((left, right))
    for left, right in made:
        for other_left, other_right in made:
            assert (left == other_left) == (right == other_right)
            assert (left != other_left) == (right != other_right)
            if left == other_left:
                assert hash(left) == hash(other_left)
            change = {names[0]: "new"} if names else {}
            assert repr(replace(left, **change)) == repr(dataclasses.replace(right, **change))
            assert len({left, other_left}) == len({right, other_right})


@value
class Base:
    a: int
    b: str = "b"

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("negative")

    @property
    def twice(self) -> int:
        return self.a * 2


@value
class Derived(Base):
    c: tuple[int, ...] = ()


@value
class Same(Base):
    """A kind of its own, though it holds the same fields."""


def test_inheritance_checks_and_matching() -> None:
    derived = Derived(1, c=(2,))
    assert (repr(derived), derived.twice) == ("Derived(a=1, b='b', c=(2,))", 2)
    assert derived != Base(1)
    assert Base(1) != Same(1)
    assert Base(1) != (1, "b")
    with pytest.raises(ValueError, match="negative"):
        replace(derived, a=-1)
    match derived:
        case Base(a, b):
            assert (a, b) == (1, "b")
    with pytest.raises(TypeError, match="needs a"):
        Base()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no field z"):
        Base(1, z=2)  # type: ignore[call-arg]


def test_values_that_hold_mappings_can_be_hashed_and_written_plainly() -> None:
    @value
    class Holder:
        table: dict[str, int]
        names: frozenset[str] = frozenset()
        inner: Base | None = None

    holder = Holder({"x": 1}, frozenset("ba"), Base(1))
    assert hash(holder) == hash(Holder({"x": 1}, frozenset("ab"), Base(1)))
    assert to_plain(holder) == {"table": {"x": 1}, "names": ["a", "b"], "inner": {"a": 1, "b": "b"}}
