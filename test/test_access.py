"""Who may open what is passed: podman's OCI runtime from its files, keep-groups on command lines, SELinux."""

import json
import shutil

import pytest
from harness import HOSTS, run_cli
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.facts import facts_to_plain
from ramalama_like.probe import oci_runtime as module
from ramalama_like.probe import probe
from ramalama_like.value import replace


@pytest.fixture
def files(world, monkeypatch):
    """A folder in place of /, for podman's own configuration files."""
    for name in ("SYSTEM", "ADMINISTRATOR"):
        monkeypatch.setattr(module, name, f"{world}{getattr(module, name)}")

    def write(path, text):
        target = world / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        return str(target)

    return write


def runtime(world, installed=("crun", "runc"), **variables):
    return module.probe_oci_runtime(
        lambda name: variables.get(name, ""), str(world / "home"), lambda name: name if name in installed else ""
    )


def named(name):
    return f'[containers]\nlog_size_max = 1\n[engine]\nruntime = "{name}"\n'


def test_the_first_installed_runtime_where_nothing_is_configured(world, files):
    assert runtime(world) == "crun"
    assert runtime(world, ("runc",)) == "runc"
    assert runtime(world, ()) == ""


def test_files_in_podmans_order(world, files):
    files("/usr/share/containers/containers.conf", named("a"))
    assert runtime(world) == "a"
    files("/etc/containers/containers.conf", named("b"))
    assert runtime(world) == "b"
    files("/etc/containers/containers.conf.d/10.conf", named("c"))
    files("/etc/containers/containers.conf.d/20.conf", named("d"))
    files("/etc/containers/containers.conf.d/30.txt", named("e"))
    assert runtime(world) == "d"
    files("/home/.config/containers/containers.conf", named("/opt/runc"))
    assert runtime(world) == "/opt/runc"
    other = files("/other.conf", named("f"))
    assert runtime(world, CONTAINERS_CONF=other) == "f"
    assert runtime(world, CONTAINERS_CONF_OVERRIDE=other) == "f"
    files("/xdg/containers/containers.conf", named("g"))
    assert runtime(world, XDG_CONFIG_HOME=str(world / "xdg")) == "g"


@given(
    st.text(max_size=60)
    | st.sampled_from(["runtime", "[engine]\nruntime=1", "engine=1\nruntime", "[engine]\nruntime=["])
)
def test_a_file_that_says_nothing_sensible_is_passed_over(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("conf") / "containers.conf"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    found = module.probe_oci_runtime(lambda name: str(path) if name == "CONTAINERS_CONF" else "", "/x", lambda _: "")
    assert found == ""


def test_keep_groups_on_the_command_line(world, fake_engine, tiny_gguf):
    fake_engine("podman-5.4")
    facts = probe(str(HOSTS / "radeon-890m"))
    nodes = tuple(
        replace(node, accessible=True, group=989, through_group=node.path == "/dev/dri/renderD128")
        for node in facts.nodes
    )
    file = world / "facts.json"
    file.write_text(json.dumps(facts_to_plain(replace(facts, nodes=nodes))), "utf-8")

    def line(*options):
        found = run_cli("--dryrun", "--host-facts", str(file), "serve", *options, str(tiny_gguf))
        assert found.code == 0, found.err
        return found

    assert "--group-add keep-groups" in line().out
    without = line("--oci-runtime", "runc")
    assert "keep-groups" not in without.out
    assert "/dev/dri/renderD128 can be used only as member of the group 989, which runc cannot keep" in without.err
    assert "--group-add keep-groups" in line("--oci-runtime", "runc", "--keep-groups").out
    explained = run_cli("--host-facts", str(file), "explain", "serve", str(tiny_gguf)).out
    assert (
        "device /dev/dri/renderD128: passed\n"
        "    why: this user may open it as member of the group 989, which is kept\n" in explained
    )


@pytest.mark.parametrize(
    ("host", "backend", "options", "warning"),
    [
        ("radeon-890m", "rocm", ("--selinux", "on"),
         "SELinux may keep the container from /dev/kfd: sudo setsebool -P container_use_devices 1"),
        ("rtx-4090", "cuda", ("--selinux", "on"),
         "SELinux may keep the container from nvidia.com/gpu: sudo setsebool -P container_use_xserver_devices 1"),
        ("radeon-890m", "vulkan", ("--selinux", "on"), ""),
        ("radeon-890m", "rocm", (), ""),
    ],
)  # fmt: skip
def test_selinux_is_told_of_where_it_counts(world, fake_engine, tiny_gguf, host, backend, options, warning):
    fake_engine("podman-5.4")
    folder = world / "host"
    shutil.copytree(HOSTS / host, folder, symlinks=True)
    (folder / "sys/fs/selinux").mkdir(parents=True)
    line = ("--host-facts", str(folder), "explain", "serve", "--backend", backend, *options, str(tiny_gguf))
    (folder / "sys/fs/selinux/enforce").write_text("1", "utf-8")
    assert probe(str(folder)).selinux == "enforcing"
    text = run_cli(*line).out
    label = "container_t" if options else "disabled"
    assert f"SELinux label: {label}\n" in text
    assert [row for row in text.splitlines() if "setsebool" in row] == ([f"warning: {warning}"] if warning else [])
    (folder / "sys/fs/selinux/enforce").write_text("0", "utf-8")
    assert probe(str(folder)).selinux == "permissive"
    assert "setsebool" not in run_cli(*line).out
    shutil.rmtree(folder / "sys/fs")
    assert probe(str(folder)).selinux == ""
    assert "SELinux" not in run_cli(*line).out
