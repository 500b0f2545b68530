"""``rm``, ``df``, ``prune``, ``fsck`` and ``tag`` from the outside."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from harness import Result, error_text, run_cli, snapshot
from store_worker import CONTENTS, SUMS, fetch, pull

from ramalama_like.models.store import Store
from ramalama_like.record import Record, StoredFile

ONE, TWO, OLLAMA = "hf://Owner/one:Q4_K_M", "hf://Owner/two/sub/two.gguf", "ollama://smollm:latest"


@pytest.fixture
def store(world: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Three models that share files, in a folder with a space."""
    monkeypatch.setenv("RAMALAMA_STORE", str(world / "my store"))
    store = Store(str(world / "my store"))
    pull(store, ONE, [1, 2])
    pull(store, TWO, [2, 3])
    pull(store, OLLAMA, [4])
    return store


def names(store: Store) -> list[str]:
    return [each.name for each in store.records()]


# rm


@pytest.mark.parametrize("text", [ONE, "hf://Owner/one:q4_k_m", "huggingface://Owner/one:Q4_K_M", "Owner/one:Q4_K_M",
                                  "hf.co/Owner/one:Q4_K_M", "https://huggingface.co/Owner/one:Q4_K_M", "mine",
                                  "mine-too"])  # fmt: skip
def test_rm_takes_a_name_in_every_form(text: str, store: Store, world: Path) -> None:
    folder = world / "home/.config/ramalama"
    folder.mkdir(parents=True)
    (folder / "shortnames.conf").write_text(f'[shortnames]\n"mine" = "{ONE}"\n"mine-too" = "mine"\n')
    assert run_cli("rm", text) == Result(0, f"{ONE}\n", f"{ONE}: freed 6.0 kB\n")
    assert names(store) == [TWO, OLLAMA]


@pytest.mark.parametrize("text", ["smollm", "ollama://smollm", "smollm:latest", "ollama.com/library/smollm"])
def test_rm_of_ollama_names(text: str, store: Store) -> None:
    assert run_cli("rm", text).out == f"{OLLAMA}\n"
    assert not os.path.exists(store.blob_path(SUMS[4]))


def test_one_bad_name_does_not_stop_the_others(store: Store) -> None:
    done = run_cli("rm", "nothing", ONE, "hf://Owner/twoo", OLLAMA, ONE)
    assert (done.code, done.out) == (22, f"{ONE}\n{OLLAMA}\n")
    assert done.err.endswith(error_text(
        "nothing: no model in the store has this name; hf://Owner/twoo: no model in the store has this name",
        "see the names with: ramalama-like list"))  # fmt: skip
    assert names(store) == [TWO]
    assert run_cli("rm", "--ignore", "nothing", TWO) == Result(0, f"{TWO}\n", f"{TWO}: freed 27.0 kB\n")
    assert run_cli("rm", "nothing", "--ignore") == Result(0, "", "")


def test_the_nearest_name_is_told(store: Store) -> None:
    assert run_cli("rm", "hf://Owner/one:Q4_K_S") == Result(22, "", error_text(
        "hf://Owner/one:Q4_K_S: no model in the store has this name", f"did you mean {ONE}?"))  # fmt: skip


def test_a_name_that_fits_several(store: Store) -> None:
    store.tag(ONE, "modelscope://Owner/one:Q4_K_M")
    store.remove(ONE)
    store.tag(OLLAMA, "oci://localhost:5000/a/b:latest")
    assert run_cli("rm", "Owner/one:Q4_K_M").out == "modelscope://Owner/one:Q4_K_M\n"
    store.tag(OLLAMA, "hf://a/b")
    store.tag(OLLAMA, "modelscope://a/b")
    assert run_cli("rm", "modelscope://a/b").code == 0
    assert run_cli("rm", "a/b").out == "hf://a/b\n"


def test_rm_all(store: Store) -> None:
    Path(store.record_path("hf://bad/one")).write_text("{")
    done = run_cli("rm", "--all")
    assert (done.code, sorted(done.out.splitlines())) == (0, sorted([ONE, TWO, OLLAMA, "hf://bad/one"]))
    assert names(store) == []
    assert run_cli("rm", "--all") == Result(0, "", "")


@pytest.mark.parametrize("words", [[], ["--all", ONE]])
def test_rm_needs_names_or_all(words: list[str], store: Store) -> None:
    assert run_cli("rm", *words) == Result(22, "", error_text(
        "rm needs the name of a model or --all, and not both", "see the names with: ramalama-like list"))  # fmt: skip


def test_rm_as_json(store: Store) -> None:
    done = run_cli("rm", "--json", TWO, ONE)
    assert json.loads(done.out) == [{"name": TWO, "freed": len(CONTENTS[3])},
                                    {"name": ONE, "freed": len(CONTENTS[1]) + len(CONTENTS[2])}]  # fmt: skip


def test_a_damaged_entry_goes_by_the_name_that_list_shows(store: Store) -> None:
    """And what others may share with it is kept until then."""
    pull(store, "hf://bad/one", [1, 2])
    Path(store.record_path("hf://bad/one")).write_text("{")
    shown = [row["name"] for row in json.loads(run_cli("list", "--json").out)]
    assert sorted(shown) == sorted([ONE, TWO, OLLAMA, "hf://bad/one"])
    done = run_cli("rm", ONE)
    assert (done.code, done.err) == (0, f"{ONE}: freed 0 bytes\nNote: an entry of the store is damaged, so files that "
                                        "it may use were kept: see ramalama-like fsck\n")  # fmt: skip
    assert run_cli("rm", "hf://bad/one").code == 0
    assert [os.path.basename(path) for path in run_cli("prune", "--older-than", "0").out.splitlines()] == [
        f"sha256-{SUMS[1]}"
    ]


def test_rm_leaves_files_in_place(store: Store, world: Path) -> None:
    path = world / "model.gguf"
    path.write_bytes(CONTENTS[1])
    name = "hf://a/placed"
    store.write_record(
        Record(name, (StoredFile("model", "m.gguf", 6000, "", str(path), path.stat().st_mtime_ns),), 1.0)
    )
    assert run_cli("rm", name) == Result(0, f"{name}\n", f"{name}: freed 0 bytes\n")
    assert path.exists()


def test_rm_does_not_touch_other_programs_stores(store: Store, world: Path) -> None:
    """Not even RamaLama's, in the same folder; and it tells whose the model is."""
    folder = Path(store.root, "store", "huggingface", "other", "model", "refs")
    folder.mkdir(parents=True)
    (folder / "latest.json").write_text("{}")
    before = snapshot(Path(store.root, "store"))
    assert run_cli("rm", "hf://other/model").code == 22
    run_cli("rm", "--all")
    run_cli("prune", "--older-than", "0")
    run_cli("fsck", "--repair")
    assert snapshot(Path(store.root, "store")) == before


# Dry runs.


def shell(text: str) -> None:
    subprocess.run(["/bin/sh", "-c", text], check=True)


@pytest.mark.parametrize("line", [["rm", ONE], ["rm", "smollm", ONE], ["rm", "--all"], ["prune"],
                                  ["prune", "--older-than=0"], ["fsck", "--repair"]])  # fmt: skip
def test_the_lines_of_a_dry_run_remove_the_same(line: list[str], store: Store, world: Path) -> None:
    """Given to a shell, they leave the store as the command itself does."""
    with store.adopting():
        fetch(store, 5)
    Path(store.blob_path(SUMS[2])).chmod(0o644)
    Path(store.blob_path(SUMS[2])).write_text("spoilt")
    if line[0] == "rm":  # damaged entries among others, in the order of which nothing may depend
        for name in ("hf://a/first", "ollama://z:last"):
            pull(store, name, [0, 1])
            path = Path(store.record_path(name))
            path.write_bytes(path.read_bytes()[:-5])
    before = snapshot(world)
    dry = run_cli(*line, "--dryrun")
    assert (dry.code, snapshot(world)) == (0, before)
    twin = Store(str(world / "twin"))
    subprocess.run(["cp", "-a", store.root, twin.root], check=True)
    shell(dry.out.replace(shlex.quote(store.root)[1:-1], twin.root))
    run_cli(*line)
    assert content(twin) == content(store)
    assert dry.out != "" or line == ["prune"]


def content(store: Store) -> dict[str, object]:
    return {path.removeprefix(store.root): facts[3] for path, facts in snapshot(store.root).items()}


def test_a_dry_run_with_a_bad_name(store: Store) -> None:
    done = run_cli("rm", "nothing", OLLAMA, "--dryrun")
    assert (done.code, len(done.out.splitlines())) == (22, 2)
    assert done.err == error_text(
        "nothing: no model in the store has this name", "see the names with: ramalama-like list"
    )


def test_the_dry_run_of_tag(store: Store, world: Path) -> None:
    before = snapshot(world)
    dry = run_cli("tag", "smollm", "hf://a/b:q4_0", "--dryrun")
    assert (dry.code, snapshot(world)) == (0, before)
    words = shlex.split(dry.out)
    assert words[-6:] == ["--store", store.root, "tag", "--", OLLAMA, "hf://a/b:Q4_0"]
    assert run_cli(*words[words.index("--store") :]).out == "hf://a/b:Q4_0\n"
    assert names(store) == [ONE, TWO, "hf://a/b:Q4_0", OLLAMA]


# tag


def test_tag_copies_nothing(store: Store) -> None:
    before = sorted(os.listdir(f"{store.folder}/blobs"))
    assert run_cli("tag", "Owner/one:Q4_K_M", "oci://localhost:5000/one") == Result(
        0, "oci://localhost:5000/one:latest\n", ""
    )
    assert sorted(os.listdir(f"{store.folder}/blobs")) == before
    assert run_cli("rm", ONE).err == f"{ONE}: freed 0 bytes\n"
    assert run_cli("rm", "oci://localhost:5000/one").err == "oci://localhost:5000/one:latest: freed 6.0 kB\n"


@pytest.mark.parametrize("new", ["/a/file.gguf", "demo", "word", "https://host/file.gguf", "file:///x"])
def test_names_that_no_model_can_have(new: str, store: Store) -> None:
    done = run_cli("tag", ONE, new)
    assert (done.code, done.out) == (22, "")
    assert "cannot be the name of a model in the store" in done.err


# df


def test_df(store: Store) -> None:
    with store.adopting():
        fetch(store, 5)
    usage = json.loads(run_cli("df", "--json").out)
    sizes = [len(content) for content in CONTENTS]
    free = usage.pop("disk_free")
    assert free > 0
    assert usage == {
        "store": store.folder,
        "models": [
            {"name": ONE, "size_bytes": sizes[1] + sizes[2], "own_bytes": sizes[1]},
            {"name": TWO, "size_bytes": sizes[2] + sizes[3], "own_bytes": sizes[3]},
            {"name": OLLAMA, "size_bytes": sizes[4], "own_bytes": sizes[4]},
        ],
        "stored": sum(sizes[1:5]), "in_place": 0, "unused": sizes[5], "unfinished": 0,
    }  # fmt: skip
    done = run_cli("df")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[:-1] == [
        "NAME                         SIZE     FREED BY RM",
        "hf://Owner/two/sub/two.gguf  27.0 kB  16.0 kB",
        "ollama://smollm:latest       21.0 kB  21.0 kB",
        "hf://Owner/one:Q4_K_M        17.0 kB  6.0 kB",
        "",
        "in the store      54.0 kB  3 models, each file once",
        "no model uses     26.0 kB  ramalama-like prune --older-than 0 frees them",
    ]


def test_df_of_nothing(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMALAMA_STORE", str(world / "none" / "here"))
    done = run_cli("df")
    assert (done.code, done.err, done.out.splitlines()[0]) == (
        0,
        "",
        "in the store      0 bytes  0 models, each file once",
    )
    assert not (world / "none").exists()


# prune


def test_prune_keeps_what_is_young(store: Store) -> None:
    with store.adopting():
        fetch(store, 5)
    assert run_cli("prune") == Result(0, "", "Freed 0 bytes\n")
    path = store.blob_path(SUMS[5])
    os.utime(path, (1, 1))
    assert run_cli("prune", "--json", "--dryrun").out == f"rm -rf -- '{path}'\n"
    assert json.loads(run_cli("prune", "--json").out) == [
        {"kind": "blob", "path": path, "size_bytes": len(CONTENTS[5]), "why": "no model uses it"}
    ]


# fsck


def test_fsck_of_a_sound_store(store: Store) -> None:
    assert run_cli("fsck") == Result(0, "", "The store is sound.\n")
    assert run_cli("fsck", "--json") == Result(0, "[]\n", "The store is sound.\n")


def test_fsck_tells_what_is_wrong_and_repairs(store: Store) -> None:
    path = Path(store.blob_path(SUMS[2]))
    path.chmod(0o644)
    path.write_bytes(bytes(len(CONTENTS[2])))
    told = f"damaged file: {path}: its content is not what its sum says (11.0 kB)\n    of {ONE}, {TWO}\n"
    assert run_cli("fsck") == Result(
        1, f"{told}    repair: ramalama-like fsck --repair && ramalama-like pull {ONE}\n", ""
    )
    assert run_cli("fsck", "--quick").code == 0
    done = run_cli("fsck", "--repair")
    assert done == Result(0, f"{told}    removed\n", "Repaired: pull again what lacks files.\n")
    (missing,) = json.loads(run_cli("fsck", "--json").out)
    assert (missing["kind"], missing["models"], missing["wrong"]) == ("missing", [ONE, TWO], True)
    pull(store, ONE, [1, 2])
    assert run_cli("fsck").code == 0
