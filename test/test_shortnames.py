"""Short names: which file counts, what a line may look like, and what stands for what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Result, error_text, run_cli
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like import settings
from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.models.shortnames import OWN, Shortname, Shortnames, parse_shortnames, read_shortnames
from ramalama_like.reference import canonical_name, parse_reference

SHAPE = 'is no line like "name" = "hf://owner/repository"'
TEXT = """\
# a comment
; another
"outside" = "x"
[shortnames]
  "quoted" = "hf://o/quoted"
'single' = 'hf://o/single'
plain:1b = hf://o/plain  # why
"Case" = "hf://o/upper"
"case" = "hf://o/lower"
"percent" = "hf://o/m/a%20b.gguf"
"colon:7b"="ollama://x:7b" ; why
"twice" = "first"
"twice" = "second"
"hash" = "a#b"

nothing
"open = "x"
"" = "x"
"empty" = ""
"more" = "x" y
[other]
"elsewhere" = "x"
[shortnames]
"again" = "hf://o/again"
"""


def test_the_lines_of_a_file() -> None:
    warnings: list[str] = []
    assert parse_shortnames(TEXT, "f", warnings) == {
        "quoted": "hf://o/quoted", "single": "hf://o/single", "plain:1b": "hf://o/plain", "Case": "hf://o/upper",
        "case": "hf://o/lower", "percent": "hf://o/m/a%20b.gguf", "colon:7b": "ollama://x:7b", "twice": "second",
        "hash": "a#b", "again": "hf://o/again",
    }  # fmt: skip
    assert warnings == [f"f:{number}: {SHAPE}" for number in (16, 17, 18, 19, 20)]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    found = parse_shortnames(f"[shortnames]\n{text}", "f", [])
    assert all(found) and all(found.values())


@given(st.dictionaries(st.text("aB:./-1 ", min_size=1).filter(str.strip), st.text("aB:./-%#;= ", min_size=1)))
def test_what_is_written_in_quotes_is_read(names: dict[str, str]) -> None:
    text = "".join(f'"{name}" = "{target}"\n' for name, target in names.items())
    warnings: list[str] = []
    assert (parse_shortnames(f"[shortnames]\n{text}", "f", warnings), warnings) == (names, [])


def test_the_stronger_file_counts(tmp_path: Path) -> None:
    (tmp_path / "user").write_text('[shortnames]\n"a" = "user"\n"tiny" = "user"\n')
    (tmp_path / "system").write_text('[shortnames]\n"a" = "system"\n"b" = "system"\n')
    paths = [f"{tmp_path}/{name}" for name in ("nothing", "user", "system")]
    found = read_shortnames(paths)
    assert (found.files, found.warnings) == (tuple(paths[1:]), ())
    assert [found.names[name] for name in ("a", "b", "tiny", "tinyllama")] == [
        Shortname("a", "user", paths[1]), Shortname("b", "system", paths[2]), Shortname("tiny", "user", paths[1]),
        Shortname("tinyllama", load_table("shortnames")["names"]["tinyllama"], OWN),
    ]  # fmt: skip


def test_a_file_that_cannot_be_used_is_only_warned_about(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"[shortnames]\n\xff\n")
    found = read_shortnames([f"{tmp_path}/folder", f"{tmp_path}/bytes"])
    assert found.warnings == (f"{tmp_path}/folder is a folder, not a configuration file",
                              f"{tmp_path}/bytes:2: not UTF-8 text")  # fmt: skip
    assert "tiny" in found.names


def test_the_user_s_files_beat_the_system_s(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = f"{world}/home"
    found = settings.shortname_files({"HOME": home}, "/root")
    assert found[:5] == [f"{folder}/ramalama/shortnames.conf" for folder in (
        f"{home}/.config", f"{home}/.local/share", "/root/etc", "/root/usr/local/share", "/root/usr/share",
    )]  # fmt: skip
    assert settings.shortname_files({"HOME": home, "XDG_CONFIG_HOME": "/c"}, "")[0] == "/c/ramalama/shortnames.conf"
    assert settings.shortname_files({"HOME": home, "RAMALAMA_CONFIG": "/only.conf"}, "") == []
    monkeypatch.chdir(world)
    (world / "shortnames.conf").write_text('[shortnames]\n"mine" = "hf://o/m"\n')
    assert "mine" not in run_cli("shortnames").out, "nobody's current folder is trusted"


# Standing for something.


def known(**names: str) -> Shortnames:
    return Shortnames({name: Shortname(name, target, "file") for name, target in names.items()})


def test_a_short_name_may_stand_for_another() -> None:
    names = known(a="b", b="c", c="hf://o/m", d="a")
    assert [names.expand(name) for name in ("a", "b", "c", "d", "e", "A")] == [*(["hf://o/m"] * 4), "e", "A"]


@pytest.mark.parametrize(("names", "chain"), [
    ({"a": "a"}, "a → a"), ({"a": "b", "b": "a"}, "a → b → a"), ({"a": "b", "b": "c", "c": "b"}, "a → b → c → b"),
])  # fmt: skip
def test_circles_are_refused(names: dict[str, str], chain: str) -> None:
    with pytest.raises(ValueProblem) as caught:
        known(**names).expand("a")
    assert caught.value.message == f"a: this short name leads round in circles: {chain}"
    assert caught.value.hint == "change file"


def test_models_have_the_first_of_their_names() -> None:
    names = known(b="hf://o/m", a="huggingface://o/m", c="c", d="hf://o/m:q4", bad="hf://x")
    assert names.by_model() == {"hf://o/m": "a", "hf://o/m:Q4": "d"}


# Those that come with the program.

SHIPPED = load_table("shortnames")["names"]


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_can_be_used(name: str) -> None:
    reference = parse_reference(SHIPPED[name])
    assert canonical_name(reference) == SHIPPED[name], "written as it is shown"
    assert reference.transport == "huggingface"
    assert parse_reference(name).transport == "name", "or it could not be asked for"


def test_what_is_shipped_is_sorted_by_family() -> None:
    families = [name.partition(":")[0] for name in SHIPPED]
    assert families == sorted(families)


# The command.


def test_the_command(world: Path) -> None:
    path = world / "home/.config/ramalama/shortnames.conf"
    path.parent.mkdir(parents=True)
    path.write_text('[shortnames]\n"aaa" = "hf://o/m"\nwrong\n')
    warning = f"Warning: {path}:3: {SHAPE}\n"
    table = run_cli("shortnames")
    assert (table.code, table.err) == (0, warning)
    lines = [line.split() for line in table.out.splitlines()]
    assert lines[:2] == [["NAME", "TARGET", "FILE"], ["aaa", "hf://o/m", str(path)]]
    assert lines[2] == ["deepseek-r1", SHIPPED["deepseek-r1"], "built", "in"]
    assert len(lines) == 2 + len(SHIPPED)
    document = run_cli("shortnames", "--json")
    assert document.err == warning
    assert json.loads(document.out)[0] == {"name": "aaa", "target": "hf://o/m", "file": str(path)}
    assert run_cli("-q", "shortnames").out.split() == ["aaa", *sorted(SHIPPED)]
    assert run_cli("info", "--shortnames").out.splitlines()[0] == f"aaa=hf://o/m ({path})"


def test_a_circle_is_told_where_it_is_used(world: Path) -> None:
    path = world / "home/.config/ramalama/shortnames.conf"
    path.parent.mkdir(parents=True)
    path.write_text('[shortnames]\n"aaa" = "bbb"\n"bbb" = "aaa"\n')
    for line in (["pull", "aaa"], ["--dryrun", "serve", "aaa"]):
        assert run_cli(*line) == Result(22, "", error_text(
            "aaa: this short name leads round in circles: aaa → bbb → aaa", f"change {path}"
        ))  # fmt: skip
