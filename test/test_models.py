"""Finding models: files, parts, projectors, names, and everything that is no model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import gguf_bytes, gguf_pair, language_model, projector, write_split
from hypothesis import given, settings
from hypothesis import strategies as st

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.model import Model, ModelFile
from ramalama_like.models import resolve_model
from ramalama_like.models.access import Access
from ramalama_like.models.lookup import Lookup
from ramalama_like.models.sources.file import split_part

STORE = "/store"
LOST = "none of the projectors beside the model fits it: "


def write(folder: Path, **files: bytes) -> None:
    """Files by their names without the ending; an underscore stands for a dash."""
    for name, content in files.items():
        (folder / f"{name.replace('_', '-')}.gguf").write_bytes(content)


def roles(model: Model) -> list[tuple[str, str]]:
    return [(file.role, os.path.basename(file.path)) for file in model.files]


def find(text: str, home: str = "") -> Model:
    """A model as it is found on this machine alone."""
    return resolve_model(text, Lookup(STORE, home, Access(offline=True)))


def problem(text: str) -> tuple[str, str, int]:
    with pytest.raises(ValueProblem) as caught:
        find(text)
    return caught.value.message, caught.value.hint, caught.value.exit_code


def test_a_file_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = language_model(64, architecture="gemma3")
    write(tmp_path, my_model=content)
    path = f"{tmp_path}/my-model.gguf"
    expected = Model(
        reference=path, alias="my-model", files=(ModelFile("model", path, "my-model.gguf"),), why=f"the file {path}",
        size_bytes=len(content), architecture="gemma3", context_length=512,
    )  # fmt: skip
    assert find(path) == expected
    monkeypatch.chdir(tmp_path)
    for text in ("my-model.gguf", "./my-model.gguf", "~/my-model.gguf", f"file://{path}", "file:my-model.gguf"):
        assert vars(find(text, str(tmp_path))) == {**vars(expected), "reference": text}


def test_a_file_without_the_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").write_bytes(language_model())
    monkeypatch.chdir(tmp_path)
    for text in ("model", "./model"):
        assert roles(find(text)) == [("model", "model")]
    assert find("model").alias == "model"


def test_a_link_is_followed_by_name(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "sha256-1").write_bytes(language_model())
    (tmp_path / "nice.gguf").symlink_to("blobs/sha256-1")
    model = find(f"{tmp_path}/nice.gguf")
    assert (model.alias, model.main.path) == ("nice", f"{tmp_path}/nice.gguf")


def test_demo_is_always_there() -> None:
    model = find("demo")
    assert (model.alias, model.main.name, len(model.files), model.problem) == ("demo", "demo.gguf", 1, "")
    assert model.size_bytes == os.path.getsize(model.main.path) <= 3_000_000


# Parts.

SPLITS = {
    "x-00001-of-00003.gguf": ("x", 1, 3),
    "/a/x-00003-of-00003.GGUF": ("/a/x", 3, 3),
    "-00001-of-00001.gguf": ("", 1, 1),
    "x-00000-of-00003.gguf": None,
    "x-00004-of-00003.gguf": None,
    "x-0001-of-0003.gguf": None,
    "x-00001-of-00003.bin": None,
    "x-00001_of-00003.gguf": None,
    "x00001-of-00003.gguf": None,
    "x-0000١-of-00003.gguf": None,
    "x-+0001-of-00003.gguf": None,
    "x.gguf": None,
    "": None,
}


@pytest.mark.parametrize("name", SPLITS)
def test_names_of_parts(name: str) -> None:
    assert split_part(name) == SPLITS[name]


@given(st.text("x-0123of.gGuUF", max_size=30))
def test_any_name_is_a_part_or_not(name: str) -> None:
    found = split_part(name)
    assert found is None or name.lower() == f"{found[0]}-{found[1]:05}-of-{found[2]:05}.gguf".lower()


@pytest.mark.parametrize("ending", [".gguf", ".GGUF"])
@pytest.mark.parametrize("asked", [0, 1, 2])
def test_all_parts_of_a_model(asked: int, ending: str, tmp_path: Path) -> None:
    parts = write_split(tmp_path, "big-Q4_K_M", 3, ending)
    model = find(str(parts[asked]))
    assert roles(model) == [("model", parts[0].name), ("shard", parts[1].name), ("shard", parts[2].name)]
    assert (model.alias, model.size_bytes) == ("big-Q4_K_M", sum(part.stat().st_size for part in parts))
    assert model.why == f"the file {parts[0]}"


def test_missing_parts_are_named(tmp_path: Path) -> None:
    parts = write_split(tmp_path, "x", 7)
    hint = "put all parts of the model into one folder"
    parts[1].unlink()
    assert problem(str(parts[0])) == (f"{parts[0]}: parts are missing: {parts[1].name}", hint, 22)
    for part in parts[2:]:
        part.unlink()
    missing = ", ".join(part.name for part in parts[1:4])
    assert problem(str(parts[0])) == (f"{parts[0]}: parts are missing: {missing} and 3 more", hint, 22)


def test_a_truncated_part_is_named(tmp_path: Path) -> None:
    parts = write_split(tmp_path, "x", 2)
    size = parts[1].stat().st_size
    os.truncate(parts[1], size - 1)
    assert problem(str(parts[0]))[0] == f"{parts[1]}: truncated: {size - 1} bytes of {size} are there"


def test_a_first_part_may_hold_no_tensors(tmp_path: Path) -> None:
    parts = write_split(tmp_path, "x", 2)
    parts[0].write_bytes(gguf_bytes(gguf_pair("general.architecture", "text", "llama")))
    assert find(str(parts[0])).architecture == "llama"


# Projectors.

PROJECTORS: dict[str, tuple[dict[str, bytes], str, str]] = {
    "none": ({"m": language_model()}, "", ""),
    "the only one": ({"m": language_model(), "mmproj": projector()}, "mmproj.gguf", ""),
    "named after the model": (
        {"a_7b_Q4_K_M": language_model(), "b": language_model(), "mmproj_a_7b_f16": projector()},
        "mmproj-a-7b-f16.gguf", "",
    ),
    "named after the model, at its end": (
        {"a_7b_q8_0": language_model(), "b": language_model(), "a_7b_mmproj": projector()}, "a-7b-mmproj.gguf", "",
    ),
    "named after another model": (
        {"a": language_model(), "b": language_model(), "mmproj_b": projector()}, "", "",
    ),
    "two models, no name": ({"a": language_model(), "b": language_model(), "mmproj": projector()}, "", ""),
    "of another width": ({"m": language_model(), "mmproj": projector(65)}, "", f"{LOST}mmproj.gguf"),
    "of unknown width": ({"m": language_model(), "mmproj": projector(None)}, "mmproj.gguf", ""),
    "damaged": ({"m": language_model(), "mmproj": b"GGUF"}, "", f"{LOST}mmproj.gguf"),
    "several precisions": (
        {"m": language_model(), "mmproj_m_Q8_0": projector(), "mmproj_m_F16": projector()}, "mmproj-m-F16.gguf", "",
    ),
    "several, one fits": (
        {"m": language_model(), "mmproj_m_bf16": projector(65), "mmproj_m_q8": projector()}, "mmproj-m-q8.gguf", "",
    ),
    "several, none fits": (
        {"m": language_model(), "mmproj_m_1": projector(1), "mmproj_m_2": projector(2)}, "",
        f"{LOST}mmproj-m-1.gguf, mmproj-m-2.gguf",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROJECTORS)
def test_the_projector_beside_a_model(name: str, tmp_path: Path) -> None:
    files, expected, note = PROJECTORS[name]
    write(tmp_path, **files)
    model = find(f"{tmp_path}/{next(iter(files)).replace('_', '-')}.gguf")
    assert [file for role, file in roles(model) if role == "mmproj"] == [expected] * bool(expected)
    assert model.notes == (note,) * bool(note)
    assert (model.projector is None) == (not expected)


def test_a_split_model_is_one_model_beside_a_projector(tmp_path: Path) -> None:
    parts = write_split(tmp_path, "x-Q4_0", 2)
    (tmp_path / "mmproj.gguf").write_bytes(projector())
    expected = [("model", parts[0].name), ("shard", parts[1].name), ("mmproj", "mmproj.gguf")]
    assert roles(find(str(parts[0]))) == expected


def test_a_projector_is_no_model(tmp_path: Path) -> None:
    write(tmp_path, mmproj=projector())
    path = f"{tmp_path}/mmproj.gguf"
    hint = "give the model's own file; a projector beside it is found by itself"
    assert problem(path) == (f"{path}: is a projector, not a language model", hint, 22)


# What is no model.


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    message = f"{tmp_path}: is a folder, not a GGUF file"
    assert problem(str(tmp_path)) == (message, "give the path of a file", 22)
    write(tmp_path, b=b"", a=b"", c=b"", d=b"")
    assert problem(str(tmp_path)) == (message, "it holds a.gguf, b.gguf, c.gguf", 22)


def test_a_missing_file(tmp_path: Path) -> None:
    path = f"{tmp_path}/m.gguf"
    missing = (f"{path}: No such file or directory", "check the path; 'demo' is a model that is always there", 22)
    assert problem(path) == missing
    (tmp_path / "m.gguf").symlink_to("nowhere")
    assert problem(path) == missing
    (tmp_path / "file").write_bytes(b"x")
    assert problem(f"{tmp_path}/file/m.gguf")[0] == f"{tmp_path}/file/m.gguf: Not a directory"


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    """Opening one waits for a writer: for ever, if nobody looks first."""
    os.mkfifo(tmp_path / "m.gguf")
    path = f"{tmp_path}/m.gguf"
    assert problem(path)[0] == f"{path}: not a file"


OFFLINE = "is not on this machine, and nothing is fetched while offline"
UNRESOLVED = {
    "hf://o/m": "m", "o/m:Q4": "m", "ollama://x:1b": "x", "ms://o/m": "m", "oci://q.io/m": "m", "rlcr://m": "m",
    "https://h/a/m.gguf": "m", "hf://o/r/a/b-Q4.gguf": "b-Q4",
}  # fmt: skip


@pytest.mark.parametrize("text", UNRESOLVED)
def test_what_cannot_be_had_can_be_shown(text: str) -> None:
    alias = UNRESOLVED[text]
    name = f"{alias}.gguf"
    assert find(text) == Model(
        reference=text, alias=alias, why="the name has not been resolved", problem=f"{text}: {OFFLINE}", exit_code=5,
        files=(ModelFile("model", f"/store/ramalama-like/blobs/sha256-of-{name}", name),),
        hint="leave out --offline, and unset HF_HUB_OFFLINE",
    )  # fmt: skip


def test_a_word_that_nobody_knows() -> None:
    name = "sha256-of-nothing-like-it.gguf"
    assert find("nothing-like-it") == Model(
        reference="nothing-like-it", alias="nothing-like-it", why="the name has not been resolved", exit_code=22,
        files=(ModelFile("model", f"/store/ramalama-like/blobs/{name}", name.removeprefix("sha256-of-")),),
        problem="nothing-like-it: no file and no known model has this name",
        hint="write hf://OWNER/REPOSITORY, ollama://NAME or the path of a file; `shortnames` lists short names",
    )  # fmt: skip
    assert find("tinylama").hint == "did you mean tinyllama or tiny?"


def test_a_secret_of_an_address_is_not_shown() -> None:
    model = find("https://user:secret@h/m.gguf?token=secret")
    assert (model.reference, model.problem) == ("https://h/m.gguf", f"https://h/m.gguf: {OFFLINE}")


@settings(max_examples=200)
@given(st.one_of(st.text(), st.binary().map(os.fsdecode), st.text("./~:%hf0").map("file:{}".format)))
def test_any_name_gives_a_model_or_one_error(text: str) -> None:
    try:
        model = find(text)
    except AppError:
        return
    assert os.path.normpath(model.main.path) == model.main.path
    assert model.main.path.startswith("/store/ramalama-like/blobs/sha256-of-")
    assert "/" not in model.main.path.removeprefix("/store/ramalama-like/blobs/")
    assert model.alias


AWKWARD = {
    "with space.gguf": "with_space.gguf", "a,b:c.gguf": "a_b_c.gguf", "it's \"q\".gguf": "it_s__q_.gguf",
    "new\nline\t.gguf": "new_line_.gguf", "back\\slash.gguf": "back_slash.gguf", "\x01.gguf": "_.gguf",
    "日本.gguf": "日本.gguf", "-dash.gguf": "-dash.gguf", "$(x).gguf": "$(x).gguf", "=.gguf": "=.gguf",
}  # fmt: skip


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_are_plain_inside(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(language_model())
    model = find(f"{tmp_path}/{name}")
    assert (model.main.path, model.main.name, model.alias) == (f"{tmp_path}/{name}", AWKWARD[name], name[:-5])


def test_a_file_that_is_nothing_but_an_ending(tmp_path: Path) -> None:
    (tmp_path / ".gguf").write_bytes(language_model())
    assert find(f"{tmp_path}/.gguf").alias == "model"


def test_names_inside_do_not_collide(tmp_path: Path) -> None:
    """Two files whose plain names are the same must not be mounted over each other."""
    (tmp_path / "mmproj ,x.gguf").write_bytes(projector())
    (tmp_path / "mmproj_,x.gguf").write_bytes(language_model())
    model = find(f"{tmp_path}/mmproj_,x.gguf")
    assert [file.name for file in model.files] == ["mmproj__x.gguf", "_mmproj__x.gguf"]


def test_a_prefix_means_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that happens to have a model's name is used for the bare name, but not where a hub was named."""
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "m").write_bytes(language_model())
    monkeypatch.chdir(tmp_path)
    assert find("o/m").main.path == f"{tmp_path}/o/m"
    assert find("hf://o/m").main.path == "/store/ramalama-like/blobs/sha256-of-m.gguf"
    (tmp_path / "o" / "m").unlink()
    (tmp_path / "o" / "m").mkdir()
    assert find("o/m").problem == f"o/m: {OFFLINE}", "a folder is no model"
