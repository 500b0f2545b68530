"""A Hugging Face on the loopback: the endpoints that listing and fetching need, as the real hub answers them.

    with HuggingFaceHub() as hub:
        repository = hub.add("org/repo", {"model-Q4_K_M.gguf": data, "README.md": b"..."})
        repository.gated = True
        ... HF_ENDPOINT=hub.url ...

``huggingface_hub`` itself is pointed at it in test_huggingface.py, which shows that it is faithful enough.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, unquote

from hubs.server import HubServer, Reply, Seen, page_reply

LFS_FROM = 1000  # bytes; the real hub goes by the repository's .gitattributes


@dataclass
class Repository:
    """A repository as it is now; ``commits`` holds all of its states."""

    name: str
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)  # branch or tag -> commit
    private: bool = False
    gated: bool = False  # only accounts in ``members`` may fetch
    hidden: bool = False  # gated so that not even the list is shown
    disabled: bool = False
    members: set[str] = field(default_factory=set)
    moved_to: str = ""
    sums: dict[str, str] = field(default_factory=dict)  # path -> a sum that is published in place of the true one
    extra: list[object] = field(default_factory=list)  # entries that are listed besides

    def commit(self, files: Mapping[str, bytes], ref: str = "main") -> str:
        """A new state of a branch."""
        seed = json.dumps([self.name, ref, sorted((path, len(data)) for path, data in files.items()),
                           len(self.commits)]).encode()  # fmt: skip
        sha = hashlib.sha1(seed, usedforsecurity=False).hexdigest()
        self.commits[sha] = dict(files)
        self.refs[ref] = sha
        return sha

    def resolve(self, revision: str) -> str | None:
        """The commit that a revision means."""
        return self.refs.get(revision) or (revision if revision in self.commits else None)


class HuggingFaceHub(HubServer):
    """``tokens`` -> the account that each belongs to. ``per_page`` entries are listed at a time."""

    def __init__(self, host: str = "127.0.0.1", per_page: int = 1000) -> None:
        super().__init__(host)
        self.repositories: dict[str, Repository] = {}
        self.tokens: dict[str, str] = {}
        self.per_page = per_page
        self.next_base = ""  # what the links to further pages begin with; the hub's own address where it is empty
        self.storage: HubServer | None = None  # another host, to which large files are redirected
        self.route("/", self.reply)

    def add(self, name: str, files: Mapping[str, bytes], **traits: bool) -> Repository:
        """A repository with one commit on ``main``."""
        repository = Repository(name, **traits)  # type: ignore[arg-type]
        repository.commit(files)
        self.repositories[name] = repository
        return repository

    # Answers.

    def reply(self, seen: Seen) -> Reply:
        """What the hub says."""
        token = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if token and token not in self.tokens:
            return _failure(401, "", "Invalid credentials in Authorization header")
        account = self.tokens.get(token, "")
        parts = [unquote(part) for part in seen.path.strip("/").split("/")]
        if parts == ["api", "models"]:
            return self._search(seen, account)
        if parts[:2] == ["api", "models"] and len(parts) >= 4:
            return self._api(seen, account, "/".join(parts[2:4]), parts[4:])
        if parts == ["api", "whoami-v2"]:
            return _json({"name": account, "type": "user"}) if account else _failure(401, "", "Invalid username")
        if len(parts) > 4 and parts[2] in ("resolve", "raw"):
            return self._resolve(seen, account, "/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        return _failure(404, "", "Not found")

    def _visible(self, name: str, account: str) -> Repository | Reply:
        repository = self.repositories.get(name)
        if repository is None or (repository.private and account not in repository.members):
            return (
                _failure(404, "RepoNotFound", "Repository not found")
                if account
                else _failure(401, "RepoNotFound", "Invalid username or password.")
            )
        if repository.disabled:
            return _failure(403, "", "Access to this resource is disabled.")
        return repository

    def _refused(self, repository: Repository, account: str) -> Reply | None:
        if not repository.gated or account in repository.members:
            return None
        if account:
            return _failure(403, "GatedRepo", f"Access to model {repository.name} is restricted and you are not "
                            "in the authorized list.")  # fmt: skip
        return _failure(401, "GatedRepo", f"Access to model {repository.name} is restricted. You must have access to "
                        "it and be authenticated to access it. Please log in.")  # fmt: skip

    def _api(self, seen: Seen, account: str, name: str, rest: list[str]) -> Reply:
        repository = self._visible(name, account)
        if isinstance(repository, Reply):
            return repository
        if repository.moved_to:
            target = "/".join(quote(part, safe="") for part in ("api/models", repository.moved_to, *rest))
            return Reply(307, b"", {"Location": "/" + target.replace("%2F", "/")})
        refused = self._refused(repository, account) if repository.hidden else None
        if refused is not None:
            return refused
        if rest == ["refs"]:
            branches = [{"name": ref, "ref": f"refs/heads/{ref}", "targetCommit": commit}
                        for ref, commit in repository.refs.items()]  # fmt: skip
            return _json({"branches": branches, "tags": [], "converts": []})
        if not rest or rest[0] == "revision":
            return self._about(seen, repository, rest[1] if rest else "main")
        if rest[0] == "tree" and len(rest) > 1:
            return self._tree(seen, repository, rest[1], "/".join(rest[2:]))
        return _failure(404, "", "Not found")

    def _about(self, seen: Seen, repository: Repository, revision: str) -> Reply:
        commit = repository.resolve(revision)
        if commit is None:
            return _failure(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return _json({
            "_id": "0" * 24, "id": repository.name, "modelId": repository.name, "sha": commit, "tags": [],
            "private": repository.private, "gated": "manual" if repository.gated else False, "disabled": False,
            "lastModified": "2026-11-01T00:00:00.000Z", "createdAt": "2026-11-01T00:00:00.000Z",
            "downloads": 1, "likes": 0,
            "siblings": [{"rfilename": path} for path in sorted(repository.commits[commit])],
        })  # fmt: skip

    def _tree(self, seen: Seen, repository: Repository, revision: str, folder: str) -> Reply:
        commit = repository.resolve(revision)
        if commit is None:
            return _failure(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        query = parse_qs(seen.query)
        files = {path: data for path, data in repository.commits[commit].items()
                 if not folder or path.startswith(f"{folder}/")}  # fmt: skip
        if folder and not files:
            return _failure(404, "EntryNotFound", f"{folder} does not exist on {revision}")
        entries: list[object] = [_entry(repository, path, data) for path, data in sorted(files.items())]
        folders = sorted({path.rsplit("/", depth)[0] for path in files for depth in range(1, path.count("/") + 1)})
        entries += [{"type": "directory", "oid": "1" * 40, "size": 0, "path": path} for path in folders]
        entries += repository.extra
        if query.get("recursive", ["false"])[0].lower() not in ("true", "1"):
            entries = [entry for entry in entries if not isinstance(entry, dict)
                       or "/" not in str(entry["path"])[len(folder) + 1 if folder else 0 :]]  # fmt: skip
        begin = int(query.get("cursor", ["0"])[0])
        page = entries[begin : begin + self.per_page]
        reply = _json(page)
        if begin + self.per_page < len(entries):
            kept = "&".join(part for part in seen.query.split("&") if part and not part.startswith("cursor="))
            base = self.next_base or self.url
            reply.headers["Link"] = f'<{base}{seen.path}?{kept}&cursor={begin + self.per_page}>; rel="next"'
        return reply

    def _search(self, seen: Seen, account: str) -> Reply:
        query = {key: values[0] for key, values in parse_qs(seen.query).items()}
        found = [
            {"id": name, "modelId": name, "private": one.private, "downloads": 1, "likes": 0, "tags": []}
            for name, one in self.repositories.items()
            if query.get("author", "") in ("", name.partition("/")[0])
            and query.get("search", "").lower() in name.lower()
            and not (one.private and account not in one.members)
        ]
        return _json(found[: int(query.get("limit", "1000"))])

    def _resolve(self, seen: Seen, account: str, name: str, revision: str, path: str) -> Reply:
        repository = self._visible(name, account)
        if isinstance(repository, Reply):
            return repository
        if repository.moved_to:
            return Reply(307, b"", {"Location": f"/{repository.moved_to}/resolve/{revision}/{quote(path)}"})
        refused = self._refused(repository, account)
        if refused is not None:
            return refused
        commit = repository.resolve(revision)
        if commit is None:
            return _failure(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        data = repository.commits[commit].get(path)
        if data is None:
            return _failure(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        if len(data) < LFS_FROM:
            etag = f'"{_git_sum(data)}"'
            return page_reply(seen, data, {"ETag": etag, "X-Repo-Commit": commit})
        total = hashlib.sha256(data).hexdigest()
        linked = {"X-Repo-Commit": commit, "X-Linked-Size": str(len(data)), "X-Linked-ETag": f'"{total}"'}
        if self.storage is not None:
            stored = f"/{name}/{total}"
            if stored not in self.storage.pages:
                self.storage.put(stored, data, etag=f'"{total}"')
            return Reply(302, b"", {**linked, "Location": f"{self.storage.url}{stored}?signature=secret"})
        return page_reply(seen, data, {"ETag": f'"{total}"', **linked})


def _entry(repository: Repository, path: str, data: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "oid": _git_sum(data), "size": len(data), "path": path}
    if len(data) >= LFS_FROM:
        total = repository.sums.get(path) or hashlib.sha256(data).hexdigest()
        entry["lfs"] = {"oid": total, "size": len(data), "pointerSize": 130}
    return entry


def _git_sum(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _json(content: object) -> Reply:
    return Reply(200, json.dumps(content).encode(), {"Content-Type": "application/json; charset=utf-8"})


def _failure(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    told = {"X-Error-Code": code} if code else {}
    all_headers = {"Content-Type": "application/json", **told, "X-Error-Message": message, **(headers or {})}
    return Reply(status, json.dumps({"error": message}).encode(), all_headers)
