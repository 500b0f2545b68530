"""WWW-Authenticate: what a server wants to see before it answers (RFC 9110, section 11.6.1). Pure."""

from __future__ import annotations

import re

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PART = re.compile(r"""\s*,?\s*(?:
    (?P<name>[\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]*))
  | (?P<scheme>[\w!#$%&'*+.^`|~-]+)
)""", re.VERBOSE)  # fmt: skip


@value
class Challenge:
    """One way to say who one is: ``scheme`` in small letters, parameters by their names in small letters."""

    scheme: str
    parameters: Mapping[str, str] = {}


def parse_challenges(text: str) -> tuple[Challenge, ...]:
    """All challenges of a header, whose values may have been joined by commas. What cannot be read is left out."""
    found: list[tuple[str, dict[str, str]]] = []
    place = 0
    while match := _PART.match(text, place):
        place = match.end()
        if match["scheme"]:
            found.append((match["scheme"].lower(), {}))
        elif found:
            quoted = match["quoted"]
            found[-1][1][match["name"].lower()] = match["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    return tuple(Challenge(scheme, parameters) for scheme, parameters in found)
