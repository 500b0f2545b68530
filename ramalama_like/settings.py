"""The merged configuration: flag, then variable, then the user's files, then the system's, then the default.

Every value keeps its origin, and all origins pass through the same checks, so that ``--port 0``, ``RAMALAMA_PORT=0``
and ``port = 0`` in a file are refused in the same words. Besides ``probe/`` this is the only module that looks at the
environment; whoever else needs a variable calls one of the small functions at the end.
"""

from __future__ import annotations

import os
import sys

from ramalama_like import data
from ramalama_like.checks import checked, quoted, shown, with_home
from ramalama_like.errors import NotBuiltYet, UsageError, ValueProblem
from ramalama_like.options import COMMANDS, DORMANT_KEYS, Setting, Settings, all_options
from ramalama_like.toml_files import parse_with_lines, read_text, unreadable
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ramalama_like.checks import Found
    from ramalama_like.models.access import Access
    from ramalama_like.models.caches import Places
    from ramalama_like.models.lookup import Lookup
    from ramalama_like.options import Option, Settings
    from ramalama_like.request import Request

PREFIX = "RAMALAMA_"
FOREIGN_VARIABLES = ("HF_HUB_OFFLINE",)  # other programs' that set an option of ours
# Variables that are read elsewhere, and so are no configuration keys.
OTHER_VARIABLES = ("RAMALAMA_CONFIG", "RAMALAMA_FORCE_EMOJI", "RAMALAMA_LLAMACPP_RPC_NODES")


@value
class LoadedSettings:
    """The merged settings, what to tell the user about them, and the files that were read."""

    settings: Settings
    warnings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()  # files whose rows are laid over the built-in tables


def load_settings(request: Request, environ: Mapping[str, str] | None = None, root: str = "") -> LoadedSettings:
    """Merge everything that may decide an option of ``request``. ``root`` stands before the system's folders (tests).

    Raises ValueProblem for a value or file that cannot be used, UsageError for options that exclude each other, and
    NotBuiltYet for parts of the dialect that were asked for but do not exist yet.
    """
    env = os.environ if environ is None else environ
    found: dict[str, list[Found]] = {}  # by option, from the weakest layer to the strongest
    warnings: list[str] = []
    files = _read_files(env, root, found, warnings)
    tables, family_origin = _read_tables(env, root, warnings)
    _read_variables(env, found, warnings)
    for name, given in request.given.items():
        found.setdefault(name, []).append((given.value, given.flag, given.flag, None))
    merged: dict[str, Any] = {}
    for name, option in all_options().items():
        layers = found.get(name)
        known = _widened(name, option) if tables and name in ("backend", "only_backend", "image_family") else option
        if layers is not None:
            merged[name] = _merge(known, layers, env, warnings)
        elif name == "image_family" and family_origin:
            merged[name] = Setting(data.load_table("images")["default_family"], family_origin)
        else:
            merged[name] = Setting(option.default)
    settings = Settings(**merged)
    _refuse_unbuilt(request, settings, warnings)
    return LoadedSettings(settings, tuple(warnings), tuple(files), tables)


# Merging.


def _merge(option: Option, layers: Sequence[Found], environ: Mapping[str, str], warnings: list[str]) -> Setting[object]:
    """The value that counts. ``layers`` holds at least one, the strongest last."""
    chosen, origin = checked(option, layers[-1], home_dir(environ)), layers[-1][1]
    if option.kind == "table":
        tables = [*_lower(option, layers, environ, warnings), (chosen, origin)]
        origins = ", ".join(where for _, where in tables)
        return Setting({key: text for table, _ in tables for key, text in table.items()}, origins)
    for configured, where in reversed(_lower(option, layers, environ, warnings)):
        if option.kind == "list" and layers[-1][3] is None:
            # The dialect adds the values of a repeatable flag to the configured ones.
            return Setting((*configured, *chosen), f"{where}, {origin}")
    return Setting(chosen, origin)


def _lower(
    option: Option, layers: Sequence[Found], environ: Mapping[str, str], warnings: list[str]
) -> list[tuple[Any, str]]:
    """The weaker layers with their origins. One that is wrong is only warned about: a user who can write neither the
    system's file nor the program that sets a variable could not get past it otherwise."""
    good: list[tuple[Any, str]] = []
    for layer in layers[:-1]:
        try:
            good.append((checked(option, layer, home_dir(environ)), layer[1]))
        except ValueProblem as problem:
            warnings.append(problem.message)
    return good


def _refuse_unbuilt(request: Request, settings: Settings, warnings: list[str]) -> None:
    if settings.quiet.value and settings.debug.value:
        raise UsageError("--quiet and --debug exclude each other")
    command = request.command
    starts = command in COMMANDS and COMMANDS[command].starts
    for name, option in all_options().items():
        setting: Setting[object] = getattr(settings, name)
        if not option.not_yet or setting.is_default:
            continue
        if name in request.given:
            raise NotBuiltYet(f"{setting.origin}: {option.not_yet}")
        if command in option.commands and setting.value != option.default:
            warnings.append(f"{setting.origin}: {option.key or name} has no effect: {option.not_yet}")
    if settings.runtime.value != "llama.cpp" and (starts or "runtime" in request.given):
        raise NotBuiltYet(f"{settings.runtime.origin}: runtime {settings.runtime.value} comes in a later version")
    if settings.api.value != "none" and starts:
        raise NotBuiltYet(f"{settings.api.origin}: API {settings.api.value} comes in a later version")
    if "," in settings.backend.value and command not in ("bench", "config show"):
        raise ValueProblem(f"{settings.backend.origin}: {settings.backend.value}: only bench takes several back ends",
                           "name one of them")  # fmt: skip


# Files.


def _read_files(environ: Mapping[str, str], root: str, found: dict[str, list[Found]], warnings: list[str]) -> list[str]:
    """Add what the files say to ``found``; return the names of those that were read."""
    only = environ.get("RAMALAMA_CONFIG", "")
    if only:
        paths: Iterable[str] = [os.path.abspath(with_home(only, home_dir(environ)))]
    else:
        paths = _candidates(environ, root)
    read: list[str] = []
    for path in paths:
        text = read_text(path)
        if text is not None:
            read.append(path)
            if _says_something(text):
                _read_table(path, text, found, warnings)
    if only and not read:
        raise ValueProblem(f"$RAMALAMA_CONFIG: {quoted(only)} does not exist", "unset it, or name an existing file")
    return read


def _candidates(environ: Mapping[str, str], root: str) -> Iterable[str]:
    """Where a file may be, the weakest first: in each folder the file itself, then its drop-ins by name."""
    folders = (
        f"{root}{sys.prefix}/share",
        f"{root}{sys.prefix}/local/share",
        f"{root}/etc",
        _xdg("XDG_DATA_HOME", ".local/share", environ),
        _xdg("XDG_CONFIG_HOME", ".config", environ),
    )
    for folder in dict.fromkeys(folders):
        path = f"{folder}/ramalama/ramalama.conf"
        yield path
        try:
            names = os.listdir(f"{path}.d")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if not os.path.isdir(f"{path}.d"):  # not even the folder above may be searched: nobody put a file there
                continue
            raise unreadable(f"{path}.d", error) from None
        yield from (f"{path}.d/{name}" for name in sorted(names) if name.endswith(".conf") and name[0] != ".")


def _read_tables(environ: Mapping[str, str], root: str, warnings: list[str]) -> tuple[tuple[str, ...], str]:
    """Use the user's rows of the tables; the names of the files that hold them, and where a default family is named."""
    if environ.get("RAMALAMA_CONFIG", ""):  # which names the only file to read
        folders: list[str] = []
    else:
        above = (f"{root}/etc", _xdg("XDG_CONFIG_HOME", ".config", environ))
        folders = [f"{folder}/ramalama-like/tables" for folder in above]
    folders = [folder for folder in folders if os.path.isdir(folder)]
    if not folders:
        data.use_tables({})
        return (), ""
    from ramalama_like.user_tables import read_tables

    return read_tables(folders, warnings)


def _widened(name: str, option: Option) -> Option:
    """The option with the names that the user's tables add to its choices."""
    if name == "image_family":
        names = [*data.load_table("images")["families"]]
    else:
        table = data.load_table("accelerators")
        names = [*table["backends"], *table["aliases"]]
    return replace(option, choices=tuple(dict.fromkeys((*option.choices, *names))))


def _says_something(text: str) -> bool:
    """Whether anything is left without comments and headers. Shipped files often hold nothing else, and importing
    the TOML parser to find that out takes longer than merging."""
    return any(line and line[0] != "#" and line != "[ramalama]" for line in map(str.strip, text.splitlines()))


def _read_table(path: str, text: str, found: dict[str, list[Found]], warnings: list[str]) -> None:
    content, lines = parse_with_lines(path, text)
    warnings += [
        f"{path}:{lines[(outside,)]}: {outside} is not in the table [ramalama] and has no effect"
        for outside in content
        if outside != "ramalama"
    ]
    table = content.get("ramalama", {})
    if not isinstance(table, dict):
        raise ValueProblem(f"{path}:{lines[('ramalama',)]}: ramalama is not a table")
    by_key = {option.key: name for name, option in all_options().items() if option.key}
    tables = _tables_of((*by_key, *DORMANT_KEYS))

    def walk(members: Mapping[str, object], above: tuple[str, ...], dotted_above: str) -> None:
        for key, member in members.items():
            trail = (*above, key)
            # The dialect's runtimes are named with dots, and its tables with underscores: both are understood.
            last = key.replace(".", "_").replace("-", "_") if dotted_above == "runtimes." else key
            dotted, origin = dotted_above + last, f"{path}:{lines[trail]}"
            if dotted in by_key:
                layer = (member, origin, f"{origin}: {dotted}", os.path.dirname(path))
                found.setdefault(by_key[dotted], []).append(layer)
            elif dotted in tables:
                if not isinstance(member, dict):
                    raise ValueProblem(f"{origin}: {dotted}: {shown(member)} is not a table")
                walk(member, trail, f"{dotted}.")
            elif dotted not in DORMANT_KEYS:
                warnings.append(f"{origin}: {_unknown(dotted, by_key)}")

    walk(table, ("ramalama",), "")


def _tables_of(keys: Iterable[str]) -> set[str]:
    """Every table that must be there for dotted keys: ``a`` and ``a.b`` for ``a.b.c``."""
    return {key[:place] for key in keys for place, character in enumerate(key) if character == "."}


def _unknown(dotted: str, by_key: Mapping[str, str]) -> str:
    """What to tell about a key that means nothing."""
    option = all_options().get(dotted)
    if option and option.flags and not option.key:
        return f"{dotted} has no effect: only {option.flags[0]} sets it"
    from difflib import get_close_matches

    name = dotted.replace("-", "_")
    near = [key for key in by_key if key.rpartition(".")[2] == name.rpartition(".")[2]]
    near = near or get_close_matches(name, by_key, 1)
    return f"unknown key {dotted}" + (f"; did you mean {near[0]}?" if near else "")


# Variables.


def _read_variables(environ: Mapping[str, str], found: dict[str, list[Found]], warnings: list[str]) -> None:
    names = [name for name in environ if name.startswith(PREFIX) and environ[name] and name not in OTHER_VARIABLES]
    names += [name for name in FOREIGN_VARIABLES if environ.get(name)]
    if not names:
        return
    by_key = {option.key: name for name, option in all_options().items() if option.key}
    special = {variable: name for name, option in all_options().items() for variable in option.variables}
    tables = _tables_of(DORMANT_KEYS)
    # A variable with a name of its own counts more than the one that any key has, and so comes last.
    for variable in sorted(names, key=lambda name: (name in special, name)):
        key = variable.removeprefix(PREFIX).lstrip("_").lower().replace("__", ".")
        name = special.get(variable) or by_key.get(key, "")
        if name:
            found.setdefault(name, []).append((environ[variable], f"${variable}", f"${variable}", ""))
        elif key not in DORMANT_KEYS and key not in tables:
            warnings.append(f"${variable}: {_unknown(key, by_key)}")


# The environment, for the rest of the program.


def home_dir(environ: Mapping[str, str] | None = None) -> str:
    """The user's home folder, also where ``HOME`` is not set."""
    home = (os.environ if environ is None else environ).get("HOME", "")
    if home:
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user id without an account, as containers have
        return "/"


def user_cache_dir(environ: Mapping[str, str] | None = None) -> str:
    """The folder for what can be made again: ``$XDG_CACHE_HOME/ramalama-like``. It may not exist yet."""
    return f"{_xdg('XDG_CACHE_HOME', '.cache', environ)}/ramalama-like"


def chat_history_file(environ: Mapping[str, str] | None = None) -> str:
    """Where what was typed into conversations is kept. It may not exist yet."""
    return f"{_xdg('XDG_STATE_HOME', '.local/state', environ)}/ramalama-like/chat_history"


def runtime_dir(environ: Mapping[str, str] | None = None) -> str:
    """The program's own folder for sockets, private to the user and gone after a reboot. It may not exist yet."""
    env = os.environ if environ is None else environ
    given = env.get("XDG_RUNTIME_DIR", "")
    for base in (given, f"/run/user/{os.getuid()}"):
        if os.path.isabs(base) and os.path.isdir(base):
            return os.path.join(base, "ramalama-like")
    return os.path.join(env.get("TMPDIR") or "/tmp", f"ramalama-like-{os.getuid()}")  # noqa: S108  # only a name


def default_store(environ: Mapping[str, str] | None = None) -> str:
    """The store where no option names one: the system's for root, else the user's."""
    if os.getuid() == 0:
        return "/var/lib/ramalama"
    return f"{_xdg('XDG_DATA_HOME', '.local/share', environ)}/ramalama"


def find_store(settings: Settings) -> str:
    """The folder of pulled models. It may not exist yet."""
    return settings.store.value or default_store()


def find_places(settings: Settings, environ: Mapping[str, str] | None = None) -> Places:
    """Where other programs may keep models."""
    from ramalama_like.models.access import VARIABLES
    from ramalama_like.models.caches import Places

    env = os.environ if environ is None else environ
    return Places(home_dir(environ), find_store(settings), {name: env[name] for name in VARIABLES if env.get(name)})


def find_access(settings: Settings, environ: Mapping[str, str] | None = None) -> Access:
    """How hubs and registries are to be reached."""
    from ramalama_like.models.access import VARIABLES, Access

    env = os.environ if environ is None else environ
    variables = {name: env[name] for name in VARIABLES if env.get(name)}
    verify = settings.tls_verify.value
    return Access(
        offline=settings.offline.value, verify=verify, authfile=settings.authfile.value,
        hf_endpoint=variables.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/"),
        hf_token=_hub_token(variables, environ), ms_endpoint=settings.modelscope_endpoint.value.rstrip("/"),
        ollama_registry=settings.ollama_registry.value.rstrip("/"), home=home_dir(environ), variables=variables,
    )  # fmt: skip


def find_lookup(settings: Settings, environ: Mapping[str, str] | None = None) -> Lookup:
    """Where models may be found, and when hubs are asked."""
    from ramalama_like.models.lookup import Lookup

    return Lookup(
        find_store(settings), home_dir(environ), find_access(settings, environ), find_places(settings, environ),
        tuple(shortname_files(environ)), settings.transport.value, settings.pull.value,
    )  # fmt: skip


def _hub_token(variables: Mapping[str, str], environ: Mapping[str, str] | None) -> str:
    """The token for Hugging Face: from a variable, else from the file in which its tools keep it."""
    token = variables.get("HF_TOKEN", "") or variables.get("HUGGING_FACE_HUB_TOKEN", "")
    path = variables.get("HF_TOKEN_PATH", "") or f"{hub_dir(environ)}/token"
    if not token:
        try:
            with open(path, encoding="utf-8") as file:
                token = file.read(1 << 12)
        except (OSError, ValueError):
            return ""
    token = token.strip()
    return token if token.isascii() and token.isprintable() and " " not in token else ""


def shortname_files(environ: Mapping[str, str] | None = None, root: str = "") -> list[str]:
    """Where short names may be written down, the strongest first: the user's files, then the system's."""
    env = os.environ if environ is None else environ
    if env.get("RAMALAMA_CONFIG", ""):  # which names the only file to read
        return []
    folders = (
        _xdg("XDG_CONFIG_HOME", ".config", environ), _xdg("XDG_DATA_HOME", ".local/share", environ), f"{root}/etc",
        f"{root}/usr/local/share", f"{root}/usr/share", f"{root}{sys.prefix}/share",
        f"{home_dir(environ)}/.local/pipx/venvs/ramalama/share",
    )  # fmt: skip
    return [f"{folder}/ramalama/shortnames.conf" for folder in dict.fromkeys(folders)]


def results_file(settings: Settings, environ: Mapping[str, str] | None = None) -> str:
    """The file that keeps the results of ``bench``. It may not exist yet."""
    folder = settings.benchmarks_folder.value
    if not folder:
        own = f"{_xdg('XDG_DATA_HOME', '.local/share', environ)}/ramalama"
        folder = f"{settings.store.value or own}/benchmarks"
    return f"{folder}/results.jsonl"


def _xdg(name: str, below_home: str, environ: Mapping[str, str] | None) -> str:
    base = (os.environ if environ is None else environ).get(name, "")
    # The specification says that a relative path is to be ignored.
    return base if os.path.isabs(base) else os.path.join(home_dir(environ), below_home)


def variable(name: str, environ: Mapping[str, str] | None = None) -> str:
    """A variable of the environment; the empty string where it is unset."""
    return (os.environ if environ is None else environ).get(name, "")


def collect_gpu_environment(names: Sequence[str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Those of the named variables that are set and not empty, in the order of ``names``."""
    return {name: text for name in names if (text := variable(name, environ))}


def no_color(environ: Mapping[str, str] | None = None) -> bool:
    """Whether the user wants no colour (``NO_COLOR``, any text) or the terminal has none (``TERM=dumb``)."""
    return variable("NO_COLOR", environ) != "" or variable("TERM", environ) == "dumb"


def terminal_type(environ: Mapping[str, str] | None = None) -> str:
    """``TERM``; the empty string where it is unset."""
    return variable("TERM", environ)


def terminal_columns(environ: Mapping[str, str] | None = None) -> int:
    """``COLUMNS`` where it holds a sensible number, else 0."""
    text = variable("COLUMNS", environ)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def find_program(name: str, environ: Mapping[str, str] | None = None) -> str:
    """The path of a program as the shell would find it; the empty string where there is none."""
    folders = [""] if "/" in name else (variable("PATH", environ) or os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return ""


def hub_dir(environ: Mapping[str, str] | None = None) -> str:
    """Hugging Face's own folder, where its tools keep the token."""
    return variable("HF_HOME", environ) or f"{_xdg('XDG_CACHE_HOME', '.cache', environ)}/huggingface"
