"""The file of results: what was added is read again, whatever happens to other lines."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from harness import snapshot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ramalama_like import result_store
from ramalama_like.errors import AppError
from ramalama_like.measurement import Measurement, measurement_from_plain, size_text
from ramalama_like.result_store import Kept, add_results, read_results, recent_results
from ramalama_like.value import replace, to_plain

ONE = Measurement(id="0123abcd", time="2026-11-30T10:00:00Z", model="demo", backend="cpu", test="tg128", avg_ts=12.5,
                  host="amd64", options=("-r", "1"))  # fmt: skip


def test_what_is_added_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "results.jsonl"
    assert read_results(str(path)) == Kept()
    two = [ONE, replace(ONE, test="pp512", model='"é\n\udc80', avg_ts=0.0)]
    add_results(str(path), two[:1])
    add_results(str(path), two[1:])
    assert read_results(str(path)) == Kept(tuple(two))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [json.loads(line)["test"] for line in path.read_text("ascii").splitlines()] == ["tg128", "pp512"]


def test_the_exact_line(tmp_path: Path) -> None:
    add_results(f"{tmp_path}/x", [ONE])
    assert (tmp_path / "x").read_text() == (
        '{"id": "0123abcd", "time": "2026-11-30T10:00:00Z", "model": "demo", "backend": "cpu", "test": "tg128", '
        '"avg_ts": 12.5, "host": "amd64", "stddev_ts": 0.0, "alias": "", "architecture": "", "quantization": "", '
        '"size_bytes": 0, "n_params": 0, "accelerator": "", "device": "", "on_gpu": false, "gpus": [], '
        '"drivers": [], "kernel": "", "engine": "", "engine_version": "", "image": "", "image_family": "", '
        '"image_digest": "", "image_id": "", "threads": 0, "ngl": -1, "options": ["-r", "1"], "build_commit": "", '
        '"build_number": 0, "program_version": "", "format": 1}\n'
    )


damage = st.one_of(
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
    st.sampled_from([b"{", b"[" * 100_000, b"1" * 5000, b"null", b"[]", b'{"id": 1}', b"\xff", b"NaN", b'"\\ud800"']),
    st.sampled_from(list(to_plain(ONE))).flatmap(  # type: ignore[call-overload]
        lambda name: st.sampled_from([None, [], {}, -(2**70), 1e999, True, [1], "x" * 20]).map(
            lambda wrong: json.dumps(to_plain(ONE) | {name: wrong}).encode()  # type: ignore[operator]
        )
    ),
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(damage, st.none()), max_size=8), st.booleans())
def test_a_damaged_line_hides_no_other(tmp_path: Path, lines: list[bytes | None], torn: bool) -> None:
    path = tmp_path / "results.jsonl"
    good = json.dumps(to_plain(ONE)).encode()
    path.write_bytes(b"".join(b"%s\n" % (good if line is None else line) for line in lines) + b'{"id":' * torn)
    add_results(str(path), [replace(ONE, id="last")])
    kept = read_results(str(path))
    whole = [record for record in kept.records if record == ONE]
    assert len(whole) >= sum(line is None for line in lines)
    assert kept.records[-1] == replace(ONE, id="last")
    written = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    assert len(kept.records) + kept.damaged == len(written)
    assert kept.damaged >= torn


@pytest.mark.parametrize(
    "change",
    [{"avg_ts": -1}, {"avg_ts": float("nan")}, {"avg_ts": 10**400}, {"avg_ts": True}, {"avg_ts": "1"}, {"format": 2},
     {"time": "yesterday"}, {"time": "2026-13-30T10:00:00Z"}, {"time": "2026-11-00T10:00:00Z"}, {"options": "x"},
     {"options": [1]}, {"on_gpu": 1}, {"size_bytes": -1}, {"id": ""}, {"size_bytes": 1.5}],
)  # fmt: skip
def test_a_line_that_is_none(change: dict[str, object]) -> None:
    plain = to_plain(ONE)
    assert isinstance(plain, dict)
    assert measurement_from_plain(plain | {"unknown": {}}) == ONE
    assert measurement_from_plain(plain | change) is None
    for needed in ("id", "time", "model", "backend", "test", "avg_ts", "host"):
        assert measurement_from_plain({name: member for name, member in plain.items() if name != needed}) is None


def test_only_the_end_is_read(tmp_path: Path) -> None:
    path = f"{tmp_path}/x"
    many = [replace(ONE, id=f"{number:04}") for number in range(1000)]
    add_results(path, many)
    line = os.path.getsize(path) // 1000
    for limit, count in ((line * 3, 3), (line * 3 + 1, 3), (line * 4 - 1, 3), (line - 1, 0)):
        assert read_results(path, limit) == Kept(tuple(many[1000 - count :]))
    assert len(recent_results(path)) == result_store.RECENT_BYTES // line


def test_what_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(AppError) as caught:
            read_results(str(path))
        assert (caught.value.exit_code, recent_results(str(path))) == (5, ())
        with pytest.raises(AppError):
            add_results(str(path), [ONE])
    (tmp_path / "file").touch()
    assert read_results(f"{tmp_path}/file/x") == Kept()
    with pytest.raises(AppError):
        add_results(f"{tmp_path}/file/x", [ONE])


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{tmp_path}/x"
    add_results(path, [ONE])
    before = Path(path).read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
    with pytest.raises(AppError, match="the disk is full"):
        add_results(path, [ONE])
    monkeypatch.undo()
    assert Path(path).read_bytes() == before


def test_somebody_who_holds_the_file_is_not_waited_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{tmp_path}/x"
    monkeypatch.setattr(result_store, "PATIENCE_S", 0.1)
    with open(path, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        before = snapshot(tmp_path)
        with pytest.raises(AppError, match="somebody else is holding it"):
            add_results(path, [ONE])
        assert snapshot(tmp_path) == before
    add_results(path, [ONE])
    assert read_results(path) == Kept((ONE,))


def test_many_at_the_same_moment(tmp_path: Path) -> None:
    path = f"{tmp_path}/x"
    program = (
        "import sys\nTIME = '2026-11-30T10:00:00Z'\n"
        "from ramalama_like.measurement import Measurement\n"
        "from ramalama_like.result_store import add_results\n"
        "for number in range(20):\n"
        "    add_results(sys.argv[1], [Measurement(f'{sys.argv[2]}-{number}', TIME, 'm' * 3000, 'cpu',"
        " 'tg128', 1.0, 'h')] * 2)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, path, str(who)]) for who in range(4)]
    assert [each.wait(60) for each in running] == [0] * 4
    kept = read_results(path)
    assert (len(kept.records), kept.damaged) == (160, 0)
    ids = [record.id for record in kept.records]
    assert ids[::2] == ids[1::2], "the lines of a run are together"
    assert len(set(ids)) == 80


def test_sizes() -> None:
    assert [size_text(size) for size in (0, 2_614_656, 99_960_000, 637_800_000, 8_149_000_000)] == [
        "0.0 MB", "2.6 MB", "100.0 MB", "638 MB", "8.1 GB"
    ]  # fmt: skip
