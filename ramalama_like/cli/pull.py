"""``pull``: fetch a model into the store, or what is new of it; ``--list`` shows what there is to choose from."""

from __future__ import annotations

from ramalama_like import settings, ui
from ramalama_like.errors import Interrupted, ValueProblem
from ramalama_like.launch import Outline
from ramalama_like.models import find_here, find_reference
from ramalama_like.models.finding import choose_files, find_listing, make_client
from ramalama_like.models.pull import last_part, pull_model
from ramalama_like.models.store import Store
from ramalama_like.reference import DEFAULT_REVISIONS, plain
from ramalama_like.transfers import Transfers, size_text
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.listing import Choice, Listing
    from ramalama_like.models.choices import Candidate
    from ramalama_like.models.lookup import Lookup
    from ramalama_like.models.pull import Pulled
    from ramalama_like.options import Settings
    from ramalama_like.reference import Reference
    from ramalama_like.request import Request

HEADING = ("QUANTIZATION", "SIZE", "FILE", "NAME")
LOCAL = ("demo", "file")


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    loaded = settings.load_settings(request)
    for warning in loaded.warnings:
        ui.warn(warning)
    asked = loaded.settings
    lookup = settings.find_lookup(asked)
    reference = find_reference(request.model, lookup)
    if reference.transport in LOCAL:
        return _local(request, reference, lookup, asked)
    if reference.transport == "name":
        from ramalama_like.models import resolve_model

        unknown = resolve_model(request.model, lookup)
        raise ValueProblem(unknown.problem, unknown.hint)
    if asked.list_choices.value:
        return _list(reference, lookup, asked)
    if asked.dryrun.value:
        return _show(request, reference, lookup, asked)
    return _pull(reference, lookup, asked)


def outline(request: Request) -> Outline:
    """What the command would do: fetch files by itself, and start nothing. Raises AppError."""
    return Outline(settings.load_settings(request))


def _local(request: Request, reference: Reference, lookup: Lookup, asked: Settings) -> int:
    """A file here, or the demo model: nothing has to be fetched, if only it can be used."""
    from ramalama_like.models import resolve_model

    model = resolve_model(reference.text, lookup)
    if asked.dryrun.value == "json" or asked.json.value:
        import json

        files = [{"role": file.role, "name": file.name, "path": file.path, "here": True} for file in model.files]
        ui.write(json.dumps({"command": request.command, "steps": [], "name": reference.canonical, "files": files},
                            indent=2) + "\n")  # fmt: skip
    ui.say(f"{model.reference}: is used where it lies: {model.main.path}")
    return 0


def _pull(reference: Reference, lookup: Lookup, asked: Settings) -> int:
    store = Store(lookup.store)
    if lookup.access.offline:
        here = find_here(reference, store, lookup)
        if here is None:
            raise ValueProblem(f"{plain(reference.text)}: is not on this machine, and nothing is fetched while offline",
                               "leave out --offline, and unset HF_HUB_OFFLINE", exit_code=5)  # fmt: skip
        ui.say(f"{reference.canonical}: {here[1]}; whether there is a newer one is unknown while offline")
        return 0
    pulled = _fetch(reference, lookup, asked)
    for note in pulled.notes:
        ui.say(f"Note: {note}")
    if pulled.fetched:
        ui.say(f"{pulled.record.name}: pulled, {size_text(pulled.record.size_bytes)}")
    else:
        ui.say(f"{pulled.record.name}: is here already, and nothing of it is new")
    return 0


def _fetch(reference: Reference, lookup: Lookup, asked: Settings) -> Pulled:
    from ramalama_like.models.choices import NoChoice

    progress = Transfers()
    try:
        return pull_model(reference, lookup, progress, verify=asked.verify.value)
    except NoChoice as problem:
        usable = tuple(candidate for candidate in problem.candidates if candidate.usable)
        if not usable or not (ui.is_terminal(0) and ui.is_terminal(2)):
            raise
        reference = _ask(problem, usable, reference)
    finally:
        progress.stop()
    try:
        return pull_model(reference, lookup, progress, verify=asked.verify.value)
    finally:
        progress.stop()


def _ask(problem: ValueProblem, candidates: tuple[Candidate, ...], reference: Reference) -> Reference:
    """Let the person at the terminal choose; the reference that names the choice."""
    ui.say(problem.message)
    for number, candidate in enumerate(candidates, 1):
        ui.say(f"{number:3d}  {candidate.quantization or '-':<12} {_size(candidate.size_bytes):>8}  "
               f"{candidate.files[0].path}")  # fmt: skip
    while True:
        answer = ui.ask(f"Which one (1 to {len(candidates)}, or q to leave)?").strip()
        if answer.lower() in ("q", "quit", ""):
            raise Interrupted("nothing was chosen")
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(candidates):
            return named(reference, candidates[int(answer) - 1], candidates)


def named(reference: Reference, candidate: Candidate, candidates: tuple[Candidate, ...]) -> Reference:
    """The reference that means one of several candidates: by its quantization if that is enough, else by its path."""
    from ramalama_like.reference import parse_reference

    same = [each for each in candidates if each.quantization.upper() == candidate.quantization.upper()]
    by_path = len(same) > 1 or not candidate.quantization
    changed = replace(reference, tag="" if by_path else candidate.quantization.upper(),
                      path=candidate.files[0].path if by_path else "")  # fmt: skip
    return parse_reference(changed.canonical)


def _size(size_bytes: int) -> str:
    return size_text(size_bytes) if size_bytes >= 0 else "-"


def _list(reference: Reference, lookup: Lookup, asked: Settings) -> int:
    """What the hub has under the name, whatever quantization it asks for."""
    from ramalama_like.models.choices import candidates_of, with_roles

    with make_client(lookup.access) as client:
        listing = find_listing(reference, client, lookup.access)
    candidates = candidates_of(listing)
    rows = [(candidate.quantization or "-", _size_or_problem(candidate), _files_text(candidate),
             _name_of(reference, candidate, candidates)) for candidate in candidates]  # fmt: skip
    if asked.json.value:
        import json

        taken = {file.path for candidate in candidates for file in candidate.files}
        others = [{"role": file.role, "path": file.path, "size": file.size_bytes} for file in with_roles(listing)
                  if file.path not in taken]  # fmt: skip
        plain_rows = [{
            "quantization": candidate.quantization, "size": candidate.size_bytes, "usable": candidate.usable,
            "files": [file.path for file in candidate.files], "name": row[3],
        } for candidate, row in zip(candidates, rows, strict=True)]  # fmt: skip
        ui.write(json.dumps({"name": listing.name, "revision": listing.revision, "choices": plain_rows,
                             "others": others}, indent=2) + "\n")  # fmt: skip
    elif rows:
        ui.table(HEADING, rows, flexible=("FILE", "NAME"))
    else:
        files = [(file.role or "-", _size(file.size_bytes), file.path, "") for file in with_roles(listing)]
        ui.table(("ROLE", "SIZE", "FILE", ""), files, flexible=("FILE",))
    return 0


def _size_or_problem(candidate: Candidate) -> str:
    if candidate.usable:
        return _size(candidate.size_bytes)
    return "in pieces" if candidate.pieces else "incomplete"


def _name_of(reference: Reference, candidate: Candidate, candidates: tuple[Candidate, ...]) -> str:
    if reference.transport not in DEFAULT_REVISIONS:
        return reference.canonical
    return named(reference, candidate, candidates).canonical


def _files_text(candidate: Candidate) -> str:
    more = len(candidate.files) - 1
    return candidate.files[0].path + (f" and {more} more" if more else "")


def _show(request: Request, reference: Reference, lookup: Lookup, asked: Settings) -> int:
    """The dry run: no program would be started, so there is no line; what would be fetched is told."""
    store = Store(lookup.store)
    with make_client(lookup.access) as client:
        listing = find_listing(reference, client, lookup.access)
        choice = choose_files(listing, reference)
    missing = [file for file in choice.files if not (file.sha256 and store.has_blob(file.sha256, file.size_bytes))]
    if asked.dryrun.value == "json":
        import json

        ui.write(json.dumps(_document(request, reference, listing, choice, store), indent=2) + "\n")
    if not missing:
        ui.say(f"Note: all files of {reference.canonical} are here")
    for file in missing:
        ui.say(f"Note: {last_part(file)} would be fetched ({_size(file.size_bytes)})")
    return 0


def _document(request: Request, reference: Reference, listing: Listing, choice: Choice, store: Store
              ) -> dict[str, object]:  # fmt: skip
    return {
        "command": request.command, "steps": [], "name": reference.canonical, "revision": listing.revision,
        "files": [{
            "role": file.role, "name": last_part(file), "size": file.size_bytes, "sha256": file.sha256,
            "path": store.blob_path(file.sha256) if file.sha256 else "",
            "here": bool(file.sha256) and store.has_blob(file.sha256, file.size_bytes),
        } for file in choice.files],
    }  # fmt: skip
