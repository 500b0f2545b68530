"""Why servers and engines fail, and why a server computes on the CPU: texts of ``data/causes.toml`` found in logs."""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.server_log import without_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def find_cause(lines: Iterable[str], *, exit_code: int = 0, about_gpus: bool = False) -> tuple[str, str] | None:
    """What it means and the next step, by the first row of the table that matches; None where no row does.

    ``about_gpus`` takes only rows that can tell why a server that runs has no GPU.
    """
    text = "\n".join(without_values(list(lines))).lower()
    for row in load_table("causes")["cause"]:
        if row.get("gpu", "") not in (("also", "only") if about_gpus else ("", "also")):
            continue
        if exit_code in row.get("exit_codes", ()) or ("text" in row and row["text"].lower() in text):
            return row["why"], row["hint"]
    return None
