"""``login``: keep a user and password for a registry where the engines read them, or a token for Hugging Face."""

from __future__ import annotations

import os

from ramalama_like import settings, ui
from ramalama_like.errors import UsageError, ValueProblem
from ramalama_like.launch import Outline, show_outline
from ramalama_like.models.credentials import Credentials, engine_file, save_credentials
from ramalama_like.models.finding import make_client
from ramalama_like.models.hub_token import check_token, save_token, secret_file
from ramalama_like.models.registry import Registry
from ramalama_like.models.registry_names import login_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.models.access import Access
    from ramalama_like.models.client import Client
    from ramalama_like.options import Settings
    from ramalama_like.request import Request

_MOST_SECRET_BYTES = 1 << 16  # tokens of some registries are as long as a page


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    asked = loaded.settings
    access = settings.find_access(asked)
    place = login_place(request.arguments)
    if asked.dryrun.value:
        show_outline(request, outline(request))
        path = secret_file(place, access, asked.engine.value)
        ui.say(f"Note: no program would be started; what {place} accepts would be kept in {path}")
        return 0
    for secret in (asked.password, asked.token):
        if not secret.is_default:
            ui.warn(f"{secret.origin}: others on this machine can read it: better by --password-stdin")
    with make_client(access) as client:
        if place == "huggingface":
            _keep_token(asked, client, access)
        else:
            _keep_password(place, asked, client, access)
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: start nothing. Raises AppError."""
    login_place(request.arguments)
    return Outline(settings.load_settings(request))


def _keep_token(asked: Settings, client: Client, access: Access) -> None:
    token = asked.token.value or asked.password.value or _secret(asked, "Token of Hugging Face: ")
    account = check_token(token, client, access)
    path = save_token(token, access)
    ui.say(f"Logged in to Hugging Face as {ui.one_line(account)}; the token is in {path}")
    if access.variables.get("HF_TOKEN", token) != token:
        ui.warn("$HF_TOKEN holds another token, which counts more")


def _keep_password(place: str, asked: Settings, client: Client, access: Access) -> None:
    user = asked.username.value or _ask_user(place)
    password = asked.password.value or asked.token.value or _secret(asked, f"Password of {user} at {place}: ")
    if not user or not password or ":" in user:
        raise ValueProblem("a user (without a colon) and a password are needed")
    registry = Registry(client, access, place, "", credentials=Credentials(user, password, origin="this login"))
    registry.sign_in()
    path = engine_file(access, asked.engine.value)
    save_credentials(path, place, user, password)
    if not registry.authorization:
        ui.say(f"{place} did not ask who you are; user and password are kept in {path} all the same")
    else:
        ui.say(f"Logged in to {place} as {ui.one_line(user)}; user and password are in {path}")


def _ask_user(place: str) -> str:
    if not ui.is_terminal(0):
        raise UsageError("login needs a user", "name it with --username", exit_code=22)
    return ui.ask(f"User at {place}: ")


def _secret(asked: Settings, prompt: str) -> str:
    """From standard input, or typed without being shown."""
    if asked.password_stdin.value:
        return _read_all()
    if not ui.is_terminal(0):
        raise UsageError("nobody can be asked for the password here", "send it with --password-stdin", exit_code=22)
    return ui.ask(prompt, hidden=True)


def _read_all() -> str:
    text = b""
    while len(text) < _MOST_SECRET_BYTES and (piece := os.read(0, _MOST_SECRET_BYTES)):
        text += piece
    try:
        return text.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueProblem("standard input is no text", "send the password alone") from None
