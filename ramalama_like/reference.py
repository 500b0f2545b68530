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
_HOSTS = ("hf.co/", "ollama.com/")  # that stand for an address without a scheme
DEMO = "demo"


@value
class Reference:
    """A model's name, taken apart. ``transport`` is file, demo, name (nothing tells where it is), or a hub's."""

    text: str  # as written, but for what may be secret in an address (``plain_url``)
    transport: str
    name: str  # without the prefix; a path for files


def parse_reference(text: str) -> Reference:
    """Take a model's name apart. Raises ValueProblem for one that cannot be a name (empty, NUL, another host).

    A user, a password and a query are left out of an address, since what is made of the name is shown everywhere:
    whoever fetches the model takes the address from the request.
    """
    if not text.strip():
        raise ValueProblem("the model's name is empty", "give a path to a GGUF file, or 'demo'")
    if "\0" in text:
        raise ValueProblem("a model's name cannot hold a NUL character")
    if text == DEMO:
        return Reference(text, "demo", text)
    if text[:5].lower() == "file:":
        return Reference(text, "file", _file_path(text))
    shown = plain_url(text)
    for prefix, transport in PREFIXES:
        if shown[: len(prefix)].lower() == prefix:
            if len(shown) == len(prefix):
                raise ValueProblem(f"{shown}: a name must follow {prefix}")
            return Reference(shown, transport, shown[len(prefix) :])
    if scheme := _scheme(text):
        raise ValueProblem(f"{shown}: models cannot be had from {scheme}:// addresses",
                           "use https://, hf://, ollama:// or oci://; a file of such a name is written ./NAME"
                           )  # fmt: skip
    if text.startswith(("/", "./", "../", "~")) or text in (".", "..") or text.lower().endswith(".gguf"):
        return Reference(text, "file", text)
    return Reference(text, "huggingface" if "/" in text else "name", text)


def plain_url(url: str) -> str:
    """An address without what may be secret: user, password, query and fragment. Other text is left as it is."""
    scheme = _scheme(url)
    if scheme in ("unix", "file") or not (scheme or url.lower().startswith(_HOSTS)):
        return url
    begin = url.index("://") + 3 if scheme else 0
    rest = url[begin:]
    end = min((place for mark in "/?#" if (place := rest.find(mark)) >= 0), default=len(rest))
    host, _, port = rest[:end].rpartition(":")
    at = rest.rfind("@", 0, end)
    if at < 0 and host and not (port.isdigit() or port.endswith("]")):
        at = rest.rfind("@")  # what follows the colon is no port but a password that holds one of these marks
    if at >= 0 and not rest.startswith("@sha256:", at):  # a digest belongs to the name: oci://NAME@sha256:...
        rest = rest[at + 1 :]
    for mark in "?#" if scheme in ("http", "https") else "?":
        rest = rest.partition(mark)[0]
    return url[:begin] + rest


def _scheme(text: str) -> str:
    """``https`` of ``https://...``, in small letters; empty for text that is no address."""
    scheme, mark, _ = text.partition("://")
    scheme = scheme.strip().lower()
    plain = scheme.isascii() and scheme[:1].isalpha() and all(c.isalnum() or c in "+.-" for c in scheme)
    return scheme if mark and plain else ""


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
