"""Names of models: pure parsing, no look at any disk or network.

A name may be a path, a short word, ``PREFIX://NAME``, or the web address of a model's page. All of them end in one
``Reference``, and ``canonical_name`` spells that in one way, so that a model has one name in the store however it was
asked for: ``parse_reference(canonical_name(r))`` is the same model again. What could lead out of a folder (``..``,
backslashes, control characters) is refused here, for hubs and registries alike.
"""

from __future__ import annotations

from ramalama_like.errors import ValueProblem
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# What stands before :// (in any case) -> transport.
SCHEMES = {
    "hf": "huggingface", "huggingface": "huggingface", "ms": "modelscope", "modelscope": "modelscope",
    "ollama": "ollama", "oci": "oci", "docker": "oci", "rlcr": "rlcr", "openai": "openai",
    "http": "http", "https": "https",
}  # fmt: skip
# Hosts whose addresses name models rather than files -> transport.
WEB_HOSTS = {
    "huggingface.co": "huggingface", "www.huggingface.co": "huggingface", "hf.co": "huggingface",
    "modelscope.cn": "modelscope", "www.modelscope.cn": "modelscope",
    "ollama.com": "ollama", "www.ollama.com": "ollama", "registry.ollama.ai": "ollama",
}  # fmt: skip
_HOSTS = ("hf.co/", "ollama.com/")  # that stand for an address without a scheme
DEMO = "demo"
DEFAULT_REVISIONS = {"huggingface": "main", "modelscope": "master"}
DOCKER_HUB = "docker.io"
LATEST = "latest"

_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
# Parts of a web address that say what kind of page it is, with a revision behind them.
_PAGES = ("blob", "resolve", "raw", "tree", "commit", "commits", "blame")
# Of an address's query, what says which file is meant; everything else may be a secret.
_TELLING = ("file", "filename", "path", "name", "model", "id", "revision", "filepath", "version")
_SIGNATURES = ("x-amz-", "x-goog-", "x-oss-", "x-cos-", "response-", "ossaccesskeyid", "signature", "sig", "token",
               "access_token", "auth", "authorization", "key", "apikey", "api_key", "key-pair-id", "policy", "expires",
               "se", "sp", "sv", "sr", "st", "spr", "skoid", "sktid", "skt", "ske", "sks", "skv", "awsaccesskeyid",
               "googleaccessid", "password", "secret", "download")  # fmt: skip
_OTHERS = "query-sha256"  # stands for the rest of a query


@value
class Reference:
    """A model's name, taken apart. ``transport`` is file, demo, name (nothing tells where it is), or a hub's.

    The last four are filled for hubs and registries: which repository, and what of it.
    """

    text: str  # as written, but for what may be secret in an address (``plain_url``)
    transport: str
    name: str  # without the prefix; a path for files; of a web address everything, secrets too
    repository: str = ""  # owner/repository, library/name, host/path of a registry; host and port of a web address
    tag: str = ""  # quantization at Hugging Face and ModelScope (upper case), tag elsewhere
    path: str = ""  # file or folder within the repository; path of a web address
    revision: str = ""  # after @: branch, tag or commit (empty: the default one); sha256:… at registries

    @property
    def canonical(self) -> str:
        """The one spelling of this model's name; see ``canonical_name``."""
        return canonical_name(self)


def parse_reference(text: str, default_transport: str = "") -> Reference:
    """Take a model's name apart. ``default_transport`` says where a name without a prefix is to be had.

    Raises ValueProblem for one that cannot be a name.
    """
    if not text.strip():
        raise ValueProblem("the model's name is empty", "give a path to a GGUF file, or 'demo'")
    if "\0" in text:
        raise ValueProblem("a model's name cannot hold a NUL character")
    if text == DEMO:
        return Reference(text, "demo", text)
    if text.startswith(("/", "./", "../", "~")) or text in (".", ".."):
        return Reference(text, "file", text)
    if text[:5].lower() == "file:":
        return Reference(text, "file", _file_path(text))
    shown = plain_url(text)  # everything that is made of the name may be shown; ``name`` alone holds all of it
    scheme, mark, rest = text.partition("://")
    if mark and "/" not in scheme:
        return _with_scheme(shown, scheme.lower(), rest)
    if _parts_ending(text) and text.count("/") < 2 and shown == text:
        return Reference(text, "file", text)
    first, slash, rest = text.partition("/")
    if slash and first.lower() in WEB_HOSTS:
        return _of_page(shown, WEB_HOSTS[first.lower()], rest)
    if slash and _is_host(first):
        return _of_registry(shown, text)
    if default_transport:
        return _of_transport(shown, SCHEMES[default_transport], text)
    if slash:
        return _of_hub(shown, "huggingface", text)
    _refuse_unprintable(text, text)
    return Reference(shown, "name", shown)


def canonical_name(reference: Reference) -> str:
    """The one spelling of a model's name, without secrets: what the store calls it, and ``list`` shows."""
    transport = reference.transport
    if transport in ("huggingface", "modelscope"):
        return ("hf://" if transport == "huggingface" else "modelscope://") + _hub_name(reference)
    if transport == "ollama":
        return f"ollama://{reference.name}"
    if transport == "oci":
        return f"oci://{reference.name}"
    if transport == "openai":
        return f"openai://{reference.name}"
    if transport in ("http", "https"):
        query = _public_query(reference.name.partition("#")[0].partition("?")[2])
        return f"{transport}://{reference.repository}{reference.path}" + (f"?{query}" if query else "")
    if transport == "file":
        from urllib.parse import quote_from_bytes

        raw = reference.name.encode("utf-8", "surrogateescape")
        mark = "file://" if reference.name.startswith("/") else "file:"
        return mark + quote_from_bytes(raw, safe="/:@!$&'()*+,;=~")
    return reference.name


def alias_of(reference: Reference) -> str:
    """What the API calls a model of this name: the file's name without its ending, else the repository's last word."""
    source = reference.path if reference.path.strip("/") else reference.repository or reference.name
    last = source.rstrip("/").rpartition("/")[2]
    stem = last[:-5] if last.lower().endswith(".gguf") else last
    if stem[-15:-14] == "-" and stem[-9:-5] == "-of-" and (stem[-14:-9] + stem[-5:]).isdigit():  # a part of a split one
        stem = stem[:-15]
    return stem.partition(":")[0] or "model"


# Prefixes and web addresses.


def _with_scheme(text: str, scheme: str, rest: str) -> Reference:
    transport = SCHEMES.get(scheme)
    if transport is None:
        _refuse_unprintable(text, text)
        raise ValueProblem(f"{text}: {scheme.strip()}:// is not where models come from",
                           "one of hf://, ollama://, oci://, ms://, https://, file://")  # fmt: skip
    if not rest:
        raise ValueProblem(f"{text}: a name must follow {text}")
    if transport not in ("http", "https"):
        return _of_transport(text, transport, rest)
    host, _, path = rest.partition("/")
    host = host.lower()
    if host in WEB_HOSTS and not _is_data_file(WEB_HOSTS[host], path):
        return _of_page(text, WEB_HOSTS[host], path)
    return _of_web(text, transport, rest)


def _of_transport(text: str, transport: str, rest: str) -> Reference:
    if transport in ("huggingface", "modelscope"):
        return _of_hub(text, transport, rest)
    if transport == "ollama":
        return _of_ollama(text, rest)
    if transport == "oci":
        return _of_registry(text, rest)
    if transport == "rlcr":
        return _of_registry(text, f"rlcr.io/ramalama/{rest}")
    _refuse_unprintable(text, rest)
    return Reference(text, transport, rest)


def _is_data_file(transport: str, path: str) -> bool:
    """Whether an address of a hub is that of a file outside the models' repositories: a plain download."""
    return transport == "huggingface" and path.partition("/")[0] in ("datasets", "spaces", "api")


def _of_page(text: str, transport: str, rest: str) -> Reference:
    """A web address of a hub, without scheme and host."""
    rest, _, query = rest.partition("#")[0].partition("?")
    parts = [part for part in rest.split("/") if part]
    if transport == "ollama":
        if parts[-1:] == ["tags"] and len(parts) > 1:
            parts.pop()
        return _of_ollama(text, "/".join(parts[1:] if parts[:1] == ["library"] else parts))
    if transport == "modelscope":
        if parts[:3] == ["api", "v1", "models"] and parts[5:] == ["repo"]:
            asked = dict(_pairs(query))
            return _of_parts(
                text, transport, parts[3:5], asked.get("Revision", ""), asked.get("FilePath", "").strip("/")
            )
        if parts[:1] != ["models"]:
            raise _no_repository(text, transport)
        parts = parts[1:]
        if parts[2:4] == ["file", "view"]:
            parts[2:4] = ["blob"]
        if parts[2:] in (["summary"], ["files"], ["quickstart"], ["feedback"]):
            parts = parts[:2]
    page = parts[2] if len(parts) > 2 else ""
    if page in _PAGES and len(parts) > 3:
        end = 6 if parts[3] == "refs" else 4  # refs/pr/1 is one revision
        revision = _decoded(text, "/".join(parts[3:end]))
        return _of_parts(text, transport, parts[:2], revision, _decoded(text, "/".join(parts[end:])).rstrip("/"))
    if transport == "huggingface" and len(parts) == 2:
        shown = dict(_pairs(query)).get("show_file_info", "")  # the page's own view of one file
        if shown:
            return _of_parts(text, transport, parts, "", shown)
    if page in ("discussions", "settings", "activity"):
        parts = parts[:2]
    return _of_hub(text, transport, "/".join(parts))


# Hugging Face and ModelScope: owner/repository[@revision][/path][:quantization]


def _of_hub(text: str, transport: str, rest: str) -> Reference:
    for kind in ("pr", "convert", "heads", "tags"):  # a revision with slashes that everybody writes as it is
        rest = rest.replace(f"@refs/{kind}/", f"@refs%2F{kind}%2F")
    parts = rest.rstrip("/").split("/")
    *above, last = parts
    tag = revision = ""
    head, colon, tail = last.rpartition(":")
    if colon:
        last, (tag, _, revision) = head, tail.partition("@")
        if not tag:
            raise ValueProblem(f"{text}: nothing follows the colon", "write OWNER/REPOSITORY:QUANTIZATION")
    if above[1:] and ".gguf@" in last.lower():
        place = last.lower().rindex(".gguf@") + 5
        last, revision = last[:place], _once(text, revision, last[place + 1 :])
    parts = [*above, last]
    if len(parts) < 2:
        raise _no_repository(text, transport)
    parts[1], at, early = parts[1].partition("@")
    if at:
        revision = _once(text, revision, early)
        if not revision:
            raise ValueProblem(f"{text}: nothing follows the @", "write OWNER/REPOSITORY@REVISION")
    path = _decoded(text, "/".join(parts[2:]))
    return _of_parts(text, transport, parts[:2], _decoded(text, revision), path, tag)


def _once(text: str, one: str, other: str) -> str:
    if one and other:
        raise ValueProblem(f"{text}: two revisions are named", "write one behind @")
    return one or other


def _of_parts(text: str, transport: str, repository: Sequence[str], revision: str, path: str, tag: str = ""
              ) -> Reference:  # fmt: skip
    if len(repository) != 2:
        raise _no_repository(text, transport)
    for part in repository:
        if not part or len(part) > 96 or not _WORD.issuperset(part) or ".." in part or part == ".":
            raise _no_repository(text, transport)
    _check_path(text, path)
    if path and "" in path.split("/"):
        raise ValueProblem(f"{text}: holds an empty part", "write a single / between two parts")
    if revision and (not revision.isprintable() or " " in revision or "\\" in revision or ".." in revision
                     or revision[0] in "-/" or revision.endswith("/")):  # fmt: skip
        raise ValueProblem(f"{text}: the revision is no branch, tag or commit", "write OWNER/REPOSITORY@REVISION")
    if tag and not _WORD.issuperset(tag):
        raise ValueProblem(f"{text}: what follows the colon is no quantization", "write it like Q4_K_M")
    revision = "" if revision == DEFAULT_REVISIONS[transport] else revision
    tag = "" if tag.lower() == LATEST else tag.upper()
    reference = Reference(text, transport, "", "/".join(repository), tag, path, revision)
    return replace(reference, name=_hub_name(reference))


def _no_repository(text: str, transport: str) -> ValueProblem:
    _refuse_unprintable(text, text)
    hub, prefix = ("ModelScope", "ms") if transport == "modelscope" else ("Hugging Face", "hf")
    return ValueProblem(f"{text}: is no name of a model at {hub}", f"write {prefix}://OWNER/REPOSITORY[:QUANTIZATION]")


def _hub_name(reference: Reference) -> str:
    at = f"@{_encoded(reference.revision, '%/@: ')}" if reference.revision else ""
    path = f"/{_encoded(reference.path, '%@: ')}" if reference.path else ""
    return f"{reference.repository}{at}{path}" + (f":{reference.tag}" if reference.tag else "")


def _encoded(text: str, letters: str) -> str:
    return "".join(f"%{ord(letter):02X}" if letter in letters else letter for letter in text)


def _decoded(text: str, part: str) -> str:
    if "%" not in part:
        return part
    from urllib.parse import unquote

    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise ValueProblem(f"{text}: an escape with % is no UTF-8") from None


# Ollama: [host/][namespace/]name[:tag][@sha256:…]


def _of_ollama(text: str, rest: str) -> Reference:
    if rest.lower().startswith(("hf.co/", "huggingface.co/")):  # its own way to spell these
        return _of_page(text, "huggingface", rest.partition("/")[2])
    rest, digest = _split_digest(text, rest.rstrip("/"))
    *above, last = rest.split("/")
    name, _, tag = last.partition(":")
    if above and above[0].lower() in ("registry.ollama.ai", "ollama.com"):
        above = above[1:]
    host = above.pop(0).lower() if above and (_is_host(above[0]) or len(above) == 2) else ""
    namespace = above.pop() if above else "library"
    words = (namespace, name, *([tag] if ":" in last else []))
    if above or any(not word or not _WORD.issuperset(word) or ".." in word or word[0] in ".-" for word in words) or (
        host and not _is_host(host)
    ):  # fmt: skip
        _refuse_unprintable(text, text)
        raise ValueProblem(f"{text}: is no name of a model at Ollama", "write ollama://NAME[:TAG]")
    tag = "" if digest else tag or LATEST
    repository = "/".join(part for part in (host, namespace, name) if part)
    short = repository.removeprefix("library/")
    return Reference(text, "ollama", short + (f"@{digest}" if digest else f":{tag}"), repository, tag, "", digest)


# Registries: [host[:port]/]path[:tag][@sha256:…]


def _of_registry(text: str, rest: str) -> Reference:
    rest, digest = _split_digest(text, rest.rstrip("/"))
    first, slash, path = rest.partition("/")
    if not (slash and _is_host(first)):
        first, path = DOCKER_HUB, rest if slash else f"library/{rest}"
    host = first.lower()
    if host in ("index.docker.io", "registry-1.docker.io", "docker.io"):
        host, path = DOCKER_HUB, path if "/" in path else f"library/{path}"
    *above, last = path.split("/")
    last, colon, tag = last.partition(":")
    for part in (*above, last):
        if not _is_component(part):
            _refuse_unprintable(text, text)
            hint = "names in registries are lower-case" if part.lower() != part else "write oci://HOST/NAME[:TAG]"
            raise ValueProblem(f"{text}: is no name in a registry", hint)
    if colon and not (tag and len(tag) <= 128 and _WORD.issuperset(tag) and tag[0] not in ".-"):
        _refuse_unprintable(text, text)
        raise ValueProblem(f"{text}: what follows the colon is no tag", "write oci://HOST/NAME[:TAG]")
    tag = "" if digest else tag or LATEST
    repository = "/".join((host, *above, last))
    return Reference(text, "oci", repository + (f"@{digest}" if digest else f":{tag}"), repository, tag, "", digest)


def _split_digest(text: str, rest: str) -> tuple[str, str]:
    name, at, digest = rest.partition("@")
    kind, _, digits = digest.partition(":")
    if at and not (kind == "sha256" and len(digits) == 64 and set(digits) <= set("0123456789abcdef")):
        _refuse_unprintable(text, text)
        raise ValueProblem(f"{text}: what follows the @ is no digest", "write NAME@sha256: and 64 hexadecimal digits")
    return name, digest


def _is_component(part: str) -> bool:
    """A part of a repository's name, as the distribution specification has it: words between single separators."""
    if not part or not _WORD.issuperset(part) or part.lower() != part or part[0] in "._-" or part[-1] in "._-":
        return False
    return not any(bad in part for bad in ("..", "___", "._", "_.", ".-", "-.", "_-", "-_"))


def _is_host(word: str) -> bool:
    """Whether the first part of a name can only be a host: with a port, with a domain, or this machine."""
    name, _, port = word.rpartition(":") if word.rpartition("]")[2] else (word, "", "")
    if name and port.isascii() and port.isdigit() and len(port) < 6:
        return name[:1] == "[" or _WORD.issuperset(name)
    if word.lower() == "localhost" or (word[:1] == "[" and word[-1:] == "]" and ":" in word):
        return True
    domain = word.rpartition(".")[2]
    return "." in word.strip(".") and domain.isascii() and domain.isalpha() and len(domain) > 1 and (
        _WORD.issuperset(word) and ".." not in word and word[0] not in ".-_"
    )  # fmt: skip


# The web.


def _of_web(text: str, transport: str, rest: str) -> Reference:
    place, slash, path = rest.partition("#")[0].partition("?")[0].partition("/")
    host = place.rpartition("@")[2].lower()
    name, colon, port = host.rpartition(":") if ":" in host.rpartition("]")[2] else (host, "", "")
    hostname = name.strip("[]")
    usable = hostname and hostname.isprintable() and not set(hostname) & set(" \\%<>\"'") and ".." not in hostname
    if not usable or (colon and not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536)):
        raise ValueProblem(f"{text}: is no address of a file", f"write {transport}://HOST/PATH/model.gguf")
    _check_path(text, path)
    if not slash or not path or path.endswith("/"):
        raise ValueProblem(f"{text}: names no file", f"write {transport}://HOST/PATH/model.gguf")
    return Reference(text, transport, rest, repository=host, path=f"/{path}")


def plain_url(url: str) -> str:
    """An address without what may be secret: user, password, query and fragment. Other text is left as it is."""
    while (plainer := _plainer(url)) != url:  # what is left may look like an address with a password once more
        url = plainer
    return url


def _plainer(url: str) -> str:
    scheme = _scheme(url)
    if scheme in ("unix", "file") or not (scheme or url.lower().startswith(_HOSTS) or _may_hold_password(url.lstrip())):
        return url
    begin = url.index("://") + 3 if scheme else 0
    rest = url[begin:]
    end = min((place for mark in "/?#" if (place := rest.find(mark)) >= 0), default=len(rest))
    host, _, port = rest[:end].rpartition(":")
    at = rest.rfind("@", 0, end)
    if at < 0 and ((host and not (port.isdigit() or port.endswith("]"))) or rest.startswith("/")):
        # What follows the colon is no port but a password that holds one of these marks; or a slash is too many.
        at = rest.rfind("@")
    if at >= 0 and not rest.startswith("@sha256:", at):  # a digest belongs to the name: oci://NAME@sha256:...
        rest = rest[at + 1 :]
    for mark in "?#" if scheme in ("http", "https") else "?":
        rest = rest.partition(mark)[0]
    return url[:begin] + rest


def _may_hold_password(text: str) -> bool:
    """Whether text without ://, or with a part of it missing, may be an address: user:password@host, https:me@host."""
    # Paths and names of models have no colon before their first slash, but for a tag or a port.
    return "@" in text and ":" in text.partition("/")[0] and not text.startswith((".", "~", "file:"))


def _scheme(text: str) -> str:
    """``https`` of ``https://...``, in small letters; empty for text that is no address."""
    scheme, mark, _ = text.partition("://")
    scheme = scheme.strip().lower()
    plain = scheme.isascii() and scheme[:1].isalpha() and all(c.isalnum() or c in "+.-" for c in scheme)
    return scheme if mark and plain else ""


def _public_query(query: str) -> str:
    """What of a query tells files apart: known names as they are, unknown ones as a number that tells nothing."""
    from urllib.parse import quote

    told, others = [], []
    for key, text in _pairs(query):
        low = key.lower()
        if low in _SIGNATURES or low.startswith(_SIGNATURES[:5]):
            continue
        if (low in _TELLING and len(text) <= 200 and text.isprintable()) or low == _OTHERS:
            told.append(f"{quote(key, safe='')}={quote(text, safe='/')}")
        else:
            others.append(f"{quote(key, safe='')}={quote(text, safe='')}")
    if others:
        from hashlib import sha256

        told.append(f"{_OTHERS}={sha256('&'.join(sorted(others)).encode()).hexdigest()[:16]}")
    return "&".join(told)


def _pairs(query: str) -> list[tuple[str, str]]:
    from urllib.parse import parse_qsl

    try:
        return parse_qsl(query, keep_blank_values=True, errors="replace")
    except ValueError:  # more fields than anybody needs
        return [("unreadable", query)]


# Checks.


def _check_path(text: str, path: str) -> None:
    """Refuse what could lead elsewhere, should a part of it become a path on this machine."""
    _refuse_unprintable(text, path)
    if "\\" in path or any(part in (".", "..") for part in path.split("/")):
        raise ValueProblem(f"{text}: leads out of the repository", "name a file by its path below the repository")


def _refuse_unprintable(text: str, part: str) -> None:
    if not part.isprintable():
        raise ValueProblem(f"{plain_url(text)}: a model's name cannot hold a control character")


def _parts_ending(text: str) -> bool:
    return text.lower().endswith(".gguf")


def _file_path(text: str) -> str:
    rest = text[len("file:") :]
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host.lower() not in ("", "localhost"):
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
