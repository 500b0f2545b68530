"""The chat template of a model from Ollama's registry, made usable where the GGUF file has none of its own."""

from __future__ import annotations

from ramalama_like.listing import MODEL, OTHER, TEMPLATE
from ramalama_like.models.disk import open_plain
from ramalama_like.models.gguf import read_gguf
from ramalama_like.models.go_template import Unsupported, convert_template
from ramalama_like.record import StoredFile
from ramalama_like.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.models.store import Store

CONVERTED = "chat_template.jinja"
GO = "template"  # the name under which ``sources.ollama`` lists the original


def usable_template(files: Sequence[StoredFile], store: Store) -> tuple[tuple[StoredFile, ...], str]:
    """The files with a chat template that llama-server can use, and a sentence about that where there is one to say.

    To be called within ``store.adopting()``, when all files are blobs. The original stays, as what it is: a file that
    nobody uses. Raises AppError where the store cannot be written.
    """
    original = next((file for file in files if file.role == TEMPLATE and file.name == GO), None)
    if original is None:
        return tuple(files), ""
    kept = tuple(replace(file, role=OTHER) if file is original else file for file in files)
    model = next((file for file in files if file.role == MODEL), None)
    if model is not None and has_own_template(store.blob_path(model.sha256)):
        return kept, ""
    try:
        with open(store.blob_path(original.sha256), encoding="utf-8", errors="surrogateescape") as file:
            text = convert_template(file.read())
        text.encode()
    except Unsupported as reason:
        return kept, f"its chat template cannot be converted ({reason}); the server uses its own"
    except UnicodeError:
        return kept, "its chat template is no text; the server uses its own"
    return (*kept, store_text(store, text.encode(), TEMPLATE, CONVERTED)), ""


def has_own_template(path: str) -> bool:
    """Whether a GGUF file brings its chat template along."""
    return bool(read_gguf(path).text("tokenizer.chat_template"))


def store_text(store: Store, content: bytes, role: str, name: str) -> StoredFile:
    """Make a few bytes a file of the store."""
    from hashlib import sha256

    total = sha256(content).hexdigest()
    if not store.has_blob(total, len(content)):
        with store.partial(f"text-{total}", lambda: None) as partial:
            with open(partial.data_path, "wb", opener=open_plain) as file:
                file.write(content)
            store.adopt(partial.data_path, total)
    return StoredFile(role, name, len(content), total)
