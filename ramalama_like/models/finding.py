"""Asking a hub what it has under a name, and choosing among it. Nothing is fetched but what hubs say about files."""

from __future__ import annotations

from ramalama_like.errors import NotBuiltYet
from ramalama_like.listing import LAYER
from ramalama_like.models.client import Client
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.listing import Choice, Listing, RemoteFile
    from ramalama_like.models.access import Access
    from ramalama_like.models.gguf import GgufHeader
    from ramalama_like.reference import Reference

FIRST_BYTES = 1 << 20  # holds the header of most models
MOST_BYTES = 64 << 20  # the largest vocabularies take about 20 MiB
_UNKNOWN = 1 << 62  # stands for the size of a file that the hub does not tell


def make_client(access: Access, **more: object) -> Client:
    """The client that a user's wishes ask for; to be closed."""
    return Client(offline=access.offline, verify=access.verify, variables=access.variables, **more)  # type: ignore[arg-type]


def find_listing(reference: Reference, client: Client, access: Access) -> Listing:
    """What the hub or registry of a reference has under its name. Raises AppError."""
    transport = reference.transport
    if transport == "huggingface":
        from ramalama_like.models.sources import huggingface

        return huggingface.find(reference, client, access)
    if transport == "modelscope":
        from ramalama_like.models.sources import modelscope

        return modelscope.find(reference, client, access)
    if transport == "ollama":
        from ramalama_like.models.sources import ollama

        return ollama.find(reference, client, access)
    if transport == "oci":
        from ramalama_like.models.sources import oci

        return oci.find(reference, client, access)
    if transport in ("http", "https"):
        from ramalama_like.models.sources import http

        # What was written may be a short name; the name is the address, secrets and all.
        return http.find(replace(reference, text=f"{transport}://{reference.name}"), client, access)
    raise NotBuiltYet(f"{reference.text}: models of hosted services cannot be used yet", "name a model of a hub")


def find_choice(reference: Reference, client: Client, access: Access) -> Choice:
    """The files that make up the model of a reference. Raises AppError; ValueProblem tells the real choices."""
    return choose_files(find_listing(reference, client, access), reference)


def choose_files(listing: Listing, reference: Reference) -> Choice:
    """The files of a listing that a reference means. Raises ValueProblem, which tells the real choices."""
    if any(file.role == LAYER for file in listing.files):  # what is in them shows when they are unpacked
        from ramalama_like.listing import Choice

        return Choice(listing, listing.files)
    from ramalama_like.models.choices import choose

    return choose(listing, reference)


def read_remote_header(client: Client, file: RemoteFile, authorization: str = "") -> GgufHeader | None:
    """The header of a GGUF file at a hub, read by growing ranges; None where it does not end within reason.

    Raises AppError, also where the file is no GGUF file that can be used.
    """
    from ramalama_like.models.gguf import read_gguf_prefix

    name, data, wanted = file.path.rpartition("/")[2], bytearray(), FIRST_BYTES
    size = file.size_bytes if file.size_bytes > 0 else _UNKNOWN
    while wanted <= MOST_BYTES:
        headers = {"Range": f"bytes={len(data)}-{wanted - 1}"}
        with client.stream(file.url, headers=headers, authorization=authorization, allow=(416,)) as stream:
            if stream.status == 416:
                return None
            if stream.status != 206:
                data.clear()  # all of it comes, from the start
            while len(data) < wanted:
                piece = stream.read(wanted - len(data))
                if not piece:
                    size = min(size, len(data)) if stream.status != 206 else size
                    break
                data += piece
        header = read_gguf_prefix(name, bytes(data), size)
        if header is not None or len(data) >= size:
            return header
        wanted *= 2
    return None
