"""``export`` and ``import``: one file that holds a model, and what is refused of files from elsewhere."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import Recorder, Result, error_text, files_below, gguf_bytes, language_model, run_cli, snapshot

from ramalama_like.models.portable import IMAGE_MEMBER, Archive, export_model
from ramalama_like.models.store import Store
from ramalama_like.record import Record, StoredFile

Install = Callable[..., Recorder]
NAME = "hf://Owner/model:Q4_K_M"
PARTS = {"model": ("m-00001-of-00002.gguf", language_model(64)), "shard": ("m-00002-of-00002.gguf", gguf_bytes()),
         "template": ("chat_template", b"{{ x }}")}  # fmt: skip


def sum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def store(world: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A model of three files."""
    monkeypatch.setenv("RAMALAMA_STORE", str(world / "one"))
    monkeypatch.chdir(world)
    store = Store(str(world / "one"))
    files = []
    with store.adopting():
        for role, (name, content) in PARTS.items():
            with store.partial(name) as partial:
                Path(partial.data_path).write_bytes(content)
                store.adopt(partial.data_path, sum_of(content))
            files.append(StoredFile(role, name, len(content), sum_of(content)))
        store.write_record(Record(NAME, tuple(files), 5.0, "abc", "https://hub/x"))
    return store


@pytest.fixture
def other(world: Path) -> Store:
    return Store(str(world / "two"))


def into(other: Store, *words: str) -> Result:
    return run_cli("import", *words, "--store", other.root)


def test_there_and_back(store: Store, other: Store, world: Path) -> None:
    path = str(world / "a b.tar")
    done = run_cli("export", "Owner/model:q4_k_m", "a b.tar")
    assert done == Result(0, f"{path}\n", f"Wrote {os.path.getsize(path) / 1000:.1f} kB\n")
    assert into(other, path) == Result(0, f"{NAME}\n", "")
    before, after = store.find_record(NAME), other.find_record(NAME)
    assert before and after
    assert (after.files, after.revision, after.source) == (before.files, before.revision, before.source)
    for _, content in PARTS.values():
        assert Path(other.blob_path(sum_of(content))).read_bytes() == content
    assert run_cli("fsck", "--store", other.root).code == 0
    assert files_below(world / "two/ramalama-like/partial") == []
    # Again, and under another name: nothing is copied twice.
    assert into(other, path, "ollama://mine") == Result(0, "ollama://mine:latest\n", "")
    assert len(os.listdir(f"{other.folder}/blobs")) == 3


def test_the_same_model_gives_the_same_bytes(store: Store) -> None:
    assert run_cli("export", NAME, "a.tar").code == run_cli("export", NAME, "b.tar").code == 0
    assert Path("a.tar").read_bytes() == Path("b.tar").read_bytes()
    again = run_cli("export", NAME, "a.tar")
    assert again == Result(
        22, "", error_text(f"{os.getcwd()}/a.tar: is there already", "remove it, or name another file")
    )
    assert sorted(name for name in os.listdir(".") if "tar" in name or name.startswith(".")) == ["a.tar", "b.tar"]


@pytest.mark.skipif(not shutil.which("skopeo"), reason="skopeo is not here")
def test_skopeo_reads_it(store: Store) -> None:
    """The format is that of the OCI's specifications."""
    assert run_cli("export", NAME, "a.tar").code == 0
    done = subprocess.run(["skopeo", "copy", "--insecure-policy", "oci-archive:a.tar", "dir:out"], capture_output=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["artifactType"] == "application/vnd.cncf.model.manifest.v1+json"
    assert [layer["annotations"]["org.cncf.model.filepath"] for layer in manifest["layers"]] == [
        name for name, _ in PARTS.values()
    ]
    assert Path("out", manifest["layers"][0]["digest"][7:]).read_bytes() == PARTS["model"][1]


def test_files_in_place_go_along(store: Store, other: Store, world: Path) -> None:
    path = world / "x.gguf"
    path.write_bytes(language_model())
    size = path.stat().st_size
    store.write_record(Record("hf://a/placed", (StoredFile("model", "x.gguf", size, "", str(path)),), 1.0))
    assert run_cli("export", "a/placed", "a.tar").code == 0
    assert into(other, "a.tar").code == 0
    record = other.find_record("hf://a/placed")
    assert record and record.files == (StoredFile("model", "x.gguf", size, sum_of(language_model())),)


def test_a_spoilt_model_is_not_exported(store: Store) -> None:
    path = Path(store.blob_path(sum_of(PARTS["model"][1])))
    path.chmod(0o644)
    path.write_bytes(bytes(len(PARTS["model"][1])))
    done = run_cli("export", NAME, "a.tar")
    assert (done.code, "its content is not what its sum says" in done.err) == (22, True)
    assert not any(name for name in os.listdir(".") if "tar" in name or name.startswith("."))


# Files from elsewhere.


def made(path: str, change: Callable[[dict[str, Any]], None] = lambda _: None, *, notes: dict[str, str] | None = None,
         content: bytes = language_model(), more: tuple[tuple[str, bytes], ...] = (), without: str = "",
         image: tuple[str, bytes] | None = None) -> str:  # fmt: skip
    """An archive of one file as another program may write it. ``change`` changes the manifest."""
    digest = sum_of(content)
    layer = {"mediaType": "application/vnd.cncf.model.weight.v1.raw", "digest": f"sha256:{digest}",
             "size": len(content), "annotations": {"org.cncf.model.filepath": "models/m.gguf"}}  # fmt: skip
    manifest: dict[str, Any] = {"schemaVersion": 2, "config": {}, "layers": [layer]}
    change(manifest)
    text = json.dumps(manifest).encode()
    given = {"ai.ramalama.model": "hf://a/b"} if notes is None else notes
    if image:
        given = {**given, "ai.ramalama.image": image[0], "ai.ramalama.image.sha256": sum_of(image[1])}
    described = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": f"sha256:{sum_of(text)}",
                 "size": len(text), "annotations": given}  # fmt: skip
    members = [(f"./blobs/sha256/{digest}", content), (f"blobs/sha256/{sum_of(text)}", text),
               ("index.json", json.dumps({"manifests": [described]}).encode()), *more]  # fmt: skip
    if image:
        members.append((IMAGE_MEMBER, image[1]))
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            if name != without:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return path


def test_what_others_write(other: Store, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members in any order, no roles: those follow from the names."""
    monkeypatch.chdir(world)
    assert into(other, made("a.tar", notes={}), "hf://x/y:q8_0") == Result(0, "hf://x/y:Q8_0\n", "")
    record = other.find_record("hf://x/y:Q8_0")
    assert record and [(file.role, file.name) for file in record.files] == [("model", "m.gguf")]


def without_name(manifest: dict[str, Any]) -> None:
    manifest["layers"][0]["annotations"] = {}


def wrong(**members: object) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["layers"][0].update(members)


def role(which: str) -> Callable[[dict[str, Any]], None]:
    return wrong(annotations={"org.cncf.model.filepath": "m.gguf", "ai.ramalama.role": which})


def again(name: str, which: str, **members: object) -> Callable[[dict[str, Any]], None]:
    """The same content once more, under another name."""

    def change(manifest: dict[str, Any]) -> None:
        notes = {"org.cncf.model.filepath": name, "ai.ramalama.role": which}
        manifest["layers"].append({**manifest["layers"][0], "annotations": notes, **members})

    return change


TRICKS: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"notes": {}}, "does not tell the model's name"),
    "name of a file": ({"notes": {"ai.ramalama.model": "file:///etc/passwd"}}, "cannot be the name of a model"),
    "name in another spelling": ({"notes": {"ai.ramalama.model": "huggingface://a/b"}}, "is not how a model is called"),
    "name that leads out": ({"notes": {"ai.ramalama.model": "hf://a/b/../../c"}}, ".."),
    "file without name": ({"change": without_name}, "that is to be called ''"),
    "file named ..": ({"change": wrong(annotations={"org.cncf.model.filepath": "a/.."})}, "that is to be called '..'"),
    "control characters": ({"change": wrong(annotations={"org.cncf.model.filepath": "a\x1b[2J"})}, "to be called"),
    "wrong size": ({"change": wrong(size=5)}, "does not have the size that was noted"),
    "size below 0": ({"change": wrong(size=-1)}, "describes a file in a way that cannot be used"),
    "size that is too large": ({"change": wrong(size=10**400)}, "describes a file of a size that is none"),
    "size that is true": ({"change": wrong(size=True)}, "describes a file in a way that cannot be used"),
    "size of a text": ({"change": wrong(size="5")}, "describes a file in a way that cannot be used"),
    "other sum": ({"change": wrong(digest=f"sha256:{'0' * 64}")}, "has no blobs/sha256/0000"),
    "sum that is a path": ({"change": wrong(digest="sha256:../../../etc/passwd")}, "in a way that cannot be used"),
    "packed layers": ({"change": wrong(mediaType="application/vnd.cncf.model.weight.v1.tar")}, "is packed"),
    "no layers": ({"change": lambda manifest: manifest.update(layers=[])}, "has no files"),
    "two files of one name": ({"change": lambda m: m["layers"].append(m["layers"][0])}, "have the same name"),
    "no GGUF inside": ({"content": b"GGUF" + bytes(100)}, "a.tar: m.gguf: a big-endian GGUF file"),
    "no GGUF at all": ({"content": b"#!/bin/sh\n"}, "m.gguf is no GGUF file"),
    "no weights": ({"change": role("other")}, "holds no model"),
    "weights as a projector only": ({"change": role("mmproj")}, "holds no model"),
    "the same weights twice": ({"change": again("x.gguf", "model")}, "holds one content as m.gguf and as x.gguf"),
    "one content in two roles": ({"change": again("x.gguf", "other")}, "holds one content as m.gguf and as x.gguf"),
    "one content in two sizes": ({"change": again("x.gguf", "model", size=3)}, "does not have the size"),
    "no index": ({"without": "index.json"}, "has no index.json"),
    "a member twice": ({"more": (("index.json", b"{}"),)}, "holds index.json twice"),
    "absolute path": ({"more": (("/etc/passwd", b"x"),)}, "leads out of it"),
    "path that leads out": ({"more": (("blobs/../../x", b"x"),)}, "leads out of it"),
    "member with control characters": ({"more": (("a\nb", b"x"),)}, "leads out of it"),
    "image that is an option": ({"image": ("--root=/", b"x")}, "in a way that cannot be used"),
}


@pytest.mark.parametrize("which", TRICKS)
def test_tricks_are_refused(which: str, other: Store, world: Path, monkeypatch: pytest.MonkeyPatch,
                            fake_engine: Install) -> None:  # fmt: skip
    fake_engine("podman-5.4")
    monkeypatch.chdir(world)
    more, said = TRICKS[which]
    done = into(other, made("a.tar", **more))
    assert (done.code, done.out, said in done.err) == (22, "", True), done.err
    assert (other.records(), files_below(f"{other.folder}/refs")) == ([], [])
    assert not any(path.endswith("/data") for path in files_below(world / "two"))


def merged(path: str, *others: str) -> str:
    """One archive with the models of several."""
    members: dict[str, bytes] = {}
    listed = []
    for other in others:
        with tarfile.open(other) as tar:
            for info in tar:
                file = tar.extractfile(info)
                assert file
                members[info.name] = file.read()
        listed += json.loads(members["index.json"])["manifests"]
    members["index.json"] = json.dumps({"manifests": listed}).encode()
    with tarfile.open(path, "w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def test_several_models_come_together_or_not_at_all(other: Store, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    one = made("one.tar", notes={"ai.ramalama.model": "hf://a/one"})
    two = made("two.tar", notes={"ai.ramalama.model": "hf://a/two"})
    bad = made("bad.tar", notes={"ai.ramalama.model": "hf://a/bad"}, content=b"GGUF" + bytes(100))
    done = into(other, merged("a.tar", one, bad))
    assert (done.code, done.out, other.records()) == (22, "", [])
    done = into(other, merged("a.tar", one, one))
    assert (done.code, "two models of the same name" in done.err, other.records()) == (22, True, [])
    assert into(other, merged("a.tar", one, two)) == Result(0, "hf://a/one\nhf://a/two\n", "")


def test_equal_texts_of_a_model_come_along(store: Store, other: Store) -> None:
    names = ("model.safetensors", "config.json", "tokens.json")
    contents = dict(zip(names, (b"weights", b"{}", b"{}"), strict=True))
    files = []
    with store.adopting():
        for name, content in contents.items():
            with store.partial(name) as partial:
                Path(partial.data_path).write_bytes(content)
                store.adopt(partial.data_path, sum_of(content))
            kind = "safetensors" if name.endswith("s") else "other"
            files.append(StoredFile(kind, name, len(content), sum_of(content)))
        store.write_record(Record("hf://a/texts", tuple(files), 5.0))
    assert run_cli("export", "a/texts", "a.tar").code == 0
    assert into(other, "a.tar").code == 0
    record = other.find_record("hf://a/texts")
    assert record and record.files == tuple(files)


def test_a_file_of_the_store_does_not_become_a_model_unseen(other: Store, world: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(world)
    content = b"GGUF" + bytes(100)
    with other.adopting(), other.partial("x") as partial:
        Path(partial.data_path).write_bytes(content)
        other.adopt(partial.data_path, sum_of(content))
    done = into(other, made("a.tar", content=content))
    assert (done.code, "a.tar: m.gguf: " in done.err, other.records()) == (22, True, [])


def plant(kind: str, path: Path, target: Path) -> None:
    if kind == "link":
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "link to a folder"])
def test_what_was_planted_in_the_store(kind: str, other: Store, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import writes through no link that stands where its file is to be."""
    monkeypatch.chdir(world)
    made("a.tar")
    victim = world / "victim"
    victim.mkdir()
    (victim / "data").write_text("precious")
    folder = Path(other.folder, "partial", sum_of(language_model()))
    folder.parent.mkdir(parents=True)
    if kind == "link to a folder":
        folder.symlink_to(victim)
    else:
        folder.mkdir()
        plant(kind, folder / "data", victim / "data")
    done = into(other, "a.tar")
    if kind == "folder":  # which a conversion may have left
        assert (done.code, done.out, done.err.startswith(f"Error: {folder}"), other.records()) == (5, "", True, [])
    else:  # it is only taken out of the way
        assert (done.code, len(other.records())) == (0, 1)
    assert (os.listdir(victim), (victim / "data").read_text()) == (["data"], "precious")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_members_that_are_no_files(kind: bytes, other: Store, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    made("a.tar")
    with tarfile.open("a.tar", "a") as tar:
        info = tarfile.TarInfo("oci-layout")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    done = into(other, "a.tar")
    assert (done.code, "is no plain file" in done.err) == (22, True)
    assert not (world / "two").exists()


def test_damaged_archives(other: Store, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every archive with some bytes changed is imported as it was or refused in one line."""
    monkeypatch.chdir(world)
    good = Path(made("a.tar")).read_bytes()
    chance = random.Random(7)
    for number in range(150):
        bad = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        Path("bad.tar").write_bytes(bad[: chance.choice((len(bad), chance.randrange(len(bad))))])
        store = Store(str(world / f"two-{number}"))
        done = into(store, "bad.tar")
        if done.code:
            assert (done.code, done.out, store.records()) == (22, "", [])
            assert done.err.startswith("Error: ") and done.err.count("\n") <= 2
        else:
            (record,) = store.records()
            assert isinstance(record, Record)
            assert Path(store.blob_path(record.files[0].sha256)).read_bytes() == language_model()


@pytest.mark.parametrize("path", ["none.tar", "folder", "text", "pipe"])
def test_what_is_no_archive(path: str, other: Store, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    (world / "folder").mkdir()
    (world / "text").write_text("x" * 1000)
    os.mkfifo(world / "pipe")
    done = into(other, path)
    assert (done.code, done.out, done.err.startswith(f"Error: {path}: ")) == (22, "", True)
    assert not (world / "two").exists()


def test_an_interrupted_import_leaves_no_name(store: Store, other: Store) -> None:
    assert run_cli("export", NAME, "a.tar").code == 0
    data = bytearray(Path("a.tar").read_bytes())
    with tarfile.open("a.tar") as tar:  # the last file of the model is spoilt
        place = tar.getmember(f"blobs/sha256/{sum_of(PARTS['template'][1])}").offset_data
    data[place] ^= 1
    Path("b.tar").write_bytes(data)
    done = into(other, "b.tar")
    assert (done.code, "is not what its sum says" in done.err, other.records()) == (22, True, [])
    assert len(os.listdir(f"{other.folder}/blobs")) == 2  # what was whole is kept
    assert into(other, "a.tar").code == 0


# The container image.


def test_the_image_goes_along(store: Store, other: Store, fake_engine: Install, world: Path) -> None:
    recorder = fake_engine("podman-5.4", output="Loaded image: quay.io/x/y:1")
    image = world / "image.tar"
    image.write_bytes(b"an image")
    record = store.find_record(NAME)
    assert record
    export_model(store, record, "a.tar", image="quay.io/x/y:1", image_file=str(image))
    with Archive("a.tar") as archive:
        assert archive.image() == ("quay.io/x/y:1", sum_of(b"an image"))
    before = snapshot(world)
    dry = into(other, "a.tar", "--dryrun")
    (load,) = map(shlex.split, dry.out.splitlines())
    assert snapshot(world) == before
    recorder.take()
    done = into(other, "a.tar")
    assert (done.code, done.out, done.err) == (0, f"{NAME}\n", "Loaded the image quay.io/x/y:1\n")
    (call,) = recorder.take()
    assert call == load and load[:3] == ["podman", "load", "-i"]
    assert files_below(world / "two/ramalama-like/partial") == []
    assert into(Store(str(world / "three")), "a.tar", "--nocontainer").err == (
        "Note: the image quay.io/x/y:1 was left out, since no container is wanted\n"
    )


LOADED: dict[str, tuple[str, str, str]] = {  # what the file says, what the engine says, what is told
    "the same": ("quay.io/x/y:1", "Loaded image: quay.io/x/y:1", "Loaded the image quay.io/x/y:1\n"),
    "docker's short name": ("docker.io/library/y", "Loaded image: y:latest", "Loaded the image y:latest\n"),
    "podman's local name": ("y:1", "Loaded image: localhost/y:1", "Loaded the image localhost/y:1\n"),
    "old podman": ("y:1", "Loaded image(s): localhost/y:1", "Loaded the image localhost/y:1\n"),
    "an id": ("123456789abc", "Loaded image ID: sha256:123456789abcdef", "Loaded the image sha256:123456789abcdef\n"),
    "an id for a name": (
        "x/y:1",
        "Loaded image ID: sha256:12ab",
        "Loaded the image sha256:12ab\nWarning: the file calls its image x/y:1, but podman loaded sha256:12ab\n",
    ),
    "another": (
        "example.org/harmless:1",
        "Loaded image: quay.io/x/y:1",
        "Loaded the image quay.io/x/y:1\n"
        "Warning: the file calls its image example.org/harmless:1, but podman loaded quay.io/x/y:1\n",
    ),
    "another host's": (
        "quay.io/y:1",
        "Loaded image: localhost/y:1",
        "Loaded the image localhost/y:1\n"
        "Warning: the file calls its image quay.io/y:1, but podman loaded localhost/y:1\n",
    ),
    "one more": (
        "x/y:1",
        "Loaded image: x/y:1\nLoaded image: x/z:1",
        "Loaded the image x/y:1\nLoaded the image x/z:1\n"
        "Warning: the file calls its image x/y:1, but podman loaded x/y:1, x/z:1\n",
    ),
    "nothing": ("x/y:1", "", "Warning: podman did not tell which image it loaded; the file calls it x/y:1\n"),
}


@pytest.mark.parametrize("which", LOADED)
def test_what_the_engine_loaded_is_told(which: str, other: Store, fake_engine: Install, world: Path,
                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(world)
    image, said, told = LOADED[which]
    fake_engine("podman-5.4", output=said)
    assert into(other, made("a.tar", image=(image, b"x"))) == Result(0, "hf://a/b\n", told)


def test_a_spoilt_image_leaves_no_name(other: Store, fake_engine: Install, world: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(world)
    recorder = fake_engine("podman-5.4")
    made("a.tar", image=("x/y:1", b"an image"))
    Path("a.tar").write_bytes(Path("a.tar").read_bytes().replace(b"an image", b"an other"))
    done = into(other, "a.tar")
    assert (done.code, "is not what its sum says" in done.err, other.records()) == (22, True, [])
    assert (recorder.take(), files_below(f"{other.folder}/partial")) == ([], [])


def test_the_lines_of_an_export_with_an_image(store: Store, other: Store, fake_engine: Install, world: Path) -> None:
    """The dry run tells the engine's only call; the user's files beside the new one stay what they are."""
    recorder = fake_engine("podman-5.4", saved="an image")
    (world / "a.tar.image").write_text("mine")
    words = ("export", NAME, "a.tar", "--image", "quay.io/x/y:1")
    before = snapshot(world)
    (save,) = map(shlex.split, run_cli(*words, "--dryrun").out.splitlines())
    document = json.loads(run_cli(*words, "--dryrun=json").out)
    assert document["steps"] == [{"kind": "engine", "argv": save}]
    assert snapshot(world) == before
    assert (save[:3], save[4:]) == (["podman", "save", "-o"], ["quay.io/x/y:1"])
    assert save[3].startswith(f"{store.folder}/partial/export-")
    Path(save[3]).parent.mkdir(parents=True)
    Path(save[3]).write_text("left over by a run that was killed")
    recorder.take()
    assert run_cli(*words).code == 0
    assert recorder.take() == [save]
    assert (world / "a.tar.image").read_text() == "mine"
    assert sorted(name for name in os.listdir(".") if "tar" in name) == ["a.tar", "a.tar.image"]
    assert os.listdir(f"{store.folder}/partial") == []
    with Archive("a.tar") as archive:
        assert archive.image() == ("quay.io/x/y:1", sum_of(b"an image"))


def test_an_image_that_the_engine_does_not_write(store: Store, fake_engine: Install, world: Path) -> None:
    recorder = fake_engine("podman-5.4")
    words = ("export", NAME, "a.tar", "--image", "quay.io/x/y:1")
    (save,) = map(shlex.split, run_cli(*words, "--dryrun").out.splitlines())
    recorder.take()
    done = run_cli(*words)
    assert (done.code, recorder.take()) == (5, [save])
    assert not any("tar" in name for name in os.listdir("."))
    assert os.listdir(f"{store.folder}/partial") == []
