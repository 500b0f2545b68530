"""Each check of doctor, judged on values alone: what it says when all is well, and when it is not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import HOSTS, ROOT

from ramalama_like import examine, pipeline, settings
from ramalama_like.data import load_table
from ramalama_like.facts import CdiSpec, DeviceNode, EngineFacts, Gpu, HostFacts
from ramalama_like.health import CHECKS, Case, Finding, Problem, check_all, install_command
from ramalama_like.observed import Account, EngineState, ImageState, Observed, Reply, Room
from ramalama_like.probe import probe
from ramalama_like.request import Given, Request
from ramalama_like.value import replace

PODMAN = EngineFacts("podman", "podman", (5, 4, 2), "5.4.2", rootless=False, oci_runtime="crun")
DOCKER = EngineFacts("docker", "docker", (28, 0, 0), "28.0.0", cdi_directories=("/etc/cdi",))
NOW = 1_800_000_000.0
DAY = 86400
GB = 10**9
REF = "quay.io/ramalama/ramalama:0.25"
HEALTHY = Observed(
    now=NOW, engine=EngineState(version="5.4.2", oci_runtime="crun", image_folder="/images"),
    image=ImageState(present=True, arch="amd64", created=NOW - 3 * DAY), registry=Reply("quay.io", 401, clock=NOW + 2),
    hub=None, store=Room("/store", 100 * GB), images=Room("/images", 100 * GB), memory_available_bytes=20 * GB,
    port_free=True, next_port=8080, system="debian",
)  # fmt: skip
ACCOUNT = Account("alice", 65536, 65536, helpers=True, cgroups="v2", runtime_dir="/run/user/1000",
                  runtime_dir_good=True, lingering=True)  # fmt: skip


def case(
    host: str | HostFacts = "no-gpu", engine: EngineFacts = PODMAN, options: dict[str, object] | None = None,
    observed: Observed | None = HEALTHY, **more: object,
) -> Case:  # fmt: skip
    """What is judged on a recorded host with the options that were given."""
    facts = probe(str(HOSTS / host)) if isinstance(host, str) else host
    given = {name: Given(text, f"--{name.replace('_', '-')}") for name, text in (options or {}).items()}
    loaded = settings.load_settings(Request("doctor", (), given))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "probe", lambda _: facts)
        plan = pipeline.decide(Request("run", ("demo",), given), engine=engine).plan
    seen: dict[str, object] = {"engine": engine, "plan": plan, "observed": observed, **more}
    return Case(settings=loaded.settings, facts=facts, **seen)  # type: ignore[arg-type]


def found(check: str, judged: Case) -> list[tuple[str, str, str, str]]:
    return [(each.status, each.what, each.why, each.command) for each in check_all(judged) if each.check == check]


def seen(**changes: object) -> Observed:
    return replace(HEALTHY, **changes)


def test_a_healthy_machine_has_nothing_to_tell() -> None:
    findings = check_all(case())
    assert list(dict.fromkeys(finding.check for finding in findings)) == list(CHECKS)
    assert {finding.status for finding in findings} == {"ok", "skip"}
    assert all(not finding.why and not finding.command for finding in findings)


def test_every_check_has_a_file_and_every_file_is_a_check() -> None:
    folder = Path(pipeline.__file__).parent / "health"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(CHECKS)


def test_the_document_tells_of_every_check_and_of_the_limits() -> None:
    text = (ROOT / "docs" / "doctor.md").read_text("utf-8")
    told = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert told == ["ok", "warn", "fail", "skip", *CHECKS, "smoke"]
    table = load_table("health")
    disk, memory = table["disk"], table["memory"]
    assert (
        f"{disk['store_enough_bytes'] / 1e9:.0f} GB for models, {disk['image_enough_bytes'] / 1e9:.0f} GB for" in text
    )
    assert f"{disk['store_least_bytes'] / 1e9} GB, or {disk['image_least_bytes'] / 1e9:.0f} GB for an image" in text
    assert f"less than {memory['enough_bytes'] / 1e9:.0f} GB in main" in text
    assert f"less than {memory['least_bytes'] / 1e9:.0f} GB free" in text
    assert f"older than {table['image']['old_days']} days" in text
    assert f"up after {examine.NETWORK_PATIENCE_S:g} seconds (services) or {examine.ENGINE_PATIENCE_S:g}" in " ".join(
        text.split()
    )


def test_another_machine_is_judged_by_its_facts_alone() -> None:
    findings = check_all(case("radeon-890m", observed=None))
    assert {f.check for f in findings if f.what == "not checked: another machine"} == set(CHECKS) - {
        "machine", "accelerator", "driver", "cdi", "architecture", "memory"
    }  # fmt: skip


# One row: the check, what is judged, and what is found.
NODE = DeviceNode("/dev/dri/renderD128", accessible=True, group=992, through_group=True)
ROOTLESS = replace(PODMAN, rootless=True)
CDI = CdiSpec("nvidia.com/gpu", ("0", "all"), "/etc/cdi/nvidia.yaml", ("/dev/nvidia0",))
REPAIR = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


def radeon(**node: object) -> HostFacts:
    facts = probe(str(HOSTS / "radeon-890m"))
    return replace(facts, nodes=tuple(replace(each, accessible=True, group=992, through_group=False, **node)
                                      if each.path == NODE.path else each for each in facts.nodes))  # fmt: skip


def rtx(*specs: CdiSpec) -> HostFacts:
    return replace(probe(str(HOSTS / "rtx-4090")), cdi=specs)


def rows() -> Iterator[tuple[str, Case, list[tuple[str, str, str, str]]]]:
    yield "engine", case(), [("ok", "podman 5.4.2 answers", "", "")]
    yield (
        "engine",
        case(observed=seen(engine=EngineState(remote=True))),
        [("ok", "podman 5.4.2 answers, in a machine or on a host of its own", "", "")],
    )
    yield "engine", case(engine=EngineFacts("none", why="neither podman nor docker is on PATH"),
                         observed=seen(engine=None, server="llama-server")), [
        ("warn", "no engine (neither podman nor docker is on PATH): llama-server runs models, without a container "
         "around it", "a container keeps a model's server away from your files and the network",
         "sudo apt-get install podman")
    ]  # fmt: skip
    yield "engine", case(options={"engine": "none"}, engine=EngineFacts("none", why="no engine was asked for"),
                         observed=seen(engine=None, server="llama-server")), [
        ("ok", "no engine (no engine was asked for): llama-server runs models, without a container around it", "", "")
    ]  # fmt: skip
    yield "engine", case(engine=EngineFacts("none", why="gone"), observed=seen(engine=None, system="fedora")), [
        ("fail", "no engine (gone), and no llama-server either", "nothing is here to run models with",
         "sudo dnf install podman")
    ]  # fmt: skip
    yield (
        "engine",
        case(engine_problem=Problem("podman is not on PATH", "install it")),
        [("fail", "podman is not on PATH", "install it", "sudo apt-get install podman")],
    )
    yield "engine", case(engine=DOCKER, observed=seen(engine=EngineState("Cannot connect to the Docker daemon at x"))
                         ), [
        ("fail", "docker does not answer: Cannot connect to the Docker daemon at x", "docker's daemon is not running: "
         "start it (systemctl start docker), or use --engine podman", "docker info")
    ]  # fmt: skip
    yield "version", case(), [("ok", "podman 5.4.2 is new enough", "", "")]
    yield (
        "version",
        case(observed=seen(engine=EngineState(version="4.0.2"))),
        [("warn", "podman 4.0.2 is older than 4.3", "nothing older was tried", "sudo apt-get install podman")],
    )
    yield "version", case(rtx(CDI), DOCKER, observed=seen(engine=EngineState(version="20.10.24+dfsg1"))), [
        ("fail", "docker 20.10.24+dfsg1 has no CDI devices", "the plan asks for CDI devices, which it has since 25.0",
         "sudo apt-get install docker.io")
    ]  # fmt: skip
    yield (
        "version",
        case(rtx(CDI), DOCKER, observed=seen(engine=EngineState(version="28.0.0"))),
        [("ok", "docker 28.0.0 knows CDI devices", "", "")],
    )
    yield (
        "version",
        case(observed=seen(engine=EngineState("broken"))),
        [("skip", "not checked: the engine does not answer", "", "")],
    )
    repair = "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 alice && podman system migrate"
    for account, expected in (
        (ACCOUNT, ("ok", "65536 ids for alice, cgroup v2, servers outlive the login", "", "")),
        (replace(ACCOUNT, user_ids=0), ("fail", "/etc/subuid gives no ids to alice", "images hold files of several "
                                        "users, which need ids", repair)),
        (replace(ACCOUNT, group_ids=99), ("warn", "/etc/subgid gives only 99 ids to alice",
                                          "images may use 65536 of them", repair)),
        (replace(ACCOUNT, helpers=False), ("fail", "newuidmap and newgidmap are not on PATH",
                                           "podman maps ids with them", "sudo apt-get install uidmap")),
        (replace(ACCOUNT, cgroups="v1"), ("warn", "the system uses cgroups of version 1", "without version 2 a user "
                                          "cannot limit memory and CPUs", "sudo grubby --update-kernel=ALL "
                                          "--args=systemd.unified_cgroup_hierarchy=1")),
        (replace(ACCOUNT, runtime_dir="", runtime_dir_good=False), (
            "warn", "XDG_RUNTIME_DIR is not set", "sockets and podman's state are kept there until the logout; `su` "
            "and `sudo` do not set it", "sudo loginctl enable-linger alice")),
        (replace(ACCOUNT, runtime_dir_good=False), (
            "fail", "XDG_RUNTIME_DIR=/run/user/1000 is not a folder of yours",
            "sockets and podman's state are kept there until the logout", "sudo loginctl enable-linger alice")),
        (replace(ACCOUNT, lingering=False), (
            "warn", "servers in the background end when you log out", "systemd ends what a user has started at the "
            "last logout, also containers of `serve -d`", "loginctl enable-linger alice")),
    ):  # fmt: skip
        yield "rootless", case(engine=ROOTLESS, observed=seen(account=account)), [expected]
    mac = replace(probe(str(HOSTS / "no-gpu")), os="darwin", arch="arm64")
    why = "only libkrun's machine gives containers the GPU (as Vulkan)"
    command = "CONTAINERS_MACHINE_PROVIDER=libkrun podman machine init"
    yield (
        "machine",
        case(mac, observed=seen(machine_provider="libkrun")),
        [("ok", "podman's machine is libkrun's", "", "")],
    )
    yield (
        "machine",
        case(mac, observed=seen(machine_provider="applehv")),
        [("warn", "podman's machine is applehv", why, command)],
    )
    yield (
        "machine",
        case(mac, observed=seen(machine_provider="qemu")),
        [("fail", "podman's machine is of the kind qemu, which gives no GPU", why, command)],
    )
    yield "accelerator", case(), [("ok", "cpu on CPU", "", "")]
    yield (
        "accelerator",
        case(options={"backend": "rocm"}),
        [
            ("warn", warning, "rocm computes on no card", "ramalama-like explain run demo")
            for warning in case(options={"backend": "rocm"}).plan.accelerator.warnings  # type: ignore[union-attr]
        ],
    )
    yield (
        "accelerator",
        case(plan=None, plan_problem=Problem("no such card", "unset it")),
        [("fail", "no such card", "unset it", "ramalama-like explain run demo")],
    )
    yield "driver", case("rtx-4090"), [
        ("ok", f"the NVIDIA driver {probe(str(HOSTS / 'rtx-4090')).nvidia_driver} runs CUDA 12.9"
         + (" by minor-version compatibility" if probe(str(HOSTS / "rtx-4090")).nvidia_driver < "575" else ""), "", "")
    ]  # fmt: skip
    old = ("the NVIDIA driver 470.239.06 is older than 525.60.13", "CUDA 12.9 in the image does not run on it",
           "sudo apt-get install nvidia-driver")  # fmt: skip
    yield "driver", case("gtx-1080-driver-470"), [("warn", *old)]
    yield "driver", case("gtx-1080-driver-470", options={"backend": "cuda"}), [("fail", *old)]
    yield "driver", case("two-mi300x"), [("ok", "the image rocm has code for gfx942", "", "")]
    yield "driver", case("radeon-890m", options={"backend": "rocm"}), [
        ("fail", "the image rocm has no code for gfx1150", "the server would die at the first token",
         "ramalama-like run --backend vulkan MODEL")
    ]  # fmt: skip
    yield (
        "driver",
        case("radeon-890m", options={"image": "mine"}),
        [("skip", "not checked: what mine needs is not known", "", "")],
    )
    yield "cdi", case(rtx(CDI)), [("ok", "nvidia.com/gpu is specified: 0, all", "", "")]
    none = "without it no container gets a NVIDIA card"
    yield "cdi", case(rtx()), [("fail", "no CDI spec of kind nvidia.com/gpu exists", none, REPAIR)]
    yield (
        "cdi",
        case(rtx(), DOCKER),
        [("warn", "no CDI spec of kind nvidia.com/gpu exists", "docker's --gpus is used in its place", REPAIR)],
    )
    yield (
        "cdi",
        case(rtx(replace(CDI, missing=("/dev/nvidia0",)))),
        [("fail", "the CDI spec /etc/cdi/nvidia.yaml is stale, /dev/nvidia0 does not exist", none, REPAIR)],
    )
    yield "cdi", case(rtx(CDI, replace(CDI, file="/etc/cdi/old.yaml"))), [
        ("fail", "/etc/cdi/nvidia.yaml and /etc/cdi/old.yaml both define nvidia.com/gpu=0: remove one of them",
         "engines refuse every device of nvidia.com/gpu then", "sudo rm /etc/cdi/old.yaml")
    ]  # fmt: skip
    yield (
        "cdi",
        case(rtx(replace(CDI, kind="nvidia.com/gpus"))),
        [("fail", "/etc/cdi/nvidia.yaml names the kind nvidia.com/gpus, not nvidia.com/gpu", none, REPAIR)],
    )
    path = NODE.path
    yield "nodes", case(radeon()), [("ok", f"{path} can be opened", "", "")]
    closed = replace(radeon(), nodes=(replace(NODE, accessible=False),))
    yield "nodes", case(closed, observed=seen(groups=((992, "render"),))), [
        ("fail", f"{path} cannot be opened by this user", "it belongs to the group render; join it and log in anew",
         "sudo usermod -aG render $USER")
    ]  # fmt: skip
    yield (
        "nodes",
        case(closed, DOCKER),
        [("ok", f"{path} can be opened", "", "")],
    )
    grouped = replace(radeon(), nodes=(NODE,))
    lost = "only the group 992 opens it, and a container of a user loses groups"
    yield "nodes", case(grouped, ROOTLESS), [("ok", f"{path} can be opened", "", "")]
    yield "nodes", case(grouped, replace(ROOTLESS, oci_runtime="runc"),
                        observed=seen(engine=EngineState(oci_runtime="runc"))), [
        ("fail", f"{path} is lost in the container: runc cannot keep groups", f"{lost}; crun can keep them",
         "sudo apt-get install crun")
    ]  # fmt: skip
    yield "nodes", case(grouped, ROOTLESS, observed=seen(engine=EngineState())), [
        ("warn", f"{path} needs --keep-groups, which not every OCI runtime can", f"{lost}; crun can keep them",
         "podman info --format '{{.Host.OCIRuntime.Name}}'")
    ]  # fmt: skip
    yield "nodes", case(options={"device": ("/dev/nothing",)}, observed=seen(missing_nodes=("/dev/nothing",))), [
        ("fail", "/dev/nothing does not exist", "the engine refuses to start then: leave it out of --device",
         "ls -l /dev")
    ]  # fmt: skip
    pull = f"podman pull {REF}"
    yield "image", case(), [("ok", f"{REF} is here, 3 days old", "", "")]
    yield "image", case(observed=seen(image=ImageState(present=True))), [("ok", f"{REF} is here", "", "")]
    yield (
        "image",
        case(observed=seen(image=ImageState(present=True, created=NOW - 200 * DAY))),
        [("warn", f"{REF} is 200 days old", "newer model architectures are unknown to it", pull)],
    )
    absent = ImageState(present=False)
    yield (
        "image",
        case(observed=seen(image=absent)),
        [("warn", f"{REF} is not here", "the first start fetches it, which takes minutes", pull)],
    )
    yield (
        "image",
        case(observed=seen(image=absent, registry=Reply("quay.io", problem="x"))),
        [("fail", f"{REF} is not here, and quay.io does not answer", "nothing can be started without it", pull)],
    )
    yield (
        "image",
        case(options={"pull": "never"}, observed=seen(image=absent, registry=None)),
        [
            (
                "fail",
                f"{REF} is not here, and --pull never forbids to fetch it",
                "nothing can be started without it",
                pull,
            )
        ],
    )
    yield "image", case(options={"image": "localhost/x:1"}, observed=seen(image=absent, registry=None)), [
        ("fail", "localhost/x:1 is not here, and no registry has it", "an image of localhost is built, not pulled",
         "podman build -t localhost/x:1 containers/cpu")
    ]  # fmt: skip
    yield (
        "image",
        case(observed=seen(image=ImageState(present=False, problem="corrupt"))),
        [("warn", f"podman does not tell about {REF}", "corrupt", pull)],
    )
    yield "architecture", case(), [("ok", "the image and the machine are amd64", "", "")]
    arm = ImageState(present=True, arch="arm64")
    anew = f"podman pull --platform linux/amd64 {REF}"
    yield (
        "architecture",
        case(observed=seen(image=arm)),
        [("fail", f"{REF} is built for arm64", "the machine is amd64: it cannot execute what is in the image", anew)],
    )
    yield (
        "architecture",
        case(observed=seen(image=arm, emulated=("arm64",))),
        [("warn", f"{REF} is built for arm64, which is emulated here", "the machine is amd64: it will be slow", anew)],
    )
    store, images = (
        ("ok", "100.0 GB are free for models in /store", "", ""),
        ("ok", "100.0 GB are free for images in /images", "", ""),
    )
    yield "disk", case(), [store, images]
    yield (
        "disk",
        case(observed=seen(store=Room("/store", 5 * GB))),
        [("warn", "5.0 GB are free for models in /store", "10.0 GB are soon used", "du -sh /store"), images],
    )
    yield (
        "disk",
        case(observed=seen(image=absent, images=Room("/images", GB))),
        [store, ("fail", "1.0 GB are free for images in /images", "at least 4.0 GB are needed", "podman image prune")],
    )
    yield (
        "disk",
        case(observed=seen(store=Room("/store"))),
        [("warn", "the disk for models (/store) cannot be looked at", "it may be full", "du -sh /store"), images],
    )
    small = HostFacts(root="/", arch="amd64", memory_bytes=32 * GB)
    ps = "ps -eo rss,args --sort=-rss | head"
    yield "memory", case(small), [("ok", "32.0 GB of main memory, 20.0 GB of it free to use", "", "")]
    yield "memory", case(small, observed=seen(memory_available_bytes=4 * GB)), [
        ("warn", "32.0 GB of main memory, 4.0 GB of it free to use",
         "a model of 8 billion parameters needs some 6.0 GB", ps)
    ]  # fmt: skip
    card = Gpu("nvidia", name="X", vram_bytes=8 * GB)
    yield (
        "memory",
        case(replace(small, gpus=(card,)), observed=seen(memory_available_bytes=4 * GB)),
        [("ok", "32.0 GB of main memory, 4.0 GB of it free to use; 8.0 GB on X", "", "")],
    )
    yield (
        "memory",
        case(small, observed=seen(memory_available_bytes=GB // 2)),
        [
            (
                "fail",
                "32.0 GB of main memory, 0.5 GB of it free to use",
                "less than 1.0 GB will not do for any model",
                ps,
            )
        ],
    )
    taken = {"port_free": False, "next_port": 8081}
    yield "port", case(), [("ok", "port 8080 is free on 127.0.0.1", "", "")]
    who = "ss -ltnp sport = :8080"
    yield (
        "port",
        case(observed=seen(**taken)),
        [("warn", "port 8080 is taken on 127.0.0.1", "serve will use 8081", who)],
    )
    yield (
        "port",
        replace(case(observed=seen(**taken)), settings=case(options={"ctx_size": "1"}).settings),
        [("warn", "port 8080 is taken on 127.0.0.1", "serve will use 8081", who)],
    )
    yield "port", case(observed=seen(port_free=False, next_port=None)), [
        ("fail", "no port from 8080 is free on 127.0.0.1", "serve has nowhere to listen; is the address right?",
         "ip address")
    ]  # fmt: skip
    curl = "curl -sSI https://quay.io/v2/"
    down = Reply("quay.io", problem="timed out")
    yield "registry", case(), [("ok", "quay.io answers", "", "")]
    yield (
        "registry",
        case(observed=seen(registry=Reply("quay.io", 503))),
        [("warn", "quay.io answers with HTTP 503", "images cannot be pulled from it now", curl)],
    )
    yield (
        "registry",
        case(observed=seen(registry=down)),
        [("warn", "quay.io does not answer: timed out", "images cannot be pulled; this one is here", curl)],
    )
    for observed, options in ((seen(registry=down, image=absent), {}), (seen(registry=down), {"pull": "always"})):
        yield (
            "registry",
            case(observed=observed, options=options),
            [("fail", "quay.io does not answer: timed out", "the image has to be pulled from it", curl)],
        )
    yield "registry", case(observed=seen(registry=None)), [("skip", "not checked: no registry is needed", "", "")]
    hub = "https://huggingface.co"
    yield (
        "token",
        case(observed=seen(hub=Reply(hub, 200), hub_token="$HF_TOKEN")),
        [("ok", "Hugging Face takes the token in $HF_TOKEN", "", "")],
    )
    yield "token", case(observed=seen(hub=Reply(hub, problem="timed out"), hub_token="$HF_TOKEN")), [
        ("warn", f"{hub} does not tell whether the token is valid: timed out", "models that need it may be refused",
         "ramalama-like login huggingface")
    ]  # fmt: skip
    yield "token", case(observed=seen(hub=Reply(hub, 401), hub_token="$HF_TOKEN")), [
        ("fail", "Hugging Face refuses the token in $HF_TOKEN", "not even public models can be had with it",
         "ramalama-like login huggingface")
    ]  # fmt: skip
    yield (
        "token",
        case(observed=seen(hub_token="$HF_TOKEN", hub_token_problem="why")),
        [("fail", "the token in $HF_TOKEN was not sent", "why", "ramalama-like login huggingface")],
    )
    yield "proxy", case(), [("ok", "no proxy is set for plain HTTP", "", "")]
    for exceptions in ("*", "x, 127.0.0.1 ,LOCALHOST", "127.0.0.0/8,localhost"):
        proxies = (("http_proxy", "http://p:1"), ("no_proxy", exceptions))
        yield (
            "proxy",
            case(observed=seen(proxies=proxies)),
            [("ok", "no proxy stands between this machine and itself", "", "")],
        )
    yield "proxy", case(observed=seen(proxies=(("HTTP_PROXY", "p:1"), ("NO_PROXY", "a.b,localhost")))), [
        ("warn", "HTTP_PROXY is set, and NO_PROXY does not except 127.0.0.1",
         "programs that talk to a server on this machine send it to the proxy",
         "export NO_PROXY=a.b,localhost,127.0.0.1")
    ]  # fmt: skip
    yield "proxy", case(observed=seen(proxies=(("https_proxy", "htp://x y"),))), [
        ("fail", "https_proxy=htp://x y is not the address of a proxy", "nothing can be fetched so",
         "unset https_proxy")
    ]  # fmt: skip
    broken = "certificates seem expired or not yet valid, so nothing can be fetched"
    ntp = "sudo timedatectl set-ntp true"
    yield "clock", case(), [("ok", "the clock agrees with the registry's", "", "")]
    yield "clock", case(observed=seen(registry=None)), [("ok", "the clock is plausible; nobody could be asked", "", "")]
    yield (
        "clock",
        case(observed=seen(registry=Reply("r", 200, clock=NOW - 900))),
        [("warn", "the clock is 15 minutes ahead", "tokens and certificates are valid for a limited time", ntp)],
    )
    yield (
        "clock",
        case(observed=seen(registry=Reply("r", 200, clock=NOW + 3 * DAY))),
        [("fail", "the clock is 3 days behind", broken, ntp)],
    )
    yield (
        "clock",
        case(observed=seen(registry=None, now=0.0)),
        [("fail", "the clock stands before the day on which this program was made", broken, ntp)],
    )
    yield (
        "clock",
        case(observed=seen(registry=None, image=ImageState(present=True, created=NOW + 9 * DAY))),
        [("warn", "the image is made later than the clock says it is now", "one of the two clocks is wrong", ntp)],
    )


def test_every_judgement_in_these_words() -> None:
    judged: dict[str, set[str]] = {}
    for check, what, expected in rows():
        assert found(check, what) == expected, check
        judged.setdefault(check, set()).update(row[0] for row in expected)
    assert all(judged[check] >= {"ok", "warn", "fail"} for check in CHECKS), judged


def test_a_port_that_was_asked_for_has_to_be_free() -> None:
    base = case(observed=seen(port_free=False, next_port=8082))
    asked = settings.load_settings(Request("doctor", (), {"port": Given("8081", "--port")})).settings
    assert found("port", replace(base, settings=asked)) == [
        ("fail", "port 8081 (--port) is taken on 127.0.0.1", "8082 is free", "ss -ltnp sport = :8081")
    ]


def test_every_fault_has_a_reason() -> None:
    for check, judged, _ in rows():
        for finding in check_all(judged):
            assert isinstance(finding, Finding)
            assert (finding.status in ("warn", "fail")) == bool(finding.why), (check, finding)


@pytest.mark.parametrize(
    ("system", "command"),
    [("ubuntu debian", "sudo apt-get install docker.io"), ("opensuse-tumbleweed", "sudo zypper install docker"),
     ("fedora", "sudo dnf install moby-engine"), ("plan9", ""), ("", "")],
)  # fmt: skip
def test_programs_are_installed_in_the_system_s_own_way(system: str, command: str) -> None:
    assert install_command("docker", system) == command
    assert os.sep not in command
