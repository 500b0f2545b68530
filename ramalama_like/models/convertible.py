"""Finding what a GGUF file can be made of: safetensors in a folder, in the store or at a hub, or a GGUF file."""

from __future__ import annotations

import os

from ramalama_like.errors import AppError, Interrupted, ValueProblem
from ramalama_like.listing import MODEL, WEIGHTS
from ramalama_like.model import Convertible, ModelFile
from ramalama_like.models import find_here, find_reference, resolve_model
from ramalama_like.models.lookup import ALWAYS, NEVER, NEWER
from ramalama_like.models.sources.file import plain_name
from ramalama_like.reference import alias_of, plain_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.listing import Choice
    from ramalama_like.models.lookup import Lookup
    from ramalama_like.models.store import Store
    from ramalama_like.record import StoredFile
    from ramalama_like.reference import Reference

ENDING = ".safetensors"
CONFIG = "config.json"
# general.file_type of GGUF files whose weights are as precise as they were made (llama.cpp's llama_ftype).
_PRECISE = (0, 1, 32)  # F32, F16, BF16
_LOSSY = {2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L",
          14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K"}  # fmt: skip


def find_convertible(text: str, lookup: Lookup) -> Convertible:
    """What a name means to ``convert``. One that cannot be had has ``problem`` set. Raises ValueProblem."""
    reference = find_reference(text, lookup)
    if reference.transport == "file" and os.path.isdir(reference.name):
        return _folder(reference)
    if reference.transport not in ("file", "demo", "name"):
        found = _safetensors(reference, lookup)
        if found:
            return found
    return _gguf(text, lookup)


def _folder(reference: Reference) -> Convertible:
    path = os.path.realpath(reference.name)
    shown = reference.text
    try:
        entries = sorted((entry.name, entry.is_file(), entry.is_symlink()) for entry in os.scandir(path))
    except OSError as error:
        raise ValueProblem(f"{shown}: {error.strerror}", "name a folder that you may read") from None
    names = [name for name, is_file, _ in entries if is_file]
    if not any(name.endswith(ENDING) for name in names):
        inside = [name for name in names if name.lower().endswith(".gguf")]
        raise ValueProblem(f"{shown}: the folder holds no {ENDING} files",
                           f"it holds {', '.join(inside[:3])}: name the file" if inside else
                           "name a folder with config.json, the tokenizer and the weights")  # fmt: skip
    if CONFIG not in names:
        raise ValueProblem(f"{shown}: the folder holds no {CONFIG}, which tells what the weights are",
                           "put all files of the model's repository into it")  # fmt: skip
    # Links lead out of a folder that is mounted (as those of Hugging Face's cache do), so what they mean is mounted.
    linked = any(is_link for _, _, is_link in entries)
    files = tuple(ModelFile(_role(name), os.path.realpath(f"{path}/{name}"), name) for name in names)
    for file in files:
        if file.role == WEIGHTS:
            _check_weights(file.path)
    return Convertible(
        reference=shown, alias=plain_name(path) or "model", files=files, why=f"the folder {path}", safetensors=True,
        folder="" if linked else path,
        size_bytes=sum(os.path.getsize(file.path) for file in files if file.role == WEIGHTS),
    )  # fmt: skip


def _role(name: str) -> str:
    return WEIGHTS if name.endswith(ENDING) else "other"


def _check_weights(path: str) -> None:
    """Refuse files that are no safetensors: eight bytes give the length of a header in JSON, which begins with {."""
    try:
        with open(path, "rb") as file:
            size, head = os.fstat(file.fileno()).st_size, file.read(9)
    except OSError as error:
        raise ValueProblem(f"{path}: {error.strerror}") from None
    if len(head) < 9 or head[8:] != b"{" or int.from_bytes(head[:8], "little") > size - 8:
        raise ValueProblem(f"{path}: is no safetensors file, or not all of it", "download the model again")


def _safetensors(reference: Reference, lookup: Lookup) -> Convertible | None:
    """The weights of a record or of a hub, where these are safetensors."""
    from ramalama_like.models.store import Store

    store = Store(lookup.store)
    here = find_here(reference, store, lookup)
    if here:
        record, why = here
        newer = lookup.policy in (ALWAYS, NEWER) and not lookup.access.offline
        return _of_files(reference, record.files, store, why, pending=newer) if _only_weights(record.files) else None
    if lookup.access.offline or lookup.policy == NEVER:
        return None  # the reason is told where GGUF files are looked for
    choice = _ask(reference, lookup)
    if choice is None or not _only_weights(choice.files):
        return None
    from ramalama_like.models.pull import last_part
    from ramalama_like.record import StoredFile

    files = [StoredFile(file.role, last_part(file), file.size_bytes, file.sha256) for file in choice.files]
    return _of_files(reference, files, store, "not on this machine yet", pending=True)


def _ask(reference: Reference, lookup: Lookup) -> Choice | None:
    from ramalama_like.models.finding import find_choice, make_client

    try:
        with make_client(lookup.access) as client:
            return find_choice(reference, client, lookup.access)
    except Interrupted:
        raise
    except AppError:
        return None  # asked once more where GGUF files are looked for, which tells what is wrong


def _only_weights(files: Sequence[StoredFile] | Sequence[object]) -> bool:
    roles = {getattr(file, "role", "") for file in files}
    return WEIGHTS in roles and MODEL not in roles


def _of_files(reference: Reference, files: Sequence[StoredFile], store: Store, why: str, *, pending: bool
              ) -> Convertible:  # fmt: skip
    from ramalama_like.models.stored import path_of

    used = tuple(ModelFile(file.role, file.path or path_of(store, file), plain_name(file.name)) for file in files)
    known = all(file.sha256 or file.path for file in files)
    return Convertible(
        reference=plain_url(reference.text), alias=alias_of(reference), files=used, why=why, safetensors=True,
        size_bytes=sum(file.size_bytes for file in files if file.role == WEIGHTS and file.size_bytes > 0),
        pending=pending,
        uncertain="" if known else "the hub publishes no SHA-256 sums of some files, by which the store names them",
    )  # fmt: skip


def _gguf(text: str, lookup: Lookup) -> Convertible:
    model = resolve_model(text, lookup)
    quantized = architecture = ""
    if not (model.pending or model.problem):
        from ramalama_like.models.gguf import read_gguf

        header = read_gguf(model.main.path)
        kind = header.metadata.get("general.file_type")
        if isinstance(kind, int) and kind not in _PRECISE:
            quantized = _LOSSY.get(kind, f"general.file_type {kind}")
        architecture = model.architecture
    return Convertible(
        reference=model.reference, alias=model.alias, files=model.files, why=model.why, size_bytes=model.size_bytes,
        architecture=architecture, pending=model.pending is not None, uncertain=model.uncertain, quantized=quantized,
        problem=model.problem, hint=model.hint, exit_code=model.exit_code,
    )  # fmt: skip
