"""The store: what is in it, what stays of it after every kind of accident, and who may use it at the same time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import store_worker
from harness import ROOT, TEST, short_folder, snapshot
from hubs.server import HubServer
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule
from store_worker import CONTENTS, KEPT, NAMES, SUMS, fetch, pull, scenario

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.models.disk import remove_file
from ramalama_like.models.fsck import check_store, repair_store
from ramalama_like.models.locks import Busy, FileLock, is_locked
from ramalama_like.models.record_files import quote_name, record_from_plain, record_to_bytes, unquote_name
from ramalama_like.models.store import Damaged, Store
from ramalama_like.record import Record, StoredFile


@pytest.fixture
def store(world: Path) -> Store:
    return Store(str(world / "store"))


def names(store: Store) -> list[str]:
    return [each.name for each in store.records()]


def blobs(store: Store) -> list[str]:
    folder = Path(store.folder, "blobs")
    return sorted(path.name.removeprefix("sha256-") for path in folder.iterdir()) if folder.exists() else []


def pinned(number: int) -> StoredFile:
    return StoredFile("model", f"part-{number}.gguf", len(CONTENTS[number]), SUMS[number])


# What is in it.


def test_looking_makes_nothing(store: Store, world: Path) -> None:
    before = snapshot(world)
    assert (store.records(), store.find_record("x"), store.has_blob(SUMS[0])) == ([], None, False)
    assert (store.prune(0), store.find_unused(0), store.find_freed(["x"]), check_store(store)) == ([], [], [], [])
    with pytest.raises(ValueProblem, match="no model in the store has this name"):
        store.remove("x")
    assert snapshot(world) == before


def test_a_model_of_two_files(store: Store) -> None:
    pull(store, NAMES[0], [1, 2])
    record = Record(NAMES[0], (pinned(1), pinned(2)), 1.0)
    assert (store.records(), store.find_record(NAMES[0])) == ([record], record)
    for number in (1, 2):
        path = Path(store.blob_path(SUMS[number]))
        assert (path.read_bytes(), oct(path.stat().st_mode & 0o777)) == (CONTENTS[number], "0o444")
        assert store.has_blob(SUMS[number], len(CONTENTS[number]))
        assert not store.has_blob(SUMS[number], len(CONTENTS[number]) + 1)
    assert os.listdir(f"{store.folder}/partial") == os.listdir(f"{store.folder}/pins") == []
    assert check_store(store) == store.find_unused(0) == []


@pytest.mark.parametrize(("umask", "folder", "blob", "record"), [(0o022, 0o755, 0o444, 0o644),
                                                                 (0o077, 0o700, 0o400, 0o600),
                                                                 (0o002, 0o775, 0o444, 0o664)])  # fmt: skip
def test_the_umask_counts(umask: int, folder: int, blob: int, record: int, store: Store) -> None:
    before = os.umask(umask)
    try:
        pull(store, NAMES[0], [1])
    finally:
        os.umask(before)
    paths = (store.folder, f"{store.folder}/blobs", store.blob_path(SUMS[1]), store.record_path(NAMES[0]))
    assert [os.stat(path).st_mode & 0o777 for path in paths] == [folder, folder, blob, record]


def test_same_bytes_under_two_names(store: Store) -> None:
    """Each byte once, and kept for as long as any name uses it."""
    pull(store, "hf://a/one", [1, 2])
    pull(store, "ollama://library/two:latest", [2, 3])
    assert blobs(store) == sorted(SUMS[1:4])
    assert store.remove("hf://a/one") == len(CONTENTS[1])
    assert blobs(store) == sorted(SUMS[2:4])
    assert store.remove("ollama://library/two:latest") == len(CONTENTS[2]) + len(CONTENTS[3])
    assert (blobs(store), names(store)) == ([], [])


def test_other_bytes_under_the_same_name(store: Store) -> None:
    """What was there before is freed, but for what others use."""
    pull(store, NAMES[0], [1, 2])
    store.tag(NAMES[0], NAMES[1])
    pull(store, NAMES[1], [3])
    assert blobs(store) == sorted(SUMS[1:4])
    pull(store, NAMES[0], [2, 3])
    assert blobs(store) == sorted(SUMS[2:4])
    store.tag(NAMES[1], NAMES[0])
    assert blobs(store) == [SUMS[3]]


def test_files_used_in_place_are_never_removed(store: Store, world: Path) -> None:
    path = world / "model.gguf"
    path.write_bytes(CONTENTS[1])
    status = path.stat()
    record = Record("file://x", (StoredFile("model", "model.gguf", status.st_size, "", str(path), status.st_mtime_ns),),
                    1.0)  # fmt: skip
    assert store.write_record(record) == 0
    assert (store.find_record("file://x"), store.is_complete(record), check_store(store)) == (record, True, [])
    path.write_bytes(CONTENTS[2])
    (finding,) = check_store(store)
    assert (finding.kind, finding.path, finding.models) == ("changed", str(path), ("file://x",))
    assert store.remove("file://x") == 0
    assert path.read_bytes() == CONTENTS[2]


def test_a_record_needs_its_blobs(store: Store) -> None:
    with pytest.raises(ValueProblem, match=r"part-1\.gguf is not in the store"):
        store.write_record(Record("x", (pinned(1),), 1.0))
    assert names(store) == []


@pytest.mark.parametrize(("content", "problem"), [
    (b"", "is no JSON"), (b"{", "is no JSON"), (b"[]", "is no JSON object"), (b"\xff\xfe\0", "is no JSON"),
    (b"[" * 100_000, "is no JSON"), (b"1,2", "is no JSON"),
    (b'{"version":2}', "has the version 2, which this program does not know"),
    (b'{"version":1,"name":"other","pulled_s":1,"files":[{"role":"model","name":"m","size_bytes":1,"path":"/m"}]}',
     "holds another name than its file has"),
    (b'{"version":1,"name":"hf://a/bad","pulled_s":1,"files":[{"role":"model","name":"../m","size_bytes":1}]}',
     "names a file that has no proper name"),
    (b'{"version":1,"name":"hf://a/bad","pulled_s":1,"files":[{"role":"model","name":"m","size_bytes":1}]}',
     "gives m no proper hash"),
])  # fmt: skip
def test_a_damaged_entry_hides_no_other(content: bytes, problem: str, store: Store) -> None:
    pull(store, NAMES[0], [1, 2])
    pull(store, "hf://a/bad", [2, 3])
    good = store.find_record(NAMES[0])
    path = store.record_path("hf://a/bad")
    Path(path).write_bytes(content)
    damaged = Damaged("hf://a/bad", path, problem)
    assert store.records() == [good, damaged]
    assert store.find_record("hf://a/bad") is None
    assert [(each.kind, each.models) for each in check_store(store)] == [("damaged record", ("hf://a/bad",))]
    # Nobody knows what it counts on, so nothing is removed that it may need.
    assert store.prune(0) == []
    assert blobs(store) == sorted(SUMS[1:4])
    assert store.remove("hf://a/bad") == 0
    assert store.records() == [good]
    assert [each.path for each in store.prune(0)] == [store.blob_path(SUMS[3])]
    assert check_store(store) == []


def test_a_damaged_entry_frees_what_it_still_names(store: Store) -> None:
    pull(store, "hf://a/bad", [1, 2])
    pull(store, NAMES[0], [1])
    path = Path(store.record_path("hf://a/bad"))
    path.write_bytes(path.read_bytes()[:-3])
    assert store.remove("hf://a/bad") == len(CONTENTS[2])


def test_entries_that_are_no_files(store: Store, world: Path) -> None:
    pull(store, NAMES[0], [1])
    refs = Path(store.folder, "refs")
    (refs / "folder.json").mkdir()
    (refs / "folder.json" / "x").write_text("")
    (refs / "link.json").symlink_to(store.record_path(NAMES[0]))
    os.mkfifo(refs / "pipe.json")
    found = {each.name: each.reason for each in store.records() if isinstance(each, Damaged)}
    assert found == {"folder": "is no file", "link": os.strerror(40), "pipe": "is no file"}
    for name in found:
        store.remove(name)
    assert names(store) == [NAMES[0]]


def test_a_pull_replaces_a_damaged_entry(store: Store) -> None:
    pull(store, NAMES[0], [1])
    Path(store.record_path(NAMES[0])).write_bytes(b"{")
    pull(store, NAMES[0], [2])
    assert [each.reason for each in store.records() if isinstance(each, Damaged)] == []
    assert [each.kind for each in check_store(store)] == ["stray"]


# Names and files.


@given(st.text(max_size=300).filter(bool), st.text(max_size=300).filter(bool))
def test_names_become_file_names(name: str, other: str) -> None:
    name, other = (text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for text in (name, other))
    quoted = quote_name(name)
    assert len(quoted) <= 200 and quoted.isascii() and quoted == quoted.lower()
    assert not {"/", "\0"} & set(quoted) and quoted[0] != "."
    assert unquote_name(quoted) == (name if "~" not in quoted else quoted)
    assert (quote_name(other) == quoted) == (other == name)


@given(st.text(max_size=40))
def test_any_file_name_has_a_name_that_is_shown(text: str) -> None:
    shown = unquote_name(text)
    assert shown == text or quote_name(shown) == text


FILES = st.builds(
    StoredFile,
    st.sampled_from(["model", "shard", "mmproj"]),
    st.from_regex(r"[a-z][a-zA-Z0-9. _é-]{0,20}", fullmatch=True),
    st.integers(0, 1 << 50),
    st.sampled_from(SUMS),
    st.sampled_from(["", "/a/b c.gguf"]),
    st.integers(-(1 << 62), 1 << 62),
)
RECORDS = st.builds(
    Record,
    st.text(min_size=1),
    st.lists(FILES, min_size=1, max_size=3).map(tuple),
    st.floats(0, 253402300799),
    st.text(),
    st.text(),
)


@given(RECORDS)
def test_records_round_trip(record: Record) -> None:
    assert record_from_plain(json.loads(record_to_bytes(record))) == record


JUNK = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(),
                    lambda inner: st.lists(inner, max_size=3), max_leaves=5)  # fmt: skip


@given(RECORDS, st.sampled_from(["version", "name", "pulled_s", "files", "revision", "source"]), JUNK)
def test_records_with_a_wrong_member(record: Record, member: str, junk: object) -> None:
    """They are a record, or refused with a reason."""
    plain = json.loads(record_to_bytes(record))
    plain[member] = junk
    try:
        assert isinstance(record_from_plain(plain), Record)
    except ValueError as error:
        assert type(error) is ValueError and str(error)


@given(RECORDS, st.sampled_from(["role", "name", "size_bytes", "sha256", "path", "changed_ns"]), JUNK)
def test_records_with_a_wrong_file(record: Record, member: str, junk: object) -> None:
    plain = json.loads(record_to_bytes(record))
    plain["files"][0][member] = junk
    try:
        assert isinstance(record_from_plain(plain), Record)
    except ValueError as error:
        assert type(error) is ValueError and str(error)


# Unfinished downloads.


def test_an_unfinished_download_waits_for_the_next_try(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), store.partial(SUMS[1]) as partial:
        Path(partial.data_path).write_bytes(CONTENTS[1][:10])
        Path(partial.state_path).write_text("{}")
        raise KeyboardInterrupt
    folder = os.path.dirname(partial.data_path)
    assert [(each.kind, each.path, each.size_bytes) for each in store.find_unused(0)] == [("partial", folder, 12)]
    assert store.find_unused(3600) == store.prune(3600) == []
    with store.partial(SUMS[1]) as again:
        assert Path(again.data_path).read_bytes() == CONTENTS[1][:10]
        assert store.prune(0) == []  # somebody goes on with it
        with pytest.raises(Busy):
            store.partial(SUMS[1]).__enter__()
    pull(store, NAMES[0], [1])
    assert not os.path.exists(folder)


def test_old_downloads_are_pruned(store: Store) -> None:
    with store.partial("some key") as partial:
        Path(partial.data_path).write_bytes(b"x")
        for path in (os.path.dirname(partial.data_path), partial.data_path):
            os.utime(path, (1, 1))
    (removed,) = store.prune(86400)
    assert (removed.kind, os.path.exists(removed.path)) == ("partial", False)


def test_notes_beside_downloads_are_no_fault(store: Store) -> None:
    """They only go with time."""
    pull(store, NAMES[0], [1])
    note = Path(store.folder, "partial", "url-x.done")
    note.mkdir()
    (note / "state.json").write_text("{}")
    assert check_store(store) == store.prune(3600) == []
    assert [(each.kind, each.path) for each in store.prune(0)] == [("note", str(note))]
    assert not note.exists()


def test_whoever_waits_for_a_download_is_asked_whether_to_go_on(store: Store) -> None:
    asked = []

    def waiting() -> None:
        asked.append(1)
        if len(asked) == 3:
            held.__exit__(None, None, None)

    held = store.partial("k").__enter__()
    with store.partial("k", waiting) as partial:
        assert (len(asked), is_locked(f"{os.path.dirname(partial.data_path)}/lock")) == (3, True)


def test_a_lock_whose_file_was_removed_excludes_nobody(world: Path) -> None:
    path = str(world / "lock")

    def waiting() -> None:
        if os.path.exists(path):
            os.unlink(path)
            held.__exit__(None, None, None)

    held = FileLock(path).__enter__()
    with FileLock(path, waiting=waiting):
        assert is_locked(path)  # a new file: the one that is at this path


# What running pulls count on.


def test_blobs_of_a_running_pull_stay(store: Store) -> None:
    pull(store, NAMES[0], [1, 2])
    other = Store(store.root)
    with other.adopting():
        fetch(other, 1)
        fetch(other, 3)
        assert store.remove(NAMES[0]) == len(CONTENTS[2])  # but not what the other pull has found here
        assert store.prune(0) == []
        other.write_record(Record(NAMES[1], (pinned(1), pinned(3)), 1.0))
    assert blobs(store) == sorted([SUMS[1], SUMS[3]])
    assert check_store(store) == []


def test_finished_files_of_a_pull_that_failed_stay_a_while(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), store.adopting():
        fetch(store, 1)
        raise KeyboardInterrupt
    assert store.prune(3600) == []
    assert store.has_blob(SUMS[1])
    assert [each.path for each in store.prune(0)] == [store.blob_path(SUMS[1])]


# Soundness.


def test_fsck_finds_and_repairs(store: Store) -> None:
    pull(store, NAMES[0], [1, 2])
    pull(store, NAMES[1], [2, 3, 4])
    for number, content in ((2, CONTENTS[2][:-1] + b"!"), (3, b"short")):
        path = Path(store.blob_path(SUMS[number]))
        path.chmod(0o644)
        path.write_bytes(content)
    Path(store.blob_path(SUMS[4])).unlink()
    Path(store.folder, "blobs", "rubbish").write_text("x")
    Path(store.record_path("bad")).write_text("{")
    both, one = (NAMES[0], NAMES[1]), (NAMES[1],)
    assert sorted((each.kind, each.text, each.models) for each in check_store(store)) == [
        ("damaged file", "has 5 bytes instead of 16000", one),
        ("damaged file", "its content is not what its sum says", both),
        ("damaged record", "the entry is no JSON", ("bad",)),
        ("missing", "the file is not there", one),
    ]
    read: list[int] = []
    quick = check_store(store, contents=False, progress=read.append)
    assert ([each.text for each in quick if each.kind == "damaged file"], read) == (
        ["has 5 bytes instead of 16000"],
        [],
    )
    assert len(repair_store(store, check_store(store))) == 3
    pull(store, NAMES[0], [1, 2])
    pull(store, NAMES[1], [2, 3, 4])
    (stray,) = check_store(store)
    assert (stray.kind, os.path.basename(stray.path), stray.is_wrong) == ("stray", "rubbish", False)
    store.prune(0)
    assert check_store(store) == []


# Accidents.


def worker(store: Store, *words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{TEST}"}
    return subprocess.Popen([sys.executable, str(TEST / "store_worker.py"), store.root, *words], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def check_sound(store: Store) -> None:
    """Nothing lost, nothing wrong; and what is left over goes with one prune."""
    assert [each for each in check_store(store) if each.is_wrong] == []
    assert all(isinstance(each, Record) and store.is_complete(each) for each in store.records())


@pytest.mark.parametrize("source", ["memory", "hub"])
def test_killed_at_100_random_moments_two_at_once(source: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL in the middle of pulls, removals, tags and prunes. A model that nobody removes shares all of its files
    with those that come and go, and is whole every time."""
    chance = random.Random(4)
    pull(store, KEPT, [0, 2, 4])
    seen: set[str] = set()
    with HubServer() as hub:
        for number, content in enumerate(CONTENTS):
            hub.put(f"/{number}", content)
        for round_number in range(50):
            from_hub = (hub.url,) if source == "hub" else ()
            workers = [worker(store, f"{round_number}.{side}", *from_hub) for side in range(2)]
            for process in workers:
                assert process.stdout and process.stdout.readline()  # it works now
            for process in workers:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(chance.random() * 0.05)  # a random moment
                process.send_signal(signal.SIGKILL)
                out, err = process.communicate()
                assert (process.returncode, err) == (-signal.SIGKILL, b"")
                seen.update(out.decode().split())
            check_sound(store)
            assert store.find_record(KEPT)
        assert (hub.count("/1") > 0) == (source == "hub")
        # The next pull completes, going on with whatever the last ones left.
        monkeypatch.setattr(store_worker, "HUB", hub.url if source == "hub" else "")
        for name in NAMES:
            pull(store, name, [1, 3, 5])
    assert seen >= {"pull", "remove", "tag", "prune"}
    store.prune(0)
    assert check_store(store) == []
    assert blobs(store) == sorted(SUMS)


@pytest.fixture
def fast_folder() -> Iterator[str]:
    """A folder in memory where there is one: thousands of files are written, each of them down to the disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield folder


def test_killed_before_every_change_of_the_disk(fast_folder: str) -> None:
    """Wherever it happens, nothing is lost, and the same work done again ends as it does undisturbed."""
    process = worker(Store(fast_folder), "@")
    out, err = process.communicate()
    ends = out.decode().split()
    assert (err, set(ends), ends.count("0"), ends[-1]) == (b"", {"-9", "0"}, 1, "0")
    assert len(ends) > 100
    for number in range(1, len(ends) + 1):
        store = Store(f"{fast_folder}/{number}")
        check_sound(store)
        assert store.find_record(KEPT)
        scenario(store)
        store.prune(0)
        assert check_store(store) == []
        assert (names(store), blobs(store)) == ([NAMES[3], KEPT], sorted(SUMS[n] for n in (0, 2, 4, 5)))


@pytest.fixture
def small_disk(world: Path) -> Iterator[Path]:
    """A file system of 256 KiB; where none can be mounted, a limit on the size of files stands in for it."""
    folder = world / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)], capture_output=True,
                          check=False)  # fmt: skip
    if done.returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    store = Store(str(small_disk))
    pull(store, NAMES[0], [1])
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space left"), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    before = store.records()
    with pytest.raises(AppError, match="No space left on device") as caught:
        store.tag(NAMES[0], NAMES[1])
    assert (caught.value.exit_code, "df" in caught.value.hint) == (5, True)
    assert store.records() == before
    assert check_store(store) == []
    assert store.remove(NAMES[0]) == len(CONTENTS[1])  # room can be made
    filler.unlink()
    pull(store, NAMES[0], [1])
    assert check_store(store) == []


def test_a_record_that_cannot_be_written_whole(store: Store) -> None:
    """As on a full disk, where nobody can mount one: files may have no more than 100 bytes."""
    pull(store, NAMES[0], [1])
    before = store.records()
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(AppError, match="File too large"):
            store.tag(NAMES[0], NAMES[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (store.records(), check_store(store)) == (before, [])
    assert os.listdir(f"{store.folder}/refs") == [os.path.basename(store.record_path(NAMES[0]))]


def test_a_disk_that_can_only_be_read(small_disk: Path) -> None:
    store = Store(str(small_disk))
    pull(store, NAMES[0], [1])
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    record = store.find_record(NAMES[0])
    assert record and store.records() == [record] and store.is_complete(record) and store.has_blob(SUMS[1])
    assert check_store(store) == []
    for change in (lambda: store.remove(NAMES[0]), lambda: store.tag(NAMES[0], "x"), lambda: store.prune(0),
                   lambda: store.partial("k").__enter__(), lambda: store.adopting().__enter__()):  # fmt: skip
        with pytest.raises(AppError, match="Read-only file system") as caught:
            change()
        assert caught.value.exit_code == 5


# Held to a model of the store.


class StoreMachine(RuleBasedStateMachine):
    """Random steps; a dictionary tells what must be there after each."""

    used = Bundle("used")

    def __init__(self) -> None:
        super().__init__()
        self.around = short_folder()
        self.store = Store(str(self.around.__enter__()))
        self.expected: dict[str, frozenset[int]] = {}
        self.loose: set[int] = set()  # blobs without a name

    def teardown(self) -> None:
        self.around.__exit__(None, None, None)

    def free(self, numbers: frozenset[int]) -> set[int]:
        """Those of the files that no name uses any more."""
        return set(numbers) - set().union(*self.expected.values())

    @rule(target=used, name=st.sampled_from(["a", "A", "hf://a/b", "hf://A/b", "é", ".", "x" * 300]),
          numbers=st.frozensets(st.integers(0, 5), min_size=1))  # fmt: skip
    def pull(self, name: str, numbers: frozenset[int]) -> str:
        before = self.expected.get(name, frozenset())
        pull(self.store, name, sorted(numbers))
        self.expected[name] = numbers
        self.loose -= numbers | self.free(before)
        return name

    @rule(number=st.integers(0, 5))
    def pull_that_fails(self, number: int) -> None:
        with self.store.adopting():
            fetch(self.store, number)
        if self.free(frozenset({number})):
            self.loose.add(number)

    @rule(name=used)
    def remove(self, name: str) -> None:
        if name not in self.expected:
            with pytest.raises(ValueProblem):
                self.store.remove(name)
            return
        told = self.store.find_freed([name])
        numbers = self.expected.pop(name)
        freed = sum(len(CONTENTS[number]) for number in self.free(numbers))
        assert sum(each.size_bytes for each in told) == freed
        assert self.store.remove(name) == freed
        assert not any(os.path.lexists(each.path) for each in told)

    @rule(target=used, old=used, new=st.sampled_from(["t", "hf://a/b"]))
    def tag(self, old: str, new: str) -> object:
        if old not in self.expected:
            with pytest.raises(ValueProblem):
                self.store.tag(old, new)
            return multiple()
        self.store.tag(old, new)
        self.expected[new] = self.expected[old]
        return new

    @rule()
    def prune(self) -> None:
        assert self.store.prune(3600) == []
        removed = {os.path.basename(each.path) for each in self.store.prune(0)}
        assert removed == {f"sha256-{SUMS[number]}" for number in self.loose}
        self.loose.clear()

    @invariant()
    def it_holds_what_it_should(self) -> None:
        found = {each.name: frozenset(SUMS.index(file.sha256) for file in each.files)
                 for each in self.store.records() if isinstance(each, Record)}  # fmt: skip
        assert found == self.expected
        there = set(self.loose).union(*self.expected.values())
        assert blobs(self.store) == sorted(SUMS[number] for number in there)
        assert {each.kind for each in check_store(self.store)} <= {"stray"}
        assert hashlib.sha256(CONTENTS[0]).hexdigest() == SUMS[0]


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=40, stateful_step_count=15)


# What others planted in the store.


def test_links_in_partial_lead_nowhere(store: Store, world: Path) -> None:
    outside = world / "outside"
    outside.mkdir()
    for name in ("thesis", "data", "state.json"):
        (outside / name).write_text(name)
    before = snapshot(outside)
    partial = Path(store.folder, "partial")
    partial.mkdir(parents=True)
    (partial / "evil").symlink_to(outside)
    (partial / "file").write_text("x")
    assert [(each.kind, each.path) for each in store.prune(0)] == [
        ("partial", str(partial / "evil")),
        ("partial", str(partial / "file")),
    ]
    (partial / "key").symlink_to(outside)
    with store.partial("key") as entered:
        assert not (partial / "key").is_symlink() and not os.path.lexists(entered.data_path)
    assert (snapshot(outside), list(partial.iterdir())) == (before, [])


@pytest.mark.parametrize("member", ["data", "state.json", "state.json.new", "lock"])
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "hard link"])
def test_no_download_is_written_through_a_link(kind: str, member: str, store: Store, world: Path) -> None:
    outside = world / "outside"
    if "link" in kind:
        outside.write_bytes(CONTENTS[1])
    folder = Path(store.folder, "partial", SUMS[1])
    folder.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(folder / member)
    elif kind == "hard link":
        (folder / member).hardlink_to(outside)
    else:
        (folder / member).symlink_to(outside)
    assert [each.kind for each in store.find_unused(0)] == ["partial"]
    pull(store, NAMES[0], [1])
    assert (check_store(store), os.path.islink(store.blob_path(SUMS[1]))) == ([], False)
    assert outside.exists() == ("link" in kind) and ("link" not in kind or outside.read_bytes() == CONTENTS[1])


def test_a_link_is_never_adopted(store: Store, world: Path) -> None:
    (world / "outside").write_bytes(CONTENTS[1])
    (world / "link").symlink_to(world / "outside")
    os.mkfifo(world / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(AppError) as caught:
            store.adopt(str(world / name), SUMS[1])
        assert (caught.value.exit_code, blobs(store)) == (5, [])


@pytest.mark.parametrize("place", ["pins/x", "partial/x/lock", "blobs/x"])
def test_a_pipe_keeps_nobody_waiting(place: str, store: Store) -> None:
    pull(store, NAMES[0], [1])
    pipe = Path(store.folder, place)
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    assert not is_locked(str(pipe))
    with pytest.raises(OSError, match="is no file"):
        FileLock(str(pipe)).__enter__()
    assert [each.kind for each in check_store(store)] == ["stray"]
    assert len(store.prune(0)) == 1 and not pipe.exists()
    assert store.remove(NAMES[0]) == len(CONTENTS[1])


def test_folders_that_are_not_of_the_store_stop_no_prune(store: Store) -> None:
    pull(store, NAMES[0], [1])
    for place in ("blobs/dir", "pins/dir", "refs/.new-dir", "blobs/sha256-dir"):
        Path(store.folder, place).mkdir(parents=True, exist_ok=True)
    Path(store.blob_path(SUMS[2])).write_bytes(CONTENTS[2])
    Path(store.folder, "partial", "x", "sub").mkdir(parents=True)
    assert [each.kind for each in store.prune(0)] == ["blob", "partial"]
    assert {(each.kind, each.path) for each in check_store(store)} == {
        ("stray", f"{store.folder}/blobs/dir"),
        ("stray", f"{store.folder}/blobs/sha256-dir"),
    }
    assert store.remove(NAMES[0]) == len(CONTENTS[1])


def test_what_cannot_be_removed_stops_nothing_else(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramalama_like.models import store as module

    def refusing(path: str) -> bool:
        if path == store.blob_path(SUMS[0]):
            raise PermissionError(13, os.strerror(13))
        return remove_file(path)

    folder = Path(store.folder, "blobs")
    folder.mkdir(parents=True)
    for number in (0, 1, 2):
        Path(store.blob_path(SUMS[number])).write_bytes(CONTENTS[number])
    monkeypatch.setattr(module, "remove_file", refusing)
    with pytest.raises(AppError) as caught:
        store.prune(0)
    assert (caught.value.exit_code, blobs(store)) == (5, [SUMS[0]])


def test_a_disk_that_is_full_while_noting_what_a_pull_counts_on(store: Store) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no full disk to try with")
    with store.adopting():
        kept, store._pins = store._pins, os.open("/dev/full", os.O_WRONLY)
        try:
            with pytest.raises(AppError) as caught:
                store.has_blob(SUMS[0])
        finally:
            os.close(store._pins)
            store._pins = kept
    assert caught.value.exit_code == 5 and caught.value.message.endswith(os.strerror(28))


BAD_RECORDS = [
    *[({"pulled_s": number}, {}, "was made at a time that is none")
      for number in (10**400, float("inf"), float("nan"), -1e300, -1, 1e18, 253402300800)],
    *[({}, {"size_bytes": number}, "does not tell the size of part-1.gguf") for number in (10**400, 1 << 63, -1)],
    *[({}, {"changed_ns": number}, "does not tell when part-1.gguf was changed") for number in (10**400, -(1 << 63))],
    ({}, {"path": "/x/\ud800"}, "gives part-1.gguf a path that is none"),
    *[({}, {"name": name}, "names a file that has no proper name")
      for name in ("", ".", "..", "a/b", "a\xa0b", "a\u200bb", "a\u202eb", "a\x85b", "a\udcffb", "a" * 256, "é" * 128)],
]  # fmt: skip


@pytest.mark.parametrize("members, of_file, reason", BAD_RECORDS)
def test_odd_records_are_damaged_and_never_written(
    members: dict[str, float], of_file: dict[str, object], reason: str, store: Store
) -> None:
    from ramalama_like.models.usage import find_usage
    from ramalama_like.value import replace

    pull(store, NAMES[0], [1])
    good = store.find_record(NAMES[0])
    assert good is not None
    file = replace(good.files[0], **of_file)
    with pytest.raises(ValueProblem) as caught:
        store.write_record(replace(good, files=(file,), **members))
    assert caught.value.message == f"{NAMES[0]!a}: cannot be kept: its entry {reason}"
    assert store.records() == [good]
    plain = json.loads(record_to_bytes(good)) | {"name": "hf://odd/odd"} | members
    plain["files"][0] |= of_file
    Path(store.record_path("hf://odd/odd")).write_text(json.dumps(plain))
    assert store.records() == [good, Damaged("hf://odd/odd", store.record_path("hf://odd/odd"), reason)]
    assert ([each.kind for each in check_store(store)], len(find_usage(store).models)) == (["damaged record"], 1)
    assert store.remove("hf://odd/odd") == 0


def test_names_that_cannot_be_read_again_are_not_given(store: Store) -> None:
    pull(store, NAMES[0], [1])
    for name in ("", "a\ud800"):
        with pytest.raises(ValueProblem, match="cannot be kept"):
            store.tag(NAMES[0], name)
    assert names(store) == [NAMES[0]]


@pytest.mark.parametrize("name", ["a\xa0b", "a\u200bb", "a\u202eb", "a\x85b", "a\udcffb", "a" * 256, "é" * 128])
def test_names_that_no_record_takes_are_refused_early(name: str) -> None:
    from ramalama_like.models.archive_names import check_kept
    from ramalama_like.models.file_names import check_name
    from ramalama_like.models.record_files import is_file_name
    from ramalama_like.models.sources.file import plain_name

    for check in (check_name, check_kept):
        assert check("proper é.gguf", "source") == "proper é.gguf"
        with pytest.raises(ValueProblem):
            check(name, "source")
    assert is_file_name(plain_name(name)[:100])
