"""Hugging Face, and hubs that speak as it does (``HF_ENDPOINT``).

The questions are asked through this program's own client and not through ``huggingface_hub``: the library takes 0.3 s
to import, waits and tries again by rules of its own, explains failures in its own words, and checks no sums. What is
shared with it is what a user sees: the endpoint, the token and where it is kept, offline mode, its cache
(``models/caches/huggingface.py``). The library is asked in one case: a token of a login in the browser runs out, and
only the library knows how to get the next one.

A revision is turned into its commit first, and every address names that commit: what is fetched is one state of the
repository, however long it takes.
"""

from __future__ import annotations

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.listing import Listing, RemoteFile
from ramalama_like.models import failures
from ramalama_like.models.answers import ANY_FAILURE, list_of, object_of, size_of, texts_of
from ramalama_like.models.names import check_endpoint, is_safe_path, is_sha256, nearest
from ramalama_like.reference import canonical_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramalama_like.models.access import Access
    from ramalama_like.models.client import Answer, Client
    from ramalama_like.reference import Reference

DEFAULT_REVISION = "main"
MOST_PAGES = 1000
_EXPLAINED = (401, 403, 404)
_DISABLED = "access to this resource is disabled"
_BAD_TOKEN = "invalid credentials in authorization header"  # noqa: S105
_LOGIN = "ramalama-like login huggingface"


def find(reference: Reference, client: Client, access: Access) -> Listing:
    """What the repository of a reference holds, in one state of it.

    Raises ValueProblem where it does not exist or may not be seen, AppError where the hub fails.
    """
    hub = _Hub(client, access)
    repository, revision = reference.repository, reference.revision or DEFAULT_REVISION
    answer = hub.ask(f"/api/models/{_quoted(repository, '/')}/revision/{_quoted(revision)}", allow=_EXPLAINED)
    if answer.status != 200:
        raise hub.problem(answer, repository, revision)
    about = object_of(answer)
    commit = _commit(about, answer)
    notes = []
    moved = about.get("id")
    if isinstance(moved, str) and moved.lower() != repository.lower() and _is_repository(moved):
        notes.append(f"hf://{repository} is now called hf://{moved}")
        repository = moved
    if about.get("gated") and not hub.token:
        notes.append(f"hf://{repository} is gated: its conditions have to be accepted at {hub.page(repository)}")
    files, unusable = hub.files(repository, commit)
    if unusable:
        notes.append(f"{unusable} file{'s' if unusable > 1 else ''} with unusable names left out")
    return Listing(canonical_name(reference), files, commit, hub.authorization, tuple(notes))


def find_token(access: Access) -> str:
    """The token that the hub is shown; empty for none.

    It is the one that settings found (``HF_TOKEN``, ``HUGGING_FACE_HUB_TOKEN``, the file of the login), unless
    ``HF_HUB_DISABLE_IMPLICIT_TOKEN`` forbids to show it unasked.
    """
    token = "".join(access.hf_token.split())
    if access.variables.get("HF_HUB_DISABLE_IMPLICIT_TOKEN", "").upper() in ("1", "ON", "YES", "TRUE"):
        return ""
    if token and not access.offline and _can_be_renewed(token, access):
        from huggingface_hub import get_token

        return get_token() or token
    return token


def _can_be_renewed(token: str, access: Access) -> bool:
    """Whether this is the token of a login in the browser, of which the library keeps how to get the next one."""
    from ramalama_like.models.hub_token import token_file

    try:
        with open(f"{token_file(access).rpartition('/')[0]}/stored_tokens", encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 20)
    except OSError:
        return False
    return token in text and "refresh_token" in text


class _Hub:
    """One hub, asked for one command."""

    def __init__(self, client: Client, access: Access) -> None:
        self.client = client
        self.endpoint = check_endpoint(access.hf_endpoint, "HF_ENDPOINT", "https://huggingface.co")
        self.token = find_token(access)
        self.authorization = f"Bearer {self.token}" if self.token else ""

    def ask(self, path: str, allow: tuple[int, ...] = ()) -> Answer:
        """Ask for something below the endpoint."""
        return self.client.ask(self.endpoint + path, authorization=self.authorization, allow=allow)

    def page(self, repository: str) -> str:
        """Where people look at a repository."""
        return f"{failures.plain_url(self.endpoint)}/{repository}"

    def files(self, repository: str, commit: str) -> tuple[tuple[RemoteFile, ...], int]:
        """All files of a commit, and how many have names that cannot be used."""
        found: dict[str, RemoteFile] = {}
        unusable = 0
        base = f"{self.endpoint}/{_quoted(repository, '/')}/resolve/{_quoted(commit)}/"
        path = f"/api/models/{_quoted(repository, '/')}/tree/{_quoted(commit)}?recursive=true&expand=false"
        asked: set[str] = set()
        while path:
            if path in asked or len(asked) >= MOST_PAGES:
                raise failures.nonsense(self.endpoint + path, "a list without end")
            asked.add(path)
            answer = self.ask(path, _EXPLAINED)
            if answer.status != 200:
                raise self.problem(answer, repository, commit)
            for entry in list_of(answer):
                if entry.get("type") == "directory":
                    continue
                name = entry.get("path")
                if not isinstance(name, str) or not is_safe_path(name):
                    unusable += 1
                    continue
                found.setdefault(name, _file(name, base, entry))
            path = self._next_page(answer)
        return tuple(found.values()), unusable

    def _next_page(self, answer: Answer) -> str:
        """Where the list goes on, below the endpoint: a mirror hands on the addresses of the hub that it mirrors."""
        url = _next_link(answer.headers.get("link", ""))
        if not url:
            return ""
        if url.startswith(f"{self.endpoint}/"):
            return url[len(self.endpoint) :]
        _, mark, rest = url.partition("/api/models/")
        if not mark:
            raise failures.nonsense(answer.url, "a list that goes on somewhere else")
        return mark + rest

    # Failures.

    def problem(self, answer: Answer, repository: str, revision: str) -> AppError:
        """Why the hub does not say what it has, in words, with the next step."""
        code = answer.headers.get("x-error-code", "")
        said = answer.headers.get("x-error-message", "").lower()
        name = f"hf://{repository}"
        if code == "GatedRepo" or (answer.status == 403 and "gated" in said):
            page = self.page(repository)
            if self.token:
                return ValueProblem(f"{name}: your account has not been let in (gated)", f"ask for access at {page}")
            return ValueProblem(f"{name}: only those who have accepted its conditions are let in (gated)",
                                f"accept them at {page}, then: {_LOGIN}")  # fmt: skip
        if said.startswith(_DISABLED):
            return ValueProblem(f"{name}: {_host(self.endpoint)} has disabled this repository",
                                f"look at {self.page(repository)}, or use another one")  # fmt: skip
        if code == "RevisionNotFound":
            return self._no_revision(repository, revision, answer.status)
        missing = code == "RepoNotFound" or answer.status == 404
        if answer.status == 401 and self.token and (said.startswith(_BAD_TOKEN) or not missing):
            return ValueProblem(f"{name}: {_host(self.endpoint)} does not accept your token (HTTP 401)",
                                f"make a new one: {_LOGIN}; or unset HF_TOKEN: public models need none")  # fmt: skip
        if said.startswith(_BAD_TOKEN):  # a password in the endpoint's address
            return failures.refused(answer.status, answer.url, answer.headers, authorized=True)
        if missing or answer.status == 401:  # who does not say who asks is not told what is private
            return self._no_repository(repository, answer.status)
        return failures.refused(answer.status, answer.url, answer.headers, authorized=bool(self.token))

    def _no_revision(self, repository: str, revision: str, status: int) -> ValueProblem:
        known: list[str] = []
        found = self._helpful(f"/api/models/{_quoted(repository, '/')}/refs")
        if isinstance(found, dict):
            known = texts_of(found.get("branches"), "name") + texts_of(found.get("tags"), "name")
        shown = nearest(revision, known) or tuple(known[:3])
        hint = f"did you mean {' or '.join(f'@{name}' for name in shown)}?" if shown else "check what follows the @"
        return ValueProblem(f"hf://{repository}: there is no revision {revision} (HTTP {status})", hint)

    def _no_repository(self, repository: str, status: int) -> ValueProblem:
        who = "your account may not see it" if self.token else "it is private"
        near = [f"hf://{name}" for name in self._similar(repository)]
        hint = f"did you mean {' or '.join(near)}?" if near else "check the name"
        if not self.token:
            hint += f" For a private one: {_LOGIN}" if near else f"; for a private one: {_LOGIN}"
        return ValueProblem(f"hf://{repository}: there is no such repository, or {who} (HTTP {status})", hint)

    def _similar(self, repository: str) -> tuple[str, ...]:
        """Repositories whose names look like this one: the owner's first, then anybody's."""
        from urllib.parse import urlencode

        owner, _, name = repository.partition("/")
        word = max(name.replace("_", "-").replace(".", "-").split("-"), key=len)
        for question in ({"author": owner, "search": word, "limit": "100"}, {"author": owner, "limit": "100"},
                         {"search": name, "limit": "20"}):  # fmt: skip
            found = self._helpful(f"/api/models?{urlencode(question)}")
            near = nearest(repository, [name for name in texts_of(found, "id") if _is_repository(name)])
            if near:
                return near
        return ()

    def _helpful(self, path: str) -> object:
        """The answer to a question that only serves to explain a failure; None where it fails too."""
        import json

        try:
            answer = self.ask(path, ANY_FAILURE)
            return json.loads(answer.body) if answer.status == 200 else None
        except (AppError, ValueError, RecursionError):
            return None


def _file(name: str, base: str, entry: dict[str, Any]) -> RemoteFile:
    lfs = entry.get("lfs")
    large = lfs if isinstance(lfs, dict) else {}
    # Only large files have sums of their content; the others have Git's, which cover more than the content.
    total = large.get("oid")
    size = size_of(large.get("size")) if large else size_of(entry.get("size"))
    return RemoteFile(name, base + _quoted(name, "/"), size, str(total) if is_sha256(total) else "")


def _commit(about: dict[str, Any], answer: Answer) -> str:
    sha = about.get("sha")
    if not isinstance(sha, str) or not 7 <= len(sha) <= 64 or set(sha) - set("0123456789abcdef"):
        raise failures.nonsense(answer.url, "no commit")
    return sha


def _is_repository(name: str) -> bool:
    owner, slash, rest = name.partition("/")
    return bool(slash and owner and rest) and "/" not in rest and is_safe_path(name) and " " not in name


def _next_link(header: str) -> str:
    """The address marked ``rel="next"`` in a Link header (RFC 8288); empty where there is none."""
    rest = header
    while "<" in rest:
        url, _, rest = rest.partition("<")[2].partition(">")
        for mark in rest.partition("<")[0].rstrip(" ,").split(";"):
            name, _, text = mark.partition("=")
            if name.strip().lower() == "rel" and "next" in text.strip(' "').lower().split():
                return url
    return ""


def _quoted(text: str, safe: str = "") -> str:
    from urllib.parse import quote

    return quote(text, safe=safe)


def _host(url: str) -> str:
    return failures.plain_url(url).partition("://")[2].partition("/")[0]
