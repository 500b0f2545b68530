"""What can go wrong between here and a hub, each in its own words and with the next step. Pure.

A failure that may be over at another try is a ``Passing``; everything else is final. Addresses are shown without what
may be secret in them.
"""

from __future__ import annotations

from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.reference import plain_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Passing(AppError):
    """Trouble that may be over soon: worth another try. ``wait_s`` is how long the server asked to be left alone,
    ``status`` what it answered; both 0 where it did not."""

    exit_code = 5

    def __init__(self, message: str, hint: str = "", exit_code: int | None = None, wait_s: float = 0.0,
                 status: int = 0) -> None:  # fmt: skip
        super().__init__(message, hint, exit_code)
        self.wait_s = wait_s
        self.status = status


class Insecure(AppError):
    """The other side cannot show who it is (``certificate``), or does not encrypt at all."""

    exit_code = 5

    def __init__(self, message: str, hint: str, *, certificate: bool) -> None:
        super().__init__(message, hint)
        self.certificate = certificate


def _host(url: str) -> str:
    return plain_url(url).partition("://")[2].partition("/")[0]


# Before anything is sent.


def offline(url: str) -> AppError:
    """Something would have to be fetched, and the user has forbidden it."""
    return AppError(f"{plain_url(url)}: is not here, and nothing is fetched while offline",
                    "leave out --offline, and unset HF_HUB_OFFLINE", exit_code=5)  # fmt: skip


def no_address(url: str) -> ValueProblem:
    """A text that is no address of the web."""
    return ValueProblem(f"{plain_url(url)}: is no address that can be read", "write https://HOST/PATH/model.gguf")


# What a server answers.


def refused(status: int, url: str, headers: Mapping[str, str], *, authorized: bool, wait_s: float = 0.0) -> AppError:
    """The failure that a status stands for. ``headers`` have lower-case names; ``authorized``: a token was sent."""
    name = plain_url(url)
    code = headers.get("x-error-code", "")  # Hugging Face says more exactly what is wrong
    if code == "GatedRepo" or (status == 403 and "gated" in headers.get("x-error-message", "").lower()):
        return _gated(name, authorized)
    if status == 401 and authorized:
        return ValueProblem(f"{name}: {_host(url)} does not accept the token or password that it was sent (HTTP 401)",
                            "log in again, or make a new token")  # fmt: skip
    if status == 401:
        return ValueProblem(f"{name}: {_host(url)} wants to know who asks, or there is no such model (HTTP 401)",
                            "check the name; for a private model log in, or set HF_TOKEN")  # fmt: skip
    if status == 403:
        return ValueProblem(f"{name}: {_host(url)} forbids access (HTTP 403)",
                            "use an account that may read it" if authorized else "log in, or set HF_TOKEN")  # fmt: skip
    if status in (404, 410):
        return missing(url, status, code)
    if status == 407:
        return ValueProblem(f"{name}: the proxy wants a user and a password (HTTP 407)",
                            "write them into HTTPS_PROXY as http://USER:PASSWORD@HOST:PORT")  # fmt: skip
    if status == 412:
        return ValueProblem(f"{name}: {_host(url)} does not serve this client any more (HTTP 412)",
                            "get a newer version of this program")  # fmt: skip
    if status == 416:
        return ValueProblem(f"{name}: the file is shorter than {_host(url)} said (HTTP 416)", "try again")
    if status == 429:
        longer = f" for {_duration(wait_s)}" if wait_s else ""
        return Passing(f"{name}: {_host(url)} asks to be left alone{longer}: too many requests (HTTP 429)",
                       "try again later" + ("" if authorized else "; those who log in may ask more often"),
                       wait_s=wait_s, status=status)  # fmt: skip
    if status >= 500 or status in (408, 425):
        return Passing(f"{name}: {_host(url)} failed (HTTP {status})", "try again later", wait_s=wait_s,
                       status=status)  # fmt: skip
    return ValueProblem(f"{name}: {_host(url)} answered with HTTP {status}", "check the address")


def missing(url: str, status: int = 404, code: str = "", near: tuple[str, ...] = ()) -> ValueProblem:
    """There is nothing of this name; ``near`` are names that are there and look like it."""
    what = {"RepoNotFound": "there is no such repository", "RevisionNotFound": "there is no such revision",
            "EntryNotFound": "there is no such file in the repository"}.get(code, "there is no such file")  # fmt: skip
    hint = f"did you mean {' or '.join(near)}?" if near else "check the name"
    return ValueProblem(f"{plain_url(url)}: {what} (HTTP {status})", hint)


def _gated(name: str, authorized: bool) -> ValueProblem:
    page = name.partition("/resolve/")[0].replace("/api/models/", "/").partition("/tree/")[0]
    if authorized:
        return ValueProblem(f"{name}: its owner has not let your account in yet (gated)", f"ask for access at {page}")
    return ValueProblem(f"{name}: its owner wants to know who asks (gated)",
                        f"ask for access at {page}, then log in or set HF_TOKEN")  # fmt: skip


def _duration(seconds: float) -> str:
    whole = int(-(-seconds // 1))
    return f"{whole} seconds" if whole < 120 else f"{-(-whole // 60)} minutes"


# What happens to connections.


def broken(error: Exception, url: str, *, proxy: str = "") -> AppError:
    """The failure behind an exception of sockets, TLS or HTTP. ``proxy`` is the proxy's address, where one was used."""
    name = plain_url(url)
    kind = {base.__name__ for base in type(error).__mro__}
    if "SSLCertVerificationError" in kind:
        reason = getattr(error, "verify_message", "") or "it cannot be trusted"
        return Insecure(f"{name}: the certificate of {_host(url)} is refused: {reason}",
                        "check the clock; a certificate authority of your own is named by SSL_CERT_FILE",
                        certificate=True)  # fmt: skip
    if "TimeoutError" in kind:
        return late(url)
    if "SSLError" in kind and not {"SSLEOFError", "SSLZeroReturnError"} & kind:
        reason = getattr(error, "reason", "") or "nonsense"
        return Insecure(f"{name}: {_host(url)} does not speak TLS as it should ({_words(str(reason))})",
                        "check the address: http:// and https:// are different doors", certificate=False)  # fmt: skip
    place = f"the proxy {_host(proxy)}" if proxy else _host(url)
    hint = "check the variables HTTPS_PROXY and NO_PROXY" if proxy else "check the network and the address"
    if "gaierror" in kind:
        # Without a network most systems say that a name is unknown "for now".
        wording = f"{name}: the name of {place} cannot be looked up"
        temporary = error.args and error.args[0] == -3
        return Passing(wording, hint) if temporary else AppError(wording, hint, exit_code=5)
    if "ConnectionRefusedError" in kind:
        return Passing(f"{name}: {place} refuses connections", hint)
    if "HTTPException" in kind and not {"IncompleteRead", "RemoteDisconnected"} & kind:
        return AppError(f"{name}: {place} does not speak HTTP as it should", hint, exit_code=5)
    if isinstance(error, OSError) and not {"ConnectionError", "SSLError"} & kind and error.strerror:
        return Passing(f"{name}: {place} cannot be reached: {error.strerror}", hint)
    return cut(url)


def _words(text: str) -> str:
    return text.replace("_", " ").lower()


def late(url: str) -> Passing:
    """Nothing came for too long."""
    return Passing(f"{plain_url(url)}: {_host(url)} does not answer", "check the network, or try again later", 110)


def slow(url: str) -> Passing:
    """Something came, but too little to ever get there."""
    return Passing(
        f"{plain_url(url)}: {_host(url)} sends hardly anything", "check the network, or try again later", 110
    )


def cut(url: str) -> Passing:
    """The connection ended before all was there."""
    return Passing(f"{plain_url(url)}: the connection to {_host(url)} was cut", "try again; what is here is kept")


def proxy_refused(status: int, url: str, proxy: str) -> AppError:
    """A proxy does not let a connection through."""
    if status == 407:
        return refused(407, url, {}, authorized=False)
    wording = f"{plain_url(url)}: the proxy {_host(proxy)} does not let it through (HTTP {status})"
    hint = "check the variables HTTPS_PROXY and NO_PROXY"
    return Passing(wording, hint) if status >= 500 else AppError(wording, hint, exit_code=5)


def proxy_unknown(proxy: str) -> ValueProblem:
    """A kind of proxy that this program cannot talk to."""
    return ValueProblem(f"{plain_url(proxy)}: is no proxy that this program can use",
                        "write http://HOST:PORT into HTTPS_PROXY, or exceptions into NO_PROXY")  # fmt: skip


def circles(url: str) -> ValueProblem:
    """One redirection after another."""
    return ValueProblem(f"{plain_url(url)}: leads round in circles", "give the file's own address")


def downgraded(url: str, location: str) -> ValueProblem:
    """A redirection from an encrypted to an unencrypted address, or out of the web."""
    return ValueProblem(f"{plain_url(url)}: leads to {plain_url(location)}, which is not encrypted",
                        "give an address that stays with https://")  # fmt: skip


def secret_elsewhere(url: str, location: str) -> ValueProblem:
    """A redirection that would take what was sent to another server than the one that it was meant for."""
    return ValueProblem(f"{plain_url(url)}: redirects what must stay secret to another host: {_host(location)}",
                        "tell whoever runs it; nothing was sent there")  # fmt: skip


def asks_elsewhere(url: str, location: str) -> ValueProblem:
    """A redirection to a server that wants to know who asks: only the one that was meant is told."""
    there = _host(location)
    return ValueProblem(f"{plain_url(url)}: leads to {there}, which wants to know who asks (HTTP 401); "
                        f"only {_host(url)} is told", f"name {there} itself if it is to be trusted")  # fmt: skip


def too_long(url: str, most_bytes: int) -> ValueProblem:
    """An answer that does not end."""
    return ValueProblem(f"{plain_url(url)}: the answer does not end within {most_bytes >> 20} MiB", "check the address")


def nonsense(url: str, what: str) -> AppError:
    """An answer that is well-formed but cannot be meant: ``what`` follows the word "sent"."""
    return AppError(f"{plain_url(url)}: {_host(url)} sent {what}", "try again, or get the file elsewhere", exit_code=5)


def other_part(url: str) -> Passing:
    """A range that is not the one that was asked for."""
    return Passing(f"{plain_url(url)}: {_host(url)} sent another part of the file than it was asked for",
                   "try again, or get the file elsewhere")  # fmt: skip


# Files.


def vanished(url: str) -> AppError:
    """What had been written is not there any more."""
    return AppError(f"{plain_url(url)}: somebody else has changed the unfinished file", "try again", exit_code=5)


def wrong_size(url: str, got: int, wanted: int) -> AppError:
    """More or fewer bytes than the hub published."""
    return AppError(f"{plain_url(url)}: has {got} bytes where {wanted} were promised: it is another file",
                    "try again, or get the model elsewhere", exit_code=5)  # fmt: skip


def wrong_hash(url: str, got: str, wanted: str) -> AppError:
    """All bytes came, and they are not those that the hub published."""
    return AppError(f"{plain_url(url)}: damaged on its way: its sha256 is {got[:12]}…, {wanted[:12]}… was promised",
                    "try again; if it happens once more, the hub's file is damaged", exit_code=5)  # fmt: skip


def no_space(folder: str, needed: int, free: int) -> AppError:
    """The disk is too small, seen before anything was fetched."""
    return AppError(f"{folder}: {_size(needed)} are needed, {_size(free)} are free",
                    "make room, or name another folder with --store", exit_code=5)  # fmt: skip


def disk(error: OSError, path: str) -> AppError:
    """Writing failed."""
    from errno import EDQUOT, ENOSPC

    if error.errno in (ENOSPC, EDQUOT):
        return AppError(f"{path}: the disk is full" if error.errno == ENOSPC else f"{path}: your disk quota is used up",
                        "make room and try again: what is here is kept", exit_code=5)  # fmt: skip
    return AppError(f"{path}: cannot be written: {error.strerror}", exit_code=5)


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
