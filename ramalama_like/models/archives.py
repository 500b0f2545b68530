"""Files of models out of archives: layers of images, and artifacts that are packed.

A layer is read once, as a stream: its bytes are summed up, decompressed and taken apart on the way, and each file goes
into the store under its own sum. Nothing is ever unpacked into a folder, so there is no path to play tricks with. The
files count only when the whole layer has turned out to be what its digest says.
"""

from __future__ import annotations

import contextlib
import os

from ramalama_like.errors import ValueProblem
from ramalama_like.models import failures
from ramalama_like.models.archive_names import Layers, check_kept, plain_name
from ramalama_like.models.blob_stream import BlobStream, open_archive
from ramalama_like.models.disk import disk_problem, open_plain, remove_file
from ramalama_like.reference import plain_url
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from tarfile import TarFile, TarInfo

    from ramalama_like.listing import RemoteFile
    from ramalama_like.models.client import Client
    from ramalama_like.models.store import Store

_PIECE = 1 << 20
MOST_FILES = 100_000  # below the folder that counts
_RESERVE_BYTES = 16 << 20


@value
class Unpacked:
    """A file that came out of an archive, now a blob."""

    name: str  # within the archive
    sha256: str
    size_bytes: int


@value
class Contents:
    """All files of some archives, and the links that lead to them."""

    files: tuple[Unpacked, ...]
    links: tuple[tuple[str, str], ...] = ()  # name of the link, name of the file


def fetch_archives(client: Client, archives: Sequence[RemoteFile], store: Store, *, authorization: str = "",
                   progress: Callable[[int], None] | None = None,
                   waiting: Callable[[], None] | None = None) -> Contents:  # fmt: skip
    """Have the files of archives, the lowest layer first, as blobs of the store.

    ``progress`` is told how many bytes of all archives have been read. ``path`` of each archive is the folder in it
    that counts, "/" for all. To be called within ``store.adopting()``. Raises AppError.
    """
    names: Layers[Unpacked] = Layers(archives[0].path if archives else "")
    before = 0
    for archive in archives:
        done = before
        read = _read_layer(client, archive, store, authorization, waiting,
                           lambda count, done=done: progress(done + count) if progress else None)  # type: ignore[misc]  # fmt: skip
        read.lay_over(names)
        before += read.size
    return Contents(tuple(sorted(names.files().values(), key=lambda file: file.name)),
                    tuple(sorted(names.links().items())))  # fmt: skip


class _Read:
    """What one layer holds."""

    def __init__(self, archive: str) -> None:
        self.archive = archive
        self.size = 0
        self.files: list[Unpacked] = []
        self.links: list[tuple[str, str, bool]] = []
        self.marks: list[str] = []

    def lay_over(self, names: Layers[Unpacked]) -> None:
        """Marks count for the layers below alone, wherever in the layer they stand."""
        for mark in self.marks:
            names.mark(mark)
        for file in self.files:
            names.add_file(file.name, file)
        for name, target, hard in self.links:
            names.add_link(name, target, hard=hard)


def _read_layer(client: Client, archive: RemoteFile, store: Store, authorization: str,
                waiting: Callable[[], None] | None, progress: Callable[[int], None]) -> _Read:  # fmt: skip
    import tarfile

    shown = plain_url(archive.url)
    read = _Read(shown)
    with contextlib.ExitStack() as held:
        source = held.enter_context(BlobStream(client, archive, authorization, progress))
        # One lock for all files, of which there may be more than a process may have open. What does not become a
        # blob goes with the folder: a layer that has failed is read from its beginning again.
        partial = held.enter_context(store.partial(f"{archive.sha256}-files", waiting))
        unfinished: list[tuple[str, Unpacked]] = []
        try:
            with tarfile.open(fileobj=open_archive(source), mode="r|", bufsize=1 << 18) as tar:
                for member in tar:
                    tar.members = []  # type: ignore[attr-defined]  # it would keep them all
                    name = plain_name(member.name, shown)
                    if not _counts(name, archive.path):
                        continue
                    if len(read.files) + len(read.links) > MOST_FILES:
                        raise ValueProblem(f"{shown}: holds more than {MOST_FILES} files", "this is no model")
                    if not _note(read, name, member):
                        check_kept(name, shown)
                        path = f"{partial.data_path}-{len(read.files)}"
                        file = _write(tar, member, name, path)
                        unfinished.append((path, file))
                        read.files.append(file)
            source.finish()
        except tarfile.TarError as error:
            source.finish()  # a damaged layer says so by its digest
            raise ValueProblem(
                f"{shown}: is no archive that can be read ({error})", "get the model elsewhere"
            ) from None
        read.size = source.place
        for path, file in unfinished:
            store.adopt(path, file.sha256)
    return read


def _counts(name: str, folder: str) -> bool:
    return folder == "/" or name.startswith(folder) or f"{name}/" == folder


def _note(read: _Read, name: str, member: TarInfo) -> bool:
    """Keep in mind what is no file; whether that was all there is to do."""
    if member.issym() or member.islnk():
        read.links.append((name, member.linkname, member.islnk()))
    elif name.rpartition("/")[2].startswith(".wh."):
        read.marks.append(name)
    elif member.isreg():
        return False
    return True  # folders, and devices, which no model has


def _write(tar: TarFile, member: TarInfo, name: str, path: str) -> Unpacked:
    from hashlib import sha256

    free = _free_bytes(os.path.dirname(path))
    if 0 <= free < member.size + _RESERVE_BYTES:
        raise failures.no_space(os.path.dirname(path), member.size, free)
    content = tar.extractfile(member)
    total, size = sha256(), 0
    try:
        remove_file(path)  # of one who was killed; or a link, which would be followed
        with open(path, "xb", buffering=0, opener=open_plain) as file:
            while content is not None and (piece := content.read(_PIECE)):
                total.update(piece)
                size += len(piece)
                file.write(piece)
    except OSError as error:
        raise disk_problem(path, error) from None
    return Unpacked(name, total.hexdigest(), size)


def _free_bytes(folder: str) -> int:
    try:
        seen = os.statvfs(folder)
    except OSError:
        return -1
    return seen.f_bavail * seen.f_frsize
