"""``info``, and facts that can be passed on: nothing in them tells who and where, and they decide the same."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import HOSTS, Recorder, Result, error_text, files_below, run_cli
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ramalama_like import settings
from ramalama_like.accelerator import choose_accelerator
from ramalama_like.anonymous import anonymize
from ramalama_like.errors import ValueProblem
from ramalama_like.facts import (
    CdiSpec,
    DeviceNode,
    EngineFacts,
    Gpu,
    HostFacts,
    KfdNode,
    Private,
    facts_from_plain,
    facts_to_plain,
)
from ramalama_like.options import BACKENDS, Setting
from ramalama_like.probe import probe
from ramalama_like.probe.private import probe_private
from ramalama_like.value import replace, to_plain

Install = Callable[..., Recorder]
ENGINES = (
    EngineFacts("podman", "podman", (5, 4, 2), rootless=True, oci_runtime="crun"),
    EngineFacts("docker", "docker", (28, 0, 0), cdi_directories=("/etc/cdi", "/var/run/cdi")),
)
PRIVATE = Private(("marvin", "heart-of-gold", "bob"), ("/srv/people/marvin",))
UUIDS = [f"{letter * 8}-1111-2222-3333-{letter * 11}4" for letter in "0abF9"]
SERIALS = ["1324521012345", "PN9876543210A"]
SECRETS = [*PRIVATE.names, *PRIVATE.homes, *UUIDS, *SERIALS, "zaphod"]
MARKED = ["GPU-" + UUIDS[0], "MIG-" + UUIDS[1], UUIDS[2], "MIG-GPU-" + UUIDS[3] + "/1/0", "GPU-0123456789abcdef",
          "marvin", "Marvin's card", "x heart-of-gold.local", "/home/zaphod/x", "/Users/zaphod", "SN: 1324521012345",
          "PN9876543210A", "/srv/people/marvin/cdi", "6.1.0-marvin", "bob", "a bob b"]  # fmt: skip
TEXT = st.sampled_from(["", "amd", "nvidia", "amdgpu", "gfx1150", "0", "all", "NVIDIA GeForce RTX 4090", *MARKED])
UUID = st.sampled_from(["", *("GPU-" + uuid for uuid in UUIDS)])
NODE = st.sampled_from(["/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/kfd", "/dev/nvidia0", "/dev/nvidiactl"])
MAYBE = st.none() | st.integers(0, 3)
GPUS = st.builds(
    Gpu, vendor=st.sampled_from(["amd", "nvidia", "intel"]) | TEXT, pci_address=st.sampled_from(["0000:01:00.0", ""]),
    driver=st.sampled_from(["amdgpu", "nvidia", "i915", "nouveau", ""]) | TEXT, name=TEXT, render_node=NODE | TEXT,
    gfx=st.sampled_from(["gfx1100", "gfx942", ""]) | TEXT, integrated=st.none() | st.booleans(), hip_index=MAYBE,
    nvidia_index=MAYBE, nvidia_uuid=UUID | TEXT, integrated_why=TEXT, vram_bytes=MAYBE, pci_device=TEXT, card_node=TEXT,
)  # fmt: skip
TEXTS = st.lists(TEXT | UUID, max_size=3).map(tuple)
FACTS = st.builds(
    HostFacts, root=TEXT, arch=st.sampled_from(["amd64", "arm64", ""]) | TEXT, kernel=TEXT, in_container=TEXT,
    gpus=st.lists(GPUS, max_size=3).map(tuple), nvidia_driver=st.sampled_from(["570.86.15", "470.1", ""]) | TEXT,
    cdi=st.lists(st.builds(CdiSpec, kind=st.just("nvidia.com/gpu") | TEXT, names=TEXTS,
                           file=st.sampled_from(["/etc/cdi/nvidia.yaml", "/etc/cdi/marvin.yaml", "/run/cdi/bob.json"]),
                           device_nodes=TEXTS, missing=st.just(()) | TEXTS), max_size=2).map(tuple),
    kfd_nodes=st.lists(st.builds(KfdNode, number=st.integers(0, 3), hip_index=st.integers(0, 3), gfx=TEXT,
                                 unique_id=st.just("GPU-0123456789abcdef") | TEXT), max_size=2).map(tuple),
    nodes=st.lists(st.builds(DeviceNode, path=NODE | TEXT, accessible=st.none() | st.booleans(), group=MAYBE,
                             through_group=st.booleans()), max_size=3).map(tuple),
    notes=st.lists(TEXT.map(lambda text: f"/etc/cdi/{text} is malformed: {text}") | TEXT, max_size=2).map(tuple),
)  # fmt: skip


def secrets_in(facts: HostFacts) -> list[str]:
    text = json.dumps(facts_to_plain(facts), ensure_ascii=False).lower()
    return [secret for secret in SECRETS if re.search(rf"(?<![a-z0-9]){re.escape(secret.lower())}(?![a-z0-9])", text)]


def decisions(facts: HostFacts, environment: dict[str, str] | None = None) -> list[object]:
    """What is chosen for every backend with each engine, or why nothing is."""
    found: list[object] = []
    for engine in ENGINES:
        for backend in BACKENDS:
            try:
                found.append(to_plain(choose_accelerator(
                    backend=Setting(backend), devices=Setting(()), keep_groups=Setting(False), gpus=Setting(()),
                    facts=facts, engine=engine, family="ramalama", environment=environment or {},
                )))  # fmt: skip
            except ValueProblem as problem:
                found.append((problem.message, problem.hint))
    return found


def renaming(before: object, after: object, names: dict[str, str]) -> None:
    """Note what each text became; the same one always has to become the same."""
    if isinstance(before, str) and isinstance(after, str):
        assert names.setdefault(before, after) == after
    elif isinstance(before, dict) and isinstance(after, dict):
        assert list(before) == list(after)
        for key in before:
            if key not in ("root", "kernel", "notes"):
                renaming(before[key], after[key], names)
    elif isinstance(before, list) and isinstance(after, list):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            renaming(one, other, names)
    else:
        assert before == after


@given(FACTS)
@hypothesis_settings(max_examples=150)
@example(
    HostFacts(
        gpus=(Gpu("nvidia", nvidia_uuid="GPU-" + UUIDS[1], nvidia_index=0, driver="nvidia"),),
        cdi=(CdiSpec("nvidia.com/gpu", ("GPU-" + UUIDS[1].upper(), "GPU-" + UUIDS[1]), "/etc/cdi/marvin"),),
    )
)
def test_nothing_tells_who_and_where_and_the_decisions_are_the_same(facts: HostFacts) -> None:
    clean = anonymize(facts, PRIVATE)
    assert secrets_in(clean) == []
    assert (clean.root, clean.notes == (), len(clean.gpus)) == ("", facts.notes == (), len(facts.gpus))
    # Texts are renamed one to one, and nothing else changes.
    names: dict[str, str] = {}
    renaming(facts_to_plain(facts), facts_to_plain(clean), names)
    assert len(set(names.values())) == len(names)
    before, after = decisions(facts), decisions(clean)
    sketch = [shape(one, names) for one in before]
    assert sketch == [shape(other, {}) for other in after]


def shape(decision: object, names: dict[str, str]) -> object:
    """What of a decision does not lie in the wording: what is passed, in its new names."""
    if isinstance(decision, tuple):
        return "refused"
    assert isinstance(decision, dict)
    chosen = [(each["backend"], each["chosen"]) for each in decision["candidates"]]
    cdi = [f"{kind}={names.get(name, name)}" for kind, _, name in
           (device.partition("=") for device in decision["cdi_devices"])]  # fmt: skip
    nodes = [names.get(node, node) for node in decision["device_nodes"]]
    gpus = decision["docker_gpus"].removeprefix("device=").split(",")
    return (decision["backend"], chosen, nodes, cdi, [names.get(each, each) for each in gpus], decision["groups"],
            decision["env"], decision["keep_groups"], len(decision["warnings"]))  # fmt: skip


@pytest.mark.parametrize("host", sorted(path.name for path in HOSTS.iterdir() if path.is_dir()))
def test_recorded_machines_decide_the_same_in_the_same_words(host: str) -> None:
    facts = probe(str(HOSTS / host))
    clean = anonymize(facts, PRIVATE)
    text = json.dumps(decisions(facts))
    names: dict[str, str] = {}
    renaming(facts_to_plain(facts), facts_to_plain(clean), names)
    for before, after in names.items():
        if before != after:
            assert re.search("[0-9a-f]{8}", before), "nothing but unique ids changes in these"
            text = text.replace(before, after)
    assert json.loads(text) == json.loads(json.dumps(decisions(clean)))


def test_cards_can_be_chosen_by_their_new_names() -> None:
    clean = anonymize(probe(str(HOSTS / "two-rtx-3090")), PRIVATE)
    for card in clean.gpus:
        for name in (card.nvidia_uuid, card.nvidia_uuid[:14]):
            first = decisions(clean, {"CUDA_VISIBLE_DEVICES": name})[0]
            assert isinstance(first, dict)
            assert (first["backend"], len(first["cdi_devices"])) == ("cuda", 1)
    assert all(card.nvidia_uuid in clean.cdi[0].names for card in clean.gpus)
    amd = anonymize(probe(str(HOSTS / "two-mi300x")), PRIVATE)
    assert all(re.fullmatch("GPU-[0-9a-f]{16}|", node.unique_id) for node in amd.kfd_nodes)
    for node in amd.kfd_nodes:
        if node.unique_id:
            chosen = decisions(amd, {"ROCR_VISIBLE_DEVICES": node.unique_id})[BACKENDS.index("rocm")]
            assert isinstance(chosen, dict)


def test_words_that_are_ours_stay() -> None:
    facts = HostFacts(kernel="6.11.0-29-generic", gpus=(Gpu("amd", driver="amdgpu", name="AMD Radeon PRO W7900"),),
                      notes=("/sys/class/drm/card0/device/vendor does not hold a number",))  # fmt: skip
    clean = anonymize(facts, Private(("amd", "amdgpu", "GPU", "linux"), ("/",)))
    assert clean == replace(facts, root="", kernel="6.11.0")


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("/etc/cdi/marvin.yaml is malformed: line 3: marvin", "/etc/cdi/… is malformed"),
        ("/proc/meminfo cannot be read: Permission denied", "/proc/meminfo cannot be read"),
        ("/home/marvin/x is larger than 5 bytes", "a file is larger than"),
        ("/sys/x tells of marvin", "/sys/x could not be used"),
        ("/sys/fs/cgroup/user.slice/marvin.scope/cpu.max cannot be read: x", "/sys/fs/cgroup/… cannot be read"),
    ],
)
def test_notes_keep_the_place_and_the_fault(note: str, expected: str) -> None:
    assert anonymize(HostFacts(notes=(note,)), PRIVATE).notes == (expected,)


def test_what_only_people_have_named_gets_a_number() -> None:
    uuid = "5d6e1a2b-0c4f-4a7b-9c61-5e2f7a908b13"
    facts = HostFacts(
        podman_machine="acme-vm",
        gpus=(Gpu("nvidia", nvidia_uuid=f"GPU-{uuid}", render_node="/srv/acme/renderD128"),),
        kfd_nodes=(KfdNode(1, 0, unique_id="GPU-00ab12cd34ef5678"),),
        cdi=(
            CdiSpec("nvidia.com/gpu", ("0", "gpu0", "mig1:0", "all", "acme-7", f"x{uuid}y", f"MIG-{uuid}"),
                    "/etc/cdi/acme.yaml", ("/dev/nvidia0", "/dev/mapper/acme-root", "/mnt/acme/nvidia1"),
                    ("/mnt/acme/nvidia1",)),
            CdiSpec("acme.example/gpu", (uuid.upper(),), "/run/cdi/nvidia-ctk.json"),
        ),
        nodes=(DeviceNode("/srv/acme/renderD128"), DeviceNode("/dev/dri/by-path/pci-0000:c1:00.0-render")),
    )  # fmt: skip
    clean = anonymize(facts, Private((), ()))
    number = "00000001-0000-0000-0000-000000facade"
    assert clean == HostFacts(
        root="", podman_machine="provider-8",
        gpus=(Gpu("nvidia", nvidia_uuid=f"GPU-{number}", render_node="/other/5"),),
        kfd_nodes=(KfdNode(1, 0, unique_id="GPU-0000000200facade"),),
        cdi=(
            CdiSpec("nvidia.com/gpu", ("0", "gpu0", "mig1:0", "all", "device-1", "device-2", f"MIG-{number}"),
                    "/etc/cdi/spec-3.yaml", ("/dev/nvidia0", "/dev/other-6", "/other/7"), ("/other/7",)),
            CdiSpec("vendor.example/kind-4", (number.upper(),), "/run/cdi/nvidia-ctk.json"),
        ),
        nodes=(DeviceNode("/other/5"), DeviceNode("/dev/dri/by-path/pci-0000:c1:00.0-render")),
    )  # fmt: skip
    assert anonymize(clean, Private((), ())) == clean


def test_who_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hostname").write_text("deep.thought.example\n")
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/hostname").write_text("magrathea\n")
    (tmp_path / "proc/sys/kernel/domainname").write_text("(none)\n")
    (tmp_path / "etc" / "passwd").write_text(
        "root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/x\nford:x:1000:1000:Ford:/space/ford:/bin/sh\nnobody:x:65534:1::/:x\n"
    )
    monkeypatch.setenv("USER", "trillian")
    found = probe_private(str(tmp_path), "/space/trillian")
    assert {"deep", "thought.example", "magrathea", "Ford", "ford", "trillian"} <= set(found.names)
    assert not {"root", "daemon", "nobody", "", "(none)"} & set(found.names)
    assert {"/space/ford", "/space/trillian"} <= set(found.homes)


# The command.


@pytest.fixture
def marked(world: Path) -> Path:
    """A machine that has names in it."""
    folder = world / "machine"
    for path, text in {
        "etc/hostname": "heartofgold\n", "etc/passwd": "marvin:x:1000:1000::/home/marvin:/bin/sh\n",
        "proc/sys/kernel/osrelease": "6.1.0-heartofgold\n", "proc/sys/kernel/arch": "x86_64\n",
        "etc/cdi/marvin.yaml": "kind: nvidia.com/gpu\ndevices: []\n", "etc/cdi/zaphod.json": "{",
    }.items():  # fmt: skip
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_facts_are_written_at_once_and_read_back(marked: Path, world: Path, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    target = world / "home" / "facts.json"
    done = run_cli("info", "--host-facts", str(marked), "--host-facts-out", str(target))
    assert done == Result(0, "", f"Written to {target}: without serial numbers and names, so it can be passed on\n")
    assert [path for path in files_below(world / "home") if "facts" in path] == [str(target)]
    text = target.read_text()
    assert not [word for word in ("marvin", "heartofgold", "zaphod", str(world)) if word in text]
    facts = facts_from_plain(json.loads(text))
    assert (facts.kernel, facts.arch, facts.cdi[0].file) == ("6.1.0", "amd64", "/etc/cdi/spec-1.yaml")
    printed = run_cli("info", "--host-facts", str(marked), "--host-facts-out", "-")
    assert printed == Result(0, text, "")
    again = run_cli("info", "--host-facts", str(target), "--host-facts-out", "-")
    assert json.loads(again.out) == json.loads(text)


@pytest.mark.parametrize("host", sorted(path.name for path in HOSTS.iterdir() if path.is_dir()))
def test_a_folder_and_its_file_lead_to_the_same_line(host: str, world: Path, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    target = str(world / "facts.json")
    assert run_cli("info", "--host-facts", str(HOSTS / host), "--host-facts-out", target).code == 0
    for words in (["--dryrun", "run", "demo"], ["--dryrun", "serve", "demo"], ["--dryrun", "bench", "demo"],
                  ["doctor", "--json"]):  # fmt: skip
        folder, file = (run_cli("--host-facts", path, *words) for path in (str(HOSTS / host), target))
        assert (folder.code, without_ids(folder.out)) == (file.code, without_ids(file.out))


def without_ids(text: str) -> str:
    return re.sub("GPU-[0-9a-f-]{16,}", "GPU-…", text)


def test_this_machine_s_own_facts_tell_no_names(world: Path, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    done = run_cli("info", "--host-facts-out", "-")
    private = probe_private("/", settings.home_dir())
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"', done.out)
    assert not [name for name in private.names if len(name) > 3 and name in strings]
    assert not [home for home in private.homes if any(home in text for text in strings)]


def test_a_file_that_cannot_be_written(world: Path, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    target = f"{world}/nowhere/facts.json"
    assert run_cli("info", "--host-facts-out", target) == Result(
        22, "", error_text(f"--host-facts-out: {target}: No such file or directory",
                           "name a file in a folder that you may write"))  # fmt: skip
    (world / "folder").mkdir()
    assert run_cli("info", "--host-facts-out", str(world / "folder")).code == 22
    assert os.listdir(world / "folder") == []
    assert [name for name in os.listdir(world) if name.endswith(".part")] == []


def facts_out(target: str) -> Result:
    return run_cli("info", "--host-facts", str(HOSTS / "rtx-4090"), "--host-facts-out", target)


def test_what_is_no_file_is_written_into_and_stays(world: Path, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    text = facts_out("-").out
    # A link, also one to nothing, and one through a folder that is a link.
    (world / "real").mkdir()
    (world / "folder").symlink_to("real")
    for name, before in (("old.json", "old"), ("new.json", None)):
        if before:
            (world / "real" / name).write_text(before)
        (world / f"link-{name}").symlink_to(f"folder/{name}")
        assert facts_out(str(world / f"link-{name}")).code == 0
        assert ((world / f"link-{name}").is_symlink(), (world / "real" / name).read_text()) == (True, text)
    pipe = world / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert facts_out(str(pipe)).code == 0
    assert os.read(reader, 1 << 20).decode() == text
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    os.close(reader)
    null = os.stat(os.devnull)
    (world / "null").symlink_to(os.devnull)
    for path in (os.devnull, str(world / "null")):
        assert facts_out(path).code == 0
    assert os.stat(os.devnull).st_rdev == null.st_rdev
    (world / "loop").symlink_to("loop")
    assert facts_out(str(world / "loop")).code == 22


def test_a_descriptor_of_the_shell_is_written_into(world: Path, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    text = facts_out("-").out
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        line = ("info", "--host-facts", str(HOSTS / "rtx-4090"), "--host-facts-out", name)
        with (world / "out").open("w") as out:
            done = subprocess.run([sys.executable, "-m", "ramalama_like", *line], stdout=out, stderr=subprocess.PIPE,
                                  text=True, check=True)  # fmt: skip
        assert done.stderr.startswith("Written to ")
        assert (world / "out").read_text() == text


def test_a_full_disk_loses_nothing(world: Path, fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine("podman-5.4")
    target = world / "facts.json"
    target.write_text("old")
    target.chmod(0o640)
    real_write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, data[:100]))
        assert facts_out(str(target)).code == 0  # written in pieces
        whole = target.read_text()
        assert (json.loads(whole)["arch"], target.stat().st_mode & 0o777) == ("amd64", 0o640)

        def fills(descriptor: int, data: bytes) -> int:
            if os.fstat(descriptor).st_size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real_write(descriptor, data[:100])

        patch.setattr(os, "write", fills)
        full = facts_out(str(target))
    assert (full.code, full.err.splitlines()[0]) == (
        22, f"Error: --host-facts-out: {target}: No space left on device"
    )  # fmt: skip
    assert target.read_text() == whole
    assert [name for name in os.listdir(world) if name.endswith(".part")] == []


def test_a_file_that_is_mounted_by_itself_is_overwritten(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramalama_like.files import write_file

    def busy(*_: str) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(os, "replace", busy)
    target = world / "facts.json"
    for text in (b"old and longer", b"new", b"new and longer still"):
        target.write_bytes(text if not target.exists() else target.read_bytes())
        write_file(str(target), text)
        assert target.read_bytes() == text
    assert os.listdir(world).count("facts.json") == 1


def test_what_is_no_file_is_not_waited_for(world: Path) -> None:
    from ramalama_like.files import read_file

    os.mkfifo(world / "pipe")
    for path in (world / "pipe", Path("/dev/zero"), world):
        with pytest.raises(OSError):
            read_file(str(path), 10)
    assert read_file(os.devnull, 10) == b""
    (world / "file").write_bytes(b"0123456789")
    assert read_file(str(world / "file"), 10) == b"0123456789"
    with pytest.raises(OSError, match="larger than 9"):
        read_file(str(world / "file"), 9)


@pytest.mark.parametrize("words", [["info"], ["doctor"], ["--dryrun", "serve", "demo"], ["explain", "serve", "demo"],
                                   ["--dryrun", "ps"]], ids=" ".join)  # fmt: skip
def test_a_folder_that_stands_for_no_machine(words: list[str], world: Path, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    for folder in ("/etc", str(world)):
        assert run_cli("--host-facts", folder, *words) == Result(
            22, "", error_text(f"host facts: {folder} holds no proc, sys or dev", "give a folder that stands for /")
        )  # fmt: skip


def test_a_dry_run_writes_nothing(world: Path, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    target = f"{world}/facts.json"
    assert run_cli("--dryrun", "info", "--host-facts-out", target) == Result(
        0, "", f"Note: the facts would be written to {target}\n"
    )
    assert not os.path.exists(target)


# info itself.

DIALECT_KEYS = {"Accelerator", "Config", "Engine", "Image", "RagImage", "Runtimes", "Selinux", "Shortnames", "Store",
                "ToolsImage", "UseContainer", "Version"}  # fmt: skip


def info(*words: str) -> dict[str, object]:
    result = run_cli("info", *words)
    assert (result.code, result.err) == (0, "")
    found: dict[str, object] = json.loads(result.out)
    assert list(found) == sorted(found)
    return found


def test_the_keys_of_the_dialect_and_ours(fake_engine: Install) -> None:
    fake_engine("podman-5.4", info='{"host": {"arch": "amd64"}}')
    found = info()
    assert set(found) == DIALECT_KEYS | {"Accelerators", "Cards", "HostFacts", "Images", "Tables"}
    assert found["Engine"] == {"Name": "podman", "Version": "5.4.2", "Why": "it is on PATH",
                               "Info": {"host": {"arch": "amd64"}}}  # fmt: skip


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [({"asked": "fail"}, "podman --version failed with exit code 125: podman: cannot find its own libraries"),
     ({"info": "fail: no permission"}, "no permission"), ({"info": "[]"}, "podman info printed something else than its "
      "state"), ({"info": "{"}, "podman info printed something else than JSON")],
)  # fmt: skip
def test_a_bad_engine_is_only_told_of(behaviour: dict[str, str], says: str, fake_engine: Install) -> None:
    fake_engine("podman-5.4", **behaviour)
    engine = info()["Engine"]
    assert isinstance(engine, dict)
    assert engine["Info"] == says


def test_no_engine_has_no_info(world: Path, fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    assert info("--nocontainer")["Engine"] == {"Name": None, "Why": "containers were declined"}
    monkeypatch.setenv("PATH", str(world))
    assert info("--engine", "docker")["Engine"] == {"Name": "docker", "Info": "docker is not on PATH"}


def test_a_variable_that_names_no_card_is_only_told_of(fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine("podman-5.4")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    found = info("--host-facts", str(HOSTS / "rtx-4090"))
    assert isinstance(found["Accelerators"], dict)
    assert found["Accelerators"]["problem"] == "CUDA_VISIBLE_DEVICES=7 names none of the cards of this machine"
    assert (found["Accelerator"], found["Images"]) == ("none", {})


def test_what_files_say_is_told(world: Path, fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine("podman-5.4")
    file = world / "ramalama.conf"
    file.write_text('[ramalama]\nengine = "podman"\napi_key = "secret"\n[ramalama.runtimes.llama_cpp]\nngl = 7\n')
    monkeypatch.setenv("RAMALAMA_CONFIG", str(file))
    monkeypatch.setenv("RAMALAMA_PORT", "1234")
    assert info()["Config"] == {"settings": {"config_files": [str(file)]}, "engine": "podman",
                                "runtimes": {"llama_cpp": {"ngl": "7"}}}  # fmt: skip


@pytest.mark.parametrize("command", [["ps"], ["logs", "x"], ["stop", "x"], ["run", "demo"], ["serve", "demo"]])
def test_another_machine_is_never_touched(command: list[str], fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4")
    facts = ("--host-facts", str(HOSTS / "no-gpu"))
    refused = run_cli(*facts, *command)
    assert (refused.code, refused.out) == (22, "")
    assert refused.err.endswith("Hint: add --dryrun to see the commands\n")
    shown = run_cli("--dryrun", *facts, *command)
    assert (shown.code, shown.out[:6]) == (0, "podman")
    assert recorder.take() == []


def test_all_containers_of_another_machine_are_not_known(fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    assert run_cli("--dryrun", "--host-facts", str(HOSTS / "no-gpu"), "stop", "--all").code == 22
