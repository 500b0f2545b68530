"""ModelScope, Alibaba's hub of models.

Facts of its API: a list of files is one answer, however long, with the sum of every file; the state of the repository
is only told by the first letters of its last commit, which stands in full beside the files that it changed; a revision
that does not exist has no files rather than an error; and errors come with HTTP 200 as well as with other statuses,
as ``{"Code": …, "Message": …, "Success": false}``.
"""

from __future__ import annotations

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.listing import Listing, RemoteFile
from ramalama_like.models import failures
from ramalama_like.models.answers import ANY_FAILURE, object_of, size_of, texts_of
from ramalama_like.models.failures import Passing
from ramalama_like.models.names import check_endpoint, is_safe_path, is_sha256, nearest
from ramalama_like.reference import canonical_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ramalama_like.models.access import Access
    from ramalama_like.models.client import Answer, Client
    from ramalama_like.reference import Reference

DEFAULT_ENDPOINT = "https://modelscope.cn"
DEFAULT_REVISION = "master"
_GOOD = 200
_NO_SUCH_RECORD = 10010205001  # also sent where the hub's own database fails: only the message tells
_TOKEN_HINT = "for a private one set MODELSCOPE_API_TOKEN"  # noqa: S105


def find(reference: Reference, client: Client, access: Access) -> Listing:
    """What the repository of a reference holds.

    Raises ValueProblem where it does not exist or may not be seen, AppError where the hub fails.
    """
    hub = _Hub(client, access)
    repository, revision = reference.repository, reference.revision or DEFAULT_REVISION
    data = hub.data(f"/api/v1/models/{_quoted(repository, '/')}/repo/files?"
                    f"Recursive=true&Revision={_quoted(revision)}", repository)  # fmt: skip
    listed = data.get("Files")
    if listed is None:
        raise hub.no_revision(repository, revision)
    if not isinstance(listed, list):
        raise failures.nonsense(f"{hub.endpoint}/models/{repository}", "something else than a list of files")
    entries = [entry for entry in listed if isinstance(entry, dict) and entry.get("Type") != "tree"]
    commit = _commit(data, listed)
    base = f"{hub.endpoint}/models/{_quoted(repository, '/')}/resolve/{_quoted(commit or revision)}/"
    found: dict[str, RemoteFile] = {}
    unusable = 0
    for entry in entries:
        path = entry.get("Path")
        if not isinstance(path, str) or not is_safe_path(path):
            unusable += 1
            continue
        total = str(entry.get("Sha256", "")).lower()
        found.setdefault(path, RemoteFile(path, base + _quoted(path, "/"), size_of(entry.get("Size")),
                                          total if is_sha256(total) else ""))  # fmt: skip
    notes = (f"{unusable} file{'s' if unusable > 1 else ''} with unusable names left out",) if unusable else ()
    return Listing(canonical_name(reference), tuple(found.values()), commit, hub.authorization, notes)


def find_token(access: Access) -> str:
    """The token that the hub is shown; empty for none. Other logins keep theirs in a form that only Python reads."""
    return "".join(access.variables.get("MODELSCOPE_API_TOKEN", "").split())


def find_endpoint(access: Access) -> str:
    """The hub's address: as it is configured, else the one that ModelScope's own programs take from their variable.

    Raises ValueProblem for one that is none.
    """
    domain = access.variables.get("MODELSCOPE_DOMAIN", "")
    if domain and access.ms_endpoint.rstrip("/") == DEFAULT_ENDPOINT:
        return check_endpoint(domain if "://" in domain else f"https://{domain}", "MODELSCOPE_DOMAIN", "modelscope.cn")
    return check_endpoint(access.ms_endpoint, "modelscope_endpoint", DEFAULT_ENDPOINT)


class _Hub:
    """The hub, asked for one command."""

    def __init__(self, client: Client, access: Access) -> None:
        self.client = client
        self.endpoint = find_endpoint(access)
        self.site = failures.plain_url(self.endpoint)  # as it may be shown
        self.token = find_token(access)
        self.authorization = f"Bearer {self.token}" if self.token else ""

    def data(self, path: str, repository: str) -> dict[str, Any]:
        """What an answer holds. Raises AppError for an answer that is a failure, whatever its status."""
        for attempt in range(self.client.retries + 1):
            answer = self._ask(path, allow=(400, 401, 403, 404))
            if answer.status != 200 and not answer.body.lstrip().startswith(b"{"):
                raise self._problem(answer.status, "", repository, answer)
            found = object_of(answer)
            code, data = found.get("Code"), found.get("Data")
            if answer.status == 200 and code in (_GOOD, None):
                if not isinstance(data, dict):
                    raise failures.nonsense(answer.url, "no list of files")
                return data
            message = found.get("Message")
            problem = self._problem(code if isinstance(code, int) else answer.status,
                                    message if isinstance(message, str) else "", repository, answer)  # fmt: skip
            if not isinstance(problem, Passing):
                raise problem
            self.client.wait_before(attempt, answer.url, problem)
        raise AssertionError  # wait_before has raised

    def _ask(self, path: str, *, allow: tuple[int, ...], method: str = "GET", body: bytes = b"") -> Answer:
        # Older parts of the API read the token as a cookie of a session.
        headers = {"Cookie": f"m_session_id={self.token}"} if self.token else {}
        if body:
            headers["Content-Type"] = "application/json"
        return self.client.ask(self.endpoint + path, method=method, headers=headers, body=body,
                               authorization=self.authorization, allow=allow)  # fmt: skip

    # Failures.

    def _problem(self, code: int, message: str, repository: str, answer: Answer) -> AppError:
        name, said = f"modelscope://{repository}", message.lower()
        host = self.site.partition("://")[2]
        absent = "not found" in said or "not exist" in said
        if code == 404 or (code == _NO_SUCH_RECORD and (absent or not said)) or (answer.status == 404 and absent):
            return self._no_repository(repository)
        if code in (401, 403) or answer.status in (401, 403):
            if self.token:
                return ValueProblem(f"{name}: {host} does not let your token in (HTTP {answer.status})",
                                    f"ask for access at {self.site}/models/{repository}")  # fmt: skip
            return ValueProblem(f"{name}: {host} wants to know who asks (HTTP {answer.status})",
                                f"ask for access at {self.site}/models/{repository}; {_TOKEN_HINT}")  # fmt: skip
        shown = "".join(letter if letter.isprintable() else " " for letter in message[:120]).strip()
        return Passing(f"{name}: {host} failed (code {code}{f': {shown}' if shown else ''})", "try again later")

    def _no_repository(self, repository: str) -> ValueProblem:
        near = [f"modelscope://{name}" for name in self._similar(repository)]
        hint = f"did you mean {' or '.join(near)}?" if near else "check the name"
        if not self.token:
            hint = f"{hint} {_TOKEN_HINT[0].upper()}{_TOKEN_HINT[1:]}" if near else f"{hint}; {_TOKEN_HINT}"
        who = "your account may not see it" if self.token else "it is private"
        return ValueProblem(f"modelscope://{repository}: there is no such repository, or {who}", hint)

    def no_revision(self, repository: str, revision: str) -> ValueProblem:
        """A revision that the repository does not have."""
        data = self._helpful("GET", f"/api/v1/models/{_quoted(repository, '/')}/revisions").get("RevisionMap")
        kinds = data if isinstance(data, dict) else {}
        known = texts_of(kinds.get("Branches"), "Revision") + texts_of(kinds.get("Tags"), "Revision")
        shown = nearest(revision, known) or tuple(known[:3])
        hint = f"did you mean {' or '.join(f'@{name}' for name in shown)}?" if shown else "check what follows the @"
        return ValueProblem(f"modelscope://{repository}: there is no revision {revision}", hint)

    def _similar(self, repository: str) -> tuple[str, ...]:
        """Repositories of the same owner whose names look like this one."""
        import json

        body = json.dumps({"Path": repository.partition("/")[0], "PageNumber": 1, "PageSize": 100}).encode()
        found = self._helpful("PUT", "/api/v1/models/", body).get("Models")
        models = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        names = [f"{item.get('Path')}/{item.get('Name')}" for item in models]
        return nearest(repository, [name for name in names if is_safe_path(name)])

    def _helpful(self, method: str, path: str, body: bytes = b"") -> dict[str, Any]:
        """What the answer to a question holds that only serves to explain a failure; nothing where it fails too."""
        try:
            answer = self._ask(path, allow=ANY_FAILURE, method=method, body=body)
            data = object_of(answer).get("Data")
        except AppError:
            return {}
        return data if answer.status == 200 and isinstance(data, dict) else {}


def _commit(data: dict[str, Any], listed: list[object]) -> str:
    """The last commit in full, where it can be told; empty otherwise."""
    last = data.get("LatestCommitter")
    if not isinstance(last, dict):
        return ""
    revisions = texts_of(listed, "Revision")
    for key in ("Id", "Revision", "ShortId"):
        short = last.get(key)
        if isinstance(short, str) and len(short) >= 7:
            full = {one for one in (short, *revisions) if one.startswith(short) and _is_commit(one)}
            if len(full) == 1:
                return full.pop()
    return ""


def _is_commit(text: str) -> bool:
    return len(text) == 40 and set(text) <= set("0123456789abcdef")


def _quoted(text: str, safe: str = "") -> str:
    from urllib.parse import quote

    return quote(text, safe=safe)
