"""Which container engine is here, and of which version. Asking takes a program start, so the answer is kept."""

from __future__ import annotations

import os

from ramalama_like.data import load_table
from ramalama_like.errors import EngineError
from ramalama_like.facts import EngineFacts
from ramalama_like.files import read_file, write_file
from ramalama_like.process import capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ENGINES = ("podman", "docker")
LONGEST_ANSWER_S = 10.0
LARGEST_CACHE = 1 << 20


def probe_engine(
    wanted: str,
    *,
    contained: bool,
    in_toolbox: bool,
    find: Callable[[str], str],
    cache_dir: str,
    elsewhere: bool,
    timeout_s: float,
) -> EngineFacts:
    """Find the engine that was wanted (empty: podman, else docker, else none) and its version.

    ``find`` looks a program up on PATH. ``elsewhere`` means that the plan is for another machine: an engine that is
    not here is then taken to be a current one. Raises EngineError for one that is missing or fails, TimedOut for one
    that hangs. Only reads the cache; ``remember_engine`` writes it.
    """
    if not contained:
        return EngineFacts(kind="none", why="containers were declined")
    if wanted == "none":
        return EngineFacts(kind="none", why="no engine was asked for")
    if in_toolbox and not wanted:
        return EngineFacts(kind="none", why="engines cannot be used inside a toolbox")
    for kind in (wanted,) if wanted else ENGINES:
        path = find(kind)
        if path:
            text = _cached(cache_dir, path) or ask_version(kind, timeout_s)
            why = "as asked" if wanted else "it is on PATH"
            return _facts(kind, text, why)
    if elsewhere:
        kind = wanted or ENGINES[0]
        assumed = load_table("engines")[kind]["assumed"]
        return _facts(kind, f"{kind} version {assumed}", f"{kind} {assumed} is taken for granted on another machine")
    if wanted:
        raise EngineError(f"{wanted} is not on PATH", f"install {wanted}, or run without containers: --nocontainer")
    return EngineFacts(kind="none", why="neither podman nor docker is on PATH")


def ask_version(program: str, timeout_s: float = LONGEST_ANSWER_S) -> str:
    """What ``program --version`` prints. Raises EngineError where it fails, TimedOut where it hangs."""
    done = capture((program, "--version"), min(timeout_s, LONGEST_ANSWER_S))
    if done.code or not done.stdout.strip():
        said = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
        raise EngineError(f"{program} --version failed with exit code {done.code}: {said}",
                          f"repair {program}, or run without containers: --nocontainer")  # fmt: skip
    return done.stdout.strip().splitlines()[0]


def ask_cdi_directories(program: str, timeout_s: float) -> tuple[str, ...]:
    """The folders in which docker's daemon looks for CDI specs; none for one that has no such support."""
    import json

    done = capture((program, "info", "--format", "{{json .CDISpecDirs}}"), timeout_s)
    try:
        found = json.loads(done.stdout) if done.code == 0 else None
    except ValueError:
        found = None
    return tuple(str(path) for path in found) if isinstance(found, list) else ()


def parse_version(text: str) -> tuple[int, ...]:
    """Numbers of the first word that begins with a digit: ``podman version 4.9.3-dev`` gives (4, 9, 3)."""
    for word in text.replace(",", " ").split():
        if word[0].isdigit():
            numbers = []
            for part in word.split("."):
                digits = part[: len(part) - len(part.lstrip("0123456789"))]
                if not 0 < len(digits) < 10:  # a commit or worse, no number of a version
                    break
                numbers.append(int(digits))
                if digits != part:
                    break
            return tuple(numbers)
    return ()


def remember_engine(path: str, text: str, cache_dir: str) -> None:
    """Keep an engine's answer for the next start. A cache that cannot be written costs only that."""
    stamp = _stamp(path)
    if not stamp or _cached(cache_dir, path) == text:
        return
    lines = [line for line in _cache_lines(cache_dir) if not line.startswith(f"{path}\t")]
    lines.append(f"{path}\t{stamp}\t{text}")
    target = _cache_file(cache_dir)
    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        write_file(target, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    except OSError:
        return


def _facts(kind: str, text: str, why: str) -> EngineFacts:
    # podman-docker installs a `docker` that is podman: it speaks podman's dialect.
    real = "podman" if "podman" in text.lower() else kind
    version = parse_version(text)
    return EngineFacts(
        kind=real, program=kind, version=version, version_text=".".join(map(str, version)) or text,
        rootless=os.geteuid() != 0 if real == "podman" else None, why=why,
    )  # fmt: skip


def _cached(cache_dir: str, path: str) -> str:
    stamp = _stamp(path)
    for line in _cache_lines(cache_dir):
        if stamp and line.startswith(f"{path}\t{stamp}\t"):
            return line.rpartition("\t")[2]
    return ""


def _cache_lines(cache_dir: str) -> list[str]:
    try:
        return read_file(_cache_file(cache_dir), LARGEST_CACHE).decode("utf-8", "surrogateescape").split("\n")[:-1]
    except OSError:
        return []


def _cache_file(cache_dir: str) -> str:
    return os.path.join(cache_dir, "engines.tsv")


def _stamp(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size}\t{status.st_mtime_ns}"
