"""What podman needs to work for a user who is not root."""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.health import ELSEWHERE, Case, Finding, fail, install_command, ok, skip, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ramalama_like.observed import Account


def check(case: Case) -> Iterator[Finding]:
    """Nothing of it matters to root, to docker, and where no engine is used."""
    if case.observed is None:
        yield ELSEWHERE
        return
    account = case.observed.account
    if account is None:
        yield skip("not checked: only podman of a user who is not root needs it")
        return
    faults = [*_ids(account), *_helpers(account, case.observed.system), *_cgroups(account), *_runtime_dir(account),
              *_lingering(account)]  # fmt: skip
    yield from faults or [ok(f"{min(account.user_ids, account.group_ids)} ids for {account.name}, cgroup "
                             f"{account.cgroups}, servers outlive the login")]  # fmt: skip


def _ids(account: Account) -> Iterator[Finding]:
    needed = load_table("health")["account"]["ids"]
    repair = (f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {account.name}"
              " && podman system migrate")  # fmt: skip
    for file, count in (("/etc/subuid", account.user_ids), ("/etc/subgid", account.group_ids)):
        if not count:
            yield fail(f"{file} gives no ids to {account.name}", "images hold files of several users, which need ids",
                       repair)  # fmt: skip
        elif count < needed:
            yield warn(f"{file} gives only {count} ids to {account.name}", f"images may use {needed} of them", repair)


def _helpers(account: Account, system: str) -> Iterator[Finding]:
    if not account.helpers:
        yield fail("newuidmap and newgidmap are not on PATH", "podman maps ids with them",
                   install_command("newuidmap", system))  # fmt: skip


def _cgroups(account: Account) -> Iterator[Finding]:
    if account.cgroups == "v1":
        yield warn("the system uses cgroups of version 1", "without version 2 a user cannot limit memory and CPUs",
                   "sudo grubby --update-kernel=ALL --args=systemd.unified_cgroup_hierarchy=1")  # fmt: skip


def _runtime_dir(account: Account) -> Iterator[Finding]:
    why = "sockets and podman's state are kept there until the logout"
    command = f"sudo loginctl enable-linger {account.name}"
    if not account.runtime_dir:
        yield warn("XDG_RUNTIME_DIR is not set", f"{why}; `su` and `sudo` do not set it", command)
    elif not account.runtime_dir_good:
        yield fail(f"XDG_RUNTIME_DIR={account.runtime_dir} is not a folder of yours", why, command)


def _lingering(account: Account) -> Iterator[Finding]:
    if account.lingering is False:
        yield warn("servers in the background end when you log out",
                   "systemd ends what a user has started at the last logout, also containers of `serve -d`",
                   f"loginctl enable-linger {account.name}")  # fmt: skip
