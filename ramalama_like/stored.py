"""What the commands about the store have in common: where it is, which models are meant."""

from __future__ import annotations

from ramalama_like import settings
from ramalama_like.models.store import Store
from ramalama_like.models.stored_names import StoredNames
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.request import Request


@value
class Opened:
    """The store that a command is about, with the settings that lead to it."""

    loaded: settings.LoadedSettings
    store: Store

    def names(self) -> StoredNames:
        """The names in it."""
        lookup = settings.find_lookup(self.loaded.settings)
        return StoredNames([each.name for each in self.store.records()], lookup)

    def own_line(self, *words: str) -> tuple[str, ...]:
        """A command line of this program, for this store."""
        from ramalama_like.pipeline import own_program

        folder = self.loaded.settings.store.value
        return (*own_program(), *(("--store", folder) if folder else ()), *words)


def open_store(request: Request) -> Opened:
    """The store of these settings, which need not exist. Raises AppError."""
    loaded = settings.load_settings(request)
    return Opened(loaded, Store(settings.find_store(loaded.settings)))


def removal_lines(paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """What removes these files or folders, as a shell would say it."""
    return tuple(("rm", "-rf", "--", path) for path in paths)
