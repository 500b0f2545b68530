"""One file that holds a model, for machines without a network: an OCI image layout in a tar archive.

``skopeo copy oci-archive:FILE`` reads it, since the model in it is an artifact of the CNCF's ModelPack, as ``push``
makes them. What only this program needs (the model's name, its files' roles) stands in annotations. A container image
may travel along, as the engine's own archive beside the layout, with its sum.

Nothing in a file from elsewhere is believed: every member must be a plain file or folder below the archive's root, and
every byte that is used has the sum by which it was named.
"""

from __future__ import annotations

import os

from ramalama_like.errors import ValueProblem
from ramalama_like.listing import LAYER, MODEL, OTHER, SHARD, TEMPLATE, WEIGHTS
from ramalama_like.models.answers import size_of
from ramalama_like.models.disk import UNFINISHED, disk_problem, open_plain, remove_file, sync_folder
from ramalama_like.models.media_types import (
    FILE_NAMES,
    MODELPACK_CONFIG,
    MODELPACK_MANIFEST,
    MODELPACK_WEIGHT,
    MODELPACK_WEIGHT_CONFIG,
    role_of,
)
from ramalama_like.models.record_files import MOST_BYTES, is_file_name, is_sha256
from ramalama_like.record import Record, StoredFile
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from tarfile import TarFile, TarInfo
    from types import TracebackType
    from typing import IO, Any

    from ramalama_like.models.store import Store

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OWN = "ai.ramalama."  # begins our annotations
NAME, REVISION, SOURCE, ROLE = f"{OWN}model", f"{OWN}revision", f"{OWN}source", f"{OWN}role"
IMAGE, IMAGE_SUM = f"{OWN}image", f"{OWN}image.sha256"
IMAGE_MEMBER = "ramalama-like/image.tar"
REF_NAME = "org.opencontainers.image.ref.name"
ROLES = ("model", "shard", "mmproj", "draft", "adapter", "template", "safetensors", "other")
LARGEST_TEXT = 4 << 20  # bytes of an index or a manifest
MOST_MEMBERS = 10_000
PIECE = 1 << 20
GGUF = b"GGUF"  # begins every GGUF file
_SPOILT = "see what is wrong: ramalama-like fsck"
_HARM = "do not use it: its maker means harm, or its program is faulty"


@value
class Imported:
    """The models that were put into the store, and the container image that came along."""

    records: tuple[Record, ...]
    image: str = ""  # its reference; empty where there was none


def export_model(store: Store, record: Record, path: str, *, image: str = "", image_file: str = "",
                 progress: Callable[[int], None] = lambda _: None) -> int:  # fmt: skip
    """Write a model, and the archive ``image_file`` of a container image, into one new file; returns its size.

    Raises ValueProblem where there is a file of this name or the model's are not what they were, AppError where the
    disk refuses. The file gets its name when it is whole.
    """
    if os.path.lexists(path):
        raise ValueProblem(f"{path}: is there already", "remove it, or name another file")
    path = os.path.abspath(path)
    unfinished = os.path.join(os.path.dirname(path), f"{UNFINISHED}{os.getpid()}-{os.urandom(6).hex()}")
    try:
        try:
            with open(unfinished, "xb") as file:
                _write(store, record, file, image, image_file, progress)
                file.flush()
                os.fsync(file.fileno())
            os.rename(unfinished, path)
        finally:
            remove_file(unfinished)
        sync_folder(os.path.dirname(path))
        return os.path.getsize(path)
    except OSError as error:
        raise disk_problem(path, error) from None


def _write(store: Store, record: Record, file: IO[bytes], image: str, image_file: str,
           progress: Callable[[int], None]) -> None:  # fmt: skip
    from json import dumps
    from tarfile import PAX_FORMAT, TarFile

    def text(plain: object) -> bytes:
        return dumps(plain, separators=(",", ":")).encode()

    sources = [(each.path or store.blob_path(each.sha256), each) for each in record.files]
    layers: list[dict[str, Any]] = []
    for source, each in sources:
        sha256 = each.sha256 or _sum_of(source)
        kind = MODELPACK_WEIGHT_CONFIG if each.role == TEMPLATE else MODELPACK_WEIGHT
        layers.append({"mediaType": kind, "digest": f"sha256:{sha256}", "size": each.size_bytes,
                       "annotations": {**dict.fromkeys(FILE_NAMES, each.name), ROLE: each.role}})  # fmt: skip
    config = text({"descriptor": {"name": record.name}, "config": {},
                   "modelfs": {"type": "layers", "diffIds": [layer["digest"] for layer in layers]}})  # fmt: skip
    manifest = text({"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": MODELPACK_MANIFEST,
                     "config": {"mediaType": MODELPACK_CONFIG, **_descriptor(config)}, "layers": layers})  # fmt: skip
    notes = {REF_NAME: record.name.partition("://")[2] or record.name, NAME: record.name,
             REVISION: record.revision, SOURCE: record.source}  # fmt: skip
    if image_file:
        notes |= {IMAGE: image, IMAGE_SUM: _sum_of(image_file)}
    index = text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
        {"mediaType": MANIFEST, "artifactType": MODELPACK_MANIFEST, **_descriptor(manifest),
         "annotations": {key: word for key, word in notes.items() if word}}]})  # fmt: skip
    with TarFile(fileobj=file, mode="w", format=PAX_FORMAT) as tar:
        _add(tar, "oci-layout", text({"imageLayoutVersion": "1.0.0"}))
        _add(tar, "index.json", index)
        _add(tar, _member(_descriptor(manifest)["digest"]), manifest)
        _add(tar, _member(_descriptor(config)["digest"]), config)
        written = set()
        for (source, each), layer in zip(sources, layers, strict=True):
            if layer["digest"] not in written:
                written.add(layer["digest"])
                _add_file(tar, _member(layer["digest"]), source, each.size_bytes, layer["digest"][7:], progress)
        if image_file:
            _add_file(tar, IMAGE_MEMBER, image_file, os.path.getsize(image_file), notes[IMAGE_SUM], progress)


def _descriptor(content: bytes) -> dict[str, Any]:
    from hashlib import sha256

    return {"digest": f"sha256:{sha256(content).hexdigest()}", "size": len(content)}


def _member(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _sum_of(path: str) -> str:
    from hashlib import file_digest

    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _add(tar: TarFile, name: str, content: bytes) -> None:
    from io import BytesIO

    tar.addfile(_info(name, len(content)), BytesIO(content))


def _info(name: str, size: int) -> TarInfo:
    from tarfile import TarInfo

    info = TarInfo(name)  # of nobody, of no time: the same model always gives the same bytes
    info.size, info.mode = size, 0o644
    return info


def _add_file(tar: TarFile, name: str, path: str, size: int, sha256: str, progress: Callable[[int], None]) -> None:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size != size:
            raise ValueProblem(
                f"{path}: does not have the size that was noted", "see what is wrong: ramalama-like fsck"
            )
        source = _Hashing(file, size, progress)
        tar.addfile(_info(name, size), source)
        if source.hexdigest() != sha256:
            raise ValueProblem(
                f"{path}: its content is not what its sum says", "repair it: ramalama-like fsck --repair"
            )


class _Hashing:
    """A file that is read once, with its sum."""

    def __init__(self, file: IO[bytes], size: int, progress: Callable[[int], None]) -> None:
        from hashlib import sha256

        self._file, self._left, self._progress, self._hash = file, size, progress, sha256()

    def read(self, count: int = -1) -> bytes:
        piece = self._file.read(min(count, self._left) if count >= 0 else self._left)
        self._left -= len(piece)
        self._hash.update(piece)
        self._progress(len(piece))
        return piece

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


# Reading.


class Archive:
    """An open archive whose names are all harmless. Raises ValueProblem for anything else, in ``with``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._members: dict[str, TarInfo] = {}

    def __enter__(self) -> Archive:
        from stat import S_ISREG
        from tarfile import TarError, TarFile

        try:
            file = open(self.path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))
        except OSError as error:
            raise ValueProblem(f"{self.path}: {error.strerror}") from None
        try:
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueProblem(f"{self.path}: is no file")
            self._tar = TarFile(fileobj=file, mode="r")
            for member in self._tar:
                self._note(member)
        except (TarError, ValueError, OverflowError, EOFError) as error:
            file.close()
            raise ValueProblem(f"{self.path}: is no archive of a model: {error}",
                               "make one with: ramalama-like export") from None  # fmt: skip
        except BaseException:
            file.close()
            raise
        self._file = file
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._file.close()

    def _note(self, member: TarInfo) -> None:
        name = member.name.removeprefix("./").rstrip("/")
        if member.isdir() and name in ("", "."):
            return
        if name.startswith("/") or not name.isprintable() or any(part in ("", ".", "..") for part in name.split("/")):
            raise ValueProblem(f"{self.path}: holds a file with the name {member.name!r}, which leads out of it", _HARM)
        if member.isdir():
            return
        if not member.isreg() or member.sparse is not None:
            raise ValueProblem(f"{self.path}: {name} is no plain file", _HARM)
        if name in self._members or len(self._members) >= MOST_MEMBERS:
            raise ValueProblem(f"{self.path}: holds {name} twice, or too many files", _HARM)
        self._members[name] = member

    def document(self, name: str, digest: str = "") -> dict[str, Any]:
        """A JSON object in the archive; ``digest`` is what it must be. Raises ValueProblem."""
        from json import loads

        member = self._members.get(name)
        if member is None or member.size > LARGEST_TEXT:
            raise self._bad(f"has no {name}")
        file = self._tar.extractfile(member)
        content = file.read() if file else b""
        if digest and _descriptor(content)["digest"] != digest:
            raise self._bad(f"{name} is not what its sum says")
        try:
            plain = loads(content)
        except (ValueError, RecursionError):
            raise self._bad(f"{name} is no JSON") from None
        if not isinstance(plain, dict):
            raise self._bad(f"{name} is no JSON object")
        return plain

    def copy(self, name: str, path: str, sha256: str, progress: Callable[[int], None]) -> int:
        """Write a member into a file and return its size. Raises ValueProblem where its content is not this, OSError
        where the disk refuses or something else than a file has this name."""
        member = self._members.get(name)
        source = self._tar.extractfile(member) if member else None
        if member is None or source is None:
            raise self._bad(f"has no {name}")
        hashing = _Hashing(source, member.size, progress)
        with open(path, "wb", opener=open_plain) as file:
            while piece := hashing.read(PIECE):
                file.write(piece)
            size = file.tell()
        if size != member.size or hashing.hexdigest() != sha256:
            os.unlink(path)
            raise self._bad(f"{name} is not what its sum says")
        return size

    def begins(self, name: str, size: int) -> bytes:
        """The first bytes of a member. Raises ValueProblem where there is none, or where it has another size."""
        member = self._members.get(name)
        source = self._tar.extractfile(member) if member else None
        if member is None or source is None:
            raise self._bad(f"has no {name}")
        if member.size != size:
            raise self._bad(f"{name} does not have the size that was noted")
        return source.read(len(GGUF))

    def manifests(self) -> list[Mapping[str, Any]]:
        """What the index says about each thing in the archive."""
        listed = self.document("index.json").get("manifests")
        if not isinstance(listed, list) or not listed or not all(isinstance(each, dict) for each in listed):
            raise self._bad("its index names no model")
        return listed

    def image(self) -> tuple[str, str]:
        """Reference and sum of the container image that comes along; empty where there is none."""
        for each in self.manifests():
            notes = _notes(each)
            if IMAGE in notes and IMAGE_SUM in notes:
                reference, sha256 = notes[IMAGE], notes[IMAGE_SUM]
                if not is_sha256(sha256) or not reference.isprintable() or reference[:1] in ("", "-"):
                    raise self._bad("describes its container image in a way that cannot be used")
                return reference, sha256
        return "", ""

    def _bad(self, what: str) -> ValueProblem:
        return ValueProblem(f"{self.path}: {what}", "get the file again")


def import_model(store: Store, archive: Archive, name: str = "", *, check: Callable[[str], None],
                 progress: Callable[[int], None] = lambda _: None) -> Imported:  # fmt: skip
    """Put the models of an archive into the store. ``name`` takes the place of the name in it.

    ``check`` looks at the weights, and at the name that the archive gives, and raises what is wrong with them.
    Raises ValueProblem; nothing has a name in the store then, and what was whole is kept for the next try.
    """
    listed = [each for each in archive.manifests() if each.get("mediaType", MANIFEST) == MANIFEST]
    if not listed or (name and len(listed) > 1):
        raise archive._bad("holds several models, which cannot share one name" if listed else "holds no model")
    records = [_described(archive, each, name) for each in listed]  # everything is looked at before anything is written
    if len({record.name for record in records}) < len(records):
        raise archive._bad("holds two models of the same name")
    files = _distinct(archive, [file for record in records for file in record.files])
    with store.adopting():
        for file in files:
            _import_file(store, archive, file, check, progress)
        for record in records:
            store.write_record(record)
    return Imported(tuple(records), archive.image()[0])


def _described(archive: Archive, described: Mapping[str, Any], name: str) -> Record:
    """The record of a model in an archive that has what it needs. Raises ValueProblem."""
    from time import time

    digest = described.get("digest")
    notes = _notes(described)
    name = name or notes.get(NAME, "")
    if not name:
        raise ValueProblem(f"{archive.path}: does not tell the model's name",
                           f"write: ramalama-like import {archive.path} NAME")  # fmt: skip
    if not isinstance(digest, str) or not _is_digest(digest):
        raise archive._bad("its index names a model without a proper sum")
    layers = archive.document(_member(digest), digest).get("layers")
    if not isinstance(layers, list) or not layers or not all(isinstance(layer, dict) for layer in layers):
        raise archive._bad("the model in it has no files")
    files = tuple(_file_of(archive, layer) for layer in layers)
    names = [file.name for file in files]
    if len(set(names)) < len(names):
        raise archive._bad("two files of the model in it have the same name")
    if not any(file.role in (MODEL, WEIGHTS) for file in files):
        raise archive._bad("holds no model: none of its files has weights")
    return Record(name, files, time(), notes.get(REVISION, ""), notes.get(SOURCE, ""))


def _distinct(archive: Archive, files: list[StoredFile]) -> list[StoredFile]:
    """Each content once. Raises ValueProblem where a member is missing, of another size, or no weights for its role.

    Several models may share a file, and small texts of one model may be equal; equal weights under two names, or a
    content with two roles, come from no honest maker.
    """
    found: dict[str, StoredFile] = {}
    for file in files:
        begin = archive.begins(_member(f"sha256:{file.sha256}"), file.size_bytes)
        if file.role in (MODEL, SHARD) and begin != GGUF:
            raise archive._bad(f"{file.name} is no GGUF file")
        first = found.setdefault(file.sha256, file)
        same_name = first.name == file.name or file.role in (TEMPLATE, OTHER, WEIGHTS)
        if first.role != file.role or not same_name:
            raise archive._bad(f"holds one content as {first.name} and as {file.name}")
    return list(found.values())


def _import_file(store: Store, archive: Archive, file: StoredFile, check: Callable[[str], None],
                 progress: Callable[[int], None]) -> None:  # fmt: skip
    """Make a file of an archive a blob, once it is what it says. Raises AppError."""

    def look(path: str) -> None:
        if file.role in (MODEL, SHARD):
            try:
                check(path)
            except ValueProblem as problem:
                said = problem.message.replace(path, f"{archive.path}: {file.name}")
                raise ValueProblem(said, problem.hint, problem.exit_code) from None

    if store.has_blob(file.sha256, file.size_bytes):
        look(store.blob_path(file.sha256))  # it may have been something else so far
        return
    with store.partial(file.sha256, waiting=lambda: None) as partial:
        try:
            archive.copy(_member(f"sha256:{file.sha256}"), partial.data_path, file.sha256, progress)
            look(partial.data_path)
        except OSError as error:
            raise disk_problem(partial.data_path, error) from None
        except ValueProblem:
            remove_file(partial.data_path)
            raise
        store.adopt(partial.data_path, file.sha256)


def _file_of(archive: Archive, layer: Mapping[str, Any]) -> StoredFile:
    digest, size, kind, notes = layer.get("digest"), size_of(layer.get("size")), layer.get("mediaType"), _notes(layer)
    name = next((notes[key] for key in FILE_NAMES if key in notes), "").rpartition("/")[2]
    told = layer.get("size")
    if type(told) is int and told > MOST_BYTES:
        raise archive._bad(f"describes a file of a size that is none: {name!a}")
    if not isinstance(digest, str) or not _is_digest(digest) or size < 0 or not isinstance(kind, str):
        raise archive._bad("describes a file in a way that cannot be used")
    if not is_file_name(name):
        raise archive._bad(f"holds a file that is to be called {name!r}")
    role = notes.get(ROLE, "")
    role = role if role in ROLES else role_of(kind, name)
    if role == LAYER:
        raise ValueProblem(f"{archive.path}: {name} is packed, which cannot be imported", "pull the model instead")
    return StoredFile(role, name, size, digest[7:])


def _is_digest(digest: str) -> bool:
    return digest.startswith("sha256:") and is_sha256(digest[7:])


def _notes(described: Mapping[str, Any]) -> dict[str, str]:
    notes = described.get("annotations")
    return {key: word for key, word in notes.items() if isinstance(word, str)} if isinstance(notes, dict) else {}
