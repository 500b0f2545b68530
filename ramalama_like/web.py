"""The door to services in the network, for short questions. Proxies and certificates are those of the environment."""

from __future__ import annotations

from ramalama_like.observed import Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def ask_service(url: str, timeout_s: float, *, headers: Mapping[str, str] | None = None, verify: bool = True) -> Reply:
    """Ask for a page and drop its content; redirections are not followed. Never raises: no answer is an answer too."""
    import requests

    kept = headers or {}

    def only_these(prepared: requests.PreparedRequest) -> requests.PreparedRequest:
        return prepared  # in place of ~/.netrc, whose passwords are nobody's business here

    try:
        with requests.Session() as session, session.get(
            url, headers=dict(kept), timeout=timeout_s, allow_redirects=False, stream=True, verify=verify,
            auth=only_these,
        ) as response:  # fmt: skip
            return Reply(url, response.status_code, clock=_seconds(response.headers.get("Date", "")))
    except (requests.RequestException, ValueError) as error:  # ValueError: an address that cannot be encoded
        return Reply(url, problem=_reason(error))


def _reason(error: BaseException) -> str:
    """The innermost reason, which is the telling one."""
    inner: BaseException = error
    seen = set()
    while id(inner) not in seen:
        seen.add(id(inner))
        args = [arg for arg in (getattr(inner, "reason", None), *inner.args) if isinstance(arg, BaseException)]
        if args:
            inner = args[0]
    text = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    words = text.rpartition(">: ")[2].rpartition("): ")[2]
    if "[Errno " in words:
        words = words.rpartition("[Errno ")[2].partition("] ")[2].rstrip(")")
    return " ".join(words.split())[:120]


def _seconds(date: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError):
        return None
