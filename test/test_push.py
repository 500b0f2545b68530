"""The commands push, login and logout, against a registry on loopback; test/engine has the real one."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Result, error_text, run_cli, run_program, snapshot
from hubs.registry import FakeRegistry
from hubs.server import HubServer, Reply, Seen
from test_ollama import weights

from ramalama_like.errors import AppError
from ramalama_like.models.access import Access
from ramalama_like.models.client import Client
from ramalama_like.models.push import Pusher, PushFile, push_order
from ramalama_like.models.registry import Registry
from ramalama_like.models.store import Store

DEMO = Path(__file__).parents[1] / "ramalama_like" / "data" / "demo" / "demo.gguf"
SUM = hashlib.sha256(DEMO.read_bytes()).hexdigest()


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as running:
        yield running


def auth_file(world: Path) -> Path:
    return world / "run" / "containers" / "auth.json"


def kept(world: Path) -> dict[str, str]:
    auths: dict[str, dict[str, str]] = json.loads(auth_file(world).read_text())["auths"]
    return {host: base64.b64decode(entry["auth"]).decode() for host, entry in auths.items()}


def manifest(registry: FakeRegistry, repository: str, tag: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(registry.manifests[repository, tag][0])
    return found


# push


def test_what_is_pushed_is_pulled(registry: FakeRegistry, world: Path) -> None:
    store = ("--store", str(world / "store"))
    for words, kind in [((), "raw"), (("--type", "raw"), "raw"), (("--type=artifact",), "artifact")]:
        done = run_cli(*store, "push", *words, "demo", f"{registry.place}/t/demo:{kind}")
        digest = f"sha256:{hashlib.sha256(registry.manifests['t/demo', kind][0]).hexdigest()}"
        assert (done.code, done.out) == (0, f"oci://{registry.place}/t/demo@{digest}\n")
        artifact = "artifactType" in manifest(registry, "t/demo", kind)
        assert artifact == (kind == "artifact")
        assert run_cli(*store, "--quiet", "pull", f"{registry.place}/t/demo:{kind}") == Result(0, "", "")
    blob = world / "store" / "ramalama-like" / "blobs" / f"sha256-{SUM}"
    assert blob.read_bytes() == DEMO.read_bytes()
    # Back under its own name, and under another one.
    again = run_cli(*store, "push", "--type=artifact", f"oci://{registry.place}/t/demo:artifact")
    assert again.err == "Pushed 2.6 MB, 2.6 MB of it was there\n"
    moved = run_cli(*store, "push", "--type=artifact", f"{registry.place}/t/demo:raw", f"oci://{registry.place}/u:1")
    assert moved.code == 0
    assert manifest(registry, "u", "1")["layers"] == manifest(registry, "t/demo", "artifact")["layers"]


@pytest.mark.parametrize("kind", ["raw", "artifact"])
def test_a_model_of_several_files_comes_back_whole(
    registry: FakeRegistry, world: Path, tmp_path: Path, kind: str
) -> None:
    names = {"m-00001-of-00002.gguf": "model", "m-00002-of-00002.gguf": "shard", "mmproj-m.gguf": "mmproj",
             "chat_template.jinja": "template"}  # fmt: skip
    data = {name: weights(tmp_path) + name.encode() * 999 for name in names}
    data["chat_template.jinja"] = b"{{ messages }}"
    for name, content in data.items():
        (tmp_path / name).write_bytes(content)
    files = push_order([PushFile(names[name], name, str(tmp_path / name)) for name in reversed(names)])
    assert [file.name for file in files] == list(names)
    with Client() as client:
        pusher = Pusher(Registry(client, Access(home="/nowhere"), registry.place, "a/many", "pull,push"), "1")
        pushed = pusher.artifact(files, {}) if kind == "artifact" else pusher.image(files, "raw")
    assert len(manifest(registry, "a/many", "1")["layers"]) == len(names)
    assert pushed.sent_bytes == pushed.size_bytes
    store = world / "store"
    done = run_cli("--store", str(store), "--quiet", "pull", f"{registry.place}/a/many:1")
    assert done == Result(0, "", "")
    record = Store(str(store)).find_record(f"oci://{registry.place}/a/many:1")
    assert record is not None
    assert [(file.name, file.role, file.sha256) for file in record.files] == [
        (name, role, hashlib.sha256(data[name]).hexdigest()) for name, role in names.items()
    ]


def test_two_files_cannot_share_a_name() -> None:
    with pytest.raises(AppError, match=r"^two files of the model have the name x$"):
        push_order([PushFile("model", "x", "/a/x"), PushFile("mmproj", "x", "/b/x")])


def test_long_and_foreign_names_fit_into_archives(registry: FakeRegistry, world: Path, tmp_path: Path) -> None:
    name = f"{'ü' * 60}-{'long' * 30}.gguf"
    (tmp_path / "f").write_bytes(weights(tmp_path))
    with Client() as client:
        Pusher(Registry(client, Access(home="/nowhere"), registry.place, "x", "pull,push"), "1").image(
            [PushFile("model", name, str(tmp_path / "f"))], "raw"
        )
    store = world / "store"
    assert run_cli("--store", str(store), "--quiet", "pull", f"{registry.place}/x:1") == Result(0, "", "")
    record = Store(str(store)).find_record(f"oci://{registry.place}/x:1")
    assert record is not None
    assert [file.name for file in record.files] == [name]


def test_the_configuration_decides_about_the_type(registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMALAMA_CONVERT_TYPE", "artifact")
    assert run_cli("push", "demo", f"{registry.place}/x").code == 0
    assert "artifactType" in manifest(registry, "x", "latest")


def test_an_image_upon_another(registry: FakeRegistry) -> None:
    base = registry.layer("application/vnd.docker.image.rootfs.diff.tar.gzip", b"a shell")
    config = {"architecture": "amd64", "os": "linux", "config": {"Env": ["A=1"], "Labels": {"a": "b"}},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + "0" * 64]}}  # fmt: skip
    registry.add_layers("base", "1", base, config=json.dumps(config).encode())
    done = run_cli("push", "--type", "car", "--carimage", f"{registry.place}/base:1", "demo", f"{registry.place}/car")
    assert done.code == 0
    made = manifest(registry, "car", "latest")
    assert made["layers"][0] == base | {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"}
    new = json.loads(registry.blobs[made["config"]["digest"]])
    assert new["config"] == {"Env": ["A=1"], "Labels": {"a": "b", "org.containers.type": "ai.image.model.car"}}
    assert new["rootfs"]["diff_ids"] == ["sha256:" + "0" * 64, made["layers"][1]["digest"]]
    registry.add_layers("base", "2", base, config=b"{}")
    done = run_cli("push", "--type", "car", "--carimage", f"{registry.place}/base:2", "demo", f"{registry.place}/car")
    assert done == Result(22, "", error_text(
        f"{registry.place}/base: cannot be built upon: it has no usable configuration",
        "name another image with --carimage, or push with --type raw",
    ))  # fmt: skip


def test_a_dry_run_of_a_push_asks_nobody(registry: FakeRegistry, world: Path) -> None:
    before = snapshot(world)
    assert run_cli("--dryrun", "push", "demo", f"{registry.place}/x:1") == Result(0, "", (
        f"Note: no program would be started; demo (2.6 MB) would be pushed to oci://{registry.place}/x:1 "
        "as an image of the type raw\n"
    ))  # fmt: skip
    dry = run_cli("--dryrun=json", "push", "--type", "artifact", "demo", f"{registry.place}/x:1")
    assert json.loads(dry.out) == {"command": "push", "steps": []}
    assert registry.hub.count() == 0
    assert snapshot(world) == before


@pytest.mark.parametrize(("words", "code", "message", "hint"), [
    (["demo"], 22, "demo: is no name in a registry, and no other is given",
     "write: ramalama-like push MODEL oci://HOST/NAME:TAG"),
    (["demo", "hf://a/b"], 22, "hf://a/b: models are pushed to registries only", "write oci://HOST/NAME:TAG"),
    (["demo", "./x"], 22, "./x: models are pushed to registries only", "write oci://HOST/NAME:TAG"),
    (["demo", "h.io/x@sha256:" + "0" * 64], 22, "h.io/x@sha256:" + "0" * 64 + ": a digest cannot be pushed to",
     "name a tag"),
    (["demo", "h.io/X"], 22, "h.io/X: is no name in a registry", "names in registries are lower-case"),
    (["/nothing.gguf", "h.io/x"], 22, "/nothing.gguf: No such file or directory",
     "check the path; 'demo' is a model that is always there"),
    (["--offline", "demo", "127.0.0.1:1/x"], 5, None, None),
])  # fmt: skip
def test_what_cannot_be_pushed(words: list[str], code: int, message: str | None, hint: str | None) -> None:
    done = run_cli("push", *words)
    assert (done.code, done.out) == (code, "")
    if message is not None and hint is not None:
        assert done.err == error_text(message, hint)


def test_a_model_that_is_not_here_is_not_pushed(registry: FakeRegistry, world: Path) -> None:
    layer = registry.layer("application/vnd.cncf.model.weight.v1.raw", DEMO.read_bytes(),
                           org_cncf_model_filepath="demo.gguf")  # fmt: skip
    registry.add_layers("a", "1", layer)
    name = f"oci://{registry.place}/a:1"
    assert run_cli("--store", str(world / "store"), "push", name) == Result(
        22, "", error_text(f"{name}: is not on this machine", f"fetch it first: ramalama-like pull {name}")
    )


# login and logout


def test_who_logs_in_may_push(registry: FakeRegistry, world: Path) -> None:
    registry.users = {"anna": "sesame: ö"}
    place = registry.place
    refused = run_cli("push", "demo", f"{place}/x")
    assert (refused.code, refused.err.splitlines()[-1]) == (22, f"Hint: log in with: ramalama-like login {place}")
    wrong = run_program("login", place, "-u", "anna", "--password-stdin", stdin=b"sesame\n")
    assert wrong == Result(22, "", error_text(
        f"{place} does not accept this user and password (HTTP 401: incorrect username or password)",
        "check them; some registries want a token in place of the password",
    ))  # fmt: skip
    assert not auth_file(world).exists()
    done = run_program("login", place, "--username", "anna", "--password-stdin", stdin="sesame: ö\r\n".encode())
    assert done == Result(0, "", f"Logged in to {place} as anna; user and password are in {auth_file(world)}\n")
    assert kept(world) == {place: "anna:sesame: ö"}
    assert auth_file(world).stat().st_mode & 0o777 == 0o600
    assert run_cli("push", "demo", f"{place}/x").code == 0
    assert run_cli("logout", place) == Result(0, "", f"Logged out of {place}\n")
    assert kept(world) == {}
    assert run_cli("logout", place) == Result(22, "", error_text(
        f"not logged in to {place}: {auth_file(world)} has no password for it", "check the name of the registry",
    ))  # fmt: skip


def test_a_password_on_the_command_line_is_taken_and_warned_about(registry: FakeRegistry, world: Path) -> None:
    registry.users = {"anna": "sesame"}
    done = run_cli("login", registry.place, "-u", "anna", "-p", "sesame")
    assert (done.code, done.err.splitlines()[0]) == (
        0, "Warning: -p: others on this machine can read it: better by --password-stdin",
    )  # fmt: skip
    assert "sesame" not in done.err + done.out
    assert kept(world) == {registry.place: "anna:sesame"}


def test_a_file_of_ones_own_and_that_of_docker(registry: FakeRegistry, world: Path) -> None:
    mine = world / "mine.json"
    words = ("login", registry.place, "-u", "anna", "--password-stdin")
    place = registry.place
    assert run_program(*words, "--authfile", str(mine), stdin=b"x").err == (
        f"{place} did not ask who you are; user and password are kept in {mine} all the same\n"
    )
    docker = world / "home" / ".docker" / "config.json"
    assert run_program(*words, "--engine", "docker", stdin=b"x").code == 0
    assert json.loads(docker.read_text()) == {"auths": {place: {"auth": base64.b64encode(b"anna:x").decode()}}}
    assert not auth_file(world).exists()
    assert run_cli("logout", place) == Result(22, "", error_text(
        f"not logged in to {place}: {auth_file(world)} has no password for it",
        f"{docker} has a password: name it with --authfile",
    ))  # fmt: skip
    assert run_cli("logout", place, "--authfile", str(mine)).code == 0
    assert run_cli("logout", place, "--engine", "docker").code == 0


def test_a_terminal_is_asked_and_shows_no_password(registry: FakeRegistry, world: Path) -> None:
    registry.users = {"anna": "sesame"}
    leader, follower = pty.openpty()
    script = ("import os, sys, fcntl, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
              "from ramalama_like.main import run_argv; sys.exit(run_argv(sys.argv[1:]))")  # fmt: skip
    process = subprocess.Popen([sys.executable, "-c", script, "login", registry.place],
                               stdin=follower, stdout=follower, stderr=follower,
                               env={**os.environ, "RAMALAMA_CONFIG": os.devnull})  # fmt: skip
    try:
        shown = read_until(leader, b"User at ")
        os.write(leader, b"anna\n")
        shown += read_until(leader, b"Password of anna")
        while termios.tcgetattr(follower)[3] & termios.ECHO:
            assert process.poll() is None
        os.write(leader, b"sesame\n")
        shown += read_until(leader, b"Logged in")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(leader)
        os.close(follower)
    assert b"sesame" not in shown
    assert kept(world) == {registry.place: "anna:sesame"}


def read_until(descriptor: int, words: bytes) -> bytes:
    shown = b""
    while words not in shown:
        shown += os.read(descriptor, 1000)
    return shown


@pytest.mark.parametrize(("words", "message", "hint"), [
    ([], "a registry is needed", "name one, such as quay.io, or huggingface"),
    (["ollama"], "Ollama's registry needs no login", "pull from it as it is"),
    (["modelscope"], "for ModelScope there is no login here", "set MODELSCOPE_API_TOKEN"),
    (["nothing"], "nothing: is no registry", "write HOST or HOST:PORT, such as quay.io"),
])  # fmt: skip
def test_where_nobody_can_log_in(words: list[str], message: str, hint: str) -> None:
    for command in ("login", "logout"):
        assert run_cli(command, *words) == Result(22, "", error_text(message, hint))


def test_without_a_terminal_nobody_is_asked() -> None:
    assert run_cli("login", "h.io") == Result(22, "", error_text("login needs a user", "name it with --username"))
    assert run_cli("login", "h.io", "-u", "x") == Result(22, "", error_text(
        "nobody can be asked for the password here", "send it with --password-stdin"))  # fmt: skip


def test_dry_runs_of_logins_change_nothing(world: Path) -> None:
    before = snapshot(world)
    path = auth_file(world)
    assert run_cli("--dryrun", "login", "h.io", "-p", "sesame") == Result(
        0, "", f"Note: no program would be started; what h.io accepts would be kept in {path}\n"
    )
    assert run_cli("--dryrun", "logout", "h.io") == Result(
        0, "", f"Note: no program would be started; what {path} holds for h.io would be removed\n"
    )
    assert snapshot(world) == before


# Hugging Face


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    def who(seen: Seen) -> Reply:
        if seen.headers.get("authorization") == "Bearer hf_right":
            return Reply(200, b'{"name": "anna"}')
        return Reply(401, b'{"error": "Invalid username or password."}')

    with HubServer() as running:
        running.route("/api/whoami-v2", who)
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def test_the_token_is_where_hugging_faces_library_reads_it(
    hub: HubServer, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world / "home" / ".cache" / "huggingface" / "token"
    for word in ("huggingface", "hf", "https://huggingface.co"):
        done = run_program("login", word, "--password-stdin", stdin=b"hf_right\n")
        assert done == Result(0, "", f"Logged in to Hugging Face as anna; the token is in {path}\n")
        assert path.read_bytes() == b"hf_right"
        assert path.stat().st_mode & 0o777 == 0o600
        script = "import huggingface_hub; print(huggingface_hub.get_token())"
        read = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert read.stdout == "hf_right\n"
        assert run_cli("logout", word) == Result(0, "", "Logged out of Hugging Face\n")
        assert not path.exists()
    assert run_cli("logout", "hf") == Result(22, "", error_text(f"not logged in to Hugging Face: there is no {path}"))
    monkeypatch.setenv("HF_HOME", str(world / "elsewhere"))
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    done = run_cli("login", "hf", "--token", "hf_right")
    assert done.err.splitlines()[-1] == "Warning: $HF_TOKEN holds another token, which counts more"
    assert (world / "elsewhere" / "token").read_bytes() == b"hf_right"
    assert "hf_right" not in done.err


@pytest.mark.parametrize("token", ["hf_wrong", "", "two words", "hf_\x00", "ö"])
def test_a_token_that_is_none_is_not_kept(hub: HubServer, world: Path, token: str) -> None:
    done = run_program("login", "hf", "--password-stdin", stdin=token.encode())
    assert done.code == 22
    assert "hint: make" in done.err.lower()
    assert not (world / "home" / ".cache").exists()
