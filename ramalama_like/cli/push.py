"""``push``: put a model into a registry, as an artifact or as an image. No engine is needed."""

from __future__ import annotations

from ramalama_like import settings, ui
from ramalama_like.errors import UsageError, ValueProblem
from ramalama_like.launch import Outline, show_outline
from ramalama_like.measurement import size_text
from ramalama_like.models import resolve_model
from ramalama_like.models.lookup import NEVER
from ramalama_like.pushing import kind_text, push_files
from ramalama_like.reference import canonical_name, parse_reference, plain_url
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.model import Model
    from ramalama_like.options import Settings
    from ramalama_like.reference import Reference
    from ramalama_like.request import Request


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
        size = f" ({size_text(model.size_bytes)})" if model.size_bytes else ""
        ui.say(f"Note: no program would be started; {model.reference}{size} would be pushed to "
               f"{canonical_name(target)} as {kind_text(asked)}")  # fmt: skip
        return 0
    push_files(asked, target, model.files, model.architecture)
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
            raise UsageError(f"{plain_url(words[0])}: is no name in a registry, and no other is given",
                             "write: ramalama-like push MODEL oci://HOST/NAME:TAG", exit_code=22)  # fmt: skip
        raise ValueProblem(f"{plain_url(words[-1])}: models are pushed to registries only", "write oci://HOST/NAME:TAG")
    if target.revision:
        raise ValueProblem(f"{plain_url(words[-1])}: a digest cannot be pushed to", "name a tag")
    return target


def _find(request: Request, asked: Settings) -> Model:
    # What is pushed is what is here: nothing is fetched for it.
    lookup = replace(settings.find_lookup(asked), policy=NEVER)
    model = resolve_model(request.arguments[0], lookup)
    if model.problem:
        raise ValueProblem(f"{model.reference}: is not on this machine",
                           f"fetch it first: ramalama-like pull {model.reference}")  # fmt: skip
    return model
