"""The one family of errors that people see.

    AppError
    ├── UsageError        2    the command line cannot be understood
    ├── ValueProblem     22    a value, file or reference that cannot be used
    ├── EngineError       5    the container engine is missing, fails or hangs
    ├── NotBuiltYet      38    part of the dialect that this version does not have
    ├── TimedOut        110    something did not become ready in time
    └── Interrupted     130    the user stopped it
    ChildFailed        its own  a program we started failed: its exit code is passed on

Exit codes follow facts of the dialect (docs/differences.md lists where they differ). ``main.py`` alone turns these
into text; everything else only raises them.
"""

from __future__ import annotations


class AppError(Exception):
    """An error for people: one line of message, perhaps one line of hint, and the exit code of the program."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


class UsageError(AppError):
    """The command line cannot be understood."""

    exit_code = 2


class ValueProblem(AppError):
    """A value, a file or a reference is well-formed but cannot be used."""

    exit_code = 22


class EngineError(AppError):
    """The container engine is missing, failed, or did not answer."""

    exit_code = 5


class NotBuiltYet(AppError):
    """Part of the dialect that this version knows by name but cannot do."""

    exit_code = 38


class TimedOut(AppError):
    """Something did not become ready in the time allowed."""

    exit_code = 110


class Interrupted(AppError):
    """The user, the terminal or the system asked the program to stop."""

    exit_code = 130


class ChildFailed(AppError):
    """A program that was started for the user failed; the exit code is that program's own."""
