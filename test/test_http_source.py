"""Models on any web server."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator

import pytest
from hubs.server import HubServer, header, redirect, status

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import Listing, RemoteFile
from ramalama_like.models.access import Access
from ramalama_like.models.client import Client
from ramalama_like.models.sources import http
from ramalama_like.reference import parse_reference

SUM = hashlib.sha256(b"abc")


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A server that offers nothing yet."""
    with HubServer() as server:
        yield server


def find(url: str) -> Listing:
    """What is offered at an address."""
    with Client(rest=lambda seconds: None) as client:
        return http.find(parse_reference(url), client, Access())


def test_a_file(hub: HubServer) -> None:
    url = hub.put("/models/tiny%20one.gguf", b"abc")
    assert find(f"{url}?download=true#part") == Listing(
        url, (RemoteFile("tiny one.gguf", f"{url}?download=true", 3, "", "model"),)
    )
    assert [(seen.method, seen.sent) for seen in hub.requests] == [("HEAD", 0)]


def test_all_parts_of_a_split_model(hub: HubServer) -> None:
    for number in (1, 2, 3):
        hub.put(f"/m-0000{number}-of-00003.gguf", b"x" * number)
    found = find(f"{hub.url}/m-00002-of-00003.gguf?q")
    assert [(file.path, file.url, file.size_bytes, file.role) for file in found.files] == [
        (f"m-0000{number}-of-00003.gguf", f"{hub.url}/m-0000{number}-of-00003.gguf?q", number,
         "model" if number == 1 else "shard") for number in (1, 2, 3)]  # fmt: skip


def test_a_part_that_is_missing(hub: HubServer) -> None:
    hub.put("/m-00001-of-00002.gguf", b"x")
    with pytest.raises(ValueProblem, match=r"m-00002-of-00002.gguf: there is no such file \(HTTP 404\)"):
        find(f"{hub.url}/m-00001-of-00002.gguf")


@pytest.mark.parametrize("code", [403, 404, 405, 501])
def test_a_server_that_knows_no_head(code: int, hub: HubServer) -> None:
    url = hub.put("/m.gguf", b"abc", always=lambda seen, reply: (
        status(code)(seen, reply) if seen.method == "HEAD" else None))  # fmt: skip
    assert find(url).files[0].size_bytes == 3
    assert [(seen.method, seen.headers.get("range")) for seen in hub.requests] == [("HEAD", None), ("GET", "bytes=0-0")]


def test_a_server_that_knows_no_ranges_either(hub: HubServer) -> None:
    url = hub.put("/m.gguf", b"abc", ranges=False, faults=[status(405)])
    assert find(url).files[0].size_bytes == 3


def test_a_size_that_is_not_told(hub: HubServer) -> None:
    url = hub.put("/m.gguf", b"abc", ranges=False, always=header("Transfer-Encoding", "chunked"))
    hub.pages["/m.gguf"].always = lambda seen, reply: setattr(reply, "chunked", True)
    assert find(url).files[0].size_bytes == -1


def test_a_redirection_is_followed_and_the_address_kept(hub: HubServer) -> None:
    """What it leads to may hold for a while only."""
    hub.put("/real", b"abc")
    url = hub.put("/m.gguf", always=redirect("/real"))
    assert find(url).files == (RemoteFile("m.gguf", url, 3, "", "model"),)


@pytest.mark.parametrize("headers", [
    {"X-Checksum-Sha256": SUM.hexdigest().upper()},
    {"Repr-Digest": f"md5=:AA==:, sha-256=:{b64encode(SUM.digest()).decode()}:"},
    {"Digest": f"SHA-256={b64encode(SUM.digest()).decode()}"},
])  # fmt: skip
def test_a_sum_that_is_published(headers: dict[str, str], hub: HubServer) -> None:
    assert find(hub.put("/m.gguf", b"abc", headers=headers)).files[0].sha256 == SUM.hexdigest()


@pytest.mark.parametrize("headers", [
    {"X-Checksum-Sha256": "xyz"}, {"Repr-Digest": "sha-256=:AA==:"}, {"Digest": "SHA-256=*"},
    {"Repr-Digest": "sha-256"},
])  # fmt: skip
def test_a_sum_that_is_none(headers: dict[str, str], hub: HubServer) -> None:
    assert find(hub.put("/m.gguf", b"abc", headers=headers)).files[0].sha256 == ""


@pytest.mark.parametrize("name", ["", "..%2F..%2Fm.gguf", "%2Fetc", "..", "a%0Ab", "a%5Cb", "a%00b", "%1b[0m"])
def test_names_that_lead_elsewhere_are_refused(name: str, hub: HubServer) -> None:
    # The name itself is refused, or the file that it leads to.
    with pytest.raises(ValueProblem, match=r"is refused: it |leads out of the repository|names no file"):
        find(f"{hub.url}/{name}")
    assert hub.count() == 0


def test_too_many_parts(hub: HubServer) -> None:
    with pytest.raises(ValueProblem, match="has 99999 parts, more than 1000"):
        find(f"{hub.url}/m-00001-of-99999.gguf")


def test_secrets_of_an_address_are_not_in_its_name(hub: HubServer) -> None:
    url = hub.put("/m.gguf", b"abc")
    found = find(url.replace("://", "://me:pw@") + "?key=1")
    assert found.name == url
    assert hub.requests[0].headers["authorization"] == "Basic bWU6cHc="
