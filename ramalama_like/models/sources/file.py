"""Models that are files on this machine, used where they lie: never copied, never changed."""

from __future__ import annotations

import os

from ramalama_like.errors import ValueProblem
from ramalama_like.model import Model, ModelFile
from ramalama_like.models.gguf import GgufHeader, read_gguf
from ramalama_like.models.shapes import make_shape, trained_context
from ramalama_like.reference import DEMO, Reference

# Characters that have a meaning in an engine's mount syntax; inside the container a plain name does as well.
_AWKWARD = ",:\"'\\\n\r\t "


def resolve(reference: Reference) -> Model:
    """The model at a path: a GGUF file, all of its parts, and the projector that lies beside it."""
    path = os.path.abspath(reference.name)
    if os.path.isdir(path):
        raise ValueProblem(f"{reference.text}: is a folder, not a GGUF file", _inside(path))
    split = split_part(path)
    if split is None:
        paths: tuple[str, ...] = (path,)
        stem = _without_ending(os.path.basename(path))
    else:
        paths, stem = _all_parts(path, split), os.path.basename(split[0])
    headers = [read_gguf(part) for part in paths]
    refuse_lone_part(reference.text, headers)
    header = headers[0]
    if header.text("general.architecture") == "clip":
        raise ValueProblem(f"{reference.text}: is a projector, not a language model",
                           "give the model's own file; a projector beside it is found by itself")  # fmt: skip
    files = [ModelFile("shard" if number else "model", part, plain_name(part)) for number, part in enumerate(paths)]
    notes = []
    projector, note = _projector_beside(paths[0], stem, header)
    if projector:
        name = plain_name(projector)
        while name in {file.name for file in files}:
            name = f"_{name}"
        files.append(ModelFile("mmproj", projector, name))
    if note:
        notes.append(note)
    return _model(reference.text, stem, files, headers, f"the file {paths[0]}", notes)


def resolve_demo() -> Model:
    """The model inside this package."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "data", "demo", "demo.gguf")
    files = [ModelFile("model", path, "demo.gguf")]
    return _model(DEMO, DEMO, files, [read_gguf(path)], "the demo model that comes with this program", [])


def _model(
    text: str, alias: str, files: list[ModelFile], headers: list[GgufHeader], why: str, notes: list[str]
) -> Model:
    header = headers[0]
    architecture = header.text("general.architecture")
    return Model(
        reference=text, alias=alias or "model", files=tuple(files), why=why, notes=tuple(notes),
        size_bytes=sum(each.size_bytes for each in headers), architecture=architecture,
        context_length=trained_context(header), shape=make_shape(headers),
        projector_bytes=sum(os.path.getsize(file.path) for file in files if file.role == "mmproj"),
    )  # fmt: skip


def split_part(path: str) -> tuple[str, int, int] | None:
    """Stem, number and count of a part of a split GGUF (``x-00002-of-00003.gguf``); None for a whole file."""
    ending = path[-len("-00001-of-00001.gguf") :]
    number, count = ending[1:6], ending[10:15]
    if ending[:1] != "-" or ending[6:10] != "-of-" or ending[15:].lower() != ".gguf":
        return None
    if not (number + count).isascii() or not (number + count).isdigit() or not 1 <= int(number) <= int(count):
        return None
    return path[: -len(ending)], int(number), int(count)


def refuse_lone_part(name: str, headers: list[GgufHeader]) -> None:
    """Raise ValueProblem where a header says that the file is a part of more than are there: by their names alone
    parts are found, here and by llama.cpp."""
    count = headers[0].number("split.count")
    if len(headers) == 1 and count > 1:
        raise ValueProblem(f"{name}: is one of {count} parts of a model",
                           f"give it the name that it had, as in model-00001-of-{count:05}.gguf")  # fmt: skip


def _all_parts(path: str, split: tuple[str, int, int]) -> tuple[str, ...]:
    stem, _, count = split
    paths = tuple(f"{stem}-{number:05}-of-{count:05}{path[-5:]}" for number in range(1, count + 1))
    missing = [os.path.basename(part) for part in paths if not os.path.exists(part)]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ValueProblem(f"{path}: parts are missing: {', '.join(missing[:3])}{more}",
                           "put all parts of the model into one folder")  # fmt: skip
    return paths


def _projector_beside(path: str, stem: str, header: GgufHeader) -> tuple[str, str]:
    """The projector for the model at ``path``, and a note where there are some but none certainly belongs to it.

    A folder may hold many models and projectors. One belongs here when its name holds the model's, or when this is
    the folder's only model; and it must produce vectors of the width that the model takes.
    """
    folder = os.path.dirname(path)
    try:
        names = sorted(name for name in os.listdir(folder) if name.lower().endswith(".gguf"))
    except OSError:
        return "", ""
    projectors = [name for name in names if "mmproj" in name.lower()]
    if not projectors:
        return "", ""
    models = {(split_part(name) or (name,))[0] for name in names if name not in projectors}
    named = [name for name in projectors if _belongs(name, stem)]
    candidates = named or (projectors if len(models) == 1 else [])
    width = header.number(f"{header.text('general.architecture')}.embedding_length")
    fitting = [name for name in candidates if _projection_width(os.path.join(folder, name)) in (0, width)]
    if not fitting:
        return "", f"none of the projectors beside the model fits it: {', '.join(projectors)}" if candidates else ""
    # Of several precisions the half-precision one is what its makers tested.
    fitting.sort(key=lambda name: (not any(word in name.lower() for word in ("f16", "bf16")), name))
    return os.path.join(folder, fitting[0]), ""


def _belongs(projector: str, stem: str) -> bool:
    # model-7b-Q4_K_M and mmproj-model-7b-f16: compare what is left of the quantization at the end of each.
    words = [word for word in stem.lower().replace("_", "-").replace(".", "-").split("-") if word]
    while len(words) > 1 and _is_quantization(words[-1]):
        words.pop()
    return "-".join(words) in projector.lower().replace("_", "-").replace(".", "-")


def _is_quantization(word: str) -> bool:
    return word in ("f16", "f32", "bf16", "k", "m", "s", "l", "xl", "xs", "xxs", "nl", "0", "1", "ud", "mxfp4") or (
        word[:1] in ("q", "i") and word.strip("iq").isdigit() and len(word) <= 3
    )


def _projection_width(path: str) -> int:
    try:
        return read_gguf(path).number("clip.vision.projection_dim")
    except ValueProblem:
        return -1  # unusable: fits nothing


def plain_name(path: str) -> str:
    """The name that a file gets in a container: that at the end of its path, without what engines trip over."""
    return "".join(
        "_" if letter in _AWKWARD or not letter.isprintable() else letter for letter in os.path.basename(path)
    )


def _without_ending(name: str) -> str:
    return name[:-5] if name.lower().endswith(".gguf") else name


def _inside(path: str) -> str:
    try:
        found = sorted(name for name in os.listdir(path) if name.lower().endswith(".gguf"))
    except OSError:
        found = []
    return f"it holds {', '.join(found[:3])}" if found else "give the path of a file"
