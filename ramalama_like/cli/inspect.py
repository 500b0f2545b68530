"""``inspect``: what a model's file says of itself. Nothing is fetched."""

from __future__ import annotations

from ramalama_like import settings, ui
from ramalama_like.errors import ValueProblem
from ramalama_like.models.inspected import InspectedGguf, InspectedSafetensors, inspected
from ramalama_like.models.located import locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramalama_like.launch import Outline
    from ramalama_like.models.located import Located
    from ramalama_like.request import Request

_SHOWN = 8  # members of a long array, and tensors, in the text for people
_FACTS = (("Architecture", "general.architecture"), ("Parameters", "general.size_label"),
          ("Licence", "general.license"))  # fmt: skip


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    asked = loaded.settings
    found = locate(request.arguments[0], settings.find_lookup(asked))
    with inspected(found.files[0].path) as opened:
        if asked.get.value:
            _write_member(found, opened, asked.get.value, as_json=asked.json.value)
        elif asked.json.value:
            _write_json(_document(found, opened, whole=asked.everything.value))
        else:
            _write_text(found, opened, whole=asked.everything.value)
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: look, and start nothing. Raises AppError."""
    from ramalama_like.launch import Outline

    return Outline(settings.load_settings(request))


def _document(found: Located, opened: InspectedGguf | InspectedSafetensors, *, whole: bool) -> dict[str, Any]:
    """The dialect's keys, and which files make up the model."""
    plain: dict[str, Any] = {
        "Name": found.name, "Path": found.files[0].path, "Registry": found.registry,
        "Files": [{"Path": file.path, "Role": file.role, "Size": file.size_bytes} for file in found.files],
    }  # fmt: skip
    if isinstance(opened, InspectedGguf):
        plain |= {"Format": "GGUF", "Version": opened.version, "Endianness": int(opened.is_big_endian)}
        plain["Metadata"] = {"data": opened.metadata()} if whole else opened.metadata_count
        plain["Tensors"] = opened.tensors() if whole else opened.tensor_count
    elif whole:
        plain["Header"] = opened.header
    else:
        plain["Metadata"] = len(opened.metadata)
    return plain


def _write_member(found: Located, opened: InspectedGguf | InspectedSafetensors, key: str, *, as_json: bool) -> None:
    if key == "all":
        everything = opened.metadata() if isinstance(opened, InspectedGguf) else opened.metadata
        if as_json:
            _write_json(everything)
        else:
            ui.write("".join(f"{ui.one_line(name)}: {_text(each)}\n" for name, each in everything.items()))
        return
    try:
        each = opened.member(key) if isinstance(opened, InspectedGguf) else opened.metadata[key]
    except KeyError:
        raise ValueProblem(f"{found.name}: has no metadata of the name {key}",
                           "inspect --all tells the names") from None  # fmt: skip
    if as_json:
        _write_json(each)
    else:
        ui.write(f"{each if isinstance(each, str) else _text(each)}\n")


def _write_text(found: Located, opened: InspectedGguf | InspectedSafetensors, *, whole: bool) -> None:
    lines = [("Name", found.name), ("Path", found.files[0].path), ("Registry", found.registry)]
    lines += [("Beside it", f"{file.role}: {file.path}") for file in found.files[1:]]
    lines.append(("Format", opened.format))
    rest = []
    if isinstance(opened, InspectedGguf):
        lines += [("Version", str(opened.version)), ("Endianness", "big" if opened.is_big_endian else "little")]
        scalars = opened.first_scalars()
        lines += [(title, str(scalars[key])) for title, key in _FACTS if key in scalars]
        context = scalars.get(f"{scalars.get('general.architecture')}.context_length")
        if context is not None:
            lines.append(("Context", f"{context} tokens"))
        lines += [("Metadata", f"{opened.metadata_count} entries"), ("Tensors", f"{opened.tensor_count} entries")]
        if whole:
            rest = [f"  {name}: {_short(each)}" for name, each in opened.metadata().items()]
            rest += [f"  {each['name']}: {' x '.join(map(str, each['dimensions']))}, type {each['type']}"
                     for each in opened.tensors()]  # fmt: skip
    else:
        lines += [("Metadata", f"{len(opened.metadata)} entries"), ("Tensors", f"{opened.tensor_count} entries")]
        if whole:
            rest = [f"  {name}: {_short(each)}" for name, each in opened.header.items()]
    width = max(len(title) for title, _ in lines)
    told = [f"{title + ':':<{width + 1}} {text}" for title, text in lines]
    limit = ui.terminal_width() if ui.is_terminal(1) else 0
    ui.write("".join(f"{_clipped(ui.one_line(line) if line[:1] != ' ' else ui.spelled(line), limit)}\n"
                     for line in (*told, *rest)))  # fmt: skip


def _short(each: object) -> str:
    if isinstance(each, list) and len(each) > _SHOWN:
        return f"[{', '.join(map(repr, each[:_SHOWN]))}, … {len(each)} in all]"
    text = str(each)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text)} characters)"


def _text(each: object) -> str:
    import json

    return each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)


def _clipped(line: str, limit: int) -> str:
    return line if not limit or len(line) <= limit else f"{line[: limit - 1]}…"


def _write_json(data: object) -> None:
    import json

    ui.write(json.dumps(data, indent=4, sort_keys=True) + "\n")
