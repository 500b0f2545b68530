"""Words that tell who works on which machine: what facts that are passed on may not hold."""

from __future__ import annotations

import os

from ramalama_like.facts import Private
from ramalama_like.probe.tree import LARGE, Tree, to_number

FIRST_PERSON = 1000  # user ids below are the system's
NOBODY = 65534
VARIABLES = ("USER", "LOGNAME", "SUDO_USER", "USERNAME", "HOSTNAME")


def probe_private(root: str, home: str) -> Private:
    """Names of people and of the host, and their home folders: of this machine, and of what ``root`` stands for."""
    names = {os.uname().nodename, *(os.environ.get(variable, "") for variable in VARIABLES)}
    homes = {home}
    for folder in {"/", root} if os.path.isdir(root) else {"/"}:
        tree = Tree(folder)
        names |= {
            tree.word(file) for file in ("etc/hostname", "proc/sys/kernel/hostname", "proc/sys/kernel/domainname")
        }
        for line in (tree.read("etc/passwd", LARGE) or "").splitlines():
            fields = line.split(":")
            number = to_number(fields[2]) if len(fields) > 5 else None
            if number is not None and (FIRST_PERSON <= number != NOBODY or number == os.geteuid()):
                names |= {fields[0], fields[4].partition(",")[0].strip()}  # the account, and the person
                homes.add(fields[5])
    names |= {part for name in names for part in (name.partition(".")[0], name.partition(".")[2])}
    return Private(
        tuple(sorted(name for name in names if name not in ("", "root", "localhost", "(none)"))),
        tuple(sorted(path for path in homes if len(path.strip("/")) > 1)),
    )
