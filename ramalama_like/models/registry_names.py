"""Where a reference leads to in a registry. Pure; ``reference.py`` has checked every part of it."""

from __future__ import annotations

from ramalama_like.errors import UsageError, ValueProblem
from ramalama_like.reference import DOCKER_HUB, parse_reference
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.reference import Reference

_HEXADECIMAL = frozenset("0123456789abcdef")


@value
class RegistryName:
    """An image or artifact: ``host`` with its port, ``repository``, and ``wanted``, which is a tag or a digest."""

    host: str
    repository: str
    wanted: str


def registry_name(reference: Reference) -> RegistryName:
    """Where a name of the transport ``oci`` leads."""
    host, _, repository = reference.repository.partition("/")
    return RegistryName(host, repository, reference.revision or reference.tag)


def ollama_name(reference: Reference, own_host: str) -> RegistryName:
    """Where a name of the transport ``ollama`` leads; without a host, to Ollama's own registry."""
    parts = reference.repository.split("/")
    host = parts.pop(0) if len(parts) > 2 else own_host
    return RegistryName(host, "/".join(parts), reference.revision or reference.tag)


def parse_host(text: str) -> str:
    """The registry that ``login`` and ``logout`` are told: HOST[:PORT], perhaps as an address. Raises ValueProblem."""
    scheme, mark, rest = text.partition("://")
    host = (rest if mark and scheme.lower() in ("https", "http", "oci", "docker") else text).partition("/")[0].lower()
    try:
        found = parse_reference(f"oci://{host}/name").repository.partition("/")[0]
    except ValueProblem:
        found = ""
    if not host or found != {"index.docker.io": DOCKER_HUB, "registry-1.docker.io": DOCKER_HUB}.get(host, host):
        raise ValueProblem(f"{text or 'an empty name'}: is no registry", "write HOST or HOST:PORT, such as quay.io")
    return found


def login_place(arguments: Sequence[str]) -> str:
    """Where ``login`` and ``logout`` are told to: ``huggingface``, or a registry. Raises AppError."""
    if not arguments:
        raise UsageError("a registry is needed", "name one, such as quay.io, or huggingface", exit_code=22)
    word = arguments[0].lower().removeprefix("https://").rstrip("/:")
    if word in ("huggingface", "hf", "hf.co", "huggingface.co"):
        return "huggingface"
    if word in ("ollama", "ollama.com", "registry.ollama.ai"):
        raise ValueProblem("Ollama's registry needs no login", "pull from it as it is")
    if word in ("modelscope", "ms", "modelscope.cn"):
        raise ValueProblem("for ModelScope there is no login here", "set MODELSCOPE_API_TOKEN")
    return parse_host(arguments[0])


def is_digest(text: str) -> bool:
    """Whether a text is a sha256 digest, the only kind that registries use."""
    kind, _, digits = text.partition(":")
    return kind == "sha256" and len(digits) == 64 and set(digits) <= _HEXADECIMAL
