"""The token for Hugging Face, where its own library reads it too."""

from __future__ import annotations

import os

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.models import failures
from ramalama_like.models.credentials import engine_file, replace_private
from ramalama_like.reference import plain_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.models.access import Access
    from ramalama_like.models.client import Client


def token_file(access: Access) -> str:
    """``HF_TOKEN_PATH``, else ``token`` in ``HF_HOME`` (``~/.cache/huggingface``)."""
    variables = access.variables
    if variables.get("HF_TOKEN_PATH"):
        return variables["HF_TOKEN_PATH"]
    cache = variables.get("XDG_CACHE_HOME") or f"{access.home}/.cache"
    return f"{variables.get('HF_HOME') or f'{cache}/huggingface'}/token"


def secret_file(place: str, access: Access, engine: str) -> str:
    """The file that holds what ``login`` keeps for a place: the hub's token, or an engine's passwords."""
    return token_file(access) if place == "huggingface" else engine_file(access, engine)


def check_token(token: str, client: Client, access: Access) -> str:
    """The account that a token belongs to. Raises AppError where Hugging Face does not take it."""
    import json

    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueProblem("this is no token: it has characters that no token has",
                           f"make one at {access.hf_endpoint}/settings/tokens")  # fmt: skip
    url = f"{access.hf_endpoint}/api/whoami-v2"
    answer = client.ask(url, authorization=f"Bearer {token}", allow=(400, 401, 403))
    if answer.status != 200:
        raise ValueProblem(f"{plain_url(url)}: the token is not accepted (HTTP {answer.status})",
                           f"make a new one at {access.hf_endpoint}/settings/tokens")  # fmt: skip
    try:
        return str(json.loads(answer.body)["name"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise failures.nonsense(url, "something else than an account") from None


def save_token(token: str, access: Access) -> str:
    """Keep a token; the file that has it now. Raises AppError."""
    path = os.path.realpath(token_file(access))
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        replace_private(path, token.encode())
    except OSError as error:
        raise AppError(f"{path}: cannot be written: {error.strerror}", exit_code=5) from None
    return path


def remove_token(access: Access) -> str:
    """Forget the token; the file that held it, empty where there was none. Raises AppError."""
    path = token_file(access)
    try:
        os.unlink(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise AppError(f"{path}: cannot be removed: {error.strerror}", exit_code=5) from None
    return path
