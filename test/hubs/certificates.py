"""Certificates that nobody trusts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def make_certificate(folder: Path) -> str:
    """A file with a key and its certificate, for this machine and for hub.invalid. Skips where openssl is missing."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs the program openssl")
    subprocess.run([program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", folder / "key", "-out", folder / "cert", "-days", "3650", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,DNS:hub.invalid,IP:127.0.0.1"], check=True,
                   capture_output=True)  # fmt: skip
    both = folder / "both.pem"
    both.write_bytes((folder / "key").read_bytes() + (folder / "cert").read_bytes())
    return str(both)
