"""Archives with models in them: what counts comes out, whatever the archive does; nothing else happens."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import resource
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import gguf
import pytest
from hubs.server import HubServer, drop_after, fine, status
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.errors import AppError
from ramalama_like.listing import RemoteFile
from ramalama_like.models.archive_names import Layers, plain_name
from ramalama_like.models.archives import Contents, Unpacked, fetch_archives
from ramalama_like.models.client import Client
from ramalama_like.models.image_models import image_files
from ramalama_like.models.store import Store

Entry = bytes | str | tarfile.TarInfo  # a file, the target of a link, or something odd


def archive(entries: Mapping[str, Entry], hard: tuple[str, ...] = ()) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, entry in entries.items():
            member = entry if isinstance(entry, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(entry, str):
                member.type = tarfile.LNKTYPE if name in hard else tarfile.SYMTYPE
                member.linkname = entry
            content = entry if isinstance(entry, bytes) else b""
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as running:
        yield running


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(rest=lambda _: None) as made:
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def offer(hub: HubServer, *layers: bytes, folder: str = "models/", **more: object) -> tuple[RemoteFile, ...]:
    found = []
    for layer in layers:
        total = hashlib.sha256(layer).hexdigest()
        url = hub.put(f"/{total}", layer, **more)  # type: ignore[arg-type]
        found.append(RemoteFile(folder, url, len(layer), total, "layer"))
    return tuple(found)


def fetch(client: Client, store: Store, files: tuple[RemoteFile, ...]) -> dict[str, bytes | str]:
    """The content of each file, and the file's name for each link."""
    with store.adopting():
        contents = fetch_archives(client, files, store)
        found: dict[str, bytes | str] = {
            file.name: Path(store.blob_path(file.sha256)).read_bytes() for file in contents.files
        }
        return found | dict(contents.links)


def left(store: Store) -> list[str]:
    return sorted(name for _, _, names in os.walk(store.folder) for name in names if name != "lock")


FORMS = {"plain": lambda data: data, "gzip": gzip.compress,
         "two members": lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]),
         "padded": lambda data: gzip.compress(data) + bytes(512)}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_what_lies_below_models_comes_out(hub: HubServer, client: Client, store: Store, form: str) -> None:
    weights = os.urandom(3_000_000)
    layer = archive({"etc/passwd": b"x", "./models/a/m.gguf": weights, "models/model.file": "a/m.gguf",
                     "models/abs": "/models/a/m.gguf", "models/hard": "models/a/m.gguf", "modelsx/y": b"",
                     "models/empty": b"", "models/dangling": "nothing"}, hard=("models/hard",))  # fmt: skip
    assert fetch(client, store, offer(hub, FORMS[form](layer))) == {
        "models/a/m.gguf": weights, "models/empty": b"", "models/model.file": "models/a/m.gguf",
        "models/abs": "models/a/m.gguf", "models/hard": "models/a/m.gguf",
    }  # fmt: skip


def test_later_layers_lie_over_earlier_ones(hub: HubServer, client: Client, store: Store) -> None:
    first = archive({"models/a": b"1", "models/b": b"1", "models/c/d": b"1", "models/c/e": b"1", "models/f": b"1"})
    second = archive({"models/a": b"2", "models/.wh.b": b"", "models/c/g": b"2", "models/c/.wh..wh..opq": b"",
                      "models/f": "a"})  # fmt: skip
    assert fetch(client, store, offer(hub, first, second)) == {
        "models/a": b"2", "models/c/g": b"2", "models/f": "models/a",
    }  # fmt: skip


def test_all_of_an_archive_may_count(hub: HubServer, client: Client, store: Store) -> None:
    assert fetch(client, store, offer(hub, archive({"x": b"1", "y/z": b"2"}), folder="/")) == {"x": b"1", "y/z": b"2"}


def odd(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    return member


def test_devices_and_folders_are_passed_over(hub: HubServer, client: Client, store: Store) -> None:
    kinds = {"c": tarfile.CHRTYPE, "b": tarfile.BLKTYPE, "f": tarfile.FIFOTYPE, "d": tarfile.DIRTYPE}
    entries = {name: odd(f"models/{name}", kind) for name, kind in kinds.items()}
    assert fetch(client, store, offer(hub, archive({**entries, "models/x": b"1"}))) == {"models/x": b"1"}


@pytest.mark.parametrize("name", ["models/../../x", "../models/x", "models/a/..", "models/\x1b[2J", "models/\n"])
def test_names_that_mean_harm(hub: HubServer, client: Client, store: Store, name: str) -> None:
    with pytest.raises(AppError) as caught:
        fetch(client, store, offer(hub, archive({"models/good": b"1", name: b"2"})))
    assert repr(name) in caught.value.message
    assert caught.value.message.isprintable()
    assert [each for each in left(store) if each.startswith("sha256-")] == []


def test_an_absolute_name_is_one_of_the_archive(hub: HubServer, client: Client, store: Store) -> None:
    member = tarfile.TarInfo("/models/x")
    assert fetch(client, store, offer(hub, archive({"": member}))) == {"models/x": b""}


@pytest.mark.parametrize("target", ["../../etc/passwd", "../../../models/x", "/../etc"])
def test_links_that_lead_out(hub: HubServer, client: Client, store: Store, target: str) -> None:
    with pytest.raises(AppError) as caught:
        fetch(client, store, offer(hub, archive({"models/x": b"1", "models/l": target})))
    assert "which leads out of the archive" in caught.value.message


def test_links_of_this_machine_are_never_followed(hub: HubServer, client: Client, store: Store, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    layer = archive({"models/l": str(tmp_path / "secret"), "models/folder": "/", "models/folder/etc/x": b"1",
                     "models/a": "b", "models/b": "a"})  # fmt: skip
    # A file below something that is a link has no place to be.
    assert fetch(client, store, offer(hub, layer)) == {}


# Connections and disks.


@pytest.mark.parametrize("tenth", range(1, 10))
def test_a_connection_that_is_cut_is_taken_up_again(hub: HubServer, client: Client, store: Store, tenth: int) -> None:
    weights = os.urandom(1_000_000)
    layer = gzip.compress(archive({"models/m": weights}))
    files = offer(hub, layer, faults=[drop_after(len(layer) * tenth // 10), drop_after(len(layer) // 20), status(503)])
    assert fetch(client, store, files) == {"models/m": weights}
    assert hub.sent(f"/{files[0].sha256}") == len(layer) + len(b"not now")


def test_a_server_without_ranges_is_read_over(hub: HubServer, client: Client, store: Store) -> None:
    weights = os.urandom(1_000_000)
    layer = archive({"models/m": weights})
    assert fetch(client, store, offer(hub, layer, faults=[drop_after(500_000), fine], ranges=False)) == {
        "models/m": weights
    }


@pytest.mark.parametrize("how", ["another byte", "longer", "shorter", "damaged compression", "no archive", "zstd"])
def test_what_is_not_what_was_promised(hub: HubServer, client: Client, store: Store, how: str) -> None:
    layer = archive({"models/m": b"w" * 5000})
    sent = {
        "another byte": layer[:700] + b"W" + layer[701:], "longer": layer + b"x", "shorter": layer[:-512],
        "damaged compression": gzip.compress(layer)[:100] + b"\xff" * 20, "no archive": b"no archive" * 99,
        "zstd": b"\x28\xb5\x2f\xfd" + layer,
    }[how]  # fmt: skip
    honest = how in ("damaged compression", "no archive", "zstd")
    total, size = (hashlib.sha256(sent).hexdigest(), len(sent)) if honest else (
        hashlib.sha256(layer).hexdigest(), len(layer))  # fmt: skip
    files = (RemoteFile("models/", hub.put("/x", sent), size, total, "layer"),)
    with pytest.raises(AppError) as caught:
        fetch(client, store, files)
    words = {"another byte": "damaged on its way", "longer": "is another file", "shorter": "is another file",
             "damaged compression": "is no archive that can be read", "no archive": "is no archive that can be read",
             "zstd": "packed with zstd"}[how]  # fmt: skip
    assert words in caught.value.message
    assert left(store) == [], "a layer that fails leaves nothing behind"


def test_a_full_disk_is_seen_before(
    hub: HubServer, client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ramalama_like.models import archives

    monkeypatch.setattr(archives, "_free_bytes", lambda _: 1000)
    with pytest.raises(AppError) as caught:
        fetch(client, store, offer(hub, archive({"models/m": b"w" * 5000})))
    assert "5.0 KB are needed, 1.0 KB" in caught.value.message or "are free" in caught.value.message


@given(st.binary(max_size=600))
def test_any_rubble_is_refused_or_empty(data: bytes) -> None:
    total = hashlib.sha256(data).hexdigest()
    with HubServer() as hub, Client() as client:
        file = RemoteFile("/", hub.put("/x", data), len(data), total, "layer")
        store = Store("/nonexistent-store-for-tests")
        try:
            assert fetch_archives(client, [file], store) == Contents(())
        except AppError as error:
            assert error.message.isprintable()


# Names.


@given(
    st.lists(st.tuples(st.sampled_from("fls"), st.text("ab/.", max_size=8), st.text("ab/.", max_size=8)), max_size=8)
)
def test_every_link_leads_to_a_file_of_the_archive(steps: list[tuple[str, str, str]]) -> None:
    names: Layers[int] = Layers("x")
    for number, (kind, name, target) in enumerate(steps):
        try:
            name = plain_name(name, "x")
            if not name:
                continue
            if kind == "f":
                names.add_file(name, number)
            else:
                names.add_link(name, target, hard=kind == "l")
        except AppError:
            continue
    files = names.files()
    for name in files:
        assert not name.startswith("/") and ".." not in name.split("/")
    for name, end in names.links().items():
        assert end in files and name not in files


@given(st.lists(st.tuples(st.sampled_from("flro"), st.text("ab/", max_size=6)), max_size=12))
def test_what_is_removed_is_the_name_and_all_below(steps: list[tuple[str, str]]) -> None:
    names: Layers[int] = Layers("x")
    known: dict[str, str] = {}
    for number, (kind, word) in enumerate(steps):
        name = plain_name(word, "x")
        if not name and kind != "o":
            continue
        itself = kind != "o"
        below = f"{name}/" if name else ""
        known = {each: what for each, what in known.items() if not (itself and each == name) and (
            not each.startswith(below))}  # fmt: skip
        if kind == "f":
            names.add_file(name, number)
        elif kind == "l":
            names.add_link(name, "/nowhere", hard=False)
        else:
            names.remove(name, itself=itself)
        known |= {name: kind} if kind in "fl" else {}
    assert set(names.files()) == {name for name, kind in known.items() if kind == "f"}
    assert set(names._links) == {name for name, kind in known.items() if kind == "l"}


def test_links_without_number_take_no_time_without_end() -> None:
    names: Layers[int] = Layers("x")
    for number in range(50_000):
        names.add_link(f"models/{number}", "m.gguf", hard=False)
    names.add_file("models/m.gguf", 1)
    assert len(names.links()) == 50_000
    assert names.mark("models/.wh..wh..opq")
    assert (names.links(), names.files()) == ({}, {})


def test_names_without_end() -> None:
    names: Layers[int] = Layers("x")
    with pytest.raises(AppError, match="with a name of 5001 letters"):
        plain_name("a/" * 2500 + "b", "x")
    with pytest.raises(AppError, match="to a name of 5000 letters"):
        names.add_link("a", "b/" * 2500, hard=False)


def test_more_files_than_a_process_may_open(hub: HubServer, client: Client, store: Store) -> None:
    entries: dict[str, Entry] = {f"models/{number}": b"%d" % (number % 3) for number in range(300)}
    layers = offer(hub, archive(entries))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 60, before[1]))
    try:
        assert fetch(client, store, layers) == entries
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert os.listdir(f"{store.folder}/partial") == []


def test_what_a_killed_one_left_is_written_anew_and_no_link_followed(hub: HubServer, client: Client, store: Store,
                                                                     tmp_path: Path) -> None:  # fmt: skip
    layers = offer(hub, archive({"models/a": b"1", "models/b": b"2"}))
    (tmp_path / "precious").write_bytes(b"precious")
    with store.partial(f"{layers[0].sha256}-files") as partial:
        os.symlink(tmp_path / "precious", f"{partial.data_path}-0")
        Path(f"{partial.data_path}-1").write_bytes(b"half of it")
        Path(partial.data_path).touch()  # so that it stays
    os.unlink(partial.data_path)
    assert fetch(client, store, layers) == {"models/a": b"1", "models/b": b"2"}
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert os.listdir(f"{store.folder}/partial") == []


# Which of the files is the model.


def model(folder: Path, name: str) -> bytes:
    path = folder / name
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def roles(store: Store, tmp_path: Path, names: list[str], links: Mapping[str, str] = {}) -> list[tuple[str, str]]:
    files = []
    with store.adopting():
        for name in names:
            data = model(tmp_path, "g.gguf") + name.encode()
            total = hashlib.sha256(data).hexdigest()
            (tmp_path / "blob").write_bytes(data)
            os.makedirs(store.folder, exist_ok=True)
            store.adopt(str(tmp_path / "blob"), total)
            files.append(Unpacked(name, total, len(data)))
    found = image_files(Contents(tuple(files), tuple(links.items())), store, "IMAGE")
    return [(file.role, file.name) for file in found]


def test_the_files_of_an_image(store: Store, tmp_path: Path) -> None:
    for names, links, found in [
        (["models/a.gguf"], {}, [("model", "a.gguf")]),
        (["models/model.file"], {}, [("model", "model.file")]),
        (["models/x/blob"], {"models/model.file": "models/x/blob"}, [("model", "blob")]),
        (["models/a.gguf", "models/b.gguf"], {"models/model.file": "models/b.gguf"}, [("model", "b.gguf")]),
        (["models/a.gguf", "models/mmproj-a.gguf", "models/t", "models/README"],
         {"models/chat_template.file": "models/t"},
         [("model", "a.gguf"), ("mmproj", "mmproj-a.gguf"), ("template", "t"), ("other", "README")]),
        (["models/m-00002-of-00002.gguf", "models/m-00001-of-00002.gguf"],
         {"models/model.file": "models/m-00001-of-00002.gguf"},
         [("model", "m-00001-of-00002.gguf"), ("shard", "m-00002-of-00002.gguf")]),
    ]:  # fmt: skip
        assert roles(store, tmp_path, names, links) == found


def test_images_that_hold_no_one_model(store: Store, tmp_path: Path) -> None:
    for names, message in [
        (["models/README"], "IMAGE: holds no model below /models"),
        (["models/a.gguf", "models/b.gguf"], "IMAGE: holds 2 models: a.gguf, b.gguf"),
        (["models/m-00001-of-00003.gguf", "models/m-00003-of-00003.gguf"],
         "IMAGE: parts of the model are missing: m-00002-of-00003.gguf"),
    ]:  # fmt: skip
        with pytest.raises(AppError) as caught:
            roles(store, tmp_path, names)
        assert caught.value.message == message
