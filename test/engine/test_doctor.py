"""``doctor`` with real engines, and its trial run with the real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.test_commands import ROOT, WITHIN_S, User

if TYPE_CHECKING:
    from engine.conftest import Engine


@pytest.fixture
def user(engine: Engine, world: Path) -> User:
    """A user of each engine in turn."""
    return User(engine, world / "user")


def checks(text: str) -> dict[str, dict[str, str]]:
    return {row["check"]: row for row in json.loads(text)}


def test_a_machine_that_works(user: User) -> None:
    done = user.types("doctor", "--json", "--pull", "never")
    found = checks(done.stdout)
    assert done.returncode == 0, done.stdout
    assert {row["check"] for row in found.values() if row["status"] == "fail"} == set()
    for check in ("engine", "version", "accelerator", "image", "architecture", "disk"):
        assert found[check]["status"] == "ok", found[check]
    assert found["image"]["what"].startswith(f"{user.engine.image} is here, ")
    assert found["engine"]["what"].startswith(f"{user.engine.name} ")


def test_an_image_that_is_not_here(user: User) -> None:
    done = user.types("doctor", "--json", "--pull", "never", "--image", "localhost/no-such-image:1")
    assert done.returncode == 1
    assert checks(done.stdout)["image"] == {
        "check": "image", "status": "fail",
        "what": "localhost/no-such-image:1 is not here, and --pull never forbids to fetch it",
        "why": "nothing can be started without it",
        "command": f"{user.engine.name} pull localhost/no-such-image:1",
    }  # fmt: skip


def test_the_trial_run(user: User) -> None:
    done = user.types("doctor", "--smoke", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    row = checks(done.stdout)["smoke"]
    speed, _, rest = row["what"].partition(" ")
    # Why it is the processor depends on the machine that runs the tests.
    beginning = "tokens per second with CPU because "
    assert (row["status"], float(speed) > 0, rest[: len(beginning)]) == ("ok", True, beginning)
    assert user.leftovers() == []


def test_a_trial_run_that_fails(user: User) -> None:
    done = user.types("doctor", "--smoke", "--json", "--image", user.engine.image, "--engine-args", "--entrypoint=/no")
    row = checks(done.stdout)["smoke"]
    assert (done.returncode, row["status"]) == (1, "fail")
    assert row["what"].startswith("the server ended with exit code 1"), row
    assert user.leftovers() == []


def test_info_holds_the_engine_s_own(user: User) -> None:
    info = json.loads(user.types("info").stdout)["Engine"]
    assert info["Name"] == user.engine.name
    assert info["Info"]["version" if user.engine.name == "podman" else "ServerVersion"]


def test_a_user_who_is_not_root(rootless_podman: Engine) -> None:
    home = Path(rootless_podman.environment["HOME"])
    copy = home / "package-doctor"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / "ramalama_like", copy / "ramalama_like", ignore=shutil.ignore_patterns("__pycache__"))
    python = next(path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if os.access(path, os.X_OK))
    environment = rootless_podman.environment | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [python, "-m", "ramalama_like", "doctor", "--smoke", "--json", "--pull", "never"], env=environment,
            cwd=home, user=rootless_podman.user, group=rootless_podman.user, extra_groups=[],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WITHIN_S, check=False,
        )  # fmt: skip
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    found = json.loads(done.stdout)
    rows = {row["check"]: row for row in found}
    assert rows["smoke"]["status"] == "ok", done.stdout + done.stderr
    assert {row["what"] for row in found if row["check"] == "rootless" and row["status"] == "fail"} == set()
    assert rows["rootless"]["status"] in ("ok", "warn")
