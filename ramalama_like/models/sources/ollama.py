"""Ollama's registry, and others that hold models in its form.

A manifest names one layer for each part: the weights (``…model``), a projector, adapters, a chat template in Go's
template language, and the model's own system prompt, parameters and licence. Templates are converted by
``models.ollama_templates`` once the weights are here, since a template inside the GGUF file counts more.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import ADAPTER, MODEL, OTHER, PROJECTOR, TEMPLATE, Listing, RemoteFile
from ramalama_like.models.registry import Registry
from ramalama_like.models.registry_names import ollama_name
from ramalama_like.reference import canonical_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.models.access import Access
    from ramalama_like.models.client import Client
    from ramalama_like.models.registry import Manifest
    from ramalama_like.reference import Reference

KIND = "application/vnd.ollama.image."
# The end of a layer's media type -> its role and the name of its file. {name} is the model's.
_PARTS = {
    "model": (MODEL, "{name}.gguf"), "projector": (PROJECTOR, "mmproj-{name}.gguf"),
    "adapter": (ADAPTER, "{name}-lora.gguf"), "template": (TEMPLATE, "template"), "system": (OTHER, "system"),
    "params": (OTHER, "params.json"), "license": (OTHER, "LICENSE"), "messages": (OTHER, "messages.json"),
}  # fmt: skip


def find(reference: Reference, client: Client, access: Access) -> Listing:
    """What the registry has under an ``ollama://`` name. Raises AppError."""
    base = access.ollama_registry.rstrip("/")
    own_host = base.partition("://")[2] or base
    name = ollama_name(reference, own_host)
    registry = Registry(client, access, name.host, name.repository)
    if name.host == own_host and "://" in base:
        registry.use_base(base)
    manifest = registry.manifest(name.wanted)
    files = tuple(_files(registry, manifest, name.repository.rpartition("/")[2]))
    if not any(file.role == MODEL for file in files):
        raise ValueProblem(f"{reference.text}: holds no model that this program can run",
                           "it may be one of Ollama's own engine: choose another tag")  # fmt: skip
    return Listing(canonical_name(reference), files, manifest.digest, registry.keep_fresh())


def _files(registry: Registry, manifest: Manifest, name: str) -> Iterator[RemoteFile]:
    used: dict[str, int] = {}
    for layer in registry.layers(manifest):
        kind = layer.media_type
        role, form = _PARTS.get(kind.removeprefix(KIND) if kind.startswith(KIND) else "", ("", ""))
        if not role:
            continue  # tensors of Ollama's own engine, and what is to come
        path = form.format(name=name)
        used[path] = used.get(path, 0) + 1
        if used[path] > 1:
            stem, dot, ending = path.rpartition(".")
            path = f"{stem}-{used[path]}.{ending}" if dot else f"{path}-{used[path]}"
        yield RemoteFile(path, registry.blob_url(layer.digest), layer.size_bytes, layer.digest[7:], role)
