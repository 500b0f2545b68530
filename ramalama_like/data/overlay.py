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
    "images": ("override_keys", "tools", "families", "families.*.images", "families.*.images.*.names"),
    "engines": ("entrypoint.*.words",),
    "causes": (),
}  # fmt: skip
MOST_ROWS = 1000  # each is looked for in a log
WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def _is_word(text: str) -> bool:
    """A name that is a word of its own on any command line, and in lists with commas."""
    return text[:1] in _WORD and _WORD.issuperset(text.replace(".", "").replace("-", ""))


def _is_name(text: str) -> bool:
    return text != "auto" and _is_word(text)  # which means the choice among all


def _is_variable(text: str) -> bool:
    return not text[:1].isdigit() and _WORD.issuperset(text)


def _is_version(text: str) -> bool:
    return all(part.isascii() and part.isdigit() and len(part) < 10 for part in text.split("."))


def _is_pci(text: str) -> bool:
    return len(text) in (0, 4) and all(letter in "0123456789abcdef" for letter in text)


def _is_class(text: str) -> bool:
    return len(text) == 2 and all(letter in "0123456789abcdef" for letter in text)


def _is_numbering(text: str) -> bool:
    return text in ("nvidia", "hip", "position", "vulkan", "own")


def _is_node(text: str) -> bool:
    """A device node; one ``#`` in its last part may stand for a number."""
    folder, _, name = text.rpartition("/")
    parts = folder.split("/")[2:]
    return text.startswith("/dev/") and "#" not in folder and name.count("#") < 2 and not (
        {"", ".", ".."} & {*parts, name}
    )  # fmt: skip


def _is_kind(text: str) -> bool:
    return all(map(_is_word, text.split("/"))) and text.count("/") == 1


def _is_tag(text: str) -> bool:
    return not text or _is_word(text.replace("{version}", "1"))


def _is_pattern(text: str) -> bool:
    return is_image(text.replace("{name}", "x").replace("{tag}", "x"))


def _is_image_name(text: str) -> bool:
    return all(map(_is_word, text.split("/")))


def _is_pull(text: str) -> bool:
    return text in ("always", "missing", "never", "newer")


def _is_about_gpus(text: str) -> bool:
    return text in ("also", "only")


def is_image(ref: str) -> bool:
    """Whether an engine would read this as the name of an image: ``host:port/path/name:tag@digest``."""
    rest, _, digest = ref.partition("@")
    path, slash, name = rest.rpartition("/")
    name, colon, tag = name.partition(":")
    host, _, port = path.partition("/")[0].partition(":")
    parts = [host or name, *path.split("/")[1:], name] if slash else [name]
    return (
        all(map(_is_word, parts)) and (_is_word(tag) if colon else not tag) and (not port or port.isdigit())
        and ("@" not in ref or all(map(_is_word, digest.split(":", 1))))
    )  # fmt: skip


# Texts that code reads or that become words of command lines: what they must be, and an example. For a list it is what
# each of its members must be. Texts of other places are only printed.
FORMS: dict[str, dict[str, tuple[Callable[[str], bool], str]]] = {
    "accelerators": {"vendors.*.pci": (_is_pci, "10de"), "vendors.*.classes": (_is_class, "03"),
                     "vendors.*.node": (_is_node, "/dev/davinci#"), "vendors.*.cdi_kind": (_is_kind, "nvidia.com/gpu"),
                     "vendors.*.virtual_nodes": (_is_node, "/dev/dri"), "device_nodes": (_is_node, "/dev/nvidia#"),
                     "backends.*.needs": (_is_node, "/dev/kfd"), "backends.*.passes": (_is_node, "/dev/accel/accel#"),
                     "backends.*.per_card": (_is_node, "/dev/mtgpu#"),
                     "backends.*.docker_runtime": (_is_word, "mthreads"),
                     "backends.*.docker_runtime_variable": (_is_variable, "MTHREADS_VISIBLE_DEVICES"),
                     "backends.*.native.variable": (_is_variable, "HIP_VISIBLE_DEVICES"),
                     "variables.*.numbering": (_is_numbering, "own")},
    "images": {"families.*.ref": (_is_pattern, "quay.io/ramalama/{name}:{tag}"), "families.*.tag": (_is_tag, "0.25"),
               "tools.*": (_is_image_name, "ramalama-tools"),
               "families.*.images.*.name": (_is_image_name, "ramalama"),
               "families.*.images.*.names.*": (_is_image_name, "server-s390x"),
               "families.*.images.*.driver_minimum": (_is_version, "525.60.13"),
               "families.*.images.*.driver_full": (_is_version, "575")},
    "engines": {"*.oldest": (_is_version, "4.3"), "*.assumed": (_is_version, "5.4"), "*.pull.*": (_is_pull, "missing"),
                "*.keep_groups_runtimes": (_is_word, "crun"), "*.runtime_order": (_is_word, "crun"),
                "*.has.*": (_is_version, "4.1")},
    "causes": {"cause.*.gpu": (_is_about_gpus, "also")},
}  # fmt: skip
# Texts that may be empty.
EMPTY = {"accelerators": ("vendors.*.pci",), "images": ("families.*.tag",), "engines": ("entrypoint.*.words.*",),
         "causes": ()}  # fmt: skip
# What the names of anybody's choosing must be: they are words of options, or variables that programs are given.
NAMES: dict[str, dict[str, tuple[Callable[[str], bool], str]]] = {
    "accelerators": {"variables": (_is_variable, "HIP_VISIBLE_DEVICES"),
                     "backends.*.defaults": (_is_variable, "GGML_OPENVINO_DEVICE"),
                     "backends.*.docker_defaults": (_is_variable, "NVIDIA_DRIVER_CAPABILITIES"),
                     "backends.*.native.order": (_is_variable, "CUDA_DEVICE_ORDER")},
    "images": {}, "engines": {}, "causes": {},
}  # fmt: skip


# Keys that are of no use without others, in rows of these places.
COMPANIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "vendors.*": {"cdi_drivers": ("cdi_kind", "cdi_repair"), "cdi_kind": ("cdi_drivers", "cdi_repair"),
                  "cdi_repair": ("cdi_kind", "cdi_drivers"),
                  "virtual_nodes": ("engines", "engine_reason", "driver_reason"), "engines": ("virtual_nodes",),
                  "engine_reason": ("virtual_nodes",), "driver_reason": ("virtual_nodes",),
                  "docker_gpus": ("cdi_kind",)},
    "backends.*": {"docker_runtime": ("docker_runtime_variable",)},
    "backends.*.native": {"by_uuid": ("variable",), "order": ("variable",)},
    "variables.*": {"read_by": ("numbering",), "misread_by": ("numbering", "vendor"),
                    "by_runtime": ("numbering", "vendor"), "counts_within": ("numbering", "vendor"),
                    "cards_in": ("read_by",)},
    "families.*.images.*": {"driver_minimum": ("driver_full", "contains"),
                            "driver_full": ("driver_minimum", "contains")},
}  # fmt: skip


# Rows of which each needs one of these keys.
ONE_OF = {"cause.*": ("text", "exit_codes")}


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
                raise self.problem(place, f"unknown key {_shown(key)}", _hint(key, known))
            if is_open and key not in known:
                self.check_name(path, key)
            alike = [sample[key] for sample in samples if key in sample and not is_open]
            alike = alike or [member for sample in samples for member in sample.values()]
            merged[key] = self.item(place, alike, merged.get(key), item, adds=adds)
        for pattern, companions in COMPANIONS.items():
            for key in companions if _fits(path, pattern) else ():
                lacking = [other for other in companions[key] if key in merged and other not in merged]
                if lacking:
                    raise self.problem(path, f"has {key}, and so needs {', '.join(lacking)}")
        for pattern, choice in ONE_OF.items():
            if _fits(path, pattern) and not any(merged.get(key) for key in choice):
                raise self.problem(path, f"lacks {' or '.join(choice)}")
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
        self.check_value(place, place, kind, given)
        return given

    def check_value(self, place: Path, kind_of: Path, kind: type, given: Any) -> None:
        """One value or member of a list. ``kind_of`` is the place that the rules speak of."""
        if type(given) is not kind:
            raise self.problem(place, f"must be {WORDS[kind]}")
        if not isinstance(given, str):
            return
        if not given.isprintable():
            raise self.problem(place, "must not hold control characters")
        if not given.strip() and not any(_fits(kind_of, pattern) for pattern in EMPTY[self.name]):
            raise self.problem(place, "must not be empty")
        for pattern, (form, example) in FORMS[self.name].items():
            if _fits(kind_of, pattern) and not form(given):
                raise self.problem(place, f"must be like {example}")

    def check_name(self, path: Path, key: str) -> None:
        """A name of anybody's choosing."""
        named = (row for pattern, row in NAMES[self.name].items() if _fits(path, pattern))
        form, example = next(named, (_is_name, "my-name.2"))
        if not form(key):
            raise self.problem((*path, key), "is no name", f"a name is like {example}")

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
            self.check_value((*place, number), place, kind, member)
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
        dotted = _dotted(place)
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
    for name in accelerators["aliases"]:
        if name in backends:
            raise ValueProblem(f"{where('accelerators', ('aliases', name))}: aliases.{name} is the name of a back end",
                               "choose another name for it")  # fmt: skip
    for family, row in images["families"].items():
        for backend, image in row["images"].items():
            _check_refs(row, image, ("families", family, "images", backend), where)


def _check_refs(
    family: Mapping[str, Any], image: Mapping[str, Any], place: Path, where: Callable[[str, Path], str]
) -> None:
    """Refuse an image whose name, tag and family's pattern make no reference together."""
    if "missing" in image:
        return
    for name in (image["name"], *image.get("names", {}).values()):
        ref = family["ref"].replace("{name}", name).replace("{tag}", family["tag"].replace("{version}", "1"))
        if not is_image(ref):
            raise ValueProblem(f"{where('images', place)}: {_dotted(place)} makes {ref}, which is not the name of an "
                               "image", "check ref and tag of the family, and the image's name")  # fmt: skip


def _dotted(place: Path) -> str:
    return ".".join(_shown(str(part)) for part in place)


def _shown(key: str) -> str:
    """A key as TOML would have it, shortened."""
    if _is_word(key.removesuffix("+")):
        return key
    escaped = key.encode("unicode_escape", "surrogatepass").decode().replace('"', '\\"')
    return f'"{escaped if len(escaped) < 60 else f"{escaped[:57]}..."}"'


def _fits(path: Path, pattern: str) -> bool:
    parts = pattern.split(".")
    return len(path) == len(parts) and all(part in ("*", key) for part, key in zip(parts, path, strict=True))


def _hint(key: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
