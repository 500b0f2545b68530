"""Facts of the outside world as tables: backends, images, engines. Code elsewhere holds only the mechanism.

People edit the ``.toml`` files. Reading TOML at each start would cost 11 ms, so
``python -m ramalama_like.data.compile`` turns all of them into ``compiled.py``, and a test fails where the two differ.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_in_use: dict[str, Mapping[str, Any]] = {}


def load_table(name: str) -> Mapping[str, Any]:
    """The table ``data/<name>.toml``, with the user's rows. It is shared: treat it as frozen.

    Raises KeyError for a name without a file.
    """
    return _in_use[name] if name in _in_use else built_in(name)


def built_in(name: str) -> Mapping[str, Any]:
    """The table as it was shipped."""
    from ramalama_like.data.compiled import TABLES

    return TABLES[name]


def use_tables(tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Let these tables take the place of the built-in ones, and no others: settings.py calls this, once a command,
    before anything is decided."""
    _in_use.clear()
    _in_use.update(tables)
