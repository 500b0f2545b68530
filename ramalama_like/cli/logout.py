"""``logout``: forget the user and password for a registry, or the token for Hugging Face."""

from __future__ import annotations

from ramalama_like import settings, ui
from ramalama_like.errors import ValueProblem
from ramalama_like.launch import Outline, show_outline
from ramalama_like.models.credentials import files_with, remove_credentials
from ramalama_like.models.hub_token import remove_token, secret_file
from ramalama_like.models.registry_names import login_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    asked = loaded.settings
    access = settings.find_access(asked)
    place = login_place(request.arguments)
    path = secret_file(place, access, asked.engine.value)
    if asked.dryrun.value:
        show_outline(request, outline(request))
        ui.say(f"Note: no program would be started; what {path} holds for {place} would be removed")
        return 0
    if place == "huggingface":
        if not remove_token(access):
            raise ValueProblem(f"not logged in to Hugging Face: there is no {path}")
    elif not remove_credentials(path, place):
        others = [other for other in files_with(place, access) if other != path]
        hint = f"{others[0]} has a password: name it with --authfile" if others else "check the name of the registry"
        raise ValueProblem(f"not logged in to {place}: {path} has no password for it", hint)
    ui.say(f"Logged out of {'Hugging Face' if place == 'huggingface' else place}")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: start nothing. Raises AppError."""
    login_place(request.arguments)
    return Outline(settings.load_settings(request))
