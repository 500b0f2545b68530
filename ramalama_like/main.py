"""From an argument list to an exit code. Errors become text here and nowhere else."""

from __future__ import annotations

import os
import sys

from ramalama_like import ui
from ramalama_like.cli.parse import parse_argv
from ramalama_like.errors import AppError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any

    from ramalama_like.request import Request


def run_argv(argv: Sequence[str]) -> int:
    """Run one command line; its exit code."""
    _open_missing()
    own = argv[: argv.index("--")] if "--" in argv else argv
    debug = "--debug" in own
    if not debug:
        sys.excepthook = _unexpected
    try:
        return run_request(parse_argv(argv))
    except AppError as error:
        if debug:
            from traceback import format_exc

            ui.say(format_exc().rstrip())
        ui.error(error.message, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        ui.say("")
        return 130
    except BrokenPipeError:
        # The reader of our output has gone: nothing is wrong. The interpreter must not try to flush into it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141


def _open_missing() -> None:
    """A standard descriptor that is closed would go to the next file or pipe, and what is printed with it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def run_request(request: Request) -> int:
    """Run a parsed command; its exit code. Raises AppError."""
    if request.given.get("quiet"):
        ui.set_quiet(True)
    code: int = command_module(request.command).execute(request)
    return code


def command_module(command: str) -> Any:
    """The module of a command, imported only when it is asked for. importlib would cost more than most of them."""
    return __import__(f"ramalama_like.cli.{command.partition(' ')[0]}", fromlist=["execute"])


def run_line(line: Sequence[str]) -> int:
    """Run a step that is a command line of this program, without starting the program anew.

    What a dry run showed is what is parsed here. The words that start the program are skipped.
    """
    words = list(line)
    return run_request(parse_argv(words[words.index("chat") :]))


def _unexpected(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    ui.error(f"a fault in this program: {kind.__name__}: {error}", "run it with --debug and report what it prints")
