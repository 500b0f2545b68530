"""Ollama's store: ``manifests/HOST/NAMESPACE/NAME/TAG`` are OCI manifests, ``blobs/sha256-…`` their layers."""

from __future__ import annotations

from ramalama_like.listing import ADAPTER, MODEL, PROJECTOR
from ramalama_like.models.caches.files import file_in_place, make_record, names_in, read_json
from ramalama_like.reference import canonical_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.models.caches import Places
    from ramalama_like.record import Record, StoredFile
    from ramalama_like.reference import Reference

NAME = "ollama"
REGISTRY = "registry.ollama.ai"
_ROLES = {"model": MODEL, "projector": PROJECTOR, "adapter": ADAPTER}  # last word of a layer's media type


def folders(places: Places) -> tuple[str, ...]:
    """Where Ollama keeps models: OLLAMA_MODELS, the user's folder, the service's (Ollama's FAQ)."""
    named = places.variable("OLLAMA_MODELS")
    return (named,) if named else (f"{places.home}/.ollama/models", "/usr/share/ollama/.ollama/models")


def find(folder: str, reference: Reference) -> Record | None:
    """The model that one of Ollama's names means, where all of it is in the store."""
    if reference.transport != "ollama" or not reference.repository:
        return None
    repository = reference.repository
    if repository.count("/") == 1:
        repository = f"{REGISTRY}/{repository}"
    return _read(folder, repository, reference.tag or "latest", canonical_name(reference))


def every(folder: str) -> Iterator[Record]:
    """Each model of the store."""
    top = f"{folder}/manifests"
    for host in names_in(top):
        for owner in names_in(f"{top}/{host}"):
            for name in names_in(f"{top}/{host}/{owner}"):
                for tag in names_in(f"{top}/{host}/{owner}/{name}"):
                    shown = f"{owner}/{name}" if host == REGISTRY else f"{host}/{owner}/{name}"
                    record = _read(folder, f"{host}/{owner}/{name}", tag, f"ollama://{shown}:{tag}")
                    if record:
                        yield record


def _read(folder: str, repository: str, tag: str, name: str) -> Record | None:
    manifest = read_json(f"{folder}/manifests/{repository}/{tag}")
    layers = manifest.get("layers") if isinstance(manifest, dict) else None
    if not isinstance(layers, list):
        return None
    stem = repository.rpartition("/")[2]
    files: list[StoredFile | None] = []
    for layer in layers:
        kind = layer.get("mediaType") if isinstance(layer, dict) else None
        digest = layer.get("digest") if isinstance(layer, dict) else None
        role = _ROLES.get(kind.rpartition(".")[2]) if isinstance(kind, str) else None
        if not role or not isinstance(digest, str):
            continue
        kept = f"{stem}-{tag}.gguf" if role == MODEL else f"{role}-{len(files)}-{stem}.gguf"
        files.append(_blob(folder, digest, role, kept))
    files.sort(key=lambda file: file is not None and file.role != MODEL)
    return make_record(name, files) if files and (files[0] is None or files[0].role == MODEL) else None


def _blob(folder: str, digest: str, role: str, name: str) -> StoredFile | None:
    algorithm, _, number = digest.partition(":")
    if algorithm != "sha256" or len(number) != 64 or not number.isalnum() or not number.isascii():
        return None
    # The older spelling has the colon.
    return file_in_place(f"{folder}/blobs/sha256-{number}", role, name) or file_in_place(
        f"{folder}/blobs/sha256:{number}", role, name
    )
