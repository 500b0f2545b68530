"""What is asked of registries: tokens, manifests, blobs both ways; and what happens when they misbehave."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from hubs.registry import FakeRegistry, digest_of
from hubs.server import HubServer, redirect, status
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.errors import AppError
from ramalama_like.models.access import Access
from ramalama_like.models.challenge import Challenge, parse_challenges
from ramalama_like.models.client import Client
from ramalama_like.models.credentials import Credentials
from ramalama_like.models.pieces import Pieces
from ramalama_like.models.registry import Registry
from ramalama_like.models.upload import SMALL_BYTES, put_blob, put_manifest

BIG = bytes(range(256)) * (SMALL_BYTES // 128)


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    with FakeRegistry() as running:
        yield running


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(rest=lambda _: None) as made:
        yield made


def ask(fake: FakeRegistry, client: Client, repository: str = "team/demo", actions: str = "pull",
        credentials: Credentials | None = None) -> Registry:  # fmt: skip
    found = Registry(
        client,
        Access(home="/nowhere"),
        fake.place,
        repository,
        actions,
        Credentials() if credentials is None else credentials,
    )
    found.use_base(fake.hub.url)
    return found


ANNA = Credentials("anna", "sesame", origin="the test")


# Who asks.


@pytest.mark.parametrize(
    ("text", "challenges"),
    [
        ("", ()),
        ("Basic", (Challenge("basic"),)),
        (
            'Bearer realm="https://a/token?x=1",service="b c", scope="repository:x:pull,push"',
            (Challenge("bearer", {"realm": "https://a/token?x=1", "service": "b c",
                                  "scope": "repository:x:pull,push"}),),
        ),
        (
            'Basic realm="say \\"x\\"", BEARER Realm=https://b , error=y',
            (Challenge("basic", {"realm": 'say "x"'}), Challenge("bearer", {"realm": "https://b", "error": "y"})),
        ),
        ("realm=lost", ()),
        ('Bearer realm="open', (Challenge("bearer", {"realm": '"open'}),)),
    ],
)  # fmt: skip
def test_challenges(text: str, challenges: tuple[Challenge, ...]) -> None:
    if text.endswith('"open'):
        assert parse_challenges(text)[0].scheme == "bearer"
    else:
        assert parse_challenges(text) == challenges


@given(st.text(alphabet='Bearer realm="x",\\ =\0é', max_size=60))
def test_any_challenge_is_read_somehow(text: str) -> None:
    for challenge in parse_challenges(text):
        assert challenge.scheme


def test_a_token_is_asked_for_once_and_shown_to_all(fake: FakeRegistry, client: Client) -> None:
    fake.users = {"anna": "sesame"}
    digest = fake.add_layers("team/demo", "v1")
    registry = ask(fake, client, credentials=ANNA)
    assert registry.manifest("v1").digest == digest
    assert registry.manifest(digest).digest == digest
    assert fake.scopes == ["repository:team/demo:pull"]
    (asked,) = fake.hub.seen("/token")
    assert asked.headers["authorization"] == "Basic " + b64encode(b"anna:sesame").decode()
    assert [one.headers.get("authorization") for one in fake.hub.requests if one.path.startswith("/v2/")] == [
        None, "Bearer token-1", "Bearer token-1",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["Bearer", "Basic"])
@pytest.mark.parametrize("path", ["/v2/", "/v2/team/demo/manifests/v1"])
def test_only_the_registry_itself_may_ask_who_it_is(path: str, kind: str, fake: FakeRegistry, client: Client) -> None:
    """A redirection's target could name a token service of its own, and would be told the password there."""
    with HubServer() as evil:
        asks = f'{kind} realm="{evil.url}/token",service="x"'
        evil.put("/there", always=status(401, b"{}", **{"WWW-Authenticate": asks}))
        evil.put("/token", b'{"token": "t"}')
        fake.hub.put(path, always=redirect(f"{evil.url}/there"))
        registry = ask(fake, client, "" if path == "/v2/" else "team/demo", credentials=ANNA)
        with pytest.raises(AppError, match="which wants to know who asks"):
            registry.sign_in() if path == "/v2/" else registry.manifest("v1")
        (seen,) = evil.requests
        assert (seen.path, seen.headers.get("authorization")) == ("/there", None)


@pytest.mark.parametrize("code", [307, 308])
def test_an_identity_token_follows_no_redirection(code: int, fake: FakeRegistry, client: Client) -> None:
    fake.users = {"anna": "sesame"}
    fake.add_layers("team/demo", "v1")
    with HubServer() as evil:
        fake.hub.put("/token", always=redirect(evil.put("/token", b'{"token": "t"}'), code))
        mine = Credentials("anna", identity_token="refresh-me", origin="the test")
        with pytest.raises(AppError, match="redirects what must stay secret to another host"):
            ask(fake, client, credentials=mine).manifest("v1")
        assert evil.count() == 0


@pytest.mark.parametrize("size", [10**400, 1 << 63, -1, True, 1.5, "7", None, [], math.inf])
def test_sizes_that_cannot_be_meant(size: object, fake: FakeRegistry, client: Client) -> None:
    fake.add_layers("team/demo", "v1", {"mediaType": "x/y", "digest": digest_of(b"1"), "size": size})
    registry = ask(fake, client)
    with pytest.raises(AppError, match="does not tell the size of this layer"):
        registry.layers(registry.manifest("v1"))


@pytest.mark.parametrize("size", [0, (1 << 63) - 1])
def test_sizes_at_the_edges(size: int, fake: FakeRegistry, client: Client) -> None:
    fake.add_layers("team/demo", "v1", {"mediaType": "x/y", "digest": digest_of(b"1"), "size": size})
    registry = ask(fake, client)
    assert [layer.size_bytes for layer in registry.layers(registry.manifest("v1"))] == [size]


def test_a_token_service_may_be_another_host(fake: FakeRegistry, client: Client) -> None:
    """As the specification allows, where the registry itself names it."""
    with HubServer() as service:
        service.put("/token", b'{"token": "from-there"}')
        asks = f'Bearer realm="{service.url}/token",service="x"'
        fake.hub.put("/v2/", faults=[status(401, b"{}", **{"WWW-Authenticate": asks})])
        registry = ask(fake, client, "", credentials=ANNA)
        registry.sign_in()
        assert registry.authorization == "Bearer from-there"
        assert service.requests[0].headers["authorization"] == ANNA.basic


def test_basic_authentication(fake: FakeRegistry, client: Client) -> None:
    fake.users, fake.challenge = {"anna": "sesame"}, "basic"
    digest = fake.add_layers("team/demo", "v1")
    assert ask(fake, client, credentials=ANNA).manifest("v1").digest == digest


def test_an_identity_token_takes_the_place_of_a_password(fake: FakeRegistry, client: Client) -> None:
    fake.users, fake.identity_tokens = {}, {"long-lived"}
    digest = fake.add_layers("team/demo", "v1")
    mine = Credentials(identity_token="long-lived", origin="the test")
    assert ask(fake, client, credentials=mine).manifest("v1").digest == digest


def test_who_is_not_let_in(fake: FakeRegistry, client: Client) -> None:
    fake.users = {"anna": "sesame"}
    fake.add_layers("team/demo", "v1")
    name, place = f"{fake.place}/team/demo", fake.place
    for mine, message, hint in [
        (Credentials(), f"{name}: {place} wants to know who asks, or there is nothing of this name "
         "(HTTP 401: authentication required)", f"log in with: ramalama-like login {place}"),
        (Credentials(origin="FILE leaves passwords to a program"),
         f"{name}: {place} wants to know who asks, or there is nothing of this name "
         "(HTTP 401: authentication required)",
         f"FILE leaves passwords to a program: log in with: ramalama-like login {place}"),
        (Credentials("anna", "wrong", origin="FILE"),
         f"{name}: {place} does not accept the user and password from FILE "
         "(HTTP 401: incorrect username or password)", f"log in again with: ramalama-like login {place}"),
    ]:  # fmt: skip
        with pytest.raises(AppError) as caught:
            ask(fake, client, credentials=mine).manifest("v1")
        assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (message, hint, 22)
    with pytest.raises(AppError) as caught:
        ask(fake, client, "", credentials=Credentials("anna", "wrong", origin="FILE")).sign_in()
    assert caught.value.message == (
        f"{place} does not accept this user and password (HTTP 401: incorrect username or password)"
    )
    ask(fake, client, "", credentials=ANNA).sign_in()


@pytest.mark.parametrize(("code", "message", "hint"), [
    (403, "may not be read by the user anna (HTTP 403: no)", "use an account that may"),
    (400, "PLACE refuses (HTTP 400: no)", "check the name"),
])  # fmt: skip
def test_other_refusals(fake: FakeRegistry, client: Client, code: int, message: str, hint: str) -> None:
    fake.hub.put("/v2/team/demo/manifests/v1", always=status(code, b'{"errors": [{"message": "no"}]}'))
    with pytest.raises(AppError) as caught:
        ask(fake, client, credentials=ANNA).manifest("v1")
    whole = f"{fake.place}/team/demo: {message}".replace("PLACE", fake.place)
    assert (caught.value.message, caught.value.hint) == (whole, hint)


@pytest.mark.parametrize("code", [429, 500, 503])
def test_what_may_be_over_soon_is_tried_again(fake: FakeRegistry, client: Client, code: int) -> None:
    digest = fake.add_layers("team/demo", "v1")
    body = fake.manifests["team/demo", "v1"][0]
    fake.hub.put("/v2/team/demo/manifests/v1", body, faults=[status(code), status(code)])
    assert ask(fake, client).manifest("v1").digest == digest
    assert fake.hub.count("/v2/team/demo/manifests/v1") == 3


def test_a_token_service_that_would_get_the_password_in_plain_text_is_not_asked(
    fake: FakeRegistry, client: Client
) -> None:
    registry = ask(fake, client, credentials=ANNA)
    registry.use_base("https://registry.example")
    challenge = Challenge("bearer", {"realm": f"{fake.hub.url}/token"})
    with pytest.raises(AppError) as caught:
        registry._token(challenge)
    assert caught.value.message == (
        "https://registry.example: registry.example sent no usable address of the service that gives tokens"
    )
    assert fake.hub.count() == 0


def test_a_token_that_runs_out_during_downloads_is_renewed(fake: FakeRegistry, client: Client) -> None:
    fake.users = {"anna": "sesame"}
    fake.add_layers("team/demo", "v1")
    blob = fake.add_blob(b"weights")
    registry = ask(fake, client, credentials=ANNA)
    registry.manifest("v1")
    authorization = registry.keep_fresh()
    assert authorization == "Bearer token-1"
    for token in (1, 2, 2, 3):
        if token == 3 or fake.hub.count("/token") < token:
            fake.expire()
        assert client.ask(registry.blob_url(blob), authorization=authorization).body == b"weights"
        assert fake.hub.requests[-1].headers["authorization"] == f"Bearer token-{fake.hub.count('/token')}"
    assert fake.hub.count("/token") == 3
    fake.users = {}
    fake.expire()
    with pytest.raises(AppError):
        client.ask(registry.blob_url(blob), authorization=authorization)


# Manifests.


def test_bytes_that_are_not_those_of_the_digest(fake: FakeRegistry, client: Client) -> None:
    digest = fake.add_layers("team/demo", "v1")
    fake.manifests["team/demo", digest] = b"{}", "application/json"
    url = f"{fake.hub.url}/v2/team/demo/manifests"
    with pytest.raises(AppError) as caught:
        ask(fake, client).manifest(digest)
    assert caught.value.message == f"{url}/{digest}: {fake.place} sent another manifest than its digest says"
    fake.headers["Docker-Content-Digest"] = digest_of(b"other")
    with pytest.raises(AppError) as caught:
        ask(fake, client).manifest("v1")
    assert caught.value.message == f"{url}/v1: {fake.place} sent another manifest than its digest says"
    blob = fake.add_blob(b"right")
    fake.blobs[blob] = b"wrong"
    with pytest.raises(AppError) as caught:
        ask(fake, client).blob(blob)
    assert "damaged on its way" in caught.value.message


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"\xff", b"[" * 100_000, b'{"layers": 3}', b'{"layers": [3]}',
                                  b'{"layers": [{"digest": "sha256:1"}]}', b'{"schemaVersion": 1}',
                                  b'{"manifests": []}', b'{"mediaType": 7, "layers": null}'])  # fmt: skip
def test_nonsense_in_place_of_a_manifest(fake: FakeRegistry, client: Client, body: bytes) -> None:
    fake.manifests["team/demo", "v1"] = body, "application/json"
    registry = ask(fake, client)
    with pytest.raises(AppError):
        registry.layers(registry.manifest("v1"))


def test_an_index_leads_to_the_image_for_this_machine(
    fake: FakeRegistry, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ramalama_like.models import registry as module

    digests = {machine: fake.add_layers("team/demo", machine, config=json.dumps(machine).encode())
               for machine in ("arm64", "amd64", "unknown")}  # fmt: skip
    members = [{"digest": digest, "platform": {"architecture": machine},
                **({"annotations": {"vnd.docker.reference.type": "attestation-manifest"}}
                   if machine == "unknown" else {})} for machine, digest in reversed(digests.items())]  # fmt: skip
    kind = "application/vnd.docker.distribution.manifest.list.v2+json"
    fake.add_manifest("team/demo", "all", {"mediaType": kind, "manifests": [3, {"digest": "x"}, *members]}, kind)
    fake.add_manifest("team/demo", "odd", {"manifests": [{"digest": digests["arm64"]}]}, "application/json")
    fake.add_manifest("team/demo", "loop", {"manifests": [{"digest": fake.add_manifest(
        "team/demo", "inner", {"manifests": []})}]})  # fmt: skip
    registry = ask(fake, client)
    for machine, wanted in [("arm64", "arm64"), ("amd64", "amd64"), ("riscv64", "amd64")]:
        monkeypatch.setattr(module, "architecture", lambda machine=machine: machine)
        assert registry.manifest("all").digest == digests[wanted]
    assert registry.manifest("odd").digest == digests["arm64"]
    for tag, message in [("loop", "loop names a list of lists"), ("inner", "inner names a list that holds no image")]:
        with pytest.raises(AppError) as caught:
            registry.manifest(tag)
        assert caught.value.message == f"{fake.place}/team/demo: {message}"


# Putting things there.


def test_a_blob_is_sent_once(fake: FakeRegistry, client: Client) -> None:
    registry = ask(fake, client, actions="pull,push")
    for parts in ([b""], [b"x"], [b"head", b"", b"tail"], [BIG], [b"head", BIG]):
        pieces, body = Pieces(parts), b"".join(parts)
        digest = pieces.digest()
        assert put_blob(registry, pieces, digest)
        assert fake.blobs[digest] == body
        before = fake.hub.count()
        assert not put_blob(registry, pieces, digest)
        assert fake.hub.count() == before + 1


def test_an_upload_that_is_cut_goes_on_where_it_was(fake: FakeRegistry, client: Client, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(BIG)
    pieces = Pieces([b"head", str(tmp_path / "big"), b"tail"])
    digest = pieces.digest()
    fake.cuts = [100, 3 + len(BIG) // 2, 0]
    assert put_blob(ask(fake, client, actions="pull,push"), pieces, digest)
    pieces.close()
    assert fake.blobs[digest] == b"head" + BIG + b"tail"
    whole = len(BIG) + 8
    sent = [len(one.body) for one in fake.hub.requests if one.method == "PATCH"]
    left = whole - 100 - (3 + len(BIG) // 2)
    assert sent == [whole, whole - 100, left, left]


def test_a_token_that_runs_out_before_an_upload_is_renewed(fake: FakeRegistry, client: Client, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(BIG)
    fake.users, fake.forgetful = {"anna": "sesame"}, True
    pieces = Pieces([str(tmp_path / "big")])
    digest = pieces.digest()
    assert put_blob(ask(fake, client, actions="pull,push", credentials=ANNA), pieces, digest)
    pieces.close()
    assert fake.blobs[digest] == BIG
    assert [one.status for one in fake.hub.requests if one.method == "PATCH"] == [401, 202]


def test_a_registry_without_tls(fake: FakeRegistry, client: Client) -> None:
    """On this machine it is taken as it is; elsewhere the hint says what it takes."""
    for access in (Access(), Access(verify=False)):
        remote = Registry(client, access, fake.place, "a")
        assert remote.base == fake.hub.url
    remote.use_base(fake.hub.url.replace("http://", "https://"))
    with pytest.raises(AppError) as caught:
        remote.manifest("v1")
    assert caught.value.message.partition(": ")[2].startswith(f"{fake.place} does not speak TLS as it should (")
    assert (caught.value.hint, caught.value.exit_code) == ("trust whoever answers with --tls-verify=false", 5)


def test_where_the_api_of_a_registry_is(client: Client) -> None:
    for place, base in {"docker.io": "https://registry-1.docker.io", "quay.io": "https://quay.io"}.items():
        assert Registry(client, Access(), place, "a/b").base == base


def test_an_upload_of_which_nothing_arrived_begins_anew(fake: FakeRegistry, client: Client) -> None:
    pieces = Pieces([BIG])
    fake.cuts = [0, 1]
    assert put_blob(ask(fake, client, actions="pull,push"), pieces, pieces.digest())
    assert len(fake.uploads) == 3


def test_an_upload_that_never_gets_anywhere_ends(fake: FakeRegistry, client: Client) -> None:
    pieces = Pieces([BIG])
    fake.cuts = [0] * 99
    with pytest.raises(AppError) as caught:
        put_blob(ask(fake, client, actions="pull,push"), pieces, pieces.digest())
    assert "was cut" in caught.value.message
    assert len(fake.cuts) == 99 - 1 - client.retries


def test_a_blob_of_another_repository_is_mounted(fake: FakeRegistry, client: Client) -> None:
    digest = digest_of(BIG)
    registry = ask(fake, client, actions="pull,push")
    fake.mountable.add("other")
    head = f"/v2/team/demo/blobs/{digest}"
    fake.hub.put(head, always=status(404))
    fake.blobs[digest] = BIG
    assert not put_blob(registry, Pieces([BIG]), digest, mount_from="other")
    assert fake.uploads == {}
    assert put_blob(registry, Pieces([BIG]), digest, mount_from="third")  # refused: sent after all
    assert fake.uploads["0"] == BIG


def test_bytes_that_arrive_wrong_are_refused(fake: FakeRegistry, client: Client) -> None:
    with pytest.raises(AppError) as caught:
        put_blob(ask(fake, client, actions="pull,push"), Pieces([b"x"]), digest_of(b"y"))
    assert caught.value.message.endswith(" sent word that what arrived is not what was sent")


def test_an_upload_never_leaves_its_registry(fake: FakeRegistry, client: Client) -> None:
    fake.hub.put("/v2/team/demo/blobs/uploads/", always=status(202, b"", Location="http://evil.example/upload"))
    with pytest.raises(AppError) as caught:
        put_blob(ask(fake, client, actions="pull,push"), Pieces([b"x"]), digest_of(b"x"))
    assert caught.value.message.endswith("sent an address for the upload that is not its own")


def test_a_registry_that_takes_no_artifacts(fake: FakeRegistry, client: Client) -> None:
    fake.hub.put("/v2/team/demo/manifests/v1", always=status(400))
    with pytest.raises(AppError) as caught:
        put_manifest(ask(fake, client, actions="pull,push"), "v1", b"{}", "application/json")
    assert (caught.value.message, caught.value.hint) == (
        f"{fake.place}/team/demo: {fake.place} does not take artifacts of this kind (HTTP 400)",
        "push an image in place of an artifact: --type raw",
    )


# Pieces.


@given(st.lists(st.binary(max_size=20), max_size=5), st.integers(0, 60), st.integers(0, 60), st.integers(1, 9))
def test_pieces_read_like_one_file(parts: list[bytes], begin: int, length: int, step: int) -> None:
    whole = b"".join(parts)
    pieces = Pieces(parts)
    assert pieces.size == len(whole)
    assert pieces.digest() == digest_of(whole)
    pieces.limit(begin, begin + length)
    found = b""
    while piece := pieces.read(step):
        assert len(piece) <= step
        found += piece
    assert found == whole[begin : begin + length]
    pieces.limit(0, len(whole))
    assert pieces.seek(0) == 0


def test_a_file_that_shrinks_while_it_is_sent_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345678")
    pieces = Pieces([str(tmp_path / "f")])
    assert pieces.read(4) == b"1234"
    (tmp_path / "f").write_bytes(b"12")
    with pytest.raises(ValueError, match="has become shorter"):
        pieces.read(4)
    pieces.close()
