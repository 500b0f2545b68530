"""The store: every byte of a model once, under its SHA-256 sum, and small records that give it names.

    <store>/ramalama-like/
        blobs/sha256-<hex>      files of models, never changed; whole and verified when they get this name
        refs/<name>.json        one record for each name (``record_files.py``)
        partial/<key>/          a download or conversion that is not finished: data, state.json and a lock
                                (of an archive: data-0, data-1 and so on)
        pins/<who>              blobs that a running pull counts on before its record exists; locked by it
        lock                    held for moments: shared for adding, alone for removing

It lies beside what RamaLama keeps in ``<store>/store`` and never touches that. Three rules make it safe at every
instruction and with any number of processes: a blob is on the disk before a record names it, a record is gone from
the disk before its blobs are removed, and every file gets its final name by one atomic rename. Whoever is killed
leaves at most files that nobody uses, which ``prune`` frees, and locks, which the kernel frees.

Making a ``Store`` and reading from it change nothing, so a store on a disk that can only be read works too.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.models.disk import (
    UNFINISHED,
    disk_problem,
    is_folder,
    is_plain,
    make_folder,
    open_plain,
    remove_file,
    sync_file,
    sync_folder,
    write_file,
)
from ramalama_like.models.locks import Busy, FileLock, is_locked, patient
from ramalama_like.models.record_files import (
    ENDING,
    LARGEST_RECORD,
    checked_bytes,
    is_sha256,
    quote_name,
    record_from_plain,
    unquote_name,
)
from ramalama_like.record import Record
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

FOLDER = "ramalama-like"
BLOB = "sha256-"
NOTE = ".done"  # ends the names of folders in partial/ that only remember something
PATIENCE_S = 60.0  # for those who hold the store's lock, which takes milliseconds


@value
class Damaged:
    """A record that cannot be used. ``name`` is shown, and removes it."""

    name: str
    path: str
    reason: str


@value
class Removable:
    """A file or folder that nobody needs: what it is, where, and how many bytes go with it."""

    kind: str  # blob, partial, note, unfinished, pin, record
    path: str
    size_bytes: int
    why: str


class Partial:
    """A download that is not finished, while this object is in ``with``: nobody else can have it then.

    What is at ``data_path`` at the end stays there for the next try; once it was adopted, the rest is removed.
    """

    def __init__(self, folder: str, waiting: Callable[[], None] | None) -> None:
        self.data_path = f"{folder}/data"
        self.state_path = f"{folder}/state.json"
        self._folder = folder
        self._lock = FileLock(f"{folder}/lock", waiting=waiting)

    def __enter__(self) -> Partial:
        try:
            _clear_the_way(self._folder)
            self._lock.__enter__()
            try:
                for path in (self.data_path, self.state_path, f"{self.state_path}.new"):
                    # What could lead a writer out of the store; the data of a conversion is a folder.
                    if not (_is_own(path) or (is_folder(path) and path == self.data_path)):
                        remove_entry(path)
            except BaseException:
                self._lock.__exit__(None, None, None)
                raise
        except OSError as error:
            raise disk_problem(self._folder, error) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        try:
            if is_folder(self._folder) and not os.path.lexists(self.data_path):
                _remove_partial(self._folder)
        except OSError:
            pass  # it can go at another time: prune finds it
        finally:
            self._lock.__exit__(kind, error, trace)


class Adopting:
    """While in ``with``, the blobs that the store was asked for or was given are kept for this process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Adopting:
        self._store._pin_begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._store._pin_end()


class Store:
    """The store below a folder, which need not exist. Several objects and processes may work in it at once."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.folder = os.path.join(os.path.abspath(root), FOLDER)
        self._pins = -1  # descriptor of this process's file of pins, while it is adopting
        self._pins_path = ""
        self._adopting = 0

    # Reading.

    def blob_path(self, sha256: str) -> str:
        """Where the file with this sum is, or would be."""
        return f"{self.folder}/blobs/{BLOB}{sha256}"

    def record_path(self, name: str) -> str:
        """Where the record of a name is, or would be."""
        return f"{self.folder}/refs/{quote_name(name)}{ENDING}"

    def has_blob(self, sha256: str, size_bytes: int = -1) -> bool:
        """Whether the file with this sum is here, whole. Within ``adopting`` it stays here from now on."""
        if self._pins < 0:
            return self._is_there(sha256, size_bytes)
        with self._locked(shared=True):
            self._pin(sha256)
            return self._is_there(sha256, size_bytes)

    def find_record(self, name: str) -> Record | None:
        """The record of a name; None where there is none, or none that can be used."""
        found = self._read(self.record_path(name))
        return found if isinstance(found, Record) else None

    def records(self) -> list[Record | Damaged]:
        """Everything that the store has a name for, sorted by name. Raises AppError where it cannot be listed."""
        folder = f"{self.folder}/refs"
        paths = [f"{folder}/{name}" for name in _listed(folder) if name.endswith(ENDING) and name[0] != "."]
        found = self._read_many(paths) or [self._read(path) for path in paths]
        return sorted((each for each in found if each is not None), key=lambda each: each.name)

    def is_complete(self, record: Record) -> bool:
        """Whether all files of a record are where they should be, with the size that they had."""
        return all(self._is_there(file.sha256, file.size_bytes) if not file.path else
                   _size_of(file.path) == file.size_bytes for file in record.files)  # fmt: skip

    def find_unused(self, older_than_s: float) -> list[Removable]:
        """What ``prune`` would remove now; see there."""
        return self._unused(older_than_s, self.records())

    # Adding.

    def partial(self, key: str, waiting: Callable[[], None] | None = None) -> Partial:
        """The unfinished download of this key, for this process alone. Entering it waits for whoever has it, calling
        ``waiting`` all the time; without that it raises Busy."""
        return Partial(f"{self.folder}/partial/{quote_name(key)}", waiting)

    def adopting(self) -> Adopting:
        """To be held from before the first ``has_blob`` or ``adopt`` of a pull until its record is written."""
        return Adopting(self)

    def adopt(self, path: str, sha256: str) -> None:
        """Make a finished, verified file of this file system a blob. It is moved; one that is there is replaced.

        Raises AppError where the disk refuses; the file is then where it was.
        """
        if not is_sha256(sha256):
            raise ValueProblem(f"{sha256!r}: is no SHA-256 sum")
        target = self.blob_path(sha256)
        try:
            make_folder(os.path.dirname(target))
            sync_file(path)
            with self._locked(shared=True):
                if self._pins >= 0:
                    self._pin(sha256)
                os.rename(path, target)
            # Who may read it stays as the umask said; nobody may write any more.
            os.chmod(target, os.stat(target).st_mode & 0o444 | 0o400)
            sync_folder(os.path.dirname(target))
        except OSError as error:
            raise disk_problem(target, error) from None

    def write_record(self, record: Record) -> int:
        """Give the files of a record its name, whatever had the name before. Returns the bytes that this freed.

        Raises ValueProblem where the store lacks one of its blobs or could not read the record again, AppError where
        the disk refuses.
        """
        content = _content_of(record)
        path = self.record_path(record.name)
        with self._locked():
            missing = [file.name for file in record.files if not file.path and not self._is_there(file.sha256, -1)]
            if missing:
                raise ValueProblem(f"{record.name}: {missing[0]} is not in the store", "pull it again")
            before = self._sums_in(path)
            self._write(path, content)
            return sum(self._free(before).values())

    def tag(self, old: str, new: str) -> Record:
        """Give the files of one name another name too. Raises ValueProblem where the first has none."""
        with self._locked():
            record = self.find_record(old)
            if record is None:
                raise ValueProblem(f"{old}: no model in the store has this name", "see them with: ramalama-like list")
            tagged = replace(record, name=new)
            content = _content_of(tagged)
            path = self.record_path(new)
            before = self._sums_in(path)
            self._write(path, content)
            self._free(before)
        return tagged

    # Removing.

    def remove(self, name: str) -> int:
        """Take a name away, and the blobs that no other name uses; returns the bytes that this freed.

        ``name`` is also that of a damaged record, as shown. Raises ValueProblem where there is none.
        """
        freed = self.remove_all([name])
        if name not in freed:
            raise ValueProblem(f"{name}: no model in the store has this name", "see them with: ramalama-like list")
        return freed[name]

    def remove_all(self, names: Iterable[str]) -> dict[str, int]:
        """As ``remove`` of each, at once: the bytes that were freed, by name, for those that were there.

        What several of them used counts for the last one.
        """
        sums: dict[str, set[str]] = {}
        with self._locked(make=False):
            for name in dict.fromkeys(names):
                path = self._path_of(name)
                found = self._sums_in(path)
                try:
                    if path and remove_entry(path):
                        sums[name] = found
                except OSError as error:
                    raise disk_problem(path, error) from None
            if not sums:
                return {}
            try:
                sync_folder(f"{self.folder}/refs")  # before any blob goes
            except OSError as error:
                raise disk_problem(f"{self.folder}/refs", error) from None
            last = {sha256: name for name, found in sums.items() for sha256 in found}
            freed = dict.fromkeys(sums, 0)
            for sha256, size in self._free(set(last)).items():
                freed[last[sha256]] += size
        return freed

    def find_freed(self, names: Iterable[str]) -> list[Removable]:
        """What removing these names would remove: their records, then the blobs that no other name uses."""
        paths = [path for path in map(self._path_of, names) if path]
        sums = {sha256 for path in paths for sha256 in self._sums_in(path)}
        rest = [each for each in self.records() if self._place(each) not in paths]
        records = [Removable("record", path, 0, "the name is removed") for path in dict.fromkeys(paths)]
        return records + self._free_blobs(sums, rest)

    def prune(self, older_than_s: float) -> list[Removable]:
        """Remove what nobody uses: blobs without a name and unfinished downloads that nobody is busy with, where
        they are older than this; and what killed processes left. Returns what was removed.

        Folders that are none of the store's are passed over. What the disk refuses to remove keeps nothing else from
        going: AppError is raised at the end.
        """
        if not os.path.isdir(self.folder):
            return []
        with self._locked(make=False):
            removed: list[Removable] = []
            refused: AppError | None = None
            for each in self._unused(older_than_s, self.records()):
                try:
                    if each.kind in ("partial", "note") and is_folder(each.path):
                        _clear_the_way(each.path)
                        with FileLock(f"{each.path}/lock"):
                            _remove_partial(each.path)
                    elif not remove_file(each.path):
                        continue
                except Busy:
                    continue  # somebody went on with it meanwhile
                except OSError as error:
                    refused = refused or disk_problem(each.path, error)
                    continue  # the rest can go all the same
                removed.append(each)
        if refused is not None:
            raise refused
        return removed

    # Within.

    def _is_there(self, sha256: str, size_bytes: int) -> bool:
        size = _size_of(self.blob_path(sha256))
        return size >= 0 and size_bytes in (-1, size)

    def _read(self, path: str) -> Record | Damaged | None:
        """The record in a file; None where there is no such file."""
        from json import loads

        try:
            plain = loads(_content(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = error.strerror or "cannot be read"
        except (ValueError, RecursionError):
            reason = "is no JSON"
        else:
            try:
                record = record_from_plain(plain)
                if self.record_path(record.name) == path:
                    return record
                reason = "holds another name than its file has"
            except ValueError as error:
                reason = str(error)
        return Damaged(unquote_name(os.path.basename(path)[: -len(ENDING)]), path, reason)

    def _read_many(self, paths: list[str]) -> list[Record | Damaged | None]:
        """As ``_read`` of each, three times as fast; nothing where any of them is not as it should be."""
        from json import loads

        try:
            # Parsed as one text: thousands of small ones take twice as long.
            plain = loads(b"[%s]" % b",".join(map(_content, paths)))
            found: list[Record | Damaged | None] = list(map(record_from_plain, plain))
        except (OSError, ValueError, RecursionError):
            return []
        same = len(found) == len(paths) and all(
            self.record_path(record.name) == path for record, path in zip(found, paths, strict=True) if record
        )
        return found if same else []

    def _path_of(self, name: str) -> str:
        """The file of the record that is shown under a name; empty where there is none."""
        path = self.record_path(name)
        if os.path.lexists(path):
            return path
        shown = [each.path for each in self.records() if isinstance(each, Damaged) and each.name == name]
        return shown[0] if shown else ""

    def _place(self, record: Record | Damaged) -> str:
        return record.path if isinstance(record, Damaged) else self.record_path(record.name)

    def _sums_in(self, path: str) -> set[str]:
        """The blobs that a record names; of a damaged one, those whose sums can still be read in it."""
        if not path:
            return set()
        found = self._read(path)
        if isinstance(found, Damaged):
            return _salvaged(path)
        return {file.sha256 for file in found.files if not file.path} if found else set()

    def _used(self, records: Iterable[Record | Damaged]) -> set[str]:
        return {sha256 for each in records for sha256 in (
            _salvaged(each.path) if isinstance(each, Damaged) else [f.sha256 for f in each.files if not f.path]
        )}  # fmt: skip

    def _free(self, sums: set[str]) -> dict[str, int]:
        """Remove those of the blobs that nobody uses any more, and tell their sizes; the lock is held alone."""
        freed: dict[str, int] = {}
        for each in self._free_blobs(sums, self.records()) if sums else []:
            try:
                if remove_file(each.path):
                    freed[each.path.rpartition(BLOB)[2]] = each.size_bytes
            except OSError as error:
                raise disk_problem(each.path, error) from None
        return freed

    def _free_blobs(self, sums: set[str], records: list[Record | Damaged]) -> list[Removable]:
        if not _all_readable(records):
            return []
        free = sums - self._used(records) - self._pinned()
        sized = [(path, _size_of(path)) for path in map(self.blob_path, sorted(free))]
        return [Removable("blob", path, size, "no name uses it any more") for path, size in sized if size >= 0]

    def _unused(self, older_than_s: float, records: list[Record | Damaged]) -> list[Removable]:
        from time import time

        latest = time() - older_than_s
        found: list[Removable] = []
        if _all_readable(records):  # else who knows what an unreadable one counts on
            used = self._used(records) | self._pinned()
            for name in sorted(_listed(f"{self.folder}/blobs")):
                path = f"{self.folder}/blobs/{name}"
                status = _status(path)
                if not status or S_ISDIR(status.st_mode):
                    continue
                if name.removeprefix(BLOB) not in used and status.st_mtime <= latest:
                    found.append(Removable("blob", path, status.st_size, "no model uses it"))
        for name in sorted(_listed(f"{self.folder}/partial")):
            path = f"{self.folder}/partial/{name}"
            # Behind a link is nothing of the store: only the link itself can go.
            members = ("", "/data", "/state.json") if is_folder(path) else ("",)
            statuses = [status for member in members if (status := _status(path + member))]
            if (
                statuses
                and max(s.st_mtime for s in statuses) <= latest
                and not (len(members) > 1 and is_locked(f"{path}/lock"))
            ):
                size = _size_within(path) + _size_within(f"{path}/data") if len(members) > 1 else 0
                # Downloads without a published sum leave a note, so that a finished file is known again.
                is_note = name.endswith(NOTE)
                what = "conversion" if len(members) > 1 and is_folder(f"{path}/data") else "download"
                why = "remembers a download that has ended" if is_note else f"nobody goes on with this {what}"
                found.append(Removable("note" if is_note else "partial", path, size, why))
        for name in sorted(_listed(f"{self.folder}/refs")):
            # The store's lock is held while one is written, so whoever left this was killed.
            path = f"{self.folder}/refs/{name}"
            status = _status(path)
            if status and not S_ISDIR(status.st_mode) and name.startswith(UNFINISHED) and status.st_mtime <= latest:
                found.append(Removable("unfinished", path, status.st_size, "somebody was stopped while writing it"))
        for name in sorted(_listed(f"{self.folder}/pins")):
            path = f"{self.folder}/pins/{name}"
            if not is_folder(path) and not is_locked(path):
                found.append(Removable("pin", path, 0, "the pull that made it has ended"))
        return found

    def _pinned(self) -> set[str]:
        """The blobs that running pulls count on."""
        pinned: set[str] = set()
        for name in _listed(f"{self.folder}/pins"):
            path = f"{self.folder}/pins/{name}"
            if path == self._pins_path or is_locked(path):
                try:
                    with open(path, "rb", opener=open_plain) as file:
                        pinned.update(file.read().decode("ascii", "replace").split())
                except FileNotFoundError:
                    continue  # it has ended
                except OSError as error:
                    raise disk_problem(path, error) from None
        return pinned

    def _pin(self, sha256: str) -> None:
        from errno import ENOSPC

        line = f"\n{sha256}\n".encode()  # after what a full disk may have cut off
        try:
            if os.write(self._pins, line) < len(line):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
        except OSError as error:
            raise disk_problem(self._pins_path, error) from None

    def _pin_begin(self) -> None:
        self._adopting += 1
        if self._adopting > 1:
            return
        import fcntl

        self._pins_path = f"{self.folder}/pins/{os.getpid()}-{os.urandom(6).hex()}"
        try:
            make_folder(os.path.dirname(self._pins_path))
            with self._locked(shared=True):  # so that nobody takes it for that of a dead process before it is locked
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                self._pins = os.open(self._pins_path, flags, 0o666)
                fcntl.flock(self._pins, fcntl.LOCK_EX)
        except OSError as error:
            self._adopting -= 1
            raise disk_problem(self.folder, error) from None

    def _pin_end(self) -> None:
        self._adopting -= 1
        if not self._adopting:
            remove_file(self._pins_path)
            os.close(self._pins)
            self._pins, self._pins_path = -1, ""

    def _write(self, path: str, content: bytes) -> None:
        try:
            if os.path.isdir(f"{self.folder}/blobs"):
                sync_folder(f"{self.folder}/blobs")  # whoever put a blob there may have been killed before doing so
            make_folder(os.path.dirname(path))
            write_file(path, content)
        except OSError as error:
            raise disk_problem(path, error) from None

    def _locked(self, *, shared: bool = False, make: bool = True) -> _Moment:
        return _Moment(self.folder, shared, make)


class _Moment:
    """The store's lock, for one step."""

    def __init__(self, folder: str, shared: bool, make: bool) -> None:
        self._folder, self._make = folder, make
        self._lock = FileLock(f"{folder}/lock", shared=shared, waiting=patient(folder, PATIENCE_S))
        self._held = False

    def __enter__(self) -> None:
        if not self._make and not os.path.isdir(self._folder):
            return  # nothing is here that could be removed
        try:
            if os.path.islink(self._folder):  # what it leads to is not ours to write to, let alone to remove
                raise OSError(0, "is a link, where a folder should be")
            self._lock.__enter__()
        except OSError as error:
            raise disk_problem(self._folder, error) from None
        self._held = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        if self._held:
            self._lock.__exit__(kind, error, trace)


def _content_of(record: Record) -> bytes:
    """What is written of a record. Raises ValueProblem for one that would be found damaged."""
    try:
        return checked_bytes(record)
    except ValueError as error:
        reason = "its name holds half a character" if isinstance(error, UnicodeError) else f"its entry {error}"
        raise ValueProblem(f"{record.name!a}: cannot be kept: {reason}", "choose another name or file") from None


def _all_readable(records: Iterable[Record | Damaged]) -> bool:
    return not any(isinstance(each, Damaged) for each in records)


def _salvaged(path: str) -> set[str]:
    """Whatever in a damaged record looks like the sum of a blob."""
    import re

    try:
        return {found.decode() for found in re.findall(rb"\b[0-9a-f]{64}\b", _content(path))}
    except OSError:
        return set()


def remove_entry(path: str) -> bool:
    """Remove a file, or whatever else has taken its place; False where there was nothing."""
    if is_folder(path):
        from shutil import rmtree

        rmtree(path)
        return True
    return remove_file(path)


def _is_own(path: str) -> bool:
    """Whether this is a file that has no name elsewhere: what is written into it changes nothing else."""
    status = _status(path)
    return status is not None and S_ISREG(status.st_mode) and status.st_nlink == 1


def _clear_the_way(folder: str) -> None:
    """Remove what stands where an unfinished download is to be but is no folder, or whose lock is no file: a link
    would lead out of the store, and a pipe cannot be locked. Raises OSError."""
    if not is_folder(folder):
        remove_file(folder)
    elif not is_plain(f"{folder}/lock"):
        remove_entry(f"{folder}/lock")


def _remove_partial(folder: str) -> None:
    """Remove an unfinished download whose lock is held. The lock goes last, with the folder."""
    for name in (*(name for name in os.listdir(folder) if name != "lock"), "lock"):
        remove_entry(f"{folder}/{name}")  # the data of a conversion is a folder
    try:
        os.rmdir(folder)
    except OSError:
        return  # somebody is already making the next one


def _content(path: str) -> bytes:
    """What is in a plain file: behind no link, and in no pipe, which would wait for ever. Raises OSError."""
    descriptor = open_plain(path, os.O_RDONLY)
    try:
        status = os.fstat(descriptor)
        if status.st_size > LARGEST_RECORD:
            raise OSError(0, "is too large")
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise AppError(f"{folder}: {error.strerror}", "name another folder with --store", exit_code=5) from None


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _size_within(folder: str) -> int:
    """The bytes of what lies in a folder; 0 where it is none."""
    if not is_folder(folder):
        return 0
    return sum(status.st_size for name in _listed(folder) if (status := _status(f"{folder}/{name}")))


def _size_of(path: str) -> int:
    """The size of a file, also behind links; -1 where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return -1
    return status.st_size if S_ISREG(status.st_mode) else -1
