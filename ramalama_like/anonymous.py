"""Host facts without what identifies a person or a machine, so that they can be attached to a report of a fault.

The same facts must decide the same afterwards, so nothing is simply removed: a unique id becomes another one of the
same form, everywhere the same; and two texts that differ still differ.

What goes: unique ids of cards (NVIDIA's UUIDs, AMD's unique_id), serial numbers, names of users and of the host, home
folders, the kernel's local version, file names in notes, and where the facts were read; and of CDI specifications,
which people write too, every name, path and file that no generator or kernel would have given. What stays: numeric
groups of device nodes, which are the system's own and decide who may open them.

What replaces a text is a number in the order of the file, not computed from the text: nothing can be guessed back, or
recognized by somebody who knows the card.
"""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.facts import facts_from_plain, facts_to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from re import Match

    from ramalama_like.facts import HostFacts, Private

# NVIDIA's GPU-<UUID>, MIG-<UUID> and MIG-GPU-<UUID>/1/0; a bare UUID; AMD's GPU-<16 digits>.
UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
UNIQUE_ID = rf"(?:{UUID}|(?<=GPU-)[0-9a-fA-F]{{16}}(?![0-9a-fA-F]))"
# A word of ten or more letters and digits with six or more digits in it: no model of a card is called so.
SERIAL = r"(?<![0-9A-Za-z])(?=(?:[A-Za-z]*[0-9]){6})[0-9A-Za-z]{10,}(?![0-9A-Za-z])"
HOME = r"(?:(?<=/home/)|(?<=/Users/))[^/\s:,;'\"]+"
NODE_FIELDS = ("render_node", "card_node", "node")
PREFIXES = {"gpu", "mig"}  # of ids, which selections look at
# How the sentences in the notes of probing go on behind the path.
NOTES = ("is malformed", "is larger than", "does not hold a number", "cannot be read", "leads out of the folder",
         "is no device specification")  # fmt: skip
KERNEL_FOLDERS = ("/proc/", "/sys/")  # the names below them are the kernel's own
NAMED_FOLDERS = ("/sys/fs/cgroup/", "/etc/cdi/", "/var/run/cdi/", "/run/cdi/", "/dev/")  # and here anybody's
# What generators write into CDI specifications, and where.
GENERIC_NAME = (
    rf"all|(?:gpu|mig|card|renderD|npu)?[0-9]{{1,4}}(?:[:.][0-9]{{1,4}})*|(?:MIG-)?(?:GPU-)?{UUID}(?:/[0-9/]+)?"
)
GENERIC_FILE = r"(?:nvidia|amd|intel|huawei|ascend|mthreads)(?:-?(?:container-toolkit|gpu|npu|pci|ctk))*"
GENERIC_KIND = r"(?:[a-z]+\.)?(?:nvidia|amd|intel|huawei|mthreads|docker|google)\.com/[a-z]+"
GENERIC_PATH = (
    r"/dev/(?:(?:dri|accel|char|nvidia-caps|nvidia-caps-imex-channels|nvgpu/igpu[0-9]+)/)?"
    r"(?:card|renderD|accel|nv|kfd|dxg|davinci|devmm|hisi|mtgpu|host1x|channel|ctrl|as|cap|prof|power|sched)"
    r"[a-z_-]{0,16}[0-9.]{0,8}|/dev/dri/by-path/pci-[0-9a-f:.]+-(?:card|render)"
)


def anonymize(facts: HostFacts, private: Private) -> HostFacts:
    """The same facts without names and ids. ``private`` holds the words that may not appear."""
    plain = facts_to_plain(facts)
    plain["root"] = ""
    plain["kernel"] = _kernel(facts.kernel)
    plain["notes"] = list(dict.fromkeys(_note(note) for note in facts.notes))
    scrub = _Scrubber(private)
    scrub.rename_odd(facts)
    return facts_from_plain(scrub.tree(plain))


class _Scrubber:
    """Replaces texts, the same one always by the same one and different ones by different ones."""

    def __init__(self, private: Private) -> None:
        import re

        self._known = _vocabulary()
        self._done: dict[str, str] = {}
        self._taken: set[str] = set()
        names = {name for name in private.names if name.lower() not in self._known | PREFIXES}
        # A name of three letters is part of too many words that mean something else.
        patterns = [re.escape(name) if len(name) > 3 else rf"(?<![0-9A-Za-z]){re.escape(name)}(?![0-9A-Za-z])"
                    for name in _longest_first(names)]  # fmt: skip
        homes = [re.escape(home.rstrip("/")) for home in _longest_first(private.homes)]
        # One pass, so that nothing is replaced twice; what stands first here wins.
        rules = {"id": [UNIQUE_ID], "serial": [SERIAL], "home": homes, "user": [HOME], "name": patterns}
        self._ids: dict[str, int] = {}  # their numbers
        every = (f"(?P<{kind}>{'|'.join(parts)})" for kind, parts in rules.items() if parts)
        self._pattern = re.compile("|".join(every), re.IGNORECASE)

    def rename_odd(self, facts: HostFacts) -> None:
        """Give new names to what only people have named, wherever it occurs."""
        import re

        # Where a text also tells of something else, that counts.
        elsewhere = set(_texts(facts_to_plain(facts), but=("cdi", "nodes", "notes", "root", *NODE_FIELDS)))
        elsewhere.discard(facts.podman_machine)  # which a Mac's GPU has for its driver
        cards = [*facts.gpus, *facts.npus]
        paths = [getattr(card, field, "") for card in cards for field in NODE_FIELDS]
        paths += [path for spec in facts.cdi for path in (*spec.device_nodes, *spec.missing)]
        paths += [node.path for node in facts.nodes]
        odd: list[tuple[str, str]] = []
        for spec in facts.cdi:
            odd += [(name, "device-{}") for name in spec.names if not re.fullmatch(GENERIC_NAME, name, re.IGNORECASE)]
            if not re.fullmatch(GENERIC_KIND, spec.kind):
                odd.append((spec.kind, "vendor.example/kind-{}"))
            folder, _, file = spec.file.rpartition("/")
            stem, dot, ending = file.rpartition(".")
            if not re.fullmatch(GENERIC_FILE, stem or file):
                ending = f"{dot}{ending}" if ending in ("json", "yaml", "yml") else ""
                odd.append(
                    (spec.file, (f"{folder}/" if f"{folder}/" in NAMED_FOLDERS else "/cdi/") + "spec-{}" + ending)
                )
        odd += [(path, "/dev/other-{}" if path.startswith("/dev/") else "/other/{}")
                for path in paths if path.startswith("/") and not re.fullmatch(GENERIC_PATH, path)]  # fmt: skip
        if facts.podman_machine:
            odd.append((facts.podman_machine, "provider-{}"))
        for text, form in odd:
            if text and text not in self._known and text not in elsewhere and text not in self._done:
                self._done[text] = form.format(len(self._done) + 1)
                self._taken.add(self._done[text])

    def tree(self, item: object) -> object:
        """A tree of dicts, lists and scalars, with every text in it replaced."""
        if isinstance(item, str):
            return self.text(item)
        if isinstance(item, list):
            return [self.tree(member) for member in item]
        if isinstance(item, dict):
            return {key: self.tree(member) for key, member in item.items()}
        return item

    def _replacement(self, found: Match[str]) -> str:
        words = {"serial": "serial", "home": "/home/user", "user": "user", "name": "someone"}
        return words.get(found.lastgroup or "") or self._other_id(found[0])

    def _other_id(self, unique_id: str) -> str:
        """Another id of the same form and case. Its beginning tells it apart, since that is what people select by."""
        number = self._ids.setdefault(unique_id.lower(), len(self._ids) + 1)
        other = f"{number:08x}-0000-0000-0000-000000facade" if "-" in unique_id else f"{number:08x}00facade"
        return other.upper() if unique_id == unique_id.upper() != unique_id.lower() else other

    def text(self, text: str) -> str:
        """One text."""
        if text in self._known or not text:
            return text  # a word of ours: whoever has it as a name is not told by it
        if text not in self._done:
            changed = self._pattern.sub(self._replacement, text)
            unique, number = changed, 1
            while unique in self._taken:
                number += 1
                unique = f"{changed}-{number}"
            self._taken.add(unique)
            self._done[text] = unique
        return self._done[text]


def _vocabulary() -> set[str]:
    """Words of the tables and of the probes, which decisions depend on."""
    table = load_table("accelerators")
    words = {
        "linux",
        "darwin",
        "amd64",
        "arm64",
        "s390x",
        "ppc64le",
        "toolbox",
        "container",
        "all",
        "libkrun",
        "applehv",
        *table["vendors"],
    }
    for row in table["vendors"].values():
        words |= {row.get("cdi_kind", ""), *row.get("cdi_drivers", ())}
    for row in table["backends"].values():
        words.update(*row.get("drivers", {}).values())
    for pattern in table["device_nodes"]:
        words.add(pattern)
        words |= {pattern.replace("#", str(number)) for number in range(256)}
    return words


def _texts(item: object, but: tuple[str, ...] = ()) -> Iterator[str]:
    """Every text in a tree, without what stands under the keys of ``but``."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, list):
        for member in item:
            yield from _texts(member, but)
    elif isinstance(item, dict):
        for key, member in item.items():
            if key not in but:
                yield from _texts(member, but)


def _kernel(release: str) -> str:
    """The version alone: whoever builds a kernel may put a name behind it. 6.11.0-alices-laptop is 6.11.0."""
    numbers = release[: len(release) - len(release.lstrip("0123456789."))]
    return numbers.rstrip(".")


def _note(note: str) -> str:
    """Where a file is and what is wrong with it, without the file's own name and words."""
    path, _, rest = note.partition(" ")
    wrong = next((words for words in NOTES if rest.startswith(words)), "could not be used")
    for folder in NAMED_FOLDERS:
        if f"{path}/" == folder:
            return f"{path} {wrong}"
        if path.startswith(folder):
            return f"{folder}… {wrong}"
    if path.startswith(KERNEL_FOLDERS):
        return f"{path} {wrong}"
    return f"a file {wrong}"


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted({word for word in words if word.strip("/ ")}, key=lambda word: (-len(word), word))
