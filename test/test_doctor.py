"""``doctor`` as people use it: with engines that answer, fail and hang, and with services that do."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from harness import HOSTS, Recorder, run_cli, run_program, snapshot

from ramalama_like import examine
from ramalama_like.cli.doctor import _as_text
from ramalama_like.examine.account import examine_account
from ramalama_like.examine.engine import examine_engine, examine_image
from ramalama_like.examine.network import examine_hub, examine_registry, registry_of
from ramalama_like.examine.system import (
    examine_groups,
    examine_provider,
    examine_proxies,
    examine_room,
    find_emulated,
    find_system,
    measure_available_memory,
)
from ramalama_like.facts import DeviceNode, EngineFacts, HostFacts
from ramalama_like.health import CHECKS, Finding
from ramalama_like.observed import Account, EngineState, ImageState, Reply, Room
from ramalama_like.probe.tree import Tree
from ramalama_like.value import replace
from ramalama_like.web import ask_service

Install = Callable[..., Recorder]
TOKEN = "hf_abcdefghijklmnop"


class Service:
    """A registry and a hub on this machine, which notes what it was asked."""

    def __init__(self, address: str) -> None:
        self.address = address  # 127.0.0.1:PORT
        self.status = 200
        self.pause_s = 0.0
        self.date = ""
        self.asked: list[tuple[str, str]] = []  # path and Authorization


@pytest.fixture
def service() -> Iterator[Service]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append((self.path, self.headers.get("Authorization", "")))
            time.sleep(found.pause_s)
            self.send_response_only(found.status)
            self.send_header("Date", found.date or formatdate(usegmt=True))
            self.send_header("Content-Length", "0")
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = Service(f"127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


INFO = json.dumps({
    "host": {"security": {"rootless": False}, "ociRuntime": {"name": "crun"}, "serviceIsRemote": False},
    "store": {"graphRoot": "/"}, "version": {"Version": "5.4.2"},
})  # fmt: skip
DOCKER_INFO = json.dumps({"ServerVersion": "28.2.2", "DefaultRuntime": "runc", "DockerRootDir": "/"})


def image(days: float = 3, arch: str = "amd64") -> str:
    made = time.strftime("%Y-%m-%dT%H:%M:%S.123456789Z", time.gmtime(time.time() - days * 86400))
    return json.dumps([{"Created": made, "Architecture": arch}])


def statuses(*words: str) -> dict[str, str]:
    """The worst status of each check."""
    order = ["skip", "ok", "warn", "fail"]
    result = run_cli("doctor", "--json", *words)
    worst: dict[str, str] = {}
    for row in json.loads(result.out):
        assert list(row) == ["check", "status", "what", "why", "command"]
        worst[row["check"]] = max(worst.get(row["check"], "skip"), row["status"], key=order.index)
    assert result.code == (1 if "fail" in worst.values() else 0)
    return worst


@pytest.mark.parametrize(("engine", "info"), [("podman-5.4", INFO), ("docker-28", DOCKER_INFO)])
def test_a_machine_with_all_that_is_needed(engine: str, info: str, fake_engine: Install, service: Service) -> None:
    recorder = fake_engine(engine, info=info, image=image())
    found = statuses("--image", f"{service.address}/x:1", "--tls-verify", "off" if recorder.kind == "podman" else "on")
    assert list(found) == list(CHECKS)
    assert {check for check, status in found.items() if status == "fail"} == set()
    assert (found["engine"], found["image"], found["registry"], found["clock"]) == ("ok", "ok", "ok", "ok")
    assert recorder.take() == [[recorder.kind, "image", "inspect", f"{service.address}/x:1"]]
    assert [path for path, _ in service.asked] == ["/v2/"]


def test_the_report_for_people(fake_engine: Install) -> None:
    fake_engine("podman-5.4", info=INFO, image="")
    result = run_cli("doctor", "--pull", "never", "--image", "quay.io/a/b:1")
    lines = result.out.splitlines()
    assert (result.code, result.err, max(map(len, lines)) <= 80) == (1, "", True)
    assert lines[0] == "ok    engine        podman 5.4.2 answers"
    at = lines.index("image: quay.io/a/b:1 is not here, and --pull never forbids to fetch it")
    assert lines[at - 1 : at + 3] == [
        "", "image: quay.io/a/b:1 is not here, and --pull never forbids to fetch it",
        "  nothing can be started without it", "  Run: podman pull quay.io/a/b:1",
    ]  # fmt: skip
    assert "\x1b" not in result.out


def test_colour_and_long_texts() -> None:
    text = _as_text([Finding("disk", "fail", "word " * 30, "why", "do it"), Finding("a", "ok", "x\x1b")], colored=True)
    assert text.splitlines()[0].startswith("\x1b[31mfail\x1b[0m  disk  word word")
    assert "\x1b[32mok  \x1b[0m  a     x\\x1b\n" in text


@pytest.mark.parametrize("info", ["fail: Cannot connect to the Docker daemon at unix:///x. Is it running?", "{"])
def test_an_engine_that_does_not_answer(info: str, fake_engine: Install) -> None:
    fake_engine("docker-28", info=info)
    found = statuses("--pull", "never")
    assert (found["engine"], found["version"]) == ("fail", "skip")


def test_an_engine_that_fails_its_first_question(fake_engine: Install) -> None:
    fake_engine("podman-5.4", asked="fail")
    found = statuses("--pull", "never")
    assert (found["engine"], found["accelerator"]) == ("fail", "ok")


def test_an_engine_that_hangs(fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "ENGINE_PATIENCE_S", 0.2)
    fake_engine("podman-5.4", info="hang")
    began = time.monotonic()
    assert statuses("--pull", "never")["engine"] == "fail"
    assert time.monotonic() - began < 3


def test_a_service_that_hangs_is_left_behind(fake_engine: Install, service: Service, monkeypatch: pytest.MonkeyPatch
                                             ) -> None:  # fmt: skip
    monkeypatch.setattr(examine, "NETWORK_PATIENCE_S", 0.2)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_ENDPOINT", f"http://{service.address}")
    service.pause_s = 2
    fake_engine("docker-28", info=DOCKER_INFO, image=image())
    began = time.monotonic()
    found = statuses("--image", f"{service.address}/x:1")
    assert (found["registry"], found["token"]) == ("warn", "warn")
    assert time.monotonic() - began < 2


def test_an_engine_that_is_missing(fake_engine: Install) -> None:
    fake_engine("podman-5.4", info=INFO)
    found = statuses("--engine", "docker", "--pull", "never")
    assert (found["engine"], found["version"], found["accelerator"]) == ("fail", "skip", "ok")


def test_a_variable_that_names_no_card(fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine("podman-5.4")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "9")
    result = run_cli("--host-facts", str(HOSTS / "rtx-4090"), "doctor", "--json")
    row = next(row for row in json.loads(result.out) if row["check"] == "accelerator")
    assert (result.code, row["status"]) == (1, "fail")
    assert row["what"] == "CUDA_VISIBLE_DEVICES=9 names none of the cards of this machine"


@pytest.mark.parametrize("status", [200, 401, 500])
def test_the_token(status: int, fake_engine: Install, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine("podman-5.4", info=INFO, image=image())
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_ENDPOINT", f"http://{service.address}/")
    service.status = status
    result = run_cli("doctor", "--json", "--pull", "never")
    row = next(row for row in json.loads(result.out) if row["check"] == "token")
    assert row["status"] == {200: "ok", 401: "fail", 500: "warn"}[status]
    assert service.asked == [("/api/whoami-v2", f"Bearer {TOKEN}")]
    assert TOKEN not in result.out + result.err


def test_where_the_token_is_from_and_when_it_is_not_sent(
    world: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://{service.address}")
    assert examine_hub(1) == (None, "", "")
    folder = world / "home" / ".cache" / "huggingface"
    folder.mkdir(parents=True)
    (folder / "token").write_text(f"{TOKEN}\n")
    reply, origin, problem = examine_hub(1)
    assert (reply and reply.status, origin, problem) == (200, f"{folder}/token", "")
    monkeypatch.setenv("HF_TOKEN", "two words")
    assert examine_hub(1) == (None, "$HF_TOKEN", "it holds characters that no token can have")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.example")
    assert examine_hub(1) == (None, "$HF_TOKEN", "http://hub.example would get it unencrypted")
    # A redirection is not followed: the token belongs to the hub alone.
    monkeypatch.setenv("HF_ENDPOINT", f"http://{service.address}")
    service.status = 302
    reply, _, _ = examine_hub(1)
    assert reply and reply.status == 302


def test_registries(service: Service) -> None:
    names = {"a": "docker.io", "a/b:1": "docker.io", "quay.io/a": "quay.io", "localhost/a": "", "h:5/a": "h:5"}
    assert {name: registry_of(name) for name in names} == names
    assert examine_registry("localhost/a", 1, "podman", verify=True) is None
    service.status, service.date = 401, "Tue, 15 Nov 1994 08:12:31 GMT"
    plain = Reply(service.address, 401, clock=784887151.0)
    assert examine_registry(f"{service.address}/a", 2, "docker", verify=True) == plain
    assert examine_registry(f"{service.address}/a", 2, "podman", verify=False) == plain
    strict = examine_registry(f"{service.address}/a", 2, "podman", verify=True)
    assert strict is not None and (strict.status, bool(strict.problem)) == (0, True)


def test_the_reason_why_nobody_answers_is_short() -> None:
    assert ask_service("http://127.0.0.1:1/", 1) == Reply("http://127.0.0.1:1/", problem="Connection refused")
    assert ask_service("http://\udcff/", 1).status == 0
    assert ask_service("http://127.0.0.1:99999/", 1).status == 0


def test_no_password_from_netrc(world: Path, service: Service) -> None:
    (world / "home" / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    ask_service(f"http://{service.address}/x", 1)
    assert service.asked == [("/x", "")]


def test_what_engines_tell(fake_engine: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    podman = EngineFacts("podman", "podman", (5, 4, 2), "5.4.2")
    fake_engine("podman-5.4", info=INFO, image=image(2, "arm64"))
    assert examine_engine(podman, 5) == EngineState(
        version="5.4.2", rootless=False, oci_runtime="crun", image_folder="/"
    )
    there = examine_image(podman, "x", 5)
    assert (there.present, there.arch, there.problem) == (True, "arm64", "")
    assert there.created is not None and abs(time.time() - 2 * 86400 - there.created) < 60
    for text, expected in {
        "": ImageState(present=False),
        "[]": ImageState(present=False, problem="podman image inspect printed something else than an image"),
        "[{}]": ImageState(present=False, problem="podman image inspect printed something else than an image"),
        '[{"Created": "1980-01-01T00:00:00Z"}]': ImageState(present=True),
        '[{"Created": "soon", "Architecture": 5}]': ImageState(present=True),
    }.items():
        monkeypatch.setenv("FAKE_IMAGE", text)
        assert examine_image(podman, "x", 5) == expected
    for text in ("[]", "{", '{"ServerErrors": ["x"]}', "\udc80"):
        monkeypatch.setenv("FAKE_INFO", text)
        assert examine_engine(podman, 5).problem != ""
    monkeypatch.setenv("FAKE_INFO", '{"host": [], "store": 5, "version": null}')
    assert examine_engine(podman, 5) == EngineState(rootless=False)


def tree(folder: Path, **files: str) -> Tree:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dash_", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tree(str(folder))


def test_the_account(tmp_path: Path, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = os.geteuid()
    monkeypatch.setenv("PATH", "/nowhere")
    base = tree(tmp_path, etc__passwd=f"x\nalice:x:{number}:5::/home/alice:/bin/sh\n")
    run = str(world / "run")
    assert examine_account(base) == Account("alice", cgroups="v1", runtime_dir=run, runtime_dir_good=True)
    full = tree(tmp_path, etc__subuid=f"bob:1:5\nalice:100000:65536\n{number}:9:4\nalice:x:y\nalice:1",
                etc__subgid="alice:100000:70000")  # fmt: skip
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("cpu")
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/proc/nothing")
    assert examine_account(full) == Account("alice", 65540, 70000, cgroups="v2", runtime_dir="/proc/nothing",
                                            lingering=False)  # fmt: skip
    (tmp_path / "var/lib/systemd/linger").mkdir(parents=True)
    (tmp_path / "var/lib/systemd/linger/alice").touch()
    assert examine_account(full).lingering is True


def test_the_rest_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (examine_room(f"{tmp_path}/a/b/c").free_bytes or 0) > 0
    assert examine_room("").folder == ""
    facts = HostFacts(nodes=(DeviceNode("/dev/kfd", group=992), DeviceNode("/dev/dxg", group=7)))
    found = tree(
        tmp_path, proc__meminfo="MemTotal: 9 kB\nMemAvailable:   2048 kB\n", etc__group="a:x:1:\nrender:x:992:\nbad",
        etc__os_dash_release='NAME="x"\nID=ubuntu\nID_LIKE="debian"\n',
        proc__sys__fs__binfmt_misc__qemu_dash_aarch64="enabled\n", proc__sys__fs__binfmt_misc__qemu_dash_x="no",
    )  # fmt: skip
    assert measure_available_memory(found) == 2048 * 1024
    assert examine_groups(found, facts) == ((992, "render"),)
    assert find_system(found) == "ubuntu debian"
    assert find_emulated(found) == ("arm64",)
    empty = Tree(str(tmp_path / "etc"))
    assert (measure_available_memory(empty), find_system(empty), find_emulated(empty)) == (None, "", ())


def test_proxies_are_told_without_their_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        for spelling in (name, name.upper()):
            monkeypatch.delenv(spelling, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://me:secret@proxy:3128")
    monkeypatch.setenv("no_proxy", "localhost")
    assert examine_proxies() == (("HTTP_PROXY", "http://…@proxy:3128"), ("no_proxy", "localhost"))


def test_the_kind_of_podman_s_machine(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTAINERS_CONF", raising=False)
    monkeypatch.setenv("HOME", "/Users/a")
    assert examine_provider(tree(tmp_path)) == ""
    assert examine_provider(tree(tmp_path, etc__containers__containers=".")) == ""
    (tmp_path / "etc/containers/containers.conf").write_text('[machine]\nprovider = "applehv"\n')
    assert examine_provider(Tree(str(tmp_path))) == "applehv"
    own = tmp_path / "Users/a/.config/containers"
    own.mkdir(parents=True)
    for text, expected in (("provider = [", "applehv"), ("[machine]\nprovider = 5", "applehv"),
                           ('[machine]\nprovider = "libkrun"', "libkrun")):  # fmt: skip
        (own / "containers.conf").write_text(text)
        assert examine_provider(Tree(str(tmp_path))) == expected
    monkeypatch.setenv("CONTAINERS_MACHINE_PROVIDER", "qemu")
    assert examine_provider(Tree(str(tmp_path))) == "qemu"


def test_a_dry_run_shows_what_is_asked_and_asks_nothing(fake_engine: Install, world: Path) -> None:
    recorder = fake_engine("podman-5.4", info="hang")
    before = snapshot(world / "home", world / "run", world / "tmp")
    shown = run_cli("doctor", "--dryrun", "--image", "x")
    assert (shown.code, shown.out) == (
        0, "podman info --format json\npodman image inspect x:latest\n"
    )  # fmt: skip
    smoke = run_cli("doctor", "--dryrun", "--smoke").out.splitlines()
    assert smoke[2:] == run_cli("run", "demo", "--dryrun").out.splitlines()[:1]
    assert recorder.take() == []
    assert snapshot(world / "home", world / "run", world / "tmp") == before
    elsewhere = run_cli("doctor", "--dryrun", "--host-facts", str(HOSTS / "no-gpu"))
    assert (elsewhere.code, elsewhere.out) == (0, "")


def test_the_trial_run(fake_engine: Install) -> None:
    recorder = fake_engine("podman-5.4", info=INFO, image=image(), message="Error: no such device", code="126")
    result = run_cli("doctor", "--smoke", "--json", "--pull", "never")
    row = json.loads(result.out)[-1]
    assert (result.code, row["check"], row["status"]) == (1, "smoke", "fail")
    assert row["what"] == "the server ended with exit code 126: Error: no such device"
    assert [call[1] for call in recorder.take_runs()] == ["run"]
    fake_engine_fails = run_cli("doctor", "--smoke", "--json", "--engine", "docker", "--pull", "never")
    assert json.loads(fake_engine_fails.out)[-1]["what"] == "not run: repair the above first"
    elsewhere = run_cli("doctor", "--smoke", "--json", "--host-facts", str(HOSTS / "no-gpu"))
    assert (elsewhere.code, json.loads(elsewhere.out)[-1]["what"]) == (0, "not run: another machine")


def test_the_trial_run_with_the_embedded_server() -> None:
    pytest.importorskip("xllamacpp")
    result = run_program("--nocontainer", "doctor", "--smoke", "--json", timeout_s=60)
    row = json.loads(result.out)[-1]
    assert (row["check"], row["status"]) == ("smoke", "ok"), result
    speed, _, rest = row["what"].partition(" ")
    # What follows depends on the machine that runs the tests.
    assert (float(speed) > 0, rest.startswith("tokens per second with CPU because ")) == (True, True)


@pytest.mark.parametrize("host", sorted(path.name for path in HOSTS.iterdir() if path.is_dir()))
def test_recorded_machines_have_all_that_their_facts_can_tell(host: str, fake_engine: Install) -> None:
    fake_engine("podman-5.4")
    found = statuses("--host-facts", str(HOSTS / host))
    assert (found["engine"], found["registry"], found["disk"]) == ("skip", "skip", "skip")
    assert found["memory"] == "ok"


def test_room_is_a_value() -> None:
    assert replace(Room("/x"), free_bytes=1) == Room("/x", 1)
