"""Plans as argument lists: exact, for each engine and version; what an engine cannot say is refused."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.errors import ValueProblem
from ramalama_like.plan import Container, Endpoint, Mount, Publish, Security
from ramalama_like.render.argv import render_run
from ramalama_like.render.shell import render_line

LOCKED = ["--security-opt=label=disable", "--cap-drop=all", "--security-opt=no-new-privileges", "--read-only"]
PODMAN, DOCKER, OLD_DOCKER = ("podman", (4, 3, 1)), ("docker", (28, 2, 2)), ("docker", (20, 10, 24))


def render(engine: tuple[str, tuple[int, ...]], **fields: object) -> list[str]:
    """The line up to the image, without what every line begins and ends with."""
    kind, version = engine
    container = Container(name="c", **fields)  # type: ignore[arg-type]
    words = list(render_run(container, kind, kind, version))
    assert words[:2] == [kind, "run"]
    return words[2:]


def test_the_plainest_container() -> None:
    assert render(PODMAN) == ["--rm", *LOCKED, "--pull", "missing", "--name", "c", "--init"]
    assert render(DOCKER) == ["--rm", *LOCKED, "--tmpfs", "/tmp", "--pull", "missing", "--name", "c", "--init"]


def test_everything_at_once_in_the_order_of_the_dialect() -> None:
    everything = {
        "labels": (("ai.ramalama", ""), ("ai.ramalama.model", "a b")), "network": "n", "oci_runtime": "crun",
        "publish": (Publish("127.0.0.1", 8081, 8080),), "mounts": (Mount("/m", "/mnt/models/m"),),
        "device_nodes": ("/dev/kfd", "/dev/dri/renderD128"), "cdi_devices": ("nvidia.com/gpu=0",), "keep_groups": True,
        "env": (("A", "1 2"), ("SECRET", None), ("E", "")), "pull": "newer", "tls_verify": False, "authfile": "/a",
        "detach": True, "remove": False, "engine_args": ("--cpus", "2"),
    }  # fmt: skip
    assert render(PODMAN, **everything) == [
        "--label", "ai.ramalama", "--label", "ai.ramalama.model=a b", "--network", "n", "--runtime", "crun", *LOCKED,
        "--pull", "newer", "--authfile", "/a", "--tls-verify=false", "--group-add", "keep-groups", "-d",
        "--device", "/dev/kfd", "--device", "/dev/dri/renderD128", "--device", "nvidia.com/gpu=0",
        "-p", "127.0.0.1:8081:8080", "--name", "c", "--env", "A=1 2", "--env", "SECRET", "--env", "E=", "--init",
        "--mount=type=bind,src=/m,destination=/mnt/models/m,ro", "--cpus", "2",
    ]  # fmt: skip


@pytest.mark.parametrize(("host", "shown"), [
    ("127.0.0.1", "127.0.0.1:1:2"), ("0.0.0.0", "0.0.0.0:1:2"), ("::1", "[::1]:1:2"), ("[::1]", "[::1]:1:2"),
    ("::", "[::]:1:2"), ("localhost", "localhost:1:2"),
])  # fmt: skip
def test_published_addresses(host: str, shown: str) -> None:
    words = render(PODMAN, publish=(Publish(host, 1, 2),))
    assert words[words.index("-p") + 1] == shown


@pytest.mark.parametrize(("host", "url"), [
    ("127.0.0.1", "http://127.0.0.1:9/v1"), ("0.0.0.0", "http://127.0.0.1:9/v1"), ("::", "http://[::1]:9/v1"),
    ("::1", "http://[::1]:9/v1"), ("example", "http://example:9/v1"),
])  # fmt: skip
def test_clients_connect_to_an_address_that_exists(host: str, url: str) -> None:
    assert Endpoint(host=host, port=9).url == url


def test_privileged_and_selinux() -> None:
    open_ = Security(privileged=True, drop_capabilities=False, no_new_privileges=False, read_only_root=False)
    assert render(PODMAN, security=open_)[:2] == ["--rm", "--privileged"]
    separate = render(PODMAN, security=Security(separate_labels=True), mounts=(Mount("/m", "/t"),))
    assert separate == ["--rm", *LOCKED[1:], "--pull", "missing", "--name", "c", "--init", "-v", "/m:/t:ro,z"]


@pytest.mark.parametrize(("source", "words"), [
    ("/a b", ["--mount=type=bind,src=/a b,destination=/t,ro"]),
    ("/a:b", ["--mount=type=bind,src=/a:b,destination=/t,ro"]),
    ("/a,b", ["-v", "/a,b:/t:ro"]),
    ('/a"b', ["-v", '/a"b:/t:ro']),
    ("/a\nb", ["-v", "/a\nb:/t:ro"]),
])  # fmt: skip
def test_mounts_take_the_syntax_that_can_hold_the_path(source: str, words: list[str]) -> None:
    for engine in (PODMAN, DOCKER):
        assert render(engine, mounts=(Mount(source, "/t"),))[-len(words) :] == words


def test_a_mount_that_can_be_written() -> None:
    assert render(PODMAN, mounts=(Mount("/a", "/t", read_only=False),))[-1] == "--mount=type=bind,src=/a,destination=/t"
    assert render(PODMAN, mounts=(Mount("/a,", "/t", read_only=False),))[-1] == "/a,:/t"


def test_a_path_that_no_syntax_can_hold_is_refused() -> None:
    with pytest.raises(ValueProblem, match="cannot mount this path"):
        render(PODMAN, mounts=(Mount("/a:b,c", "/t"),))
    with pytest.raises(ValueProblem, match="cannot mount this path"):
        render(DOCKER, mounts=(Mount("/a:b", "/t"),), security=Security(separate_labels=True))


@pytest.mark.parametrize(("pull", "podman", "docker"), [
    ("always", "always", "always"), ("missing", "missing", "missing"), ("never", "never", "never"),
    ("newer", "newer", "missing"),
])  # fmt: skip
def test_pull_policies(pull: str, podman: str, docker: str) -> None:
    for engine, spelled in ((PODMAN, podman), (DOCKER, docker), (OLD_DOCKER, docker)):
        words = render(engine, pull=pull)
        assert words[words.index("--pull") + 1] == spelled


def test_docker_gpus_are_quoted_as_csv() -> None:
    assert render(DOCKER, docker_gpus="all")[-5:-3] == ["--gpus", "all"]
    assert render(DOCKER, docker_gpus="device=1")[-5:-3] == ["--gpus", "device=1"]
    assert render(DOCKER, docker_gpus="device=0,1")[-5:-3] == ["--gpus", '"device=0,1"']


def test_docker_gets_the_numbers_of_groups_and_podman_does_not() -> None:
    assert render(DOCKER, groups=(44, 110))[-7:-3] == ["--group-add", "44", "--group-add", "110"]
    assert "--group-add" not in render(PODMAN, groups=(44, 110))


@pytest.mark.parametrize(("engine", "fields", "message"), [
    (DOCKER, {"keep_groups": True}, "docker has no --keep-groups"),
    (DOCKER, {"authfile": "/a"}, "docker has no --authfile"),
    (DOCKER, {"tls_verify": False}, "docker has no --tls-verify"),
    (OLD_DOCKER, {"cdi_devices": ("nvidia.com/gpu=all",)}, "docker before version 25.0 has no CDI devices"),
    (("podman", (4, 0)), {"cdi_devices": ("nvidia.com/gpu=all",)}, "podman before version 4.1 has no CDI devices"),
    (("docker", (19, 3)), {"host_gateway": True}, "docker before version 20.10 has no name for the host"),
])  # fmt: skip
def test_what_an_engine_lacks_is_refused_with_a_hint(
    engine: tuple[str, tuple[int, ...]], fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueProblem) as refused:
        render(engine, **fields)
    assert refused.value.message == message
    assert refused.value.hint


def test_the_host_by_name() -> None:
    assert render(DOCKER, host_gateway=True)[1:3] == ["--add-host", "host.docker.internal:host-gateway"]
    assert "--add-host" not in render(PODMAN, host_gateway=True)  # podman gives the name by itself


TEXTS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=())), min_size=1, max_size=5)
SHELLS = [shell for shell in ("sh", "dash", "bash") if shutil.which(shell)]


@given(TEXTS)
def test_shell_lines_come_back_as_they_were(argv: list[str]) -> None:
    """A real shell reads the line and hands on the very same bytes."""
    # A lone surrogate is a byte that was no UTF-8, if it is one of Python's; others no operating system can pass.
    argv = [text.encode("utf-8", "ignore").decode() for text in argv]
    for shell in SHELLS:
        line = render_line(["printf", r"%s\0", *argv])
        done = subprocess.run([shell, "-c", line], capture_output=True, check=True)
        assert done.stdout == b"".join(text.encode() + b"\0" for text in argv)
