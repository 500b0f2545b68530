"""A library prints nothing: what the command line would tell goes to Python's logging.

``ramalama_like`` gets warnings and notes, ``ramalama_like.server`` each line of the server's or engine's log (DEBUG).
"""

from __future__ import annotations

import logging
from contextlib import contextmanager

from ramalama_like import ui

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WARNING = "Warning: "
_log = logging.getLogger("ramalama_like")
_server_log = logging.getLogger("ramalama_like.server")


@contextmanager
def told_to_log() -> Iterator[None]:
    """What is told in this thread goes to logging."""
    before = ui.divert(_take)
    try:
        yield
    finally:
        ui.divert(before)


def take_server_line(line: str) -> None:
    """One line of a server's log, or of its engine's."""
    _server_log.debug("%s", ui.spelled(line))


def _take(line: str) -> None:
    if line.startswith(WARNING):
        _log.warning("%s", line.removeprefix(WARNING))
    else:
        _log.info("%s", line)
