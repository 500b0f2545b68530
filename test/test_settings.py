"""Merging and checking: which layer wins, what its origin is, and how every mistake is told."""

from __future__ import annotations

import json
import os
import shlex
import string
import tomllib
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ramalama_like.checks import duration_seconds, split_words
from ramalama_like.cli.parse import parse_argv
from ramalama_like.errors import AppError, NotBuiltYet, UsageError, ValueProblem
from ramalama_like.options import Setting, all_options
from ramalama_like.request import Given, Request
from ramalama_like.settings import (
    LoadedSettings,
    collect_gpu_environment,
    default_store,
    find_program,
    home_dir,
    load_settings,
    no_color,
    runtime_dir,
    terminal_columns,
    terminal_type,
    user_cache_dir,
    variable,
)
from ramalama_like.toml_lines import key_lines


def load(
    line: str = "run m",
    environ: dict[str, str] | None = None,
    conf: str | bytes | None = None,
    folder: str = "/nowhere",
) -> LoadedSettings:
    """Load with nothing but what is given; ``conf`` becomes the only file, ``<folder>/x.conf``."""
    env = {"HOME": "/nowhere", **(environ or {})}
    if conf is not None:
        path = Path(folder) / "x.conf"
        path.write_bytes(conf if isinstance(conf, bytes) else conf.encode())
        env["RAMALAMA_CONFIG"] = str(path)
    return load_settings(parse_argv(shlex.split(line)), env, "/nowhere")


def set_of(loaded: LoadedSettings) -> dict[str, tuple[object, str]]:
    return {name: (s.value, s.origin) for name, s in vars(loaded.settings).items() if not s.is_default}


def test_without_anything_every_default_holds() -> None:
    loaded = load()
    assert set_of(loaded) == {}
    assert {n: s.value for n, s in vars(loaded.settings).items()} == {n: o.default for n, o in all_options().items()}
    assert (loaded.warnings, loaded.files) == ((), ())


# The order of the layers.

LAYERS = ("prefix", "local", "etc", "drop-in a", "drop-in b", "data", "config", "user drop-in", "variable", "flag")


@pytest.mark.parametrize("key", ["port", "runtimes.llama_cpp.threads"])
@given(present=st.sets(st.sampled_from(LAYERS)))
@settings(max_examples=150, deadline=None)
def test_the_strongest_layer_wins(tmp_path_factory: pytest.TempPathFactory, key: str, present: set[str]) -> None:
    import sys

    root = tmp_path_factory.mktemp("root")
    places = {
        "prefix": f"{root}{sys.prefix}/share/ramalama/ramalama.conf",
        "local": f"{root}{sys.prefix}/local/share/ramalama/ramalama.conf",
        "etc": f"{root}/etc/ramalama/ramalama.conf",
        "drop-in a": f"{root}/etc/ramalama/ramalama.conf.d/10-a.conf",
        "drop-in b": f"{root}/etc/ramalama/ramalama.conf.d/20-b.conf",
        "data": f"{root}/data/ramalama/ramalama.conf",
        "config": f"{root}/home/.config/ramalama/ramalama.conf",
        "user drop-in": f"{root}/home/.config/ramalama/ramalama.conf.d/x.conf",
    }
    origins = {"variable": f"$RAMALAMA_{key.upper().replace('.', '__')}", "flag": f"--{key.rpartition('.')[2]}"}
    for layer, path in places.items():
        if layer in present:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(f"# {layer}\n[ramalama]\n{key} = {LAYERS.index(layer) + 1}\n")
            origins[layer] = f"{path}:3"
    env = {"HOME": f"{root}/home", "XDG_DATA_HOME": f"{root}/data"}
    if "variable" in present:
        env[origins["variable"]] = str(LAYERS.index("variable") + 1)
        env = {name.removeprefix("$"): text for name, text in env.items()}
    line = ["run", "m", *([origins["flag"], str(LAYERS.index("flag") + 1)] if "flag" in present else [])]
    loaded = load_settings(parse_argv(line), env, str(root))
    name = key.rpartition(".")[2]
    strongest = max(present, key=LAYERS.index, default="")
    expected = (
        Setting(LAYERS.index(strongest) + 1, origins[strongest]) if strongest else Setting(all_options()[name].default)
    )
    assert getattr(loaded.settings, name) == expected
    assert loaded.files == tuple(path for layer, path in places.items() if layer in present)
    assert loaded.warnings == ()


def test_only_conf_files_count_as_drop_ins(tmp_path: Path) -> None:
    folder = tmp_path / "etc/ramalama/ramalama.conf.d"
    folder.mkdir(parents=True)
    # Enough of them that a folder's own order is never the order of names by chance.
    good = [f"{letter}.conf" for letter in "mcxfaqdz"]
    for name in (*good, ".hidden.conf", "b.conf~", "b.conf.rpmsave"):
        (folder / name).write_text("[ramalama]\n")
    loaded = load_settings(Request("run"), {"HOME": "/nowhere"}, str(tmp_path))
    assert loaded.files == tuple(f"{folder}/{name}" for name in sorted(good))


def test_tables_are_merged_key_by_key_and_lists_are_extended_by_flags(tmp_path: Path) -> None:
    conf = '[ramalama]\nenv = ["A=1"]\n[ramalama.images]\ncuda = "c1"\nrocm = "r1"\n'
    loaded = load("run m --env B=2 --env A=3", {"RAMALAMA_IMAGES": '{"cuda": "c2"}'}, conf, str(tmp_path))
    assert set_of(loaded) == {
        "images": ({"cuda": "c2", "rocm": "r1"}, f"{tmp_path}/x.conf:3, $RAMALAMA_IMAGES"),
        "env": (("A=1", "B=2", "A=3"), f"{tmp_path}/x.conf:2, --env"),
    }
    loaded = load("run m", {"RAMALAMA_ENV": "B=2,, C=3 ,"}, conf, str(tmp_path))
    assert set_of(loaded)["env"] == (("B=2", "C=3"), "$RAMALAMA_ENV")


def test_a_hidden_value_that_is_wrong_is_only_a_warning(tmp_path: Path) -> None:
    loaded = load("run m --port 81", {"RAMALAMA_PORT": "x"}, "[ramalama]\nport = 0\n", str(tmp_path))
    assert set_of(loaded) == {"port": (81, "--port")}
    assert loaded.warnings == (
        f"{tmp_path}/x.conf:2: port: 0 is not between 1 and 65535",
        "$RAMALAMA_PORT: 'x' is not a whole number",
    )


# Variables.


@pytest.mark.parametrize(
    ("environ", "name", "expected"),
    [
        ({"RAMALAMA_PORT": "81"}, "port", (81, "$RAMALAMA_PORT")),
        ({"RAMALAMA_BACKEND": "rocm"}, "backend", ("rocm", "$RAMALAMA_BACKEND")),
        ({"RAMALAMA_ENGINE": "docker"}, "engine", ("docker", "$RAMALAMA_ENGINE")),
        ({"RAMALAMA__ENGINE": "docker"}, "engine", ("docker", "$RAMALAMA__ENGINE")),
        ({"RAMALAMA_CONTAINER_ENGINE": "docker"}, "engine", ("docker", "$RAMALAMA_CONTAINER_ENGINE")),
        (
            {"RAMALAMA_CONTAINER_ENGINE": "docker", "RAMALAMA_ENGINE": "podman"},
            "engine",
            ("docker", "$RAMALAMA_CONTAINER_ENGINE"),
        ),
        ({"RAMALAMA_IN_CONTAINER": "No"}, "container", (False, "$RAMALAMA_IN_CONTAINER")),
        ({"RAMALAMA_SELINUX": "false"}, "selinux", (False, "$RAMALAMA_SELINUX")),
        ({"RAMALAMA_SELINUX": "1"}, "selinux", (True, "$RAMALAMA_SELINUX")),
        ({"RAMALAMA_HOST_FACTS": "~/f"}, "host_facts", ("/nowhere/f", "$RAMALAMA_HOST_FACTS")),
        ({"RAMALAMA_API_KEY": "k"}, "api_key", ("k", "$RAMALAMA_API_KEY")),
        (
            {"RAMALAMA_RUNTIMES__LLAMA_CPP__NGL": "-1"},
            "ngl",
            ("all", "$RAMALAMA_RUNTIMES__LLAMA_CPP__NGL"),
        ),
    ],
)
def test_variables(environ: dict[str, str], name: str, expected: tuple[object, str]) -> None:
    loaded = load("chat", environ)
    assert set_of(loaded) == {name: expected}
    assert loaded.warnings == ()


def test_variables_that_say_nothing() -> None:
    environ = dict.fromkeys(["RAMALAMA_FORCE_EMOJI", "RAMALAMA_LLAMACPP_RPC_NODES", "RAMALAMA_TOOLS_IMAGES"], "x")
    environ |= {"RAMALAMA_USER__NO_MISSING_GPU_PROMPT": "1", "RAMALAMA_PORT": "", "RAMALAMA_NONSENSE": "", "RAMA": "x"}
    assert load("run m", environ) == load("run m")


def test_unknown_variables_are_told() -> None:
    environ = {"RAMALAMA_PROT": "1", "RAMALAMA_NGL": "1", "RAMALAMA_PRIVILEGED": "1", "RAMALAMA_XYZZY": "1"}
    assert load("run m", environ).warnings == (
        "$RAMALAMA_NGL: unknown key ngl; did you mean runtimes.llama_cpp.ngl?",
        "$RAMALAMA_PRIVILEGED: privileged has no effect: only --privileged sets it",
        "$RAMALAMA_PROT: unknown key prot; did you mean port?",
        "$RAMALAMA_XYZZY: unknown key xyzzy",
    )


# Files.


def test_a_file_with_all_of_the_dialect(tmp_path: Path) -> None:
    conf = """\
outside = 1
[ramalama]
port = "8081"     # the dialect's manual quotes it
env = []
host-facts = "x"
container = "off"
store = "models"
transport = "ollama"
log_level = "debug"
privileged = true
[ramalama.runtimes."llama.cpp"]
ngl = -1
temp = 1
spec_typ = "x"
[ramalama.user]
no_missing_gpu_prompt = true
other = 1
[ramalama.benchmarks]
disable = true
[ramalama.tools_images]
any = "thing"
"""
    loaded = load("run m", {}, conf, str(tmp_path))
    file = f"{tmp_path}/x.conf"
    assert set_of(loaded) == {
        "port": (8081, f"{file}:3"),
        "env": ((), f"{file}:4"),
        "container": (False, f"{file}:6"),
        "store": (f"{tmp_path}/models", f"{file}:7"),
        "transport": ("ollama", f"{file}:8"),
        "ngl": ("all", f"{file}:12"),
        "temp": (1.0, f"{file}:13"),
        "benchmarks_disable": (True, f"{file}:19"),
    }
    assert loaded.warnings == (
        f"{file}:1: outside is not in the table [ramalama] and has no effect",
        f"{file}:5: unknown key host-facts; did you mean host_facts?",
        f"{file}:10: privileged has no effect: only --privileged sets it",
        f"{file}:14: unknown key runtimes.llama_cpp.spec_typ; did you mean runtimes.llama_cpp.spec_type?",
        f"{file}:17: unknown key user.other",
    )


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ("[ramalama]\n\nport = 0", ":3: port: 0 is not between 1 and 65535"),
        ("[ramalama]\nport = true", ":2: port: true is not a whole number"),
        ("[ramalama]\nport = 1.5", ":2: port: 1.5 is not a whole number"),
        ("[ramalama]\nport = [1]", ":2: port: a list is not a whole number"),
        ("[ramalama]\nport = {a = 1}", ":2: port: a table is not a whole number"),
        ("[ramalama]\nport = 99999999999999999999999", ":2: port: the number is too large"),
        ("[ramalama]\nimage = 5", ":2: image: not text: put it in quotes"),
        ("[ramalama]\napi_key = 12345", ":2: api_key: not text: put it in quotes"),
        ('[ramalama]\nimage = "a\\u0000b"', ":2: image: a NUL byte cannot be passed on to any program"),
        ("[ramalama]\nselinux = 1", ":2: selinux: 1 is neither on nor off"),
        ('[ramalama]\nkeep_groups = "maybe"', ":2: keep_groups: 'maybe' is neither on nor off"),
        ('[ramalama]\nenv = "A=1"', ":2: env: 'A=1' is not a list"),
        ("[ramalama]\nenv = [1]", ":2: env: not text: put it in quotes"),
        ("[ramalama]\nimages = 1", ":2: images: 1 is not a table"),
        ("[ramalama.images]\ncuda = 1", ":1: images: not text: put it in quotes"),
        ('[ramalama]\nstore = ""', ":2: store: the path is empty"),
        ("[ramalama]\nruntimes = 1", ":2: runtimes: 1 is not a table"),
        ("[ramalama.runtimes.llama_cpp]\ntemp = nan", ":2: runtimes.llama_cpp.temp: nan is not a finite number"),
        ("[ramalama.runtimes.llama_cpp]\nngl = true", ":2: runtimes.llama_cpp.ngl: true is not a whole number"),
        ("ramalama = 1", ":1: ramalama is not a table"),
        ("[ramalama]\nport = ", ":2: invalid value"),
        ("[ramalama]\nport = 1\nport = 2", ":3: cannot overwrite a value"),
        ("[ramalama]\nimage = '''\n\n", ":2: expected \"'''\""),
        (b"[ramalama]\n# \xe4\n", ":2: not UTF-8 text"),
        ("[ramalama]\nport = 1".encode("utf-16"), ":1: not UTF-8 text"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, conf: str | bytes, message: str) -> None:
    with pytest.raises(ValueProblem) as caught:
        load("run m", {}, conf, str(tmp_path))
    assert (caught.value.message, caught.value.exit_code) == (f"{tmp_path}/x.conf{message}", 22)


def test_a_byte_order_mark_and_windows_lines_are_understood(tmp_path: Path) -> None:
    loaded = load("run m", {}, b"\xef\xbb\xbf[ramalama]\r\n\r\nport = 81\r\n", str(tmp_path))
    assert set_of(loaded) == {"port": (81, f"{tmp_path}/x.conf:3")}


def test_the_variable_that_names_the_only_file(tmp_path: Path) -> None:
    (tmp_path / "etc/ramalama").mkdir(parents=True)
    (tmp_path / "etc/ramalama/ramalama.conf").write_text("[ramalama]\nport = 81\n")
    (tmp_path / "my.conf").write_text("[ramalama]\nctx_size = 5\n")
    env = {"HOME": str(tmp_path), "RAMALAMA_CONFIG": "~/my.conf"}
    loaded = load_settings(Request("run"), env, str(tmp_path))
    assert set_of(loaded) == {"ctx_size": (5, f"{tmp_path}/my.conf:2")}
    assert loaded.files == (f"{tmp_path}/my.conf",)
    assert load_settings(Request("run"), env | {"RAMALAMA_CONFIG": "/dev/null"}, str(tmp_path)).files == ("/dev/null",)
    with pytest.raises(ValueProblem) as caught:
        load_settings(Request("run"), env | {"RAMALAMA_CONFIG": "/nowhere/x"}, str(tmp_path))
    assert caught.value.message == "$RAMALAMA_CONFIG: '/nowhere/x' does not exist"
    with pytest.raises(ValueProblem) as caught:
        load_settings(Request("run"), env | {"RAMALAMA_CONFIG": str(tmp_path)}, str(tmp_path))
    assert caught.value.message == f"{tmp_path} is a folder, not a configuration file"


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A mode is no obstacle to root, as whom these tests may run: so the refusal itself is played.
    (tmp_path / "x.conf").write_text("[ramalama]\n")

    def refuse(path: str, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.open", refuse)
    env = {"HOME": "/nowhere", "RAMALAMA_CONFIG": f"{tmp_path}/x.conf"}
    with pytest.raises(AppError) as caught:
        load_settings(Request("run"), env, str(tmp_path))
    assert (caught.value.message, caught.value.exit_code) == (f"{tmp_path}/x.conf: permission denied", 5)
    assert "RAMALAMA_CONFIG" in caught.value.hint
    # A home that may not even be searched holds no file of ours.
    assert load_settings(Request("run"), {"HOME": "/nowhere"}, str(tmp_path)).files == ()


# Values of flags.


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        ("run m --port 65535", "port", 65535),
        ("run m --port +81", "port", 81),
        ("run m --temp 1e-1", "temp", 0.1),
        ("run m --ngl -1", "ngl", "all"),
        ("run m --ngl all", "ngl", "all"),
        ("run m --ngl auto", "ngl", "auto"),
        ("run m --ngl 007", "ngl", "7"),
        ("run m --thinking OFF", "thinking", False),
        ("run m --keepalive 5m", "keepalive", "5m"),
        ("run m --dryrun", "dryrun", "text"),
        ("run m --dryrun=json", "dryrun", "json"),
        ("run m --store /a/../b", "store", "/b"),
        ("run m --store ~/x", "store", f"{os.getcwd()}/~/x"),
        ("run m --runtime-args '--a \"b c\"' --runtime-args=-d", "runtime_args", ("--a", "b c", "-d")),
        ("run m --device '' --device none", "device", ("", "none")),
        ("run m --image ''", "image", ""),
    ],
)
def test_values(line: str, name: str, expected: object) -> None:
    found = set_of(load(line))
    assert found == {name: (expected, f"--{name.replace('_', '-')}")}
    assert type(found[name][0]) is type(expected)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--port 0", "--port: 0 is not between 1 and 65535"),
        ("-p 65536", "-p: 65536 is not between 1 and 65535"),
        ("--port 8_1", "--port: '8_1' is not a whole number"),
        ("--port ' 81'", "--port: ' 81' is not a whole number"),
        ("--port ٨", "--port: '٨' is not a whole number"),
        ("--port ''", "--port: '' is not a whole number"),
        (f"--ctx-size {'9' * 5000}", "--ctx-size: the number is too large"),
        ("--ctx-size -1", "--ctx-size: -1 is less than 0"),
        ("--temp -0.5", "--temp: -0.5 is less than 0"),
        ("--temp inf", "--temp: 'inf' is not a finite number"),
        ("--temp 1e999", "--temp: '1e999' is not a finite number"),
        ("--temp 1_0", "--temp: '1_0' is not a number"),
        ("--temp warm", "--temp: 'warm' is not a number"),
        ("--spec-draft-p-min 1.5", "--spec-draft-p-min: 1.5 is not between 0 and 1"),
        ("--ngl -2", "--ngl: -2 is less than -1"),
        ("--ngl most", "--ngl: 'most' is neither a number nor all nor auto"),
        ("--ngl ²", "--ngl: '²' is neither a number nor all nor auto"),
        ("--selinux perhaps", "--selinux: 'perhaps' is neither on nor off"),
        ("--pull newest", "--pull: 'newest' is not one of newer, never, always, missing"),
        ("--dryrun=xml", "--dryrun: 'xml' is not one of text, json"),
        ("--keepalive 5y", "--keepalive: '5y' is not a duration such as 30, 90s, 5m, 1h, 2d or 1w"),
        ("--keepalive m", "--keepalive: 'm' is not a duration such as 30, 90s, 5m, 1h, 2d or 1w"),
        ("--store ''", "--store: the path is empty"),
        ("--runtime-args '\"a'", "--runtime-args: a quotation is not closed in '\"a'"),
        ("--runtime-args 'a\\'", "--runtime-args: a backslash at the end of 'a\\\\' escapes nothing"),
        ("--name 'a\nb' --pull 'a\nb'", "--pull: 'a\\nb' is not one of always, missing, never, newer"),
    ],
)
def test_values_that_are_refused(line: str, message: str) -> None:
    with pytest.raises(ValueProblem) as caught:
        load(f"run m {line}")
    assert (caught.value.message, caught.value.exit_code) == (message, 22)


@given(st.integers(-(2**70), 2**70))
def test_every_origin_is_judged_alike(number: int) -> None:
    outcomes = set()
    for given_as in (Given(str(number), "x"), Given(number, "x")):
        try:
            outcomes.add(load_settings(Request("run", ("m",), {"port": given_as}), {"HOME": "/n"}, "/n").settings.port)
        except ValueProblem as problem:
            outcomes.add(problem.message)
    assert len(outcomes) == 1


def test_what_is_not_built_yet() -> None:
    for line, message in {
        "run m --rag x": "--rag: RAG is not supported yet",
        "serve m --generate kube": "--generate: deployment files are not generated yet",
        "run m --api llama-stack": "--api: API llama-stack comes in a later version",
        "--runtime vllm serve m": "--runtime: runtime vllm comes in a later version",
        "ps --runtime mlx": "--runtime: runtime mlx comes in a later version",
    }.items():
        with pytest.raises(NotBuiltYet) as caught:
            load(line)
        assert (caught.value.message, caught.value.exit_code) == (message, 38)
    with pytest.raises(NotBuiltYet):
        load("bench m", {"RAMALAMA_RUNTIME": "vllm"})
    assert load("ps", {"RAMALAMA_RUNTIME": "vllm", "RAMALAMA_API": "llama-stack"}).warnings == ()
    environ = {"RAMALAMA_DEFAULT_RAG_IMAGE": "x"}
    assert load("ps", environ).warnings == ()
    assert load("serve m", environ).warnings == (
        "$RAMALAMA_DEFAULT_RAG_IMAGE: default_rag_image has no effect: RAG is not supported yet",
    )


def test_quiet_and_debug_exclude_each_other() -> None:
    with pytest.raises(UsageError):
        load("-q run m --debug")


def test_a_table_in_a_variable_must_be_json() -> None:
    for text in ("x", "[" * 100_000):
        with pytest.raises(ValueProblem) as caught:
            load("run m", {"RAMALAMA_IMAGES": text})
        assert caught.value.message == '$RAMALAMA_IMAGES: the value is not JSON such as {"cuda": "IMAGE"}'


# Splitting words as a shell does.


@given(st.text(alphabet="ab'\"\\ \t\n#$é\x0b"))
@example("a\\\nb")
def test_words_are_split_as_shlex_does(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(ValueProblem):
            split_words(text)
    else:
        assert split_words(text) == expected


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_quoted_words_come_back(words: list[str]) -> None:
    assert split_words(shlex.join(words)) == words


def test_durations() -> None:
    lengths = {"": 0, "30": 30, "90s": 90, "5m": 300, "1h": 3600, "2d": 172_800, "1w": 604_800}
    assert {text: duration_seconds(text) for text in lengths} == lengths


# Lines of keys: a random document is written in a random style, and the lines are noted while it is written.

KEYS = st.one_of(
    st.text(alphabet=string.ascii_letters + string.digits + "-_", min_size=1, max_size=5),
    st.text(alphabet="a.# '\"\\=[]{}é\n", max_size=4),
)
TEXTS = st.text(alphabet="a#\"'\\\n[]{}=, é", max_size=8)
LEAVES = st.one_of(st.integers(-9, 9), st.booleans(), TEXTS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


class Writer:
    """Writes a document in a style that ``draw`` chooses."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.text = ""
        self.lines: dict[tuple[str | int, ...], int] = {}

    def put(self, text: str) -> None:
        self.text += text

    def note(self, *path: str | int) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)

    def gap(self, *, newlines: bool) -> None:
        self.put(self.draw(st.sampled_from(["", " ", "\t", "\n", " # ]}'\"\n\n"] if newlines else ["", " ", "\t"])))

    def key(self, key: str) -> None:
        bare = bool(key) and all(c in string.ascii_letters + string.digits + "-_" for c in key)
        styles = ["basic", *(["bare"] if bare else []), *([] if "'" in key or "\n" in key else ["literal"])]
        style = self.draw(st.sampled_from(styles))
        self.put({"bare": key, "literal": f"'{key}'", "basic": json.dumps(key)}[style])

    def dotted(self, path: tuple[str | int, ...], keys: tuple[str, ...]) -> None:
        for place, key in enumerate(keys):
            self.gap(newlines=False)
            self.note(*path, *keys[: place + 1])
            self.key(key)
            self.gap(newlines=False)
            if place + 1 < len(keys):
                self.put(".")

    def value(self, path: tuple[str | int, ...], value: object) -> None:
        if isinstance(value, bool):
            self.put(str(value).lower())
        elif isinstance(value, int):
            self.put(str(value))
        elif isinstance(value, str):
            self.string(value)
        elif isinstance(value, list):
            self.put("[")
            for index, member in enumerate(value):
                self.gap(newlines=True)
                self.note(*path, index)
                self.value((*path, index), member)
                self.gap(newlines=True)
                self.put("," if index + 1 < len(value) or self.draw(st.booleans()) else "")
            self.gap(newlines=True)
            self.put("]")
        else:
            assert isinstance(value, dict)
            self.put("{")
            for place, (key, member) in enumerate(value.items()):
                self.put(", " if place else "")
                self.pair(path, key, member, dots=True)
            self.put("}")

    def pair(self, path: tuple[str | int, ...], key: str, value: object, *, dots: bool) -> None:
        keys: tuple[str, ...] = (key,)
        while dots and isinstance(value, dict) and len(value) == 1 and self.draw(st.booleans()):
            [(inner, value)] = value.items()
            keys = (*keys, inner)
        self.dotted(path, keys)
        self.put("=")
        self.gap(newlines=False)
        self.value((*path, *keys), value)

    def string(self, text: str) -> None:
        styles = ["basic", "long"]
        if "'" not in text:
            styles += ["long literal", *([] if "\n" in text else ["literal"])]
        style = self.draw(st.sampled_from(styles))
        if style == "basic":
            self.put(json.dumps(text))
        elif style == "long":
            escaped = text.replace("\\", "\\\\").replace('"""', '""\\"')
            # One or two quotes may stand before the closing three.
            self.put('"""\n' + escaped + '"""')
        else:
            self.put(f"'''\n{text}'''" if style == "long literal" else f"'{text}'")

    def table(self, path: tuple[str | int, ...], header: tuple[str, ...], members: dict[str, object]) -> None:
        later: list[tuple[str, object, bool]] = []
        for key, member in members.items():
            as_array = isinstance(member, list) and member != [] and all(isinstance(m, dict) for m in member)
            if (isinstance(member, dict) or as_array) and self.draw(st.booleans()):
                later.append((key, member, as_array))
                continue
            self.gap(newlines=True)
            self.pair(path, key, member, dots=False)
            self.put(self.draw(st.sampled_from(["\n", " # '''\n", "\r\n"])))
        for key, member, as_array in later:
            tables = member if as_array else [member]
            assert isinstance(tables, list)
            for index, table in enumerate(tables):
                self.gap(newlines=True)
                self.header(path, (*header, key), (index,) if as_array else ())
                inner = (*path, key, index) if as_array else (*path, key)
                self.table(inner, (*header, key), table)

    def header(self, path: tuple[str | int, ...], header: tuple[str, ...], index: tuple[int, ...]) -> None:
        self.put("[[" if index else "[")
        self.note(*path, header[-1])
        if index:
            self.note(*path, header[-1], *index)
        for place, key in enumerate(header):
            self.put("." if place else "")
            self.key(key)
        self.put("]]\n" if index else "]\n")


def paths_of(value: object, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {inner for key, member in members for inner in ((*path, key), *paths_of(member, (*path, key)))}


@given(st.data(), st.dictionaries(KEYS, VALUES, max_size=4))
@settings(max_examples=600, deadline=None)
def test_lines_of_keys(data: st.DataObject, document: dict[str, object]) -> None:
    writer = Writer(data.draw)
    writer.table((), (), document)
    parsed = tomllib.loads(writer.text)
    assume(parsed == document)
    lines = key_lines(writer.text)
    assert set(lines) == paths_of(parsed)
    assert lines == writer.lines


def test_lines_of_hard_strings() -> None:
    text = 'a = """x""\\""""""\nb = "\\"#\\\\"\nc = \'\'\'\'\'\'\'\'\nd = 1979-05-27 07:32:00\n'
    text += '"e".f = [ # ]\n{ g = 1 } ]\n'
    assert tomllib.loads(text)["c"] == "''"
    assert key_lines(text) == {
        ("a",): 1, ("b",): 2, ("c",): 3, ("d",): 4, ("e",): 5, ("e", "f"): 5, ("e", "f", 0): 6, ("e", "f", 0, "g"): 6
    }  # fmt: skip


# The environment for the rest of the program.


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = os.getuid()
    assert user_cache_dir({"HOME": "/h"}) == "/h/.cache/ramalama-like"
    assert user_cache_dir({"HOME": "/h", "XDG_CACHE_HOME": "/c"}) == "/c/ramalama-like"
    assert user_cache_dir({"HOME": "/h", "XDG_CACHE_HOME": "relative"}) == "/h/.cache/ramalama-like"
    assert runtime_dir({"XDG_RUNTIME_DIR": str(tmp_path)}) == f"{tmp_path}/ramalama-like"
    monkeypatch.setattr("os.path.isdir", lambda path: path == f"/run/user/{uid}")
    assert runtime_dir({"XDG_RUNTIME_DIR": str(tmp_path)}) == f"/run/user/{uid}/ramalama-like"
    monkeypatch.setattr("os.path.isdir", lambda _path: False)
    assert runtime_dir({"XDG_RUNTIME_DIR": str(tmp_path)}) == f"/tmp/ramalama-like-{uid}"
    assert runtime_dir({"TMPDIR": "/t"}) == f"/t/ramalama-like-{uid}"
    monkeypatch.setattr("os.getuid", lambda: 1000)
    assert default_store({"HOME": "/h"}) == "/h/.local/share/ramalama"
    assert default_store({"HOME": "/h", "XDG_DATA_HOME": "/d"}) == "/d/ramalama"
    monkeypatch.setattr("os.getuid", lambda: 0)
    assert default_store({"HOME": "/h"}) == "/var/lib/ramalama"
    assert home_dir({}) == "/root"


def test_small_questions(tmp_path: Path) -> None:
    assert collect_gpu_environment(["B", "A", "C"], {"A": "1", "B": "2", "C": "", "D": "3"}) == {"B": "2", "A": "1"}
    assert [no_color(e) for e in ({}, {"NO_COLOR": ""}, {"NO_COLOR": "0"}, {"TERM": "dumb"})] == [
        False,
        False,
        True,
        True,
    ]
    assert [terminal_columns({"COLUMNS": text}) for text in ("", "80", "-1", "x", "9999999")] == [0, 80, 0, 0, 0]
    assert (terminal_type({"TERM": "xterm"}), variable("X", {"X": "y"}), variable("X", {})) == ("xterm", "y", "")
    program = tmp_path / "b" / "tool"
    for path, mode in ((tmp_path / "a" / "tool", 0o644), (program, 0o755)):
        path.parent.mkdir()
        path.write_text("")
        path.chmod(mode)
    (tmp_path / "c" / "tool").mkdir(parents=True)
    search = {"PATH": f"{tmp_path}/c:{tmp_path}/a:{tmp_path}/b"}
    assert find_program("tool", search) == str(program)
    assert find_program("none", search) == ""
    assert find_program(str(program), {}) == str(program)


def test_the_variable_asks_for_a_dry_run_too() -> None:
    """Somebody who sets it does not expect anything to be executed."""
    for text, form in (("1", "text"), ("json", "json"), ("false", "")):
        merged = load_settings(Request("run", ("m",)), {"HOME": "/n", "RAMALAMA_DRYRUN": text}, "/n").settings
        assert merged.dryrun == Setting(form, "$RAMALAMA_DRYRUN")
