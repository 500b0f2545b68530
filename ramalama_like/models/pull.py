"""Pulling a model: ask its hub, choose its files, fetch those that are not here, and give them a name in the store.

A file that is here is never fetched again, whatever its name and source: also not when another one of the same model
failed. The record is written last, so a name in the store always stands for a whole model.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import LAYER, MODEL, SHARD, TEMPLATE
from ramalama_like.models.finding import find_choice, make_client, read_remote_header
from ramalama_like.models.store import Store
from ramalama_like.record import Record, StoredFile
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from ramalama_like.listing import Choice, RemoteFile
    from ramalama_like.models.client import Client
    from ramalama_like.models.gguf import GgufHeader
    from ramalama_like.models.lookup import Lookup
    from ramalama_like.reference import Reference

    class Progress(Protocol):
        """What somebody may want to know while files are fetched."""

        def begin(self, name: str, size_bytes: int) -> None:
            """A file is going to be fetched. -1: the hub does not tell its size."""

        def advance(self, done_bytes: int) -> None:
            """So much of it is here, what was here before included."""

        def end(self, *, fetched: bool) -> None:
            """It is here. Not ``fetched``: it was here already."""

        def wait(self, seconds: float, host: str) -> None:
            """A host has asked to be left alone for a while."""

        def share(self) -> None:
            """Another process fetches the same file; called again and again."""


MOST_HEADERS = 16  # of parts of a model that are read before it is pulled


class Silent:
    """Progress that nobody wants to know about."""

    def begin(self, name: str, size_bytes: int) -> None:
        """A file is going to be fetched."""

    def advance(self, done_bytes: int) -> None:
        """So much of it is here."""

    def end(self, *, fetched: bool) -> None:
        """It is here."""

    def wait(self, seconds: float, host: str) -> None:
        """A host has asked to be left alone."""

    def share(self) -> None:
        """Another process fetches the same file."""


@value
class Pulled:
    """What a pull did."""

    record: Record
    fetched: tuple[str, ...]  # names of files that were not here
    notes: tuple[str, ...] = ()


def pull_model(reference: Reference, lookup: Lookup, progress: Progress | None = None, *, verify: bool = True,
               choose: Callable[[Reference, Client], Choice] | None = None) -> Pulled:  # fmt: skip
    """Have a model in the store, as its hub has it now. ``choose`` takes the place of the choice that a name implies.

    ``verify`` checks that the weights are GGUF files for this machine. Raises AppError; files that are whole stay.
    """
    told = progress or Silent()
    store, access = Store(lookup.store), lookup.access
    with make_client(access, on_wait=told.wait) as client:
        choice = choose(reference, client) if choose else find_choice(reference, client, access)
        record = store.find_record(reference.canonical)
        if record and is_current(record, choice) and store.is_complete(record):
            return Pulled(record, (), choice.listing.notes)
        return fetch_choice(reference.canonical, choice, store, client, told, verify=verify)


def fetch_choice(
    name: str, choice: Choice, store: Store, client: Client, progress: Progress, *, verify: bool
) -> Pulled:
    """Fetch the files of a choice and give them a name. Raises AppError."""
    from time import time

    from ramalama_like.models.download import fetch
    from ramalama_like.models.ollama_templates import usable_template

    authorization = choice.listing.authorization
    fetched: list[str] = []
    files: list[StoredFile] = []
    with store.adopting():
        layers = [file for file in choice.files if file.role == LAYER]
        if layers:
            files += _unpack(name, layers, store, client, authorization, progress)
            fetched += [file.name for file in files]
        for file in choice.files:
            if file.role == LAYER:
                continue
            here = bool(file.sha256) and store.has_blob(file.sha256, file.size_bytes)
            progress.begin(last_part(file), file.size_bytes)
            total, size = fetch(client, file, store, authorization=authorization, progress=progress.advance,
                                waiting=progress.share,
                                verify_gguf=verify and file.role in (MODEL, SHARD))  # fmt: skip
            progress.end(fetched=not here)
            files.append(StoredFile(file.role, last_part(file), size, total))
            fetched += [] if here else [last_part(file)]
        usable, note = usable_template(files, store)
        record = Record(name, tuple(usable), time(), choice.listing.revision, _source(choice))
        store.write_record(record)
    return Pulled(record, tuple(fetched), (*choice.listing.notes, *([note] if note else [])))


def _unpack(name: str, layers: list[RemoteFile], store: Store, client: Client, authorization: str, progress: Progress
            ) -> tuple[StoredFile, ...]:  # fmt: skip
    from ramalama_like.models.archives import fetch_archives
    from ramalama_like.models.image_models import image_files

    sizes = [layer.size_bytes for layer in layers]
    progress.begin(f"{len(layers)} layer{'s' if len(layers) > 1 else ''}", sum(sizes) if min(sizes) >= 0 else -1)
    contents = fetch_archives(client, layers, store, authorization=authorization, progress=progress.advance,
                              waiting=progress.share)  # fmt: skip
    progress.end(fetched=True)
    return image_files(contents, store, name)


def last_part(file: RemoteFile) -> str:
    """A file's name without its folders."""
    return file.path.rpartition("/")[2] or file.path


def _source(choice: Choice) -> str:
    from ramalama_like.reference import plain_url

    return plain_url(choice.files[0].url) if choice.files else ""


def is_current(record: Record, choice: Choice) -> bool:
    """Whether a record holds what a hub has now: the same state of the repository, or the same bytes."""
    revision = choice.listing.revision
    if any(file.role == LAYER for file in choice.files):  # the sums are those of archives, which are not kept
        return bool(revision) and revision == record.revision
    wanted = {(last_part(file), file.sha256) for file in choice.files}
    if all(total for _, total in wanted):
        here = {(file.name, file.sha256) for file in record.files}
        return wanted <= here
    # Without sums only the state of the repository can tell, and the names that were chosen of it.
    return bool(revision) and revision == record.revision and (
        {name for name, _ in wanted} <= {file.name for file in record.files}
    )  # fmt: skip


def foresee(choice: Choice, store: Store, client: Client) -> tuple[tuple[StoredFile, ...], list[GgufHeader]]:
    """The files that the store will have for a choice, and the headers of its weights as the hub has them.

    Files whose sums the hub does not publish have none. Raises AppError where the hub does not answer, or where the
    weights cannot be used.
    """
    authorization = choice.listing.authorization
    files = [StoredFile(file.role, last_part(file), file.size_bytes, file.sha256) for file in choice.files
             if file.role != LAYER]  # fmt: skip
    headers: list[GgufHeader] = []
    weights = [file for file in choice.files if file.role in (MODEL, SHARD)]
    for file in weights if len(weights) <= MOST_HEADERS else weights[:1]:
        path = store.blob_path(file.sha256)
        if file.sha256 and store.has_blob(file.sha256, file.size_bytes):
            from ramalama_like.models.gguf import read_gguf

            headers.append(read_gguf(path))
            continue
        header = read_remote_header(client, file, authorization)
        if header is None:
            return tuple(files), []
        headers.append(header)
    if headers and not headers[0].text("tokenizer.chat_template"):
        files = _with_template(choice, files, client)
    return tuple(files), headers


def _with_template(choice: Choice, files: list[StoredFile], client: Client) -> list[StoredFile]:
    """The files with the template that will be converted from Ollama's own form."""
    from hashlib import sha256

    from ramalama_like.models.go_template import Unsupported, convert_template
    from ramalama_like.models.ollama_templates import CONVERTED, GO

    original = next((file for file in choice.files if file.role == TEMPLATE and last_part(file) == GO), None)
    if original is None:
        return files
    kept = [file for file in files if not (file.role == TEMPLATE and file.name == GO)]
    answer = client.ask(original.url, authorization=choice.listing.authorization, most_bytes=1 << 20)
    try:
        content = convert_template(answer.body.decode("utf-8", "surrogateescape")).encode()
    except (Unsupported, UnicodeError):
        return kept
    return [*kept, StoredFile(TEMPLATE, CONVERTED, len(content), sha256(content).hexdigest())]


def need_whole(record: Record, store: Store) -> None:
    """Raise ValueProblem where a file of a record is missing."""
    if not store.is_complete(record):
        raise ValueProblem(
            f"{record.name}: files of it are missing", f"pull it again: ramalama-like pull {record.name}"
        )
