"""Whether the services answer that models and images come from."""

from __future__ import annotations

import os

from ramalama_like import settings
from ramalama_like.observed import Reply
from ramalama_like.probe.tree import Tree
from ramalama_like.reference import plain_url
from ramalama_like.value import replace
from ramalama_like.web import ask_service

DEFAULT_REGISTRY = "docker.io"
REGISTRY_API = {"docker.io": "registry-1.docker.io"}  # where its API is
HUB = "https://huggingface.co"
TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def registry_of(image: str) -> str:
    """The registry that an image is pulled from; empty for one that can only be local."""
    first, slash, _ = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        return DEFAULT_REGISTRY
    return "" if first == "localhost" else first


def examine_registry(image: str, timeout_s: float, engine: str, verify: bool) -> Reply | None:
    """What the registry of an image answers; None where there is nobody to ask."""
    registry = registry_of(image)
    if not registry:
        return None
    host = REGISTRY_API.get(registry, registry)
    found = ask_service(f"https://{host}/v2/", timeout_s, verify=verify)
    # Docker takes a registry on its own machine for one without certificates; others have to be told.
    loopback = host.startswith(("127.", "localhost:", "[::1]"))
    if not found.status and (not verify or (loopback and engine == "docker")):
        plain = ask_service(f"http://{host}/v2/", timeout_s)
        found = plain if plain.status else found
    return replace(found, address=registry)


def examine_hub(timeout_s: float) -> tuple[Reply | None, str, str]:
    """What Hugging Face says to the user's token, where that is from, and why it was not sent.

    Nothing is asked where there is no token. The token itself goes nowhere but to the hub, and not in the clear.
    """
    token, origin = find_token()
    if not token:
        return None, "", ""
    endpoint = (settings.variable("HF_ENDPOINT") or HUB).rstrip("/")
    if not (token.isascii() and token.isprintable() and " " not in token):
        return None, origin, "it holds characters that no token can have"
    loopback = endpoint.startswith(("http://127.0.0.1:", "http://localhost:", "http://[::1]:"))
    if not (endpoint.startswith("https://") or loopback):
        return None, origin, f"{plain_url(endpoint)} would get it unencrypted"
    reply = ask_service(f"{endpoint}/api/whoami-v2", timeout_s, headers={"Authorization": f"Bearer {token}"})
    return replace(reply, address=plain_url(endpoint)), origin, ""


def find_token() -> tuple[str, str]:
    """The user's token for Hugging Face and where it is from; empty texts where there is none."""
    for name in TOKEN_VARIABLES:
        if settings.variable(name).strip():
            return settings.variable(name).strip(), f"${name}"
    path = settings.variable("HF_TOKEN_PATH") or os.path.join(settings.hub_dir(), "token")
    text = Tree("/").read(os.path.abspath(path).lstrip("/")) or ""
    return (text.strip(), path) if text.strip() else ("", "")
