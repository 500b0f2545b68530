"""A real registry: models are pushed, pulled and refused, and what other programs make of them is the same."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from demo_model.corpus import FIXED_ANSWER, FIXED_PROMPT
from harness import Result, error_text, run_program

from engine.conftest import Engine, refuse
from engine.registries import ENTRY, PASSWORD, USER, RealRegistry, make_certificate, run_registry
from engine.test_commands import User
from ramalama_like.errors import AppError
from ramalama_like.listing import Listing
from ramalama_like.models.access import Access
from ramalama_like.models.archives import fetch_archives
from ramalama_like.models.client import Client
from ramalama_like.models.credentials import Credentials, save_credentials
from ramalama_like.models.image_models import image_files
from ramalama_like.models.pieces import Pieces
from ramalama_like.models.push import Pusher, PushFile
from ramalama_like.models.registry import OCI_MANIFEST, Registry
from ramalama_like.models.sources import oci
from ramalama_like.models.store import Store
from ramalama_like.models.upload import put_blob, put_manifest
from ramalama_like.record import StoredFile
from ramalama_like.reference import parse_reference

DEMO = Path(__file__).parents[2] / "ramalama_like" / "data" / "demo" / "demo.gguf"
SUM = hashlib.sha256(DEMO.read_bytes()).hexdigest()
MODEL = StoredFile("model", "demo.gguf", DEMO.stat().st_size, SUM)


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    for name in ("docker-registry", "skopeo", "openssl"):
        if shutil.which(name) is None:
            refuse(f"there is no {name} on PATH")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRegistry]:
    """One that lets everybody do everything."""
    with run_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRegistry]:
    """One with TLS that wants a user and a password."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "users").write_text(ENTRY)
    with run_registry(folder, password_file=folder / "users", certificate=make_certificate(folder)) as running:
        yield running


@pytest.fixture
def access(world: Path) -> Access:
    home = world / "home"
    home.mkdir(exist_ok=True)
    return Access(home=str(home), variables={"XDG_RUNTIME_DIR": str(world / "run")})


@pytest.fixture
def client() -> Iterator[Client]:
    with Client() as made:
        yield made


def find(name: str, client: Client, access: Access) -> Listing:
    return oci.find(parse_reference(f"oci://{name}"), client, access)


def pull_image(name: str, client: Client, access: Access, store: Store) -> tuple[StoredFile, ...]:
    listing = find(name, client, access)
    with store.adopting():
        found = fetch_archives(client, listing.files, store, authorization=listing.authorization)
        return image_files(found, store, name)


def push(place: str, name: str, client: Client, access: Access) -> Pusher:
    repository, _, tag = name.partition(":")
    return Pusher(Registry(client, access, place, repository, "pull,push"), tag)


def run(*argv: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, **(env or {})})  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def insecure(engine: Engine) -> tuple[str, ...]:
    """Docker takes every registry on loopback as it is."""
    return ("--tls-verify=false",) if engine.name == "podman" else ()


# Pushing and pulling.


def test_an_artifact_comes_back_as_it_was_and_is_sent_once(
    registry: RealRegistry, client: Client, access: Access
) -> None:
    files = [PushFile("model", "demo.gguf", str(DEMO)), PushFile("template", "chat_template.jinja", __file__)]
    first = push(registry.place, "a/demo:v1", client, access).artifact(files, {"format": "gguf"})
    assert first.sent_bytes == first.size_bytes > DEMO.stat().st_size
    again = push(registry.place, "a/demo:v2", client, access).artifact(files, {"format": "gguf"})
    assert (again.digest, again.size_bytes, again.sent_bytes) == (first.digest, first.size_bytes, 0)
    listing = find(f"{registry.place}/a/demo:v2", client, access)
    assert (listing.name, listing.revision) == (f"oci://{registry.place}/a/demo:v2", first.digest)
    assert [(file.path, file.role, file.size_bytes) for file in listing.files] == [
        ("demo.gguf", "model", DEMO.stat().st_size),
        ("chat_template.jinja", "template", Path(__file__).stat().st_size),
    ]
    assert listing.files[0].sha256 == SUM
    with client.stream(listing.files[0].url) as stream:
        assert hashlib.sha256(stream.read_all()).hexdigest() == SUM
    pinned = find(f"{registry.place}/a/demo@{first.digest}", client, access)
    assert (pinned.files, pinned.revision) == (listing.files, first.digest)


def test_skopeo_sees_an_artifact_as_the_specification_has_it(
    registry: RealRegistry, client: Client, access: Access, tmp_path: Path
) -> None:
    pushed = push(registry.place, "b:1", client, access).artifact(
        [PushFile("model", "demo.gguf", str(DEMO))], {"format": "gguf", "architecture": "llama"}
    )
    run("skopeo", "copy", "--src-tls-verify=false", f"docker://{registry.place}/b:1", f"dir:{tmp_path}/out")
    text = (tmp_path / "out" / "manifest.json").read_bytes()
    assert f"sha256:{hashlib.sha256(text).hexdigest()}" == pushed.digest
    manifest = json.loads(text)
    config = (tmp_path / "out" / manifest["config"]["digest"].removeprefix("sha256:")).read_bytes()
    assert manifest == {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": "application/vnd.cncf.model.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.cncf.model.config.v1+json",
            "digest": f"sha256:{hashlib.sha256(config).hexdigest()}",
            "size": len(config),
        },
        "layers": [{
            "mediaType": "application/vnd.cncf.model.weight.v1.raw",
            "digest": f"sha256:{SUM}",
            "size": DEMO.stat().st_size,
            "annotations": {
                "org.cncf.model.filepath": "demo.gguf",
                "org.opencontainers.image.title": "demo.gguf",
            },
        }],
    }  # fmt: skip
    assert json.loads(config) == {
        "descriptor": {"name": "b"},
        "modelfs": {"type": "layers", "diffIds": [f"sha256:{SUM}"]},
        "config": {"format": "gguf", "architecture": "llama"},
    }
    assert (tmp_path / "out" / SUM).read_bytes() == DEMO.read_bytes()


def test_an_image_comes_back_and_engines_can_use_it(
    registry: RealRegistry, client: Client, access: Access, tmp_path: Path, world: Path, engine: Engine
) -> None:
    pushed = push(registry.place, "team/c:raw", client, access).image(
        [PushFile("model", "demo.gguf", str(DEMO))], "raw"
    )
    store = Store(str(world / "store"))
    assert pull_image(f"{registry.place}/team/c:raw", client, access, store) == (MODEL,)
    assert Path(store.blob_path(SUM)).read_bytes() == DEMO.read_bytes()
    name = f"{registry.place}/team/c@{pushed.digest}"
    engine.run("pull", *insecure(engine), name, check=True)
    try:
        labels = engine.run("image", "inspect", "--format", "{{json .Config.Labels}}", name, check=True).stdout
        assert json.loads(labels) == {"org.containers.type": "ai.image.model.raw"}
        identity = engine.run("create", "--label", "ai.ramalama", name, "x", check=True).stdout.strip()
        try:
            engine.run("cp", f"{identity}:/models", str(tmp_path / "models"), check=True)
        finally:
            engine.run("rm", identity, check=True)
    finally:
        engine.run("rmi", name)
    assert sorted(os.listdir(tmp_path / "models")) == ["c", "model.file"]
    assert os.readlink(tmp_path / "models" / "model.file") == "c/demo.gguf"
    assert (tmp_path / "models" / "model.file").read_bytes() == DEMO.read_bytes()


def test_an_image_that_an_engine_has_built(
    registry: RealRegistry, client: Client, access: Access, tmp_path: Path, world: Path, engine: Engine
) -> None:
    """As RamaLama's convert builds it: copied in two stages, packed, with links."""
    shutil.copy(DEMO, tmp_path / "demo.gguf")
    (tmp_path / "Containerfile").write_text(
        "FROM scratch\nCOPY demo.gguf /models/demo/demo.gguf\nCOPY links/ /models/\n"
        "LABEL org.containers.type=ai.image.model.raw\n"
    )
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "model.file").symlink_to("/models/demo/demo.gguf")
    name = f"{registry.place}/built/demo:1"
    engine.run("build", "-q", "-t", name, "-f", str(tmp_path / "Containerfile"), str(tmp_path), check=True)
    try:
        engine.run("push", *insecure(engine), name, check=True)
    finally:
        engine.run("rmi", name)
    listing = find(name, client, access)
    assert {file.role for file in listing.files} == {"layer"}
    assert pull_image(name, client, access, Store(str(world / "store"))) == (MODEL,)


def test_an_image_of_the_type_car_lies_on_another(
    registry: RealRegistry, client: Client, access: Access, tmp_path: Path, world: Path
) -> None:
    (tmp_path / "sh").write_text("a shell")
    with tarfile.open(tmp_path / "base.tar", "w") as tar:
        tar.add(tmp_path / "sh", "bin/sh")
    below = Registry(client, access, registry.place, "base", "pull,push")
    layer = Pieces([(tmp_path / "base.tar").read_bytes()])
    digest = layer.digest()
    put_blob(below, layer, digest)
    Pusher(below, "1").image([], "raw")  # an empty one, to which the layer is added by hand
    manifest: dict[str, Any] = dict(below.manifest("1").document)
    config = json.loads(below.blob(manifest["config"]["digest"]))
    config["rootfs"]["diff_ids"] = [digest]
    text = json.dumps(config).encode()
    put_blob(below, Pieces([text]), Pieces([text]).digest())
    manifest["config"] |= {"digest": Pieces([text]).digest(), "size": len(text)}
    manifest["layers"] = [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": layer.size}]
    put_manifest(below, "2", json.dumps(manifest).encode(), manifest["mediaType"])
    base = Registry(client, access, registry.place, "base")
    push(registry.place, "car:1", client, access).image(
        [PushFile("model", "demo.gguf", str(DEMO))], "car", (base, base.manifest("2"))
    )
    run("skopeo", "copy", "--src-tls-verify=false", f"docker://{registry.place}/car:1", f"oci:{tmp_path}/out:1")
    inspected = json.loads(run("skopeo", "inspect", "--config", f"oci:{tmp_path}/out:1"))
    assert inspected["rootfs"]["diff_ids"][0] == digest and len(inspected["rootfs"]["diff_ids"]) == 2
    assert pull_image(f"{registry.place}/car:1", client, access, Store(str(world / "store"))) == (MODEL,)


def test_a_list_of_images_leads_to_one(registry: RealRegistry, client: Client, access: Access) -> None:
    pusher = push(registry.place, "list:inner", client, access)
    pushed = pusher.artifact([PushFile("model", "demo.gguf", str(DEMO))], {})
    inner = pusher.registry.ask("list/manifests/inner", headers={"Accept": OCI_MANIFEST}).body
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
        {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": pushed.digest, "size": len(inner),
         "platform": {"architecture": "s390x", "os": "linux"}},
    ]}  # fmt: skip
    put_manifest(pusher.registry, "outer", json.dumps(index).encode(), index["mediaType"])  # type: ignore[arg-type]
    assert find(f"{registry.place}/list:outer", client, access).revision == pushed.digest


# Who may.


def test_user_and_password_and_a_certificate_of_ones_own(guarded: RealRegistry, world: Path, access: Access) -> None:
    place, certificate = guarded.place, str(guarded.folder / "registry.pem")
    trusting = {"SSL_CERT_FILE": certificate}
    with Client(retries=0) as client, pytest.raises(AppError) as caught:
        find(f"{place}/x", client, access)
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (
        f"https://{place}/v2/: the certificate of {place} is refused: self-signed certificate",
        "check the clock; name its authority in SSL_CERT_FILE, or trust whoever answers with --tls-verify=false",
        5,
    )
    with Client(variables=trusting) as client:
        with pytest.raises(AppError) as caught:
            find(f"{place}/x", client, access)
        assert (caught.value.message, caught.value.hint) == (
            f"{place}/x: {place} wants to know who asks, or there is nothing of this name "
            "(HTTP 401: authentication required)",
            f"log in with: ramalama-like login {place}",
        )
        path = str(world / "run" / "containers" / "auth.json")
        save_credentials(path, place, USER, "wrong")
        with pytest.raises(AppError) as caught:
            find(f"{place}/x", client, access)
        assert (caught.value.message, caught.value.hint) == (
            f"{place}/x: {place} does not accept the user and password from {path} (HTTP 401: authentication required)",
            f"log in again with: ramalama-like login {place}",
        )
        save_credentials(path, place, USER, PASSWORD)
        pushed = push(place, "mine:1", client, access).artifact([PushFile("model", "demo.gguf", str(DEMO))], {})
        listing = find(f"{place}/mine:1", client, access)
        assert listing.revision == pushed.digest
        with client.stream(listing.files[0].url, authorization=listing.authorization) as stream:
            assert hashlib.sha256(stream.read_all()).hexdigest() == SUM
        with pytest.raises(AppError) as caught, client.stream(listing.files[0].url):
            pass
        assert "HTTP 401" in caught.value.message
    # Podman and skopeo read the same file.
    out = run("skopeo", "inspect", "--raw", "--authfile", path, f"docker://{place}/mine:1",
              env={"SSL_CERT_FILE": certificate})  # fmt: skip
    assert json.loads(out)["layers"][0]["digest"] == f"sha256:{SUM}"
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_the_commands_without_verification(guarded: RealRegistry, world: Path) -> None:
    """From login to logout, as people type them."""
    place, store = guarded.place, str(world / "store")
    home = {"HOME": str(world), "XDG_RUNTIME_DIR": str(world / "run"), "RAMALAMA_STORE": store}
    insecure_too = "--tls-verify=false"

    def types(*words: str, stdin: bytes = b"") -> Result:
        return run_program(*words, stdin=stdin, env=home, timeout_s=120)

    login = ("login", insecure_too, place, "-u", USER, "--password-stdin")
    assert types("push", insecure_too, "demo", f"{place}/cli:1").code == 22
    assert types(*login, stdin=b"wrong").code == 22
    assert types(*login, stdin=PASSWORD.encode()).code == 0
    pushed = types("push", insecure_too, "demo", f"{place}/cli:1")
    assert (pushed.code, pushed.out.partition("@")[0]) == (0, f"oci://{place}/cli")
    pulled = types("pull", insecure_too, f"{place}/cli:1")
    assert (pulled.code, pulled.err.splitlines()[-1]) == (0, f"oci://{place}/cli:1: pulled, 2.6 MB")
    assert Path(Store(store).blob_path(SUM)).read_bytes() == DEMO.read_bytes()
    again = types("pull", insecure_too, pushed.out.strip())
    assert again.code == 0
    assert types("logout", place).code == 0
    refused = types("pull", insecure_too, f"{place}/cli:1")
    assert refused == Result(22, "", error_text(
        f"{place}/cli: {place} wants to know who asks, or there is nothing of this name "
        "(HTTP 401: authentication required)",
        f"log in with: ramalama-like login {place}",
    ))  # fmt: skip


def test_a_pulled_model_answers_in_a_container(registry: RealRegistry, engine: Engine, world: Path) -> None:
    """Pushed as an image, pulled into the store, mounted from there into the engine's container."""
    user = User(engine, world / "user")
    name = f"oci://{registry.place}/run/demo:1"
    assert user.types("push", "demo", name).returncode == 0
    assert user.types("--store", str(world / "store"), "pull", name).returncode == 0
    (line, *_) = user.dry_run("--store", str(world / "store"), "run", name, FIXED_PROMPT)
    assert any(f"sha256-{SUM}" in word for word in line)
    done = user.types("--store", str(world / "store"), "run", "--temp", "0", name, FIXED_PROMPT)
    assert (done.returncode, done.stdout.strip()) == (0, FIXED_ANSWER)


def test_without_verification(guarded: RealRegistry, registry: RealRegistry, access: Access) -> None:
    anyone = Access(home=access.home, variables=access.variables, verify=False)
    with Client(verify=False) as client:
        mine = Credentials(USER, PASSWORD, origin="the test")
        Registry(client, anyone, guarded.place, "", credentials=mine).sign_in()
        assert Registry(client, anyone, registry.place, "x").base == f"http://{registry.place}"
        assert Registry(client, anyone, guarded.place, "x").base == f"https://{guarded.place}"


def test_what_is_not_there_is_named_with_what_is(registry: RealRegistry, client: Client, access: Access) -> None:
    push(registry.place, "names/nearby:q4", client, access).artifact([PushFile("model", "demo.gguf", str(DEMO))], {})
    for name, message, hint in [
        ("names/nearby:q5", "it has no tag q5 (HTTP 404)", "did you mean q4?"),
        ("names/nearby:other", "it has no tag other (HTTP 404)", "it has q4"),
        (
            "names/nearly:q4",
            f"{registry.place} has no tag q4 of this name (HTTP 404)",
            "did you mean names/nearby?",
        ),
    ]:
        with pytest.raises(AppError) as caught:
            find(f"{registry.place}/{name}", client, access)
        whole = f"{registry.place}/{name.partition(':')[0]}: {message}"
        assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (whole, hint, 22)
