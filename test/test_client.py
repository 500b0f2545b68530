"""The HTTP client of hubs and registries, against servers on the loopback."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hubs.certificates import make_certificate
from hubs.server import HubServer, Reply, Seen, chunked, drop_after, fine, garbage, redirect, short_body, status

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.models import connect, failures
from ramalama_like.models.client import Answer, Client, Origin, password_in, split_url
from ramalama_like.models.connect import look_up, race
from ramalama_like.models.failures import Passing
from ramalama_like.models.pauses import wait_of
from ramalama_like.models.proxies import choose_proxy, is_loopback
from ramalama_like.reference import plain_url


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A server that offers nothing yet."""
    with HubServer() as server:
        yield server


@pytest.fixture
def rests() -> list[float]:
    """How long the client would have waited."""
    return []


@pytest.fixture
def client(rests: list[float]) -> Iterator[Client]:
    """A client that never really waits."""
    with Client(rest=rests.append, clock=lambda: 0.0) as made:
        yield made


# Answers.


def test_an_answer(hub: HubServer, client: Client) -> None:
    url = hub.put("/a", b"content", headers={"X-Name": "1"})
    answer = client.ask(f"{url}?q=1", headers={"Accept": "text/plain"}, authorization="Bearer t")
    assert (answer.status, answer.body, answer.url, answer.headers["x-name"]) == (200, b"content", f"{url}?q=1", "1")
    seen = hub.requests[0]
    assert (seen.method, seen.target) == ("GET", "/a?q=1")
    assert seen.headers == {"host": hub.netloc, "user-agent": "ramalama-like", "accept-encoding": "identity",
                            "accept": "text/plain", "authorization": "Bearer t"}  # fmt: skip


def test_headers_of_one_name_are_joined(hub: HubServer, client: Client) -> None:
    raw = b"HTTP/1.1 200 OK\r\nLink: <a>\r\nlink: <b>\r\nContent-Length: 0\r\n\r\n"
    hub.route("/", lambda seen: Reply(raw=raw))
    assert client.ask(hub.url).headers["link"] == "<a>, <b>"


def test_a_connection_is_used_again(hub: HubServer, client: Client) -> None:
    url = hub.put("/a", b"x" * 1000)
    for _ in range(3):
        client.ask(url)
        client.ask(url, method="HEAD")
        client.ask(hub.url + "/none", allow=(404,))
    assert (hub.count(), hub.connections) == (9, 1)


def test_a_connection_that_the_server_has_closed_is_replaced(
    hub: HubServer, client: Client, rests: list[float]
) -> None:
    url = hub.put("/a", b"x")
    client.ask(url)
    for link in list(hub._open):
        link.shutdown(socket.SHUT_RDWR)
    assert client.ask(url).body == b"x"
    assert (hub.connections, rests) == (2, [])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("body", [b"", b"some"])
def test_bodies_that_are_sent(method: str, body: bytes, hub: HubServer, client: Client) -> None:
    hub.route("/", lambda seen: Reply(201, seen.body))
    assert client.ask(hub.url, method=method, body=body).body == body
    assert hub.requests[0].headers.get("content-length") == (str(len(body)) if body or method != "DELETE" else None)


def test_a_file_is_sent_again_after_a_failure(hub: HubServer, client: Client) -> None:
    answers = [Reply(503), Reply(201)]
    hub.route("/", lambda seen: answers.pop(0))
    with client.stream(hub.url, method="PUT", body=io.BytesIO(b"content"), headers={"Content-Length": "7"}) as stream:
        assert stream.status == 201
    assert [seen.body for seen in hub.requests] == [b"content"] * 2


def test_a_stream_gives_what_has_come(hub: HubServer, client: Client) -> None:
    url = hub.put("/a", bytes(range(256)) * 1000)
    with client.stream(url) as stream:
        parts = []
        while piece := stream.read(10_000):
            parts.append(piece)
        assert b"".join(parts) == bytes(range(256)) * 1000
        assert max(map(len, parts)) <= 10_000
        assert stream.read(1) == b""


@pytest.mark.parametrize("size", [0, 1, 70_000, 200_000])
def test_chunks(size: int, hub: HubServer, client: Client) -> None:
    url = hub.put("/a", b"y" * size, always=chunked)
    assert client.ask(url).body == b"y" * size
    assert client.ask(url).body == b"y" * size
    assert hub.connections == 1


@pytest.mark.parametrize("way", ["length", "chunked"])
def test_an_endless_answer_is_not_read(way: str, hub: HubServer, client: Client) -> None:
    url = hub.put("/a", bytes(3 << 20), always=chunked if way == "chunked" else None)
    with pytest.raises(ValueProblem, match="does not end within 2 MiB"):
        client.ask(url, most_bytes=2 << 20)


# Trying again.


@pytest.mark.parametrize("fault", [status(500), status(502), status(429), status(408), short_body(1), drop_after(0)])
def test_passing_trouble_is_got_over(fault: object, hub: HubServer, client: Client, rests: list[float]) -> None:
    url = hub.put("/a", b"there", faults=[fault, fault])  # type: ignore[list-item]
    assert client.ask(url).body == b"there"
    assert (hub.count(), rests) == (3, [0.5, 1.0])


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 410, 412, 416, 451])
def test_final_answers_are_not_asked_for_again(code: int, hub: HubServer, client: Client, rests: list[float]) -> None:
    url = hub.put("/a", b"", always=status(code))
    with pytest.raises(ValueProblem, match=f"HTTP {code}"):
        client.ask(url)
    assert (hub.count(), rests) == (1, [])
    assert client.ask(url, allow=(code,)).status == code


def test_a_server_that_was_never_there_is_asked_twice(client: Client, rests: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Passing, match=f"127.0.0.1:{port} refuses connections"):
        client.ask(f"http://127.0.0.1:{port}/a")
    assert rests == [0.5]


def test_a_server_that_hangs_up_is_asked_twice(hub: HubServer, client: Client, rests: list[float]) -> None:
    url = hub.put("/a", b"there", always=garbage(b""))
    with pytest.raises(Passing, match="was cut"):
        client.ask(url)
    assert (hub.count(), rests) == (2, [0.5])


def test_a_server_that_asks_for_time_gets_it(hub: HubServer, client: Client, rests: list[float]) -> None:
    url = hub.put("/a", b"there", faults=[status(429, Retry_After="7"), status(503, Retry_After="120")])
    assert client.ask(url).body == b"there"
    assert rests == [7.0, 120.0]


def test_long_waits_are_told(hub: HubServer, rests: list[float]) -> None:
    told: list[tuple[float, str]] = []
    url = hub.put("/a", b"there", faults=[status(429, Retry_After="2"), status(429, Retry_After="3")])
    with Client(rest=rests.append, clock=lambda: 0.0, on_wait=lambda *wait: told.append(wait)) as client:
        client.ask(url)
    assert (rests, told) == ([2.0, 3.0], [(3.0, "127.0.0.1")])


def test_too_long_a_wait_is_for_people_to_decide(hub: HubServer, client: Client, rests: list[float]) -> None:
    url = hub.put("/a", always=status(429, Retry_After="301"))
    with pytest.raises(Passing, match="asks to be left alone for 6 minutes: too many requests") as caught:
        client.ask(url)
    assert caught.value.wait_s == 301
    assert (hub.count(), rests) == (1, [])


def test_an_allowance_that_is_used_up_is_waited_for(hub: HubServer, client: Client, rests: list[float]) -> None:
    url = hub.put("/a", b"x", headers={"RateLimit": '"api";r=0;t=55'})
    client.ask(url)
    assert rests == []
    client.ask(url)
    assert rests == [55.0]


# Redirections.


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirections_are_followed(code: int, hub: HubServer, client: Client) -> None:
    with HubServer() as other:
        there = other.put("/there", b"it")
        url = hub.put("/a", always=redirect(there, code))
        answer = client.ask(url, authorization="Bearer secret", headers={"Cookie": "c", "Accept": "x"})
        assert (answer.body, answer.url) == (b"it", there)
        assert hub.requests[0].headers["authorization"] == "Bearer secret"
        assert {"authorization", "cookie"} & set(other.requests[0].headers) == set()
        assert other.requests[0].headers["accept"] == "x"


def test_a_token_comes_back_with_the_way(hub: HubServer, client: Client) -> None:
    """It is for one server, on whatever way that is come to."""
    with HubServer() as other:
        hub.put("/end", b"it")
        url = hub.put("/a", always=redirect(other.put("/b", always=redirect(hub.url + "/end"))))
        client.ask(url, authorization="Bearer secret")
        assert [one.headers.get("authorization") for one in hub.requests] == ["Bearer secret"] * 2
        assert other.requests[0].headers.get("authorization") is None


def test_a_redirection_that_is_allowed_is_an_answer(hub: HubServer, client: Client) -> None:
    url = hub.put("/a", always=redirect("https://elsewhere.example/x", X_Linked_Size="5"))
    answer = client.ask(url, method="HEAD", allow=(302,))
    assert (answer.status, answer.headers["location"]) == (302, "https://elsewhere.example/x")
    assert answer.headers["x-linked-size"] == "5"


@pytest.mark.parametrize(("code", "method"), [(303, "GET"), (302, "GET"), (307, "POST"), (308, "POST")])
def test_what_becomes_of_a_method(code: int, method: str, hub: HubServer, client: Client) -> None:
    hub.route("/b", lambda seen: Reply(200, seen.body))
    url = hub.put("/a", always=redirect("/b", code))
    assert client.ask(url, method="POST", body=b"data").body == (b"data" if method == "POST" else b"")
    assert hub.requests[1].method == method


@pytest.mark.parametrize(("code", "method"), [(301, "PUT"), (302, "PATCH"), (307, "POST"), (308, "POST"), (307, "PUT")])
@pytest.mark.parametrize("is_file", [False, True])
def test_a_body_goes_to_nobody_else(code: int, method: str, is_file: bool, hub: HubServer, client: Client) -> None:
    with HubServer() as other:
        there = other.put("/there", b"it")
        url = hub.put("/a", always=redirect(there, code))
        body = io.BytesIO(b"secret") if is_file else b"secret"
        with pytest.raises(ValueProblem, match="redirects what must stay secret to another host"):
            client.stream(url, method=method, body=body, headers={"Content-Length": "6"} if is_file else {})
        assert (hub.requests[0].body, hub.count(), other.count()) == (b"secret", 1, 0)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://host/x", "http://[::1/x", "gopher://x"])
def test_redirections_out_of_the_web_are_refused(location: str, hub: HubServer, client: Client) -> None:
    url = hub.put("/a", always=redirect(location))
    with pytest.raises(ValueProblem):
        client.ask(url)
    assert hub.count() == 1


def test_circles(hub: HubServer, client: Client) -> None:
    url = hub.put("/a", always=redirect("/a"))
    with pytest.raises(ValueProblem, match="leads round in circles"):
        client.ask(url)


# Offline, addresses.


def test_offline_no_socket_is_opened() -> None:
    def resolve(host: str, port: int) -> list[connect.Address]:
        raise AssertionError

    with Client(offline=True, resolve=resolve) as client:
        for ask in (client.ask, client.stream):
            with pytest.raises(AppError, match="nothing is fetched while offline") as caught:
                ask("https://huggingface.co/x?token=secret")
            assert "secret" not in caught.value.message
            assert caught.value.exit_code == 5


@pytest.mark.parametrize("url", ["", "x", "ftp://h/x", "http://", "http:///x", "http://h:x/", "http://h:99999/",
                                 "http://a..b/", "http://[::1/", "https://é..x/", "http://a b/"])  # fmt: skip
def test_addresses_that_are_none(url: str, client: Client) -> None:
    with pytest.raises(ValueProblem, match="is no address that can be read"):
        client.ask(url)


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("https://h", Origin("https", "h", 443), "/"),
        ("http://H:80/a b?c d#e", Origin("http", "h", 80), "/a%20b?c%20d"),
        ("http://[::1]:5/%2Fé", Origin("http", "::1", 5), "/%2F%C3%A9"),
        ("https://u:p@bücher.example/", Origin("https", "xn--bcher-kva.example", 443), "/"),
        ("http://h/\r\nHost: evil", Origin("http", "h", 80), "/Host:%20evil"),
    ],
)
def test_addresses(url: str, origin: Origin, target: str) -> None:
    assert split_url(url) == (origin, target)


def test_what_is_secret_in_an_address_is_not_shown() -> None:
    assert plain_url("https://me:pw@host/a?b#c") == "https://host/a"
    assert password_in("https://me:p%40w@host/a") == "Basic bWU6cEB3"
    assert password_in("https://host/a@b") == ""


def test_a_user_in_an_address_is_shown_to_its_server(hub: HubServer, client: Client) -> None:
    hub.put("/a", b"x")
    client.ask(hub.url.replace("://", "://me:pw@") + "/a")
    assert hub.requests[0].headers["authorization"] == "Basic bWU6cHc="


# Failures in words.


def test_a_header_cannot_be_smuggled_in(hub: HubServer, client: Client) -> None:
    with pytest.raises(AppError):
        client.ask(hub.put("/a"), authorization="Bearer x\r\nX-Evil: 1")
    assert hub.count() == 0


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (socket.gaierror(-2, "x"), "the name of h cannot be looked up", 5),
        (socket.gaierror(-3, "x"), "the name of h cannot be looked up", 5),
        (ConnectionRefusedError(111, "x"), "h refuses connections", 5),
        (TimeoutError(), "h does not answer", 110),
        (OSError(113, "No route to host"), "h cannot be reached: No route to host", 5),
        (ConnectionResetError(104, "x"), "the connection to h was cut", 5),
    ],
)
def test_what_happens_to_connections(error: Exception, words: str, code: int) -> None:
    found = failures.broken(error, "https://h/a?secret")
    assert (found.message, found.exit_code) == (f"https://h/a: {words}", code)
    assert found.hint
    assert "proxy p" in failures.broken(error, "https://h/a", proxy="http://u:secret@p").message or code == 110 or (
        "cut" in words)  # fmt: skip


@pytest.mark.parametrize(
    ("status_code", "headers", "authorized", "words"),
    [
        (401, {}, False, "wants to know who asks, or there is no such model"),
        (401, {}, True, "does not accept the token or password that it was sent"),
        (403, {}, True, "forbids access"),
        (401, {"x-error-code": "GatedRepo"}, False, "its owner wants to know who asks (gated)"),
        (403, {"x-error-code": "GatedRepo"}, True, "its owner has not let your account in yet (gated)"),
        (404, {"x-error-code": "RepoNotFound"}, True, "there is no such repository"),
        (404, {"x-error-code": "EntryNotFound"}, True, "there is no such file in the repository"),
        (404, {"x-error-code": "RevisionNotFound"}, True, "there is no such revision"),
        (412, {}, False, "does not serve this client any more"),
        (429, {}, False, "too many requests"),
        (500, {}, False, "failed"),
        (418, {}, False, "answered with HTTP 418"),
    ],
)
def test_what_a_status_means(status_code: int, headers: dict[str, str], authorized: bool, words: str) -> None:
    found = failures.refused(status_code, "https://h/o/r/resolve/main/f", headers, authorized=authorized)
    assert words in found.message
    assert found.message.startswith("https://h/o/r/resolve/main/f: ")
    assert found.hint
    assert isinstance(found, Passing) == (status_code in (429, 500))
    if "gated" in found.message:
        assert "https://h/o/r" in found.hint
        assert "resolve" not in found.hint


def test_near_names_are_told() -> None:
    assert failures.missing("https://h/x", near=("a", "b")).hint == "did you mean a or b?"


# Pauses.


@pytest.mark.parametrize(
    ("code", "headers", "seconds"),
    [
        (429, {"retry-after": "12"}, 12),
        (503, {"retry-after": "1.5"}, 1.5),
        (200, {"retry-after": "12"}, 0),
        (429, {"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20),  # it is 00:01:40
        (429, {"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT", "date": "Thu, 01 Jan 1970 00:01:50 GMT"}, 10),
        (429, {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        (429, {"retry-after": "soon"}, 0),
        (429, {"retry-after": "-5"}, 0),
        (429, {"ratelimit": '"pages";r=0;t=42', "ratelimit-policy": '"fixed";q=100;w=300'}, 42),
        (200, {"ratelimit": '"pages";r=1;t=42'}, 0),
        (200, {"ratelimit": '"pages";r=0;t=42'}, 42),
        (200, {"ratelimit": "limit=100, remaining=0, reset=50"}, 50),
        (200, {"ratelimit-remaining": "0", "ratelimit-reset": "50"}, 50),
        (200, {"ratelimit-remaining": "76;w=21600", "ratelimit-limit": "100;w=21600"}, 0),
        (429, {"ratelimit-remaining": "0;w=21600"}, 0),
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000060", "date":
               "Tue, 14 Nov 2023 22:13:20 GMT"}, 60),
        (200, {"ratelimit-reset": "50"}, 0),
        (429, {}, 0),
    ],
)  # fmt: skip
def test_how_long_a_server_wants_to_be_left_alone(code: int, headers: dict[str, str], seconds: float) -> None:
    assert wait_of(code, headers, now=100.0) == seconds


# Proxies.


ALL = {"http_proxy": "http://small", "HTTP_PROXY": "http://big", "https_proxy": "", "HTTPS_PROXY": "p:3128",
       "all_proxy": "http://all"}  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        (ALL, "http://h", "http://small"),
        (ALL, "https://h", "http://p:3128"),
        ({"ALL_PROXY": "http://all"}, "https://h", "http://all"),
        ({}, "https://h", ""),
    ],
)
def test_which_proxy(variables: dict[str, str], url: str, proxy: str) -> None:
    origin, _ = split_url(url)
    assert choose_proxy(origin.scheme, origin.host, origin.port, variables) == proxy


EXCEPTIONS = [
    ("h.example", "h.example", False), ("h.example", "sub.h.example", False), (".h.example", "a.h.example", False),
    ("*.h.example", "a.h.example", False), ("h.example", "oh.example", True), ("*", "h", False),
    ("h:443", "h", False), ("h:80", "h", True), ("other h", "h", False), ("other,H.", "h", False),
    ("10.0.0.0/8", "10.1.2.3", False), ("10.0.0.0/8", "11.1.2.3", True), ("10.0.0.0/8", "h", True),
    ("10.1.2.3", "10.1.2.3", False), ("fd00::/8", "[fd00::1]", False), ("[fd00::1]:443", "[fd00::1]", False),
    ("fd00::1", "[fd00::1]", False), (", ,", "h", True), (".", "h", True), ("nonsense/99", "h", True),
    ("", "localhost", False), ("", "127.3.2.1", False), ("", "[::1]", False), ("", "a.localhost", False),
]  # fmt: skip


@pytest.mark.parametrize(("exceptions", "host", "through"), EXCEPTIONS)
def test_exceptions_from_the_proxy(exceptions: str, host: str, through: bool) -> None:
    origin, _ = split_url(f"https://{host}")
    for name in ("no_proxy", "NO_PROXY"):
        found = choose_proxy("https", origin.host, 443, {"https_proxy": "p", name: exceptions})
        assert found == ("http://p" if through else "")


def test_what_is_this_machine() -> None:
    assert [is_loopback(name) for name in ("LOCALHOST.", "127.0.0.1", "::1", "127.a.b.c", "1270.0.0.1", "h")] == [
        True, True, True, False, False, False]  # fmt: skip


def test_a_request_goes_through_a_proxy(hub: HubServer) -> None:
    """The name of the server need not be known here."""
    hub.put("/a", b"through")
    with Client(variables={"http_proxy": hub.url.replace("://", "://me:pw@")}) as client:
        assert client.ask("http://hub.invalid/a").body == b"through"
        assert client.ask("http://hub.invalid/a").body == b"through"
    assert hub.requests[0].target == "http://hub.invalid/a"
    assert hub.requests[0].headers["proxy-authorization"] == "Basic bWU6cHc="
    assert hub.requests[0].headers["host"] == "hub.invalid"
    assert hub.connections == 1


def test_a_proxy_that_is_not_there(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    variables = {"http_proxy": f"http://u:secret@127.0.0.1:{port}"}
    with Client(variables=variables, rest=lambda seconds: None) as client, pytest.raises(AppError) as caught:
        client.ask("http://hub.invalid/a")
    assert caught.value.message == f"http://hub.invalid/a: the proxy 127.0.0.1:{port} refuses connections"
    assert "NO_PROXY" in caught.value.hint


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "https://127.0.0.1:1", "http://", "http://h:x"])
def test_proxies_that_cannot_be_used(proxy: str) -> None:
    with Client(variables={"all_proxy": proxy}) as client, pytest.raises(ValueProblem, match="is no proxy that"):
        client.ask("http://hub.invalid/a")


# TLS.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A key and a certificate for this machine that nobody trusts."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secure(certificate: str) -> Iterator[HubServer]:
    """A server with TLS."""
    with HubServer(certificate=certificate) as server:
        yield server


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_named_authority_is_trusted(name: str, secure: HubServer, certificate: str) -> None:
    data = bytes(range(256)) * 2000
    url = secure.put("/a", data)
    with Client(variables={name: certificate}) as client:
        assert [client.ask(url).body for _ in range(2)] == [data] * 2
    assert secure.connections == 1


def test_an_unknown_authority_is_refused(secure: HubServer, client: Client, rests: list[float]) -> None:
    url = secure.put("/a", b"x")
    with pytest.raises(AppError, match=r"the certificate of .* is refused: self-signed certificate") as caught:
        client.ask(url)
    assert "SSL_CERT_FILE" in caught.value.hint
    assert (secure.count(), rests) == (0, [])
    with Client(verify=False) as careless:
        assert careless.ask(url).body == b"x"


def test_files_of_authorities_that_are_none(tmp_path: Path) -> None:
    for content in (None, "nonsense"):
        path = tmp_path / "ca"
        if content:
            path.write_text(content)
        with Client(variables={"SSL_CERT_FILE": str(path)}, resolve=lambda host, port: look_up("127.0.0.1", port)) as (
            client
        ), HubServer() as hub, pytest.raises(ValueProblem, match="no file with certificates"):  # fmt: skip
            client.ask(hub.url.replace("http:", "https:"))


def test_plain_and_encrypted_doors_are_told_apart(hub: HubServer, client: Client) -> None:
    with pytest.raises(AppError, match="does not speak TLS as it should") as caught:
        client.ask(hub.url.replace("http:", "https:"))
    assert "different doors" in caught.value.hint


def test_nothing_leads_from_an_encrypted_address_to_a_plain_one(
    secure: HubServer, hub: HubServer, certificate: str
) -> None:
    target = hub.put("/b", b"x")
    url = secure.put("/a", always=redirect(target))
    with Client(variables={"SSL_CERT_FILE": certificate}) as client, pytest.raises(ValueProblem, match="not encrypted"):
        client.ask(url, authorization="Bearer secret")
    assert hub.count() == 0


def test_a_tunnel_through_a_proxy(secure: HubServer, hub: HubServer, certificate: str) -> None:
    """The proxy sees where it goes, and nothing else."""
    secure.put("/a", b"through")
    hub.tunnels["hub.invalid:443"] = secure.port
    variables = {"https_proxy": hub.url.replace("://", "://me:pw@"), "SSL_CERT_FILE": certificate}
    with Client(variables=variables) as client:
        assert client.ask("https://hub.invalid/a", authorization="Bearer secret").body == b"through"
    (connect_request,) = hub.requests
    assert (connect_request.method, connect_request.target) == ("CONNECT", "hub.invalid:443")
    assert connect_request.headers == {"host": "hub.invalid:443", "proxy-authorization": "Basic bWU6cHc="}
    assert secure.requests[0].headers["host"] == "hub.invalid"
    assert "proxy-authorization" not in secure.requests[0].headers


def test_a_tunnel_that_the_proxy_refuses(hub: HubServer) -> None:
    variables = {"https_proxy": hub.url}
    with Client(variables=variables, rest=lambda seconds: None) as client, pytest.raises(AppError) as caught:
        client.ask("https://hub.invalid/a")
    assert caught.value.message == f"https://hub.invalid/a: the proxy {hub.netloc} does not let it through (HTTP 502)"


# Addresses of both families.


def test_an_address_that_refuses_is_passed_over(hub: HubServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = server.getsockname()
    link = race([(socket.AF_INET, nobody), (socket.AF_INET, ("127.0.0.1", hub.port))], 60)
    with link:
        assert link.getpeername()[1] == hub.port


def test_an_address_that_never_answers_is_passed_over(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener whose queue is full lets the system drop what comes, as a family that leads nowhere does."""
    monkeypatch.setattr(connect, "HEAD_START_S", 0.01)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = []
        for _ in range(2):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            waiting.append(one)
        link = race([(socket.AF_INET, full.getsockname()), (socket.AF_INET, ("127.0.0.1", hub.port))], 60)
        with link:
            assert link.getpeername()[1] == hub.port
        for one in waiting:
            one.close()


def test_no_address_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = server.getsockname()
    with pytest.raises(ConnectionRefusedError):
        race([(socket.AF_INET, nobody)] * 2, 60)
    with pytest.raises(TimeoutError):
        race([], 60)


def test_families_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    six, four = socket.AF_INET6, socket.AF_INET
    found = [(six, 1, 6, "", (f"::{n}", 1)) for n in range(3)] + [(four, 1, 6, "", ("1.1.1.1", 1))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: found)
    assert [family for family, _ in look_up("h", 1)] == [six, four, six, six]


# Threads.


def test_threads_share_it(hub: HubServer, client: Client) -> None:
    bodies = {f"/{number}": bytes([number]) * 50_000 for number in range(8)}
    for path, body in bodies.items():
        hub.put(path, body)
    right: list[bool] = []

    def work(path: str) -> None:
        right.extend(client.ask(hub.url + path).body == bodies[path] for _ in range(20))

    threads = [threading.Thread(target=work, args=(path,)) for path in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 160
    assert hub.connections <= 8


def test_a_stream_that_waits_can_be_woken(hub: HubServer, client: Client) -> None:
    started = threading.Event()

    def hang(seen: Seen, reply: Reply) -> None:
        reply.hang_after = 3
        started.set()

    url = hub.put("/a", b"x" * 100, always=hang)
    with client.stream(url) as stream:
        assert stream.read(3) == b"xxx"
        timer = threading.Timer(0, stream.cut)
        timer.start()
        with pytest.raises(Passing, match="was cut"):
            stream.read(3)
        timer.join()


def test_answers_are_values() -> None:
    assert Answer(200, {"a": "b"}, b"", "u") == Answer(200, {"a": "b"}, b"", "u")
    assert fine(Seen("GET", "/", {}), Reply()) is None  # type: ignore[func-returns-value]
