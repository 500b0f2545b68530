"""Help, by typer and without rich, from the same declarations that the fast parser follows.

Nothing here is on the way to the engine: it is imported for ``help`` and ``--help`` alone. The program that typer
builds can also parse (``parse_with_typer``), which is how the tests know that the fast parser follows the rules which
everybody's fingers have learnt from other programs.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ramalama_like import settings, ui
from ramalama_like.cli.parse import HELP_FLAGS, PROGRAM, REPEATABLE, VERSION_FLAGS, canonical_topic, check_arguments
from ramalama_like.errors import UsageError
from ramalama_like.options import COMMANDS, Option, all_options, global_options, options_of, own_options
from ramalama_like.request import Given, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ramalama_like.launch import Outline

WIDTH = 80
KINDS = {"int": "N", "float": "N", "path": "PATH", "bool": "on|off", "list": "TEXT", "args": "ARGS"}
KEYS = (
    "A key belongs below [ramalama] in ramalama.conf. As a variable it is RAMALAMA_ and the key in capitals, with two "
    "underscores for each dot."
)
CLICK_ERROR: Any = typer.BadParameter.__mro__[2]  # ClickException: where it lives depends on typer's version
SUMMARY = "Run language models in containers: one plan, shown exactly as it will run."


def execute(request: Request) -> int:
    """Run the command; its exit code."""
    width = settings.terminal_columns() or WIDTH
    ui.write(f"{show_help(request.model, width).rstrip()}\n")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do: print, and start nothing. Raises AppError."""
    from ramalama_like.launch import Outline

    return Outline(settings.load_settings(request))


def show_help(command: str = "", width: int = WIDTH) -> str:
    """The help text of a command (its full name, or the first word of two-word ones); of the program by default."""
    shown: Any = _click_command(min(width, WIDTH))
    context = shown.make_context(PROGRAM, [], resilient_parsing=True)
    for word in command.split():
        shown = shown.get_command(context, word)
        context = shown.make_context(word, [], parent=context, resilient_parsing=True)
    text: str = shown.get_help(context)
    return text


def parse_with_typer(argv: Sequence[str]) -> Request:
    """Parse a command line with typer alone. Slow; the fast parser must agree with it."""
    try:
        request: Request = _click_command(WIDTH).main(list(argv), PROGRAM, standalone_mode=False, obj=_Flags())
    except _Asked as asked:
        return asked.request
    except CLICK_ERROR as error:
        raise UsageError(str(error)) from error
    return request


@cache
def _click_command(width: int) -> Any:
    return typer.main.get_command(build_app(width))


def build_app(width: int = WIDTH) -> typer.Typer:
    """The whole program as typer sees it; its commands return the Request that they were given."""
    settings = {"help_option_names": list(HELP_FLAGS), "terminal_width": width, "max_content_width": width}
    app = _group(PROGRAM, SUMMARY, settings, version=True)
    groups: dict[str, typer.Typer] = {}
    for name, declared in COMMANDS.items():
        first, _, second = name.partition(" ")
        if second and first not in groups:
            groups[first] = _group(first, declared.summary, settings)
            app.add_typer(groups[first], name=first)
        for spelling in (second or first, *declared.aliases):
            (groups[first] if second else app).command(
                spelling,
                cls=_PassingThrough if declared.passes_through else _Command,
                help=declared.summary,
                hidden=spelling in declared.aliases,
                epilog=KEYS if any(o.key for o in options_of(name).values()) else None,
                context_settings=settings,
            )(_function(name))
    return app


def _group(name: str, summary: str, settings: dict[str, Any], *, version: bool = False) -> typer.Typer:
    group = typer.Typer(
        name=name,
        cls=_Group,
        help=summary,
        context_settings=settings,
        invoke_without_command=version,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

    def chosen(context: typer.Context, **_: object) -> Request:
        # Called before a command too; what it returns counts only where there is none.
        return Request("help", (), _given(context))

    parameters = [_option_parameter(option_name, option) for option_name, option in global_options().items()]
    if version:
        parameters.append(_version_parameter())
    group.callback()(_with_signature(chosen, parameters))
    return group


def _function(name: str) -> Callable[..., Request]:
    declared = COMMANDS[name]

    def asked(context: typer.Context, **_: object) -> Request:
        words = context.params.get("words")
        arguments = [words] if isinstance(words, str) else list(words or ())
        if name == "help":
            arguments = canonical_topic(arguments)
        check_arguments(name, arguments)
        return Request(name, tuple(arguments), _given(context))

    options = own_options(name) if declared.passes_through else options_of(name)
    parameters = [_option_parameter(option_name, option) for option_name, option in options.items()]
    if declared.most != 0:
        kind: Any = str if declared.most == 1 else list[str]
        default = typer.Argument(... if declared.least else None, metavar=declared.positionals)
        parameters.insert(0, _parameter("words", kind if declared.least else kind | None, default))
    return _with_signature(asked, parameters)


def _with_signature(
    function: Callable[..., Request], parameters: Sequence[inspect.Parameter]
) -> Callable[..., Request]:
    """Give a function the parameters that typer reads, which are known only now."""
    every = [_parameter("context", typer.Context, inspect.Parameter.empty), *parameters]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    vars(function)["__signature__"] = inspect.Signature(every)
    return function


def _parameter(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option_parameter(name: str, option: Option) -> inspect.Parameter:
    flags = list(option.flags)
    annotation: Any = str | None
    if option.kind == "flag":
        annotation = bool
        flags = ["/".join((*flags, *option.off_flags))] if option.off_flags else flags
    elif option.kind in REPEATABLE:
        annotation = list[str] | None
    shown = typer.Option(
        False if option.kind == "flag" else None,
        *flags,
        help=describe(option),
        metavar=None if option.kind == "flag" else _metavar(option),
        hidden=option.hidden,
        show_default=False,
        rich_help_panel="Not in this version" if option.not_yet else option.group,
    )
    return _parameter(name, annotation, shown)


def _version_parameter() -> inspect.Parameter:
    def version(context: typer.Context, value: bool) -> None:
        if value and not context.resilient_parsing:
            raise _Asked(Request("version"))

    return _parameter(
        "version",
        bool,
        typer.Option(
            False, *VERSION_FLAGS, callback=version, is_eager=True, help="Print the version.", rich_help_panel="Program"
        ),
    )


def describe(option: Option) -> str:
    """The help of an option, with its choices, default and configuration key."""
    told = []
    if option.choices and option.kind != "dryrun" and _metavar(option) == "NAME":
        told.append(f"one of: {', '.join(option.choices)}")
    default = _default_text(option)
    if default:
        told.append(f"default: {default}")
    if option.key:
        told.append(f"key: {option.key}")
    if option.variables:
        told.append(f"variable: {', '.join(option.variables)}")
    text = f"(not yet) {option.help}" if option.not_yet else option.help  # the reason is told when it is asked for
    return f"{text} [{'; '.join(told)}]" if told else text


def _default_text(option: Option) -> str:
    if option.kind == "bool" and option.default is not None:
        return "on" if option.default else "off"
    if option.kind == "flag":
        return option.flags[0] if option.default else ""
    return "" if option.default in ("", None, ()) else f"{option.default}".removesuffix(".0")


def _metavar(option: Option) -> str:
    if option.metavar:
        return option.metavar
    choices = "|".join(option.choices)
    return (choices if len(choices) < 24 else "NAME") if choices else KINDS.get(option.kind, "TEXT")


class _Sections:
    """What commands and groups of commands share: options in sections by group, and a note of the flags met."""

    def format_options(self: Any, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and param.param_type_name == "option":
                # Help itself is in no group: it belongs with what the program itself does.
                sections.setdefault(param.rich_help_panel or "Program", []).append(record)
        for last in ("Not in this version", "Program"):
            sections[last] = sections.pop(last, [])
        if isinstance(self, TyperGroup):
            with formatter.section("Commands"):
                formatter.write_dl([*_command_rows(ctx.info_name)])
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def collect_usage_pieces(self: Any, ctx: Any) -> list[str]:
        # Click would put the words into braces, where the dialect's manual has them bare.
        words = [param.metavar for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return ["[OPTION]...", *words, *(["COMMAND [ARG]..."] if isinstance(self, TyperGroup) else [])]

    def get_help(self: Any, ctx: Any) -> str:
        if isinstance(ctx.obj, _Flags) and not ctx.resilient_parsing:
            path = ctx.command_path.split()[1:]
            command = _full_name(path)
            raise _Asked(Request("help", (command,) if command else ()))
        text: str = super().get_help(ctx)  # type: ignore[misc]
        return text

    def make_parser(self: Any, ctx: Any) -> Any:
        parser = super().make_parser(ctx)  # type: ignore[misc]
        if isinstance(ctx.obj, _Flags):
            ctx.obj.watch(parser)
        return parser


class _Command(_Sections, TyperCommand):
    pass


class _Group(_Sections, TyperGroup):
    pass


class _PassingThrough(_Command):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = {flag for param in self.params for flag in param.opts if param.param_type_name == "option"}
        inner = next((place for place, word in enumerate(args) if word not in own - {*HELP_FLAGS}), len(args))
        asked = args[inner : inner + 1] and args[inner] in HELP_FLAGS
        return super().parse_args(ctx, args if asked else [*args[:inner], "--", *args[inner:]])


def _command_rows(group: str | None) -> list[tuple[str, str]]:
    return [
        (", ".join((name, *declared.aliases)), declared.summary)
        for name, declared in COMMANDS.items()
        if group == PROGRAM or name.startswith(f"{group} ")
    ]


def _full_name(path: Sequence[str]) -> str:
    topic = canonical_topic(list(path))
    return " ".join(topic)


class _Asked(Exception):
    """Help or the version was asked for, which ends the parsing."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.request = request


def _given(context: typer.Context) -> Mapping[str, Given]:
    """The options that were given, before the command and after it."""
    chain: list[Any] = [context]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    given: dict[str, Given] = {}
    for level in reversed(chain):
        for name, value in level.params.items():
            source = level.get_parameter_source(name)
            if name in all_options() and source is not None and source.name == "COMMANDLINE":
                given[name] = Given(tuple(value) if isinstance(value, list | tuple) else value, context.obj.met[name])
    return given


class _Flags:
    """Which spelling of each option was met last. Click forgets it, so its parser is watched."""

    def __init__(self) -> None:
        self.met: dict[str, str] = {}

    def watch(self, parser: Any) -> None:
        for table in (parser._short_opt, parser._long_opt):
            for spelling, option in table.items():
                table[spelling] = _Watched(option, spelling, self)
        match_long = parser._match_long_opt
        formats = all_options()["dryrun"]
        optional = {flag: o for o in all_options().values() if o.kind == "optional" for flag in o.flags}

        def match(flag: str, explicit: str | None, state: Any) -> None:
            # Click's own options with an optional value would take the next word as the value.
            if explicit is None and flag in formats.flags:
                explicit = formats.choices[0]
            elif explicit is None and flag in optional and flag in parser._long_opt:
                follows = bool(state.rargs) and state.rargs[0].upper() in optional[flag].choices
                explicit = state.rargs.pop(0) if follows else ""
            match_long(flag, explicit, state)

        parser._match_long_opt = match


class _Watched:
    def __init__(self, option: Any, spelling: str, flags: _Flags) -> None:
        self._option = option
        self._spelling = spelling
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        return getattr(self._option, name)

    def process(self, value: Any, state: Any) -> None:
        self._flags.met[self._option.dest] = self._spelling
        self._option.process(value, state)
