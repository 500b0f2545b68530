"""Putting blobs and manifests into a registry: what is there is not sent again, what was cut off goes on."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.models import failures
from ramalama_like.models.failures import Passing
from ramalama_like.models.pieces import Pieces
from ramalama_like.models.registry import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ramalama_like.models.client import Answer
    from ramalama_like.models.registry import Registry

SMALL_BYTES = 1 << 20  # sent in one request together with its digest
_OCTETS = "application/octet-stream"


def put_blob(registry: Registry, pieces: Pieces, digest: str, *, mount_from: str = "") -> bool:
    """Have a blob in the repository; whether it had to be sent. Raises AppError.

    ``mount_from`` is another repository of the same registry that has the blob already. A connection that is cut is
    taken up where the registry says that it has come to.
    """
    if has_blob(registry, digest):
        return False
    opened = _mounted(registry, digest, mount_from) if mount_from else None
    if opened is not None and opened.status == 201:
        return False
    location = _location(registry, opened) if opened is not None else _opened(registry)
    begin = 0
    if pieces.size > SMALL_BYTES:
        location = _send(registry, location, pieces)
        begin = pieces.size
    pieces.limit(begin, pieces.size)
    rest = b"".join(iter(pieces.read, b""))
    closing = f"{location}{'&' if '?' in location else '?'}digest={digest}"
    answer = registry.ask(closing, method="PUT", body=rest, headers={"Content-Type": _OCTETS}, allow=(400,))
    if answer.status == 400:
        raise failures.nonsense(closing, "word that what arrived is not what was sent")
    return True


def has_blob(registry: Registry, digest: str) -> bool:
    """Whether the repository has a blob."""
    answer = registry.ask(f"{registry.repository}/blobs/{digest}", method="HEAD", allow=(404, 307, 302))
    return answer.status != 404


def put_manifest(registry: Registry, wanted: str, body: bytes, media_type: str) -> str:
    """Give a manifest a tag (or put it by its digest); its digest. Raises AppError."""
    answer = registry.ask(f"{registry.repository}/manifests/{wanted}", method="PUT", body=body,
                          headers={"Content-Type": media_type}, allow=(400,))  # fmt: skip
    if answer.status == 400:
        raise ValueProblem(f"{registry.name}: {registry.host} does not take artifacts of this kind (HTTP 400)",
                           "push an image in place of an artifact: --type raw")  # fmt: skip
    digest = digest_of(body)
    told = answer.headers.get("docker-content-digest", digest)
    if told != digest:
        raise failures.nonsense(answer.url, "the digest of another manifest")
    return digest


def _mounted(registry: Registry, digest: str, repository: str) -> Answer:
    return registry.ask(f"{registry.repository}/blobs/uploads/?mount={digest}&from={repository}", method="POST",
                        headers={"Content-Length": "0"})  # fmt: skip


def _opened(registry: Registry) -> str:
    """The address of a new upload."""
    path = f"{registry.repository}/blobs/uploads/"
    return _location(registry, registry.ask(path, method="POST", headers={"Content-Length": "0"}))


def _send(registry: Registry, location: str, pieces: Pieces) -> str:
    """Send everything, in one request if it goes well; where the upload goes on."""
    begin, attempt = 0, 0
    while begin < pieces.size:
        pieces.limit(begin, pieces.size)
        headers = {"Content-Length": str(pieces.size - begin), "Content-Type": _OCTETS}
        if begin:
            headers["Content-Range"] = f"{begin}-{pieces.size - 1}"
        try:
            return _patch(registry, location, pieces, headers)
        except Passing as problem:
            # A registry that is still there knows how much of it arrived.
            registry.client.wait_before(attempt, location, problem)
            location, arrived = _arrived(registry, location)
            attempt = 0 if arrived > begin else attempt + 1
            begin = arrived
            if not begin:
                location = _opened(registry)
    return location


def _patch(registry: Registry, location: str, pieces: Pieces, headers: Mapping[str, str]) -> str:
    with registry.client.stream(location, method="PATCH", headers=headers, authorization=registry.keep_fresh(),
                                body=pieces, retries=0) as stream:  # type: ignore[arg-type]  # fmt: skip
        stream.read_all(1 << 20)
        return _join(registry, location, stream.headers.get("location", ""))


def _arrived(registry: Registry, location: str) -> tuple[str, int]:
    """Where an upload goes on, and how many bytes of it the registry has; 0: it must begin anew."""
    answer = registry.ask(location, allow=(404,))
    if answer.status == 404:
        return location, 0
    first, _, last = answer.headers.get("range", "").removeprefix("bytes=").partition("-")
    count = int(last) + 1 if first == "0" and last.isascii() and last.isdigit() and len(last) < 19 else 0
    # "0-0" is what registries say for one byte, and for none.
    return _join(registry, location, answer.headers.get("location", "")), 0 if count == 1 else count


def _location(registry: Registry, answer: Answer) -> str:
    location = answer.headers.get("location", "")
    if not location:
        raise failures.nonsense(answer.url, "no address for the upload")
    return _join(registry, answer.url, location)


def _join(registry: Registry, url: str, location: str) -> str:
    """The next address of an upload. It must stay with the registry, which alone may see the token."""
    from urllib.parse import urljoin

    joined = urljoin(url, location)
    if not joined.startswith(f"{registry.base}/"):
        # A registry behind a proxy may not know that it is reached by https.
        if joined.startswith("http://") and joined.replace("http://", "https://", 1).startswith(f"{registry.base}/"):
            return joined.replace("http://", "https://", 1)
        raise failures.nonsense(url, "an address for the upload that is not its own")
    return joined
