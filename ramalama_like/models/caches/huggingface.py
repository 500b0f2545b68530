"""The cache of Hugging Face's own library, which newer builds of llama.cpp share.

Layout (huggingface_hub's guide "Understand caching"): ``models--OWNER--NAME/refs/REVISION`` holds a commit,
``snapshots/COMMIT/`` links to the files in ``blobs/``. A file appears in a snapshot only when it is whole.
"""

from __future__ import annotations

import os

from ramalama_like.models.caches.files import every_in_repository, find_in_repository, names_in, read_bytes
from ramalama_like.reference import canonical_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.models.caches import Places
    from ramalama_like.record import Record
    from ramalama_like.reference import Reference

NAME = "huggingface"
_HEAD = "models--"


def folders(places: Places) -> tuple[str, ...]:
    """Where the cache is: HF_HUB_CACHE, below HF_HOME, or below the user's cache folder."""
    named = places.variable("HF_HUB_CACHE") or places.variable("HUGGINGFACE_HUB_CACHE")
    home = places.variable("HF_HOME") or f"{places.cache}/huggingface"
    return (named or f"{home}/hub",)


def find(folder: str, reference: Reference) -> Record | None:
    """The model that a name of Hugging Face means, where all of it is in the cache."""
    if reference.transport != "huggingface" or not reference.repository:
        return None
    repository = f"{folder}/{_HEAD}{reference.repository.replace('/', '--')}"
    commit = _commit(repository, reference.revision)
    if not commit:
        return None
    return find_in_repository(f"{repository}/snapshots/{commit}", reference, canonical_name(reference), commit)


def every(folder: str) -> Iterator[Record]:
    """Each model of each repository, in the state that its main branch had."""
    for name in names_in(folder):
        owner, _, model = name.removeprefix(_HEAD).partition("--")
        if not name.startswith(_HEAD) or not owner or not model:
            continue
        commit = _commit(f"{folder}/{name}", "")
        if commit:
            yield from every_in_repository(f"{folder}/{name}/snapshots/{commit}", f"hf://{owner}/{model}", commit)


def _commit(repository: str, revision: str) -> str:
    """The commit of a branch, a tag or the beginning of a commit, whose snapshot is there; empty where none is."""
    snapshots = names_in(f"{repository}/snapshots")
    named = read_bytes(f"{repository}/refs/{revision or 'main'}") or b""
    commit = named.decode("ascii", "replace").strip()
    if commit in snapshots:
        return commit
    if revision:
        return revision if revision in snapshots else ""
    # Fetched by commit only: the newest is what was used last.
    return max(snapshots, key=lambda each: _changed(f"{repository}/snapshots/{each}"), default="")


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
