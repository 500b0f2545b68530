"""A model and its image on their way to a machine without a network, with real engines."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shlex
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_model.corpus import FIXED_ANSWER, FIXED_PROMPT
from harness import PACKAGE

from engine.conftest import Engine
from engine.test_commands import User
from ramalama_like.models.store import Store
from ramalama_like.record import Record, StoredFile

NAME = "hf://ramalama-like/demo:F16"


@pytest.fixture
def user(engine: Engine, world: Path) -> User:
    """A user of each engine in turn."""
    return User(engine, world / "user")


@pytest.fixture
def image(user: User) -> Iterator[str]:
    """A small image of our own, which nobody else needs."""
    name = f"localhost/ramalama-like-export-{os.getpid()}:1"
    layer = user.folder / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        info = tarfile.TarInfo("hello")
        info.size = 5
        tar.addfile(info, io.BytesIO(b"hello"))
    user.engine.run("import", str(layer), name, check=True)
    yield name
    user.engine.run("rmi", name)


def put_demo(folder: Path) -> Store:
    """The demo model, under a name as pulled ones have."""
    content = (PACKAGE / "data" / "demo" / "demo.gguf").read_bytes()
    total = hashlib.sha256(content).hexdigest()
    store = Store(str(folder))
    with store.adopting(), store.partial(total) as partial:
        Path(partial.data_path).write_bytes(content)
        store.adopt(partial.data_path, total)
        store.write_record(Record(NAME, (StoredFile("model", "demo-F16.gguf", len(content), total),), 1.0))
    return store


def test_a_model_and_its_image_travel(user: User, image: str) -> None:
    """Exported here, imported where neither is known, and run from there without asking anybody."""
    one, two = str(user.folder / "one"), str(user.folder / "two")
    put_demo(Path(one))
    words = ("export", NAME, "model.tar", "--image", image, "--store", one)
    (save,) = user.dry_run(*words)
    assert [*save[:3], save[4:]] == [user.engine.name, "save", "-o", [image]]
    assert re.fullmatch(rf"{re.escape(one)}/ramalama-like/partial/export-[0-9a-f]+/data", save[3])
    done = user.types(*words)
    assert (done.returncode, done.stdout) == (0, f"{user.folder}/model.tar\n"), done.stderr
    assert sorted(path.name for path in user.folder.glob("*.tar*")) == ["layer.tar", "model.tar"]
    user.engine.run("rmi", image, check=True)
    assert user.engine.run("image", "inspect", image).returncode != 0
    done = user.types("import", "model.tar", "--store", two)
    assert (done.returncode, done.stdout) == (0, f"{NAME}\n"), done.stderr
    assert user.engine.run("image", "inspect", image).returncode == 0
    answer = user.types("--offline", "--store", two, "run", "--temp", "0", NAME, FIXED_PROMPT)
    assert (answer.returncode, answer.stdout.strip()) == (0, FIXED_ANSWER), answer.stderr
    assert user.types("fsck", "--store", two).returncode == 0


def test_the_image_that_would_be_used_here(user: User) -> None:
    """--image auto is the one that serve's own dry run shows."""
    store = str(user.folder / "one")
    put_demo(Path(store))
    (save,) = user.dry_run("export", NAME, "model.tar", "--image", "auto", "--store", store)
    assert save[-1] in user.dry_run("serve", NAME, "--store", store)[0]


def test_an_image_that_is_not_here(user: User) -> None:
    store = str(user.folder / "one")
    put_demo(Path(store))
    nowhere = "localhost/ramalama-like-nowhere:1"
    done = user.types("export", NAME, "model.tar", "--image", nowhere, "--store", store)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith(f"Error: {user.engine.name} could not write the image {nowhere}: "), done.stderr
    assert done.stderr.splitlines()[-1].startswith("Hint: "), shlex.quote(done.stderr)
    assert not list(user.folder.glob("model.tar*"))
