"""Which of the store's models a word means: its name as ``list`` shows it, or a shorter way to say it."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.models.names import nearest
from ramalama_like.models.shortnames import read_shortnames
from ramalama_like.reference import LATEST, canonical_name, parse_reference, plain_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.models.lookup import Lookup


class StoredNames:
    """The names that the store has, and the ways in which people say them."""

    def __init__(self, names: Sequence[str], lookup: Lookup) -> None:
        self._names = names
        self._lookup = lookup
        self._shortnames = read_shortnames(lookup.shortname_files)

    def find(self, text: str) -> str:
        """The name that is meant. Raises ValueProblem where the store has none, or several that fit."""
        if text in self._names:
            return text
        meant = self.canonical(text)
        if meant in self._names:
            return meant
        rest = text.removesuffix(f":{LATEST}")
        found = [name for name in self._names if rest and _without_prefix(name) == rest]
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueProblem(
                f"{plain_url(text)}: several models in the store are called so", f"one of: {', '.join(found)}"
            )
        raise self._unknown(text)

    def canonical(self, text: str) -> str:
        """How the store would call what a word means, short names included; empty for what is no name."""
        try:
            expanded = self._shortnames.expand(text)
            return canonical_name(parse_reference(expanded, self._lookup.transport))
        except ValueProblem:
            return ""

    def _unknown(self, text: str) -> ValueProblem:
        elsewhere, shown = self._elsewhere(text), plain_url(text)
        if elsewhere:
            return ValueProblem(f"{shown}: is not in this program's store but in that of {elsewhere}",
                                "remove it with the program that put it there")  # fmt: skip
        near = nearest(text, [*self._names, *map(_without_prefix, self._names)])
        hint = f"did you mean {near[0]}?" if near else "see the names with: ramalama-like list"
        return ValueProblem(f"{shown}: no model in the store has this name", hint)

    def _elsewhere(self, text: str) -> str:
        """Whose store has the model, where another program's has."""
        meant = self.canonical(text)
        if not meant or not self._lookup.places:
            return ""
        from ramalama_like.models.caches import find_elsewhere

        found = find_elsewhere(parse_reference(meant), self._lookup.places)
        return found.store if found else ""


def _without_prefix(name: str) -> str:
    return name.partition("://")[2].removesuffix(f":{LATEST}") or name
