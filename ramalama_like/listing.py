"""What a hub says that it has under a name, before anything is fetched."""

from __future__ import annotations

from ramalama_like.value import value

# What a file is for, the most useful first; files of the roles after TEMPLATE are never fetched by themselves.
MODEL, SHARD, PROJECTOR, DRAFT, ADAPTER, TEMPLATE = "model", "shard", "mmproj", "draft", "adapter", "template"
WEIGHTS, IMATRIX, OTHER = "safetensors", "imatrix", "other"
# An archive that holds files of a model: fetched whole, and unpacked on the way. Its path is the folder in it that
# counts ("models/" in images, "/" for all of it).
LAYER = "layer"


@value
class RemoteFile:
    """One file at a hub. ``role`` is empty where the hub does not tell; ``models.choices`` finds it then."""

    path: str  # within the repository, parts separated by /; for a registry's layer the file name that it should have
    url: str  # where its bytes are had; may redirect
    size_bytes: int = -1  # -1: the hub does not tell
    sha256: str = ""  # 64 lower-case hexadecimal digits, where published
    role: str = ""


@value
class Listing:
    """Every file under a name, and which state of the repository that is."""

    name: str  # canonical, as ``list`` shows it: hf://owner/repository:Q4_K_M
    files: tuple[RemoteFile, ...]
    revision: str = ""  # commit or digest of the manifest; empty where the hub has none
    # The scope of a bearer token or the like that the files' URLs want, in the source's own words. Never shown.
    authorization: str = ""
    notes: tuple[str, ...] = ()


@value
class Choice:
    """The files of a listing that make up the model that was asked for, the weights first."""

    listing: Listing
    files: tuple[RemoteFile, ...]  # each with its role
    quantization: str = ""  # as its file name spells it

    @property
    def size_bytes(self) -> int:
        """Bytes of the files whose size is known."""
        return sum(file.size_bytes for file in self.files if file.size_bytes > 0)
