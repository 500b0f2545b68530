"""Models in registries of containers: as artifacts, whose layers are the files, and as images that hold files.

Artifacts are those of the CNCF's ModelPack, Docker's models, Ollama's, what ``podman artifact`` makes, and any other
whose layers have names of files. Everything else is an image; what it has below ``/models`` counts, as RamaLama,
KServe and others put it there. Images are taken apart here, so an engine is not needed to use one.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import LAYER, MODEL, OTHER, SHARD, Listing, RemoteFile
from ramalama_like.models.archive_names import check_kept, plain_name
from ramalama_like.models.media_types import (
    DOCKER_MODEL,
    FILE_METADATA,
    FILE_NAMES,
    MODELPACK_WEIGHT,
    OLLAMA_MODEL,
    is_model_type,
    role_of,
)
from ramalama_like.models.registry import Registry
from ramalama_like.models.registry_names import registry_name
from ramalama_like.reference import canonical_name
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ramalama_like.models.access import Access
    from ramalama_like.models.client import Client
    from ramalama_like.models.registry import Layer, Manifest
    from ramalama_like.reference import Reference

IMAGE_FOLDER = "models/"
_EMPTY_CONFIG = "application/vnd.oci.empty.v1+json"
_IMAGE_LAYERS = ("application/vnd.oci.image.layer.", "application/vnd.docker.image.rootfs.")


def find(reference: Reference, client: Client, access: Access) -> Listing:
    """What the registry has under a name. Raises AppError."""
    name = registry_name(reference)
    registry = Registry(client, access, name.host, name.repository)
    manifest = registry.manifest(name.wanted)
    layers = registry.layers(manifest)
    if not layers:
        raise ValueProblem(f"{reference.text}: is empty", "check the name")
    if is_artifact(manifest, layers):
        files = artifact_files(registry, layers, name.repository.rpartition("/")[2], reference.text)
    else:
        files = tuple(RemoteFile(IMAGE_FOLDER, registry.blob_url(layer.digest), layer.size_bytes, layer.digest[7:],
                                 LAYER) for layer in layers)  # fmt: skip
    return Listing(canonical_name(reference), files, manifest.digest, registry.keep_fresh())


def is_artifact(manifest: Manifest, layers: Sequence[Layer]) -> bool:
    """Whether the layers of a manifest are files, and not those of an image."""
    document: Any = manifest.document
    config = document.get("config")
    kind = str(config.get("mediaType", "")) if isinstance(config, dict) else ""
    kinds = (str(document.get("artifactType", "")), kind, *(layer.media_type for layer in layers))
    if any(map(is_model_type, kinds)):
        return True
    return kind == _EMPTY_CONFIG or not all(layer.media_type.startswith(_IMAGE_LAYERS) for layer in layers)


def artifact_files(registry: Registry, layers: Sequence[Layer], name: str, shown: str) -> tuple[RemoteFile, ...]:
    """The files of an artifact with their names and roles. Raises ValueProblem where two have one name."""
    found: list[RemoteFile] = []
    unnamed: set[int] = set()
    for number, layer in enumerate(layers):
        path = plain_name(_file_name(layer), shown)
        role = role_of(layer.media_type, path)
        if not path:
            path, role = _made_up_name(layer, role, name)
            unnamed.add(number)
        elif _is_gguf_type(layer) and not path.lower().endswith(".gguf"):
            path, role = f"{path}.gguf", role if role != OTHER else MODEL
        if role == LAYER:
            path = "/"
        else:
            check_kept(path, shown)
        found.append(RemoteFile(path, registry.blob_url(layer.digest), layer.size_bytes, layer.digest[7:], role))
    if not any(file.role in (MODEL, LAYER) for file in found):
        found = _largest_is_model(found)
    parts = [number for number in sorted(unnamed) if found[number].role == MODEL]
    for place, number in enumerate(parts if len(parts) > 1 else ()):  # the parts of a model, in their order
        path = f"{found[number].path[: -len('.gguf')]}-{place + 1:05}-of-{len(parts):05}.gguf"
        found[number] = replace(found[number], path=path, role=SHARD if place else MODEL)
    return _distinct(found, shown)


def _file_name(layer: Layer) -> str:
    for key in FILE_NAMES:
        if layer.annotations.get(key):
            return _relative(layer.annotations[key])
    if FILE_METADATA in layer.annotations:
        import json

        try:
            return _relative(str(json.loads(layer.annotations[FILE_METADATA])["name"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""
    return ""


def _relative(path: str) -> str:
    if path.startswith("/"):
        # An absolute path would be somewhere on this machine; only what it ends with can be meant.
        raise ValueProblem(f"{path}: is an absolute path, which no file of an artifact may have",
                           "do not use it: its maker means harm, or its program is faulty")  # fmt: skip
    return path


def _is_gguf_type(layer: Layer) -> bool:
    return layer.media_type.startswith(f"{DOCKER_MODEL}gguf") or layer.media_type.endswith((".gguf", "+gguf"))


def _made_up_name(layer: Layer, role: str, name: str) -> tuple[str, str]:
    """A name for a file that has none, and its role."""
    kind = layer.media_type
    names = {"mmproj": f"mmproj-{name}.gguf", "template": "chat_template.jinja", "adapter": f"{name}-lora.gguf",
             "safetensors": "model.safetensors"}  # fmt: skip
    if role == OTHER and (_is_gguf_type(layer) or kind.startswith(MODELPACK_WEIGHT)):
        return f"{name}.gguf", MODEL
    if kind.startswith(OLLAMA_MODEL):
        return {"model": f"{name}.gguf", "template": "template"}.get(
            role, names.get(role, kind[len(OLLAMA_MODEL) :])
        ), role
    if role in names:
        return names[role], role
    return kind.rpartition("/")[2].rpartition(".")[2] or "file", role


def _largest_is_model(files: Sequence[RemoteFile]) -> list[RemoteFile]:
    """An artifact of one file without a telling name: that file must be the model."""
    plain = [file for file in files if file.role == OTHER]
    largest = max(plain, key=lambda file: file.size_bytes, default=None)
    if largest is None or any(file.role == "safetensors" for file in files):
        return list(files)
    path = largest.path if "." in largest.path.rpartition("/")[2] else f"{largest.path}.gguf"
    return [replace(file, path=path, role=MODEL) if file is largest else file for file in files]


def _distinct(files: Sequence[RemoteFile], shown: str) -> tuple[RemoteFile, ...]:
    """Each file once. Raises ValueProblem where two files have one name."""
    known: dict[str, RemoteFile] = {}
    kept = []
    for file in files:
        first = known.setdefault(file.path, file) if file.role != LAYER else file
        if first.sha256 != file.sha256:
            raise ValueProblem(f"{shown}: holds two different files with the name {file.path}",
                               "do not use it: its maker means harm, or its program is faulty")  # fmt: skip
        if first is file:
            kept.append(file)
    return tuple(kept)
