"""Facts of the outside world as tables: backends, images, engines. Code elsewhere holds only the mechanism.

People edit the ``.toml`` files. Reading TOML at each start would cost 11 ms, so
``python -m ramalama_like.data.compile`` turns all of them into ``compiled.py``, and a test fails where the two differ.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def load_table(name: str) -> Mapping[str, Any]:
    """The table ``data/<name>.toml``. It is shared: treat it as frozen. Raises KeyError for a name without a file."""
    from ramalama_like.data.compiled import TABLES

    return TABLES[name]
