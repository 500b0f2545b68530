"""Registries that speak the OCI distribution protocol: manifests and blobs, fetched and put.

Docker Hub, quay.io, GitHub's, those of the clouds, Ollama's, and any ``docker-registry`` of one's own. Who asks is told
by the files in which the engines keep their passwords (``credentials.py``), in the way that the registry demands: by
a token of its token service, or by user and password. What a digest names is compared with it, always.
"""

from __future__ import annotations

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.models import failures
from ramalama_like.models.answers import size_of
from ramalama_like.models.challenge import parse_challenges
from ramalama_like.models.client import split_url
from ramalama_like.models.credentials import find_credentials
from ramalama_like.models.proxies import is_loopback
from ramalama_like.models.registry_names import is_digest
from ramalama_like.reference import DOCKER_HUB
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from ramalama_like.models.access import Access
    from ramalama_like.models.challenge import Challenge
    from ramalama_like.models.client import Answer, Client
    from ramalama_like.models.credentials import Credentials

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
INDEXES = (OCI_INDEX, DOCKER_INDEX)
MOST_MANIFEST_BYTES = 4 << 20  # registries take no larger ones
CLIENT_ID = "ramalama-like"


@value
class Manifest:
    """A manifest, as it came and as it was understood."""

    digest: str
    media_type: str
    document: Mapping[str, Any]


@value
class Layer:
    """One of the blobs that a manifest lists."""

    media_type: str
    digest: str
    size_bytes: int
    annotations: Mapping[str, str] = {}


MOST_LAYERS = 1000


class Registry:
    """One repository of a registry, for one command. ``actions``: pull, or pull,push."""

    def __init__(self, client: Client, access: Access, host: str, repository: str, actions: str = "pull",
                 credentials: Credentials | None = None) -> None:  # fmt: skip
        self.client = client
        self.host = host
        self.repository = repository
        self.actions = actions
        self._access = access
        self._credentials = credentials
        self._base = ""
        self._authorization = ""
        self._challenge: Challenge | None = None

    @property
    def name(self) -> str:
        """The repository with its registry, for people."""
        return f"{self.host}/{self.repository}" if self.repository else self.host

    @property
    def base(self) -> str:
        """Scheme and host of the registry's API. Looks for the scheme where it may be http."""
        if not self._base:
            self._base = self._find_base()
        return self._base

    @property
    def authorization(self) -> str:
        """The text of the header that the registry wanted to see last; empty where it wanted none."""
        return self._authorization

    @property
    def credentials(self) -> Credentials:
        """The user's, for this repository."""
        if self._credentials is None:
            self._credentials = find_credentials(self.host, self.repository, self._access)
        return self._credentials

    def use_base(self, base: str) -> None:
        """Ask at this address (scheme and host), whatever the host's name."""
        self._base = base

    # Asking.

    def ask(self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b"",
            most_bytes: int = MOST_MANIFEST_BYTES, allow: Collection[int] = ()) -> Answer:  # fmt: skip
        """Ask for something below /v2/ (or at a whole address of this registry), saying who asks if that is wanted.

        Raises AppError for every status but 2xx and those in ``allow``.
        """
        url = path if "://" in path else f"{self.base}/v2/{path}"
        for attempt in range(2):
            try:
                answer = self.client.ask(
                    url, method=method, headers=headers, authorization=self._authorization, body=body,
                    most_bytes=most_bytes, allow=(*allow, 400, 401, 403, 404, 405, 416),
                )  # fmt: skip
            except failures.Insecure as problem:
                raise _trusting(problem) from None
            if answer.status != 401 or 401 in allow:
                break
            if split_url(answer.url)[0] != split_url(self.base)[0]:
                # Whoever a redirection leads to could name a service of its own, and be told the password there.
                raise failures.asks_elsewhere(url, answer.url)
            if attempt == 1 or not self._answer_challenge(answer):
                break
        if not 200 <= answer.status < 300 and answer.status not in allow:
            raise self._refused(answer)
        return answer

    def sign_in(self) -> None:
        """Show the credentials to the registry. Raises AppError where they are not accepted."""
        self.ask("", allow=(404,))  # a few registries have no page there, but they check who asks first

    def manifest(self, wanted: str) -> Manifest:
        """The manifest of a tag or digest; of an index, the one for this machine."""
        found = self._manifest(wanted)
        if found.media_type in INDEXES:
            chosen = choose_manifest(found, architecture())
            if chosen is None:
                raise ValueProblem(f"{self.name}: {wanted} names a list that holds no image", "check the name")
            found = self._manifest(chosen)
            if found.media_type in INDEXES:
                raise ValueProblem(f"{self.name}: {wanted} names a list of lists", "name one of their digests")
        return found

    def _manifest(self, wanted: str) -> Manifest:
        import json

        kinds = ", ".join((OCI_MANIFEST, DOCKER_MANIFEST, *INDEXES))
        answer = self.ask(f"{self.repository}/manifests/{wanted}", headers={"Accept": kinds}, allow=(404,))
        if answer.status == 404:
            raise self._no_manifest(answer, wanted)
        digest = digest_of(answer.body)
        for told in (wanted, answer.headers.get("docker-content-digest", "")):
            if is_digest(told) and told != digest:
                raise failures.nonsense(answer.url, "another manifest than its digest says")
        try:
            document = json.loads(answer.body)
            media_type = document.get("mediaType") or answer.headers.get("content-type", "").partition(";")[0].strip()
        except (ValueError, AttributeError, RecursionError):
            raise failures.nonsense(answer.url, "something else than a manifest") from None
        if document.get("schemaVersion") == 1:
            raise ValueProblem(f"{self.name}: {wanted} is an image of a kind that docker gave up in 2017",
                               "push it anew with a newer program")  # fmt: skip
        if "manifests" in document and media_type not in INDEXES:
            media_type = OCI_INDEX
        return Manifest(digest, str(media_type), document)

    def blob_url(self, digest: str) -> str:
        """The address of a blob."""
        return f"{self.base}/v2/{self.repository}/blobs/{digest}"

    def blob(self, digest: str, most_bytes: int = MOST_MANIFEST_BYTES) -> bytes:
        """A small blob: a configuration, a template."""
        answer = self.ask(f"{self.repository}/blobs/{digest}", most_bytes=most_bytes)
        if digest_of(answer.body) != digest:
            raise failures.wrong_hash(answer.url, digest_of(answer.body)[7:], digest[7:])
        return answer.body

    def tags(self) -> list[str]:
        """Tags of the repository, as many as one answer holds; none where the registry does not tell."""
        return self._texts(f"{self.repository}/tags/list?n=1000", "tags")

    def _repositories(self) -> list[str]:
        """Repositories of a registry that is small enough to tell them all."""
        return self._texts("_catalog?n=1000", "repositories")

    def _texts(self, path: str, key: str) -> list[str]:
        import json

        try:
            answer = self.ask(path, allow=(400, 401, 403, 404, 405))
            found = json.loads(answer.body).get(key) if answer.status == 200 else []
        except (ValueError, AttributeError, RecursionError, AppError):
            return []  # only asked for so that an error can say more
        return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []

    def keep_fresh(self) -> str:
        """The authorization for the downloads of blobs; the client gets a new token when this one has run out."""
        shown = self._authorization
        if shown.startswith("Bearer ") and self._challenge is not None:
            self.client.keep_fresh(shown, self._renewed)
        return shown

    def _renewed(self) -> str:
        challenge = self._challenge
        return self._token(challenge) if challenge is not None else ""

    def layers(self, manifest: Manifest) -> tuple[Layer, ...]:
        """The layers of a manifest, checked. Raises AppError where one has no digest or no size."""
        listed = manifest.document.get("layers")
        if not isinstance(listed, list) or len(listed) > MOST_LAYERS:
            raise failures.nonsense(self.blob_url(manifest.digest), "a manifest without layers")
        found = []
        for layer in listed:
            entry = layer if isinstance(layer, dict) else {}
            kind, digest, size = entry.get("mediaType", ""), entry.get("digest", ""), size_of(entry.get("size"))
            if not (isinstance(kind, str) and isinstance(digest, str) and is_digest(digest)):
                raise failures.nonsense(self.blob_url(manifest.digest), "a manifest with a layer that has no digest")
            if size < 0:
                raise failures.nonsense(self.blob_url(digest), "a manifest that does not tell the size of this layer")
            notes = entry.get("annotations")
            texts = {str(name): str(text) for name, text in notes.items()} if isinstance(notes, dict) else {}
            found.append(Layer(kind, digest, size, texts))
        return tuple(found)

    # Who asks.

    def _find_base(self) -> str:
        host = "registry-1.docker.io" if self.host == DOCKER_HUB else self.host
        secure, plain = f"https://{host}", f"http://{host}"
        if self._access.verify and not is_loopback(host_alone(self.host)):
            return secure
        # Like docker, which takes a registry on this machine itself as it is.
        try:
            self.client.ask(f"{secure}/v2/", allow=range(200, 500))
        except AppError as problem:
            if isinstance(problem, failures.Insecure) and problem.certificate:
                raise _trusting(problem) from None
            if self.client.offline:
                raise
            try:
                self.client.ask(f"{plain}/v2/", allow=range(200, 500))
            except AppError:
                raise problem from None
            return plain
        return secure

    def _answer_challenge(self, answer: Answer) -> bool:
        """Get what a 401 asks for; whether there is something new to be shown."""
        known = {each.scheme: each for each in parse_challenges(answer.headers.get("www-authenticate", ""))}
        before = self._authorization
        if "bearer" in known:
            self._challenge = known["bearer"]
            self._authorization = self._token(known["bearer"])
        elif "basic" in known and self.credentials.user:
            self._authorization = self.credentials.basic
        return self._authorization not in ("", before)

    def _token(self, challenge: Challenge) -> str:
        import json
        from urllib.parse import urlencode

        realm = challenge.parameters.get("realm", "")
        scope = challenge.parameters.get("scope", "")
        if not realm.startswith("https://" if self.base.startswith("https://") else ("http://", "https://")):
            raise failures.nonsense(self.base, "no usable address of the service that gives tokens")
        wanted = f"repository:{self.repository}:{self.actions}"
        query = {
            "service": challenge.parameters.get("service", ""),
            "scope": scope or (wanted if self.repository else ""),
        }
        query = {name: text for name, text in query.items() if text}
        mine = self.credentials
        if mine.identity_token:
            form = {
                "grant_type": "refresh_token",
                "client_id": CLIENT_ID,
                "refresh_token": mine.identity_token,
                **query,
            }
            answer = self.client.ask(
                realm, method="POST", body=urlencode(form).encode(), most_bytes=1 << 20, allow=(400, 401, 403),
                headers={"Content-Type": "application/x-www-form-urlencoded"},
            )  # fmt: skip
        else:
            mark = "&" if "?" in realm else "?"
            answer = self.client.ask(f"{realm}{mark}{urlencode(query)}", authorization=mine.basic if mine else "",
                                     most_bytes=1 << 20, allow=(400, 401, 403))  # fmt: skip
        if answer.status != 200:
            raise self._refused(answer)
        try:
            document = json.loads(answer.body)
            token = document.get("token") or document.get("access_token")
        except (ValueError, AttributeError, RecursionError):
            token = None
        if not isinstance(token, str) or not token.isprintable() or " " in token:
            raise failures.nonsense(realm, "no token")
        return f"Bearer {token}"

    # Words.

    def _refused(self, answer: Answer) -> AppError:
        said = _reason(answer.body)
        status, mine = answer.status, self.credentials
        words = f": {said}" if said else ""
        if status == 401 and mine and not self.repository:
            return ValueProblem(f"{self.host} does not accept this user and password (HTTP 401{words})",
                                "check them; some registries want a token in place of the password")  # fmt: skip
        if status == 401 and mine:
            return ValueProblem(
                f"{self.name}: {self.host} does not accept the user and password from {mine.origin} (HTTP 401{words})",
                f"log in again with: ramalama-like login {self.host}",
            )
        if status == 401:
            hint = f"log in with: ramalama-like login {self.host}"
            if mine.origin:
                hint = f"{mine.origin}: {hint}"
            return ValueProblem(f"{self.name}: {self.host} wants to know who asks, or there is nothing of this name "
                                f"(HTTP 401{words})", hint)  # fmt: skip
        if status == 403:
            what = "may not be written" if "push" in self.actions else "may not be read"
            who = f"by the user {mine.user}" if mine.user else "without logging in"
            hint = "use an account that may" if mine else f"log in with: ramalama-like login {self.host}"
            return ValueProblem(f"{self.name}: {what} {who} (HTTP 403{words})", hint)
        if status == 404:
            return ValueProblem(f"{self.name}: {self.host} does not have it (HTTP 404{words})", "check the name")
        return ValueProblem(f"{self.name}: {self.host} refuses (HTTP {status}{words})", "check the name")

    def _no_manifest(self, answer: Answer, wanted: str) -> ValueProblem:
        from difflib import get_close_matches

        tags = self.tags()
        if not tags:
            near = get_close_matches(self.repository, self._repositories(), 3)
            return ValueProblem(f"{self.name}: {self.host} has no {_what(wanted)} of this name (HTTP 404)",
                                f"did you mean {' or '.join(near)}?" if near else "check the name")  # fmt: skip
        near = get_close_matches(wanted, tags, 3, 0.5)
        more = f" and {len(tags) - 5} more" if len(tags) > 5 else ""
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(tags[:5])}{more}"
        return ValueProblem(f"{self.name}: it has no {_what(wanted)} (HTTP 404)",
                            hint)  # fmt: skip


def choose_manifest(index: Manifest, architecture: str) -> str | None:
    """The digest of the image in an index that fits an architecture (in Go's words), else of the first image."""
    members = index.document.get("manifests")
    images: list[tuple[str, str]] = []
    for member in members if isinstance(members, list) else ():
        if not isinstance(member, dict) or not is_digest(str(member.get("digest", ""))):
            continue
        platform = member.get("platform")
        machine = str(platform.get("architecture", "")) if isinstance(platform, dict) else ""
        # Docker puts signed statements about images into their lists, for a machine of this name.
        if machine == "unknown" and "vnd.docker.reference.type" in str(member.get("annotations", "")):
            continue
        images.append((machine, str(member["digest"])))
    fitting = [digest for machine, digest in images if machine == architecture] or [digest for _, digest in images]
    return fitting[0] if fitting else None


def digest_of(body: bytes) -> str:
    """The digest of some bytes."""
    from hashlib import sha256

    return f"sha256:{sha256(body).hexdigest()}"


def _trusting(problem: failures.Insecure) -> AppError:
    """The same problem, with the hint that helps with registries."""
    hint = "trust whoever answers with --tls-verify=false"
    if problem.certificate:
        hint = f"check the clock; name its authority in SSL_CERT_FILE, or {hint}"
    return AppError(problem.message, hint, exit_code=problem.exit_code)


def _what(wanted: str) -> str:
    return f"{'manifest' if is_digest(wanted) else 'tag'} {wanted}"


def host_alone(place: str) -> str:
    """The host of HOST:PORT."""
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place.partition(":")[0]


def architecture() -> str:
    """This machine's kind of processor, in Go's words."""
    import os

    machine = os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _reason(body: bytes) -> str:
    """What a registry says that is wrong, in one line; empty where it says nothing."""
    import json

    try:
        document = json.loads(body[: 1 << 16])
        errors = document.get("errors")
        error = errors[0] if errors else document
        said = error.get("message") or error.get("code") or error.get("details") or ""
    except (ValueError, AttributeError, RecursionError, TypeError, KeyError, IndexError):
        return ""
    words = " ".join(str(said).split())
    return words if len(words) < 160 else f"{words[:160]}…"
