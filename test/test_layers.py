"""The architecture, read from the syntax trees: who may import whom, and through which door effects go.

Imports inside functions count like all others. Imports for type checkers alone are let through: they tie nothing
together when the program runs, and a renderer has to name the type of what it renders.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import PACKAGE

from ramalama_like.options import COMMANDS

FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# A layer's modules by the beginning of their names below the package, and the layers that each may import.
LAYERS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "values": (("value", "errors", "options", "request", "facts", "reference", "listing", "record", "model", "plan",
                "shape", "measurement", "observed", "familiar"), {"values"}),
    "data": (("data",), {"values", "data"}),
    "thought": (("accelerator", "limits", "access", "cards", "gpu_selectors", "selection", "suitability", "passage",
                 "visible", "image", "planner", "conversion", "causes", "proof", "server_log", "fit", "fit_words",
                 "memory", "memory_options", "measured", "llama_bench", "anonymous", "health", "runtimes"),
                {"values", "data", "thought"}),
    "spelling": (("render",), {"values", "data", "spelling"}),
    "doors": (("process", "settings", "checks", "files", "toml_lines", "toml_files", "user_tables", "result_store",
               "probe", "models", "chat.client", "examine", "web"), {"values", "data", "doors"}),
    "face": (("ui", "chat", "transfers"), {"values", "face"}),
    "edge": (("cli", "main", "__main__", "pipeline", "launch", "execute", "log_sinks", "signals", "containers",
              "smoke", "stored", "pushing", "api"),
             {"values", "data", "thought", "spelling", "doors", "face", "edge"}),
    "programs": (("embedded",), {"values", "thought"}),  # a program of its own, started like llama-server
}  # fmt: skip
# What a layer may not import from outside the package, besides what the doors below keep for themselves.
FOREIGN = {
    "values": {"os", "subprocess", "socket", "yaml", "typer", "rich", "requests"},
    "thought": {"os", "subprocess", "socket", "io", "pathlib", "tomllib", "yaml", "typer", "rich"},
    "spelling": {"os", "subprocess", "socket", "io", "pathlib", "platform", "time", "typer", "rich"},
}
PURE_PATHS = {"ramalama_like.planner"}  # os.path for splitting and joining, which looks at nothing
# Modules that only some files may touch.
DOORS = {
    "subprocess": {"process", "embedded"},
    "rich": {"ui"},
    "typer": {"cli"},
    "huggingface_hub": {"models.sources.huggingface"},
    "xllamacpp": {"embedded"},
    "requests": {"web", "models.remote"},
    "urllib3": {"models.remote"},
    "http": {"models.client", "chat.client"},
    "ssl": {"models.connect", "chat.client"},
}
STARTS = {"fork", "execv", "execve", "execvp", "execvpe", "execl", "execlp", "posix_spawn", "posix_spawnp", "spawnv",
          "spawnvp", "system", "popen"}  # fmt: skip
ENVIRONMENT = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}


def below(name: str) -> str:
    """The name of a module below the package."""
    return name.removeprefix("ramalama_like").lstrip(".")


def layer_of(name: str) -> str:
    """The layer of a module; the most telling beginning wins."""
    inside = below(name)
    found = [(len(prefix), layer) for layer, (prefixes, _) in LAYERS.items() for prefix in prefixes
             if inside == prefix or inside.startswith(f"{prefix}.")]  # fmt: skip
    return max(found)[1] if found else ""


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those under ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for other in node.orelse:
                yield other
                yield from walk(other)
            continue
        yield node
        yield from walk(node)


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports when it runs."""
    for node in walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: a relative import hides where it leads"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in FILES else node.module


def uses(path: Path, module: str, names: set[str]) -> list[str]:
    """Attributes of ``module`` that a file mentions."""
    return [node.attr for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == module
            and node.attr in names]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_each_module_imports_only_what_its_layer_may(name: str) -> None:
    if name == "ramalama_like":
        assert list(imports(FILES[name])) == []
        return
    layer = layer_of(name)
    assert layer, f"{name} belongs to no layer: add it to LAYERS"
    allowed = LAYERS[layer][1]
    for imported in imports(FILES[name]):
        if imported.partition(".")[0] == "ramalama_like":
            # The version number is a value.
            fine = imported == "ramalama_like" or layer_of(imported) in allowed
            # A conversation is held through the client, the one door that it needs.
            fine = fine or (layer == "face" and imported == "ramalama_like.chat.client")
            assert fine, f"{name} imports {imported}"
        elif not (name in PURE_PATHS and imported == "os.path"):
            top = imported.partition(".")[0]
            assert top not in FOREIGN.get(layer, set()), f"{name} imports {imported}"


@pytest.mark.parametrize("name", FILES)
def test_only_the_doors_open(name: str) -> None:
    inside, path = below(name), FILES[name]
    text = path.read_text("utf-8")
    for imported in imports(path):
        keepers = DOORS.get(imported.partition(".")[0])
        assert keepers is None or any(inside == k or inside.startswith(f"{k}.") for k in keepers), (
            f"{name} imports {imported}"
        )
    if inside not in DOORS["subprocess"]:
        assert uses(path, "os", STARTS) == [], f"{name} starts programs"
    if not (inside in ("settings", "embedded") or inside.startswith("probe")):
        assert uses(path, "os", ENVIRONMENT) == [], f"{name} reads the environment"
        # expanduser reads HOME; checks.py needs it for the home of somebody else (~name).
        assert inside == "checks" or (".expanduser(" not in text and ".expandvars(" not in text), name
    assert "shell=True" not in text
    if inside not in ("ui", "embedded", "data.compile"):
        prints = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
                  and isinstance(node.func, ast.Name) and node.func.id == "print"]  # fmt: skip
        assert prints == [], f"{name} prints"


def test_commands_do_not_import_each_other() -> None:
    verbs = {f"ramalama_like.cli.{command.partition(' ')[0]}" for command in COMMANDS}
    assert verbs <= set(FILES), "each command has a module of its own"
    for name in sorted(verbs):
        assert sorted(set(imports(FILES[name])) & (verbs - {name})) == [], name


def test_nothing_swallows_every_exception() -> None:
    for name, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, f"{name}: a bare except"
                caught = {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)}
                assert "Exception" not in caught, f"{name}: except Exception"
                # Cleaning up before everything is fine where it goes on its way afterwards; and a forked process must
                # never return into the code of its parent.
                goes_on = isinstance(node.body[-1], ast.Raise) or below(name) == "embedded"
                assert "BaseException" not in caught or goes_on, f"{name} swallows all"


def test_a_dry_run_is_a_sink_and_never_a_branch() -> None:
    """Only where the option is declared and where a command chooses between showing and executing is it mentioned."""
    may = {"options", "checks", "launch"}
    for name, path in FILES.items():
        inside = below(name)
        if inside in may or inside.startswith("cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            words = [getattr(node, field, "") for field in ("id", "attr", "arg", "name")]
            assert "dryrun" not in "".join(word for word in words if isinstance(word, str)), f"{name} knows of it"
