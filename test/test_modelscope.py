"""ModelScope: what is listed, and how failures are worded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from hubs.modelscope import ModelScopeHub
from hubs.server import HubServer

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.listing import Listing, RemoteFile
from ramalama_like.models.access import Access
from ramalama_like.models.choices import choose
from ramalama_like.models.client import Client
from ramalama_like.models.sources import modelscope
from ramalama_like.reference import parse_reference

SMALL = b"# a model\n"
LARGE = b"GGUF" + bytes(2000)
FILES = {"README.md": SMALL, "sub dir/é+#-Q8_0.gguf": LARGE, "Model-Q4_K_M.gguf": LARGE + b"2"}


@pytest.fixture
def hub() -> Iterator[ModelScopeHub]:
    with ModelScopeHub() as server:
        yield server


def find(hub: ModelScopeHub, text: str, token: str = "") -> Listing:
    access = Access(ms_endpoint=hub.url, variables={"MODELSCOPE_API_TOKEN": token} if token else {})
    with Client(rest=lambda _: None) as client:
        return modelscope.find(parse_reference(text), client, access)


def refusal(hub: ModelScopeHub, text: str, token: str = "") -> tuple[str, str]:
    with pytest.raises(AppError) as caught:
        find(hub, text, token)
    return caught.value.message.replace(hub.netloc, "HUB"), caught.value.hint.replace(hub.url, "HUB")


def sum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_repository_is_listed_with_sizes_and_sums(hub: ModelScopeHub) -> None:
    repository = hub.add("org/repo", FILES)
    found = find(hub, "ms://org/repo")
    commit = repository.commit()
    base = f"{hub.url}/models/org/repo/resolve/{commit}"
    large = FILES["Model-Q4_K_M.gguf"]
    assert found == Listing("modelscope://org/repo", (
        RemoteFile("Model-Q4_K_M.gguf", f"{base}/Model-Q4_K_M.gguf", 2005, sum_of(large)),
        RemoteFile("README.md", f"{base}/README.md", len(SMALL), sum_of(SMALL)),
        RemoteFile("sub dir/é+#-Q8_0.gguf", f"{base}/sub%20dir/%C3%A9%2B%23-Q8_0.gguf", 2004, sum_of(LARGE)),
    ), commit)  # fmt: skip
    assert hub.count() == 1


def test_what_is_listed_can_be_fetched_also_from_another_host(hub: ModelScopeHub) -> None:
    with HubServer() as storage, Client() as client:
        hub.storage = storage
        hub.tokens = {"ms_secret": "me"}
        repository = hub.add("org/repo", FILES)
        repository.private, repository.members = True, {"me"}
        found = find(hub, "ms://org/repo", "ms_secret")
        for file in found.files:
            assert client.ask(file.url, authorization=found.authorization).body == FILES[file.path]
        assert storage.count() == 2
        assert not any({"authorization", "cookie"} & set(seen.headers) for seen in storage.requests)
        assert hub.requests[0].headers["cookie"] == "m_session_id=ms_secret"


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("modelscope://org/repo", ["Model-Q4_K_M.gguf"]),
        ("ms://org/repo:Q8_0", ["sub/Model-Q8_0.gguf"]),
        ("ms://org/repo/sub/Model-Q8_0.gguf", ["sub/Model-Q8_0.gguf"]),
        ("https://modelscope.cn/models/org/repo", ["Model-Q4_K_M.gguf"]),
        ("https://www.modelscope.cn/models/org/repo/resolve/master/sub/Model-Q8_0.gguf", ["sub/Model-Q8_0.gguf"]),
        ("https://modelscope.cn/models/org/repo/file/view/master/Model-Q4_K_M.gguf", ["Model-Q4_K_M.gguf"]),
    ],
)
def test_every_form_of_a_name_leads_to_its_files(hub: ModelScopeHub, text: str, files: list[str]) -> None:
    hub.add("org/repo", {"Model-Q4_K_M.gguf": LARGE, "sub/Model-Q8_0.gguf": LARGE})
    assert [file.path for file in choose(find(hub, text), parse_reference(text)).files] == files


def test_a_revision_and_one_that_does_not_exist(hub: ModelScopeHub) -> None:
    hub.add("org/repo", FILES).revisions["v1.5"] = {"old.gguf": LARGE}
    assert [file.path for file in find(hub, "ms://org/repo@v1.5").files] == ["old.gguf"]
    assert refusal(hub, "ms://org/repo@v1.4") == (
        "modelscope://org/repo: there is no revision v1.4", "did you mean @v1.5?",
    )  # fmt: skip
    assert refusal(hub, "ms://org/repo@zzz")[1] == "did you mean @master or @v1.5?"
    hub.put("/api/v1/models/org/repo/revisions", b"no", status=500)
    assert refusal(hub, "ms://org/repo@zzz")[1] == "check what follows the @"


def test_a_state_that_cannot_be_told_is_not_made_up(hub: ModelScopeHub) -> None:
    for last in ("null", "{}", '{"ShortId": "abc"}', '{"ShortId": 7}', '{"ShortId": "fffffff"}', "[]"):
        hub.put("/api/v1/models/org/repo/repo/files",
                b'{"Code": 200, "Data": {"Files": [{"Path": "m.gguf", "Type": "blob", "Size": 4, "Revision": "%s"}], '
                b'"LatestCommitter": %s}}' % (b"e" * 40, last.encode()))  # fmt: skip
        found = find(hub, "ms://org/repo")
        assert (found.revision, found.files) == (
            "", (RemoteFile("m.gguf", f"{hub.url}/models/org/repo/resolve/master/m.gguf", 4),),
        )  # fmt: skip


def test_names_that_could_do_harm_are_left_out(hub: ModelScopeHub) -> None:
    hub.add("org/repo", FILES).extra = [
        {"Path": "../x", "Type": "blob"}, {"Path": "/x", "Type": "blob"}, {"Path": "a\nb"}, {"Type": "blob"}, 7,
        {"Path": "README.md", "Type": "blob", "Size": 1},
    ]  # fmt: skip
    found = find(hub, "ms://org/repo")
    assert sorted(file.path for file in found.files) == sorted(FILES)
    assert found.notes == ("4 files with unusable names left out",)


def test_a_repository_that_does_not_exist_is_answered_with_the_nearest(hub: ModelScopeHub) -> None:
    hub.tokens = {"ms_secret": "me"}
    for name in ("unsloth/Qwen3-8B-GGUF", "unsloth/gemma-3-4b-it-GGUF", "other/Qwen3-8B-GGUF"):
        hub.add(name, {})
    assert refusal(hub, "ms://unsloth/Qwen3-8B-GUFF") == (
        "modelscope://unsloth/Qwen3-8B-GUFF: there is no such repository, or it is private",
        "did you mean modelscope://unsloth/Qwen3-8B-GGUF? For a private one set MODELSCOPE_API_TOKEN",
    )
    assert refusal(hub, "ms://nobody/nothing")[1] == "check the name; for a private one set MODELSCOPE_API_TOKEN"
    assert refusal(hub, "ms://nobody/nothing", "ms_secret") == (
        "modelscope://nobody/nothing: there is no such repository, or your account may not see it", "check the name",
    )  # fmt: skip


@pytest.mark.parametrize("body", [b"no", b"[]", b"{}", b'{"Data": {"Models": [7, {}, {"Path": 7, "Name": "x"}]}}'])
@pytest.mark.parametrize("status", [200, 500])
def test_a_search_that_fails_takes_nothing_from_the_message(hub: ModelScopeHub, body: bytes, status: int) -> None:
    hub.put("/api/v1/models/", body, status=status)
    assert refusal(hub, "ms://org/repo")[1] == "check the name; for a private one set MODELSCOPE_API_TOKEN"


def test_what_is_private(hub: ModelScopeHub) -> None:
    hub.tokens = {"ms_secret": "me"}
    hub.add("org/repo", FILES).private = True
    assert refusal(hub, "ms://org/repo") == (
        "modelscope://org/repo: HUB wants to know who asks (HTTP 403)",
        "ask for access at HUB/models/org/repo; for a private one set MODELSCOPE_API_TOKEN",
    )
    assert refusal(hub, "ms://org/repo", "ms_secret") == (
        "modelscope://org/repo: HUB does not let your token in (HTTP 403)", "ask for access at HUB/models/org/repo",
    )  # fmt: skip


def test_a_failure_that_looks_like_absence_is_tried_again(hub: ModelScopeHub) -> None:
    """The hub says 404 where its own database is overloaded; only the message tells."""
    hub.add("org/repo", FILES)
    hub.failure = (404, 10010205001, "Error 1461: Can't create more than max_prepared_stmt_count statements\n")
    assert len(find(hub, "ms://org/repo").files) == 3
    hub.put("/api/v1/models/org/repo/repo/files", b'{"Code": 500, "Message": "busy\\u001b[2J", "Success": false}')
    with pytest.raises(AppError) as caught:
        find(hub, "ms://org/repo")
    assert caught.value.message == f"modelscope://org/repo: {hub.netloc} failed (code 500: busy [2J)"
    assert (caught.value.hint, caught.value.exit_code) == ("try again later", 5)
    assert not isinstance(caught.value, ValueProblem)


@pytest.mark.parametrize(
    ("body", "status", "what"),
    [
        (b"<html>", 200, "sent something else than JSON"),
        (b"[]", 200, "sent something else than it is known for"),
        (b'{"Code": 200}', 200, "sent no list of files"),
        (b'{"Code": 200, "Data": {"Files": 7}}', 200, "sent something else than a list of files"),
        (b"404 page not found", 404, "there is no such repository, or it is private"),
    ],
)
def test_answers_that_make_no_sense(hub: ModelScopeHub, body: bytes, status: int, what: str) -> None:
    hub.put("/api/v1/models/org/repo/repo/files", body, status=status)
    assert refusal(hub, "ms://org/repo")[0].endswith(what)


def test_the_address_of_the_hub() -> None:
    assert modelscope.find_endpoint(Access()) == "https://modelscope.cn"
    assert modelscope.find_endpoint(Access(variables={"MODELSCOPE_DOMAIN": "www.modelscope.ai"})) == (
        "https://www.modelscope.ai"
    )
    configured = Access(ms_endpoint="http://mirror/ms/", variables={"MODELSCOPE_DOMAIN": "www.modelscope.ai"})
    assert modelscope.find_endpoint(configured) == "http://mirror/ms"
    for access, name in (
        (Access(ms_endpoint="mirror"), "modelscope_endpoint: mirror"),
        (Access(variables={"MODELSCOPE_DOMAIN": "ftp://x"}), "MODELSCOPE_DOMAIN: ftp://x"),
    ):
        with pytest.raises(ValueProblem) as caught:
            modelscope.find_endpoint(access)
        assert caught.value.message == f"{name} is no address of a hub"


def test_nothing_is_asked_offline(hub: ModelScopeHub) -> None:
    with Client(offline=True) as client, pytest.raises(AppError) as caught:
        modelscope.find(parse_reference("ms://org/repo"), client, Access(offline=True, ms_endpoint=hub.url))
    assert "offline" in caught.value.message
    assert hub.count() == 0
