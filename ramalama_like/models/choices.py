"""Which files of a repository are a model. Pure: names and sizes in, a choice or an explained refusal out.

Files are told apart first (weights, parts, projectors, drafts …) and only then chosen from, so that no projector is
ever taken for a small quantization. A quantization is compared as a whole: Q4_K_M is neither Q4_K_M_L nor UD-Q4_K_M.
What cannot be decided is refused, with everything that there is and how to name it.
"""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.errors import ValueProblem
from ramalama_like.listing import (
    ADAPTER,
    DRAFT,
    IMATRIX,
    LAYER,
    MODEL,
    OTHER,
    PROJECTOR,
    SHARD,
    TEMPLATE,
    WEIGHTS,
    Choice,
    Listing,
    RemoteFile,
)
from ramalama_like.models.names import nearest, size_text
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ramalama_like.reference import Reference

MOST_SHOWN = 12  # of the choices in a hint: more fill the screen
MOST_PARTS = 1000
_UNREADABLE = (".bin", ".pt", ".pth", ".onnx", ".h5", ".ggml", ".npz", ".llamafile")  # weights in other forms
_SEPARATORS = "-. +()[]@"
_ranks: dict[str, int] = {}
_ROLES = (MODEL, SHARD, PROJECTOR, DRAFT, ADAPTER, TEMPLATE)


@value
class Candidate:
    """One model that a repository offers: its own files, without projector."""

    quantization: str  # as its name spells it, with the word before it that belongs to it; may be empty
    files: tuple[RemoteFile, ...]  # in the order of their parts, each with its role
    missing: tuple[str, ...] = ()  # paths of parts that should be there
    pieces: bool = False  # cut with a tool for files: nothing can read it before it is joined

    @property
    def usable(self) -> bool:
        """Whether it is whole."""
        return not self.missing and not self.pieces

    @property
    def size_bytes(self) -> int:
        """Bytes of all files; -1 where the hub does not tell."""
        return -1 if any(file.size_bytes < 0 for file in self.files) else sum(file.size_bytes for file in self.files)


class NoChoice(ValueProblem):
    """What was asked for cannot be decided, or is not there. ``candidates`` is what there is, the best first."""

    def __init__(self, message: str, hint: str, candidates: tuple[Candidate, ...]) -> None:
        super().__init__(message, hint)
        self.candidates = candidates


# Names.


@value
class Part:
    """A part of a model that is several files."""

    stem: str  # path without the ending that tells the part
    number: int  # from 1
    count: int  # 0: the name does not tell
    pieces: bool = False  # of a single GGUF file, cut with a tool for files


def part_of(path: str) -> Part | None:
    """What a name says about parts: ``x-00001-of-00003.gguf`` (also safetensors), ``x.gguf.part1of2``; None if nothing.

    Numbers have five digits in files that llama.cpp reads.
    """
    stem, dot, ending = path.rpartition(".")
    head, mark, count = stem.rpartition("-of-")
    if dot and mark and ending.lower() in ("gguf", "safetensors"):
        base, dash, number = head.rpartition("-")
        if dash and len(number) == len(count) == 5 and _is_number(number + count) and 1 <= int(number) <= int(count):
            return Part(base, int(number), int(count))
    place = path.lower().rfind(".gguf")
    return _piece(path, place + 5) if place >= 0 and "/" not in path[place:] else None


def _piece(path: str, end: int) -> Part | None:
    tail = path[end:].lower()
    if tail[:1] not in (".", "-", "_") or len(tail) > 16:
        return None
    for word in ("part", "split"):
        if tail[1:].startswith(word):
            number, mark, count = tail[1 + len(word) :].lstrip("-_.").partition("of")
            if _is_number(number) and (not mark or _is_number(count)) and len(number + count) < 8:
                return Part(path[:end], int(number) + (0 if mark else 1), int(count) if mark else 0, pieces=True)
            if len(number) in (1, 2) and number.isascii() and number.isalpha() and not mark:
                return Part(path[:end], sum((ord(letter) - 96) * 26**place for place, letter in
                                            enumerate(reversed(number))), 0, pieces=True)  # fmt: skip
    return None


def quantization_of(path: str) -> str:
    """The quantization that a path names, as it is spelled there; that of the folder where the file's name has none."""
    part = part_of(path)
    stem = part.stem if part else path
    for name in reversed(stem.split("/")):
        found = _quantization_in(name[:-5] if name.lower().endswith(".gguf") else name)
        if found:
            return found
    return ""


def _quantization_in(name: str) -> str:
    words = _words(name)
    for place in range(len(words) - 1, -1, -1):
        found = _known_ending(words[place])
        if not found:
            continue
        before = words[place - 1] if place and found == words[place] else ""
        known = {prefix.lower() for prefix in load_table("quantizations")["prefixes"]}
        return f"{before}-{found}" if before.lower() in known else found
    return ""


def _words(name: str) -> list[str]:
    for separator in _SEPARATORS:
        name = name.replace(separator, "\n")
    return [word for word in name.split("\n") if word]


def _known_ending(word: str) -> str:
    """The longest ending of a word, from an underscore on, that is a quantization or looks like one."""
    order = _order()
    pieces = word.split("_")
    for start in range(len(pieces)):
        ending = "_".join(pieces[start:])
        if ending.upper() in order or _looks_like_one(ending.upper()):
            return ending
    return ""


def _looks_like_one(word: str) -> bool:
    """Whether an unknown word is made like the names of quantizations: letters, Q, digit, underscore."""
    head, line, _ = word.partition("_")
    kind, digits = head.rstrip("0123456789"), len(head) - len(head.rstrip("0123456789"))
    return bool(line) and kind in ("Q", "IQ", "TQ") and digits == 1 and word.isascii()


def _order() -> Mapping[str, int]:
    if not _ranks:  # asked for each word of each name
        _ranks.update({name: place for place, name in enumerate(load_table("quantizations")["order"])})
    return _ranks


def _bare(quantization: str) -> str:
    """Without the word before it, in capitals."""
    return quantization.rpartition("-")[2].upper()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


# What is what.


def classify(paths: Iterable[str]) -> dict[str, str]:
    """The role of each file of a repository, by the names alone."""
    paths = list(paths)
    roles = {path: _role(path) for path in paths}
    if MODEL not in roles.values():
        # A repository of nothing but drafts, or of adapters, offers these.
        for role in (DRAFT, ADAPTER):
            some = [path for path in paths if roles[path] == role and path.lower().endswith(".gguf")]
            if some and (role == DRAFT or _looks_merged(some)):
                roles.update({path: _weights_role(path) for path in some})
                break
    return roles


def _role(path: str) -> str:
    name = path.rpartition("/")[2].lower()
    table = load_table("quantizations")
    if name.endswith((".jinja", ".jinja2")) or name in ("chat_template.json", "chat_template"):
        return TEMPLATE
    if name.endswith(".safetensors"):
        return ADAPTER if name.startswith("adapter_") or "lora" in _lower_words(name) else WEIGHTS
    is_gguf = name.endswith(".gguf") or ".gguf" in name
    if "imatrix" in name and (name.startswith("imatrix") or not _quantization_in(_stem(name))):
        return IMATRIX
    if not is_gguf:
        return IMATRIX if name.endswith((".imatrix", "imatrix.dat")) else OTHER
    part = part_of(path)
    if not name.endswith(".gguf") and part is None:
        return OTHER
    if "mmproj" in name:
        return PROJECTOR
    if name.startswith(tuple(table["draft_beginnings"])) or "draft" in _lower_words(name):
        return DRAFT
    words = set(_lower_words(name))
    if words & {"lora", "qlora", "adapter"} and "merged" not in words:
        quantization = _bare(quantization_of(path))
        if quantization in table["adapters"]:
            return ADAPTER
    return _weights_role(path)


def _weights_role(path: str) -> str:
    part = part_of(path)
    return SHARD if part is not None and (part.pieces or part.number > 1) else MODEL


def _looks_merged(paths: Sequence[str]) -> bool:
    # Adapters come in one precision or two; models that were merged with one come in many.
    return len({_bare(quantization_of(path)) for path in paths} - {"F16", "BF16", "F32", ""}) > 1


def _lower_words(name: str) -> list[str]:
    return _words(name.lower().replace("_", "-"))


def _stem(name: str) -> str:
    return name[: name.rfind(".gguf")] if ".gguf" in name else name


def with_roles(listing: Listing) -> tuple[RemoteFile, ...]:
    """The files of a listing, each with its role: the hub's word where it gave one, else by the names."""
    roles = classify(file.path for file in listing.files)
    return tuple(file if file.role else replace(file, role=roles[file.path]) for file in listing.files)


def candidates_of(listing: Listing) -> tuple[Candidate, ...]:
    """Every model in GGUF that a listing offers, the one that is taken by default first."""
    return _candidates(with_roles(listing))


def _candidates(files: Iterable[RemoteFile]) -> tuple[Candidate, ...]:
    groups: dict[tuple[str, int, bool], dict[int, RemoteFile]] = {}
    for file in files:
        if file.role not in (MODEL, SHARD) or ".gguf" not in file.path.lower():
            continue
        part = part_of(file.path)
        key = (part.stem, part.count, part.pieces) if part else (file.path, 1, False)
        groups.setdefault(key, {}).setdefault(part.number if part else 1, file)
    found = [_candidate(*key, members) for key, members in groups.items()]
    return tuple(sorted(found, key=_rank))


def _candidate(stem: str, count: int, pieces: bool, members: Mapping[int, RemoteFile]) -> Candidate:
    ordered = tuple(members[number] for number in sorted(members))
    quantization = quantization_of(ordered[0].path)
    missing: tuple[str, ...] = ()
    if count > 1 and not pieces:
        ending = ordered[0].path[-5:]
        lacking = [number for number in range(1, min(count, MOST_PARTS) + 1) if number not in members]
        missing = tuple(f"{stem}-{number:05}-of-{count:05}{ending}" for number in lacking)
        ordered = tuple(replace(file, role=SHARD if place else MODEL) for place, file in enumerate(ordered))
    return Candidate(quantization, ordered, missing, pieces)


def _rank(candidate: Candidate) -> tuple[int, bool, str, int, str]:
    order = _order()
    quantization = candidate.quantization
    place = order.get(_bare(quantization), len(order) if quantization else -1)
    return (place, "-" in quantization, quantization.upper(), len(candidate.files), candidate.files[0].path)


# Choosing.


def choose(listing: Listing, reference: Reference, preference: Sequence[str] = ()) -> Choice:
    """The files that a name means.

    ``preference`` names quantizations that are to be taken before those of the table where nobody names one.
    Raises NoChoice where there is nothing of the kind, or more than one.
    """
    if listing.files and all(file.role for file in listing.files):
        return _as_told(listing)
    files = with_roles(listing)
    path = reference.path.strip("/")
    if path:
        exact = [file for file in files if file.path == path]
        if exact:
            return _named_file(listing, files, exact[0])
        inside = tuple(file for file in files if file.path.startswith(f"{path}/"))
        if not inside:
            raise _no_such_file(listing, files, path)
    else:
        inside = files
    candidates = _candidates(inside)
    wanted = "" if reference.tag.lower() == "latest" else reference.tag
    if wanted.lower() == WEIGHTS or (not candidates and any(file.role == WEIGHTS for file in inside)):
        return _safetensors(listing, inside, wanted)
    if not candidates:
        raise _nothing(listing, inside)
    found = _matching(candidates, wanted) if wanted else _preferred(candidates, preference)
    if not found:
        raise _absent(listing, candidates, wanted)
    if len(found) > 1:
        raise _ambiguous(listing, found)
    return _complete(listing, files, found[0], candidates)


def every_choice(listing: Listing) -> tuple[Choice, ...]:
    """Each model that is whole in a listing, with its projector, by the path of its first file."""
    files = with_roles(listing)
    candidates = _candidates(files)
    whole = [_complete(listing, files, each, candidates) for each in candidates if each.usable]
    return tuple(sorted(whole, key=lambda choice: choice.files[0].path))


def _as_told(listing: Listing) -> Choice:
    """What a registry says by itself."""
    if any(file.role == LAYER for file in listing.files):  # of an image: all of them, in their order
        return Choice(listing, listing.files, "")
    files = [file for file in listing.files if file.role in _ROLES]
    if not any(file.role in (MODEL, WEIGHTS) for file in listing.files):
        raise NoChoice(f"{listing.name}: holds no model", "check the name", ())
    if not any(file.role == MODEL for file in files):
        files = list(listing.files)
    order = (*_ROLES, WEIGHTS)
    files.sort(key=lambda file: order.index(file.role) if file.role in order else len(order))
    return Choice(listing, tuple(files), quantization_of(files[0].path))


def _matching(candidates: Sequence[Candidate], wanted: str) -> tuple[Candidate, ...]:
    """The candidates whose quantization is this one, as a whole; else those that end with it as a word of their own."""
    name = wanted.upper()
    for test in (
        lambda candidate: candidate.quantization.upper() == name,
        lambda candidate: _bare(candidate.quantization) == name,
        lambda candidate: _ends_with(candidate, name),
    ):
        found = tuple(candidate for candidate in candidates if test(candidate))
        if found:
            return _whole_first(found)
    return ()


def _ends_with(candidate: Candidate, name: str) -> bool:
    part = part_of(candidate.files[0].path)
    stem = _stem_of(part.stem if part else candidate.files[0].path).upper()
    # An underscore is no border: K_M is not the name of Q4_K_M.
    return stem == name or stem.endswith(tuple(f"{border}{name}" for border in "-./"))


def _stem_of(path: str) -> str:
    return path[:-5] if path.lower().endswith(".gguf") else path


def _preferred(candidates: Sequence[Candidate], preference: Sequence[str]) -> tuple[Candidate, ...]:
    """What is taken where nobody names a quantization."""
    usable = [candidate for candidate in candidates if candidate.usable] or list(candidates)
    for name in preference:
        found = _matching(usable, name)
        if found:
            return found
    first = usable[0].quantization.upper()
    return _whole_first([candidate for candidate in usable if candidate.quantization.upper() == first])


def _whole_first(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Of the same model once in one file and once in parts the one that is whole, then the one in one file; of the
    very same bytes in several places one."""
    by_name: dict[str, list[Candidate]] = {}
    for candidate in found:
        part = part_of(candidate.files[0].path)
        stem = _stem_of(part.stem if part else candidate.files[0].path)
        by_name.setdefault(stem.rpartition("/")[2].lower(), []).append(candidate)
    kept: dict[object, Candidate] = {}
    for alike in by_name.values():
        best = min((not each.usable, len(each.files)) for each in alike)
        for each in alike:
            if (not each.usable, len(each.files)) == best:
                sums = tuple(file.sha256 for file in each.files)
                kept.setdefault(sums if all(sums) else each, each)
    return tuple(sorted(kept.values(), key=_rank))


def _named_file(listing: Listing, files: Sequence[RemoteFile], file: RemoteFile) -> Choice:
    """A file that was named by its path: with its other parts and its projector where it is a model."""
    if file.role == DRAFT:  # a whole model in itself
        file = replace(file, role=_weights_role(file.path))
        files = [file if other.path == file.path else other for other in files]
    if file.role not in (MODEL, SHARD):
        return Choice(listing, (file,), quantization_of(file.path))
    candidates = _candidates(files)
    found = next(candidate for candidate in candidates if any(each.path == file.path for each in candidate.files))
    if found.pieces:  # one piece, by its name: people join them by themselves
        return Choice(listing, (file,), found.quantization)
    return _complete(listing, files, found, candidates)


def _complete(listing: Listing, files: Sequence[RemoteFile], found: Candidate, candidates: Sequence[Candidate]
              ) -> Choice:  # fmt: skip
    """A candidate with its projector. Raises NoChoice where it is not whole."""
    name = found.quantization or found.files[0].path
    others = tuple(candidate for candidate in candidates if candidate.usable)
    if found.pieces:
        what = f"{name} is cut into {len(found.files)} pieces that have to be joined first"
        raise NoChoice(f"{_repository_of(listing)}: {what}",
                       _hint_of(listing, others) or f"fetch the pieces by their names, such as {found.files[0].path}",
                       others)  # fmt: skip
    if found.missing:
        shown = ", ".join(path.rpartition("/")[2] for path in found.missing[:2])
        more = f" and {len(found.missing) - 2} more" if len(found.missing) > 2 else ""
        raise NoChoice(f"{_repository_of(listing)}: the repository lacks parts of {name}: {shown}{more}",
                       _hint_of(listing, others) or "ask its owner, or use another repository", others)  # fmt: skip
    projector = _projector_for(found, files)
    return Choice(listing, (*found.files, *projector), found.quantization)


def _projector_for(found: Candidate, files: Sequence[RemoteFile]) -> tuple[RemoteFile, ...]:
    """The projector that belongs to a model: nearest by folder, then by name, then of the best precision."""
    folders = found.files[0].path.split("/")[:-1]
    near: dict[int, list[RemoteFile]] = {}
    for file in files:
        above = file.path.split("/")[:-1]
        if file.role == PROJECTOR and part_of(file.path) is None and above == folders[: len(above)]:
            near.setdefault(len(above), []).append(file)
    if not near:  # in a folder of its own
        near = {0: [file for file in files if file.role == PROJECTOR and part_of(file.path) is None]}
    candidates = near[max(near)]
    base = _base_name(found.files[0].path)
    bases = {_base_name(file.path) for file in files if file.role == MODEL}
    named = [file for file in candidates if _base_name(file.path) == base]
    strange = [file for file in candidates if _base_name(file.path) in bases - {base}]
    fitting = named or [file for file in candidates if file not in strange]
    order = {name: place for place, name in enumerate(load_table("quantizations")["projectors"])}
    return tuple(sorted(fitting, key=lambda file: (order.get(_bare(quantization_of(file.path)), len(order)),
                                                   len(file.path), file.path))[:1])  # fmt: skip


def _base_name(path: str) -> str:
    """What a file's name says about the model: without projector, quantization and part."""
    part = part_of(path)
    name = _stem_of(part.stem if part else path).rpartition("/")[2]
    quantization = _quantization_in(name)
    low = name.lower()
    if quantization:
        low = low[: low.rfind(quantization.lower())]
    return "-".join(word for word in _lower_words(low) if word not in ("mmproj", "model"))


def _safetensors(listing: Listing, files: Sequence[RemoteFile], wanted: str) -> Choice:
    """The weights of one folder, with what belongs to them; the folder with the fewest parts above it."""
    weights = [file for file in files if file.role == WEIGHTS]
    if not weights:
        raise NoChoice(f"{listing.name}: holds no safetensors", "leave out :safetensors", ())
    if wanted and wanted.lower() != WEIGHTS:
        raise NoChoice(f"{listing.name}: holds safetensors, which have no quantization {wanted}",
                       f"leave out :{wanted}, or look for a repository with GGUF files", ())  # fmt: skip
    folder = min((file.path.rpartition("/")[0] for file in weights), key=lambda path: (path.count("/") + bool(path),
                                                                                      path))  # fmt: skip
    mine = [file for file in weights if file.path.rpartition("/")[0] == folder]
    # Some repositories hold the same weights once more, in the layout of their makers.
    usual = [file for file in mine if not file.path.rpartition("/")[2].startswith("consolidated")]
    mine = sorted(usual or mine, key=lambda file: file.path)
    missing = _missing_parts(mine)
    if missing:
        raise NoChoice(f"{listing.name}: the repository lacks parts of its weights: {missing}",
                       "ask its owner, or use another repository", ())  # fmt: skip
    endings = tuple(load_table("quantizations")["safetensors_companions"])
    beside = [file for file in files if file.path.rpartition("/")[0] == folder and file.role in (OTHER, TEMPLATE)
              and file.path.lower().endswith(endings)]  # fmt: skip
    return Choice(listing, (*mine, *sorted(beside, key=lambda file: file.path)), "")


def _missing_parts(files: Sequence[RemoteFile]) -> str:
    groups: dict[tuple[str, int], set[int]] = {}
    for file in files:
        part = part_of(file.path)
        if part is not None:
            groups.setdefault((part.stem, part.count), set()).add(part.number)
    for (stem, count), numbers in groups.items():
        for number in range(1, min(count, MOST_PARTS) + 1):
            if number not in numbers:
                return f"{stem.rpartition('/')[2]}-{number:05}-of-{count:05}.safetensors"
    return ""


# Refusals.


def _absent(listing: Listing, candidates: tuple[Candidate, ...], wanted: str) -> NoChoice:
    return NoChoice(f"{_repository_of(listing)}: has no {wanted}", _hint_of(listing, candidates), candidates)


def _ambiguous(listing: Listing, found: tuple[Candidate, ...]) -> NoChoice:
    quantization = found[0].quantization
    what = f"{len(found)} models in {quantization}" if quantization else f"{len(found)} models"
    return NoChoice(f"{_repository_of(listing)}: has {what}", _hint_of(listing, found, by_path=True), found)


def _nothing(listing: Listing, files: Sequence[RemoteFile]) -> NoChoice:
    roles = {file.role for file in files}
    kinds = {PROJECTOR: "projectors", ADAPTER: "adapters", DRAFT: "drafts", IMATRIX: "importance matrices"}
    only = [word for role, word in kinds.items() if role in roles]
    others = sorted({file.path.rpartition(".")[2].lower() for file in files
                     if file.path.lower().endswith(_UNREADABLE)
                     })  # fmt: skip
    if only:
        return NoChoice(f"{listing.name}: holds no model, only {' and '.join(only)}", "name the file that you want", ())
    if others:
        return NoChoice(f"{listing.name}: holds neither GGUF files nor safetensors, only .{', .'.join(others)}",
                        "look for a repository whose name ends with -GGUF", ())  # fmt: skip
    return NoChoice(f"{listing.name}: holds no model", "look for a repository whose name ends with -GGUF", ())


def _no_such_file(listing: Listing, files: Sequence[RemoteFile], path: str) -> ValueProblem:
    candidates = _candidates(files)
    near = nearest(path, [file.path for file in files])
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = _hint_of(listing, candidates, by_path=True) or "check the name"
    return NoChoice(f"{_repository_of(listing)}: there is no file or folder {path} in the repository", hint, candidates)


def _hint_of(listing: Listing, candidates: Sequence[Candidate], *, by_path: bool = False) -> str:
    """What there is, with sizes, and how to name one of it. Empty where there is nothing."""
    if not candidates:
        return ""
    counts: dict[str, int] = {}
    for candidate in candidates:
        counts[candidate.quantization.upper()] = counts.get(candidate.quantization.upper(), 0) + 1
    texts, names = [], []
    for candidate in candidates:
        quantization = candidate.quantization
        plain = bool(quantization) and counts[quantization.upper()] == 1 and not by_path
        name = quantization if plain else candidate.files[0].path
        size = size_text(candidate.size_bytes)
        if not candidate.usable:
            size = "in pieces" if candidate.pieces else "incomplete"
        texts.append(f"{name} ({size})" if size else name)
        names.append(f":{quantization}" if plain else f"/{candidate.files[0].path}")
    more = len(texts) - MOST_SHOWN
    shown = ", ".join(texts[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
    there = "there are" if len(texts) > 1 else "there is"
    return f"{there} {shown}; write {_repository_of(listing)}{names[0]}"


def _repository_of(listing: Listing) -> str:
    """The canonical name without path and tag: what a choice is written behind."""
    scheme, mark, rest = listing.name.partition("://")
    if not mark:
        return listing.name
    owner, slash, tail = rest.partition("/")
    return f"{scheme}{mark}{owner}{slash}{tail.partition('/')[0].partition(':')[0]}"
