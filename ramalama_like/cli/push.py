"""``push``: put a model into a registry, as an artifact or as an image. No engine is needed."""

from __future__ import annotations

import os

from ramalama_like import settings, ui
from ramalama_like.errors import UsageError, ValueProblem
from ramalama_like.launch import Outline, show_outline
from ramalama_like.measurement import size_text
from ramalama_like.models import resolve_model
from ramalama_like.models.finding import make_client
from ramalama_like.models.lookup import NEVER
from ramalama_like.models.push import Pusher, PushFile, push_order
from ramalama_like.models.registry import Registry
from ramalama_like.models.registry_names import registry_name
from ramalama_like.reference import canonical_name, parse_reference
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.model import Model
    from ramalama_like.models.access import Access
    from ramalama_like.models.client import Client
    from ramalama_like.models.push import Pushed
    from ramalama_like.options import Settings
    from ramalama_like.reference import Reference
    from ramalama_like.request import Request

_TELLING_BYTES = 100_000  # smaller ones are there before anybody has read about them
_BLOB = "sha256-"  # begins the names of the store's files, whose sums have been verified


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    asked = loaded.settings
    target = _target(request)
    model = _find(request, asked)
    if asked.dryrun.value:
        show_outline(request, outline(request))
        what = "an artifact" if asked.push_type.value == "artifact" else f"an image of the type {asked.push_type.value}"
        size = f" ({size_text(model.size_bytes)})" if model.size_bytes else ""
        ui.say(f"Note: no program would be started; {model.reference}{size} would be pushed to "
               f"{canonical_name(target)} as {what}")  # fmt: skip
        return 0
    access = settings.find_access(asked)
    with make_client(access) as client:
        pushed = _push(client, access, asked, target, model)
    name = registry_name(target)
    spared = pushed.size_bytes - pushed.sent_bytes
    ui.say(f"Pushed {size_text(pushed.size_bytes)}" + (f", {size_text(spared)} of it was there" if spared else ""))
    ui.write(f"oci://{name.host}/{name.repository}@{pushed.digest}\n")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: start nothing. Raises AppError."""
    _target(request)
    return Outline(settings.load_settings(request))


def _target(request: Request) -> Reference:
    words = request.arguments
    target = parse_reference(words[-1]) if len(words) == 1 else parse_reference(words[-1], "oci")
    if target.transport != "oci":
        if len(words) == 1:
            raise UsageError(f"{words[0]}: is no name in a registry, and no other is given",
                             "write: ramalama-like push MODEL oci://HOST/NAME:TAG", exit_code=22)  # fmt: skip
        raise ValueProblem(f"{words[-1]}: models are pushed to registries only", "write oci://HOST/NAME:TAG")
    if target.revision:
        raise ValueProblem(f"{words[-1]}: a digest cannot be pushed to", "name a tag")
    return target


def _find(request: Request, asked: Settings) -> Model:
    # What is pushed is what is here: nothing is fetched for it.
    lookup = replace(settings.find_lookup(asked), policy=NEVER)
    model = resolve_model(request.arguments[0], lookup)
    if model.problem:
        raise ValueProblem(f"{model.reference}: is not on this machine",
                           f"fetch it first: ramalama-like pull {model.reference}")  # fmt: skip
    return model


def _push(client: Client, access: Access, asked: Settings, target: Reference, model: Model) -> Pushed:
    name = registry_name(target)
    registry = Registry(client, access, name.host, name.repository, "pull,push")
    files = push_order([PushFile(file.role, file.name, file.path, _known_digest(file.path)) for file in model.files])
    told: list[str] = []

    def progress(file: str, _: int, size: int) -> None:
        if told[-1:] != [file] and size >= _TELLING_BYTES:
            told.append(file)
            ui.say(f"Sending {file} ({size_text(size)})")

    pusher = Pusher(registry, name.wanted, progress)
    kind = asked.push_type.value
    if kind == "artifact":
        about = {"format": "safetensors" if files[0].role == "safetensors" else "gguf"}
        if model.architecture:
            about["architecture"] = model.architecture
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
