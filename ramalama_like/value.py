"""Frozen values, declared as dataclasses are.

Every stage of the pipeline hands a frozen, comparable value to the next. The standard ``dataclass`` decorator would
do, but it costs 20 ms to import and about 1 ms for each class, because it compiles source text for each one: 50 ms
before the first argument is looked at, more than half of what ``run`` may spend before the engine starts. This
module gives the same promise (fields by annotation, keyword or positional construction, equality, hash, ``repr``,
assignment refused) without compiling anything. Type checkers see an ordinary frozen dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar, dataclass_transform

    C = TypeVar("C", bound=type)
    V = TypeVar("V")
else:

    def dataclass_transform(**_: object):
        return lambda decorated: decorated


class _Required:
    def __repr__(self) -> str:
        return "<required>"


_REQUIRED = _Required()


@dataclass_transform(frozen_default=True)
def value(cls: C) -> C:
    """Turn a class with annotated fields into a frozen value type. Fields with a default come after those without."""
    fields: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is not cls:
            fields.update(base.__dict__.get("__value_fields__", {}))
    for name in cls.__annotations__:
        fields[name] = cls.__dict__.get(name, _REQUIRED)
    traits: dict[str, Any] = {
        "__value_fields__": fields,
        "__value_required__": tuple(name for name, default in fields.items() if default is _REQUIRED),
        "__match_args__": tuple(fields),
    }
    for name, trait in (_METHODS | traits).items():
        if name not in cls.__dict__:
            setattr(cls, name, trait)
    return cls


def fields_of(kind: type) -> Mapping[str, object]:
    """The fields of a value type in order, each with its default (a private marker where there is none)."""
    found: Mapping[str, object] = kind.__value_fields__  # type: ignore[attr-defined]
    return found


def replace(instance: V, **changes: object) -> V:
    """A copy of ``instance`` with some fields changed. Raises TypeError for an unknown field."""
    return type(instance)(**{**instance.__dict__, **changes})


def to_plain(item: object) -> object:
    """A tree of dicts, lists and scalars that JSON can hold; field order is kept."""
    if hasattr(type(item), "__value_fields__"):
        return {name: to_plain(member) for name, member in item.__dict__.items()}
    if isinstance(item, dict):
        return {str(key): to_plain(member) for key, member in item.items()}
    if isinstance(item, tuple | list):
        return [to_plain(member) for member in item]
    if isinstance(item, frozenset | set):
        return sorted(str(member) for member in item)
    return item


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    kind = type(self)
    state = self.__dict__
    state.update(kind.__value_fields__)  # defaults first, so that the order is always that of the declaration
    if args:
        if len(args) > len(kind.__match_args__):
            raise TypeError(f"{kind.__name__} takes {len(state)} fields, {len(args)} given")
        for name, given in zip(kind.__match_args__, args, strict=False):
            if name in kwargs:
                raise TypeError(f"{kind.__name__} got {name} twice")
            state[name] = given
    state.update(kwargs)
    if len(state) != len(kind.__match_args__):
        raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(set(kwargs) - set(kind.__match_args__)))}")
    for name in kind.__value_required__:
        if state[name] is _REQUIRED:
            raise TypeError(f"{kind.__name__} needs {name}")
    check = getattr(self, "__post_init__", None)
    if check is not None:
        check()


def _eq(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return self.__dict__ == other.__dict__


def _hash(self: Any) -> int:
    return hash((type(self), *(_hashable(member) for member in self.__dict__.values())))


def _hashable(member: object) -> object:
    # Mappings inside values are never changed after construction, so their content may count.
    return frozenset(member.items()) if isinstance(member, dict) else member


def _repr(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={member!r}' for name, member in self.__dict__.items())})"


def _refuse(self: Any, name: str, *_: object) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} cannot be changed: values are frozen")


_METHODS: dict[str, Any] = {
    "__init__": _init,
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
}
