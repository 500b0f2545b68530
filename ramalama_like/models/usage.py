"""What takes how much space in the store, and how much of it can be had back."""

from __future__ import annotations

from ramalama_like.models.store import Damaged
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.models.store import Store


@value
class ModelUsage:
    """One model: all of its files, and those that go when this name alone is removed."""

    name: str
    size_bytes: int
    own_bytes: int


@value
class Usage:
    """The whole store, in bytes. ``in_place`` is not in it: files that are used where they lie."""

    store: str
    models: tuple[ModelUsage, ...]
    stored: int  # each file once
    in_place: int
    unused: int  # files that no model uses
    unfinished: int  # downloads that were interrupted
    disk_free: int  # that this user may fill; -1: unknown


def find_usage(store: Store) -> Usage:
    """Look at the store. Raises AppError where it cannot be listed."""
    users: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}
    in_place: dict[str, int] = {}
    records = [each for each in store.records() if not isinstance(each, Damaged)]
    for record in records:
        for file in record.files:
            if file.path:
                in_place[file.path] = file.size_bytes
            else:
                users.setdefault(file.sha256, set()).add(record.name)
                sizes[file.sha256] = file.size_bytes
    models = []
    for record in records:
        blobs = {file.sha256 for file in record.files if not file.path}
        own = sum(sizes[sha256] for sha256 in blobs if len(users[sha256]) == 1)
        models.append(ModelUsage(record.name, record.size_bytes, own))
    unused = store.find_unused(0)
    return Usage(
        store.folder, tuple(models), sum(sizes.values()), sum(in_place.values()),
        sum(each.size_bytes for each in unused if each.kind not in ("partial", "note")),
        sum(each.size_bytes for each in unused if each.kind == "partial"), disk_free(store.folder),
    )  # fmt: skip


def disk_free(path: str) -> int:
    """Bytes that are free where a folder is, or will be made."""
    import os

    while path:
        try:
            status = os.statvfs(path)
        except FileNotFoundError:
            path = os.path.dirname(path) if path != "/" else ""
            continue
        except OSError:
            break
        return status.f_bavail * status.f_frsize
    return -1
