"""The fast parser: exact results, exact refusals, and agreement with click on anything that people might type."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ramalama_like.cli.help import parse_with_typer
from ramalama_like.cli.parse import parse_argv
from ramalama_like.errors import NotBuiltYet, UsageError
from ramalama_like.familiar import HINTS
from ramalama_like.options import COMMANDS, COMMANDS_NOT_YET, global_options, options_of
from ramalama_like.request import Given, Request

ROOT = Path(__file__).resolve().parents[1]

EXACT: dict[str, Request] = {
    "": Request("help"),
    "--help": Request("help"),
    "-h run": Request("help"),
    "--version": Request("version"),
    "-v": Request("version"),
    "-q --version": Request("version", (), {"quiet": Given(True, "-q")}),
    "help": Request("help"),
    "help run": Request("help", ("run",)),
    "help benchmark": Request("help", ("bench",)),
    "help config": Request("help", ("config",)),
    "help config show": Request("help", ("config show",)),
    "config --help": Request("help", ("config",)),
    "config show -h": Request("help", ("config show",)),
    "run --help": Request("help", ("run",)),
    "run --name x -h m": Request("help", ("run",)),
    "run m -- -h": Request("run", ("m", "-h")),
    "run --name --help m": Request("run", ("m",), {"name": Given("--help", "--name")}),
    "run m": Request("run", ("m",)),
    "run m tell me --temp 0 more": Request("run", ("m", "tell", "me", "more"), {"temp": Given("0", "--temp")}),
    "run m a -- --temp 0": Request("run", ("m", "a", "--temp", "0")),
    "run m -": Request("run", ("m", "-")),
    "-- run m": Request("run", ("m",)),
    "serve -dn x m": Request("serve", ("m",), {"detach": Given(True, "-d"), "name": Given("x", "-n")}),
    "serve -dnx m": Request("serve", ("m",), {"detach": Given(True, "-d"), "name": Given("x", "-n")}),
    "run -c5 m": Request("run", ("m",), {"ctx_size": Given("5", "-c")}),
    "run -c 5 m": Request("run", ("m",), {"ctx_size": Given("5", "-c")}),
    "run --ctx-size=5 m": Request("run", ("m",), {"ctx_size": Given("5", "--ctx-size")}),
    "run --ctx-size= m": Request("run", ("m",), {"ctx_size": Given("", "--ctx-size")}),
    "run --prefix=a=b m": Request("run", ("m",), {"prefix": Given("a=b", "--prefix")}),
    "run -c 1 --ctx-size 2 m": Request("run", ("m",), {"ctx_size": Given("2", "--ctx-size")}),
    "run --ngl -1 m": Request("run", ("m",), {"ngl": Given("-1", "--ngl")}),
    "run --runtime-args --foo m": Request("run", ("m",), {"runtime_args": Given(("--foo",), "--runtime-args")}),
    "run --name -- m": Request("run", ("m",), {"name": Given("--", "--name")}),
    "run --env A=1 m --env B=2": Request("run", ("m",), {"env": Given(("A=1", "B=2"), "--env")}),
    "run --nocontainer m": Request("run", ("m",), {"container": Given(False, "--nocontainer")}),
    "run --nocontainer --container m": Request("run", ("m",), {"container": Given(True, "--container")}),
    "run --dryrun m": Request("run", ("m",), {"dryrun": Given("text", "--dryrun")}),
    "run --dry-run json m": Request("run", ("json", "m"), {"dryrun": Given("text", "--dry-run")}),
    "--dryrun=json run m": Request("run", ("m",), {"dryrun": Given("json", "--dryrun")}),
    "--dryrun run m --dryrun=json": Request("run", ("m",), {"dryrun": Given("json", "--dryrun")}),
    "--debug run m": Request("run", ("m",), {"debug": Given(True, "--debug")}),
    "run m --debug": Request("run", ("m",), {"debug": Given(True, "--debug")}),
    "--store a run m --store b": Request("run", ("m",), {"store": Given("b", "--store")}),
    "benchmark m": Request("bench", ("m",)),
    "containers": Request("ps"),
    "ps --format x": Request("ps", (), {"ps_format": Given("x", "--format")}),
    "bench --format x m": Request("bench", ("m",), {"format": Given("x", "--format")}),
    "config show --json": Request("config show", (), {"json": Given(True, "--json")}),
    "-q config --debug show": Request("config show", (), {"quiet": Given(True, "-q"), "debug": Given(True, "--debug")}),
    "serve a b c": Request("serve", ("a", "b", "c")),
    "stop": Request("stop"),
    "explain run m --temp 0": Request("explain", ("run", "m", "--temp", "0")),
    "explain run --help": Request("explain", ("run", "--help")),
    "explain --dryrun=json run m --": Request("explain", ("--dryrun=json", "run", "m", "--")),
    "explain --help": Request("help", ("explain",)),
    "explain --json run m": Request("explain", ("run", "m"), {"json": Given(True, "--json")}),
    "explain --json --help": Request("help", ("explain",)),
    "explain ps --json": Request("explain", ("ps", "--json")),
    "--nocontainer explain -q run m": Request(
        "explain", ("-q", "run", "m"), {"container": Given(False, "--nocontainer")}
    ),
}

USAGE_RUN = "usage: ramalama-like run [OPTION]... MODEL [PROMPT]..."
REFUSED: dict[str, tuple[str, str]] = {
    "run": ("missing argument: MODEL", USAGE_RUN),
    "run --": ("missing argument: MODEL", USAGE_RUN),
    "explain": ("missing argument: COMMAND", "usage: ramalama-like explain [OPTION]... COMMAND..."),
    "bench a b": ("unexpected argument: b", "usage: ramalama-like bench [OPTION]... MODEL"),
    "version x": ("unexpected argument: x", "usage: ramalama-like version [OPTION]..."),
    "run m --ctx-siz 5": ("no such option: --ctx-siz", "did you mean --ctx-size?"),
    "run m --ctx 5": ("no such option: --ctx", "did you mean --ctx-size?"),
    "run m --foobarbaz=5": ("no such option: --foobarbaz", "see ramalama-like run --help"),
    "run m -z": ("no such option: -z", "see ramalama-like run --help"),
    "run m -iz": ("no such option: -z", "see ramalama-like run --help"),
    "run m --detach": ("no such option: --detach", "it is an option of serve"),
    "run m -v": ("no such option: -v", "the engine's own options go through: --engine-args '-v …'"),
    "run --helpp": ("no such option: --helpp", "did you mean --help?"),
    "run m --hel": ("no such option: --hel", "did you mean --help?"),
    "--helpp": ("no such option: --helpp", "did you mean --help?"),
    "--versio": ("no such option: --versio", "did you mean --version?"),
    "run --version": ("no such option: --version", "ramalama-like --version tells the version"),
    "ps -a": ("no such option: -a", "ps always lists all of this program's containers, those that ended too"),
    "ps --all": ("no such option: --all", "ps always lists all of this program's containers, those that ended too"),
    "ps --filter x": ("no such option: --filter", "pipe what --json prints to jq, or ask the engine itself"),
    "logs -n 5 x": ("no such option: -n", "did you mean --tail?"),
    "logs -a": ("no such option: -a", "see ramalama-like logs --help"),
    "info --json": ("no such option: --json", "info always prints JSON"),
    "serve m --num-ctx 5": ("no such option: --num-ctx", "did you mean --ctx-size?"),
    "serve m --n-gpu-layers 5": ("no such option: --n-gpu-layers", "did you mean --ngl?"),
    "serve m --temperature 5": ("no such option: --temperature", "did you mean --temp?"),
    "serve m --gpus all": ("no such option: --gpus", "cards are used by themselves; --gpu SEL chooses among them"),
    "serve --rm m": ("no such option: --rm", "containers are removed by themselves, except those of serve --detach"),
    "serve --cap-add x m": (
        "no such option: --cap-add",
        "the engine's own options go through: --engine-args '--cap-add …'",
    ),
    "serve --top-k 5 m": ("no such option: --top-k", "the server's own options go through: --runtime-args '--top-k …'"),
    "run -m x": ("no such option: -m", "the model's name stands alone, behind the command"),
    "run --verbose m": ("no such option: --verbose", "did you mean --debug?"),
    "run --format json m": ("no such option: --format", "--dryrun=json prints the whole plan"),
    "--zzzzzz run m": ("no such option: --zzzzzz", "see ramalama-like --help"),
    "--name x run m": ("no such option before the command: --name", "put it after the command, as in run"),
    "run m --name": ("--name needs a value", ""),
    "run m -n": ("-n needs a value", ""),
    "run m --debug=yes": ("--debug takes no value", ""),
    "run m --help=yes": ("--help takes no value", ""),
    "rum m": ("no such command: rum", "did you mean rm or run?"),
    "xyzzy": ("no such command: xyzzy", "see ramalama-like --help"),
    "help rum": ("no such command: rum", "did you mean rm or run?"),
    "config": ("config needs a command", "one of: show"),
    "config shw": ("no such command: config shw", "one of: show"),
}


@pytest.mark.parametrize("line", EXACT)
def test_exact_requests(line: str) -> None:
    assert parse_argv(line.split()) == EXACT[line]


@pytest.mark.parametrize("line", REFUSED)
def test_exact_refusals(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_argv(line.split())
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (*REFUSED[line], 2)


@pytest.mark.parametrize("command", COMMANDS_NOT_YET)
def test_commands_of_the_dialect_are_refused_by_name(command: str) -> None:
    with pytest.raises(NotBuiltYet, match=f"^{command}: .* yet$") as caught:
        parse_argv([command, "x", "--y"])
    assert caught.value.exit_code == 38


def test_hints_are_for_what_is_refused_and_lead_to_what_is_there() -> None:
    for name, hints in HINTS.items():
        commands = (
            [name] if name in COMMANDS else [c for c, declared in COMMANDS.items() if declared.starts or not name]
        )
        for command in commands:
            takes = {flag for o in options_of(command).values() for flag in (*o.flags, *o.off_flags)}
            for flag, hint in hints.items():
                meant = hint.removeprefix("did you mean ").removesuffix("?")
                if flag in takes or meant == hint or command in ("explain", "help"):
                    continue
                if command in (name, "serve", "run"):
                    assert meant in takes or meant == "--version" or (meant, command) == ("--keepalive", "serve"), flag
                with pytest.raises(UsageError) as caught:
                    parse_argv([*command.split(), flag, "x", "y"])
                assert caught.value.message.startswith("no such option: ")


def test_a_message_stays_on_one_line() -> None:
    for line in (["a\nb"], ["run", "m", "--a\nb"], ["bench", "a", "b\nc"], ["config", "a\nb"]):
        with pytest.raises(UsageError) as caught:
            parse_argv(line)
        assert "\n" not in caught.value.message + caught.value.hint


def spellings(command: str) -> list[str]:
    found = [flag for o in options_of(command).values() for flag in (*o.flags, *o.off_flags)]
    return [*found, "--help", "-h"]


WORDS = st.sampled_from(["m", "x y", "", "-", "-1", "--", "a=b", "json", "run", "show", "é"])


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Command lines as people type them, the wrong ones included."""
    command = draw(st.sampled_from([*COMMANDS, "benchmark", "containers", "config", "rum"]))
    early = [flag for o in global_options().values() for flag in (*o.flags, *o.off_flags)]
    pool = early if COMMANDS.get(command) is None else spellings(command)

    def word(flags: list[str]) -> st.SearchStrategy[list[str]]:
        flag = st.sampled_from(flags)
        shorts = [f[1] for f in flags if len(f) == 2]
        return st.one_of(
            WORDS.map(lambda w: [w]),
            flag.map(lambda f: [f]),
            st.tuples(flag, WORDS).map(list),
            st.tuples(flag, WORDS).map(lambda pair: ["=".join(pair)]),
            st.sampled_from(["--nope", "-Z", "--ctx", "--no-debug"]).map(lambda f: [f]),
            st.lists(st.sampled_from([*shorts, "5", "="]), min_size=1).map(lambda letters: ["-" + "".join(letters)]),
        )

    def words(strategy: st.SearchStrategy[list[str]], most: int) -> list[str]:
        return [w for group in draw(st.lists(strategy, max_size=most)) for w in group]

    before = words(st.sampled_from([[f] for f in early] + [["--engine", "none"], ["--dryrun=json"]]), 2)
    return [*before, *command.split(), *words(word(pool), 6)]


@given(command_lines())
@settings(max_examples=1000, deadline=None)
@example(["run", "m", "-c=5"])
@example(["--nocontainer", "explain", "--", "run"])
def test_agreement_with_click(argv: list[str]) -> None:
    """Either both understand the line in the same way, or both refuse it."""
    outcomes = []
    for parse in (parse_argv, parse_with_typer):
        try:
            outcomes.append(parse(argv))
        except (UsageError, NotBuiltYet):  # click does not know what is not there
            outcomes.append(None)
    fast, click = outcomes
    if fast is not None and fast.command == "help" and click is None:
        return  # we give help as soon as it is met; click looks for mistakes to the right of --help first
    assert fast == click


def test_parsing_and_merging_import_nothing_slow() -> None:
    slow = ["typing", "dataclasses", "re", "pathlib", "enum", "json", "tomllib", "subprocess", "inspect", "shlex"]
    slow += ["argparse", "difflib", "typer", "click", "rich", "shutil", "collections", "functools"]
    program = (
        "import sys; before = set(sys.modules)\n"
        "from ramalama_like.cli.parse import parse_argv\n"
        "from ramalama_like.settings import load_settings\n"
        "line = ['run', 'm', '-c', '5', '--runtime-args', \"--a 'b c'\", '--env', 'A=1', '--ngl', '-1', '--dryrun']\n"
        "load_settings(parse_argv(line), {'HOME': '/nonexistent', 'RAMALAMA_PORT': '81'}, '/nonexistent')\n"
        f"print(sorted(set({slow!r}) & (set(sys.modules) - before)))"
    )
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}"
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
