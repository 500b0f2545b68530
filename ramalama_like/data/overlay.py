"""Rows of the user's own laid over the tables: checked against the shape that the built-in rows have.

Pure: what files say arrives as plain dicts. A table is merged key by key, a list is replaced, and a key that ends
with a plus (``"gfx+" = ["gfx1150"]``) adds to the list instead. ``[[rows]]`` come before the built-in ones, since the
first that matches counts.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Path = tuple[str | int, ...]
    Where = Callable[[Path], str]  # file and line of a key

# Tables whose keys are names that anybody may add, by their dotted path; * stands for any one key.
OPEN = {
    "accelerators": ("aliases", "vendors", "backends", "backends.*.drivers", "backends.*.defaults",
                     "backends.*.docker_defaults", "backends.*.native.order", "variables"),
    "images": ("override_keys", "families", "families.*.images", "families.*.images.*.names"),
    "engines": ("entrypoint.*.words",),
    "causes": (),
}  # fmt: skip
MOST_ROWS = 1000  # each is looked for in a log
WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def _is_version(text: str) -> bool:
    return all(part.isascii() and part.isdigit() and len(part) < 10 for part in text.split("."))


def _is_pci(text: str) -> bool:
    return len(text) in (0, 4) and all(letter in "0123456789abcdef" for letter in text)


def _is_numbering(text: str) -> bool:
    return text in ("nvidia", "hip", "position", "vulkan", "own")


# Texts that code reads: what they must be, and an example.
FORMS: dict[str, dict[str, tuple[Callable[[str], bool], str]]] = {
    "accelerators": {"vendors.*.pci": (_is_pci, "10de"),
                     "variables.*.numbering": (_is_numbering, "own")},
    "images": {"families.*.images.*.driver_minimum": (_is_version, "525.60.13"),
               "families.*.images.*.driver_full": (_is_version, "575")},
    "engines": {"*.oldest": (_is_version, "4.3"), "*.assumed": (_is_version, "5.4"),
                "*.has.*": (_is_version, "4.1")},
    "causes": {},
}  # fmt: skip


# Keys that are of no use without others, in rows of these places.
COMPANIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "vendors.*": {"cdi_drivers": ("cdi_kind", "cdi_repair"), "cdi_kind": ("cdi_drivers", "cdi_repair")},
    "backends.*": {"docker_runtime": ("docker_runtime_variable",)},
    "backends.*.native": {"by_uuid": ("variable",), "order": ("variable",)},
    "variables.*": {"read_by": ("numbering",), "misread_by": ("numbering", "vendor"),
                    "by_runtime": ("numbering", "vendor"), "counts_within": ("numbering", "vendor"),
                    "cards_in": ("read_by",)},
    "families.*.images.*": {"driver_minimum": ("driver_full", "contains"),
                            "driver_full": ("driver_minimum", "contains")},
}  # fmt: skip


def merge_table(name: str, base: Mapping[str, Any], given: Mapping[str, Any], where: Where) -> dict[str, Any]:
    """The table ``name`` with the user's rows. Raises ValueProblem that names the place of what does not fit."""
    return _Merge(name, where).table((), [base], base, given)


class _Merge:
    """One table being merged. ``samples`` are built-in values that stand at the same place in rows of their kind."""

    def __init__(self, name: str, where: Where) -> None:
        self.name = name
        self.where = where

    def table(self, path: Path, samples: Sequence[Mapping[str, Any]], base: Mapping[str, Any] | None,
              given: Mapping[str, Any]) -> dict[str, Any]:  # fmt: skip
        merged = dict(base or {})
        is_open = self.is_open(path)
        known = list(dict.fromkeys(key for sample in samples for key in sample))
        if path[-2:-1] == ("images",) and {"name", "missing"} & set(given):
            # Either there is an image, or a reason why there is none.
            merged.pop("missing" if "name" in given else "name", None)
        for written, item in given.items():
            place = (*path, written)
            adds = written not in known and written.endswith("+") and (written[:-1] in known or is_open)
            key = written[:-1] if adds else written
            if not is_open and key not in known:
                raise self.problem(place, f"unknown key {key}", _hint(key, known))
            alike = [sample[key] for sample in samples if key in sample and not is_open]
            alike = alike or [member for sample in samples for member in sample.values()]
            merged[key] = self.item(place, alike, merged.get(key), item, adds=adds)
        for pattern, companions in COMPANIONS.items():
            for key in companions if _fits(path, pattern) else ():
                lacking = [other for other in companions[key] if key in merged and other not in merged]
                if lacking:
                    raise self.problem(path, f"has {key}, and so needs {', '.join(lacking)}")
        if base is None:
            self.check_complete(path, samples, merged)
        return merged

    def item(self, place: Path, samples: Sequence[Any], base: Any, given: Any, *, adds: bool) -> Any:
        """One value. Raises ValueProblem where it is not of the kind of the built-in ones."""
        if samples and isinstance(samples[0], dict):
            if not isinstance(given, dict):
                raise self.problem(place, "must be a table")
            return self.table(place, samples, base, given)
        if samples and isinstance(samples[0], tuple):
            if not isinstance(given, list):
                raise self.problem(place, "must be a list")
            return self.members(place, samples, base or (), given, adds=adds)
        kind = type(samples[0]) if samples else str
        if adds:
            raise self.problem(place, "is no list, so nothing can be added")
        if type(given) is not kind:
            raise self.problem(place, f"must be {WORDS[kind]}")
        for pattern, (form, example) in FORMS[self.name].items():
            if _fits(place, pattern) and not form(given):
                raise self.problem(place, f"must be like {example}")
        return given

    def members(self, place: Path, samples: Sequence[Any], base: tuple[Any, ...], given: list[Any], *, adds: bool
                ) -> tuple[Any, ...]:  # fmt: skip
        members = [member for sample in samples for member in sample]
        if members and isinstance(members[0], dict):
            if len(given) > MOST_ROWS:
                raise self.problem(place, f"has {len(given)} rows, and {MOST_ROWS} are the most")
            rows = []
            for number, row in enumerate(given):
                if not isinstance(row, dict):
                    raise self.problem((*place, number), "must be a table")
                rows.append(self.table((*place, number), members, None, row))
            return (*rows, *base)
        kind = type(members[0]) if members else str
        for number, member in enumerate(given):
            if type(member) is not kind:
                raise self.problem((*place, number), f"must be {WORDS[kind]}")
        return tuple(dict.fromkeys((*base, *given) if adds else given))

    def is_open(self, path: Path) -> bool:
        return any(_fits(path, pattern) for pattern in OPEN[self.name])

    def check_complete(self, path: Path, samples: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> None:
        """A new row needs what all others have."""
        needed = (
            [key for key in samples[0] if all(key in sample for sample in samples)] if not self.is_open(path) else []
        )
        if path[-2:-1] == ("images",) and "missing" not in row:
            needed = ["name", "architectures"]
        lacking = [key for key in needed if key not in row]
        if lacking:
            raise self.problem(path, f"lacks {', '.join(lacking)}", "a new row needs what all built-in rows have")

    def problem(self, place: Path, what: str, hint: str = "") -> ValueProblem:
        dotted = ".".join(str(part) for part in place)
        said = what if what.startswith("unknown key") else f"{dotted} {what}"
        return ValueProblem(f"{self.where(place)}: {said}", hint or "see docs/adding-an-accelerator.md")


def complete_names(tables: dict[str, dict[str, Any]], where: Callable[[str, Path], str]) -> None:
    """Make new vendors, back ends and families known to the other tables; refuse names that lead nowhere.

    ``tables`` holds ``accelerators`` and ``images``, already merged, and is changed.
    """
    accelerators, images = tables["accelerators"], tables["images"]
    vendors, backends, families = accelerators["vendors"], accelerators["backends"], images["families"]
    order = accelerators["vendor_order"]
    accelerators["vendor_order"] = (*order, *(vendor for vendor in vendors if vendor not in order))
    for family, row in families.items():
        none = {"missing": f"no table names an image of {family} for it"}
        complete = {**row, "images": row["images"] | {name: none for name in backends if name not in row["images"]}}
        images["families"] = {**images["families"], family: complete}
    checks: list[tuple[str, Path, Any, str, Any]] = [
        ("accelerators", ("vendor_order",), accelerators["vendor_order"], "vendor", vendors),
        *(("accelerators", ("vendors", name, "preference"), row["preference"], "back end", backends)
          for name, row in vendors.items()),
        *(("accelerators", ("backends", name, "vendors"), row["vendors"], "vendor", vendors)
          for name, row in backends.items()),
        *(("accelerators", ("backends", name, "drivers"), row.get("drivers", ()), "vendor", vendors)
          for name, row in backends.items()),
        *(("accelerators", ("variables", name, "vendor"), [row["vendor"]] if "vendor" in row else [], "vendor", vendors)
          for name, row in accelerators["variables"].items()),
        *(("accelerators", ("variables", name, key), row.get(key, ()), "back end", backends)
          for name, row in accelerators["variables"].items() for key in ("read_by", "misread_by")),
        *(("accelerators", ("variables", name, "counts_within"), [row["counts_within"]] if "counts_within" in row
           else [], "variable", accelerators["variables"]) for name, row in accelerators["variables"].items()),
        *(("accelerators", ("backends", name, "only_card"), [row["only_card"]] if "only_card" in row else [], "vendor",
           vendors) for name, row in backends.items()),
        ("accelerators", ("aliases",), accelerators["aliases"].values(), "back end", backends),
        ("images", ("override_keys",), images["override_keys"].values(), "back end", backends),
        *(("images", ("families", name, "also"), row["also"], "family", families) for name, row in families.items()),
        *(("images", ("families", name, "images"), row["images"], "back end", backends)
          for name, row in families.items()),
        ("images", ("default_family",), [images["default_family"]], "family", families),
    ]  # fmt: skip
    for table, place, names, what, known in checks:
        for name in names:
            if name not in known:
                raise ValueProblem(f"{where(table, place)}: {'.'.join(map(str, place))} names the {what} {name}, which "
                                   "does not exist", _hint(name, list(known)))  # fmt: skip
    for name, row in vendors.items():
        for backend in row["preference"]:
            if name not in backends[backend]["vendors"]:
                place = ("vendors", name, "preference")
                raise ValueProblem(f"{where('accelerators', place)}: {backend} is not for cards of {name}",
                                   f'add it: [backends.{backend}] with "vendors+" = ["{name}"]')  # fmt: skip


def _fits(path: Path, pattern: str) -> bool:
    parts = pattern.split(".")
    return len(path) == len(parts) and all(part in ("*", key) for part, key in zip(parts, path, strict=True))


def _hint(key: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
