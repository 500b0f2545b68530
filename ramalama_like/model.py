"""A model that was found: which files it is made of, and how the server will know them."""

from __future__ import annotations

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.shape import Shape


@value
class ModelFile:
    """One file of a model."""

    role: str  # model, shard (parts two and later), mmproj
    path: str  # on the host; what the engine mounts
    name: str  # file name inside the container


@value
class Model:
    """A resolved model, or (``problem`` set) one whose files are not here: it can be shown, never executed."""

    reference: str  # as the user wrote it
    alias: str  # name that the API uses
    files: tuple[ModelFile, ...]
    why: str
    size_bytes: int = 0
    architecture: str = ""
    context_length: int = 0  # tokens the model was trained for; 0 means unknown
    shape: Shape | None = None  # what decides about memory; None where the header does not tell
    projector_bytes: int = 0
    notes: tuple[str, ...] = ()
    problem: str = ""
    hint: str = ""
    exit_code: int = 0

    @property
    def main(self) -> ModelFile:
        """The file that the server is told to open."""
        return self.files[0]

    @property
    def projector(self) -> ModelFile | None:
        """The projector for images or sound, where there is one."""
        return next((file for file in self.files if file.role == "mmproj"), None)
