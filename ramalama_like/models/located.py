"""Where a model lies on this machine, whatever its name; nothing is fetched."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.record import StoredFile
from ramalama_like.reference import canonical_name
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.models.caches import Places
    from ramalama_like.models.store import Store
    from ramalama_like.record import Record
    from ramalama_like.reference import Reference


@value
class Located:
    """A model's files on this machine, the weights first, each with its path."""

    name: str
    registry: str  # transport
    files: tuple[StoredFile, ...]
    why: str


def find_here(reference: Reference, store: Store, places: Places) -> tuple[Record, str] | None:
    """The record of a name, in our store or in another program's, and where that is. Raises AppError."""
    record = store.find_record(canonical_name(reference))
    if record:
        return record, "in the store"
    from ramalama_like.models.caches import find_elsewhere

    found = find_elsewhere(reference, places)
    return (found.record, f"in the store of {found.store}, where it is used in place") if found else None


def with_paths(record: Record, store: Store) -> tuple[StoredFile, ...]:
    """A record's files, each with its path; those in place are what they were, or ValueProblem tells."""
    from ramalama_like.models.inventory import problem_of

    problem = problem_of(record)
    if problem:
        raise ValueProblem(f"{record.name}: {problem}", "pull it again")
    return tuple(file if file.path else replace(file, path=store.blob_path(file.sha256)) for file in record.files)
