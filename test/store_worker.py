"""Processes that work in a store until they are killed.

    python store_worker.py STORE SEED     until somebody kills it
    python store_worker.py FOLDER @       a child for each N, which kills itself right before its Nth change of the disk
                                          in the store FOLDER/N, until one comes to its end

    python store_worker.py STORE SEED HUB with a hub from which files are fetched as the program does it

The first pulls (from memory, as ``models.pull`` does: what is there already is not fetched again), removes, tags,
prunes and goes on with unfinished downloads, at random but always the same for one seed. It prints a line after each
step.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import sys

from ramalama_like.errors import AppError
from ramalama_like.models.locks import Busy
from ramalama_like.models.store import Store
from ramalama_like.record import Record, StoredFile

KEPT = "hf://kept/model"
NAMES = [f"hf://Owner/model-{number}:Q4_K_M" for number in range(5)]
CONTENTS = [bytes([number]) * (1000 + number * 5000) for number in range(6)]
HUB = sys.argv[3] if __name__ == "__main__" and len(sys.argv) > 3 else ""  # an address; empty: from memory
SUMS = [hashlib.sha256(content).hexdigest() for content in CONTENTS]


def fetch(store: Store, number: int, piece: int = 4096) -> StoredFile:
    """Have one file in the store, going on where an earlier try ended; the caller is adopting."""
    content, sha256 = CONTENTS[number], SUMS[number]
    if HUB:
        from ramalama_like.listing import RemoteFile
        from ramalama_like.models import download
        from ramalama_like.models.client import Client

        with Client(retries=9) as client:
            download.fetch(client, RemoteFile(f"part-{number}.gguf", f"{HUB}/{number}", len(content), sha256), store,
                           connections=3, verify_gguf=False)  # fmt: skip
    elif not store.has_blob(sha256, len(content)):
        with store.partial(sha256, waiting=lambda: None) as partial:
            if not store.has_blob(sha256, len(content)):  # somebody else may have fetched it meanwhile
                with open(partial.data_path, "ab") as file:
                    while (have := file.tell()) < len(content):
                        file.write(content[have : have + piece])
                        file.flush()
                with open(partial.data_path, "rb") as file:
                    assert hashlib.sha256(file.read()).hexdigest() == sha256, "an unfinished download was spoilt"
                store.adopt(partial.data_path, sha256)
            elif os.path.exists(partial.data_path):
                os.unlink(partial.data_path)
    return StoredFile("model", f"part-{number}.gguf", len(content), sha256)


def pull(store: Store, name: str, numbers: list[int]) -> None:
    """Pull a model of some files."""
    with store.adopting():
        store.write_record(Record(name, tuple(fetch(store, number) for number in numbers), 1.0))


def step(store: Store, chance: random.Random) -> str:
    """One step, and what it was."""
    what = chance.choices(("pull", "remove", "tag", "prune"), (6, 3, 2, 2))[0]
    name, other = chance.sample(NAMES, 2)
    try:
        if what == "pull":
            pull(store, name, chance.sample(range(len(CONTENTS)), chance.randint(1, 3)))
        elif what == "remove":
            store.remove(name)
        elif what == "tag":
            store.tag(name, other)
        else:
            store.prune(0)
    except Busy:
        raise
    except AppError as error:
        assert error.exit_code == 22, error.message  # no such name
    return what


CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "fcntl.flock")


def scenario(store: Store) -> None:
    """A little of everything, on the way to a store that holds the last model alone."""
    pull(store, NAMES[0], [1, 2])
    pull(store, NAMES[1], [2, 3])
    store.tag(NAMES[0], NAMES[2])
    pull(store, NAMES[0], [4])
    store.remove(NAMES[1])
    store.remove(NAMES[2])
    store.prune(0)
    store.remove(NAMES[0])
    pull(store, NAMES[3], [5])


def until(number: int, store: Store) -> None:
    """Do the scenario, but die right before the change of this number."""
    left = number

    def count(event: str, _: object) -> None:
        nonlocal left
        if event in CHANGES:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), 9)

    sys.addaudithook(count)
    scenario(store)


def main() -> None:
    if sys.argv[2] != "@":
        store, chance = Store(sys.argv[1]), random.Random(sys.argv[2])
        while True:
            os.write(1, f"{step(store, chance)}\n".encode())
    for number in itertools.count(1):
        store = Store(f"{sys.argv[1]}/{number}")
        pull(store, KEPT, [0, 2, 4])
        child = os.fork()
        if child == 0:
            until(number, store)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        if status == 0:
            break


if __name__ == "__main__":
    main()
