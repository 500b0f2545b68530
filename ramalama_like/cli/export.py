"""``export``: write a model, and perhaps a container image, into one file for a machine without a network."""

from __future__ import annotations

import os

from ramalama_like import settings, ui
from ramalama_like.errors import ValueProblem
from ramalama_like.launch import Outline, show_if_dry
from ramalama_like.models.disk import disk_problem, remove_file
from ramalama_like.models.names import size_text
from ramalama_like.models.portable import export_model
from ramalama_like.models.store import Store
from ramalama_like.process import capture
from ramalama_like.reference import parse_reference, plain_url
from ramalama_like.stored import open_store
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.facts import EngineFacts
    from ramalama_like.models.store import Partial
    from ramalama_like.record import Record
    from ramalama_like.request import Request
    from ramalama_like.stored import Opened

LONGEST_S = 86400.0  # for writing an image
AUTO = "auto"


@value
class Wanted:
    """What goes into the file."""

    record: Record
    path: str
    engine: EngineFacts | None = None  # of the image
    image: str = ""


def _partial(store: Store, wanted: Wanted) -> Partial:
    """The folder for the engine's archive: where nobody else writes, and of a name that a dry run can tell."""
    from hashlib import sha256

    key = sha256(os.fsencode(f"{wanted.path}\0{wanted.image}")).hexdigest()
    return store.partial(f"export-{key}", waiting=lambda: None)


def _save_line(engine: EngineFacts, partial: Partial, image: str) -> tuple[str, ...]:
    """The engine's command that writes the image."""
    return (engine.program, "save", "-o", partial.data_path, image)


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    opened = open_store(request)
    wanted = _wanted(request, opened)
    if show_if_dry(request, _outline(opened, wanted)):
        return 0
    if os.path.lexists(wanted.path):
        raise ValueProblem(f"{wanted.path}: is there already", "remove it, or name another file")
    size = _export(Store(opened.store.root), wanted)
    ui.say(f"Wrote {size_text(size)}")
    ui.write(f"{ui.one_line(wanted.path)}\n")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    opened = open_store(request)
    return _outline(opened, _wanted(request, opened))


def _outline(opened: Opened, wanted: Wanted) -> Outline:
    if wanted.engine:  # a line of our own would save the image a second time
        line = _save_line(wanted.engine, _partial(opened.store, wanted), wanted.image)
        return Outline(opened.loaded, wanted.engine, (line,))
    return Outline(opened.loaded, None, (opened.own_line("export", "--", wanted.record.name, wanted.path),), "self")


def _wanted(request: Request, opened: Opened) -> Wanted:
    text, path = request.arguments
    record = _find(text, opened)
    image = opened.loaded.settings.export_image.value
    path = os.path.abspath(path)
    if not image:
        return Wanted(record, path)
    from ramalama_like.containers import need_engine

    engine, _ = need_engine(request)
    if image == AUTO:
        image = _image_for(request, record.name)
    if image.startswith("-"):
        raise ValueProblem(f"{image}: is no name of an image")
    return Wanted(record, path, engine, image)


def _find(text: str, opened: Opened) -> Record:
    """The model's record in our store, else in another program's."""
    from ramalama_like.models.caches import find_elsewhere

    names = opened.names()
    try:
        record = opened.store.find_record(names.find(text))
        if record is None:
            raise ValueProblem(
                f"{plain_url(text)}: its entry in the store is damaged", "see what is wrong: ramalama-like fsck"
            )
    except ValueProblem:
        places = settings.find_places(opened.loaded.settings)
        meant = names.canonical(text)
        found = find_elsewhere(parse_reference(meant), places) if meant else None
        if found is None:
            raise
        return found.record
    return record


def _image_for(request: Request, name: str) -> str:
    """The image in which this machine would serve the model."""
    from ramalama_like.pipeline import decide
    from ramalama_like.request import Request as Asked

    given = {key: word for key, word in request.given.items() if key in ("engine", "store", "container")}
    image = decide(Asked("serve", (name,), given)).plan.image
    if image is None:
        raise ValueProblem("--image auto: nothing runs in a container here", "name the image")
    return image.ref


def _export(store: Store, wanted: Wanted) -> int:
    """Write the file; its size in bytes."""
    if wanted.engine is None:
        return export_model(store, wanted.record, wanted.path)
    with _partial(store, wanted) as partial:
        try:
            os.chmod(os.path.dirname(partial.data_path), 0o700)
            remove_file(partial.data_path)  # of a run that was killed
        except OSError as error:
            raise disk_problem(partial.data_path, error) from None
        try:
            _save_image(_save_line(wanted.engine, partial, wanted.image), wanted.image)
            return export_model(store, wanted.record, wanted.path, image=wanted.image, image_file=partial.data_path)
        finally:
            remove_file(partial.data_path)


def _save_image(line: tuple[str, ...], image: str) -> None:
    done = capture(line, LONGEST_S)
    if done.code:
        from ramalama_like.containers import engine_failed

        failed = engine_failed(line[0], done.stderr, f"write the image {image}")
        failed.hint = failed.hint or f"have it here first: {line[0]} pull {image}"
        raise failed
