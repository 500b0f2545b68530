"""LM Studio's folder: ``models/OWNER/REPOSITORY/FILE.gguf``, as at Hugging Face, from where it downloads."""

from __future__ import annotations

from ramalama_like.models.caches.files import every_in_repository, find_in_repository, names_in, read_bytes
from ramalama_like.reference import canonical_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.models.caches import Places
    from ramalama_like.record import Record
    from ramalama_like.reference import Reference

NAME = "lm-studio"


def folders(places: Places) -> tuple[str, ...]:
    """Where LM Studio keeps models: below the folder that ``~/.lmstudio-home-pointer`` names, and the usual ones."""
    pointer = (read_bytes(f"{places.home}/.lmstudio-home-pointer") or b"").decode("utf-8", "replace").strip()
    usual = (f"{places.home}/.lmstudio/models", f"{places.cache}/lm-studio/models")
    return tuple(dict.fromkeys((f"{pointer}/models", *usual))) if pointer.startswith("/") else usual


def find(folder: str, reference: Reference) -> Record | None:
    """The model that a name of Hugging Face means, where all of it is here. The revision is not known."""
    if reference.transport != "huggingface" or not reference.repository or reference.revision:
        return None
    return find_in_repository(f"{folder}/{reference.repository}", reference, canonical_name(reference))


def every(folder: str) -> Iterator[Record]:
    """Each model below the folder."""
    for owner in names_in(folder):
        for repository in names_in(f"{folder}/{owner}"):
            yield from every_in_repository(f"{folder}/{owner}/{repository}", f"hf://{owner}/{repository}")
