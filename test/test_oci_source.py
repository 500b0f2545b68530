"""Models in registries of containers: every form of artifact that is known, images, and what is neither."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Result, run_cli
from hubs.registry import FakeRegistry
from test_ollama import weights

from ramalama_like.errors import AppError
from ramalama_like.listing import Listing
from ramalama_like.models.access import Access
from ramalama_like.models.client import Client
from ramalama_like.models.media_types import role_of, role_of_name
from ramalama_like.models.sources import oci
from ramalama_like.models.store import Store
from ramalama_like.reference import parse_reference

PACK, DOCKER = "application/vnd.cncf.model.", "application/vnd.docker.ai."
PATH, TITLE = "org_cncf_model_filepath", "org_opencontainers_image_title"
EMPTY = {"config_type": "application/vnd.oci.empty.v1+json"}


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as running:
        yield running


def find(registry: FakeRegistry, name: str = "team/tiny:v1") -> Listing:
    with Client(rest=lambda _: None) as client:
        return oci.find(parse_reference(f"oci://{registry.place}/{name}"), client, Access(home="/nowhere"))


def files(listing: Listing) -> list[tuple[str, str]]:
    return [(file.path, file.role) for file in listing.files]


def sum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


ARTIFACTS: dict[str, tuple[list[tuple[str, dict[str, str]]], dict[str, str], list[tuple[str, str]]]] = {
    "ModelPack": (
        [(f"{PACK}weight.v1.raw", {PATH: "sub/m-Q4_K_M.gguf"}), (f"{PACK}weight.v1.raw", {PATH: "mmproj-m.gguf"}),
         (f"{PACK}weight.config.v1.raw", {PATH: "chat_template.jinja"}), (f"{PACK}doc.v1.raw", {PATH: "README.md"}),
         (f"{PACK}code.v1.raw", {PATH: "x.gguf"})],
        {"artifactType": f"{PACK}manifest.v1+json"},
        [("sub/m-Q4_K_M.gguf", "model"), ("mmproj-m.gguf", "mmproj"), ("chat_template.jinja", "template"),
         ("README.md", "other"), ("x.gguf", "other")],
    ),
    "ModelPack, name in the metadata": (
        [(f"{PACK}weight.v1.raw", {"org_cncf_model_file_metadata+json": '{"name": "m.gguf", "size": 3}'})], {},
        [("m.gguf", "model")],
    ),
    "ModelPack without names": ([(f"{PACK}weight.v1.raw", {})], {}, [("tiny.gguf", "model")]),
    "ModelPack, a type for GGUF": ([(f"{PACK}weight.v1.gguf", {})], {}, [("tiny.gguf", "model")]),
    "ModelPack, packed": ([(f"{PACK}weight.v1.tar+gzip", {PATH: "all.tar"})], {}, [("/", "layer")]),
    "Docker's": (
        [(f"{DOCKER}gguf.v3", {}), (f"{DOCKER}mmproj", {}), (f"{DOCKER}chat.template.jinja", {}),
         (f"{DOCKER}license", {})],
        {"config_type": f"{DOCKER}model.config.v0.1+json"},
        [("tiny.gguf", "model"), ("mmproj-tiny.gguf", "mmproj"), ("chat_template.jinja", "template"),
         ("license", "other")],
    ),
    "Docker's, in parts": (
        [(f"{DOCKER}gguf.v3", {}), (f"{DOCKER}gguf.v3", {}), (f"{DOCKER}gguf.v3", {})], {},
        [("tiny-00001-of-00003.gguf", "model"), ("tiny-00002-of-00003.gguf", "shard"),
         ("tiny-00003-of-00003.gguf", "shard")],
    ),
    "Docker's, with names": (
        [(f"{DOCKER}gguf.v3", {PATH: "m-00001-of-00002.gguf"}), (f"{DOCKER}gguf.v3", {PATH: "m-00002-of-00002.gguf"})],
        {}, [("m-00001-of-00002.gguf", "model"), ("m-00002-of-00002.gguf", "shard")],
    ),
    "Docker's, an adapter": (
        [(f"{DOCKER}gguf.v3", {}), (f"{DOCKER}gguf.v3.lora", {})], {},
        [("tiny.gguf", "model"), ("tiny-lora.gguf", "adapter")],
    ),
    "podman artifact": (
        [("application/octet-stream", {TITLE: "m.gguf"}), ("text/plain; charset=utf-8", {TITLE: "chat_template"})],
        EMPTY, [("m.gguf", "model"), ("chat_template", "template")],
    ),
    "ORAS, one file without an ending": (
        [("application/gguf", {TITLE: "weights"})], EMPTY, [("weights.gguf", "model")],
    ),
    "Ollama's": (
        [("application/vnd.ollama.image.model", {}), ("application/vnd.ollama.image.template", {}),
         ("application/vnd.ollama.image.params", {})], {},
        [("tiny.gguf", "model"), ("template", "template"), ("params", "other")],
    ),
    "safetensors": (
        [(f"{PACK}weight.v1.raw", {PATH: "model.safetensors"}), (f"{PACK}weight.config.v1.raw", {PATH: "config.json"})],
        {}, [("model.safetensors", "safetensors"), ("config.json", "other")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", ARTIFACTS)
def test_artifacts(registry: FakeRegistry, which: str) -> None:
    layers, more, expected = ARTIFACTS[which]
    made = [registry.layer(kind, f"{number}".encode(), **notes) for number, (kind, notes) in enumerate(layers)]
    digest = registry.add_layers("team/tiny", "v1", *made, **more)
    listing = find(registry)
    assert files(listing) == expected
    assert (listing.name, listing.revision) == (f"oci://{registry.place}/team/tiny:v1", digest)
    assert [file.sha256 for file in listing.files] == [layer["digest"][7:] for layer in made]


def test_an_image_is_a_stack_of_archives(registry: FakeRegistry) -> None:
    for kind in ("application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.docker.image.rootfs.diff.tar.gzip"):
        registry.add_layers("team/tiny", "v1", registry.layer(kind, b"1"), registry.layer(kind, b"2"))
        assert files(find(registry)) == [("models/", "layer"), ("models/", "layer")]


@pytest.mark.parametrize(("names", "words"), [
    (["/etc/passwd"], "is an absolute path"), (["../m.gguf"], "leads out of the archive"),
    (["a/../../m.gguf"], "leads out of the archive"), (["m\n.gguf"], "control characters"),
    (["m.gguf", "m.gguf"], "two different files with the name m.gguf"),
    (["m.gguf", "./m.gguf"], "two different files with the name m.gguf"),
])  # fmt: skip
def test_names_that_mean_harm(registry: FakeRegistry, names: list[str], words: str) -> None:
    layers = [registry.layer(f"{PACK}weight.v1.raw", f"{number}".encode(), **{PATH: name})
              for number, name in enumerate(names)]  # fmt: skip
    registry.add_layers("team/tiny", "v1", *layers)
    with pytest.raises(AppError) as caught:
        find(registry)
    assert words in caught.value.message
    assert caught.value.message.isprintable()


def test_one_file_that_is_listed_twice_is_one(registry: FakeRegistry) -> None:
    layer = registry.layer(f"{PACK}weight.v1.raw", b"1", **{PATH: "m.gguf"})
    registry.add_layers("team/tiny", "v1", layer, layer)
    assert files(find(registry)) == [("m.gguf", "model")]


def test_a_manifest_without_layers(registry: FakeRegistry) -> None:
    registry.add_layers("team/tiny", "v1")
    with pytest.raises(AppError) as caught:
        find(registry)
    assert caught.value.message == f"oci://{registry.place}/team/tiny:v1: is empty"


@pytest.mark.parametrize(("name", "role"), [
    ("a/m-Q4_K_M.gguf", "model"), ("M.GGUF", "model"), ("m-mmproj-f16.gguf", "mmproj"),
    ("x-00001-of-00002.gguf", "model"),
    ("x-00002-of-00002.gguf", "shard"), ("x-0002-of-0002.gguf", "model"), ("chat_template.jinja", "template"),
    ("chat_template", "template"), ("model.safetensors", "safetensors"), ("README", "other"), ("", "other"),
])  # fmt: skip
def test_roles_by_name(name: str, role: str) -> None:
    assert role_of_name(name) == role
    assert role_of("application/octet-stream", name) == role


# Whole pulls.


def image_layer(**entries: bytes | str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, entry in entries.items():
            member = tarfile.TarInfo(f"models/{name}")
            if isinstance(entry, str):
                member.type, member.linkname = tarfile.SYMTYPE, entry
                tar.addfile(member)
            else:
                member.size = len(entry)
                tar.addfile(member, io.BytesIO(entry))
    return out.getvalue()


def pull(world: Path, name: str, *words: str) -> Result:
    return run_cli("--store", str(world / "store"), *words, "pull", name)


def stored(world: Path, name: str) -> list[tuple[str, str, str]]:
    record = Store(str(world / "store")).find_record(name)
    return [(file.role, file.name, file.sha256) for file in record.files] if record else []


def test_an_image_is_unpacked_while_it_comes(registry: FakeRegistry, world: Path, tmp_path: Path) -> None:
    model = weights(tmp_path)
    kind = "application/vnd.oci.image.layer.v1.tar+gzip"
    layer = image_layer(**{"tiny.gguf": model, "model.file": "tiny.gguf"})
    registry.add_layers("team/tiny", "v1", registry.layer(kind, layer))
    name = f"{registry.place}/team/tiny:v1"
    assert pull(world, name, "--quiet") == Result(0, "", "")
    assert stored(world, f"oci://{name}") == [("model", "tiny.gguf", sum_of(model))]
    before = registry.hub.count()
    done = pull(world, name)
    assert (done.code, done.err) == (0, f"oci://{name}: is here already, and nothing of it is new\n")
    assert registry.hub.count() - before <= 3, "neither the layer nor its beginning is asked for again"
    assert len(registry.hub.seen(f"/v2/team/tiny/blobs/sha256:{sum_of(layer)}")) == 1
    # The same bytes as an artifact, under another name: nothing has to be fetched.
    artifact = registry.layer(f"{PACK}weight.v1.raw", model, **{PATH: "other.gguf"})
    registry.add_layers("team/tiny", "v2", artifact)
    assert pull(world, f"{registry.place}/team/tiny:v2", "--quiet") == Result(0, "", "")
    assert stored(world, f"oci://{registry.place}/team/tiny:v2") == [("model", "other.gguf", sum_of(model))]
    assert registry.hub.sent(f"/v2/team/tiny/blobs/sha256:{sum_of(model)}") == 0


def test_an_image_of_programs_is_no_model(registry: FakeRegistry, world: Path) -> None:
    kind = "application/vnd.oci.image.layer.v1.tar+gzip"
    registry.add_layers("team/tiny", "v1", registry.layer(kind, image_layer(readme=b"hello")))
    done = pull(world, f"{registry.place}/team/tiny:v1")
    assert done.code == 22
    assert f"Error: oci://{registry.place}/team/tiny:v1: holds no model below /models\n" in done.err
    assert stored(world, f"oci://{registry.place}/team/tiny:v1") == []


def test_a_token_that_runs_out_during_a_pull_is_renewed(registry: FakeRegistry, world: Path, tmp_path: Path) -> None:
    registry.users = {"anna": "sesame"}
    auth = tmp_path / "auth.json"
    from ramalama_like.models.credentials import save_credentials

    save_credentials(str(auth), registry.place, "anna", "sesame")
    first, second = weights(tmp_path), b"{{ messages }}"
    registry.add_layers(
        "team/tiny", "v1", registry.layer(f"{PACK}weight.v1.raw", first, **{PATH: "m.gguf"}),
        registry.layer(f"{PACK}weight.config.v1.raw", second, **{PATH: "chat_template.jinja"}),
    )  # fmt: skip

    def expire(_: object, __: Any) -> None:
        registry.expire()

    registry.hub.put(f"/v2/team/tiny/blobs/sha256:{sum_of(first)}", first, always=expire)
    name = f"{registry.place}/team/tiny:v1"
    done = run_cli("--store", str(world / "store"), "--quiet", "pull", "--authfile", str(auth), name)
    assert done == Result(0, "", "")
    assert [role for role, _, _ in stored(world, f"oci://{name}")] == ["model", "template"]
    assert registry.hub.count("/token") >= 2
    assert "sesame" not in done.err + done.out
