"""Whether the store is sound: every record whole, every blob what its name says, nothing lying about."""

from __future__ import annotations

import os
from stat import S_ISREG

from ramalama_like.models.disk import disk_problem, is_folder
from ramalama_like.models.record_files import is_sha256
from ramalama_like.models.store import BLOB, Damaged, remove_entry
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ramalama_like.models.store import Store
    from ramalama_like.record import Record, StoredFile

PIECE = 1 << 20  # bytes hashed at a time
# Kinds of findings. What is wrong makes the command fail; what is only left over costs space.
DAMAGED_RECORD, DAMAGED_BLOB, MISSING, CHANGED, STRAY = "damaged record", "damaged file", "missing", "changed", "stray"
WRONG = (DAMAGED_RECORD, DAMAGED_BLOB, MISSING, CHANGED)


@value
class Finding:
    """One thing that is not as it should be."""

    kind: str
    path: str
    text: str
    models: tuple[str, ...] = ()  # names that it concerns
    size_bytes: int = 0
    remedy: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether something is lost; otherwise it only takes space."""
        return self.kind in WRONG


def check_store(
    store: Store, *, contents: bool = True, progress: Callable[[int], None] = lambda _: None
) -> list[Finding]:
    """Everything that is wrong or left over, in the order of its paths. Changes nothing.

    ``contents``: every blob is read and its sum compared; else only sizes are. ``progress`` is given the bytes read.
    """
    records = store.records()
    findings = [
        Finding(DAMAGED_RECORD, each.path, f"the entry {each.reason}", (each.name,), 0,
                f"ramalama-like rm {_word(each.name)}")
        for each in records if isinstance(each, Damaged)
    ]  # fmt: skip
    wanted: dict[str, tuple[int, list[str]]] = {}
    for record in records:
        if isinstance(record, Damaged):
            continue
        for file in record.files:
            if file.path:
                findings += _in_place(record, file)
            else:
                wanted.setdefault(file.sha256, (file.size_bytes, []))[1].append(record.name)
    for sha256, (size, names) in wanted.items():
        if not store.has_blob(sha256) and _still_named(store, sha256, names):
            findings.append(Finding(MISSING, store.blob_path(sha256), "the file is not there", tuple(names), size,
                                    f"ramalama-like pull {_word(names[0])}"))  # fmt: skip
    findings += _blobs(store, wanted, contents, progress)
    findings += [Finding(STRAY, each.path, each.why, (), each.size_bytes, "ramalama-like prune --older-than 0")
                 for each in store.find_unused(0) if each.kind != "note"]  # fmt: skip
    return sorted(findings, key=lambda finding: (not finding.is_wrong, finding.path, finding.text))


def repair_store(store: Store, findings: list[Finding]) -> list[Finding]:
    """Remove what is damaged, so that the next pull fetches it again: those findings. Names are kept where a pull can
    make them whole. Raises AppError."""
    removed = []
    for finding in findings:
        if finding.kind == DAMAGED_RECORD:
            store.remove(finding.models[0])
        elif finding.kind == DAMAGED_BLOB:
            try:
                if not remove_entry(finding.path):
                    continue
            except OSError as error:
                raise disk_problem(finding.path, error) from None
        else:
            continue
        removed.append(finding)
    return removed


def _word(name: str) -> str:
    from shlex import quote

    return quote(name)


def _in_place(record: Record, file: StoredFile) -> Iterator[Finding]:
    try:
        status = os.stat(file.path)
    except OSError as error:
        yield Finding(MISSING, file.path, f"cannot be used: {error.strerror}", (record.name,), file.size_bytes,
                      f"ramalama-like rm {_word(record.name)}")  # fmt: skip
        return
    if status.st_size != file.size_bytes or (file.changed_ns and status.st_mtime_ns != file.changed_ns):
        yield Finding(CHANGED, file.path, "has changed since it was noted", (record.name,), status.st_size,
                      f"ramalama-like pull {_word(record.name)}")  # fmt: skip


def _still_named(store: Store, sha256: str, names: list[str]) -> bool:
    """Whether a record still names the blob: it may have been removed, with its blob, since the list was made."""
    again = [record for record in map(store.find_record, names) if record]
    return any(file.sha256 == sha256 for record in again for file in record.files) and not store.has_blob(sha256)


def _blobs(
    store: Store, wanted: dict[str, tuple[int, list[str]]], contents: bool, progress: Callable[[int], None]
) -> Iterator[Finding]:
    folder = os.path.dirname(store.blob_path(""))
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return  # there is none: whatever is missing in it is told
    for name in names:
        path, sha256 = f"{folder}/{name}", name.removeprefix(BLOB)
        size, models = wanted.get(sha256, (-1, []))
        if not name.startswith(BLOB) or not is_sha256(sha256):
            if is_folder(path):
                yield Finding(STRAY, path, "is a folder, which is not of the store: remove it yourself")
            continue  # nothing of ours: told as left over
        problem = _blob_problem(path, sha256, size, contents, progress)
        if problem:
            remedy = f"ramalama-like fsck --repair && ramalama-like pull {_word(models[0])}" if models else ""
            yield Finding(DAMAGED_BLOB, path, problem, tuple(models), max(size, 0), remedy)


def _blob_problem(path: str, sha256: str, size: int, contents: bool, progress: Callable[[int], None]) -> str:
    from hashlib import sha256 as new_hash

    try:
        with open(path, "rb", buffering=0, opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not S_ISREG(status.st_mode):
                return "is no file"
            if size not in (-1, status.st_size):
                return f"has {status.st_size} bytes instead of {size}"
            if not contents:
                return ""
            found, piece = new_hash(), memoryview(bytearray(PIECE))
            while count := file.readinto(piece):
                found.update(piece[:count])
                progress(count)
    except FileNotFoundError:
        return ""  # removed meanwhile
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if found.hexdigest() == sha256 else "its content is not what its sum says"
