"""Options of ``Model`` as keywords: those of the command line by their Python names (``ctx_size`` for ``--ctx-size``).

``options.py`` declares them; ``StartOptions`` repeats their names for type checkers, and a test keeps the two in step.
"""

from __future__ import annotations

import os
import shlex
from difflib import get_close_matches
from typing import TypedDict

from ramalama_like.errors import UsageError
from ramalama_like.options import all_options, options_of
from ramalama_like.request import Given, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from ramalama_like.options import Option

COMMAND = "run"  # whose options these are, without those of the conversation at the terminal
NO_USE = ("dryrun", "noout", "quiet")  # model.plan and model.commands show what would be executed; nothing is printed


class StartOptions(TypedDict, total=False):
    """How a server is started. Meaning and values: ``ramalama-like run --help``; None means not given."""

    engine: str | None  # podman, docker, none
    container: bool | None
    runtime: str | None
    store: str | PathLike[str] | None
    offline: bool | None
    host_facts: str | PathLike[str] | None
    debug: bool | None
    backend: str | None
    gpu: str | Sequence[str] | None
    image: str | None
    image_family: str | None
    device: str | Sequence[str] | None
    keep_groups: bool | None
    require_gpu: bool | None
    pull: str | None
    authfile: str | PathLike[str] | None
    tls_verify: bool | None
    name: str | None
    env: str | Sequence[str] | None
    network: str | None
    privileged: bool | None
    selinux: bool | None
    cpus: float | None
    memory: int | str | None  # bytes, or text such as 8g
    oci_runtime: str | None
    engine_args: str | Sequence[str] | None
    host: str | None
    port: int | None  # 0: any that is free
    timeout: float | None  # seconds of silence before the server is ready
    ctx_size: int | None  # tokens
    max_tokens: int | None
    temp: float | None
    seed: int | str | None
    ngl: int | str | None
    ncmoe: int | None
    threads: int | None
    cache_reuse: int | None  # tokens
    logfile: str | PathLike[str] | None
    thinking: bool | None
    model_draft: str | None
    spec_type: str | None
    spec_draft_n_max: int | None
    spec_draft_n_min: int | None
    spec_draft_p_min: float | None
    chat_template: str | PathLike[str] | None  # a Jinja file
    lora: str | PathLike[str] | Sequence[str | PathLike[str]] | None  # FILE or FILE:SCALE
    slot_save_path: str | PathLike[str] | None
    embedding: bool | None
    rerank: bool | None
    runtime_args: str | Sequence[str] | None
    force: bool | None
    api: str | None


def start_options() -> Mapping[str, Option]:
    """The declarations of what ``Model`` takes."""
    return {name: option for name, option in options_of(COMMAND).items()
            if name not in NO_USE and option.group != "Chat" and not option.not_yet}  # fmt: skip


def make_request(model: str, options: Mapping[str, object]) -> Request:
    """The request for a model with these keywords. Raises UsageError for one that is not known."""
    known = start_options()
    given: dict[str, Given] = {}
    for name, wanted in options.items():
        if name not in known:
            raise _unknown(name, known)
        if wanted is None:
            continue
        if name == "port" and wanted == 0 and not isinstance(wanted, bool):
            # That an address is asked for makes it a port instead of a socket; the next free one is the default.
            given.setdefault("host", Given("127.0.0.1", "port"))
        else:
            given[name] = Given(_as_given(known[name], wanted), name)
    return Request(COMMAND, (model,), given)


def _as_given(option: Option, wanted: object) -> object:
    if isinstance(wanted, os.PathLike):
        wanted = os.fspath(wanted)
    if isinstance(wanted, list | tuple):
        wanted = tuple(os.fspath(each) if isinstance(each, os.PathLike) else each for each in wanted)
    if option.kind in ("list", "args") and isinstance(wanted, str):
        return (wanted,)
    if option.kind == "args" and isinstance(wanted, tuple) and all(isinstance(word, str) for word in wanted):
        return tuple(map(shlex.quote, wanted))  # words are words; only a single text is split as a shell would
    if option.kind == "str" and isinstance(wanted, int) and not isinstance(wanted, bool):
        return str(wanted)
    return wanted


def _unknown(name: str, known: Mapping[str, Option]) -> UsageError:
    if name in all_options():
        return UsageError(f"{name} is no option of Model", "it has no meaning without the command line")
    near = get_close_matches(name, known, 1)
    return UsageError(f"there is no option {name}", f"did you mean {near[0]}?" if near else "see docs/python.md")
