"""The examples of docs/python.md and of README, executed as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT

PAGES = {"docs/python.md": 8, "README.md": 1}


def examples(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMALAMA_ENGINE", "none")
    monkeypatch.setenv("RAMALAMA_CONFIG", "/dev/null")
    found = examples(page)
    assert len(found) == PAGES[page]
    done = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(found)], cwd=tmp_path, capture_output=True,
                          text=True, check=False, timeout=200)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "ramalama-like" in done.stdout
