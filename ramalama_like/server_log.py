"""The lines of llama-server's log: which it prints at its own level, and when its report is over. Pure."""

from __future__ import annotations

from ramalama_like.data import load_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# From here on the model's own texts are in the log, which may hold line breaks and look like anything.
MODEL_IS_READ = ("load_model: loading model", "main: loading model", "init: loading model", "llama_model_load",
                 "llama_prepare_model_devices", "print_info:")  # fmt: skip


def is_complete(line: str) -> bool:
    """Whether a server has told all of its report with this line."""
    return any(text in line for text in load_table("proof")["complete"])


_LEVELS = ("D", "I", "W", "E")


class OwnLevel:
    """Tells the lines apart that llama-server prints at its own level from those that were asked for as a report."""

    def __init__(self) -> None:
        self._last = True

    def shows(self, line: str) -> bool:
        """Whether the line would also be there without the report. Call it with every line, in order."""
        if line[:1] in (" ", "\t"):  # goes on with the line before
            return self._last
        words = line.split(None, 2)
        level = words[1] if len(words) > 2 and words[0].count(".") == 3 and words[0][0].isdigit() else ""
        self._last = (
            level in ("", "W", "E")  # other programs' lines, and other builds', are never hidden
            or (level == "I" and any(text in line for text in load_table("proof")["own_level"]))
        )
        return self._last


def messages(lines: Sequence[str]) -> list[str]:
    """The server's lines without time and level: ``0.00.071.106 I load_tensors: …``, and without the part's short name.

    Where the log begins with such lines, one without them goes on with the text before it, and so is empty here.
    """
    split = [_message(line) for line in lines]
    start = len(before_model([text for _, text in split]))
    prefixed = any(has_time for has_time, _ in split[: start + 1])
    return [text if has_time or not prefixed else "" for has_time, text in split]


def before_model(told: Sequence[str]) -> list[str]:
    """Those of ``messages`` from before the model was read."""
    start = next((number for number, line in enumerate(told) if line.startswith(MODEL_IS_READ)), len(told))
    return list(told[:start])


# Lines that quote the model: a key or value, a name, a token, a template.
QUOTES = ("llama_model_loader: - kv", "print_info:", "load:", "common_init_: added", "init: init: chat template",
          "init: chat template")  # fmt: skip


def without_values(lines: Sequence[str]) -> list[str]:
    """The lines without those that quote the model, and without what stands below those up to the next line with a
    time: a quoted text may hold line breaks. Where lines have no time, only the quoting lines themselves go."""
    found: list[str] = []
    split = [_message(line) for line in lines]
    prefixed = any(has_time for has_time, _ in split)
    quoting = False
    for line, (has_time, text) in zip(lines, split, strict=True):
        if has_time or not prefixed:
            quoting = text.startswith(QUOTES)
        if not quoting:
            found.append(line)
    return found


def _message(line: str) -> tuple[bool, str]:
    """Whether a line begins with the time and level, and the rest."""
    time, _, rest = line.partition(" ")
    if time.count(".") != 3 or not time.replace(".", "").isdigit() or rest[:1] not in _LEVELS or rest[1:2] != " ":
        return False, line
    text = rest[2:].lstrip(" ")
    part, _, more = text.partition(" ")
    return True, more.lstrip(" ") if part.isalpha() and len(part) <= 4 else text
