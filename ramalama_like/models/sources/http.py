"""Models on any web server: the file behind an address, and every part of a split one."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import MODEL, SHARD, Listing, RemoteFile
from ramalama_like.models.file_names import check_name
from ramalama_like.models.sources.file import split_part
from ramalama_like.reference import plain_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ramalama_like.models.access import Access
    from ramalama_like.models.client import Client
    from ramalama_like.reference import Reference

MOST_PARTS = 1000
# A server that does not know HEAD, or does not like it, may still send the file.
_NO_HEAD = (400, 403, 404, 405, 501)


def find(reference: Reference, client: Client, access: Access) -> Listing:
    """The file at an http or https address. Raises AppError where one of its parts is not there."""
    url = f"{reference.transport}://{reference.name}"
    name = plain_url(url)
    files = tuple(_find_file(part, client, SHARD if number else MODEL) for number, part in enumerate(_parts(url)))
    return Listing(name, files)


def _parts(url: str) -> list[str]:
    """The addresses of all parts of a split model; only the one where it is not split."""
    address, mark, query = url.partition("#")[0].partition("?")
    split = split_part(address)
    if split is None:
        return [address + mark + query]
    stem, _, count = split
    if count > MOST_PARTS:
        raise ValueProblem(f"{plain_url(url)}: has {count} parts, more than {MOST_PARTS}", "check the address")
    ending = address[-5:]
    return [f"{stem}-{number:05}-of-{count:05}{ending}{mark}{query}" for number in range(1, count + 1)]


def _find_file(url: str, client: Client, role: str) -> RemoteFile:
    from urllib.parse import unquote

    plain = plain_url(url)
    path = check_name(unquote(plain.partition("://")[2].partition("/")[2].rpartition("/")[2]), plain)
    size, headers = _size(url, client)
    return RemoteFile(path, url, size, published_sum(headers), role)


def _size(url: str, client: Client) -> tuple[int, Mapping[str, str]]:
    """The size of a file (-1: not told), and the headers that came with it."""
    answer = client.ask(url, method="HEAD", allow=_NO_HEAD)
    if answer.status not in _NO_HEAD:
        size = _number(answer.headers.get("content-length", ""))
        if size >= 0 and "content-encoding" not in answer.headers:
            return size, answer.headers
    with client.stream(url, headers={"Range": "bytes=0-0"}, allow=(416,)) as stream:
        total = stream.headers.get("content-range", "").rpartition("/")[2]
        return (stream.left if stream.status == 200 else _number(total)), stream.headers


def published_sum(headers: Mapping[str, str]) -> str:
    """The SHA-256 that a server publishes of the whole file; empty where it does not.

    Repr-Digest is of RFC 9530, Digest of RFC 3230 before it; X-Checksum-Sha256 is what artifact stores send.
    """
    from base64 import b64decode
    from binascii import Error

    plain = headers.get("x-checksum-sha256", "").strip().lower()
    if len(plain) == 64 and set(plain) <= set("0123456789abcdef"):
        return plain
    for part in f"{headers.get('repr-digest', '')},{headers.get('digest', '')}".split(","):
        name, _, text = part.strip().partition("=")
        if name.lower() == "sha-256":
            try:
                found = b64decode(text.strip(":"), validate=True)
            except Error:
                continue
            if len(found) == 32:
                return found.hex()
    return ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else -1
