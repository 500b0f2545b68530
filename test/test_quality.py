"""What a reviewer would otherwise have to look for: types and lint, over everything that is committed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from harness import ROOT


@pytest.mark.parametrize("tool", [("mypy",), ("ruff", "check", ".")], ids=lambda words: words[0])
def test_the_tools_are_content(tool: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
