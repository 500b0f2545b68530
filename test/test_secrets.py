"""Passwords and tokens in addresses: no command ever shows them, whatever it says about the address."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness import Recorder, run_cli
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.reference import plain_url

SECRET = "S3cr3t"
ADDRESSES = (
    f"https://me:{SECRET}@127.0.0.1:1/x.gguf?sig={SECRET}",
    f"HTTPS://me:{SECRET}@127.0.0.1:1/dir/x.gguf?sig={SECRET}",
    f"http://{SECRET}@127.0.0.1:1/x?sig={SECRET}#{SECRET}",
    f"http://127.0.0.1:1?{SECRET}/x.gguf",
    f"http://me:a/{SECRET}@127.0.0.1:1/x.gguf",
    f"http://me:a?{SECRET}@127.0.0.1:1/x.gguf",
    f"http://me:{SECRET}@",
    f"http://[::1?{SECRET}",
    f" https://me:{SECRET}@127.0.0.1:1/x.gguf",
    f"hf://me:{SECRET}@owner/model?token={SECRET}",
    f"hf.co/owner/model?token={SECRET}",
    f"https://huggingface.co/owner/model/x.gguf?token={SECRET}",
    f"oci://me:{SECRET}@registry.example/model:latest",
    f"ollama://library/model?{SECRET}",
    f"ftp://me:{SECRET}@127.0.0.1/x.gguf",
    f"http:///{SECRET}@x",
    f"http:////me:{SECRET}@127.0.0.1:1/x.gguf",
    f"me:{SECRET}@127.0.0.1:1/m",
    f"me:{SECRET}@127.0.0.1:1/m.gguf?sig={SECRET}",
    f"me:{SECRET}@host",
    f"me:a/{SECRET}@127.0.0.1:1/m",
    f"https:me:{SECRET}@127.0.0.1/x",
    f"https:/me:{SECRET}@127.0.0.1/x.gguf",
    f"s3://bucket/x.gguf?X-Amz-Signature={SECRET}",
)
LINES = (
    ("--dryrun", "serve", "ADDRESS"),
    ("--dryrun=json", "serve", "ADDRESS"),
    ("--dryrun", "run", "ADDRESS", "hello"),
    ("--dryrun=json", "run", "demo", "--model-draft", "ADDRESS"),
    ("--dryrun=json", "bench", "--backend", "vulkan,cpu", "ADDRESS"),
    ("serve", "ADDRESS"),
    ("--debug", "serve", "ADDRESS"),
    ("serve", "demo", "--model-draft", "ADDRESS"),
    ("serve", "demo", "ADDRESS"),
    ("explain", "serve", "ADDRESS"),
    ("explain", "--json", "run", "demo", "--model-draft", "ADDRESS"),
    ("explain", "fit", "ADDRESS"),
    ("explain", "ADDRESS"),
    ("fit", "--timeout", "1", "ADDRESS"),
    ("--debug", "fit", "--timeout", "1", "ADDRESS"),
    ("fit", "demo", "ADDRESS"),
    ("rm", "ADDRESS"),
    ("rm", "demo", "ADDRESS"),
    ("--dryrun", "rm", "ADDRESS"),
    ("tag", "ADDRESS", "hf://owner/model"),
    ("tag", "demo", "ADDRESS"),
    ("inspect", "ADDRESS"),
    ("--debug", "inspect", "--json", "ADDRESS"),
    ("--dryrun", "pull", "ADDRESS"),
    ("pull", "--timeout", "1", "ADDRESS"),
    ("export", "ADDRESS", "x.tar"),
    ("convert", "ADDRESS", "x.gguf"),
    ("push", "ADDRESS", "oci://127.0.0.1:1/x"),
    ("push", "demo", "ADDRESS"),
    ("logs", "--dryrun", "demo", "ADDRESS"),
    ("help", "ADDRESS"),
    ("ADDRESS",),
    ("--dryrun", "chat", "--url", "ADDRESS", "hello"),
    ("--dryrun=json", "chat", "--url", "ADDRESS", "hello"),
    ("explain", "chat", "--url", "ADDRESS", "hello"),
    ("chat", "--url", "ADDRESS", "hello"),
)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_no_command_shows_them(line: tuple[str, ...], fake_engine: Callable[..., Recorder],
                               monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    recorder = fake_engine("podman-5.4")
    recorder.make_known()
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for address in ADDRESSES:
        done = run_cli(*(address if word == "ADDRESS" else word for word in line))
        assert SECRET not in done.out + done.err, address
        assert SECRET not in str(recorder.take()), address


PLAIN = {
    "https://me:pw@host/a?b#c": "https://host/a",
    "https://me:pw@host": "https://host",
    "https://host:8080/a@b/x.gguf": "https://host:8080/a@b/x.gguf",
    "https://[::1]/a@b": "https://[::1]/a@b",
    "https://me:p/w@host/x": "https://host/x",
    "http:///me@host/x": "http://host/x",
    "me:pw@host:1/m": "host:1/m",
    "https:me:pw@host/x": "host/x",
    "me:p/w@host/x": "host/x",
    "http://a:b@c:d/x@y": "http://y",
    "localhost:5000/owner/name:tag@sha256:abc": "localhost:5000/owner/name:tag@sha256:abc",
    "name:tag@sha256:abc": "name:tag@sha256:abc",
    "owner/model:Q4_K_M@main": "owner/model:Q4_K_M@main",
    "./a:b@c.gguf": "./a:b@c.gguf",
    "https://me@host?a=b@c": "https://host",
    "https://host?mail=a@b": "https://host",
    "oci://name:tag@sha256:abc": "oci://name:tag@sha256:abc",
    "oci://quay.io/owner/name@sha256:abc": "oci://quay.io/owner/name@sha256:abc",
    "hf://owner/model/a#1.gguf": "hf://owner/model/a#1.gguf",
    "unix:///run/a@b?c": "unix:///run/a@b?c",
    "file:///a@b?c": "file:///a@b?c",
    "/tmp/a://b@c?d": "/tmp/a://b@c?d",
    "owner/model?x": "owner/model?x",
}


@pytest.mark.parametrize("url", PLAIN)
def test_what_is_left_of_an_address(url: str) -> None:
    assert plain_url(url) == PLAIN[url]


WORDS = st.text("abcXYZ019._-", min_size=1, max_size=8)


@given(st.sampled_from(["http", "https", "HTTP", "Https"]), WORDS, WORDS, st.integers(1, 65535), st.lists(WORDS), WORDS)
def test_what_is_no_secret_stays(scheme: str, user: str, host: str, port: int, path: list[str], query: str) -> None:
    place = "".join(f"/{part}" for part in path)
    kept = f"{scheme}://{host}:{port}{place}"
    assert plain_url(f"{scheme}://{user}:{user}@{host}:{port}{place}?{query}#{query}") == kept
    assert plain_url(kept) == kept


@given(st.one_of(st.text(), st.builds("{}{}".format, st.sampled_from(["https://", "oci://", "x://", "hf.co/"]),
                                      st.text("ab1:/@?#[]."))))  # fmt: skip
def test_any_text_is_made_plain_once_and_for_all(text: str) -> None:
    assert plain_url(plain_url(text)) == plain_url(text)
