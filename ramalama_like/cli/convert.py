"""``convert``: make a GGUF file of safetensors, or quantize one, in containers that have no network.

What is made lies in a private folder of the store until it has been read as a GGUF file; then it becomes a model of
the store, a file, or (for a name in a registry) both a model of the store and one of the registry.
"""

from __future__ import annotations

import os

from ramalama_like import settings, ui
from ramalama_like.accelerator import Accelerator
from ramalama_like.checks import with_home
from ramalama_like.containers import check_here, need_engine
from ramalama_like.conversion import RESULT, SPACE_FACTOR, make_conversion
from ramalama_like.errors import ValueProblem
from ramalama_like.execute import run_container
from ramalama_like.image import choose_image, choose_tools_image
from ramalama_like.launch import Outline, show_if_dry
from ramalama_like.measurement import size_text
from ramalama_like.models.convertible import find_convertible
from ramalama_like.models.lookup import MISSING
from ramalama_like.models.store import Store
from ramalama_like.pipeline import find_facts
from ramalama_like.planner import with_tools
from ramalama_like.pushing import kind_text, push_files
from ramalama_like.reference import canonical_name, parse_reference, plain_url
from ramalama_like.render.argv import render_run
from ramalama_like.signals import SignalGuard
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.conversion import Conversion
    from ramalama_like.facts import EngineFacts
    from ramalama_like.image import Image
    from ramalama_like.model import Convertible, ModelFile
    from ramalama_like.models.lookup import Lookup
    from ramalama_like.options import Settings
    from ramalama_like.record import Record, StoredFile
    from ramalama_like.reference import Reference
    from ramalama_like.request import Request
    from ramalama_like.settings import LoadedSettings

NO_NAMES = ("demo", "name", "http", "https", "openai")  # transports that cannot name a model of the store


@value
class Target:
    """Where the result goes: to a path, or under a name of the store; ``registry`` where it is pushed too."""

    text: str
    path: str = ""
    name: str = ""
    registry: Reference | None = None


@value
class Drawn:
    """One conversion, completely decided."""

    loaded: LoadedSettings
    engine: EngineFacts | None  # None: no container runs
    lookup: Lookup
    target: Target
    conversion: Conversion
    key: str  # of the private folder
    warnings: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The engine's commands."""
        engine = self.engine
        if engine is None:
            return ()
        return tuple((*render_run(step.container, engine.kind, engine.program, engine.version), step.image.ref,
                      *step.command) for step in self.conversion.steps)  # fmt: skip

    @property
    def outline(self) -> Outline:
        """The same for a dry run and for ``explain``."""
        return Outline(self.loaded, self.engine, self.lines)


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    drawn = _draw(request)
    for warning in drawn.warnings:
        ui.warn(warning)
    if show_if_dry(request, drawn.outline):
        _tell_notes(drawn)
        return 0
    if drawn.engine:
        check_here(request, drawn.loaded)
    source, target = drawn.conversion.source, drawn.target
    if source.problem:
        raise ValueProblem(source.problem, source.hint, exit_code=source.exit_code)
    _refuse_taken(target)
    if source.pending:
        _pull(request, drawn)
        drawn = _draw(request, pulled=True)
        source = drawn.conversion.source
    # Without a container what there is goes to a registry as it is.
    files = _convert(drawn) if drawn.conversion.steps else source.files
    if target.registry:
        push_files(drawn.loaded.settings, target.registry, files, source.architecture)
    else:
        ui.write(f"{ui.one_line(target.path or target.name)}\n")
    return 0


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    return _draw(request).outline


# Deciding.


def _draw(request: Request, *, pulled: bool = False) -> Drawn:
    loaded = settings.load_settings(request)
    asked = loaded.settings
    lookup = settings.find_lookup(asked)
    if pulled:
        lookup = replace(lookup, policy=MISSING)
    target = _target(request.arguments[1], lookup)
    source = find_convertible(request.arguments[0], lookup)
    _refuse_same(source, target, request.arguments[0], lookup)
    quantization = ""
    if asked.gguf.value is not None:
        quantization = asked.gguf.value or asked.gguf_quantization_mode.value
    if not quantization and not source.safetensors and not target.registry and not source.problem:
        raise ValueProblem(f"{source.reference}: is a GGUF already", "name a quantization, as in --gguf Q4_K_M")
    store, key = Store(lookup.store), _key(source, target, quantization)
    engine = None
    if quantization or source.safetensors:
        engine, _ = need_engine(request)
    tools, image = _images(asked)
    conversion = make_conversion(
        source, quantization, settings=asked, tools=tools, image=image, name=f"ramalama-{key}",
        work=store.partial(key).data_path, user=_user(engine),
    )  # fmt: skip
    used = {step.image: None for step in conversion.steps}
    warnings = tuple(warning for each in used for warning in each.warnings)
    return Drawn(loaded, engine, lookup, target, conversion, key, warnings)


def _images(asked: Settings) -> tuple[Image, Image]:
    """The one with the converter, and the one with the quantizer. Neither needs a GPU."""
    arch = find_facts(asked).arch
    tools = choose_tools_image(facts_arch=arch, family=asked.image_family, explicit=asked.tools_image,
                               default_image=asked.default_tools_image)  # fmt: skip
    nothing = Accelerator("cpu", "CPU", "neither converting nor quantizing needs a GPU", "default")
    image = choose_image(accelerator=nothing, facts_arch=arch, family=asked.image_family, explicit=asked.image,
                         overrides=asked.images, default_image=asked.default_image)  # fmt: skip
    return tools, image if asked.image.value else with_tools(image)


def _user(engine: EngineFacts | None) -> str:
    if engine is None or engine.kind != "docker" or os.geteuid() == 0:
        return ""
    return f"{os.geteuid()}:{os.getegid()}"


def _key(source: Convertible, target: Target, quantization: str) -> str:
    """The same for the same conversion, so that a dry run can show it, and so that two of it do not run at once."""
    from hashlib import sha256

    words = "\0".join((source.reference, target.path or target.name, quantization))
    return f"convert-{sha256(os.fsencode(words)).hexdigest()[:12]}"


def _target(text: str, lookup: Lookup) -> Target:
    is_path = text.startswith(("/", "./", "../", "~")) or text[:5].lower() == "file:"
    if is_path or (text.lower().endswith(".gguf") and "://" not in text):
        reference = parse_reference(text if is_path else f"./{text}")
        path = os.path.abspath(with_home(reference.name, lookup.home))
        if not path.lower().endswith(".gguf"):
            raise ValueProblem(f"{plain_url(text)}: is no name of a GGUF file", "give it the ending .gguf")
        return Target(text, path=path)
    reference = parse_reference(text, lookup.transport)
    if reference.transport in NO_NAMES:
        raise ValueProblem(f"{plain_url(text)}: is neither a path nor a name that a model can have",
                           "write FILE.gguf, a name such as hf://OWNER/NAME:TAG, or oci://HOST/NAME:TAG")  # fmt: skip
    if reference.transport == "oci":
        if reference.revision:
            raise ValueProblem(f"{plain_url(text)}: a digest cannot be pushed to", "name a tag")
        return Target(text, name=canonical_name(reference), registry=reference)
    return Target(text, name=canonical_name(reference))


def _refuse_same(source: Convertible, target: Target, text: str, lookup: Lookup) -> None:
    """A model that takes its own source's name would have the store forget the source."""
    from ramalama_like.models import find_reference

    reference = find_reference(text, lookup)
    if target.name and reference.transport not in ("file", "demo", "name") and reference.canonical == target.name:
        raise ValueProblem(f"{target.text}: is the source itself", "give the result another name")


def _refuse_taken(target: Target) -> None:
    if not target.path:
        return
    if os.path.lexists(target.path):
        raise ValueProblem(f"{target.path}: is there already", "remove it, or name another file")
    folder = os.path.dirname(target.path)
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise ValueProblem(f"{target.path}: {folder} is no folder that you may write to", "make it first")


def _tell_notes(drawn: Drawn) -> None:
    source, target = drawn.conversion.source, drawn.target
    if source.problem:
        ui.say(f"Note: {source.reference} has not been resolved: {source.problem}")
    elif source.pending:
        size = size_text(source.size_bytes) if source.size_bytes else "of unknown size"
        ui.say(f"Note: {source.reference} would be pulled first ({size})")
        if source.uncertain:
            ui.say(f"Note: paths of the source may be others: {source.uncertain}")
    if target.registry:
        ui.say(f"Note: the result would be pushed to {target.name} as {kind_text(drawn.loaded.settings)}")
    elif drawn.conversion.steps:
        ui.say(f"Note: the result would become {target.path or target.name}")


# Doing.


def _pull(request: Request, drawn: Drawn) -> None:
    from ramalama_like.models import find_reference
    from ramalama_like.models.pull import pull_model
    from ramalama_like.transfers import Transfers

    reference = find_reference(request.arguments[0], drawn.lookup)
    ui.say(f"Pulling {reference.canonical}")
    progress = Transfers()
    try:
        pulled = pull_model(reference, drawn.lookup, progress)
    finally:
        progress.stop()
    for note in pulled.notes:
        ui.say(f"Note: {note}")


def _convert(drawn: Drawn) -> Sequence[ModelFile]:
    """Run the containers and put the result where it belongs; the files that make up the new model."""
    from shutil import rmtree

    from ramalama_like.models.disk import disk_problem
    from ramalama_like.models.locks import Busy

    store = Store(drawn.lookup.store)
    signals = SignalGuard()
    partial = store.partial(drawn.key)
    work = partial.data_path
    try:
        partial.__enter__()
    except Busy:
        raise ValueProblem(f"{drawn.target.text}: this very conversion is running already",
                           "wait for it to end") from None  # fmt: skip
    try:
        signals.catch()
        _check_space(drawn, os.path.dirname(work))
        rmtree(work, ignore_errors=True)  # of one that was killed
        try:
            os.mkdir(work, 0o700)
        except OSError as error:
            raise disk_problem(work, error) from None
        for step, line in zip(drawn.conversion.steps, drawn.lines, strict=True):
            run_container(line, step.container.name, step.command[0])
        return _adopt(drawn, store, f"{work}/{RESULT}")
    finally:
        signals.ignore()
        rmtree(work, ignore_errors=True)
        partial.__exit__(None, None, None)
        signals.restore()


def _check_space(drawn: Drawn, folder: str) -> None:
    from ramalama_like.models.failures import no_space
    from ramalama_like.models.usage import disk_free

    needed = drawn.conversion.source.size_bytes * SPACE_FACTOR
    free = disk_free(folder)
    if 0 <= free < needed:
        raise no_space(folder, needed, free)


def _adopt(drawn: Drawn, store: Store, result: str) -> Sequence[ModelFile]:
    """Verify what the containers made, and give it its place."""
    from stat import S_ISREG

    from ramalama_like.models.gguf import read_gguf

    try:
        status = os.lstat(result)
    except OSError:
        status = None
    # What ran there may have been a model's own code: a link would lead to any file of this machine.
    if status is None or not S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise ValueProblem(f"{drawn.conversion.source.reference}: the converter left no GGUF file",
                           "see what it said above")  # fmt: skip
    read_gguf(result)
    if drawn.target.path:
        _place(result, drawn.target.path)
        ui.say(f"Wrote {size_text(status.st_size)}")
        return ()
    record = _record(drawn, store, result, status.st_size)
    ui.say(f"{record.name}: {size_text(status.st_size)}")
    return _model_files(record, store)


def _place(result: str, path: str) -> None:
    """Give the file its name at once, and never in place of another."""
    from errno import EEXIST, EMLINK, EPERM, EXDEV
    from shutil import copyfile

    from ramalama_like.models.disk import UNFINISHED, disk_problem, remove_file, sync_file, sync_folder

    folder = os.path.dirname(path)
    unfinished = f"{folder}/{UNFINISHED}{os.getpid()}-{os.urandom(6).hex()}"
    try:
        try:
            sync_file(result)
            os.link(result, path)
        except OSError as error:
            if error.errno not in (EXDEV, EPERM, EMLINK):
                raise
            copyfile(result, unfinished)
            sync_file(unfinished)
            os.link(unfinished, path)
        finally:
            remove_file(unfinished)
        sync_folder(folder)
    except OSError as error:
        if error.errno == EEXIST:
            raise ValueProblem(f"{path}: is there already", "remove it, or name another file") from None
        raise disk_problem(path, error) from None


def _record(drawn: Drawn, store: Store, result: str, size: int) -> Record:
    from time import time

    from ramalama_like.record import Record, StoredFile

    source = drawn.conversion.source
    ending = f"-{drawn.conversion.quantization}" if drawn.conversion.quantization else ""
    with store.adopting():
        total = _sum_of(result)
        store.adopt(result, total)
        files = [StoredFile("model", f"{source.alias}{ending}.gguf", size, total), *_companions(source, store)]
        record = Record(drawn.target.name, tuple(files), time(), "", source.reference)
        store.write_record(record)
    return record


def _companions(source: Convertible, store: Store) -> list[StoredFile]:
    """What belongs to a GGUF besides its weights (projector, template, adapters), used where it lies."""
    from ramalama_like.listing import ADAPTER, PROJECTOR, TEMPLATE
    from ramalama_like.record import StoredFile

    found = []
    for file in source.files if not source.safetensors else ():
        if file.role in (PROJECTOR, TEMPLATE, ADAPTER):
            status = os.stat(file.path)
            total = os.path.basename(file.path).removeprefix("sha256-")
            if store.blob_path(total) == file.path and store.has_blob(total, status.st_size):
                found.append(StoredFile(file.role, file.name, status.st_size, total))
            else:
                found.append(StoredFile(file.role, file.name, status.st_size, path=os.path.realpath(file.path),
                                        changed_ns=status.st_mtime_ns))  # fmt: skip
    return found


def _model_files(record: Record, store: Store) -> tuple[ModelFile, ...]:
    from ramalama_like.model import ModelFile

    return tuple(ModelFile(file.role, file.path or store.blob_path(file.sha256), file.name) for file in record.files)


def _sum_of(path: str) -> str:
    from hashlib import file_digest

    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()
