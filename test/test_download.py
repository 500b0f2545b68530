"""Downloads from a hub that misbehaves: the exact bytes or a clear error, nothing under the final name."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import ROOT, gguf_bytes, gguf_pair, gguf_tensor
from hubs.certificates import make_certificate
from hubs.server import (
    Fault,
    HubServer,
    Reply,
    Seen,
    chunked,
    drop_after,
    fine,
    garbage,
    hang_after,
    header,
    redirect,
    refused_range,
    short_body,
    slow_drip,
    status,
    wrong_range,
)

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.listing import RemoteFile
from ramalama_like.models import download, ranges, transfer
from ramalama_like.models.client import Client
from ramalama_like.models.download import fetch
from ramalama_like.models.store import Store

ELEMENTS = 2_000_003


def model(seed: int) -> bytes:
    """A GGUF file of 8 MB whose bytes say where they are from."""
    head = gguf_bytes(gguf_pair("general.architecture", "text", "llama"), tensors=[gguf_tensor("w", [ELEMENTS])])
    return head + random.Random(seed).randbytes(ELEMENTS * 4)


MODEL, OTHER = model(1), model(2)
SHA, OTHER_SHA = (hashlib.sha256(data).hexdigest() for data in (MODEL, OTHER))
SIZE = len(MODEL)
TENTH = SIZE // 10


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 8 MB is fetched in as many pieces as one of 80 MB is otherwise."""
    monkeypatch.setattr(ranges, "FIRST_PIECE", 1 << 20)


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A hub that offers nothing yet."""
    with HubServer() as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(str(tmp_path / "store"))


class Pull:
    """Downloads with a client that never really waits."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.rests: list[float] = []
        self.told: list[int] = []

    def __call__(self, url: str, *, published: bool = True, sha256: str = SHA, size: int = SIZE, path: str = "m.gguf",
                 **more: Any) -> tuple[str, int]:  # fmt: skip
        settings = {
            name: more.pop(name) for name in ("timeout_s", "retries", "clock", "per_host", "variables") if name in more
        }
        self.told = []
        file = RemoteFile(path, url, size if published else -1, sha256 if published else "")
        with Client(rest=self.rests.append, **settings) as client:
            return fetch(client, file, self.store, progress=self.told.append, **more)

    def blobs(self) -> dict[str, bytes]:
        """What has got its final name."""
        folder = Path(self.store.folder, "blobs")
        return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}

    def unfinished(self) -> list[str]:
        """What lies in the folders of unfinished downloads."""
        return sorted(path.name for path in Path(self.store.folder, "partial").glob("*/*"))


@pytest.fixture
def pull(store: Store) -> Pull:
    """Downloads into the store."""
    return Pull(store)


def replaced(hub: HubServer, path: str = "/m.gguf") -> Fault:
    """Before this request, the hub gets another version of the file."""

    def spoil(seen: Seen, reply: Reply) -> None:
        hub.put(path, OTHER)
        page = hub.pages[path]
        reply.status, reply.body, reply.headers = 200, page.body, dict(page.headers)
        if "if-range" not in seen.headers and "range" in seen.headers:
            begin, _, end = seen.headers["range"][6:].partition("-")
            reply.status, reply.body = 206, OTHER[int(begin) : int(end) + 1]
            reply.headers["Content-Range"] = f"bytes {begin}-{int(begin) + len(reply.body) - 1}/{SIZE}"

    return spoil


def no_length(seen: Seen, reply: Reply) -> None:
    """The end of the body is the end of the connection."""
    reply.status, reply.body = 200, MODEL
    head = f"HTTP/1.1 200 OK\r\nETag: {reply.headers['ETag']}\r\n\r\n".encode()
    reply.raw = head + MODEL


# Faults that are got over: how many requests, at least and at most, and the waits.
GOOD: dict[str, tuple[dict[str, Any], int, int]] = {
    "no fault": ({}, 5, 9),
    "ignored range": ({"ranges": False}, 1, 1),
    "range ignored once": ({"faults": [fine, lambda seen, reply: ignore(reply)]}, 6, 10),
    "416": ({"always": refused_range}, 2, 2),
    "wrong Content-Range once": ({"faults": [fine, wrong_range(7)]}, 6, 10),
    "wrong Content-Range": ({"always": wrong_range(1)}, 2, 2),
    "no Content-Range": ({"always": header("Content-Range", "")}, 2, 2),
    "nonsense as Content-Range": ({"always": header("Content-Range", "bytes 5-1/x")}, 2, 2),
    "short body once": ({"faults": [short_body(3)]}, 6, 10),
    "dropped after each tenth": ({"always": drop_after(TENTH)}, 10, 20),
    "503 then good": ({"faults": [status(503)]}, 6, 10),
    "503 within": ({"faults": [fine, status(503), status(503)]}, 6, 12),
    "429 with header": ({"faults": [status(429, Retry_After="7")]}, 6, 10),
    "429 within": ({"faults": [fine, status(429, Retry_After="7"), status(429, Retry_After="7")]}, 6, 12),
    "chunked": ({"always": chunked, "ranges": False}, 1, 1),
    "no length": ({"always": no_length}, 1, 1),
    "no validators": ({"etag": ""}, 5, 9),
    "weak ETag": ({"etag": 'W/"x"'}, 5, 9),
    "tiny pieces": ({"faults": [fine, slow_drip(1000)]}, 5, 9),
    "ETag left out of parts": ({"faults": [fine, header("ETag", ""), header("ETag", "")]}, 5, 9),
}  # fmt: skip


def ignore(reply: Reply) -> None:
    """The whole file, whatever was asked for."""
    reply.status, reply.body = 200, MODEL
    reply.headers.pop("Content-Range", None)


@pytest.mark.parametrize("published", [True, False], ids=["published sum", "no sum"])
@pytest.mark.parametrize("name", GOOD)
def test_the_exact_bytes_come(name: str, published: bool, hub: HubServer, pull: Pull) -> None:
    settings, least, most = GOOD[name]
    url = hub.put("/m.gguf", MODEL, **{**settings, "faults": list(settings.get("faults", ()))})
    assert pull(url, published=published) == (SHA, SIZE)
    assert pull.blobs() == {f"sha256-{SHA}": MODEL}
    assert least <= hub.count("/m.gguf") <= most
    assert pull.told[-1] == SIZE
    # Nothing but what stands for "this address was fetched".
    assert pull.unfinished() == ([] if published or "no validators" in name or name == "weak ETag" else ["state.json"])


@pytest.mark.parametrize("cut", range(1, 10))
@pytest.mark.parametrize("whole", [False, True], ids=["ranges", "no ranges"])
def test_a_connection_that_drops_at_every_tenth(cut: int, whole: bool, hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL, faults=[drop_after(TENTH * cut)] if whole else [fine] * cut + [drop_after(1000)],
                  ranges=not whole)  # fmt: skip
    assert pull(url) == (SHA, SIZE)
    assert pull.blobs() == {f"sha256-{SHA}": MODEL}
    if whole:
        assert hub.count() == 2
    else:
        assert hub.sent("/m.gguf") <= SIZE + (1 << 20)


@pytest.mark.parametrize("published", [True, False], ids=["published sum", "no sum"])
@pytest.mark.parametrize("before", range(4))
def test_a_file_that_changes_on_the_way_is_begun_anew(before: int, published: bool, hub: HubServer, pull: Pull) -> None:
    """Two versions are never mixed, with or without a sum that would show it."""
    hub.put("/m.gguf", MODEL, faults=[*[fine] * before, replaced(hub)])
    assert pull(hub.url + "/m.gguf", published=published, sha256=OTHER_SHA, connections=2) == (OTHER_SHA, SIZE)
    assert pull.blobs() == {f"sha256-{OTHER_SHA}": OTHER}


def test_an_etag_that_is_never_the_same_leads_to_one_connection(hub: HubServer, pull: Pull) -> None:
    tags = itertools.count()
    url = hub.put("/m.gguf", MODEL, always=lambda seen, reply: header("ETag", f'"{next(tags)}"')(seen, reply))
    assert pull(url) == (SHA, SIZE)
    assert "range" not in hub.seen("/m.gguf")[-1].headers


GARBLED = b"<!DOCTYPE html><html>log in first</html>"
BIG_ENDIAN = b"GGUF" + (3).to_bytes(4, "big") + bytes(1 << 16)
# Faults that nothing helps against: what to offer, the words, exit code, requests at most, whether it is gone on with.
BAD: dict[str, tuple[dict[str, Any], str, int, int, bool]] = {
    "short body": ({"always": short_body(3)}, "the connection to HOST was cut", 5, 60, True),
    "short body, no ranges": ({"always": short_body(3), "ranges": False}, "the connection to HOST was cut",
                              5, 7, False),
    "wrong hash": ({"body": OTHER}, f"damaged on its way: its sha256 is {OTHER_SHA[:12]}…, {SHA[:12]}… was promised",
                   5, 9, False),
    "wrong hash, no ranges": ({"body": OTHER, "ranges": False}, "damaged on its way", 5, 1, False),
    "too short": ({"body": MODEL[:-4]}, f"has {SIZE - 4} bytes where {SIZE} were promised", 5, 1, False),
    "too long": ({"body": MODEL + b"x"}, f"has {SIZE + 1} bytes where {SIZE} were promised", 5, 1, False),
    "too short, no length": ({"body": MODEL[:-4], "always": chunked, "ranges": False},
                             f"has {SIZE - 4} bytes where {SIZE} were promised", 5, 1, False),
    "401": ({"always": status(401)}, "HOST wants to know who asks, or there is no such model (HTTP 401)", 22, 1, False),
    "403": ({"always": status(403)}, "HOST forbids access (HTTP 403)", 22, 1, False),
    "gated": ({"always": status(403, X_Error_Code="GatedRepo")}, "its owner wants to know who asks (gated)", 22, 1,
              False),
    "404": ({"always": status(404)}, "there is no such file (HTTP 404)", 22, 1, False),
    "412": ({"always": status(412)}, "HOST does not serve this client any more (HTTP 412)", 22, 1, False),
    "429 for hours": ({"always": status(429, Retry_After="7200")},
                      "HOST asks to be left alone for 120 minutes: too many requests (HTTP 429)", 5, 1, False),
    "429": ({"always": status(429)}, "HOST asks to be left alone: too many requests (HTTP 429)", 5, 6, False),
    "500": ({"always": status(500)}, "HOST failed (HTTP 500)", 5, 6, False),
    "500 after a while": ({"faults": [fine], "always": status(500)}, "HOST failed (HTTP 500)", 5, 60, True),
    "404 after a while": ({"faults": [fine], "always": status(404)}, "there is no such file (HTTP 404)", 22, 9, True),
    "no HTTP": ({"always": garbage()}, "HOST does not speak HTTP as it should", 5, 1, False),
    "compressed": ({"always": header("Content-Encoding", "gzip")}, "HOST sent it compressed", 5, 1, False),
    "no content": ({"always": status(204, b"")}, "HOST sent nothing to keep (HTTP 204)", 5, 1, False),
    "circles": ({"always": redirect("/m.gguf")}, "leads round in circles", 22, 11, False),
    "a page": ({"body": GARBLED.ljust(SIZE)}, "not a GGUF file", 22, 9, False),
    "big-endian": ({"body": BIG_ENDIAN.ljust(SIZE)}, "a big-endian GGUF file, which this machine cannot use", 22, 9,
                   False),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_clear_error_comes(name: str, hub: HubServer, pull: Pull) -> None:
    settings, words, code, most, goes_on = BAD[name]
    settings = {"body": MODEL, **settings, "faults": list(settings.get("faults", ()))}
    url = hub.put("/m.gguf", **settings)
    with pytest.raises(AppError) as caught:
        pull(f"{url}?token=secret")
    place = f"{url}: " + words.replace("HOST", hub.netloc)
    assert caught.value.message.startswith(place)
    assert caught.value.hint
    assert caught.value.exit_code == code
    assert hub.count() <= most
    assert pull.blobs() == {}
    assert pull.unfinished() == (["data", "lock", "state.json"] if goes_on else [])


@pytest.mark.parametrize("data", [GARBLED, BIG_ENDIAN, MODEL[:-4], b"", b"GG", b"GGUF"], ids=range(6))
def test_what_is_no_model_is_refused_without_a_sum_too(data: bytes, hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", data)
    with pytest.raises(ValueProblem) as caught:
        pull(url, published=False)
    assert caught.value.message.startswith(f"{url}: ")
    assert pull.blobs() == {}
    assert pull.unfinished() == []


def test_what_is_no_model_is_noticed_in_the_first_answer(hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", GARBLED.ljust(64 << 20))
    with pytest.raises(ValueProblem, match="not a GGUF file"):
        pull(url, published=False, connections=1)
    assert hub.sent("/m.gguf") < 32 << 20


def test_other_files_are_not_looked_into(hub: HubServer, pull: Pull) -> None:
    sha256 = hashlib.sha256(GARBLED).hexdigest()
    assert pull(hub.put("/m", GARBLED), published=False, verify_gguf=False) == (sha256, len(GARBLED))


def test_a_wrong_beginning_from_an_earlier_run_is_dropped(hub: HubServer, pull: Pull, store: Store) -> None:
    """A bad partial must not be gone on with for ever."""
    url = hub.put("/m.gguf", MODEL, faults=[fine], always=status(404))
    with pytest.raises(AppError):
        pull(url, connections=1)
    with store.partial(SHA) as partial, open(partial.data_path, "r+b") as file:
        file.seek(5000)
        file.write(b"wrong")
    hub.put("/m.gguf", MODEL)
    assert pull(url) == (SHA, SIZE)
    assert pull.blobs() == {f"sha256-{SHA}": MODEL}


# Going on.


@pytest.mark.parametrize("published", [True, False], ids=["published sum", "no sum"])
def test_the_next_run_goes_on_where_the_last_one_ended(published: bool, hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL, faults=[fine, fine, fine], always=status(404))
    with pytest.raises(AppError):
        pull(url, published=published, connections=1)
    here = hub.sent("/m.gguf") - len(b"not now")
    assert here > SIZE // 3
    hub.requests.clear()
    hub.put("/m.gguf", MODEL)
    assert pull(url, published=published) == (SHA, SIZE)
    assert hub.sent("/m.gguf") == SIZE - here
    assert pull.told[0] >= here
    assert pull.blobs() == {f"sha256-{SHA}": MODEL}


@pytest.mark.parametrize("published", [True, False], ids=["published sum", "no sum"])
@pytest.mark.parametrize("name", ["ETag", "address", "size of data", "state", "no ranges any more"])
def test_what_may_be_of_another_version_is_not_used(name: str, published: bool, hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL, faults=[fine, fine], always=status(404))
    with pytest.raises(AppError):
        pull(url, published=published, connections=1)
    hub.requests.clear()
    (state,) = Path(pull.store.folder, "partial").glob("*/state.json")
    if name == "size of data":
        os.truncate(state.with_name("data"), SIZE - 1)
    elif name == "state":
        state.write_bytes(state.read_bytes()[:-5])
    # Without a sum, only the ETag says that the second file is another.
    content, sha256 = (MODEL, SHA) if published else (OTHER, OTHER_SHA)
    hub.put("/m.gguf", content, etag='"new"', ranges=name != "no ranges any more")
    if name == "address":
        url += "?other"
    assert pull(url, published=published) == (sha256, SIZE)
    assert hub.sent("/m.gguf") >= SIZE
    assert pull.blobs() == {f"sha256-{sha256}": content}


def test_a_finished_file_is_not_fetched_again(hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL)
    pull(url)
    hub.requests.clear()
    assert pull(url) == (SHA, SIZE)
    assert pull("http://127.0.0.1:1/elsewhere") == (SHA, SIZE)
    assert hub.count() == 0


def test_a_finished_file_without_a_sum_is_known_by_its_etag(hub: HubServer, pull: Pull, store: Store) -> None:
    """Another file of the model may have failed: its finished ones are not fetched anew."""
    url = hub.put("/m.gguf", MODEL)
    pull(url, published=False)
    hub.requests.clear()
    assert pull(url, published=False) == (SHA, SIZE)
    assert [seen.headers["range"] for seen in hub.requests] == ["bytes=0-0"]
    hub.put("/m.gguf", OTHER)
    assert pull(url, published=False) == (OTHER_SHA, SIZE)
    os.unlink(store.blob_path(OTHER_SHA))
    assert pull(url, published=False) == (OTHER_SHA, SIZE)


def test_what_lies_whole_from_an_earlier_run_needs_no_request(hub: HubServer, pull: Pull, store: Store) -> None:
    with store.partial(SHA) as partial:
        Path(partial.data_path).write_bytes(MODEL)
        url = hub.put("/m.gguf", OTHER)
        version = download.Version(download.url_sum(url), SIZE, '"x"', SHA)
        download.write_state(partial.state_path, version, [(0, SIZE)])
    assert pull(url) == (SHA, SIZE)
    assert hub.count() == 0


CHILD = """
import sys
from ramalama_like.listing import RemoteFile
from ramalama_like.models import ranges, transfer
from ramalama_like.models.client import Client
from ramalama_like.models.download import fetch
from ramalama_like.models.store import Store
transfer.SAVE_S = 0.01
ranges.FIRST_PIECE = 1 << 20
url, store, sha256 = sys.argv[1:]
with Client() as client:
    fetch(client, RemoteFile("m.gguf", url, sha256=sha256), Store(store), connections=2)
"""


def test_a_killed_run_is_gone_on_with(hub: HubServer, pull: Pull, store: Store) -> None:
    url = hub.put("/m.gguf", MODEL, faults=[fine, fine], always=hang_after(1000))
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, url, store.root, SHA], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    state = Path(store.folder, "partial", SHA, "state.json")
    while child.poll() is None and (hub.count() < 4 or not state.exists()):
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert pull.blobs() == {}
    hub.requests.clear()
    hub.put("/m.gguf", MODEL)
    assert pull(url) == (SHA, SIZE)
    assert hub.sent("/m.gguf") < SIZE
    assert pull.blobs() == {f"sha256-{SHA}": MODEL}


def test_two_at_once_fetch_it_once(hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL)
    found: list[tuple[str, int]] = []
    threads = [threading.Thread(target=lambda: found.append(Pull(Store(pull.store.root))(url))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(SHA, SIZE)] * 2
    assert hub.sent("/m.gguf") <= SIZE + (2 << 20)  # a helper may have begun what another was about to finish


# Many connections.


def test_eight_connections_at_once_and_no_more(hub: HubServer, pull: Pull) -> None:
    gate, number = threading.Barrier(7, timeout=60), itertools.count()

    def wait_for_all(seen: Seen, reply: Reply) -> None:
        if 1 <= next(number) <= 7:
            gate.wait()

    data = MODEL + bytes(24 << 20)
    sha256 = hashlib.sha256(data).hexdigest()
    url = hub.put("/m.gguf", data, always=wait_for_all)
    assert pull(url, sha256=sha256, size=len(data)) == (sha256, len(data))
    assert hub.connections == 8
    assert 7 <= hub.most_at_once <= 8


def test_connections_are_bounded_for_each_host(hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL)
    assert pull(url, per_host=3, connections=8) == (SHA, SIZE)
    assert hub.most_at_once <= 3
    assert hub.connections <= 3


def test_a_server_that_wants_fewer_connections_gets_fewer(hub: HubServer, pull: Pull) -> None:
    """Whoever is turned away while others are served goes; the last one stays."""
    url = hub.put("/m.gguf", MODEL, always=lambda seen, reply: (
        status(503)(seen, reply) if hub._busy > 1 else None))  # fmt: skip
    assert pull(url) == (SHA, SIZE)


def test_a_silent_connection_is_given_up(hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL, faults=[fine, hang_after(100)])
    assert pull(url, timeout_s=0.3) == (SHA, SIZE)
    assert pull.blobs() == {f"sha256-{SHA}": MODEL}


def ticking(step_s: float) -> Any:
    """A clock that goes on at each look."""
    moments = itertools.count(0, step_s)
    return lambda: next(moments)


def test_a_slow_loris_is_given_up(hub: HubServer, pull: Pull) -> None:
    """It sends a byte now and then, so that no time-out of the socket ever notices."""
    url = hub.put("/m.gguf", MODEL, faults=[slow_drip()])
    assert pull(url, connections=1, clock=ticking(10)) == (SHA, SIZE)
    assert hub.count() >= 2
    assert pull.blobs() == {f"sha256-{SHA}": MODEL}


def test_only_slow_lorises_are_an_error(hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL, always=slow_drip())
    with pytest.raises(AppError, match="sends hardly anything") as caught:
        pull(url, connections=2, clock=ticking(10))
    assert caught.value.exit_code == 110
    assert pull.blobs() == {}


def test_those_who_are_done_help_one_who_hangs(hub: HubServer, pull: Pull) -> None:
    """By the clock of the test he has hung for hours; nothing here waits for a time-out."""
    url = hub.put("/m.gguf", MODEL, faults=[fine, hang_after(100)])
    assert pull(url, connections=3, timeout_s=600, clock=ticking(1)) == (SHA, SIZE)


def test_an_encrypted_download(pull: Pull, tmp_path: Path) -> None:
    """TLS hands out 16 KiB at a time; these are gathered before they are written."""
    certificate = make_certificate(tmp_path)
    with HubServer(certificate=certificate) as hub:
        url = hub.put("/m.gguf", MODEL, faults=[fine, drop_after(1000)])
        assert pull(url, variables={"SSL_CERT_FILE": certificate}) == (SHA, SIZE)
    assert pull.blobs() == {f"sha256-{SHA}": MODEL}


# Hubs that send elsewhere.


def test_a_token_goes_to_its_own_server_alone(hub: HubServer, pull: Pull) -> None:
    with HubServer() as other:
        target = other.put("/real", MODEL)
        url = hub.put("/m.gguf", always=redirect(f"{target}?signature=1"))
        assert pull(url, authorization="Bearer hf_secret") == (SHA, SIZE)
        assert {one.headers.get("authorization") for one in hub.requests} == {"Bearer hf_secret"}
        assert {one.headers.get("authorization") for one in other.requests} == {None}
        assert hub.count() == 1  # the others go straight to the right address


def test_a_token_stays_within_its_server(hub: HubServer, pull: Pull) -> None:
    hub.put("/real", MODEL)
    url = hub.put("/m.gguf", always=redirect("/real"))
    assert pull(url, authorization="Bearer hf_secret") == (SHA, SIZE)
    assert {one.headers.get("authorization") for one in hub.requests} == {"Bearer hf_secret"}


def test_an_address_that_expires_is_asked_for_again(hub: HubServer, pull: Pull) -> None:
    with HubServer() as other:
        target = other.put("/real", MODEL, faults=[drop_after(SIZE // 2), status(403)])
        url = hub.put("/m.gguf", always=redirect(target))
        assert pull(url, connections=1) == (SHA, SIZE)
        assert hub.count() >= 2


# Names.


@pytest.mark.parametrize("path", ["m\x7f", "../m.gguf", "/etc/m.gguf", "a/../../m", "a//b", "a/./b", "", "..",
                                  "m\n", "m\x9b0m", "a\\b", "\udc80", "x" * 256, "a\0b"])  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(path: str, hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL)
    with pytest.raises(ValueProblem, match="is refused: it ") as caught:
        pull(url, path=path)
    assert caught.value.message.isprintable()
    assert hub.count() == 0
    assert not os.path.exists(pull.store.root)


@pytest.mark.parametrize("sha256", ["../../x", "A" * 64, "a" * 63, f"{'a' * 63}/"])
def test_a_sum_that_is_none_becomes_no_path(sha256: str, hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL)
    with pytest.raises(AppError, match="sent a sum that is no SHA-256"):
        pull(url, sha256=sha256)
    assert hub.count() == 0


def test_a_link_in_the_place_of_the_data_is_not_followed(hub: HubServer, pull: Pull, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    folder = Path(pull.store.folder, "partial", SHA)
    folder.mkdir(parents=True)
    (folder / "data").symlink_to(victim)
    assert pull(hub.put("/m.gguf", MODEL)) == (SHA, SIZE)
    assert victim.read_bytes() == b"mine"
    assert not os.path.islink(pull.store.blob_path(SHA))


# Disks.


def test_too_little_space_is_seen_first(hub: HubServer, pull: Pull, monkeypatch: pytest.MonkeyPatch) -> None:
    class Small:
        f_bavail, f_frsize = 1000, 4096

    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: Small)
    with pytest.raises(AppError, match=r"8.0 MB are needed, 4.1 MB are free") as caught:
        pull(hub.put("/m.gguf", MODEL))
    assert caught.value.exit_code == 5
    assert hub.count() == 1
    assert pull.unfinished() == []


REFUSALS = [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "your disk quota is used up"),
            (errno.EIO, "cannot be written: Input/output error")]  # fmt: skip


@pytest.mark.parametrize(("code", "words"), REFUSALS)
def test_a_disk_that_refuses(
    code: int, words: str, hub: HubServer, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, write, calls = hub.put("/m.gguf", MODEL), os.pwrite, itertools.count()

    def refuse(*args: Any) -> int:
        if next(calls) >= 20:
            raise OSError(code, os.strerror(code))
        return write(*args)

    with monkeypatch.context() as patch, pytest.raises(AppError, match=words):
        patch.setattr(transfer.os, "pwrite", refuse)
        pull(url)
    assert pull.blobs() == {}
    assert "state.json" in pull.unfinished()
    sent = hub.sent("/m.gguf")
    assert pull(url) == (SHA, SIZE)
    assert hub.sent("/m.gguf") - sent < SIZE  # what was here was kept


def test_space_that_somebody_else_takes_meanwhile(hub: HubServer, pull: Pull, monkeypatch: pytest.MonkeyPatch) -> None:
    url = hub.put("/m.gguf", MODEL)

    with monkeypatch.context() as patch, pytest.raises(AppError, match="the disk is full"):
        patch.setattr(download, "_fallocate", lambda descriptor, size: errno.ENOSPC)
        pull(url)
    assert pull.blobs() == {}
    assert pull(url) == (SHA, SIZE)


def test_the_space_for_all_of_it_is_taken(tmp_path: Path) -> None:
    with open(tmp_path / "data", "w+b") as file:
        assert download._fallocate(file.fileno(), 1 << 20) in (0, errno.EOPNOTSUPP)
        assert os.fstat(file.fileno()).st_blocks * 512 in (0, 1 << 20)
        assert download._fallocate(-1, 1) == errno.EBADF


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL])
def test_file_systems_that_take_no_space_ahead(
    code: int, hub: HubServer, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_fallocate", lambda descriptor, size: code)
    assert pull(hub.put("/m.gguf", MODEL)) == (SHA, SIZE)


def test_an_interrupted_run_keeps_what_is_here(hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL, faults=[fine, fine], always=hang_after(1 << 16))

    def interrupt(done_bytes: int) -> None:
        if done_bytes > 1 << 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Client() as client:
        fetch(client, RemoteFile("m.gguf", url, SIZE, SHA), pull.store, progress=interrupt)
    assert "state.json" in pull.unfinished()
    hub.put("/m.gguf", MODEL)
    assert pull(url) == (SHA, SIZE)


def test_offline_nothing_is_asked_for(hub: HubServer, pull: Pull) -> None:
    url = hub.put("/m.gguf", MODEL)
    with Client(offline=True) as client, pytest.raises(AppError, match="nothing is fetched while offline"):
        fetch(client, RemoteFile("m.gguf", url, SIZE, SHA), pull.store)
    assert hub.connections == 0


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """256 MiB through a process of its own: its peak stays below 80 MB."""
    path = tmp_path / "big"
    with open(path, "wb") as file:
        file.truncate(256 << 20)
    with subprocess.Popen([sys.executable, ROOT / "test/bench/hub.py", path], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as server:  # fmt: skip
        assert server.stdout is not None
        port = int(server.stdout.readline())
        done = subprocess.run([sys.executable, ROOT / "test/bench/pull.py", f"http://127.0.0.1:{port}/m.gguf",
                               tmp_path / "store"], env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
                              check=True)  # fmt: skip
        server.communicate(b"")
    assert int(done.stdout) <= 80
