"""Names of models: pure parsing, no look at any disk or network."""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.value import value

# Spelling in front of the name -> transport. Longer spellings first where one begins another.
PREFIXES = (
    ("huggingface://", "huggingface"), ("hf://", "huggingface"),
    ("https://huggingface.co/", "huggingface"), ("https://hf.co/", "huggingface"), ("hf.co/", "huggingface"),
    ("modelscope://", "modelscope"), ("ms://", "modelscope"),
    ("https://ollama.com/library/", "ollama"), ("https://ollama.com/", "ollama"), ("ollama.com/library/", "ollama"),
    ("ollama.com/", "ollama"), ("ollama://", "ollama"),
    ("oci://", "oci"), ("docker://", "oci"), ("rlcr://", "rlcr"), ("openai://", "openai"),
    ("http://", "http"), ("https://", "https"),
)  # fmt: skip
DEMO = "demo"


@value
class Reference:
    """A model's name, taken apart. ``transport`` is file, demo, name (nothing tells where it is), or a hub's.

    The last four are filled for hubs and registries: which repository, and what of it.
    """

    text: str  # as written
    transport: str
    name: str  # without the prefix; a path for files
    repository: str = ""  # owner/repository, library/name, host/path of a registry (with its port)
    tag: str = ""  # quantization at Hugging Face and ModelScope, tag elsewhere
    path: str = ""  # file or folder within the repository
    revision: str = ""  # after @: branch, tag or commit; sha256:… at registries


def parse_reference(text: str) -> Reference:
    """Take a model's name apart. Raises ValueProblem for one that cannot be a name (empty, NUL, another host)."""
    if not text.strip():
        raise ValueProblem("the model's name is empty", "give a path to a GGUF file, or 'demo'")
    if "\0" in text:
        raise ValueProblem("a model's name cannot hold a NUL character")
    if text == DEMO:
        return Reference(text, "demo", text)
    if text.startswith("file:"):
        return Reference(text, "file", _file_path(text))
    for prefix, transport in PREFIXES:
        if text.startswith(prefix):
            if len(text) == len(prefix):
                raise ValueProblem(f"{text}: a name must follow {prefix}")
            return Reference(text, transport, text[len(prefix) :])
    if text.startswith(("/", "./", "../", "~")) or text in (".", "..") or text.lower().endswith(".gguf"):
        return Reference(text, "file", text)
    return Reference(text, "huggingface" if "/" in text else "name", text)


def _file_path(text: str) -> str:
    rest = text[len("file:") :]
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise ValueProblem(f"{text}: a file on another host cannot be opened", "write file:///PATH")
        rest = "/" + path
    if not rest or rest == "/":
        raise ValueProblem(f"{text}: a path must follow file:", "write file:///PATH")
    if "%" not in rest:
        return rest
    # Percent signs in a URL are escapes; only well-formed ones count, as browsers do.
    from urllib.parse import unquote

    path = unquote(rest, errors="surrogateescape")
    if "\0" in path:
        raise ValueProblem("a model's name cannot hold a NUL character")
    return path
