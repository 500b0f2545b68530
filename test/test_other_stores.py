"""Stores of other programs: what lies there is found under the names that people use, in place, and nothing changes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import made_stores
import pytest
from made_stores import COMMIT

from ramalama_like.models.caches import Found, Places, every_elsewhere, find_elsewhere
from ramalama_like.reference import Reference, parse_reference

SMALL, LARGE, EYES = b"GGUF small", b"GGUF much larger", b"GGUF eyes"


def places(home: Path, **variables: str) -> Places:
    return Places(str(home), str(home / "store"), variables)


def found(where: Places, name: str) -> tuple[str, list[tuple[str, str, str]]] | None:
    """Whose store has a name, and role, name and real path of each of its files."""
    hit = find_elsewhere(parse_reference(name), where)
    return hit and (hit.store, [(file.role, file.name, file.path) for file in hit.record.files])


def listed(where: Places) -> list[tuple[str, str, int]]:
    return [(each.store, each.record.name, each.record.size_bytes) for each in every_elsewhere(where)]


def blob(hub: Path, repository: str, data: bytes) -> str:
    return str(hub / f"models--{repository.replace('/', '--')}" / "blobs" / made_stores.digest_of(data))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_nothing_is_there(home: Path) -> None:
    assert (listed(places(home)), found(places(home), "hf://a/b")) == ([], None)


def test_hugging_face(home: Path) -> None:
    hub = home / ".cache" / "huggingface" / "hub"
    files = {"m-Q4_K_M.gguf": SMALL, "Q8_0/m-Q8_0-00001-of-00002.gguf": LARGE, "README.md": b"read",
             "Q8_0/m-Q8_0-00002-of-00002.gguf": LARGE + b"2", "mmproj-m-f16.gguf": EYES}  # fmt: skip
    made_stores.huggingface(hub, "owner/m", files)
    where = places(home)
    eyes = ("mmproj", "mmproj-m-f16.gguf", blob(hub, "owner/m", EYES))
    small = ("huggingface", [("model", "m-Q4_K_M.gguf", blob(hub, "owner/m", SMALL)), eyes])
    assert found(where, "hf://owner/m:Q4_K_M") == small
    assert found(where, "hf://owner/m:q4_k_m") == small
    assert found(where, "owner/m") == small
    assert found(where, "hf://owner/m/m-Q4_K_M.gguf") == ("huggingface", small[1][:1] + small[1][1:])
    assert found(where, "hf://owner/m:Q8_0") == ("huggingface", [
        ("model", "m-Q8_0-00001-of-00002.gguf", blob(hub, "owner/m", LARGE)),
        ("shard", "m-Q8_0-00002-of-00002.gguf", blob(hub, "owner/m", LARGE + b"2")), eyes])  # fmt: skip
    assert found(where, f"hf://owner/m:Q4_K_M@{COMMIT}") == small
    for absent in ("hf://owner/m:Q5_K_M", "hf://owner/m@0000000", "hf://owner/n", "ollama://owner/m", "ms://owner/m"):
        assert found(where, absent) is None, absent
    assert listed(where) == [
        ("huggingface", "hf://owner/m/Q8_0/m-Q8_0-00001-of-00002.gguf", 2 * len(LARGE) + 1 + len(EYES)),
        ("huggingface", "hf://owner/m/m-Q4_K_M.gguf", len(SMALL) + len(EYES)),
    ]


def test_the_layout_is_what_the_library_of_hugging_face_reads(home: Path) -> None:
    from huggingface_hub import scan_cache_dir

    hub = home / ".cache" / "huggingface" / "hub"
    made_stores.huggingface(hub, "owner/m", {"a/m.gguf": SMALL, "n.gguf": LARGE})
    scanned = scan_cache_dir(hub)
    assert list(scanned.warnings) == []
    [repository] = scanned.repos
    [revision] = repository.revisions
    assert (repository.repo_id, revision.commit_hash, revision.refs) == ("owner/m", COMMIT, {"main"})
    assert sorted((file.file_name, file.size_on_disk) for file in revision.files) == [
        ("m.gguf", len(SMALL)), ("n.gguf", len(LARGE))]  # fmt: skip


def test_where_hugging_face_keeps_it(home: Path) -> None:
    for number, (variable, below) in enumerate({"HF_HUB_CACHE": "", "HF_HOME": "hub", "XDG_CACHE_HOME":
                                                "huggingface/hub"}.items()):  # fmt: skip
        top = home / str(number)
        made_stores.huggingface(top / below, "owner/m", {"m.gguf": SMALL})
        assert listed(places(home, **{variable: str(top)})) == [("huggingface", "hf://owner/m/m.gguf", len(SMALL))]


def test_a_download_that_is_not_finished(home: Path) -> None:
    hub = home / ".cache" / "huggingface" / "hub"
    snapshot = made_stores.huggingface(hub, "owner/m", {"m-00001-of-00002.gguf": SMALL})
    made_stores.write(hub / "models--owner--m" / "blobs" / "abc.incomplete", LARGE)
    assert (listed(places(home)), found(places(home), "owner/m")) == ([], None)
    (snapshot / "n.gguf").symlink_to("../../blobs/gone")
    assert (listed(places(home)), found(places(home), "owner/m")) == ([], None)


def test_ollama(home: Path) -> None:
    models = home / ".ollama" / "models"
    made_stores.ollama(models, "library/smollm:135m", {"model": SMALL, "template": b"{{ .Prompt }}", "params": b"{}"})
    made_stores.ollama(models, "owner/seeing:latest", {"projector": EYES, "model": LARGE})
    made_stores.ollama(models, "owner/m:q8", {"model": LARGE}, host="example.org")
    where = places(home)

    def layer(data: bytes) -> str:
        return str(models / "blobs" / f"sha256-{made_stores.digest_of(data)}")

    assert found(where, "ollama://smollm:135m") == ("ollama", [("model", "smollm-135m.gguf", layer(SMALL))])
    assert found(where, "ollama://owner/seeing") == ("ollama", [
        ("model", "seeing-latest.gguf", layer(LARGE)), ("mmproj", "mmproj-0-seeing.gguf", layer(EYES))])  # fmt: skip
    assert found(where, "ollama://smollm") is None
    assert listed(where) == [
        ("ollama", "ollama://example.org/owner/m:q8", len(LARGE)),
        ("ollama", "ollama://library/smollm:135m", len(SMALL)),
        ("ollama", "ollama://owner/seeing:latest", len(LARGE) + len(EYES)),
    ]
    assert listed(places(home, OLLAMA_MODELS=str(home / "none"))) == []
    os.unlink(layer(LARGE))
    assert [name for _, name, _ in listed(where)] == ["ollama://library/smollm:135m"]


@pytest.mark.parametrize("old", [False, True], ids=["0.24", "older"])
def test_ramalama(home: Path, old: bool) -> None:
    data = home / ".local" / "share" / "ramalama"
    files = {"m.gguf": ("model" if old else "gguf", SMALL), "mmproj-m.gguf": ("mmproj", EYES),
             "chat_template_extracted": ("chat" if old else "chat_template", b"{{ x }}")}  # fmt: skip
    if not old:
        files["m.json"] = ("other", b"{}")
    made_stores.ramalama(data, "huggingface/owner/m", "Q4_K_M", files, old=old)
    made_stores.ramalama(data, "ollama/library/smollm", "latest", {"smollm": ("gguf", LARGE)})
    top = data / "store" / "huggingface" / "owner" / "m" / "snapshots" / f"sha256-{made_stores.digest_of(SMALL)}"
    assert found(places(home), "hf://owner/m:q4_k_m") == ("ramalama", [
        ("model", "m.gguf", str(top / "m.gguf")), ("mmproj", "mmproj-m.gguf", str(top / "mmproj-m.gguf")),
        ("template", "chat_template_extracted", str(top / "chat_template_extracted"))])  # fmt: skip
    assert found(places(home), "hf://owner/m") is None
    assert listed(places(home)) == [
        ("ramalama", "hf://owner/m:Q4_K_M", len(SMALL) + len(EYES) + 7),
        ("ramalama", "ollama://library/smollm:latest", len(LARGE)),
    ]


def test_llama_cpp(home: Path) -> None:
    cache = home / ".cache" / "llama.cpp"
    made_stores.llama_cpp(cache, "owner/m-GGUF", "latest", "m-Q4_K_M.gguf", SMALL, "mmproj-m-f16.gguf")
    made_stores.write(cache / "alone.gguf", LARGE)
    made_stores.write(cache / "owner_n_x.gguf.downloadInProgress", LARGE)
    files = [("model", "owner_m-GGUF_m-Q4_K_M.gguf", str(cache / "owner_m-GGUF_m-Q4_K_M.gguf")),
             ("mmproj", "owner_m-GGUF_mmproj-m-f16.gguf", str(cache / "owner_m-GGUF_mmproj-m-f16.gguf"))]  # fmt: skip
    assert found(places(home), "hf://owner/m-GGUF") == ("llama.cpp", files)
    assert found(places(home), "hf://owner/m-GGUF/m-Q4_K_M.gguf") == ("llama.cpp", files[:1])
    assert found(places(home), "hf://owner/m-GGUF:Q8_0") is None
    assert listed(places(home)) == [
        ("llama.cpp", "hf://owner/m-GGUF", 2 * len(SMALL)), ("llama.cpp", f"file://{cache}/alone.gguf", len(LARGE)),
    ]  # fmt: skip
    assert listed(places(home, LLAMA_CACHE=str(home / "none"))) == []


def test_lm_studio(home: Path) -> None:
    made_stores.lm_studio(home / ".lmstudio" / "models", "owner/m", {"m-Q8_0.gguf": LARGE})
    made_stores.lm_studio(home / "elsewhere" / "models", "owner/n", {"n-Q4_K_M.gguf": SMALL})
    assert listed(places(home)) == [("lm-studio", "hf://owner/m/m-Q8_0.gguf", len(LARGE))]
    made_stores.write(home / ".lmstudio-home-pointer", f"{home}/elsewhere\n")
    assert listed(places(home)) == [("lm-studio", "hf://owner/n/n-Q4_K_M.gguf", len(SMALL)),
                                    ("lm-studio", "hf://owner/m/m-Q8_0.gguf", len(LARGE))]  # fmt: skip
    assert found(places(home), "hf://owner/m:Q8_0") == ("lm-studio", [
        ("model", "m-Q8_0.gguf", str(home / ".lmstudio" / "models" / "owner" / "m" / "m-Q8_0.gguf"))])  # fmt: skip


DAMAGE: dict[str, bytes] = {
    ".cache/huggingface/hub/models--a--b/refs/main": b"../../../etc",
    ".cache/huggingface/hub/models--a": b"a file",
    ".ollama/models/manifests/registry.ollama.ai/library/m/latest": b'{"layers": [{"mediaType": 1, "digest": [1]}, 2]}',
    ".ollama/models/manifests/registry.ollama.ai/library/n/latest": b"[" * 100_000,
    ".ollama/models/manifests/registry.ollama.ai/library/o/latest": b"\xff\xfe",
    ".ollama/models/manifests/registry.ollama.ai/library/p/latest": json.dumps({"layers": [
        {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../../../etc/passwd"}]}).encode(),
    ".local/share/ramalama/store/ollama/m/refs/latest.json": b'{"hash": 7, "files": {}}',
    ".local/share/ramalama/store/ollama/n/refs/latest.json": json.dumps({"hash": "x", "files": [
        {"name": "../../../../../../../etc/passwd", "type": "gguf"}]}).encode(),
    ".local/share/ramalama/store/ollama/o/refs/latest": b"",
    ".cache/llama.cpp/manifest=a=b=latest.json": b'{"ggufFile": {"rfilename": 3}}',
    ".cache/llama.cpp/manifest=a=c=latest.json": b'{"ggufFile": "x"}',
    ".lmstudio/models/a": b"a file",
    ".lmstudio-home-pointer": b"\0\xff",
}  # fmt: skip


def test_damage_costs_only_itself(home: Path) -> None:
    for below, data in DAMAGE.items():
        made_stores.write(home / below, data)
    os.mkfifo(home / ".ollama" / "models" / "manifests" / "registry.ollama.ai" / "library" / "pipe")
    circle = home / ".lmstudio" / "models" / "c"
    circle.mkdir()
    (circle / "c").symlink_to(".")
    made_stores.lm_studio(home / ".lmstudio" / "models", "owner/m", {"m.gguf": SMALL})
    before = {path: os.lstat(path).st_mtime_ns for path in home.rglob("*")}
    assert listed(places(home)) == [("lm-studio", "hf://owner/m/m.gguf", len(SMALL))]
    for name in ("hf://a/b", "hf://a/c", *(f"ollama://{letter}" for letter in "mnop"), "ollama://pipe"):
        assert found(places(home), name) is None, name
    assert {path: os.lstat(path).st_mtime_ns for path in home.rglob("*")} == before


def test_names_do_not_lead_out(home: Path) -> None:
    made_stores.write(home / "secret.gguf", SMALL)
    made_stores.lm_studio(home / ".lmstudio" / "models", "owner/m", {"m.gguf": SMALL})
    for path in ("../../../secret.gguf", "/secret.gguf"):
        ours = Reference("x", "huggingface", "x", repository="owner/m", path=path)
        hit = find_elsewhere(ours, places(home))
        assert hit is None or (isinstance(hit, Found) and "secret" not in hit.record.files[0].path)
