"""``config show``: what it prints can be saved, read again, and means the same."""

from __future__ import annotations

import json
import tempfile
import tomllib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ramalama_like.cli.config import show_config
from ramalama_like.errors import ValueProblem
from ramalama_like.options import Option, all_options
from ramalama_like.request import Given, Request
from ramalama_like.settings import LoadedSettings, load_settings

KEYED = {name: option for name, option in all_options().items() if option.key and name != "api_key"}
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def values_of(option: Option) -> st.SearchStrategy[object]:
    if option.choices:
        return st.sampled_from(option.choices)
    low, high = option.minimum, option.maximum
    return {
        "str": TEXT,
        "int": st.integers(int(low or 0), int(high or 2**63 - 1)),
        "float": st.floats(low or 0, high or 1e300),
        "bool": st.booleans(),
        "flag": st.booleans(),
        "list": st.lists(TEXT),
        "table": st.dictionaries(TEXT, TEXT),
        "size": st.integers(int(low or 0), 2**63 - 1),
        "layers": st.sampled_from(["all", "auto", "-1", "0", "7"]),
        "path": TEXT.filter(bool),
    }[option.kind]


GIVENS = st.fixed_dictionaries({}, optional={name: values_of(option) for name, option in KEYED.items()})


def values(loaded: LoadedSettings) -> dict[str, object]:
    return {name: getattr(loaded.settings, name).value for name in KEYED}


def load(given_values: dict[str, object], environ: dict[str, str] | None = None) -> LoadedSettings:
    request = Request("config show", (), {name: Given(v, f"--{name}") for name, v in given_values.items()})
    return load_settings(request, {"HOME": "/nowhere", **(environ or {})}, "/nowhere")


@given(GIVENS, st.booleans())
@settings(max_examples=300, deadline=None)
def test_what_is_shown_can_be_saved_and_read(chosen: dict[str, object], origin: bool) -> None:
    # What is not built yet is refused when a flag asks for it.
    chosen = {name: v for name, v in chosen.items() if not KEYED[name].not_yet and (name, v) != ("runtime", "vllm")}
    chosen = {name: v for name, v in chosen.items() if (name, v) != ("runtime", "mlx")}
    loaded = load(chosen)
    text = show_config(loaded, origin=origin)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ramalama.conf"
        path.write_text(text, encoding="utf-8", newline="")
        again = load({}, {"RAMALAMA_CONFIG": str(path)})
    assert values(again) == values(loaded)
    assert again.warnings == ()
    # A saved copy sets what was set, and leaves alone what was not.
    assert {n for n in KEYED if not getattr(again.settings, n).is_default} == {
        n for n in KEYED if not getattr(loaded.settings, n).is_default
    }


def test_the_exact_text() -> None:
    environ = {"RAMALAMA_API_KEY": "topsecret", "RAMALAMA_IMAGES": '{"a b": "c"}', "RAMALAMA_ENV": 'A="1"'}
    lines = show_config(load({"engine": "docker", "temp": "0.5"}, environ), origin=True).splitlines()
    assert lines[:3] == [
        "[ramalama]",
        'engine = "docker"  # --engine',
        "# container = true  # default",
    ]
    for line in (
        "# api_key is set, and not shown  # $RAMALAMA_API_KEY",
        'env = ["A=\\"1\\""]  # $RAMALAMA_ENV',
        "# port = 8080  # default",
        "# image is not set  # default",
        "[ramalama.runtimes.llama_cpp]",
        "temp = 0.5  # --temp",
    ):
        assert line in lines
    start = lines.index("[ramalama.images]")
    assert lines[start : start + 3] == ["[ramalama.images]", "# $RAMALAMA_IMAGES", '"a b" = "c"']
    start = lines.index("[ramalama.benchmarks]")
    assert lines[start + 1 : start + 3] == ["# disable = false  # default", "# storage_folder is not set  # default"]
    assert "# api_key is not set\n" in show_config(load({}))


def test_every_key_is_shown() -> None:
    text = show_config(load({}))
    commented = "\n".join(line.removeprefix("# ") for line in text.splitlines() if " is not " not in line)
    shown = tomllib.loads(commented)["ramalama"]
    flat = {k: v for k, v in shown.items() if k not in ("runtimes", "benchmarks")}
    flat |= {f"benchmarks.{k}": v for k, v in shown["benchmarks"].items()}
    flat |= {f"runtimes.llama_cpp.{k}": v for k, v in shown["runtimes"]["llama_cpp"].items()}
    expected = {o.key: o.default for o in KEYED.values() if o.default not in (None, "", {})}
    assert flat == {key: list(v) if isinstance(v, tuple) else v for key, v in expected.items()}
    for option in all_options().values():
        assert not option.key or f"# {option.key.rpartition('.')[2]} " in text


def test_as_json() -> None:
    loaded = load({"port": "81"}, {"RAMALAMA_API_KEY": "topsecret", "RAMALAMA_X": "1"})
    shown = json.loads(show_config(loaded, json=True))
    assert shown["settings"]["port"] == {"value": 81, "origin": "--port"}
    assert shown["settings"]["api_key"] == {"value": None, "origin": "$RAMALAMA_API_KEY"}
    assert shown["settings"]["runtimes.llama_cpp.temp"] == {"value": 0.8, "origin": "default"}
    assert (shown["files"], shown["warnings"]) == ([], ["$RAMALAMA_X: unknown key x"])


@given(st.text(min_size=1), st.booleans(), st.booleans())
def test_the_key_is_never_shown(tail: str, origin: bool, as_json: bool) -> None:
    try:
        loaded = load({"api_key": f"topsecret{tail}"})
    except ValueProblem as problem:
        assert "topsecret" not in problem.message
    else:
        assert "topsecret" not in show_config(loaded, origin=origin, json=as_json)


def test_bytes_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    loaded = load({"host": "a\udcff"})
    text = show_config(loaded, origin=True)
    assert "# host cannot be written as TOML: 'a\\udcff'  # --host\n" in text
    tomllib.loads(text)


def test_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("[ramalama]\nport = 81\n")
    loaded = load({}, {"RAMALAMA_CONFIG": f"{tmp_path}/x.conf"})
    assert show_config(loaded).startswith(f"# read: {tmp_path}/x.conf\n\n[ramalama]\n")
    assert f"port = 81  # {tmp_path}/x.conf:2\n" in show_config(loaded, origin=True)
