"""Help: complete, readable on a narrow terminal, and generated from the declarations alone."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from ramalama_like.cli.help import build_app, show_help
from ramalama_like.cli.parse import groups
from ramalama_like.options import COMMANDS, COMMANDS_NOT_YET, all_options, options_of, own_options

# What can be said to anything that starts a server or a tool; the dialect lets people expect all of it everywhere.
OF_EVERY_STARTER = {
    "--backend", "--image", "--device", "--env", "--name", "--network", "--port", "--host", "--pull", "--engine",
    "--runtime-args", "--engine-args", "--ctx-size", "--ngl", "--threads", "--temp", "--seed", "--privileged",
    "--selinux", "--oci-runtime", "--dryrun",
}  # fmt: skip


def enumerated() -> dict[str, Any]:
    """Every visible command of the parser by its full name, found by walking over the parser itself."""
    found: dict[str, Any] = {}

    def walk(command: Any, name: str) -> None:
        if not hasattr(command, "commands"):
            found[name] = command
            return
        for word, member in command.commands.items():
            if not member.hidden:
                walk(member, f"{name} {word}".strip())

    walk(typer.main.get_command(build_app()), "")
    return found


def test_the_parser_has_every_command_and_no_other() -> None:
    assert sorted(enumerated()) == sorted(COMMANDS)
    assert not set(COMMANDS) & set(COMMANDS_NOT_YET)


def test_the_parser_has_every_option_and_no_other() -> None:
    for name, command in enumerated().items():
        flags = [set(p.opts + p.secondary_opts) for p in command.params if p.param_type_name == "option"]
        declared = (own_options if COMMANDS[name].passes_through else options_of)(name).values()
        assert flags == [{*o.flags, *o.off_flags} for o in declared]


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.starts])
def test_whatever_starts_a_server_takes_all_of_its_options(name: str) -> None:
    flags = {flag for p in enumerated()[name].params for flag in p.opts}
    assert flags >= OF_EVERY_STARTER


def test_every_server_command_is_marked() -> None:
    """``starts`` decides which test above applies, so it may not be forgotten: --image is given only to starters, to
    convert, which starts containers that serve nothing, and to doctor, which looks at what they would start."""
    assert [n for n in COMMANDS if "image" in options_of(n)] == [
        *(n for n, c in COMMANDS.items() if c.starts),
        "convert",
        "doctor",
    ]


def test_no_option_is_spelled_like_another_of_the_same_command() -> None:
    for name in COMMANDS:
        flags = [f for o in options_of(name).values() for f in (*o.flags, *o.off_flags)] + ["--help", "-h"]
        assert sorted(flags) == sorted(set(flags)), name


def test_no_two_options_share_a_key_or_a_variable() -> None:
    keys = [o.key for o in all_options().values() if o.key]
    assert sorted(keys) == sorted(set(keys))
    variables = [v for o in all_options().values() for v in o.variables]
    assert sorted(variables) == sorted(set(variables))


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("name", ["", *COMMANDS, *groups()])
def test_help_fits_the_terminal(name: str, width: int) -> None:
    text = show_help(name, width)
    assert [line for line in text.splitlines() if len(line) > width] == []
    assert "\x1b" not in text
    assert text.startswith(f"Usage: ramalama-like {name}".rstrip() + " [OPTION]...")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_option(name: str) -> None:
    text = show_help(name)
    words = " ".join(text.split())
    assert COMMANDS[name].summary in words
    for option in {} if COMMANDS[name].passes_through else options_of(name).values():
        shown = ", ".join(option.flags) in words or f"{option.flags[-1]}, {option.flags[0]}" in words
        assert shown != option.hidden, option.flags
        if not option.hidden:
            assert option.help in words
            assert f"\n{'Not in this version' if option.not_yet else option.group}:\n" in text
            assert not option.key or f"key: {option.key}" in words


def test_help_of_the_program_lists_the_commands() -> None:
    text = show_help()
    names = {name: ", ".join((name, *command.aliases)) for name, command in COMMANDS.items()}
    width = max(map(len, names.values()))
    for name, command in COMMANDS.items():
        assert f"\n  {names[name]:{width}}  {command.summary}\n" in text


def test_an_option_in_full() -> None:
    words = " ".join(show_help("run").split())
    assert (
        "-p, --port N Port of the API; the default is the first free one from 8080. [default: 8080; key: port]" in words
    )
    assert "--container / --nocontainer Run in a container" in words
    assert "--selinux on|off Keep SELinux separation and relabel what is mounted. [default: off; key: selinux]" in words
    assert "--rag TEXT (not yet) RAG data." in words
    assert "--dri" not in show_help("serve").replace("--dryrun", "").replace("--dry-run", "")
