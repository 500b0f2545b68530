"""README's two commands, in a fresh clone, for somebody whose HOME is empty. Slow: .ci/run asks for it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from harness import ROOT

pytestmark = pytest.mark.bare
MINUTES = 60


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of what is committed."""
    if not os.environ.get("ENGINE_TEST_REQUIRED"):
        pytest.skip("a fresh clone and two installations take minutes: .ci/run does that")
    target = tmp_path_factory.mktemp("clone") / "ramalama-like"
    subprocess.run(["git", "-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(target)],
                   check=True)  # fmt: skip
    return target


def make(clone: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """One of README's commands, typed in the clone, with hardly any variable."""
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "PIP_INDEX_URL", "PIP_CONFIG_FILE")
                   if name in os.environ} | {"HOME": str(home)}  # fmt: skip
    return subprocess.run(["make", *words], cwd=clone, env=environment, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=23 * MINUTES)  # fmt: skip


def test_the_readme_names_these_commands() -> None:
    """What is tried here is what a newcomer reads first."""
    first_screen = "\n".join((ROOT / "README.md").read_text("utf-8").splitlines()[:20])
    assert re.findall(r"^\$ (make \w+)", first_screen, re.MULTILINE) == ["make demo", "make test"]


def test_make_demo_answers(clone: Path, tmp_path: Path) -> None:
    done = make(clone, tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    answer = done.stdout.splitlines()[-1]
    # The demo samples, as any conversation does, so only its subject is certain.
    assert "ramalama-like" in answer and len(answer) > 20, done.stdout
    assert not list(tmp_path.rglob("*.gguf")), "nothing was downloaded as a model"


def test_make_test_passes_and_names_what_it_skips(clone: Path, tmp_path: Path) -> None:
    # This very test is left out, or it would never end.
    done = make(clone, tmp_path, "test", "TESTFLAGS=-n auto -m 'not bare'")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    last = done.stdout.rstrip().splitlines()[-1]
    assert re.search(r"\d+ passed", last) and "failed" not in last, last
    skipped = re.search(r"(\d+) skipped", last)
    named = sum(int(number) for number in re.findall(r"^SKIPPED \[(\d+)\] ", done.stdout, re.MULTILINE))
    assert named == (int(skipped[1]) if skipped else 0)
