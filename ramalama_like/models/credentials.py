"""Names and passwords for registries, in the files in which podman and docker keep them.

The files hold JSON: ``auths`` maps a registry, or a part of one (``quay.io/team``), to ``auth``, which is user and
password in base64; docker keeps an ``identitytoken`` in some entries. ``credsStore`` and ``credHelpers`` name programs
that keep passwords: those programs are not run, since a pull must not start programs of anybody's naming. Where one
would be needed, that is told.
"""

from __future__ import annotations

import os

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.reference import DOCKER_HUB
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ramalama_like.models.access import Access

_MOST_BYTES = 1 << 20


@value
class Credentials:
    """Who asks. ``repr`` shows no secret."""

    user: str = ""
    password: str = ""
    identity_token: str = ""  # in place of a password: one that a registry has given
    origin: str = ""  # the file; where there are no credentials, why a file's cannot be used

    def __bool__(self) -> bool:
        return bool(self.user or self.identity_token)

    def __repr__(self) -> str:
        return f"Credentials(user={self.user!r}, origin={self.origin!r})"

    @property
    def basic(self) -> str:
        """The text of an Authorization header."""
        return f"Basic {_encoded(self.user, self.password)}"


def find_credentials(host: str, repository: str, access: Access) -> Credentials:
    """The user's credentials for a repository; empty ones where there are none.

    The first file that has an entry counts, and in it the entry for the longest part of the name. Raises ValueProblem
    for a file that cannot be read or understood.
    """
    helper = ""
    for path in auth_files(access):
        content = _read(path, demanded=path in _named(access))
        if content is None:
            continue
        for key in _keys(host, repository):
            entry = _entry(content, key)
            if entry is not None:
                return _decoded(path, key, entry)
        helpers = content.get("credHelpers")
        name = helpers.get(host) if isinstance(helpers, dict) else None
        name = name or content.get("credsStore")
        if isinstance(name, str) and name and not helper:
            helper = f"{path} leaves passwords to the program docker-credential-{name}, which is not run"
    return Credentials(origin=helper)


def auth_files(access: Access) -> Iterator[str]:
    """The files that may hold credentials, the one that counts most first. They may not exist."""
    named = _named(access)
    if named:
        yield from named[:1]
        return
    yield engine_file(access)
    variables, home = access.variables, access.home
    config = variables.get("XDG_CONFIG_HOME", "")
    yield f"{config if os.path.isabs(config) else f'{home}/.config'}/containers/auth.json"
    yield _docker_file(access)


def engine_file(access: Access, engine: str = "") -> str:
    """The file into which ``podman login`` writes, or docker's, and so does ``login``."""
    named = _named(access)
    if named:
        return named[0]
    if engine == "docker":
        return _docker_file(access)
    runtime = access.variables.get("XDG_RUNTIME_DIR", "")
    return f"{runtime}/containers/auth.json" if os.path.isabs(runtime) else f"/run/containers/{os.getuid()}/auth.json"


def _docker_file(access: Access) -> str:
    return f"{access.variables.get('DOCKER_CONFIG') or f'{access.home}/.docker'}/config.json"


def _named(access: Access) -> list[str]:
    """The file that the user has named, by option before variable."""
    return [path for path in (access.authfile, access.variables.get("REGISTRY_AUTH_FILE", "")) if path]


def files_with(host: str, access: Access) -> list[str]:
    """The files that hold credentials for the whole of a registry. Raises ValueProblem for a file that is damaged."""
    found = []
    for path in auth_files(access):
        content = _read(path, demanded=path in _named(access)) or {}
        if any(_entry(content, key) is not None for key in _spellings(host)):
            found.append(path)
    return found


def save_credentials(path: str, host: str, user: str, password: str) -> None:
    """Keep a user and password for a registry in a file; what else it holds stays. Raises AppError."""

    def change(content: dict[str, Any]) -> bool:
        auths = content.setdefault("auths", {})
        if not isinstance(auths, dict):
            raise _no_auth_file(path, "auths is no table")
        for key in _spellings(host):
            auths.pop(key, None)
        auths[host] = {"auth": _encoded(user, password)}
        return True

    _change(path, change)


def remove_credentials(path: str, host: str) -> bool:
    """Forget the credentials for a registry that a file holds; whether it held any. Raises AppError."""

    def change(content: dict[str, Any]) -> bool:
        auths = content.get("auths")
        found = [key for key in _spellings(host) if isinstance(auths, dict) and key in auths]
        for key in found:
            del content["auths"][key]
        return bool(found)

    return _change(path, change)


# Reading.


def _keys(host: str, repository: str) -> Iterator[str]:
    """Keys under which credentials may stand, the most exact first."""
    whole = f"{host}/{repository}" if repository else host
    while "/" in whole:
        yield whole
        whole = whole.rpartition("/")[0]
    yield from _spellings(host)


def _spellings(host: str) -> tuple[str, ...]:
    more = ("https://index.docker.io/v1/", "index.docker.io") if host == DOCKER_HUB else ()
    paths = ("", "/", "/v1/", "/v2/")  # old versions of docker wrote addresses
    return (host, *more, *(f"{scheme}{host}{path}" for scheme in ("https://", "http://") for path in paths))


def _entry(content: dict[str, Any], key: str) -> dict[str, Any] | None:
    auths = content.get("auths")
    entry = auths.get(key) if isinstance(auths, dict) else None
    # Docker leaves an empty entry where a helper keeps the password.
    return entry if isinstance(entry, dict) and (entry.get("auth") or entry.get("identitytoken")) else None


def _decoded(path: str, key: str, entry: dict[str, Any]) -> Credentials:
    import binascii
    from base64 import b64decode

    try:
        text = b64decode(str(entry.get("auth", "")), validate=True).decode()
    except (binascii.Error, ValueError):
        raise _no_auth_file(path, f"the entry for {key} is damaged") from None
    user, _, password = text.partition(":")
    token = entry.get("identitytoken", "")
    return Credentials(user, password.strip("\0"), token if isinstance(token, str) else "", path)


def _encoded(user: str, password: str) -> str:
    from base64 import b64encode

    return b64encode(f"{user}:{password}".encode()).decode()


def _read(path: str, *, demanded: bool) -> dict[str, Any] | None:
    """What a file holds; None where there is none that the user may read, unless it was named."""
    import json

    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        if demanded and not isinstance(error, FileNotFoundError):
            raise ValueProblem(f"{path}: cannot be read: {error.strerror}", exit_code=5) from None
        if demanded:
            raise ValueProblem(f"{path}: there is no such file of credentials",
                               "make it with: ramalama-like login --authfile FILE REGISTRY") from None  # fmt: skip
        return None
    if not text.strip():
        return {}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise _no_auth_file(path, "it is no JSON") from None
    if not isinstance(content, dict):
        raise _no_auth_file(path, "it holds no table")
    return content


def _no_auth_file(path: str, why: str) -> ValueProblem:
    return ValueProblem(f"{path}: this is no file of credentials: {why}", "mend it, or name another with --authfile")


# Writing.


def _change(path: str, change: Callable[[dict[str, Any]], bool]) -> bool:
    """Read, change and replace a file, so that nobody ever sees half of it; two who do so wait for each other."""
    import fcntl
    import json

    real = os.path.realpath(path)  # a link stays one
    folder = os.path.dirname(real)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            content = _read(real, demanded=os.path.lexists(real)) or {}
            if not change(content):
                return False
            replace_private(real, (json.dumps(content, indent="\t") + "\n").encode())
        finally:
            os.close(lock)
    except OSError as error:
        raise AppError(f"{path}: cannot be written: {error.strerror}", "name another file with --authfile",
                       exit_code=5) from None  # fmt: skip
    return True


def replace_private(path: str, content: bytes) -> None:
    """Put a file that only its owner may read in the place of another, all at once. Raises OSError."""
    from tempfile import mkstemp

    descriptor, temporary = mkstemp(prefix=".new-", dir=os.path.dirname(path))  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
