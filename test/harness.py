"""What the tests stand on: running the program, recording engines, GGUF files, and snapshots of folders."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from ramalama_like import main, pipeline, ui
from ramalama_like.probe.engine import ask_version, remember_engine
from ramalama_like.settings import find_program, user_cache_dir

TEST = Path(__file__).parent
ROOT = TEST.parent
PACKAGE = ROOT / "ramalama_like"
HOSTS = TEST / "hosts"
PROGRAM = "ramalama-like"


# Running the program.


@dataclass(frozen=True)
class Result:
    """The end of one command line."""

    code: int
    out: str
    err: str


def run_cli(*argv: str) -> Result:
    """Run a command line in this process, which is fast. Its input is empty; its output is caught at descriptors."""
    hook, saved = sys.excepthook, [os.dup(number) for number in range(3)]
    with open(os.devnull, "rb") as nothing, _elsewhere() as out, _elsewhere() as err:
        try:
            for number, file in enumerate((nothing, out, err)):
                os.dup2(file.fileno(), number)
            code = main.run_argv(list(argv))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in enumerate(saved):
                os.dup2(descriptor, number)
                os.close(descriptor)
            sys.excepthook = hook
            ui.set_quiet(False)
        return Result(code, *(os.fsdecode(os.pread(file.fileno(), 1 << 24, 0)) for file in (out, err)))


def _elsewhere() -> IO[bytes]:
    return tempfile.TemporaryFile(dir="/tmp")  # not in TMPDIR, which tests watch


def run_program(
    *argv: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None, timeout_s: float = 30
) -> Result:
    """Run a command line in a process of its own, as people do. The machine's own configuration files are not read."""
    environment = {**os.environ, **(env or {})}
    environment.setdefault("RAMALAMA_CONFIG", os.devnull)
    done = subprocess.run(
        [sys.executable, "-m", "ramalama_like", *argv],
        env=environment,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    return Result(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))


OWN_ADDRESSES = ("", "127.0.0.1", "127.0.0.2", "localhost", "0.0.0.0", "::", "::1", "[::1]")


def free_all_ports(patch: pytest.MonkeyPatch) -> None:
    """Let every port of this machine count as free, and no name be looked up.

    Between a dry run and the execution that is held to it somebody else may take a port, or a name server may fall
    silent: what is compared then are two machines.
    """

    def is_free(host: str, _port: int) -> bool:
        return host in OWN_ADDRESSES

    def find(first: int, last: int, host: str, passed_over: tuple[int, ...] = ()) -> int | None:
        return next(
            (port for port in range(first, last + 1) if host in OWN_ADDRESSES and port not in passed_over), None
        )

    patch.setattr(pipeline, "port_is_free", is_free)
    patch.setattr(pipeline, "find_free_port", find)


def free_usual_ports(patch: pytest.MonkeyPatch) -> None:
    """Let the ports that the program takes by itself count as free, whatever else this machine is doing."""
    is_free, find = pipeline.port_is_free, pipeline.find_free_port

    def usual(host: str, port: int) -> bool:
        return host in OWN_ADDRESSES and 8080 <= port <= 8080 + pipeline.PORTS_TRIED

    patch.setattr(pipeline, "port_is_free", lambda host, port: usual(host, port) or is_free(host, port))

    def find_usual(first: int, last: int, host: str, passed_over: tuple[int, ...] = ()) -> int | None:
        if not usual(host, first):
            return find(first, last, host, passed_over)
        return next((port for port in range(first, last + 1) if port not in passed_over), None)

    patch.setattr(pipeline, "find_free_port", find_usual)


def error_text(message: str, hint: str = "") -> str:
    """What standard error holds after an error, and nothing else."""
    return f"Error: {message}\n" + (f"Hint: {hint}\n" if hint else "")


# Engines that only write down what they are asked for.

ENGINES = {
    "podman-4.3": ("podman", "4.3.1"),
    "podman-4.9": ("podman", "4.9.3"),
    "podman-5.4": ("podman", "5.4.2"),
    "docker-20.10": ("docker", "20.10.24"),
    "docker-28": ("docker", "28.2.2"),
}


@dataclass(frozen=True)
class Recorder:
    """A folder for PATH with recording programs, and what they have recorded."""

    folder: Path
    names: tuple[str, ...]
    kind: str = ""
    _seen: list[int] = field(default_factory=lambda: [0])

    @classmethod
    def install(cls, folder: Path, *names: str, kind: str = "") -> Recorder:
        """Put the fake below these names into ``folder``/bin, with the few programs that it and the tests need."""
        (folder / "bin").mkdir(parents=True)
        (folder / "records").mkdir()
        for name in names:
            shutil.copy(TEST / "fakes" / "engine.sh", folder / "bin" / name)
        for tool in ("sleep", "env"):
            (folder / "bin" / tool).symlink_to(shutil.which(tool) or f"/usr/bin/{tool}")
        return cls(folder, names, kind)

    @property
    def path(self) -> str:
        return str(self.folder / "bin")

    def make_known(self) -> None:
        """Put the engine's answer into the cache, as a successful start does: tests with many starts go faster."""
        remember_engine(find_program(self.kind), ask_version(self.kind), user_cache_dir())

    def take(self) -> list[list[str]]:
        """Every call since the last time, in order, with the name of the program first."""
        calls = []
        while (record := self.folder / "records" / str(self._seen[0] + 1)).exists():
            self._seen[0] += 1
            calls.append([os.fsdecode(word) for word in record.read_bytes().split(b"\0")[:-1]])
        return calls

    def take_runs(self) -> list[list[str]]:
        """As ``take``, but only what starts containers."""
        return [call for call in self.take() if call[1:2] == ["run"]]

    def shell(self, text: str, shell: str = "/bin/sh") -> list[list[str]]:
        """Give ``text`` to a shell, which finds only the recording programs, and return their calls."""
        self.take()
        subprocess.run([shell, "-c", os.fsencode(text)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return self.take()


# What is on disk.


def snapshot(*folders: str | Path) -> dict[str, tuple[object, ...]]:
    """Everything below some folders: kind, permissions, size, time of change and content."""
    found: dict[str, tuple[object, ...]] = {}
    for folder in map(os.fspath, folders):
        pending = [folder] if os.path.lexists(folder) else []
        while pending:
            path = pending.pop()
            status = os.lstat(path)
            content = ""
            if stat.S_ISDIR(status.st_mode):
                pending += [os.path.join(path, name) for name in os.listdir(path)]
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            found[path] = (oct(status.st_mode), status.st_size, status.st_mtime_ns, content)
    return found


def files_below(*folders: str | Path) -> list[str]:
    """Everything below some folders that is no folder."""
    return sorted(path for path, facts in snapshot(*folders).items() if not str(facts[0]).startswith("0o4"))


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """A new folder with a short path, since the path of a Unix socket may have no more than 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="rl-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


# GGUF files, written by hand so that they can be wrong.

_SCALARS = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
            "f32": (6, "f"), "bool": (7, "?"), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d")}  # fmt: skip


def gguf_text(text: bytes) -> bytes:
    """A text as GGUF stores it."""
    return struct.pack("<Q", len(text)) + text


def gguf_pair(key: str, kind: str, content: object) -> bytes:
    """One key of the metadata. ``kind`` is text, a number such as u32, or ``[kind]`` for an array of it."""
    head = gguf_text(key.encode())
    if kind == "text":
        return head + struct.pack("<I", 8) + gguf_text(str(content).encode())
    if kind.startswith("["):
        assert isinstance(content, Sequence)
        if kind == "[text]":
            return head + struct.pack("<IIQ", 9, 8, len(content)) + b"".join(gguf_text(s.encode()) for s in content)
        number, letter = _SCALARS[kind[1:-1]]
        return head + struct.pack("<IIQ", 9, number, len(content)) + struct.pack(f"<{len(content)}{letter}", *content)
    number, letter = _SCALARS[kind]
    return head + struct.pack("<I", number) + struct.pack(f"<{letter}", content)


def gguf_tensor(name: str, shape: Sequence[int], kind: int = 0, offset: int = 0) -> bytes:
    """The description of one tensor."""
    return (
        gguf_text(name.encode())
        + struct.pack("<I", len(shape))
        + struct.pack(f"<{len(shape)}Q", *shape)
        + struct.pack("<IQ", kind, offset)
    )


def gguf_bytes(
    *pairs: bytes, tensors: Sequence[bytes] = (), data: int = 0, version: int = 3, alignment: int = 32
) -> bytes:
    """A whole file: metadata, descriptions of tensors, and ``data`` bytes after them."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % alignment + data if tensors else data)


def language_model(width: int = 64, *more: bytes, architecture: str = "llama") -> bytes:
    """The smallest file that counts as a language model."""
    return gguf_bytes(
        gguf_pair("general.architecture", "text", architecture),
        gguf_pair(f"{architecture}.embedding_length", "u32", width),
        gguf_pair(f"{architecture}.context_length", "u32", 512),
        *more,
        tensors=[gguf_tensor("output_norm.weight", [4])],
        data=16,
    )


def projector(width: int | None = 64) -> bytes:
    """The smallest file that counts as a projector; without a width it does not tell what it fits."""
    width_pair = [] if width is None else [gguf_pair("clip.vision.projection_dim", "u32", width)]
    return gguf_bytes(gguf_pair("general.architecture", "text", "clip"), *width_pair)


def write_split(folder: Path, stem: str, count: int, ending: str = ".gguf") -> list[Path]:
    """A model in ``count`` parts."""
    parts = [folder / f"{stem}-{number:05}-of-{count:05}{ending}" for number in range(1, count + 1)]
    for number, part in enumerate(parts):
        part.write_bytes(language_model(64, gguf_pair("split.no", "u16", number)))
    return parts
