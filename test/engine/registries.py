"""A real registry for tests: Debian's docker-registry, on a port of loopback that the kernel chose."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

USER, PASSWORD = "anna", "opên: sesame"
ENTRY = "anna:$2y$05$abcdefghijklmnopqrstuusb1n6EvsaDgx8/jHmIZzkNotswahV/C\n"  # what htpasswd makes of these


@dataclass(frozen=True)
class RealRegistry:
    """One that runs: its place as it stands in names, and the folder that holds its files."""

    place: str
    folder: Path

    def log(self) -> str:
        """What it has logged: one line for each request."""
        return (self.folder / "log").read_text(errors="replace")


@contextlib.contextmanager
def run_registry(folder: Path, *, host: str = "127.0.0.1", password_file: Path | None = None,
                 certificate: tuple[Path, Path] | None = None) -> Iterator[RealRegistry]:  # fmt: skip
    """Start a registry that keeps everything below ``folder``, and stop it."""
    program = shutil.which("docker-registry")
    assert program, "docker-registry is missing"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["version: 0.1", "log: {accesslog: {disabled: false}, level: info}", "storage:",
             f"  filesystem: {{rootdirectory: {folder}/data}}", "  delete: {enabled: true}"]  # fmt: skip
    if password_file is not None:
        lines += [f"auth: {{htpasswd: {{realm: tests, path: {password_file}}}}}"]
    tls = f", tls: {{certificate: {certificate[0]}, key: {certificate[1]}}}" if certificate else ""
    for _ in range(20):  # somebody else may take the port meanwhile
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
        config = folder / "config.yml"
        config.write_text("\n".join([*lines, f"http: {{addr: '{host}:{port}'{tls}}}"]) + "\n")
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log)
        try:
            if answers(process, host, port):
                yield RealRegistry(f"{host}:{port}", folder)
                return
        finally:
            process.terminate()
            process.wait()
    raise AssertionError((folder / "log").read_text())


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for loopback that nobody vouches for, and its key."""
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / "registry.pem", folder / "registry.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=registry",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def answers(process: subprocess.Popen[bytes], host: str, port: int) -> bool:
    """Whether it comes up; not where its port was taken."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection((host, port), 5):
            time.sleep(0.05)  # one whose port was taken ends in a moment
            return process.poll() is None
        time.sleep(0.05)
    return False
