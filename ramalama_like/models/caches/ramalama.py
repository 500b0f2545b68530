"""The store of RamaLama, beside which ours lies; nothing in it is changed.

``STORE/store/TYPE/OWNER…/NAME/refs/TAG.json`` names the files of ``snapshots/sha256-…/``; older versions wrote
``refs/TAG``, a text of the snapshot's digest and lines ``NAME---KIND``.
"""

from __future__ import annotations

import os

from ramalama_like.listing import MODEL, PROJECTOR, SHARD, TEMPLATE
from ramalama_like.models.caches.files import file_in_place, make_record, names_in, read_bytes, read_json
from ramalama_like.models.sources.file import split_part
from ramalama_like.reference import canonical_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.models.caches import Places
    from ramalama_like.record import Record, StoredFile
    from ramalama_like.reference import Reference

NAME = "ramalama"
_PREFIX = {"huggingface": "hf://", "modelscope": "ms://", "ollama": "ollama://", "oci": "oci://", "file": "file:///",
           "http": "http://", "https": "https://"}  # fmt: skip
_DEEPEST = 12
# Kinds of the references' files, of both forms, that a server can use.
_ROLES = {"gguf": MODEL, "model": MODEL, "mmproj": PROJECTOR, "chat_template": TEMPLATE, "chat": TEMPLATE}


def folders(places: Places) -> tuple[str, ...]:
    """Our own store's folder, the user's and the system's."""
    data = places.variable("XDG_DATA_HOME") or f"{places.home}/.local/share"
    named = (places.store, f"{data}/ramalama", "/var/lib/ramalama")
    return tuple(dict.fromkeys(f"{folder}/store" for folder in named if folder))


def find(folder: str, reference: Reference) -> Record | None:
    """The model that a name means, where all of it is in the store."""
    if reference.transport not in _PREFIX or not reference.repository or reference.revision:
        return None
    below = "/".join(part for part in (reference.repository, reference.path) if part)
    tag = reference.tag or "latest"
    for spelled in (tag, tag.upper()):  # quantizations are kept in capitals
        record = _read(f"{folder}/{reference.transport}/{below}", spelled, canonical_name(reference))
        if record:
            return record
    return None


def every(folder: str) -> Iterator[Record]:
    """Each reference of the store."""
    for transport, prefix in _PREFIX.items():
        yield from _below(f"{folder}/{transport}", prefix, "", _DEEPEST)


def _below(folder: str, prefix: str, name: str, depth: int) -> Iterator[Record]:
    names = names_in(folder)
    if "refs" in names and name:
        for file in names_in(f"{folder}/refs"):
            tag = file.removesuffix(".json")
            hidden = tag == "latest" and prefix not in ("ollama://", "oci://")
            if tag != file or f"{tag}.json" not in names_in(f"{folder}/refs"):
                record = _read(folder, tag, f"{prefix}{name}" + ("" if hidden else f":{tag}"))
                if record:
                    yield record
        return
    for each in names if depth else ():
        path = f"{folder}/{each}"
        if os.path.isdir(path) and not os.path.islink(path):
            yield from _below(path, prefix, f"{name}/{each}".lstrip("/"), depth - 1)


def _read(folder: str, tag: str, name: str) -> Record | None:
    reference = read_json(f"{folder}/refs/{tag}.json")
    if isinstance(reference, dict):
        digest, files = reference.get("hash"), _files(reference.get("files"))
    else:
        lines = (read_bytes(f"{folder}/refs/{tag}") or b"").decode("utf-8", "replace").splitlines()
        digest, files = lines[0] if lines else None, [_halves(line) for line in lines[1:]]
    if not isinstance(digest, str) or "/" in digest:
        return None
    snapshot = f"{folder}/snapshots/{digest.replace(':', '-')}"
    # The projector first is unknown to nobody; the model has to be.
    stored: list[StoredFile | None] = []
    for file, kind in files:
        role = _ROLES.get(kind, "")
        part = split_part(file)
        if part and part[1] > 1:
            role = SHARD  # kept as "other"
        if role and "/" not in file:
            stored.append(file_in_place(f"{snapshot}/{file}", role, file))
    if any(file is None for file in stored):
        return None
    order = {MODEL: 0, SHARD: 1, PROJECTOR: 2, TEMPLATE: 3}
    stored.sort(key=lambda file: (order[file.role], file.name) if file else (9, ""))
    return make_record(name, stored) if stored and stored[0] and stored[0].role == MODEL else None


def _files(entries: object) -> list[tuple[str, str]]:
    if not isinstance(entries, list):
        return []
    pairs = [(each.get("name"), each.get("type")) for each in entries if isinstance(each, dict)]
    return [(file, kind) for file, kind in pairs if isinstance(file, str) and isinstance(kind, str)]


def _halves(line: str) -> tuple[str, str]:
    file, _, kind = line.rpartition("---")
    return file, kind
