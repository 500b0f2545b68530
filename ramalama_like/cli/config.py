"""``config show``: the merged configuration, as a file that could be saved and read again."""

from __future__ import annotations

from ramalama_like import settings, ui
from ramalama_like.cli.parse import one_line
from ramalama_like.options import all_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ramalama_like.launch import Outline
    from ramalama_like.options import Option, Setting
    from ramalama_like.request import Request
    from ramalama_like.settings import LoadedSettings


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    ui.write(show_config(loaded, origin=loaded.settings.origin.value, json=loaded.settings.json.value))
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: print, and start nothing. Raises AppError."""
    from ramalama_like.launch import Outline

    return Outline(settings.load_settings(request))


def show_config(loaded: LoadedSettings, *, origin: bool = False, json: bool = False) -> str:
    """The configuration as TOML, or as JSON with every value's origin.

    What no flag, variable or file has set is a comment, so that a saved copy decides nothing that was not decided
    before. A secret is never shown.
    """
    if json:
        return _as_json(loaded)
    tables: dict[str, list[str]] = {"ramalama": []}
    for name, option in _configurable().items():
        setting = getattr(loaded.settings, name)
        table, _, key = f"ramalama.{option.key}".rpartition(".")
        note = f"  # {one_line(setting.origin)}" if origin else ""
        if option.kind == "table" and not setting.is_default:
            # Its header starts a table of its own, so it may stand only after the keys of [ramalama].
            tables[f"ramalama.{option.key}"] = [f"# {note.strip('# ')}"] if note else []
            tables[f"ramalama.{option.key}"] += [f"{_text(k)} = {_text(v)}" for k, v in setting.value.items()]
        else:
            tables.setdefault(table, []).append(f"{_assignment(name, key, setting)}{note}")
    blocks = [f"[{table}]\n" + "".join(f"{line}\n" for line in lines) for table, lines in tables.items()]
    read = [f"# read: {one_line(path)}\n" for path in (*loaded.files, *loaded.tables)]
    return "\n".join(["".join(read), *blocks] if read else blocks)


def _configurable() -> Mapping[str, Option]:
    return {name: option for name, option in all_options().items() if option.key}


def _assignment(name: str, key: str, setting: Setting[object]) -> str:
    if all_options()[name].secret:
        return f"# {key} is {'not set' if setting.is_default else 'set, and not shown'}"
    if setting.value is None or (setting.is_default and setting.value in ("", {})):
        return f"# {key} is not set"
    try:
        text = _toml(setting.value)
    except UnicodeEncodeError:  # a path or variable that is not UTF-8, which TOML must be
        return f"# {key} cannot be written as TOML: {setting.value!a}"
    return f"# {key} = {text}" if setting.is_default else f"{key} = {text}"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return _text(value)


def _text(value: object) -> str:
    """A basic string of TOML, which is also the form that any key may have."""
    text = str(value)
    text.encode()
    escapes = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(escapes.get(c, c if c.isprintable() else _escape(c)) for c in text) + '"'


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


def _as_json(loaded: LoadedSettings) -> str:
    from json import dumps

    shown = {}
    for name, option in _configurable().items():
        setting = getattr(loaded.settings, name)
        shown[option.key] = {"value": None if option.secret else setting.value, "origin": setting.origin}
    content = {
        "files": list(loaded.files),
        "tables": list(loaded.tables),
        "settings": shown,
        "warnings": list(loaded.warnings),
    }
    return dumps(content, indent=4) + "\n"
