"""A ModelScope on the loopback: the endpoints that listing and fetching need, as the real hub answers them.

Its ways, as they have been seen: a revision that does not exist has no files (``null``) and HTTP 200; what does not
exist is HTTP 404 with a code of its own; ``LatestCommitter`` has the short form of the commit only; small files come
with HTTP 200 and a Content-Range where a range was asked for, large ones are redirected to another host.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

from hubs.server import HubServer, Reply, Seen, page_reply

LFS_FROM = 1000  # bytes


@dataclass
class Repository:
    """A repository: the files of each branch or tag."""

    name: str
    revisions: dict[str, dict[str, bytes]]
    private: bool = False
    members: set[str] = field(default_factory=set)
    extra: list[object] = field(default_factory=list)  # entries that are listed besides

    def commit(self, revision: str = "master") -> str:
        """The last commit of a branch or tag."""
        return hashlib.sha1(f"{self.name} {revision}".encode(), usedforsecurity=False).hexdigest()

    def files(self, revision: str) -> dict[str, bytes] | None:
        """The files of a revision; a commit is one as well."""
        by_commit = {self.commit(name): files for name, files in self.revisions.items()}
        return self.revisions.get(revision, by_commit.get(revision))


class ModelScopeHub(HubServer):
    """``tokens`` -> the account that each belongs to."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__(host)
        self.repositories: dict[str, Repository] = {}
        self.tokens: dict[str, str] = {}
        self.storage: HubServer | None = None
        self.failure: tuple[int, int, str] | None = None  # status, code and message in place of the next answer
        self.route("/", self.reply)

    def add(self, name: str, files: Mapping[str, bytes]) -> Repository:
        """A repository with files on ``master``."""
        self.repositories[name] = Repository(name, {"master": dict(files)})
        return self.repositories[name]

    def reply(self, seen: Seen) -> Reply:
        """What the hub says."""
        if self.failure is not None:
            status, code, message = self.failure
            self.failure = None
            return _envelope(None, status, code, message)
        account = self.tokens.get(seen.headers.get("authorization", "").removeprefix("Bearer "), "")
        parts = [unquote(part) for part in seen.path.strip("/").split("/")]
        if parts == ["api", "v1", "models"] and seen.method == "PUT":
            return self._search(seen, account)
        if parts[:3] == ["api", "v1", "models"] and len(parts) >= 6:
            return self._api(seen, account, "/".join(parts[3:5]), parts[5:])
        if parts[0] == "models" and parts[3:4] == ["resolve"] and len(parts) > 5:
            return self._file(seen, account, "/".join(parts[1:3]), parts[4], "/".join(parts[5:]))
        return Reply(404, b"404 page not found")

    def _visible(self, name: str, account: str) -> Repository | Reply:
        repository = self.repositories.get(name)
        if repository is None:
            return _envelope(None, 404, 10010205001, "获取模型信息失败，信息：record not found")
        if repository.private and account not in repository.members:
            return _envelope(None, 403, 10010205002, "forbidden")
        return repository

    def _api(self, seen: Seen, account: str, name: str, rest: list[str]) -> Reply:
        repository = self._visible(name, account)
        if isinstance(repository, Reply):
            return repository
        query = parse_qs(seen.query)
        if rest == ["revisions"]:
            return _envelope({"RevisionMap": {"Branches": [{"Revision": name} for name in repository.revisions],
                                              "Tags": None}})  # fmt: skip
        if rest == ["repo"]:
            return self._file(seen, account, name, query.get("Revision", ["master"])[0], query["FilePath"][0])
        if rest != ["repo", "files"]:
            return Reply(404, b"404 page not found")
        revision = query.get("Revision", ["master"])[0]
        files = repository.files(revision)
        if files is None:
            return _envelope({"Files": None, "IsVisual": 0, "LatestCommitter": None})
        commit = repository.commit(revision if revision in repository.revisions else "master")
        folders = sorted({path.rsplit("/", depth)[0] for path in files for depth in range(1, path.count("/") + 1)})
        entries: list[object] = [
            {"Name": path.rpartition("/")[2], "Path": path, "Type": "tree", "Size": 0, "Sha256": "", "Revision": commit}
            for path in folders
        ]
        for number, (path, data) in enumerate(sorted(files.items())):
            entries.append({
                "Name": path.rpartition("/")[2], "Path": path, "Type": "blob", "Size": len(data), "Mode": "33188",
                "Sha256": hashlib.sha256(data).hexdigest(), "IsLFS": len(data) >= LFS_FROM, "CommittedDate": 1790000000,
                "Revision": "0" * 40 if number else commit,
            })  # fmt: skip
        if query.get("Recursive", ["false"])[0].lower() not in ("true", "1"):
            entries = [entry for entry in entries if isinstance(entry, dict) and "/" not in str(entry["Path"])]
        last = {"Id": "", "ShortId": commit[:8], "CommitterName": "somebody", "Message": "Upload"}
        return _envelope({"Files": entries + repository.extra, "IsVisual": 0, "LatestCommitter": last})

    def _search(self, seen: Seen, account: str) -> Reply:
        asked = json.loads(seen.body)
        found = [
            {"Path": name.partition("/")[0], "Name": name.partition("/")[2], "Downloads": 1}
            for name, one in self.repositories.items()
            if name.partition("/")[0] == asked["Path"] and not (one.private and account not in one.members)
        ]
        return _envelope({"Models": found[: asked["PageSize"]] or None, "TotalCount": len(found)})

    def _file(self, seen: Seen, account: str, name: str, revision: str, path: str) -> Reply:
        repository = self._visible(name, account)
        if isinstance(repository, Reply):
            return repository
        data = (repository.files(revision) or {}).get(path)
        if data is None:
            return _envelope(None, 404, 10010205001, "file not found")
        etag = f'"{hashlib.sha256(data).hexdigest()}"'
        if len(data) < LFS_FROM:
            reply = page_reply(seen, data, {"ETag": etag})
            reply.status = 200 if reply.status == 206 else reply.status
            return reply
        if self.storage is not None:
            stored = f"/{name}/{etag[1:-1]}"
            if stored not in self.storage.pages:
                self.storage.put(stored, data, etag=etag)
            return Reply(302, b"", {"Location": f"{self.storage.url}{stored}?Signature=secret"})
        return page_reply(seen, data, {"ETag": etag})


def _envelope(data: object, status: int = 200, code: int = 200, message: str = "success") -> Reply:
    content = {"Code": code, "Data": data, "Message": message, "RequestId": "1", "Success": code == 200}
    return Reply(status, json.dumps(content).encode(), {"Content-Type": "application/json; charset=utf-8"})
