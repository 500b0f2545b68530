"""Which files of an image make up its model. Pure but for the headers of the files, which it reads.

RamaLama's images have links with fixed names beside the files: ``model.file``, ``mmproj.file``,
``chat_template.file``. Others have the files alone.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import MODEL, OTHER, PROJECTOR, SHARD, TEMPLATE, WEIGHTS
from ramalama_like.models.gguf import read_gguf
from ramalama_like.models.media_types import role_of_name
from ramalama_like.models.sources.file import split_part
from ramalama_like.record import StoredFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.models.archives import Contents, Unpacked
    from ramalama_like.models.store import Store

_LINKS = {"model.file": MODEL, "mmproj.file": PROJECTOR, "chat_template.file": TEMPLATE}


def image_files(contents: Contents, store: Store, shown: str) -> tuple[StoredFile, ...]:
    """The files of the model that came out of an image or archive, the weights first.

    Raises ValueProblem where there is no model, more than one, or one that is damaged.
    """
    linked = {_last(link): target for link, target in contents.links if _last(link) in _LINKS}
    roles = {file.name: _role(file.name) for file in contents.files}
    for link, target in linked.items():
        roles[target] = _LINKS[link]
    chosen = linked.get("model.file", "")
    model = _model(contents, roles, chosen, shown)
    parts = _parts(contents, model, shown)
    files = [StoredFile(MODEL if not number else SHARD, _last(part.name), part.size_bytes, part.sha256)
             for number, part in enumerate(parts)]  # fmt: skip
    if roles[model.name] != WEIGHTS:
        for part in parts:
            read_gguf(store.blob_path(part.sha256))
    taken = {part.name for part in parts}
    for role in (PROJECTOR, TEMPLATE, WEIGHTS, OTHER):
        files += [StoredFile(role, _last(file.name), file.size_bytes, file.sha256) for file in contents.files
                  if roles[file.name] == role and file.name not in taken]  # fmt: skip
    return tuple(files)


def _role(name: str) -> str:
    # The fixed names may be files too, where an image was made without links.
    return _LINKS.get(_last(name)) or role_of_name(name)


def _model(contents: Contents, roles: dict[str, str], chosen: str, shown: str) -> Unpacked:
    models = [file for file in contents.files if (file.name == chosen if chosen else roles[file.name] == MODEL)]
    models = models or [file for file in contents.files if roles[file.name] == WEIGHTS][:1]
    if not models:
        raise ValueProblem(f"{shown}: holds no model below /models", "check the name: it may be an image of programs")
    if len({file.sha256 for file in models}) > 1:
        names = ", ".join(sorted(_last(file.name) for file in models)[:5])
        raise ValueProblem(f"{shown}: holds {len(models)} models: {names}",
                           "this program takes images with one model")  # fmt: skip
    # The same file under two names: the one that says more than model.file.
    return min(models, key=lambda file: (_last(file.name) in _LINKS, file.name))


def _parts(contents: Contents, model: Unpacked, shown: str) -> list[Unpacked]:
    split = split_part(model.name)
    if split is None:
        return [model]
    stem, _, count = split
    by_name = {file.name: file for file in contents.files}
    names = [f"{stem}-{number:05}-of-{count:05}{model.name[-5:]}" for number in range(1, count + 1)]
    missing = [_last(name) for name in names if name not in by_name]
    if missing:
        raise ValueProblem(f"{shown}: parts of the model are missing: {', '.join(missing[:3])}",
                           "ask its maker for a whole one")  # fmt: skip
    return [by_name[name] for name in names]


def _last(name: str) -> str:
    return name.rpartition("/")[2]
