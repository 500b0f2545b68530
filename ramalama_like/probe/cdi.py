"""Container Device Interface specs: which device names an engine would accept.

The kinds of file are JSON and YAML, and either reader costs more to import than all other probing together. So JSON
goes straight to the interpreter's own scanner, and YAML as generators write it is read here; whatever is written in
another way is left to PyYAML.
"""

from __future__ import annotations

import os

from ramalama_like.facts import CdiSpec, is_device_name, is_node_path
from ramalama_like.probe.tree import LARGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramalama_like.probe.tree import Tree

FOLDERS = ("etc/cdi", "var/run/cdi", "run/cdi")  # later ones win: that is the engines' order
JSON_SPACE = " \t\r\n"
# PyYAML reads a megabyte in seconds. Specs of generators, which need no PyYAML, may be as large as any.
LARGEST_ODD_YAML = 128 * 1024
MOST_SPECS, MOST_NODES = 64, 4096  # a card has some ten nodes
MOST_DEVICES, MOST_LOOKS = 4096, 100_000  # with YAML's aliases a short text may name the same nodes again and again
# What fills a spec and is not looked at here: its lines are passed over.
PASSED_OVER = ("hooks:", "mounts:", "env:")


def probe_cdi(tree: Tree) -> tuple[CdiSpec, ...]:
    """Every spec that could be read, in the engines' order of priority, lowest first."""
    found: list[CdiSpec] = []
    seen: set[str] = set()
    for folder in FOLDERS:
        where = tree.locate(folder)
        if where is None:
            continue
        where = os.path.realpath(where)  # /var/run is a link to /run on most systems
        if where in seen:
            continue
        seen.add(where)
        names = [name for name in tree.names(folder) if name.endswith((".json", ".yaml", ".yml"))]
        if len(names) > MOST_SPECS:
            tree.note(folder, f"holds more than {MOST_SPECS} specifications")
        for name in names[:MOST_SPECS]:
            path = f"{folder}/{name}"
            if not name.isprintable():
                tree.note(f"{folder}/{name!a}", "is no device specification: its name is not printable")
                continue
            text = tree.read(path, LARGE)
            if text is None:
                continue
            try:
                data = parse_json(text) if name.endswith(".json") else parse_yaml(text, PASSED_OVER)
            except ValueError as error:
                tree.note(path, f"is malformed: {error}")
                continue
            spec = _spec(tree, path, data)
            if spec is not None:
                found.append(spec)
    return tuple(found)


def parse_json(text: str) -> object:
    """What a JSON text holds. Raises ValueError for one that is malformed or nested too deep."""
    try:
        # 0.2 ms instead of 7: the json package compiles patterns at import.
        from _json import make_scanner
    except ImportError:
        return _parse_json_slowly(text)
    start = 0
    while text[start : start + 1] and text[start] in JSON_SPACE + "\ufeff":
        start += 1
    try:
        data, end = make_scanner(_ScannerContext)(text, start)  # type: ignore[arg-type]
    except (StopIteration, RecursionError, AttributeError):  # a later Python may ask the context for more
        return _parse_json_slowly(text)
    if text[end:].strip(JSON_SPACE):
        return _parse_json_slowly(text)
    return data


def _parse_json_slowly(text: str) -> object:
    import json

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


class _ScannerContext:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def parse_yaml(text: str, without: tuple[str, ...] = ()) -> object:
    """What a YAML text holds. Raises ValueError for one that is malformed or nested too deep.

    The keys of ``without`` (each with its colon) may be left empty, at whatever depth: that saves time.
    """
    try:
        return _PlainYaml(text, without).document()
    except _NotPlain:
        pass
    if len(text) > LARGEST_ODD_YAML:
        raise ValueError(f"too large for a file that is not written as generators do it: {len(text)} characters")
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            # Merging doubles with each step. Specs have no use for it.
            if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
                raise yaml.constructor.ConstructorError(problem="keys are merged")

    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506  it is a safe loader
    # Those of Python's own come from texts whose tag says a kind that they are not: !!bool 7.
    except (yaml.YAMLError, RecursionError, LookupError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(" ".join(str(error).split())[:200] or "nested too deep") from None


class _NotPlain(Exception):
    """The text uses more of YAML than generators write."""


class _PlainYaml:
    """Block mappings and sequences of one-line scalars: no flow, anchors, tags, block text or second document."""

    def __init__(self, text: str, without: tuple[str, ...] = ()) -> None:
        if "\t" in text or "\r" in text or not text.replace("\n", "").isprintable():
            raise _NotPlain
        self.lines: list[tuple[int, str]] = []
        passing = LARGE  # column of the key that is passed over; LARGE: of none
        for number, line in enumerate(text.split("\n")):
            rest = line.lstrip(" ")
            if not rest or rest.startswith("#") or (rest == "---" and not number and line == rest):
                continue
            column = len(line) - len(rest)
            # A member of a sequence may stand below its key itself.
            if column > passing or (column == passing and rest.startswith("-")):
                continue
            passing = LARGE
            rest = rest.rstrip(" ")
            if rest.endswith(without):
                passing = _column_of(rest, column, without)
            self.lines.append((column, rest))
        self.at = 0

    def document(self) -> object:
        """The whole text."""
        if not self.lines or self.lines[0][0]:
            raise _NotPlain
        found = self.block(0, 0)
        if self.at != len(self.lines):
            raise _NotPlain
        return found

    def block(self, indent: int, depth: int) -> object:
        """The mapping or sequence whose lines start at ``indent``."""
        if depth > 20:
            raise _NotPlain
        return self.sequence(indent, depth) if self.is_item() else self.mapping(indent, depth)

    def is_item(self) -> bool:
        """Whether the line at hand is a member of a sequence."""
        rest = self.lines[self.at][1]
        return rest == "-" or rest.startswith("- ")

    def sequence(self, indent: int, depth: int) -> list[object]:
        found: list[object] = []
        while self.at < len(self.lines) and self.lines[self.at][0] == indent and self.is_item():
            rest = self.lines[self.at][1][1:]
            inner = rest.lstrip(" ")
            if not inner or inner.startswith("- ") or inner == "-":
                raise _NotPlain
            if _split_key(inner) is None:
                found.append(_scalar(inner))
                self.at += 1
            else:
                # What follows the dash is the first line of a mapping that is indented as far as its first key.
                column = indent + 1 + len(rest) - len(inner)
                self.lines[self.at] = (column, inner)
                found.append(self.mapping(column, depth + 1))
        self.check_dedent(indent)
        return found

    def mapping(self, indent: int, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        while self.at < len(self.lines) and self.lines[self.at][0] == indent and not self.is_item():
            pair = _split_key(self.lines[self.at][1])
            if pair is None:
                raise _NotPlain
            name, rest = pair
            key = _scalar(name)
            if not isinstance(key, str) or key in found:
                raise _NotPlain
            self.at += 1
            if rest:
                found[key] = _scalar(rest)
            elif self.at < len(self.lines) and (
                self.lines[self.at][0] > indent or (self.lines[self.at][0] == indent and self.is_item())
            ):
                found[key] = self.block(self.lines[self.at][0], depth + 1)
            else:
                found[key] = None
        self.check_dedent(indent)
        return found

    def check_dedent(self, indent: int) -> None:
        """A deeper line after a finished block continues a scalar, or is an error: not for this reader."""
        if self.at < len(self.lines) and self.lines[self.at][0] > indent:
            raise _NotPlain


def _column_of(rest: str, column: int, keys: tuple[str, ...]) -> int:
    """Where the key stands that is all of a line, perhaps as first one of a sequence's member; LARGE for others."""
    if rest in keys:
        return column
    inner = rest[1:].lstrip(" ")
    return column + len(rest) - len(inner) if rest[0] == "-" and inner in keys else LARGE


def _split_key(text: str) -> tuple[str, str] | None:
    """Key and rest of ``key: value``; None for a scalar."""
    if text[0] in "\"'":
        end = text.find(text[0], 1)
        if end < 0:
            raise _NotPlain
        if text[end + 1 :].startswith(":"):
            if text[end + 2 : end + 3] not in ("", " "):
                raise _NotPlain
            return text[: end + 1], text[end + 2 :].strip(" ")
        return None
    if text.endswith(":"):
        name, rest = text[:-1], ""
        if ": " in name:
            raise _NotPlain
        return name, rest
    name, colon, rest = text.partition(": ")
    if not colon:
        return None
    return name.rstrip(" "), rest.strip(" ")


def _scalar(text: str) -> str | None:
    """The text of a scalar that YAML takes for text too, and that needs no unescaping."""
    if not text:
        raise _NotPlain
    quote = text[0]
    if quote in "\"'":
        inner = text[1:-1]
        if len(text) < 2 or text[-1] != quote or quote in inner or "\\" in inner:
            raise _NotPlain
        return inner
    if quote in "&*!|>%@`[]{},#?:=<~" or text.endswith(":") or ": " in text or " #" in text:
        raise _NotPlain
    if quote == "-" and not text.lstrip("-")[:1].isalpha():  # the arguments of hooks: --link
        raise _NotPlain
    # A number, a date, a word such as yes, null or .inf would not be text. A version with two dots is.
    if text.startswith("../"):  # as the hooks' --link has it
        return text
    if quote in "0123456789+." and text.count(".") != 2:
        raise _NotPlain
    if quote in "0123456789+." and not all(part.isdigit() and part.isascii() for part in text.split(".")):
        raise _NotPlain
    if text.lower() in ("null", "yes", "no", "on", "off", "y", "n", "true", "false"):
        if text in ("true", "false"):
            return text  # a flag of a mount or hook, which nothing here looks at
        raise _NotPlain
    return text


def _spec(tree: Tree, path: str, data: object) -> CdiSpec | None:
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        tree.note(path, "is no device specification: it names no kind")
        return None
    if not is_device_name(data["kind"]):
        tree.note(path, "is no device specification: its kind is no name")
        return None
    looks = [MOST_LOOKS]
    found = _nodes(data, looks)
    if found is None:
        tree.note(path, "is no device specification: it has a path that no node can have")
        return None
    names: list[str] = []
    for device in _list(data.get("devices"))[:MOST_DEVICES]:
        if not isinstance(device, dict):
            continue
        own, name = _nodes(device, looks), device.get("name")
        # PyYAML makes a number of an unquoted 0; engines refuse such a file, so the name does not count.
        if not isinstance(name, str):
            found.update(own or {})
        elif own is None or not is_device_name(name):
            tree.note(path, f"has a device that cannot be used: {ascii(name)[:80]}")
        else:
            names.append(name)
            found.update(own)
    nodes = list(found)[:MOST_NODES]
    missing = [node for node in nodes if not tree.exists(node.lstrip("/"))]
    return CdiSpec(data["kind"], tuple(names), f"/{path}", tuple(nodes), tuple(missing))


def _nodes(item: dict[str, Any], looks: list[int]) -> dict[str, None] | None:
    """The nodes of a device, or those of all; None where one of them could not even be named to an engine."""
    edits = item.get("containerEdits")
    found: dict[str, None] = {}
    for node in _list(edits.get("deviceNodes")) if isinstance(edits, dict) else ():
        looks[0] -= 1
        if looks[0] < 0:
            break
        where = (node.get("hostPath") or node.get("path")) if isinstance(node, dict) else None
        if isinstance(where, str) and where.startswith("/"):
            if not is_node_path(where):
                return None
            found[where] = None
    return found


def _list(item: Any) -> list[Any]:
    return item if isinstance(item, list) else []
