"""Finding models. ``resolve_model`` is the only entrance for plans.

A name is looked for in this order: the demo model, a file, the store, the stores of other programs, the hub or
registry that the name leads to. Whatever is found there is described as it will be in the store, so a plan made before
a pull is the plan after it.
"""

from __future__ import annotations

import os.path

from ramalama_like.checks import with_home
from ramalama_like.errors import AppError, Interrupted
from ramalama_like.model import Model, ModelFile
from ramalama_like.models.lookup import ALWAYS, MISSING, NEVER, Lookup
from ramalama_like.reference import DEMO, alias_of, parse_reference, plain_url
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.listing import Choice
    from ramalama_like.models.client import Client
    from ramalama_like.models.store import Store
    from ramalama_like.record import Record
    from ramalama_like.reference import Reference


def find_reference(text: str, lookup: Lookup) -> Reference:
    """What a name stands for: short names are spelled out, and ``~`` too. Raises ValueProblem."""
    written = text
    if text != DEMO and "://" not in text and not text.startswith(("/", "./", "../", "~")):
        from ramalama_like.models.shortnames import read_shortnames

        known = read_shortnames(lookup.shortname_files)
        text = known.expand(text)
        if text == written and os.path.isfile(text):
            # A name without a prefix may be that of a file here; one with a prefix says where it is to be had.
            return replace(parse_reference(f"./{text}"), text=text, name=text)
    reference = parse_reference(text, lookup.transport)
    if reference.transport == "file" and lookup.home:
        reference = replace(reference, name=with_home(reference.name, lookup.home))
    return replace(reference, text=written) if text != written else reference


def resolve_model(text: str, lookup: Lookup) -> Model:
    """Find a model by its name.

    A model that is not here, but at a hub, has ``pending`` set. One that cannot be had gives a ``Model`` with
    ``problem`` set, at the path that it would have; a file that is there but unusable, a path that leads nowhere and a
    name that cannot be one raise ValueProblem.
    """
    from ramalama_like.models.sources import file

    reference = find_reference(text, lookup)
    if reference.transport == "demo":
        return file.resolve_demo()
    if reference.transport == "file":
        return file.resolve(reference)
    if reference.transport == "name":
        return _unknown(reference, lookup)
    return _of_hub(reference, lookup)


def _of_hub(reference: Reference, lookup: Lookup) -> Model:
    from ramalama_like.models.finding import find_choice, make_client
    from ramalama_like.models.pull import is_current
    from ramalama_like.models.store import Store

    store = Store(lookup.store)
    here = find_here(reference, store, lookup)
    offline = lookup.access.offline
    if here and (lookup.policy in (MISSING, NEVER) or offline):
        return _stored(reference, here, store)
    if not here and (offline or lookup.policy == NEVER):
        why = "nothing is fetched while offline" if offline else "--pull=never forbids to fetch it"
        hint = "leave out --offline, and unset HF_HUB_OFFLINE" if offline else "leave out --pull=never"
        return _unresolved(reference, lookup, f"is not on this machine, and {why}", hint, 5 if offline else 22)
    try:
        with make_client(lookup.access) as client:
            choice = find_choice(reference, client, lookup.access)
            if here and is_current(here[0], choice):
                return _stored(reference, here, store)
            return _pending(reference, choice, store, client)
    except Interrupted:
        raise
    except AppError as error:
        if here and lookup.policy != ALWAYS:
            model = _stored(reference, here, store)
            return replace(model, notes=(*model.notes, f"whether there is a newer one is unknown: {error.message}"))
        model = _unresolved(reference, lookup, "", error.hint, error.exit_code)
        return replace(model, problem=error.message)


def find_here(reference: Reference, store: Store, lookup: Lookup) -> tuple[Record, str] | None:
    """The record of a name, in the store or in another program's, and where that is; None where files are missing."""
    from ramalama_like.models.stored import missing_file

    record = store.find_record(reference.canonical)
    if record and store.is_complete(record) and not missing_file(record):
        return record, f"in the store, pulled from {record.source or record.name}"
    if lookup.places:
        from ramalama_like.models.caches import find_elsewhere

        found = find_elsewhere(reference, lookup.places)
        if found:
            return found.record, f"in the store of {found.store}, used where it lies"
    return None


def _stored(reference: Reference, here: tuple[Record, str], store: Store) -> Model:
    from ramalama_like.models.stored import model_of_record

    return model_of_record(reference, here[0], store, here[1])


def _pending(reference: Reference, choice: Choice, store: Store, client: Client) -> Model:
    """The model as it will be once it was pulled."""
    from ramalama_like.models.pull import foresee
    from ramalama_like.models.stored import assemble, with_paths
    from ramalama_like.record import StoredFile
    from ramalama_like.reference import plain_url

    files, headers = foresee(choice, store, client)
    used = with_paths(files, store)
    revision = f", revision {choice.listing.revision[:19]}" if choice.listing.revision else ""
    host = plain_url(choice.files[0].url).partition("://")[2].partition("/")[0] if choice.files else "its hub"
    why = f"not on this machine yet; it is to be had from {host}{revision}"
    uncertain = ""
    if not any(file.role == "model" for file in used):
        # Which files an image holds shows only when it is unpacked.
        used = with_paths((StoredFile("model", f"{alias_of(reference)}.gguf", -1),), store)
        uncertain = "which files it holds shows when they are unpacked"
    elif not all(file.sha256 for file in used):
        uncertain = f"{host} publishes no SHA-256 sums, by which the store names files"
    return replace(assemble(reference, used, headers, why), pending=choice, uncertain=uncertain,
                   notes=choice.listing.notes)  # fmt: skip


def _unknown(reference: Reference, lookup: Lookup) -> Model:
    """A word that is neither a file nor a short name."""
    from ramalama_like.models.shortnames import read_shortnames

    near = read_shortnames(lookup.shortname_files).near(reference.text)
    hint = f"did you mean {' or '.join(near)}?" if near else (
        "write hf://OWNER/REPOSITORY, ollama://NAME or the path of a file; `shortnames` lists short names"
    )  # fmt: skip
    return _unresolved(reference, lookup, "no file and no known model has this name", hint, 22)


def _unresolved(reference: Reference, lookup: Lookup, problem: str, hint: str, exit_code: int) -> Model:
    from ramalama_like.models.store import Store
    from ramalama_like.models.stored import path_of
    from ramalama_like.record import StoredFile

    alias, shown = alias_of(reference), plain_url(reference.text)
    path = path_of(Store(lookup.store), StoredFile("model", f"{alias}.gguf", -1))
    files = (ModelFile("model", path, f"{alias}.gguf"),)
    return Model(reference=shown, alias=alias, files=files, why="the name has not been resolved",
                 problem=f"{shown}: {problem}", hint=hint, exit_code=exit_code)  # fmt: skip
