"""A model that was found: which files it is made of, and how the server will know them."""

from __future__ import annotations

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.listing import Choice
    from ramalama_like.shape import Shape


@value
class ModelFile:
    """One file of a model."""

    role: str  # model, shard (parts two and later), mmproj, template, adapter
    path: str  # on the host; what the engine mounts
    name: str  # file name inside the container


@value
class Convertible:
    """A model of which a GGUF file can be made: safetensors with what belongs to them, or a GGUF file to quantize."""

    reference: str  # as the user wrote it
    alias: str
    files: tuple[ModelFile, ...]  # the first of a GGUF is its own
    why: str
    safetensors: bool = False
    folder: str = ""  # that holds all of the files, and may be mounted in their place
    size_bytes: int = 0
    architecture: str = ""
    pending: bool = False  # it has to be fetched first
    uncertain: str = ""  # why some of these paths may turn out to be others, in words
    quantized: str = ""  # the quantization of a GGUF that has lost precision already
    problem: str = ""
    hint: str = ""
    exit_code: int = 0


@value
class Model:
    """A resolved model, or (``problem`` set) one whose files are not here: it can be shown, never executed.

    One that is ``pending`` is at a hub; it is executed once it was pulled.
    """

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
    pending: Choice | None = None  # what has to be fetched first; the paths are those that it will have
    uncertain: str = ""  # why some of these paths may turn out to be others, in words

    @property
    def main(self) -> ModelFile:
        """The file that the server is told to open."""
        return self.files[0]

    @property
    def projector(self) -> ModelFile | None:
        """The projector for images or sound, where there is one."""
        return next((file for file in self.files if file.role == "mmproj"), None)

    @property
    def template(self) -> ModelFile | None:
        """The chat template, where the model's own file has none."""
        return next((file for file in self.files if file.role == "template"), None)

    @property
    def adapters(self) -> tuple[ModelFile, ...]:
        """The LoRA adapters that belong to the model."""
        return tuple(file for file in self.files if file.role == "adapter")
