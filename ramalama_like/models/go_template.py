"""Chat templates in Go's template language, as Ollama's registry has them, into Jinja, as llama-server reads them.

Pure. The result needs nothing but what chat templates of Hugging Face use too (namespaces, ``tojson``, slices), and is
the same whether blocks are trimmed or not: all text stands in string constants. A template that uses anything unknown
raises ``Unsupported``: an inexact template makes a model answer worse without anybody seeing why, so it is better to
have none.

Two forms exist. Newer templates go over ``.Messages`` by themselves. Older ones describe one turn by ``.System``,
``.Prompt`` and ``.Response``; the conversation is folded into turns, and in the last turn everything after
``.Response`` is left out, so that the model goes on there.
"""

from __future__ import annotations

from ramalama_like.models.go_template_nodes import (
    Assign,
    Call,
    If,
    Literal,
    Output,
    Path,
    Range,
    Text,
    Unsupported,
    parse_template,
)
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.models.go_template_nodes import Expression, Node

__all__ = ["MOST_CHARACTERS", "Unsupported", "convert_template"]

MOST_CHARACTERS = 1 << 20  # the longest templates known have some 20,000
# What has which fields: the Jinja name, and of what kind it is. "text" is empty where the field is missing.
_FIELDS: dict[str, dict[str, tuple[str, str]]] = {
    "message": {"Role": ("role", "text"), "Content": ("content", "text"), "Thinking": ("reasoning_content", "text"),
                "ToolCalls": ("tool_calls", "list call"), "ToolName": ("name", "text"),
                "ToolCallID": ("tool_call_id", "text")},
    "call": {"Function": ("function", "called"), "ID": ("id", "text")},
    "called": {"Name": ("name", "text"), "Arguments": ("arguments", "map json")},
    "tool": {"Type": ("type", "text"), "Function": ("function", "described")},
    "described": {"Name": ("name", "text"), "Description": ("description", "text"),
                  "Parameters": ("parameters", "parameters")},
    "parameters": {"Type": ("type", "text"), "Required": ("required", "list text"),
                   "Properties": ("properties", "map property")},
    "property": {"Type": ("type", "text"), "Description": ("description", "text"), "Enum": ("enum", "list json")},
}  # fmt: skip
_ROOT = {
    "Messages": ("messages", "list message"), "System": ("v.system", "text"), "Tools": ("(tools or [])", "list tool"),
    "Suffix": ("''", "text"), "Think": ("(enable_thinking is not defined or enable_thinking)", "truth"),
    "IsThinkSet": ("(enable_thinking is defined)", "truth"), "ThinkLevel": ("''", "text"),
    "Prompt": ("''", "text"), "Response": ("''", "text"),  # these are empty wherever there are messages
}  # fmt: skip
_OF_TURNS = {"System": ("v.system", "text"), "Prompt": ("v.prompt", "text"), "Response": ("v.response", "text")}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SYSTEM = (
    "{%- for m in messages if m.role == 'system' -%}"
    "{%- set v.system = v.system ~ ('\\n\\n' if v.system else '') ~ (m.content or '') -%}{%- endfor -%}"
)
_PRINTS_JSON = (
    "tool",
    "list tool",
    "described",
    "parameters",
    "property",
    "map property",
    "map json",
    "call",
    "called",
)


def convert_template(text: str) -> str:
    """The Jinja template that says the same. Raises Unsupported, which names what is in the way."""
    if len(text) > MOST_CHARACTERS:
        raise Unsupported("its length")
    nodes = parse_template(text)
    used = _root_fields(nodes)
    if "Messages" in used:
        writer = _Writer(_ROOT)
        body = writer.block(nodes, ("", "root"))
        return writer.declared(("system",)) + (_SYSTEM if "System" in used else "") + body
    if not used & {"Prompt", "Response"}:
        raise Unsupported("neither messages nor a prompt in it")
    if "Response" not in used:
        nodes = (*nodes, Output(Path(".", ("Response",))))
    return _turns(nodes)


def _turns(nodes: Sequence[Node]) -> str:
    """A template of one turn made one of a conversation. Messages of one role in a row are joined."""
    writer = _Writer(_OF_TURNS)
    whole = writer.block(nodes, ("", "root"))
    opened = writer.block(_until_response(nodes)[0], ("", "root"))
    reset = "".join(f"{{%- set v.{name} = '' -%}}" for name in ("system", "prompt", "response"))
    said = "".join(
        f"{{%- {'if' if role == 'system' else 'elif'} m.role == '{role}' -%}}"
        f"{{%- set v.{name} = (v.{name} ~ '\\n\\n' if v.last == '{role}' else '') ~ (m.content or '') -%}}"
        for role, name in (("system", "system"), ("user", "prompt"), ("assistant", "response"))
    )
    return (
        f"{writer.declared(('system', 'prompt', 'response', 'last'))}{{%- for m in messages -%}}"
        "{%- if m.role != v.last and ((m.role == 'system' and (v.prompt or v.response))"
        f" or (m.role == 'user' and v.response)) -%}}{whole}{reset}{{%- endif -%}}"
        f"{said}{{%- endif -%}}{{%- set v.last = m.role -%}}{{%- endfor -%}}"
        f"{{%- if v.response -%}}{whole}{{%- else -%}}{opened}{{%- endif -%}}"
    )


def _until_response(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], bool]:
    """The nodes without what comes after the response, and whether it was among them."""
    kept: list[Node] = []
    for node in nodes:
        cut = False
        if isinstance(node, If | Range):
            body, cut = _until_response(node.body)
            otherwise, ends = ((), False) if cut else _until_response(node.otherwise)
            kept.append(replace(node, body=body, otherwise=otherwise))
            cut = cut or ends
        else:
            kept.append(node)
            cut = isinstance(node, Output) and "Response" in _named(node.expression)
        if cut:
            return tuple(kept), True
    return tuple(kept), False


def _root_fields(nodes: Sequence[Node]) -> set[str]:
    """First names of all fields that are mentioned."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, Output | Assign):
            found |= _named(node.expression)
        elif isinstance(node, If):
            found |= _named(node.condition) | _root_fields(node.body) | _root_fields(node.otherwise)
        elif isinstance(node, Range):
            found |= _named(node.over) | _root_fields(node.body) | _root_fields(node.otherwise)
    return found


def _named(expression: Expression) -> set[str]:
    if isinstance(expression, Call):
        return {name for argument in expression.arguments for name in _named(argument)}
    if isinstance(expression, Path):
        if not isinstance(expression.base, str):
            return _named(expression.base)
        return set(expression.names[:1]) if expression.base in (".", "$") else set()
    return set()


class _Writer:
    """Writes Jinja. ``cursor`` is what the dot means: an expression and its kind."""

    def __init__(self, root: dict[str, tuple[str, str]]) -> None:
        self.root = root
        self.names: list[str] = []  # members of the namespace v, since Jinja's own variables end with their block
        self.scopes: list[dict[str, tuple[str, str]]] = [{}]
        self.loops = 0

    def declared(self, more: Sequence[str]) -> str:
        """The beginning of the template: the namespace with all variables, and no tools where none are given."""
        members = ", ".join(f"{name}=''" for name in (*more, *self.names))
        return f"{{%- set v = namespace({members}) -%}}{{%- set tools = tools if tools is defined else [] -%}}"

    def block(self, nodes: Sequence[Node], cursor: tuple[str, str]) -> str:
        """The nodes in a scope of their own."""
        self.scopes.append({})
        text = "".join(self.node(node, cursor) for node in nodes)
        self.scopes.pop()
        return text

    def node(self, node: Node, cursor: tuple[str, str]) -> str:
        if isinstance(node, Text):
            return f"{{{{ {_quoted(node.text)} }}}}"
        if isinstance(node, Output):
            return f"{{{{ {_printed(*self.expression(node.expression, cursor))} }}}}"
        if isinstance(node, Assign):
            return self.assignment(node, cursor)
        if isinstance(node, If):
            condition, kind = self.expression(node.condition, cursor)
            body = self.block(node.body, (condition, kind) if node.moves else cursor)
            otherwise = self.block(node.otherwise, cursor)
            otherwise = f"{{%- else -%}}{otherwise}" if otherwise else ""
            return f"{{%- if {condition} -%}}{body}{otherwise}{{%- endif -%}}"
        if isinstance(node, Range):
            return self.loop(node, cursor)
        if not self.loops:
            raise Unsupported(f"{node.word} outside of a loop")
        return f"{{%- {node.word} -%}}"

    def assignment(self, node: Assign, cursor: tuple[str, str]) -> str:
        text, kind = self.expression(node.expression, cursor)
        if node.declares:
            place = self.declare(node.name, kind)
        else:
            place, before = self.variable(node.name)
            if before != kind:
                raise Unsupported(f"{node.name}, which changes its kind")
        return f"{{%- set {place} = {text} -%}}"

    def declare(self, name: str, kind: str) -> str:
        member = f"{name[1:]}_{len(self.names)}"
        if not name[1:].isascii() or not name[1:]:
            raise Unsupported(f"the variable {name}")
        self.names.append(member)
        self.scopes[-1][name] = (f"v.{member}", kind)
        return f"v.{member}"

    def variable(self, name: str) -> tuple[str, str]:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise Unsupported(f"{name}, which nothing sets")

    def loop(self, node: Range, cursor: tuple[str, str]) -> str:
        over, kind = self.expression(node.over, cursor)
        shape, _, inner = kind.partition(" ")
        if shape not in ("list", "map"):
            raise Unsupported("a loop over something else than messages, tools and their parts")
        self.loops += 1
        depth = self.loops
        item, key = f"item{depth}", f"key{depth}"
        self.scopes.append({})
        begin = ""
        if node.item and node.item != "$_":
            begin += f"{{%- set {self.declare(node.item, inner)} = {item} -%}}"
        if node.key and node.key != "$_":
            what = ("loop.index0", "number") if shape == "list" else (key, "text")
            begin += f"{{%- set {self.declare(node.key, what[1])} = {what[0]} -%}}"
        body = self.block(node.body, (item, inner))
        self.scopes.pop()
        self.loops -= 1
        otherwise = self.block(node.otherwise, cursor)
        otherwise = f"{{%- else -%}}{otherwise}" if otherwise else ""
        head = f"{item} in ({over} or [])" if shape == "list" else f"{key}, {item} in ({over} or {{}}).items()"
        return f"{{%- for {head} -%}}{begin}{body}{otherwise}{{%- endfor -%}}"

    # Expressions: each with its kind.

    def expression(self, expression: Expression, cursor: tuple[str, str]) -> tuple[str, str]:
        if isinstance(expression, Literal):
            return _constant(expression.value)
        if isinstance(expression, Path):
            return self.path(expression, cursor)
        return self.call(expression, cursor)

    def path(self, path: Path, cursor: tuple[str, str]) -> tuple[str, str]:
        if not isinstance(path.base, str):
            text, kind = self.expression(path.base, cursor)
        elif path.base == ".":
            text, kind = cursor
        elif path.base == "$":
            text, kind = "", "root"
        else:
            text, kind = self.variable(path.base)
        for name in path.names:
            table = self.root if kind == "root" else _FIELDS.get(kind, {})
            if name not in table:
                raise Unsupported(f".{name}" if kind == "root" else f".{name} of a {kind}")
            field, kind_of_field = table[name]
            if kind == "root":
                text = field
            else:
                text = f"{text}.{field}"
                if kind_of_field == "text":
                    text = f"({text} or '')"  # a missing text is empty there, and prints as None here
            kind = kind_of_field
        return text, kind

    def call(self, call: Call, cursor: tuple[str, str]) -> tuple[str, str]:
        arguments = [self.expression(argument, cursor) for argument in call.arguments]
        texts = [text for text, _ in arguments]
        name, count = call.function, len(arguments)
        if any(kind == "root" for _, kind in arguments):
            raise Unsupported(f"{name} of everything")
        if name in ("and", "or") and count:
            kinds = {kind for _, kind in arguments}
            return f"({f' {name} '.join(texts)})", kinds.pop() if len(kinds) == 1 else "mixed"
        if name == "eq" and count > 2:
            return f"({' or '.join(f'{texts[0]} == {text}' for text in texts[1:])})", "truth"
        if name in _COMPARISONS and count == 2:
            return f"({texts[0]} {_COMPARISONS[name]} {texts[1]})", "truth"
        if name == "not" and count == 1:
            return f"(not {texts[0]})", "truth"
        if name == "printf" and count and isinstance(call.arguments[0], Literal):
            return _formatted(str(call.arguments[0].value), arguments[1:]), "text"
        found = _of_one(name, *arguments[0]) if count == 1 else _of_more(name, arguments[:1], texts[1:])
        if not found:
            raise Unsupported(f"the function {name}")
        return found


def _of_one(name: str, text: str, kind: str) -> tuple[str, str] | None:
    if name == "len":
        return f"(({text} or '') | length)", "number"
    if name == "json":
        return f"({text} | tojson)", "text"
    if name == "print":
        return f"('' ~ {_printed(text, kind)})", "text"
    return None


def _of_more(name: str, first: Sequence[tuple[str, str]], more: Sequence[str]) -> tuple[str, str] | None:
    if not first:
        return ("strftime_now('%Y-%m-%d')", "text") if name == "currentDate" else None
    text, kind = first[0]
    if name == "slice" and len(more) < 3:
        return f"{text}[{':'.join(more)}{':' if len(more) == 1 else ''}]", kind
    shape, _, inner = kind.partition(" ")
    if name == "index" and len(more) == 1 and shape in ("list", "map"):
        return f"{text}[{more[0]}]", inner
    return None


def _formatted(form: str, arguments: Sequence[tuple[str, str]]) -> str:
    left = list(arguments)
    pieces: list[str] = []
    for place, piece in enumerate(form.replace("%%", "\0").split("%")):
        rest = piece
        if place:
            if piece[:1] not in ("s", "v", "d") or not left:
                raise Unsupported(f"the format {form}")
            pieces.append(_printed(*left.pop(0)))
            rest = piece[1:]
        if rest:
            pieces.append(_quoted(rest.replace("\0", "%")))
    if left:
        raise Unsupported(f"the format {form}")
    return f"({' ~ '.join(pieces or [_quoted('')])})"


def _printed(text: str, kind: str) -> str:
    """The expression whose value looks as Go would print it."""
    if kind in ("text", "number", "json"):
        return text
    if kind == "truth":
        return f"('true' if {text} else 'false')"
    if kind in _PRINTS_JSON:
        return f"({text} | tojson)"  # these print themselves as JSON there too
    raise Unsupported(f"the printing of a {kind}")


def _constant(constant: str | float | bool | None) -> tuple[str, str]:
    if constant is None:
        return "none", "nothing"
    if isinstance(constant, bool):
        return str(constant).lower(), "truth"
    if isinstance(constant, str):
        return _quoted(constant), "text"
    return str(constant), "number"


def _quoted(text: str) -> str:
    """A string constant of Jinja."""
    escapes: tuple[tuple[str, str], ...] = (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
    for plain, escaped in escapes:
        text = text.replace(plain, escaped)
    return f"'{text}'"
