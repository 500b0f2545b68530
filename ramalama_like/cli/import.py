"""``import``: put a model from a file that ``export`` has written into the store, and its image into the engine."""

from __future__ import annotations

import os

from ramalama_like import ui
from ramalama_like.errors import ValueProblem
from ramalama_like.launch import Outline, show_if_dry
from ramalama_like.models.disk import disk_problem
from ramalama_like.models.gguf import read_gguf
from ramalama_like.models.portable import IMAGE_MEMBER, NAME, Archive, import_model
from ramalama_like.process import capture
from ramalama_like.reference import canonical_name, parse_reference, plain_url
from ramalama_like.settings import find_lookup
from ramalama_like.stored import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.facts import EngineFacts
    from ramalama_like.models.portable import Imported
    from ramalama_like.request import Request
    from ramalama_like.stored import Opened

LONGEST_S = 86400.0  # for loading an image


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    opened = open_store(request)
    path = request.arguments[0]
    with Archive(path) as archive:
        name, engine = _name(request, opened, archive), _engine(request, opened, archive)
        if show_if_dry(request, _outline(opened, archive, name, engine)):
            return 0
        if engine:
            _import_with_image(opened, archive, name, engine)
            return 0
        imported = _import(opened, archive, name)
        if imported.image:
            ui.say(f"Note: the image {imported.image} was left out, since no container is wanted")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    opened = open_store(request)
    with Archive(request.arguments[0]) as archive:
        name, engine = _name(request, opened, archive), _engine(request, opened, archive)
        return _outline(opened, archive, name, engine)


def _outline(opened: Opened, archive: Archive, name: str, engine: EngineFacts | None) -> Outline:
    if engine:  # a line of our own would load the image a second time
        return Outline(opened.loaded, engine, (_load_line(opened, archive, engine),))
    own = opened.own_line("import", "--", os.path.abspath(archive.path), *((name,) if name else ()))
    return Outline(opened.loaded, None, (own,), "self")


def _name(request: Request, opened: Opened, archive: Archive) -> str:
    """The name that was asked for; the empty string where those in the archive count, which are checked here."""
    transport = find_lookup(opened.loaded.settings).transport
    if len(request.arguments) > 1:
        reference = parse_reference(request.arguments[1], transport)
        _need_name(reference.transport, request.arguments[1])
        return canonical_name(reference)
    for each in archive.manifests():
        notes = each.get("annotations")
        text = notes.get(NAME) if isinstance(notes, dict) else None
        if isinstance(text, str):
            reference = parse_reference(text)
            _need_name(reference.transport, text)
            if canonical_name(reference) != text:
                raise ValueProblem(f"{archive.path}: {text} is not how a model is called",
                                   f"write: ramalama-like import FILE {canonical_name(reference)}")  # fmt: skip
    return ""


def _need_name(transport: str, text: str) -> None:
    if transport in ("file", "demo", "name"):
        raise ValueProblem(f"{plain_url(text)}: cannot be the name of a model in the store",
                           "write a name such as hf://OWNER/NAME:TAG or ollama://NAME:TAG")  # fmt: skip


def _engine(request: Request, opened: Opened, archive: Archive) -> EngineFacts | None:
    """The engine that gets the image; None where there is no image, or where no engine is wanted."""
    if not archive.image()[0] or not opened.loaded.settings.container.value:
        return None
    from ramalama_like.containers import need_engine

    return need_engine(request)[0]


def _load_line(opened: Opened, archive: Archive, engine: EngineFacts) -> tuple[str, ...]:
    """The engine's command, which reads the image from where it is unpacked to."""
    return (engine.program, "load", "-i", opened.store.partial(_key(archive)).data_path)


def _key(archive: Archive) -> str:
    return f"image-{archive.image()[1]}"


def _import(opened: Opened, archive: Archive, name: str) -> Imported:
    imported = import_model(opened.store, archive, name, check=_check)
    for record in imported.records:
        ui.write(f"{ui.one_line(record.name)}\n")
    return imported


def _import_with_image(opened: Opened, archive: Archive, name: str, engine: EngineFacts) -> None:
    """The models get their names once the image too is what its sum says; then the engine gets it."""
    with opened.store.partial(_key(archive), waiting=lambda: None) as partial:
        try:
            try:
                archive.copy(IMAGE_MEMBER, partial.data_path, archive.image()[1], lambda _: None)
            except OSError as error:
                raise disk_problem(partial.data_path, error) from None
            imported = _import(opened, archive, name)
            done = capture(_load_line(opened, archive, engine), LONGEST_S)
        finally:
            if os.path.isfile(partial.data_path):
                os.unlink(partial.data_path)
    if done.code:
        from ramalama_like.containers import engine_failed

        raise engine_failed(engine.program, done.stderr, "load the image")
    _tell_loaded(engine, imported.image, _loaded(done.stdout))


def _loaded(said: str) -> list[str]:
    """Names or ids of the images that an engine says it has loaded.

    podman and docker print "Loaded image: NAME" for each, docker "Loaded image ID: sha256:…" for one without a name,
    podman before 4.0 "Loaded image(s): NAME,NAME".
    """
    begin, found = "Loaded image", []
    for line in said.splitlines():
        if line.startswith(begin):
            found += [name.strip() for name in line.partition(": ")[2].split(",")]
    return [name for name in found if name]


def _tell_loaded(engine: EngineFacts, image: str, loaded: list[str]) -> None:
    """Say what was loaded, which only the engine knows; warn where the file calls it otherwise."""
    if not loaded:
        ui.warn(f"{engine.program} did not tell which image it loaded; the file calls it {image}")
        return
    for name in loaded:
        ui.say(f"Loaded the image {ui.one_line(name)}")
    if not all(_is_same(image, name) for name in loaded):
        ui.warn(f"the file calls its image {image}, but {engine.program} loaded {', '.join(loaded)}")


def _is_same(image: str, loaded: str) -> bool:
    """Whether an engine may call an image ``loaded`` that another one called ``image``."""
    if loaded.startswith("sha256:"):
        identity = image.removeprefix("sha256:")
        return len(identity) >= 12 and loaded[7:].startswith(identity)
    if _short(image) == _short(loaded):
        return True
    return loaded.startswith("localhost/") and _short(image) == _short(loaded[10:])  # podman's, for a bare name


def _short(image: str) -> str:
    """Without what stands for itself: docker shows neither its hub nor the folder of its official images."""
    tagged = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
    return tagged.removeprefix("docker.io/").removeprefix("library/")


def _check(path: str) -> None:
    """Raises ValueProblem for weights that are no GGUF."""
    read_gguf(path)
