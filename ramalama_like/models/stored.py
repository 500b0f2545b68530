"""Models whose files are in a store, or will be: the same model before and after its pull, for the same plan."""

from __future__ import annotations

import os

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import ADAPTER, MODEL, PROJECTOR, SHARD, TEMPLATE, WEIGHTS
from ramalama_like.model import Model, ModelFile
from ramalama_like.models.gguf import read_gguf
from ramalama_like.models.shapes import make_shape
from ramalama_like.models.sources.file import plain_name
from ramalama_like.reference import alias_of, plain_url
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.models.gguf import GgufHeader
    from ramalama_like.models.store import Store
    from ramalama_like.record import Record, StoredFile
    from ramalama_like.reference import Reference

USED = (MODEL, SHARD, PROJECTOR, TEMPLATE, ADAPTER)
UNKNOWN_SUM = "of-"  # in place of a sum that the hub does not publish, before the file's name


def with_paths(files: Sequence[StoredFile], store: Store) -> tuple[StoredFile, ...]:
    """The files that a server uses, each with the path that it has or will have."""
    return tuple(file if file.path else replace(file, path=path_of(store, file))
                 for file in files if file.role in USED)  # fmt: skip


def path_of(store: Store, file: StoredFile) -> str:
    """Where the store has a file or will have it; a path that names it where its sum is not known yet."""
    return store.blob_path(file.sha256 or f"{UNKNOWN_SUM}{plain_name(file.name)}")


def model_of_record(reference: Reference, record: Record, store: Store, why: str) -> Model:
    """The model of a record. Raises ValueProblem where a file of it is missing or cannot be used."""
    files = with_paths(record.files, store)
    _need_weights(reference, record.files)
    headers = [read_gguf(file.path) for file in files if file.role in (MODEL, SHARD)]
    return assemble(reference, files, headers, why)


def assemble(reference: Reference, files: Sequence[StoredFile], headers: Sequence[GgufHeader], why: str) -> Model:
    """The model made of files with paths. ``headers`` are those of its weights; empty where nobody has read them."""
    own_template = bool(headers and headers[0].text("tokenizer.chat_template"))
    used: list[ModelFile] = []
    names: set[str] = set()
    for file in sorted(files, key=lambda file: USED.index(file.role)):
        if file.role == TEMPLATE and (own_template or any(other.role == TEMPLATE for other in used)):
            continue  # what the model brings along counts more
        name = plain_name(file.name)
        while name in names:
            name = f"_{name}"
        names.add(name)
        used.append(ModelFile(file.role, file.path, name))
    architecture = headers[0].text("general.architecture") if headers else ""
    weights = [file.size_bytes for file in files if file.role in (MODEL, SHARD)]
    return Model(
        reference=plain_url(reference.text), alias=alias_of(reference), files=tuple(used), why=why,
        size_bytes=sum(size for size in weights if size > 0), architecture=architecture,
        context_length=headers[0].number(f"{architecture}.context_length") if headers else 0,
        shape=make_shape(headers) if headers and len(headers) == len(weights) else None,
        projector_bytes=sum(max(0, file.size_bytes) for file in files if file.role == PROJECTOR),
    )  # fmt: skip


def _need_weights(reference: Reference, files: Sequence[StoredFile]) -> None:
    if any(file.role == MODEL for file in files):
        return
    if any(file.role == WEIGHTS for file in files):
        raise ValueProblem(f"{plain_url(reference.text)}: has weights as safetensors, which llama.cpp cannot use",
                           "make a GGUF of it: ramalama-like convert")  # fmt: skip
    raise ValueProblem(f"{plain_url(reference.text)}: holds no model", "look at it: ramalama-like inspect")


def missing_file(record: Record) -> str:
    """The first file in place that is not what it was; the empty string where all are."""
    for file in record.files:
        if file.path:
            try:
                status = os.stat(file.path)
            except OSError:
                return file.path
            if status.st_size != file.size_bytes:
                return file.path
    return ""
