"""Short names of models: which there are, what each stands for, and which file says so.

The dialect's files are read (``shortnames.conf``, a table ``[shortnames]``, with or without quotes), and below them
lies the list that comes with this program. The user's files count more than the system's. A short name may stand for
another one. Case matters, as in file names. Nothing is read from the current folder.
"""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

FILE = "shortnames.conf"
OWN = "built in"  # in place of a file, for those that come with this program
SECTION = "shortnames"


@value
class Shortname:
    """One short name."""

    name: str
    target: str
    source: str  # the file that says so, or OWN


@value
class Shortnames:
    """All that count, by name, and what is wrong with their files."""

    names: dict[str, Shortname]
    files: tuple[str, ...] = ()  # that were read, the strongest first
    warnings: tuple[str, ...] = ()

    def expand(self, text: str) -> str:
        """What a text stands for; the text itself where it is no short name. Raises ValueProblem for a circle."""
        passed: list[str] = []
        while text in self.names:
            passed.append(text)
            text = self.names[text].target
            if text in passed:
                chain = " → ".join((*passed, text))
                raise ValueProblem(f"{passed[0]}: this short name leads round in circles: {chain}",
                                   f"change {self.names[passed[-1]].source}")  # fmt: skip
        return text

    def by_model(self) -> dict[str, str]:
        """The first short name, in alphabetical order, of each model by its canonical name."""
        from ramalama_like.reference import canonical_name, parse_reference

        found: dict[str, str] = {}
        for name in sorted(self.names):
            try:
                found.setdefault(canonical_name(parse_reference(self.expand(name))), name)
            except ValueProblem:  # who uses it is told
                continue
        return found

    def near(self, text: str) -> list[str]:
        """Up to three short names that look like a text, the nearest first."""
        from difflib import get_close_matches

        return get_close_matches(text, self.names, 3, 0.6)


def read_shortnames(paths: Iterable[str]) -> Shortnames:
    """The short names of these files, the strongest first, and of this program. Files that are not there do not
    matter; what is wrong in one becomes a warning, since it must not keep anybody from using other names."""
    from ramalama_like.toml_files import read_text

    found: dict[str, Shortname] = {}
    files, warnings = [], []
    for path in paths:
        try:
            text = read_text(path)
        except ValueProblem as problem:
            warnings.append(problem.message)
            continue
        if text is None:
            continue
        files.append(path)
        for name, target in parse_shortnames(text, path, warnings).items():
            found.setdefault(name, Shortname(name, target, path))
    for name, target in load_table("shortnames")["names"].items():
        found.setdefault(name, Shortname(name, target, OWN))
    return Shortnames(found, tuple(files), tuple(warnings))


def parse_shortnames(text: str, path: str, warnings: list[str]) -> dict[str, str]:
    """The short names in the text of a file; ``warnings`` gets a line for each that is none. The last one counts."""
    found: dict[str, str] = {}
    section = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            section = line[1:].partition("]")[0].strip()
            continue
        if section != SECTION:
            continue
        name, rest = _word(line, "=")
        target, more = _word(rest[1:].strip(), "") if rest[:1] == "=" else ("", "")
        if not name or not target or (more and more[0] not in "#;"):
            warnings.append(f'{path}:{number}: is no line like "name" = "hf://owner/repository"')
            continue
        found[name] = target
    return found


def _word(text: str, end: str) -> tuple[str, str]:
    """The word at the beginning, in quotes or up to ``end``, and what follows it."""
    if text[:1] in ("'", '"'):
        word, quote, rest = text[1:].partition(text[0])
        return (word, rest.strip()) if quote else ("", text)
    if not end:
        return text.partition(" #")[0].partition(" ;")[0].strip(), ""
    word, mark, rest = text.partition(end)
    return word.strip(), mark + rest
