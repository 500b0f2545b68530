"""Real engines for the tests of this folder; README.md tells how to get them.

Without an engine a test is skipped and says why; with ENGINE_TEST_REQUIRED set, it fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

HERE = Path(__file__).parent
LABEL = "ai.ramalama"
REMEDY = "run test/engine/prepare.sh and source the file that it names"


@dataclass(frozen=True, eq=False)
class Engine:
    """A container engine that answers: its program, and what its commands need around them."""

    name: str
    program: str
    environment: dict[str, str]
    user: str | None = None  # the one who runs the commands, if it is not the user who runs the tests
    folder: Path = Path("/")
    image: str = "quay.io/ramalama/ramalama:0.25"

    def run(self, *args: str, timeout: float = 120, check: bool = False) -> subprocess.CompletedProcess[str]:
        """Runs one command of the engine to its end; with check, a failure shows what the engine said."""
        done = subprocess.run(
            [self.program, *args],
            env=self.environment,
            cwd=self.folder,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            pytest.fail(f"{self.name} {' '.join(args)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done

    def start(self, *args: str, log: Path) -> subprocess.Popen[bytes]:
        """Starts one command of the engine and leaves it running, its output in a file."""
        with log.open("wb") as output:
            return subprocess.Popen(
                [self.program, *args],
                env=self.environment,
                cwd=self.folder,
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def containers(self) -> set[str]:
        listed = self.run("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}", check=True)
        return set(listed.stdout.split())


def is_required() -> bool:
    return bool(os.environ.get("ENGINE_TEST_REQUIRED"))


def refuse(reason: str) -> NoReturn:
    """Ends the test: skipped where engines are optional, failed where they are required."""
    message = f"{reason}: {REMEDY}"
    if is_required():
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def check_engine(engine: Engine) -> Engine:
    """The engine, if it answers and has the image."""
    try:
        listed = engine.run("ps", "--quiet", timeout=60)
    except subprocess.TimeoutExpired:
        refuse(f"{engine.name} does not answer within a minute")
    if listed.returncode:
        last = (listed.stderr.strip() or "no message").splitlines()[-1]
        refuse(f"{engine.name} does not work here ({last})")
    if engine.run("image", "inspect", engine.image, timeout=60).returncode:
        refuse(f"{engine.name} has no image {engine.image}")
    return engine


@pytest.fixture(scope="session", params=["podman", "docker"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn, as the user who runs the tests."""
    name: str = request.param
    wanted = os.environ.get("ENGINE_TEST_ENGINES", "podman,docker").split(",")
    if name not in wanted:
        refuse(f"{name} is not among ENGINE_TEST_ENGINES={','.join(wanted)}")
    program = shutil.which(name)
    if program is None:
        refuse(f"there is no {name} on PATH")
    return check_engine(Engine(name, program, dict(os.environ)))


@pytest.fixture(scope="session")
def rootless_podman() -> Engine:
    """podman as an unprivileged user; its folder is that user's home."""
    names = ("USER", "HOME", "RUNTIME_DIR", "CONTAINERS_CONF", "STORAGE_CONF")
    values = {name: os.environ.get(f"ENGINE_TEST_ROOTLESS_{name}", "") for name in names}
    missing = [f"ENGINE_TEST_ROOTLESS_{name}" for name, value in values.items() if not value]
    if missing:
        refuse(f"no unprivileged user for rootless podman ({missing[0]} is not set)")
    program = shutil.which("podman")
    if program is None or os.geteuid() != 0:
        refuse("rootless podman is tested by root, with podman on PATH")
    environment = {
        "HOME": values["HOME"],
        "USER": values["USER"],
        "LOGNAME": values["USER"],
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin",
        "LC_ALL": "C.UTF-8",
        "XDG_RUNTIME_DIR": values["RUNTIME_DIR"],
        "CONTAINERS_CONF": values["CONTAINERS_CONF"],
        "CONTAINERS_STORAGE_CONF": values["STORAGE_CONF"],
        "PODMAN_IGNORE_CGROUPSV1_WARNING": "1",
    }
    return check_engine(Engine("rootless podman", program, environment, values["USER"], Path(values["HOME"])))


@pytest.fixture(autouse=True)
def no_container_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that leaves a container with our label behind fails, and the container goes."""
    names = [name for name in ("engine", "rootless_podman") if name in request.fixturenames]
    before = {engine: engine.containers() for engine in map(request.getfixturevalue, names)} if names else {}
    yield
    for engine, known in before.items():
        deadline = time.monotonic() + 5  # --rm finishes a moment after the command has returned
        while (left := engine.containers() - known) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            named = engine.run("ps", "--all", "--filter", f"label={LABEL}").stdout
            engine.run("rm", "--force", *sorted(left))
            pytest.fail(f"{engine.name}: the test left {len(left)} container(s) behind:\n{named}", pytrace=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("engine")
