"""Sending a model to a registry: what ``push`` and ``convert`` have in common."""

from __future__ import annotations

import os

from ramalama_like import settings, ui
from ramalama_like.measurement import size_text
from ramalama_like.models.finding import make_client
from ramalama_like.models.push import Pusher, PushFile, push_order
from ramalama_like.models.registry import Registry
from ramalama_like.models.registry_names import registry_name
from ramalama_like.reference import parse_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.model import ModelFile
    from ramalama_like.models.access import Access
    from ramalama_like.models.client import Client
    from ramalama_like.models.push import Pushed
    from ramalama_like.options import Settings
    from ramalama_like.reference import Reference

_TELLING_BYTES = 100_000  # smaller ones are there before anybody has read about them
_BLOB = "sha256-"  # begins the names of the store's files, whose sums have been verified


def push_files(asked: Settings, target: Reference, model_files: Sequence[ModelFile], architecture: str) -> None:
    """Put files into a registry, as what ``--type`` says; tell how much, and print the digest. Raises AppError."""
    access = settings.find_access(asked)
    with make_client(access) as client:
        pushed = _push(client, access, asked, target, model_files, architecture)
    name = registry_name(target)
    spared = pushed.size_bytes - pushed.sent_bytes
    ui.say(f"Pushed {size_text(pushed.size_bytes)}" + (f", {size_text(spared)} of it was there" if spared else ""))
    ui.write(f"oci://{name.host}/{name.repository}@{pushed.digest}\n")


def kind_text(asked: Settings) -> str:
    """What ``--type`` makes, in words."""
    kind = asked.push_type.value
    return "an artifact" if kind == "artifact" else f"an image of the type {kind}"


def _push(client: Client, access: Access, asked: Settings, target: Reference, model_files: Sequence[ModelFile],
          architecture: str) -> Pushed:  # fmt: skip
    name = registry_name(target)
    registry = Registry(client, access, name.host, name.repository, "pull,push")
    files = push_order([PushFile(file.role, file.name, file.path, _known_digest(file.path)) for file in model_files])
    told: list[str] = []

    def progress(file: str, _: int, size: int) -> None:
        if told[-1:] != [file] and size >= _TELLING_BYTES:
            told.append(file)
            ui.say(f"Sending {file} ({size_text(size)})")

    pusher = Pusher(registry, name.wanted, progress)
    kind = asked.push_type.value
    if kind == "artifact":
        about = {"format": "safetensors" if files[0].role == "safetensors" else "gguf"}
        if architecture:
            about["architecture"] = architecture
        return pusher.artifact(files, about)
    base = None
    if kind == "car":
        below = registry_name(parse_reference(asked.carimage.value, "oci"))
        source = Registry(client, access, below.host, below.repository)
        base = source, source.manifest(below.wanted)
    return pusher.image(files, kind, base)


def _known_digest(path: str) -> str:
    last = os.path.basename(os.path.realpath(path))
    return f"sha256:{last.removeprefix(_BLOB)}" if last.startswith(_BLOB) and len(last) == len(_BLOB) + 64 else ""
