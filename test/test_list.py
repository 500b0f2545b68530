"""``list``: every model under its name, in the dialect's shapes; damage hides nothing; the index is never wrong."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import made_stores
import pytest
from harness import run_cli
from hypothesis import given
from hypothesis import strategies as st
from many_models import write_many_models

from ramalama_like.models import list_index
from ramalama_like.models.inventory import age_text
from ramalama_like.models.list_index import list_records
from ramalama_like.models.store import Store
from ramalama_like.record import Record, StoredFile

SUM = "0123456789abcdef" * 4


def put(store: Store, name: str, size: int, pulled_s: float, data: bytes = b"x") -> None:
    """A record whose blob is there."""
    sha256 = made_stores.digest_of(data)
    made_stores.write(Path(store.blob_path(sha256)), data)
    store.write_record(Record(name, (StoredFile("model", "m.gguf", size, sha256=sha256),), pulled_s))


@pytest.fixture
def store(world: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("RAMALAMA_STORE", str(world / "store"))
    return Store(str(world / "store"))


def test_no_models(store: Store) -> None:
    assert run_cli("list").out == "SHORTNAME  NAME  MODIFIED  SIZE\n"
    assert run_cli("ls", "--noheading").out == ""
    assert run_cli("list", "--json").out == "[]\n"
    assert not os.path.exists(store.folder)


def test_a_table(store: Store) -> None:
    now = time.time()
    put(store, "hf://owner/b:Q4_K_M", 1_900_000_000, now - 3 * 86400 - 60)
    put(store, "ollama://tiny:latest", 2_600_000, now - 61)
    lines = run_cli("list").out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["SHORTNAME", "-", "-"]
    assert [" ".join(line.split()[1:]) for line in lines] == [
        "NAME MODIFIED SIZE", "ollama://tiny:latest 1 minute ago 2.6 MB", "hf://owner/b:Q4_K_M 3 days ago 1.9 GB",
    ]  # fmt: skip
    assert run_cli("list", "--order", "asc", "--quiet").out == "hf://owner/b:Q4_K_M\nollama://tiny:latest\n"
    assert run_cli("list", "--sort", "size", "-q").out == "hf://owner/b:Q4_K_M\nollama://tiny:latest\n"
    assert run_cli("list", "--sort", "modified", "-q").out == "ollama://tiny:latest\nhf://owner/b:Q4_K_M\n"


def test_json_of_the_dialect(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    put(store, "hf://owner/b:Q4_K_M", 236, 1_796_083_255.594905)
    modified = "2026-12-01T00:00:55.594905+00:00"
    assert json.loads(run_cli("list", "--json").out) == [
        {"shortname": "", "name": "hf://owner/b:Q4_K_M", "modified": modified, "size": 236}]  # fmt: skip


def test_damage_hides_nothing(store: Store, world: Path) -> None:
    put(store, "hf://owner/b", 236, 1.7e9)
    model = made_stores.write(world / "models" / "m.gguf", b"GGUF")
    for name in ("file:///gone", "file:///changed"):
        path = str(model) if "changed" in name else "/gone"
        store.write_record(Record(name, (StoredFile("model", "m.gguf", 5, path=path, changed_ns=1),), 1.7e9))
    Path(store.record_path("hf://owner/c")).write_text("{")
    shown = json.loads(run_cli("list", "--json").out)
    assert [(each["name"], each.get("problem")) for each in shown] == [
        ("hf://owner/c", "damaged: is no JSON"), ("hf://owner/b", None), ("file:///gone", "/gone is gone"),
        ("file:///changed", f"{model} has changed")]  # fmt: skip
    assert "hf://owner/c (damaged: is no JSON)" in run_cli("list").out


def test_other_stores(store: Store, world: Path) -> None:
    put(store, "hf://owner/b", 236, 1.7e9)
    made_stores.lm_studio(world / "home" / ".lmstudio" / "models", "owner/m", {"m-Q8_0.gguf": b"GGUF"})
    rows = [line.split() for line in run_cli("list", "--all-stores").out.splitlines()]
    assert [(row[1], row[-1]) for row in rows] == [
        ("NAME", "STORE"), ("hf://owner/m/m-Q8_0.gguf", "lm-studio"), ("hf://owner/b", "-")]  # fmt: skip
    assert [each["store"] for each in json.loads(run_cli("list", "--all-stores", "--json").out)] == ["lm-studio", ""]


def test_the_index_is_what_the_records_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, cache = Store(str(write_many_models(tmp_path / "s", 100))), str(tmp_path / "cache")
    folder = Path(store.folder) / "refs"

    def plain() -> list[tuple[str, float, int, str]]:
        return [(each.name, each.modified_s, each.size_bytes, each.problem) for each in list_records(store, cache)]

    bare = [(each.name, each.pulled_s, each.size_bytes, "") for each in store.records() if isinstance(each, Record)]
    assert plain() == bare
    assert len(os.listdir(cache)) == 1
    monkeypatch.setattr(Store, "records", lambda _: pytest.fail("the index was not used"))
    assert plain() == bare
    monkeypatch.undo()
    # Whatever changes a record changes the folder.
    store.remove(bare[0][0])
    assert plain() == bare[1:]
    assert plain() == bare[1:]  # too young a change for an index
    os.utime(folder, (time.time() - 60, time.time() - 60))
    assert plain() == bare[1:]
    [index] = Path(cache).iterdir()
    whole = index.read_text()
    for damage in ("", "x", whole[:-5], whole.replace("\n", "\nx\t", 1), whole + "no tabs\n"):
        index.write_text(damage)
        assert plain() == bare[1:], damage[:40]
    index.write_text(whole)
    assert list_records(store, "") != [] and plain() == bare[1:]


def test_a_dry_run_keeps_no_index(store: Store, world: Path) -> None:
    write_many_models(world / "store", 100)
    assert len(run_cli("--dryrun", "list", "-q").out.splitlines()) == 100
    assert not (world / "home" / ".cache").exists()
    assert len(run_cli("list", "-q").out.splitlines()) == 100
    assert [path.name[:5] for path in (world / "home" / ".cache" / "ramalama-like").iterdir()] == ["list-"]


def test_few_records_need_no_index(tmp_path: Path) -> None:
    store = Store(str(write_many_models(tmp_path / "s", list_index.FEW - 1)))
    assert len(list_records(store, str(tmp_path / "cache"))) == list_index.FEW - 1
    assert not (tmp_path / "cache").exists()


@given(st.floats(0, 1e10))
def test_ages(seconds: float) -> None:
    words = age_text(seconds).split()
    assert words == ["just", "now"] or (len(words) == 3 and int(words[0]) >= 1 and words[2] == "ago")


def test_exact_ages() -> None:
    assert [age_text(each) for each in (0.9, 1, 59, 60, 119, 3600, 86400, 8 * 86400, 31 * 86400, 4e7)] == [
        "just now", "1 second ago", "59 seconds ago", "1 minute ago", "1 minute ago", "1 hour ago", "1 day ago",
        "1 week ago", "1 month ago", "1 year ago"]  # fmt: skip
