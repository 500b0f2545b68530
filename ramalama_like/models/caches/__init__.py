"""Stores that other programs keep on this machine: their models are used where they lie, and nothing is changed.

Each sibling knows one program's layout and has

    NAME               what ``list --all-stores`` calls the store
    folders(places)    where the program keeps it, the places that are not there included
    every(folder)      the models in one such folder, as ``Found``
    find(folder, ref)  the model that a name means there, or None

A store that is damaged, unreadable or not there costs only what it holds: a sibling raises nothing but AppError, for a
name that is ambiguous there.
"""

from __future__ import annotations

from ramalama_like.errors import AppError
from ramalama_like.record import Record
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from ramalama_like.reference import Reference


@value
class Places:
    """Where to look: the home folder, the store, and the variables by which programs are told where theirs is."""

    home: str
    store: str = ""
    variables: Mapping[str, str] = {}

    def variable(self, name: str) -> str:
        """A variable's value; empty where it is not set."""
        return self.variables.get(name, "")

    @property
    def cache(self) -> str:
        """The user's folder for caches (XDG base directory specification)."""
        return self.variable("XDG_CACHE_HOME") or f"{self.home}/.cache"


@value
class Found:
    """A model in another program's store."""

    store: str  # its NAME
    record: Record


def find_elsewhere(reference: Reference, places: Places) -> Found | None:
    """The model that a name means, in the first of the other stores that has all of it. Raises AppError."""
    for sibling in _siblings():
        for folder in sibling.folders(places):
            record = sibling.find(folder, reference)
            if record:
                return Found(sibling.NAME, record)
    return None


def every_elsewhere(places: Places) -> Iterator[Found]:
    """Every model in the other stores, store by store."""
    for sibling in _siblings():
        seen = set()
        for folder in sibling.folders(places):
            for record in sibling.every(folder):
                if record.name not in seen:
                    seen.add(record.name)
                    yield Found(sibling.NAME, record)


def _siblings() -> tuple[ModuleType, ...]:
    from ramalama_like.models.caches import huggingface, llama_cpp, lm_studio, ollama, ramalama

    return ramalama, huggingface, ollama, llama_cpp, lm_studio


__all__ = ["AppError", "Found", "Places", "every_elsewhere", "find_elsewhere"]
