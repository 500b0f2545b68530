"""What was asked for: a command line after parsing, before anything is decided or merged.

A request knows which options were really given (``given``), so that settings can put them above variables and files
and keep their origin. It holds no defaults.
"""

from __future__ import annotations

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@value
class Given:
    """An option as it was given: its raw text (or True/False for a switch, a tuple for a repeatable one)."""

    value: object
    flag: str


@value
class Request:
    """A parsed command line: the command's full name, its positional words, and the options that were given."""

    command: str
    arguments: tuple[str, ...] = ()
    given: Mapping[str, Given] = {}  # never changed after construction
    passed_over: tuple[int, ...] = ()  # ports, and numbers of names, that somebody else was quicker to take

    @property
    def model(self) -> str:
        """The first positional word; the empty string where there is none."""
        return self.arguments[0] if self.arguments else ""

    @property
    def words(self) -> tuple[str, ...]:
        """The positional words after the model: the prompt of ``run``."""
        return self.arguments[1:]
