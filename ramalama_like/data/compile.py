"""Turn the tables beside this file into Python: ``python -m ramalama_like.data.compile``."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = HERE / "compiled.py"
HEADER = '''"""Generated from this folder's .toml files by ``python -m ramalama_like.data.compile``: do not edit."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

'''
WIDTH = 110


def compile_tables(folder: Path = HERE) -> str:
    """The text of ``compiled.py`` for the tables in ``folder``. Raises tomllib.TOMLDecodeError for a bad one."""
    tables = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.toml"))}
    return f"{HEADER}TABLES: dict[str, dict[str, Any]] = {_literal(tables, 0)}\n"


def _literal(item: Any, depth: int) -> str:
    """Python text of a TOML value; tables and long lists get a line for each member."""
    margin = "    " * (depth + 1)
    if isinstance(item, dict):
        members = [f"{margin}{_literal(key, 0)}: {_literal(member, depth + 1)},\n" for key, member in item.items()]
        return "{" + (f"\n{''.join(members)}{'    ' * depth}" if members else "") + "}"
    if isinstance(item, list):
        # Lists become tuples: nobody can change a shared table's list by mistake.
        members = [_literal(member, depth + 1) for member in item]
        flat = f"({', '.join(members)}{',' if len(members) == 1 else ''})"
        if len(flat) + len(margin) <= WIDTH - 30:
            return flat
        return "(\n" + "".join(f"{margin}{member},\n" for member in members) + f"{'    ' * depth})"
    if isinstance(item, str):
        return json.dumps(item, ensure_ascii=False)
    return repr(item)


if __name__ == "__main__":
    TARGET.write_text(compile_tables(), "utf-8")
