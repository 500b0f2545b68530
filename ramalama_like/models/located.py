"""Where a model lies on this machine, whatever its name; nothing is fetched."""

from __future__ import annotations

import os.path

from ramalama_like.errors import ValueProblem
from ramalama_like.record import StoredFile
from ramalama_like.reference import plain
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.models.lookup import Lookup
    from ramalama_like.models.store import Store
    from ramalama_like.record import Record


@value
class Located:
    """A model's files on this machine, the weights first, each with its path."""

    name: str
    registry: str  # transport
    files: tuple[StoredFile, ...]
    why: str


def locate(text: str, lookup: Lookup) -> Located:
    """The files of a model that is on this machine, by any name. Raises ValueProblem where it is not."""
    from ramalama_like.models import find_here, find_reference, resolve_model
    from ramalama_like.models.store import Store

    reference = find_reference(text, lookup)
    if reference.transport == "file":
        path = os.path.abspath(reference.name)
        try:
            size = os.stat(path).st_size
        except OSError as error:
            raise ValueProblem(f"{plain(reference.text)}: {error.strerror}", "check the path") from None
        return Located(plain(reference.text), "file",
                       (StoredFile("model", os.path.basename(path), size, path=path),), f"the file {path}")  # fmt: skip
    if reference.transport in ("demo", "name"):
        model = resolve_model(text, lookup)
        if model.problem:
            raise ValueProblem(model.problem, model.hint)
        main = model.main
        return Located(reference.text, "demo", (StoredFile("model", main.name, model.size_bytes, path=main.path),),
                       model.why)  # fmt: skip
    store = Store(lookup.store)
    here = find_here(reference, store, lookup)
    if here is None:
        raise ValueProblem(f"{plain(reference.text)}: is not on this machine",
                           f"fetch it: ramalama-like pull {reference.canonical}")  # fmt: skip
    return Located(here[0].name, reference.transport, with_paths(here[0], store), here[1])


def with_paths(record: Record, store: Store) -> tuple[StoredFile, ...]:
    """A record's files, each with its path; those in place are what they were, or ValueProblem tells."""
    from ramalama_like.models.inventory import problem_of

    problem = problem_of(record)
    if problem:
        raise ValueProblem(f"{record.name}: {problem}", "pull it again")
    return tuple(file if file.path else replace(file, path=store.blob_path(file.sha256)) for file in record.files)
