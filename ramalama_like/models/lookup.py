"""Where a model may be found: one value that settings make, and that everything which finds models is handed."""

from __future__ import annotations

from ramalama_like.models.access import Access
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.models.caches import Places

# When a hub is asked although the model is here: never does not even ask for one that is not here.
MISSING, ALWAYS, NEWER, NEVER = "missing", "always", "newer", "never"


@value
class Lookup:
    """The store, the user's wishes, and the files of short names."""

    store: str  # folder of pulled models, which need not exist
    home: str = ""  # what ~ stands for
    access: Access = Access()
    places: Places | None = None  # other programs' stores; None: they are not looked at
    shortname_files: tuple[str, ...] = ()  # the strongest first
    transport: str = ""  # of names without a prefix, where one is configured
    policy: str = MISSING
