"""What a user needs to run containers without being root: ranges of ids, the programs that map them, cgroups."""

from __future__ import annotations

import os

from ramalama_like import settings
from ramalama_like.observed import Account
from ramalama_like.probe.tree import LARGE, to_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.tree import Tree


def examine_account(tree: Tree) -> Account:
    """The account of the user who runs this program, by the files below ``tree``."""
    number = os.geteuid()
    name = _name_of(tree, number)
    runtime_dir = settings.variable("XDG_RUNTIME_DIR")
    lingering = None
    if tree.exists("run/systemd/system"):
        lingering = tree.exists(f"var/lib/systemd/linger/{name}")
    return Account(
        name=name,
        user_ids=_count_ids(tree.read("etc/subuid", LARGE) or "", name, number),
        group_ids=_count_ids(tree.read("etc/subgid", LARGE) or "", name, number),
        helpers=bool(settings.find_program("newuidmap") and settings.find_program("newgidmap")),
        cgroups="v2" if tree.exists("sys/fs/cgroup/cgroup.controllers") else "v1",
        runtime_dir=runtime_dir,
        runtime_dir_good=_is_own_folder(runtime_dir),
        lingering=lingering,
    )


def _name_of(tree: Tree, number: int) -> str:
    for line in (tree.read("etc/passwd", LARGE) or "").splitlines():
        fields = line.split(":")
        if len(fields) > 2 and fields[2] == str(number):
            return fields[0]
    import pwd

    try:
        return pwd.getpwuid(number).pw_name  # one that a directory service knows
    except KeyError:
        return str(number)


def _count_ids(text: str, name: str, number: int) -> int:
    """How many ids lines of the form name:first:count give to a user, who may stand there by number too."""
    total = 0
    for line in text.splitlines():
        fields = line.strip().split(":")
        if len(fields) == 3 and fields[0] in (name, str(number)):
            total += to_number(fields[2]) or 0
    return total


def _is_own_folder(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return os.path.isabs(path) and os.path.isdir(path) and status.st_uid == os.geteuid()
