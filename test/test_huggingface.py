"""Hugging Face: what is listed, how failures are worded, and that the stand-in of these tests is faithful."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import PACKAGE
from hubs.huggingface import HuggingFaceHub
from hubs.server import HubServer, Reply, Seen

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.listing import RemoteFile
from ramalama_like.models.access import Access
from ramalama_like.models.choices import choose
from ramalama_like.models.client import Client
from ramalama_like.models.sources import huggingface
from ramalama_like.reference import parse_reference

SMALL = b"# a model\n"
LARGE = b"GGUF" + bytes(2000)
OTHER = b"GGUF" + bytes(3000)
LARGE_SUM = hashlib.sha256(LARGE).hexdigest()
FILES = {"README.md": SMALL, "Model-Q4_K_M.gguf": LARGE, "sub dir/é+#-Q8_0.gguf": OTHER}


@pytest.fixture
def hub() -> Iterator[HuggingFaceHub]:
    with HuggingFaceHub() as server:
        yield server


def find(hub: HuggingFaceHub, text: str, token: str = "", **variables: str) -> huggingface.Listing:
    access = Access(hf_endpoint=hub.url, hf_token=token, variables=variables)
    with Client(rest=lambda _: None) as client:
        return huggingface.find(parse_reference(text), client, access)


def refusal(hub: HuggingFaceHub, text: str, token: str = "") -> tuple[str, str]:
    with pytest.raises(ValueProblem) as caught:
        find(hub, text, token)
    return caught.value.message.replace(hub.url, "HUB"), caught.value.hint.replace(hub.url, "HUB")


# Listing.


def test_a_repository_is_listed_in_one_state_of_it(hub: HuggingFaceHub) -> None:
    repository = hub.add("org/repo", FILES)
    commit = repository.refs["main"]
    found = find(hub, "hf://org/repo")
    base = f"{hub.url}/org/repo/resolve/{commit}"
    assert (found.name, found.revision, found.authorization, found.notes) == ("hf://org/repo", commit, "", ())
    assert found.files == (
        RemoteFile("Model-Q4_K_M.gguf", f"{base}/Model-Q4_K_M.gguf", 2004, LARGE_SUM),
        RemoteFile("README.md", f"{base}/README.md", len(SMALL)),
        RemoteFile("sub dir/é+#-Q8_0.gguf", f"{base}/sub%20dir/%C3%A9%2B%23-Q8_0.gguf", 3004,
                   hashlib.sha256(OTHER).hexdigest()),
    )  # fmt: skip
    assert hub.count() == 2


def test_what_is_listed_can_be_fetched(hub: HuggingFaceHub) -> None:
    hub.add("org/repo", FILES)
    with Client() as client:
        for file in find(hub, "hf://org/repo").files:
            assert client.ask(file.url).body == FILES[file.path]


@pytest.mark.parametrize("per_page", [1, 2, 3])
def test_a_long_list_comes_in_pages(per_page: int) -> None:
    with HuggingFaceHub(per_page=per_page) as hub:
        repository = hub.add("org/repo", {f"m-{number}.gguf": LARGE for number in range(5)})
        found = find(hub, "hf://org/repo")
        assert [file.path for file in found.files] == [f"m-{number}.gguf" for number in range(5)]
        tree = f"/api/models/org/repo/tree/{repository.refs['main']}"
        assert hub.count(tree) == -(-5 // per_page)
        # A mirror hands on the addresses of the hub that it mirrors.
        hub.next_base = "https://huggingface.co"
        assert find(hub, "hf://org/repo").files == found.files


def test_pages_lead_nowhere_else(hub: HuggingFaceHub) -> None:
    with HubServer() as other:
        hub.per_page = 1
        hub.add("org/repo", FILES)
        hub.next_base = f"{other.url}/steal?to="
        found = find(hub, "hf://org/repo", "")
        assert len(found.files) == 3
        assert other.count() == 0


def test_pages_that_never_end_are_given_up(hub: HuggingFaceHub) -> None:
    commit = hub.add("org/repo", FILES).refs["main"]
    tree = f"/api/models/org/repo/tree/{commit}"

    def endless(seen: Seen) -> Reply:
        return Reply(200, b"[]", {"Link": f'<{hub.url}{tree}?again>; rel="next"'})

    hub.route(tree, endless)
    with pytest.raises(AppError) as caught:
        find(hub, "hf://org/repo")
    assert caught.value.message.endswith("sent a list without end")
    assert hub.count(tree) == 2


def test_a_revision_is_pinned(hub: HuggingFaceHub) -> None:
    repository = hub.add("org/repo", {"m.gguf": LARGE})
    first = repository.refs["main"]
    repository.commit({"m.gguf": OTHER})
    repository.commit({"n.gguf": OTHER}, "refs/pr/1")
    assert find(hub, "hf://org/repo").files[0].size_bytes == 3004
    pinned = find(hub, f"hf://org/repo@{first}")
    assert (pinned.revision, pinned.files[0].size_bytes) == (first, 2004)
    assert pinned.name == f"hf://org/repo@{first}"
    assert find(hub, "hf://org/repo@refs/pr/1").files[0].path == "n.gguf"
    assert find(hub, "https://huggingface.co/org/repo/tree/refs/pr/1").files[0].path == "n.gguf"


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("org/repo", ["Model-Q4_K_M.gguf"]),
        ("hf://org/repo:q8_0", ["sub dir/Model-Q8_0.gguf"]),
        ("huggingface://org/repo/Model-Q4_K_M.gguf", ["Model-Q4_K_M.gguf"]),
        ("hf.co/org/repo/sub dir/Model-Q8_0.gguf", ["sub dir/Model-Q8_0.gguf"]),
        ("https://huggingface.co/org/repo/blob/main/sub%20dir/Model-Q8_0.gguf", ["sub dir/Model-Q8_0.gguf"]),
        ("https://huggingface.co/org/repo/resolve/main/Model-Q4_K_M.gguf?download=true", ["Model-Q4_K_M.gguf"]),
        ("https://hf.co/org/repo", ["Model-Q4_K_M.gguf"]),
        ("https://huggingface.co/org/repo/tree/main/sub%20dir", ["sub dir/Model-Q8_0.gguf"]),
    ],
)
def test_every_form_of_a_name_leads_to_its_files(hub: HuggingFaceHub, text: str, files: list[str]) -> None:
    hub.add("org/repo", {"Model-Q4_K_M.gguf": LARGE, "sub dir/Model-Q8_0.gguf": OTHER, "README.md": SMALL})
    choice = choose(find(hub, text), parse_reference(text))
    assert [file.path for file in choice.files] == files


def test_a_repository_that_has_moved_is_found(hub: HuggingFaceHub) -> None:
    hub.add("new/home", FILES)
    hub.add("org/repo", {}).moved_to = "new/home"
    found = find(hub, "hf://org/repo:Q4_K_M")
    assert found.name == "hf://org/repo:Q4_K_M"
    assert found.notes == ("hf://org/repo is now called hf://new/home",)
    assert found.files[0].url.startswith(f"{hub.url}/new/home/resolve/")


def test_names_that_could_do_harm_are_left_out(hub: HuggingFaceHub) -> None:
    repository = hub.add("org/repo", FILES)
    evil = ["../../etc/passwd", "/etc/passwd", "a/../b", "a\\b", "a\nb", "a\x1b[2Jb", "", ".", "a//b", "x" * 300]
    repository.extra = [
        *({"type": "file", "path": path, "size": 1} for path in evil), {"type": "file", "size": 1}, 7,
        {"type": "file", "path": 7}, {"type": "file", "path": "Model-Q4_K_M.gguf", "size": 1},
    ]  # fmt: skip
    found = find(hub, "hf://org/repo")
    assert sorted(file.path for file in found.files) == sorted(FILES)
    assert found.files[0].size_bytes == 2004  # the first of a name counts
    assert found.notes == ("12 files with unusable names left out",)


@pytest.mark.parametrize("size", [-1, "7", 1.5, True, None, 1 << 70])
@pytest.mark.parametrize("total", ["", "0" * 63, "G" * 64, None, 7])
def test_nonsense_about_a_file_is_not_believed(hub: HuggingFaceHub, size: object, total: object) -> None:
    repository = hub.add("org/repo", {})
    repository.extra = [{"type": "file", "path": "m.gguf", "size": 5, "lfs": {"oid": total, "size": size}}]
    assert [(file.size_bytes, file.sha256) for file in find(hub, "hf://org/repo").files] == [(-1, "")]


@pytest.mark.parametrize(
    ("body", "what"),
    [(b"<html>", "something else than JSON"), (b"[]", "something else than it is known for"), (b"{}", "no commit"),
     (b'{"sha": "../x"}', "no commit"), (b"[" * 100_000, "something else than JSON"),
     (b"\xff", "something else than JSON")],
)  # fmt: skip
def test_answers_that_make_no_sense(hub: HuggingFaceHub, body: bytes, what: str) -> None:
    hub.put("/api/models/org/repo/revision/main", body)
    with pytest.raises(AppError) as caught:
        find(hub, "hf://org/repo")
    assert caught.value.exit_code == 5
    assert caught.value.message.endswith(f" sent {what}")


def test_an_endpoint_below_a_folder(hub: HuggingFaceHub) -> None:
    """Proxies of companies serve the hub below a path of theirs."""
    commit = "0123456789" * 4
    hub.put("/proxy/hf/api/models/org/repo/revision/main", json.dumps({"sha": commit, "id": "org/repo"}).encode())
    hub.put(f"/proxy/hf/api/models/org/repo/tree/{commit}", b'[{"type": "file", "path": "m.gguf", "size": 4}]')
    access = Access(hf_endpoint=f"{hub.url}/proxy/hf")
    with Client() as client:
        found = huggingface.find(parse_reference("hf://org/repo"), client, access)
    assert found.files == (RemoteFile("m.gguf", f"{hub.url}/proxy/hf/org/repo/resolve/{commit}/m.gguf", 4),)


@pytest.mark.parametrize(
    "endpoint", ["huggingface.co", "ftp://x", "http://", "", "https://a b", "https:///x", "http://x\n"]
)
def test_an_endpoint_that_is_none(endpoint: str) -> None:
    with Client() as client, pytest.raises(ValueProblem) as caught:
        huggingface.find(parse_reference("hf://org/repo"), client, Access(hf_endpoint=endpoint))
    assert caught.value.message.startswith("HF_ENDPOINT: ")
    assert caught.value.hint == "write it like https://huggingface.co"


def test_secrets_in_an_endpoint_are_not_shown(hub: HuggingFaceHub) -> None:
    hub.add("org/repo", FILES).gated = True
    access = Access(hf_endpoint=hub.url.replace("http://", "http://user:secret@") + "/")
    with Client() as client:
        with pytest.raises(ValueProblem) as wrong:
            huggingface.find(parse_reference("hf://org/repo"), client, access)
        assert "does not accept the token or password that it was sent (HTTP 401)" in wrong.value.message
        assert "secret" not in wrong.value.message + wrong.value.hint
        hub.tokens = {"Basic dXNlcjpzZWNyZXQ=": "me"}
        shown = str(huggingface.find(parse_reference("hf://org/repo"), client, access).notes)
        with pytest.raises(ValueProblem) as caught:
            huggingface.find(parse_reference("hf://org/none"), client, access)
    assert "secret" not in shown + caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("header", "url"),
    [
        ("", ""),
        ('<https://h/a?cursor=x%3D>; rel="next"', "https://h/a?cursor=x%3D"),
        ("<https://h/a>; rel=next", "https://h/a"),
        ('<https://h/a>; rel="prev", <https://h/b>; rel="next"', "https://h/b"),
        ('<https://h/a>; title="next"; REL="last next"', "https://h/a"),
        ('<https://h/a,b;c>;rel="next",<https://h/d>; rel="first"', "https://h/a,b;c"),
        ('<https://h/a>; rel="nextish"', ""),
        ("<https://h/a", ""),
        (";;<>,<<>>", ""),
    ],
)
def test_the_next_page_in_a_header(header: str, url: str) -> None:
    assert huggingface._next_link(header) == url


# Tokens.


def test_the_token_is_shown_and_opens_what_is_private(hub: HuggingFaceHub) -> None:
    hub.tokens = {"hf_secret": "me"}
    hub.add("org/repo", FILES, private=True).members = {"me"}
    found = find(hub, "hf://org/repo", "hf_secret\n")
    assert len(found.files) == 3
    assert found.authorization == "Bearer hf_secret"
    assert all(seen.headers["authorization"] == "Bearer hf_secret" for seen in hub.requests)


def test_the_token_does_not_follow_to_where_large_files_are(hub: HuggingFaceHub) -> None:
    with HubServer() as storage, Client() as client:
        hub.storage = storage
        hub.tokens = {"hf_secret": "me"}
        hub.add("org/repo", FILES, gated=True).members = {"me"}
        found = find(hub, "hf://org/repo", "hf_secret")
        for file in found.files:
            assert client.ask(file.url, authorization=found.authorization).body == FILES[file.path]
        assert storage.count() == 2
        assert all("hf_secret" not in str(seen.headers) for seen in storage.requests)
        assert storage.requests[0].query == "signature=secret"
        with pytest.raises(ValueProblem) as caught:
            client.ask(found.files[0].url)
        assert "wants to know who asks (gated)" in caught.value.message
        assert caught.value.hint == f"ask for access at {hub.url}/org/repo, then log in or set HF_TOKEN"


def test_the_token_can_be_kept_back(hub: HuggingFaceHub) -> None:
    hub.tokens = {"hf_secret": "me"}
    hub.add("org/repo", FILES)
    assert find(hub, "hf://org/repo", "hf_secret", HF_HUB_DISABLE_IMPLICIT_TOKEN="1").authorization == ""
    assert all("authorization" not in seen.headers for seen in hub.requests)


def test_gated_files_are_listed_and_noted(hub: HuggingFaceHub) -> None:
    hub.add("org/repo", FILES).gated = True
    found = find(hub, "hf://org/repo")
    assert len(found.files) == 3
    assert found.notes == (f"hf://org/repo is gated: its conditions have to be accepted at {hub.url}/org/repo",)


def test_nothing_is_asked_offline(hub: HuggingFaceHub) -> None:
    hub.add("org/repo", FILES)
    with Client(offline=True) as client, pytest.raises(AppError) as caught:
        huggingface.find(parse_reference("hf://org/repo"), client, Access(offline=True, hf_endpoint=hub.url))
    assert "offline" in caught.value.message
    assert hub.count() == 0


# Failures.


def test_a_gated_repository(hub: HuggingFaceHub) -> None:
    hub.tokens = {"hf_secret": "me"}
    repository = hub.add("org/repo", FILES)
    repository.gated = repository.hidden = True
    assert refusal(hub, "hf://org/repo:Q4_K_M") == (
        "hf://org/repo: only those who have accepted its conditions are let in (gated)",
        "accept them at HUB/org/repo, then: ramalama-like login huggingface",
    )
    assert refusal(hub, "hf://org/repo", "hf_secret") == (
        "hf://org/repo: your account has not been let in (gated)",
        "ask for access at HUB/org/repo",
    )
    repository.members = {"me"}
    assert len(find(hub, "hf://org/repo", "hf_secret").files) == 3


def test_a_repository_that_does_not_exist_is_answered_with_the_nearest(hub: HuggingFaceHub) -> None:
    hub.tokens = {"hf_secret": "me"}
    for name in (
        "unsloth/Qwen3-8B-GGUF",
        "unsloth/Qwen3-4B-GGUF",
        "unsloth/gemma-3-4b-it-GGUF",
        "google/gemma-3-4b-it",
    ):
        hub.add(name, {})
    hub.add("unsloth/Qwen3-8B-GGUFs", {}, private=True)
    assert refusal(hub, "hf://unsloth/Qwen3-8B-GUFF:Q4_K_M") == (
        "hf://unsloth/Qwen3-8B-GUFF: there is no such repository, or it is private (HTTP 401)",
        "did you mean hf://unsloth/Qwen3-8B-GGUF or hf://unsloth/Qwen3-4B-GGUF?"
        " For a private one: ramalama-like login huggingface",
    )
    # Another owner's name, written wrongly; asked with an account.
    assert refusal(hub, "hf://gogle/gemma-3-4b-it", "hf_secret") == (
        "hf://gogle/gemma-3-4b-it: there is no such repository, or your account may not see it (HTTP 404)",
        "did you mean hf://google/gemma-3-4b-it?",
    )
    assert (
        refusal(hub, "hf://nobody/nothing")[1] == "check the name; for a private one: ramalama-like login huggingface"
    )
    assert refusal(hub, "hf://nobody/nothing", "hf_secret")[1] == "check the name"


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 503])
def test_a_search_that_fails_takes_nothing_from_the_message(hub: HuggingFaceHub, status: int) -> None:
    hub.put("/api/models", b"no", status=status)
    message, hint = refusal(hub, "hf://org/repo")
    assert message == "hf://org/repo: there is no such repository, or it is private (HTTP 401)"
    assert hint == "check the name; for a private one: ramalama-like login huggingface"
    assert hub.count("/api/models") == 3


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'[7, {"id": 7}, {"id": "no slash"}, {}]', b"[" * 100_000])
def test_a_search_that_makes_no_sense_neither(hub: HuggingFaceHub, body: bytes) -> None:
    hub.put("/api/models", body)
    assert refusal(hub, "hf://org/repo")[1].startswith("check the name")


def test_a_revision_that_does_not_exist(hub: HuggingFaceHub) -> None:
    hub.add("org/repo", FILES).commit(FILES, "v1.5")
    assert refusal(hub, "hf://org/repo@v1.4") == (
        "hf://org/repo: there is no revision v1.4 (HTTP 404)", "did you mean @v1.5?",
    )  # fmt: skip
    assert refusal(hub, "hf://org/repo@zzz")[1] == "did you mean @main or @v1.5?"


def test_a_token_that_is_not_accepted(hub: HuggingFaceHub) -> None:
    hub.add("org/repo", FILES)
    message, hint = refusal(hub, "hf://org/repo", "hf_old")
    assert message == f"hf://org/repo: {hub.netloc} does not accept your token (HTTP 401)"
    assert hint == "make a new one: ramalama-like login huggingface; or unset HF_TOKEN: public models need none"
    assert "hf_old" not in message + hint


def test_a_disabled_repository(hub: HuggingFaceHub) -> None:
    hub.add("org/repo", FILES, disabled=True)
    assert refusal(hub, "hf://org/repo") == (
        f"hf://org/repo: {hub.netloc} has disabled this repository", "look at HUB/org/repo, or use another one",
    )  # fmt: skip


def test_a_repository_that_is_hidden_while_it_is_listed(hub: HuggingFaceHub) -> None:
    commit = hub.add("org/repo", FILES).refs["main"]
    hub.put(f"/api/models/org/repo/tree/{commit}", b"", status=404, headers={"X-Error-Code": "RepoNotFound"})
    assert refusal(hub, "hf://org/repo")[0].startswith("hf://org/repo: there is no such repository")


def test_rate_limits_are_waited_for_and_then_named(hub: HuggingFaceHub) -> None:
    from hubs.server import status

    commit = hub.add("org/repo", FILES).refs["main"]
    about = json.dumps({"sha": commit, "id": "org/repo"}).encode()
    hub.put("/api/models/org/repo/revision/main", about, faults=[status(429, Retry_After="7"), status(503)])
    waits: list[float] = []
    with Client(rest=waits.append) as client:
        access = Access(hf_endpoint=hub.url)
        assert len(huggingface.find(parse_reference("hf://org/repo"), client, access).files) == 3
        hub.put("/api/models/org/repo/revision/main", about, always=status(429, Retry_After="9999999"))
        with pytest.raises(AppError) as caught:
            huggingface.find(parse_reference("hf://org/repo"), client, access)
    assert waits[0] == pytest.approx(7, abs=1)
    assert "too many requests (HTTP 429)" in caught.value.message
    assert caught.value.hint == "try again later; those who log in may ask more often"


# The library of the hub's makers.

ASK = """
import json, sys
import huggingface_hub as hub
from huggingface_hub.errors import *
api = hub.HfApi()
def kind(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__
print(json.dumps({
    "tree": [[e.path, e.size, e.lfs.sha256 if e.lfs else ""] for e in api.list_repo_tree("org/repo", recursive=True)
             if isinstance(e, hub.hf_api.RepoFile)],
    "sha": api.model_info("org/repo").sha,
    "bytes": [len(open(hub.hf_hub_download("org/repo", name), "rb").read()) for name in sys.argv[1:]],
    "refs": [b.name for b in api.list_repo_refs("org/repo").branches],
    "who": api.whoami()["name"],
    "found": [m.id for m in api.list_models(author="org", search="rep")],
    "missing": kind(lambda: api.model_info("org/none").sha),
    "anonymous": kind(lambda: api.model_info("org/none", token=False).sha),
    "revision": kind(lambda: api.model_info("org/repo", revision="none").sha),
    "entry": kind(lambda: hub.hf_hub_download("org/repo", "none.gguf")),
    "gated": kind(lambda: hub.hf_hub_download("org/gated", "m.gguf")),
    "disabled": kind(lambda: api.model_info("org/off").sha),
    "token": hub.get_token(),
}))
"""


def library(code: str, home: Path, *arguments: str, **variables: str) -> str:
    """What the library says, in a process of its own: it reads variables while it is imported."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
           "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1", **variables}  # fmt: skip
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_stand_in_satisfies_the_library_of_the_hubs_makers(tmp_path: Path) -> None:
    """And our listing says the same as theirs."""
    with HuggingFaceHub(per_page=2) as hub, HubServer() as storage:
        hub.storage = storage
        hub.tokens = {"hf_secret": "me"}
        repository = hub.add("org/repo", FILES)
        hub.add("org/gated", {"m.gguf": LARGE}, gated=True)
        hub.add("org/off", {"m.gguf": LARGE}, disabled=True)
        said = json.loads(library(ASK, tmp_path, *FILES, HF_ENDPOINT=hub.url, HF_TOKEN="hf_secret"))
        found = find(hub, "hf://org/repo", "hf_secret")
        assert said == {
            "tree": [[file.path, file.size_bytes, file.sha256] for file in found.files], "sha": found.revision,
            "bytes": [len(data) for data in FILES.values()], "refs": ["main"], "who": "me", "found": ["org/repo"],
            "missing": "RepositoryNotFoundError", "anonymous": "RepositoryNotFoundError",
            "revision": "RevisionNotFoundError", "entry": "RemoteEntryNotFoundError", "gated": "GatedRepoError",
            "disabled": "DisabledRepoError", "token": "hf_secret",
        }  # fmt: skip
        assert repository.refs["main"] == found.revision
        assert all("authorization" not in seen.headers for seen in storage.requests)


def test_a_token_that_runs_out_is_renewed_by_the_library(hub: HuggingFaceHub, tmp_path: Path) -> None:
    """A login in the browser leaves a token for some hours, and the right to get the next one."""
    folder = tmp_path / ".cache/huggingface"
    folder.mkdir(parents=True)
    (folder / "token").write_text("hf_old\n")
    (folder / "stored_tokens").write_text("[me]\nhf_token = hf_old\nrefresh_token = again\nexpires_at = 1700000000\n")
    hub.put("/oauth/token", json.dumps({"access_token": "hf_new", "refresh_token": "more", "expires_in": 3600,
                                        "token_type": "bearer"}).encode())  # fmt: skip
    code = ("from ramalama_like.models.access import Access\n"
            "from ramalama_like.models.sources.huggingface import find_token\n"
            "import sys\n"
            "home, old, offline = sys.argv[1:]\n"
            "token = find_token(Access(hf_token=old, home=home, offline=bool(offline)))\n"
            "print(token, 'huggingface_hub' in sys.modules)\n"
            )  # fmt: skip
    environment = {"HF_ENDPOINT": hub.url, "PYTHONPATH": str(PACKAGE.parent)}
    assert library(code, tmp_path, str(tmp_path), "hf_old", "yes", **environment) == "hf_old False\n"
    assert library(code, tmp_path, str(tmp_path), "hf_other", "", **environment) == "hf_other False\n"
    assert library(code, tmp_path, str(tmp_path), "hf_old", "", **environment) == "hf_new True\n"


@pytest.mark.parametrize(
    ("variables", "files"),
    [
        ({}, {}),
        ({"HF_TOKEN": "one"}, {".cache/huggingface/token": "two"}),
        ({"HUGGING_FACE_HUB_TOKEN": "one"}, {}),
        ({"HF_TOKEN": "one", "HUGGING_FACE_HUB_TOKEN": "two"}, {}),
        ({"HF_TOKEN": ""}, {".cache/huggingface/token": " two\r\n"}),
        ({"HF_HOME": "{home}/hf"}, {"hf/token": "three", ".cache/huggingface/token": "two"}),
        ({"HF_TOKEN_PATH": "{home}/mine", "HF_HOME": "{home}/hf"}, {"mine": "four\n", "hf/token": "three"}),
        ({"XDG_CACHE_HOME": "{home}/cache"}, {"cache/huggingface/token": "five"}),
    ],
)
def test_the_token_is_the_librarys(variables: dict[str, str], files: dict[str, str], tmp_path: Path) -> None:
    """Where two places have one, and whatever stands around it."""
    from ramalama_like.request import Request
    from ramalama_like.settings import find_access, load_settings

    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    given = {name: text.format(home=tmp_path) for name, text in variables.items()}
    theirs = library("import huggingface_hub as h; print(h.get_token() or '')", tmp_path, **given).strip()
    environ = {"HOME": str(tmp_path), **given}
    settings = load_settings(Request("list", (), {}), environ, "/nowhere").settings
    ours = huggingface.find_token(find_access(settings, environ))
    assert ours == theirs
