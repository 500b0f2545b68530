"""Names of images and artifacts in registries, as the OCI distribution specification and Docker write them. Pure."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.value import value

DOCKER_HUB = "docker.io"
RLCR = "rlcr.io/ramalama/"  # what rlcr:// stands for
MOST_CHARACTERS = 255  # of a repository with its registry
_HEXADECIMAL = frozenset("0123456789abcdef")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_TAG = _LETTERS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ_")


@value
class RegistryName:
    """Where an image or artifact is: ``host`` with its port, ``repository``, and ``tag`` or ``digest`` of it."""

    host: str
    repository: str
    tag: str = ""
    digest: str = ""  # sha256:… ; counts more than the tag

    @property
    def text(self) -> str:
        """The whole name."""
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.host}/{self.repository}{tag}{f'@{self.digest}' if self.digest else ''}"

    @property
    def wanted(self) -> str:
        """What a registry is asked for."""
        return self.digest or self.tag


def parse_registry_name(text: str, *, default_host: str = DOCKER_HUB, default_tag: str = "latest") -> RegistryName:
    """Take ``[HOST[:PORT]/]REPOSITORY[:TAG][@sha256:…]`` apart. Raises ValueProblem, which names what is wrong.

    A first part without a dot, a port and not ``localhost`` belongs to the repository, as everywhere.
    """
    name, _, digest = text.partition("@")
    if "@" in text and not is_digest(digest):
        raise ValueProblem(f"{text}: what follows the @ is no digest", "write NAME@sha256: and 64 hexadecimal digits")
    host, slash, rest = name.partition("/")
    if not slash or not names_host(host):
        host, rest = default_host, name
    elif host in ("index.docker.io", "registry-1.docker.io"):
        host = DOCKER_HUB
    repository, colon, tag = rest.partition(":")
    if host == DOCKER_HUB and repository and "/" not in repository:
        repository = f"library/{repository}"
    _check_host(text, host)
    _check_repository(text, host, repository)
    if colon and not is_tag(tag):
        raise ValueProblem(f"{text}: {tag or 'nothing'} cannot be a tag",
                           "a tag has letters, digits, dots, dashes and underscores")  # fmt: skip
    return RegistryName(host.lower(), repository, tag or ("" if digest else default_tag), digest)


def names_host(part: str) -> bool:
    """Whether the first part of a name is a registry: with a dot, with a port, or ``localhost``."""
    return "." in part or ":" in part or part == "localhost" or part.startswith("[")


def is_digest(text: str) -> bool:
    """Whether a text is a sha256 digest, the only kind that registries use."""
    kind, _, digits = text.partition(":")
    return kind == "sha256" and len(digits) == 64 and set(digits) <= _HEXADECIMAL


def is_tag(text: str) -> bool:
    """Whether a text can be a tag."""
    return 0 < len(text) <= 128 and text[0] in _TAG and set(text) <= _TAG | {".", "-"}


def _check_host(text: str, host: str) -> None:
    name, mark, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not mark:
        name, port = host, ""
    fine = bool(name) and all(letter.isascii() and (letter.isalnum() or letter in ".-[]:_") for letter in name)
    if not fine or (mark and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise ValueProblem(f"{text}: {host} cannot be a registry", "write HOST/REPOSITORY or HOST:PORT/REPOSITORY")


def _check_repository(text: str, host: str, repository: str) -> None:
    if not repository:
        raise ValueProblem(f"{text}: the repository's name is missing", "write HOST/REPOSITORY:TAG")
    if len(f"{host}/{repository}") > MOST_CHARACTERS:
        raise ValueProblem(f"{text[:60]}…: the name is too long", f"registries take {MOST_CHARACTERS} characters")
    for part in repository.split("/"):
        if not _is_part(part):
            hint = "a repository has small letters, digits, and between them dots, dashes and underscores"
            if part != part.lower() and _is_part(part.lower()):
                hint = f"registries know small letters only: {repository.lower()}"
            raise ValueProblem(f"{text}: {part or 'an empty part'} cannot be in the name of a repository", hint)


def _is_part(part: str) -> bool:
    """Whether letters and digits are separated by one dot, one or two underscores, or dashes."""
    if not part or part[0] not in _LETTERS or part[-1] not in _LETTERS:
        return False
    separator = ""
    for letter in part:
        if letter in _LETTERS:
            if separator not in ("", ".", "_", "__") and separator.strip("-"):
                return False
            separator = ""
        elif letter in "._-":
            separator += letter
        else:
            return False
    return True
