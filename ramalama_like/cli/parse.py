"""The fast parser: a command line becomes a ``Request``, following the declarations in ``options.py``.

The rules are those of GNU tools as click implements them, and a property test holds this parser to click's own
(``cli/help.py`` builds the same program with typer). Typer itself is not used here because importing it takes longer
than everything that ``run`` does before the engine starts. Values stay raw text: ``settings.py`` checks them, so that
a flag, a variable and a file are judged by the same code.
"""

from __future__ import annotations

from ramalama_like.errors import NotBuiltYet, UsageError
from ramalama_like.options import COMMANDS, COMMANDS_NOT_YET, global_options, options_of, own_options
from ramalama_like.request import Given, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ramalama_like.options import Option

PROGRAM = "ramalama-like"
HELP_FLAGS = ("--help", "-h")
VERSION_FLAGS = ("--version", "-v")
REPEATABLE = ("list", "args")  # kinds whose values accumulate; of every other kind the last value counts


class HelpAsked(Exception):  # not an error: it only leaves the scan early
    """``--help`` or ``--version`` was met, after which nothing else is looked at."""

    def __init__(self, flag: str) -> None:
        super().__init__(flag)
        self.flag = flag


class _Scan:
    """Words being consumed from the left, and the options found among them so far."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.at = 0
        self.given: dict[str, Given] = {}

    def positionals(self, command: str, flags: Mapping[str, tuple[str, Option]], *, first_only: bool) -> list[str]:
        """Consume options and return the other words: all of them, or only the first, with the rest left alone."""
        found: list[str] = []
        words = self.words
        while self.at < len(words):
            word = words[self.at]
            self.at += 1
            if word == "--":
                found += words[self.at : self.at + 1] if first_only else words[self.at :]
                self.at = self.at + 1 if first_only else len(words)
                break
            if word[:1] != "-" or word == "-":
                found.append(word)
                if first_only:
                    break
            elif word[:2] == "--":
                self.long(command, flags, word)
            else:
                self.cluster(command, flags, word)
        return found

    def long(self, command: str, flags: Mapping[str, tuple[str, Option]], word: str) -> None:
        flag, equals, value = word.partition("=")
        if flag not in flags:
            if flag in HELP_FLAGS or (flag in VERSION_FLAGS and not command):
                _refuse_value(flag, equals)
                raise HelpAsked(flag)
            raise _no_such_option(command, flag)
        name, option = flags[flag]
        if option.kind == "flag":
            _refuse_value(flag, equals)
            self.given[name] = Given(flag not in option.off_flags, flag)
        elif equals:
            self.store(name, option, value, flag)
        elif option.kind == "dryrun":
            # Bare, it must not swallow the next word: the dialect's --dryrun is a switch.
            self.store(name, option, option.choices[0], flag)
        elif option.kind == "optional":
            # The dialect lets the value follow as a word. Only a word that is one is taken: the next may be the model.
            follows = self.at < len(self.words) and self.words[self.at].upper() in option.choices
            self.store(name, option, self.next_word(flag) if follows else "", flag)
        else:
            self.store(name, option, self.next_word(flag), flag)

    def cluster(self, command: str, flags: Mapping[str, tuple[str, Option]], word: str) -> None:
        """``-di``, ``-c5``, ``-c 5``: switches one after the other, until an option takes the rest as its value."""
        for place, letter in enumerate(word[1:], 2):
            flag = f"-{letter}"
            if flag not in flags:
                if flag in HELP_FLAGS or (flag in VERSION_FLAGS and not command):
                    raise HelpAsked(flag)
                raise _no_such_option(command, flag)
            name, option = flags[flag]
            if option.kind == "flag":
                self.given[name] = Given(flag not in option.off_flags, flag)
                continue
            self.store(name, option, word[place:] or self.next_word(flag), flag)
            return

    def next_word(self, flag: str) -> str:
        """The value of an option: the next word whatever it looks like, so that ``--ngl -1`` works."""
        if self.at >= len(self.words):
            raise UsageError(f"{flag} needs a value")
        self.at += 1
        return self.words[self.at - 1]

    def store(self, name: str, option: Option, value: str, flag: str) -> None:
        if option.kind in REPEATABLE:
            before = self.given.get(name)
            values = before.value if before else ()
            assert isinstance(values, tuple)  # noqa: S101  # only this method stores values of these kinds
            self.given[name] = Given((*values, value), flag)
        else:
            self.given[name] = Given(value, flag)


def parse_argv(argv: Sequence[str]) -> Request:
    """Parse the words after the program's name. Raises UsageError, or NotBuiltYet for a command of the dialect."""
    scan = _Scan(argv)
    command = ""
    try:
        first = scan.positionals("", _flags_of(""), first_only=True)
        if not first:
            return Request("help", (), scan.given)
        command = _command_named(first[0])
        if not command:
            command = first[0]
            second = scan.positionals(command, _flags_of(""), first_only=True)
            command = _command_named(f"{first[0]} {second[0]}") if second else ""
            if not command:
                raise _unknown_command(first + second)
        declared = COMMANDS[command]
        if declared.passes_through:
            return _pass_through(command, scan)
        arguments = scan.positionals(command, _flags_of(command), first_only=False)
    except HelpAsked as asked:
        if asked.flag in VERSION_FLAGS:
            return Request("version", (), scan.given)
        return Request("help", (command,) if command else ())
    if command == "help":
        arguments = canonical_topic(arguments)
    check_arguments(command, arguments)
    return Request(command, tuple(arguments), scan.given)


def check_arguments(command: str, arguments: Sequence[str]) -> None:
    """Refuse too few or too many positional words."""
    declared = COMMANDS[command]
    usage = f"usage: {PROGRAM} {command} [OPTION]... {declared.positionals}".rstrip()
    if len(arguments) < declared.least:
        raise UsageError(f"missing argument: {declared.positionals.split()[len(arguments)].rstrip('.')}", usage)
    if declared.most is not None and len(arguments) > declared.most:
        raise UsageError(f"unexpected argument: {_word(arguments[declared.most])}", usage)


def _pass_through(command: str, scan: _Scan) -> Request:
    # Only the command's own switches right behind it are its own; all other words belong to the inner command.
    own = {flag: name for name, option in own_options(command).items() for flag in option.flags}
    words = scan.words[scan.at :]
    while words and words[0] in own:
        scan.given[own[words[0]]] = Given(True, words[0])
        words = words[1:]
    if words and words[0] in HELP_FLAGS:
        return Request("help", (command,))
    check_arguments(command, words)
    return Request(command, tuple(words), scan.given)


def _flags_of(command: str) -> Mapping[str, tuple[str, Option]]:
    """The options of a command by every spelling; with no command, those that may stand before it."""
    options = options_of(command) if command in COMMANDS else global_options()
    return {flag: (name, o) for name, o in options.items() for flag in (*o.flags, *o.off_flags)}


def _command_named(word: str) -> str:
    """The full name of a command or of an alias; the empty string for anything else."""
    if word in COMMANDS:
        return word
    return next((name for name, command in COMMANDS.items() if word in command.aliases), "")


def canonical_topic(words: Sequence[str]) -> list[str]:
    """What help is asked for: the command's full name, a group of commands, or nothing. Raises UsageError."""
    topic = " ".join(words)
    if not topic or topic in groups():
        return [topic] if topic else []
    command = _command_named(topic)
    if not command:
        raise _unknown_command(words)
    return [command]


def groups() -> tuple[str, ...]:
    """The first words of two-word commands."""
    return tuple(dict.fromkeys(name.partition(" ")[0] for name in COMMANDS if " " in name))


def _refuse_value(flag: str, equals: str) -> None:
    if equals:
        raise UsageError(f"{flag} takes no value")


# What follows runs only when the command line is wrong, so it may take its time.


def _no_such_option(command: str, flag: str) -> UsageError:
    shown = one_line(flag)
    from ramalama_like.familiar import familiar_hint

    hint = familiar_hint(command, flag, starts=command in COMMANDS and COMMANDS[command].starts)
    if hint:
        return UsageError(f"no such option: {shown}", hint)
    if flag in VERSION_FLAGS[:1]:
        return UsageError(f"no such option: {shown}", f"{PROGRAM} --version tells the version")
    # A single letter means something else with every command.
    owners = [name for name in COMMANDS if flag in _flags_of(name)] if flag[:2] == "--" or not command else []
    if owners and not command:
        return UsageError(f"no such option before the command: {shown}", f"put it after the command, as in {owners[0]}")
    if owners:
        return UsageError(f"no such option: {shown}", f"it is an option of {', '.join(owners)}")
    known = [spelling for spelling, (_, option) in _flags_of(command).items() if not option.hidden]
    known += [HELP_FLAGS[0], *(VERSION_FLAGS[:1] if not command else ())]
    # The dialect lets a long option be shortened. We do not (a new option could change what a script means), but we
    # know what was meant.
    near = [k for k in known if flag[:2] == "--" and len(flag) > 2 and k.startswith(flag)] or _nearest(flag, known)
    asked = f"{PROGRAM} {command}".rstrip()
    return UsageError(f"no such option: {shown}", f"did you mean {near[0]}?" if near else f"see {asked} --help")


def _unknown_command(words: Sequence[str]) -> UsageError | NotBuiltYet:
    shown = " ".join(map(_word, words[:2] if words[0] in groups() else words[:1]))
    if words[0] in COMMANDS_NOT_YET:
        return NotBuiltYet(f"{words[0]}: {COMMANDS_NOT_YET[words[0]]}", f"see {PROGRAM} --help for what there is")
    if words[0] in groups():
        members = [name.partition(" ")[2] for name in COMMANDS if name.startswith(f"{words[0]} ")]
        said = f"no such command: {shown}" if words[1:] else f"{words[0]} needs a command"
        return UsageError(said, f"one of: {', '.join(members)}")
    known = [*COMMANDS, *(alias for command in COMMANDS.values() for alias in command.aliases), *groups()]
    near = _nearest(words[0], known, 2)  # one of them may be rm
    hint = f"did you mean {' or '.join(near)}?" if near else f"see {PROGRAM} --help"
    return UsageError(f"no such command: {shown}", hint)


def _nearest(word: str, known: Sequence[str], most: int = 1) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(word, known, most)


def _word(text: str) -> str:
    """A word of the command line for a message. It may be an address with a password in it."""
    from ramalama_like.reference import plain_url

    return one_line(plain_url(text))


def one_line(text: str) -> str:
    """Text as it can stand in one line of a message: what does not print is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
