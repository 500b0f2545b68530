"""Models of Ollama's registry: their parts, their templates, and whole pulls from a registry on loopback."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import gguf
import pytest
from harness import Result, error_text, run_cli
from hubs.ollama import OllamaRegistry
from hubs.server import status

from ramalama_like.errors import AppError
from ramalama_like.listing import Listing
from ramalama_like.models.access import Access
from ramalama_like.models.client import Client
from ramalama_like.models.go_template import convert_template
from ramalama_like.models.sources import ollama
from ramalama_like.models.store import Store
from ramalama_like.record import Record, StoredFile
from ramalama_like.reference import parse_reference

TEMPLATE = b"{{ if .System }}<s>{{ .System }}{{ end }}<u>{{ .Prompt }}<a>{{ .Response }}"


def weights(folder: Path, template: str = "") -> bytes:
    """A GGUF file, small as can be."""
    path = folder / "weights.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    if template:
        writer.add_chat_template(template)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaRegistry]:
    with OllamaRegistry() as running:
        monkeypatch.setenv("RAMALAMA_OLLAMA_REGISTRY", running.hub.url)
        yield running


def find(registry: OllamaRegistry, name: str) -> Listing:
    with Client(rest=lambda _: None) as client:
        access = Access(home="/nowhere", ollama_registry=registry.hub.url)
        return ollama.find(parse_reference(name), client, access)


def sum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("name", "repository", "tag", "canonical"), [
    ("ollama://tiny", "library/tiny", "latest", "ollama://tiny:latest"),
    ("ollama://tiny:135m", "library/tiny", "135m", "ollama://tiny:135m"),
    ("ollama://someone/tiny:v1", "someone/tiny", "v1", "ollama://someone/tiny:v1"),
    ("https://ollama.com/library/tiny", "library/tiny", "latest", "ollama://tiny:latest"),
])  # fmt: skip
def test_the_parts_of_a_model(registry: OllamaRegistry, name: str, repository: str, tag: str, canonical: str) -> None:
    parts = {"model": b"GGUF1", "projector": b"GGUF2", "adapter": b"GGUF3", "template": TEMPLATE, "system": b"Be kind.",
             "params": b"{}", "license": b"MIT", "tensor": b"?"}  # fmt: skip
    digest = registry.add_model(repository, tag, **parts)
    listing = find(registry, name)
    assert (listing.name, listing.revision, listing.authorization) == (canonical, digest, "")
    assert [(file.path, file.role, file.sha256, file.size_bytes) for file in listing.files] == [
        (path, role, sum_of(parts[part]), len(parts[part])) for part, path, role in [
            ("model", "tiny.gguf", "model"), ("projector", "mmproj-tiny.gguf", "mmproj"),
            ("adapter", "tiny-lora.gguf", "adapter"), ("template", "template", "template"),
            ("system", "system", "other"), ("params", "params.json", "other"), ("license", "LICENSE", "other"),
        ]
    ]  # fmt: skip
    assert listing.files[0].url == f"{registry.hub.url}/v2/{repository}/blobs/sha256:{sum_of(b'GGUF1')}"


def test_a_registry_of_ones_own_is_named_in_front(registry: OllamaRegistry) -> None:
    registry.add_model("team/tiny", "v1", model=b"GGUF")
    with Client() as client:
        found = ollama.find(parse_reference(f"ollama://{registry.place}/team/tiny:v1"), client, Access(home="/nowhere"))
    assert found.name == f"ollama://{registry.place}/team/tiny:v1"
    assert found.files[0].url.startswith(registry.hub.url)


def test_a_manifest_may_be_pinned(registry: OllamaRegistry) -> None:
    digest = registry.add_model("library/tiny", "latest", model=b"GGUF")
    registry.add_model("library/tiny", "latest", model=b"GGUF2")
    assert find(registry, f"ollama://tiny@{digest}").files[0].sha256 == sum_of(b"GGUF")


def test_two_layers_of_a_kind_get_two_names(registry: OllamaRegistry) -> None:
    layers = [registry.layer(f"application/vnd.ollama.image.{kind}", body)
              for kind, body in [("model", b"1"), ("license", b"2"), ("license", b"3"), ("adapter", b"4"),
                                 ("adapter", b"5")]]  # fmt: skip
    registry.add_layers("library/tiny", "latest", *layers)
    assert [file.path for file in find(registry, "ollama://tiny").files] == [
        "tiny.gguf", "LICENSE", "LICENSE-2", "tiny-lora.gguf", "tiny-lora-2.gguf",
    ]  # fmt: skip


def test_what_this_program_cannot_run_is_refused(registry: OllamaRegistry) -> None:
    registry.add_model("library/tiny", "latest", tensor=b"?", license=b"MIT")
    with pytest.raises(AppError) as caught:
        find(registry, "ollama://tiny")
    assert caught.value.message == "ollama://tiny: holds no model that this program can run"


def test_names_that_are_not_there(registry: OllamaRegistry) -> None:
    registry.add_model("library/tinystories", "135m", model=b"GGUF")
    with pytest.raises(AppError) as caught:
        find(registry, "ollama://tinystories:136m")
    assert (caught.value.message, caught.value.hint) == (
        f"{registry.place}/library/tinystories: it has no tag 136m (HTTP 404)", "did you mean 135m?",
    )  # fmt: skip
    with pytest.raises(AppError) as caught:
        find(registry, "ollama://tinystorie")
    assert (caught.value.message, caught.value.hint) == (
        f"{registry.place}/library/tinystorie: {registry.place} has no tag latest of this name (HTTP 404)",
        "did you mean library/tinystories?",
    )


def test_a_version_that_is_too_old(registry: OllamaRegistry) -> None:
    registry.hub.put("/v2/library/tiny/manifests/latest", always=status(412))
    with pytest.raises(AppError) as caught:
        find(registry, "ollama://tiny")
    assert "does not serve this client any more (HTTP 412)" in caught.value.message


# Whole pulls.


def record(world: Path, name: str) -> Record:
    found = Store(str(world / "store")).find_record(name)
    assert found
    return found


def pull(world: Path, name: str) -> Result:
    return run_cli("--store", str(world / "store"), "--quiet", "pull", name)


def test_a_template_is_converted_where_the_weights_have_none(
    registry: OllamaRegistry, world: Path, tmp_path: Path
) -> None:
    model = weights(tmp_path)
    registry.add_model("library/tiny", "latest", model=model, template=TEMPLATE, license=b"MIT")
    assert pull(world, "ollama://tiny") == Result(0, "", "")
    converted = convert_template(TEMPLATE.decode()).encode()
    assert record(world, "ollama://tiny:latest").files == (
        StoredFile("model", "tiny.gguf", len(model), sum_of(model)),
        StoredFile("other", "template", len(TEMPLATE), sum_of(TEMPLATE)),
        StoredFile("template", "chat_template.jinja", len(converted), sum_of(converted)),
    )
    store = Store(str(world / "store"))
    assert Path(store.blob_path(sum_of(converted))).read_bytes() == converted
    before = registry.hub.count()
    assert pull(world, "ollama://tiny") == Result(0, "", "")
    assert registry.hub.count() == before + 1, "only the manifest is asked for again"


def test_a_template_of_the_weights_counts_more(registry: OllamaRegistry, world: Path, tmp_path: Path) -> None:
    model = weights(tmp_path, "{{ messages }}")
    registry.add_model("library/tiny", "latest", model=model, template=TEMPLATE)
    assert pull(world, "ollama://tiny") == Result(0, "", "")
    assert [(file.role, file.name) for file in record(world, "ollama://tiny:latest").files] == [
        ("model", "tiny.gguf"), ("other", "template"),
    ]  # fmt: skip


@pytest.mark.parametrize(("template", "why"), [
    (b"{{ template `x` }}", "its chat template cannot be converted (template)"),
    (b"{{ .Prompt }}\xff", "its chat template is no text"),
])  # fmt: skip
def test_a_template_that_cannot_be_converted_is_told(
    registry: OllamaRegistry, world: Path, tmp_path: Path, template: bytes, why: str
) -> None:
    registry.add_model("library/tiny", "latest", model=weights(tmp_path), template=template)
    done = run_cli("--store", str(world / "store"), "pull", "ollama://tiny")
    assert done.code == 0
    assert f"Note: {why}; the server uses its own\n" in done.err
    assert [file.role for file in record(world, "ollama://tiny:latest").files] == ["model", "other"]


def test_two_tags_share_their_bytes(registry: OllamaRegistry, world: Path, tmp_path: Path) -> None:
    model = weights(tmp_path)
    for tag in ("a", "b"):
        registry.add_model("library/tiny", tag, model=model, license=tag.encode())
        assert pull(world, f"ollama://tiny:{tag}") == Result(0, "", "")
    assert registry.hub.count(f"/v2/library/tiny/blobs/sha256:{sum_of(model)}") > 0
    first = registry.hub.sent(f"/v2/library/tiny/blobs/sha256:{sum_of(model)}")
    assert first == len(model)


def test_damaged_bytes_never_get_a_name(registry: OllamaRegistry, world: Path, tmp_path: Path) -> None:
    model = weights(tmp_path)
    registry.add_model("library/tiny", "latest", model=model)
    registry.blobs[f"sha256:{sum_of(model)}"] = model[:-1] + b"x"
    done = pull(world, "ollama://tiny")
    assert done.code == 5
    assert "damaged on its way" in done.err
    assert Store(str(world / "store")).find_record("ollama://tiny:latest") is None


def test_an_error_is_one_line_and_a_hint(registry: OllamaRegistry, world: Path) -> None:
    assert pull(world, "ollama://nothing") == Result(22, "", error_text(
        f"{registry.place}/library/nothing: {registry.place} has no tag latest of this name (HTTP 404)",
        "check the name",
    ))  # fmt: skip
