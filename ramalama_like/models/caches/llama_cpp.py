"""llama.cpp's own cache: flat files ``OWNER_REPOSITORY_FILE.gguf``, and a manifest for each name that was asked for.

``manifest=OWNER=REPOSITORY=TAG.json`` tells which files the name meant (builds of 2025 write it). Newer ones use
the cache of Hugging Face's library instead.
"""

from __future__ import annotations

from ramalama_like.listing import MODEL, PROJECTOR, SHARD
from ramalama_like.models.caches.files import file_in_place, make_record, names_in, read_json
from ramalama_like.models.sources.file import split_part
from ramalama_like.reference import canonical_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.models.caches import Places
    from ramalama_like.record import Record, StoredFile
    from ramalama_like.reference import Reference

NAME = "llama.cpp"


def folders(places: Places) -> tuple[str, ...]:
    """Where the cache is: LLAMA_CACHE, or below the user's cache folder, on a Mac in the Library."""
    named = places.variable("LLAMA_CACHE")
    return (named.rstrip("/"),) if named else (f"{places.cache}/llama.cpp", f"{places.home}/Library/Caches/llama.cpp")


def find(folder: str, reference: Reference) -> Record | None:
    """The model that a name of Hugging Face means, where the cache knows the name. The revision is not known."""
    if reference.transport != "huggingface" or not reference.repository or reference.revision:
        return None
    if reference.path:
        return _record(folder, reference.repository, (reference.path, ""), canonical_name(reference))
    for tag in (reference.tag, reference.tag.upper()) if reference.tag else ("latest",):
        files = _manifest(folder, f"manifest={reference.repository.replace('/', '=')}={tag}.json")
        if files:
            return _record(folder, reference.repository, files, canonical_name(reference))
    return None


def every(folder: str) -> Iterator[Record]:
    """Each name that the cache knows, and each file that belongs to none."""
    named: set[str] = set()
    names = names_in(folder)
    for name in names:
        parts = name.removesuffix(".json").split("=")
        files = _manifest(folder, name) if len(parts) == 4 and parts[0] == "manifest" else None
        if not files:
            continue
        repository, tag = f"{parts[1]}/{parts[2]}", parts[3]
        record = _record(folder, repository, files, f"hf://{repository}" + (f":{tag}" if tag != "latest" else ""))
        if record:
            named.update(file.path for file in record.files)
            yield record
    for name in names:
        split = split_part(name)
        if not name.lower().endswith(".gguf") or "mmproj" in name.lower() or (split and split[1] > 1):
            continue
        record = make_record(f"file://{folder}/{name}", _parts(folder, name))
        if record and record.files[0].path not in named:
            yield record


def _manifest(folder: str, name: str) -> tuple[str, str] | None:
    """The names of the model's file and of its projector (or nothing) in the repository."""
    manifest = read_json(f"{folder}/{name}")
    if not isinstance(manifest, dict):
        return None
    model, projector = (
        each.get("rfilename") if isinstance(each, dict) else None
        for each in (manifest.get("ggufFile"), manifest.get("mmprojFile"))
    )
    return (model, projector if isinstance(projector, str) else "") if isinstance(model, str) and model else None


def _record(folder: str, repository: str, files: tuple[str, str], name: str) -> Record | None:
    model, projector = (f"{repository}/{file}".replace("/", "_") if file else "" for file in files)
    found = _parts(folder, model)
    if projector:
        found.append(file_in_place(f"{folder}/{projector}", PROJECTOR))
    return make_record(name, found)


def _parts(folder: str, name: str) -> list[StoredFile | None]:
    split = split_part(name)
    if not split:
        return [file_in_place(f"{folder}/{name}", MODEL)]
    stem, _, count = split
    return [file_in_place(f"{folder}/{stem}-{number:05}-of-{count:05}.gguf", SHARD if number > 1 else MODEL)
            for number in range(1, min(count, 1000) + 1)]  # fmt: skip
