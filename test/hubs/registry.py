"""A registry for tests on top of ``HubServer``: what the OCI distribution specification says, with a token service.

    with FakeRegistry() as registry:
        registry.add_blob(b"...") ; registry.add_manifest("team/demo", "v1", {...})
        registry.users = {"anna": "sesame"}      # then everybody needs a token, which these two get
        registry.expire()                        # every token that was given is refused from now on
        registry.hub.count("/v2/team/demo/blobs/sha256:...")

The real ``docker-registry`` is in test/engine; this one misbehaves on demand.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs

from hubs.server import HubServer, Reply, Seen, page_reply

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


class FakeRegistry:
    """Blobs are shared by all repositories; uploads are kept by their number."""

    def __init__(self) -> None:
        self.hub = HubServer()
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[bytes, str]] = {}  # repository, tag or digest -> body, type
        self.headers: dict[str, str] = {}  # added to answers with manifests
        self.users: dict[str, str] | None = None  # None: nobody is asked
        self.identity_tokens: set[str] = set()
        self.challenge = "bearer"  # or basic
        self.scopes: list[str] = []  # that tokens were asked for
        self.uploads: dict[str, bytearray] = {}
        self.cuts: list[int] = []  # bytes after which the next uploads are cut off
        self.mountable: set[str] = set()  # repositories
        self.forgetful = False  # every token is refused once an upload has been opened with it
        self._tokens: set[str] = set()
        self._given = 0
        self.hub.route("/v2/", self._answer)
        self.hub.route("/token", self._give_token)

    def __enter__(self) -> FakeRegistry:
        self.hub.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.hub.__exit__(kind, error, trace)

    @property
    def place(self) -> str:
        """HOST:PORT, as it stands in names."""
        return self.hub.netloc

    # Filling it.

    def add_blob(self, body: bytes) -> str:
        """Its digest."""
        self.blobs[digest_of(body)] = body
        return digest_of(body)

    def layer(self, media_type: str, body: bytes, **annotations: str) -> dict[str, Any]:
        """A blob, and what a manifest says about it; underscores in the names of annotations stand for dots."""
        notes = {name.replace("_", "."): text for name, text in annotations.items()}
        found = {"mediaType": media_type, "digest": self.add_blob(body), "size": len(body)}
        return found | ({"annotations": notes} if notes else {})

    def add_manifest(self, repository: str, tag: str, document: Mapping[str, Any], media_type: str = OCI_MANIFEST
                     ) -> str:  # fmt: skip
        """Its digest."""
        body = json.dumps(document).encode()
        for name in (tag, digest_of(body)):
            self.manifests[repository, name] = body, media_type
        return digest_of(body)

    def add_layers(self, repository: str, tag: str, *layers: Mapping[str, Any], config: bytes = b"{}",
                   config_type: str = "application/vnd.oci.image.config.v1+json", **more: str) -> str:  # fmt: skip
        """A manifest of these layers; its digest."""
        document = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, **more,
                    "config": self.layer(config_type, config), "layers": list(layers)}  # fmt: skip
        return self.add_manifest(repository, tag, document)

    def expire(self) -> None:
        """Refuse every token that was given so far."""
        self._tokens.clear()

    # Answering.

    def _give_token(self, seen: Seen) -> Reply:
        asked = parse_qs(seen.query) if seen.method == "GET" else parse_qs(seen.body.decode())
        user, password = _basic(seen.headers.get("authorization", ""))
        known = (self.users or {}).get(user) == password
        if seen.method == "POST":
            known = asked.get("refresh_token", [""])[0] in self.identity_tokens
        if not known and (user or seen.method == "POST"):
            return Reply(401, b'{"details": "incorrect username or password"}')
        self.scopes += asked.get("scope", [""])
        self._given += 1
        token = f"token-{self._given}" + ("" if known else "-anonymous")
        self._tokens.add(token)
        name = "access_token" if seen.method == "POST" else "token"
        return Reply(200, json.dumps({name: token, "expires_in": 60}).encode())

    def _answer(self, seen: Seen) -> Reply:
        refused = self._refused(seen)
        if refused is not None:
            return refused
        parts = seen.path.removeprefix("/v2/").split("/")
        if parts == [""]:
            return Reply(200, b"{}")
        if parts == ["_catalog"]:
            names = sorted({repository for repository, _ in self.manifests})
            return Reply(200, json.dumps({"repositories": names}).encode())
        if parts[-2:] == ["tags", "list"]:
            repository = "/".join(parts[:-2])
            tags = [tag for name, tag in self.manifests if name == repository and ":" not in tag]
            return Reply(200, json.dumps({"tags": tags}).encode()) if tags else _error(404, "NAME_UNKNOWN", "unknown")
        if "uploads" in parts:
            return self._upload(seen, "/".join(parts[: parts.index("uploads") - 1]), parts[-1])
        repository, kind, wanted = "/".join(parts[:-2]), parts[-2], parts[-1]
        return self._manifest(seen, repository, wanted) if kind == "manifests" else self._blob(seen, wanted)

    def _refused(self, seen: Seen) -> Reply | None:
        if self.users is None:
            return None
        shown = seen.headers.get("authorization", "")
        if self.challenge == "basic":
            user, password = _basic(shown)
            challenge = 'Basic realm="tests"'
            fine = bool(user) and self.users.get(user) == password
        else:
            scope = f',scope="repository:{seen.path.split("/blobs")[0].split("/manifests")[0][4:]}:pull"'
            challenge = f'Bearer realm="{self.hub.url}/token",service="tests"{scope if seen.path != "/v2/" else ""}'
            fine = shown.removeprefix("Bearer ") in self._tokens and not shown.endswith("-anonymous")
        if fine:
            return None
        reply = _error(401, "UNAUTHORIZED", "authentication required")
        reply.headers["WWW-Authenticate"] = challenge
        return reply

    def _manifest(self, seen: Seen, repository: str, wanted: str) -> Reply:
        if seen.method == "PUT":
            self.manifests[repository, wanted] = seen.body, seen.headers.get("content-type", "")
            self.manifests[repository, digest_of(seen.body)] = self.manifests[repository, wanted]
            return Reply(201, b"", {"Docker-Content-Digest": digest_of(seen.body)})
        found = self.manifests.get((repository, wanted))
        if found is None:
            return _error(404, "MANIFEST_UNKNOWN", "manifest unknown")
        return Reply(200, found[0], {"Content-Type": found[1], **self.headers})

    def _blob(self, seen: Seen, digest: str) -> Reply:
        if digest not in self.blobs:
            return _error(404, "BLOB_UNKNOWN", "blob unknown")
        return page_reply(seen, self.blobs[digest], {"ETag": f'"{digest}"'})

    def _upload(self, seen: Seen, repository: str, number: str) -> Reply:
        asked = parse_qs(seen.query)
        if seen.method == "POST":
            if asked.get("from", [""])[0] in self.mountable and asked["mount"][0] in self.blobs:
                return Reply(201, b"", {"Location": f"/v2/{repository}/blobs/{asked['mount'][0]}"})
            number = str(len(self.uploads))
            if self.forgetful:
                self.expire()
            self.uploads[number] = bytearray()
            return Reply(202, b"", {"Location": f"/v2/{repository}/blobs/uploads/{number}?state=0"})
        data = self.uploads[number]
        if seen.method == "PATCH" and self.cuts:
            data += seen.body[: self.cuts.pop(0)]
            return Reply(raw=b"")
        data += seen.body
        headers = {"Location": f"/v2/{repository}/blobs/uploads/{number}?state={len(data)}",
                   "Range": f"0-{max(0, len(data) - 1)}"}  # fmt: skip
        if seen.method != "PUT":
            return Reply(204 if seen.method == "GET" else 202, b"", headers)
        if digest_of(bytes(data)) != asked["digest"][0]:
            return _error(400, "DIGEST_INVALID", "provided digest did not match uploaded content")
        self.add_blob(bytes(data))
        return Reply(201, b"", {"Location": f"/v2/{repository}/blobs/{asked['digest'][0]}"})


def _error(status: int, code: str, message: str) -> Reply:
    return Reply(status, json.dumps({"errors": [{"code": code, "message": message}]}).encode())


def _basic(header: str) -> tuple[str, str]:
    kind, _, text = header.partition(" ")
    if kind != "Basic":
        return "", ""
    user, _, password = base64.b64decode(text).decode().partition(":")
    return user, password
