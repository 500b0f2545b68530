"""Passwords for registries: found where the engines keep them, kept so that they find them, and never shown."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.errors import AppError, UsageError, ValueProblem
from ramalama_like.models.access import Access
from ramalama_like.models.credentials import (
    Credentials,
    auth_files,
    engine_file,
    files_with,
    find_credentials,
    remove_credentials,
    save_credentials,
)
from ramalama_like.models.registry_names import RegistryName, login_place, ollama_name, registry_name
from ramalama_like.reference import parse_reference


def encoded(user: str, password: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def write(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


@pytest.fixture
def access(tmp_path: Path) -> Access:
    return Access(home=str(tmp_path / "home"), variables={"XDG_RUNTIME_DIR": str(tmp_path / "run")})


# Where they are.


def test_the_files_in_their_order(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert list(auth_files(Access(home=home))) == [
        f"/run/containers/{os.getuid()}/auth.json", f"{home}/.config/containers/auth.json",
        f"{home}/.docker/config.json",
    ]  # fmt: skip
    variables = {"XDG_RUNTIME_DIR": "/r", "XDG_CONFIG_HOME": "/c", "DOCKER_CONFIG": "/d"}
    assert list(auth_files(Access(home=home, variables=variables))) == [
        "/r/containers/auth.json", "/c/containers/auth.json", "/d/config.json",
    ]  # fmt: skip
    named = variables | {"REGISTRY_AUTH_FILE": "/named"}
    assert list(auth_files(Access(home=home, variables=named))) == ["/named"]
    assert list(auth_files(Access(home=home, variables=named, authfile="/mine"))) == ["/mine"]
    assert engine_file(Access(home=home, variables=variables)) == "/r/containers/auth.json"
    assert engine_file(Access(home=home, variables=variables), "docker") == "/d/config.json"
    assert engine_file(Access(home=home, variables=named), "docker") == "/named"


def test_the_first_file_with_an_entry_counts(access: Access, tmp_path: Path) -> None:
    docker = write(tmp_path / "home/.docker/config.json", {"auths": {"quay.io": encoded("d", "1")}})
    assert find_credentials("quay.io", "a/b", access) == Credentials("d", "1", "", docker)
    podman = write(tmp_path / "run/containers/auth.json", {"auths": {"other.io": encoded("p", "2")}})
    assert find_credentials("quay.io", "a/b", access) == Credentials("d", "1", "", docker)
    write(tmp_path / "run/containers/auth.json", {"auths": {"quay.io": encoded("p", "2:3")}})
    assert find_credentials("quay.io", "a/b", access) == Credentials("p", "2:3", "", podman)
    assert not find_credentials("ghcr.io", "a/b", access)


@pytest.mark.parametrize(
    ("host", "repository", "key"),
    [
        ("quay.io", "team/x", "quay.io/team/x"), ("quay.io", "team/x", "quay.io/team"), ("quay.io", "x", "quay.io"),
        ("quay.io", "x", "https://quay.io"), ("quay.io", "x", "https://quay.io/v1/"),
        ("h:5000", "x", "http://h:5000/v2/"),
        ("docker.io", "library/x", "https://index.docker.io/v1/"), ("docker.io", "library/x", "docker.io"),
        ("docker.io", "library/x", "index.docker.io"), ("docker.io", "me/x", "docker.io/me"),
        ("[::1]:5", "x", "[::1]:5"),
    ],
)  # fmt: skip
def test_the_names_that_registries_have_there(
    access: Access, tmp_path: Path, host: str, repository: str, key: str
) -> None:
    path = write(tmp_path / "run/containers/auth.json", {"auths": {key: encoded("u", "p"), "x.io": encoded("x", "x")}})
    assert find_credentials(host, repository, access) == Credentials("u", "p", "", path)


@pytest.mark.parametrize(
    "key", ["quay.i", "quay.io/tea", "quay.io/team/xy", "quay.io.evil", "evil/quay.io", "quay.io:80"]
)
def test_a_password_goes_to_nobody_else(access: Access, tmp_path: Path, key: str) -> None:
    write(tmp_path / "run/containers/auth.json", {"auths": {key: encoded("u", "p")}})
    assert find_credentials("quay.io", "team/x", access) == Credentials()


def test_the_longest_name_counts(access: Access, tmp_path: Path) -> None:
    auths = {"quay.io": encoded("a", "1"), "quay.io/t/x": encoded("c", "3"), "quay.io/t": encoded("b", "2")}
    write(tmp_path / "run/containers/auth.json", {"auths": auths})
    for repository, user in [("t/x", "c"), ("t/y", "b"), ("z", "a"), ("", "a")]:
        assert find_credentials("quay.io", repository, access).user == user


def test_programs_that_keep_passwords_are_not_run_but_told(access: Access, tmp_path: Path) -> None:
    path = write(tmp_path / "home/.docker/config.json", {"auths": {"quay.io": {}}, "credsStore": "desktop"})
    found = find_credentials("quay.io", "x", access)
    assert not found
    assert found.origin == f"{path} leaves passwords to the program docker-credential-desktop, which is not run"
    write(tmp_path / "home/.docker/config.json", {"credHelpers": {"quay.io": "pass"}})
    assert "docker-credential-pass" in find_credentials("quay.io", "x", access).origin
    assert find_credentials("ghcr.io", "x", access) == Credentials()
    content = {"auths": {"quay.io": {"identitytoken": "t", "auth": ""}}, "credsStore": "desktop"}
    write(tmp_path / "home/.docker/config.json", content)
    assert find_credentials("quay.io", "x", access) == Credentials("", "", "t", path)


@pytest.mark.parametrize(("text", "why"), [
    ("{", "it is no JSON"), ("[]", "it holds no table"), ("[" * 100_000, "it is no JSON"), ("\xff", "it is no JSON"),
    ('{"auths": {"quay.io": {"auth": "%"}}}', "the entry for quay.io is damaged"),
    ('{"auths": {"quay.io": {"auth": "/w=="}}}', "the entry for quay.io is damaged"),
])  # fmt: skip
def test_a_damaged_file_is_told_and_not_overlooked(access: Access, tmp_path: Path, text: str, why: str) -> None:
    path = write(tmp_path / "run/containers/auth.json", text)
    with pytest.raises(ValueProblem) as caught:
        find_credentials("quay.io", "x", access)
    assert caught.value.message == f"{path}: this is no file of credentials: {why}"


@pytest.mark.parametrize("text", ["", " \n", "{}", '{"auths": 3}', '{"auths": {"quay.io": 3}}', '{"auths": null}'])
def test_a_file_without_entries_holds_none(access: Access, tmp_path: Path, text: str) -> None:
    write(tmp_path / "run/containers/auth.json", text)
    assert find_credentials("quay.io", "x", access) == Credentials()


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ValueProblem) as caught:
        find_credentials("quay.io", "x", Access(authfile=f"{tmp_path}/none"))
    assert caught.value.message == f"{tmp_path}/none: there is no such file of credentials"
    with pytest.raises(ValueProblem) as caught:
        find_credentials("quay.io", "x", Access(authfile=str(tmp_path)))
    assert (caught.value.message, caught.value.exit_code) == (f"{tmp_path}: cannot be read: Is a directory", 5)


def test_no_secret_is_ever_printed() -> None:
    assert "sesame" not in repr(Credentials("anna", "sesame", "sesame", "x"))


# Keeping them.


@given(st.text(alphabet=st.characters(exclude_characters=":", exclude_categories=["Cs"]), min_size=1), st.text(
    alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))  # fmt: skip
def test_what_is_kept_is_found_again(tmp_path_factory: pytest.TempPathFactory, user: str, password: str) -> None:
    path = str(tmp_path_factory.mktemp("x") / "deep" / "auth.json")
    save_credentials(path, "h.io:5000", user, password)
    assert find_credentials("h.io:5000", "a", Access(authfile=path)) == Credentials(user, password, "", path)


def test_a_file_keeps_what_else_it_holds_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "real.json"
    link = tmp_path / "auth.json"
    link.symlink_to(path)
    write(
        path, {"auths": {"quay.io": encoded("a", "1"), "https://index.docker.io/v1/": encoded("o", "1")}, "more": [1]}
    )
    path.chmod(0o644)
    save_credentials(str(link), "docker.io", "n", "2")
    assert link.is_symlink()
    assert json.loads(path.read_text()) == {
        "auths": {"quay.io": encoded("a", "1"), "docker.io": encoded("n", "2")}, "more": [1],
    }  # fmt: skip
    assert path.stat().st_mode & 0o777 == 0o600
    assert files_with("docker.io", Access(authfile=str(link))) == [str(link)]
    assert remove_credentials(str(link), "docker.io")
    assert not remove_credentials(str(link), "docker.io")
    assert json.loads(path.read_text()) == {"auths": {"quay.io": encoded("a", "1")}, "more": [1]}
    assert sorted(os.listdir(tmp_path)) == ["auth.json", "real.json"]


def test_a_damaged_file_is_not_overwritten(tmp_path: Path) -> None:
    for text in ("{", '{"auths": 3}'):
        path = write(tmp_path / "auth.json", text)
        with pytest.raises(ValueProblem):
            save_credentials(path, "quay.io", "u", "p")
        assert Path(path).read_text() == text


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AppError) as caught:
        save_credentials(f"{tmp_path}/file/auth.json", "quay.io", "u", "p")
    assert caught.value.exit_code == 5


# Names.


def test_where_names_lead() -> None:
    digest = "sha256:" + "0" * 64
    for text, found in {
        "oci://h.io:5000/a/b:t": RegistryName("h.io:5000", "a/b", "t"),
        f"oci://h.io/a@{digest}": RegistryName("h.io", "a", digest),
        "oci://ubuntu": RegistryName("docker.io", "library/ubuntu", "latest"),
        "127.0.0.1:5000/x": RegistryName("127.0.0.1:5000", "x", "latest"),
        "localhost/x": RegistryName("localhost", "x", "latest"),
        "rlcr://granite": RegistryName("rlcr.io", "ramalama/granite", "latest"),
    }.items():
        assert registry_name(parse_reference(text)) == found
    for text, found in {
        "ollama://smollm:135m": RegistryName("own", "library/smollm", "135m"),
        "ollama://ns/x": RegistryName("own", "ns/x", "latest"),
        "ollama://h.io/ns/x:t": RegistryName("h.io", "ns/x", "t"),
    }.items():
        assert ollama_name(parse_reference(text), "own") == found


@pytest.mark.parametrize(("word", "place"), [
    ("quay.io", "quay.io"), ("QUAY.io", "quay.io"), ("https://quay.io/v2/", "quay.io"), ("oci://h:5000/x", "h:5000"),
    ("127.0.0.1:5000", "127.0.0.1:5000"), ("localhost", "localhost"), ("docker.io", "docker.io"),
    ("https://index.docker.io/v1/", "docker.io"), ("hf", "huggingface"), ("huggingface", "huggingface"),
    ("https://huggingface.co/", "huggingface"), ("hf.co", "huggingface"),
])  # fmt: skip
def test_where_to_log_in(word: str, place: str) -> None:
    assert login_place([word]) == place


@pytest.mark.parametrize(
    "word", ["", "quay", "a b", "../x", "http://", "quay.io:0x", "\0", "ollama", "modelscope", "ms"]
)
def test_where_one_cannot_log_in(word: str) -> None:
    with pytest.raises(ValueProblem):
        login_place([word])
    with pytest.raises(UsageError):
        login_place([])
