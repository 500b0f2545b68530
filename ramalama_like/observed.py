"""What ``doctor`` has seen of a machine besides its host facts, as plain frozen values. None means: not looked."""

from __future__ import annotations

from ramalama_like.value import value


@value
class EngineState:
    """What a container engine tells about itself."""

    problem: str = ""  # what it said in place of an answer
    version: str = ""  # of the part that does the work: docker's daemon
    rootless: bool | None = None
    oci_runtime: str = ""  # crun, runc
    image_folder: str = ""  # where images are kept; empty on a machine that is not this one
    remote: bool = False  # it works in a virtual machine or on another host


@value
class ImageState:
    """An image as the engine has it."""

    present: bool
    arch: str = ""  # in the words of images
    created: float | None = None  # seconds of the clock; None where it does not tell
    problem: str = ""  # what the engine said, other than that it has no such image


@value
class Account:
    """What the user has for running containers without being root."""

    name: str
    user_ids: int = 0  # how many /etc/subuid gives
    group_ids: int = 0
    helpers: bool = False  # newuidmap and newgidmap are on PATH
    cgroups: str = ""  # v2, v1
    runtime_dir: str = ""  # XDG_RUNTIME_DIR
    runtime_dir_good: bool = False  # it is the user's own
    lingering: bool | None = None  # None where there is no systemd to do it


@value
class Reply:
    """What a service in the network answered."""

    address: str
    status: int = 0  # HTTP; 0 where there was no answer
    problem: str = ""  # why not
    clock: float | None = None  # the Date of its answer, in seconds of the clock


@value
class Room:
    """How much fits into a folder."""

    folder: str
    free_bytes: int | None = None


@value
class Observed:
    """All of it."""

    now: float = 0.0  # seconds of the clock
    engine: EngineState | None = None
    image: ImageState | None = None
    account: Account | None = None
    registry: Reply | None = None
    hub: Reply | None = None
    hub_token: str = ""  # where the token is from; never the token
    hub_token_problem: str = ""  # why it was not sent
    store: Room | None = None
    images: Room | None = None
    memory_available_bytes: int | None = None
    port_free: bool | None = None
    next_port: int | None = None  # the first free one
    proxies: tuple[tuple[str, str], ...] = ()  # variables that are set, without the passwords in them
    machine_provider: str = ""  # of podman's virtual machine
    groups: tuple[tuple[int, str], ...] = ()  # names of the groups that own device nodes
    missing_nodes: tuple[str, ...] = ()  # of the plan's nodes
    emulated: tuple[str, ...] = ()  # architectures whose programs the kernel hands to an emulator
    system: str = ""  # ID of os-release: debian, fedora
    server: str = ""  # what runs without an engine: llama-server, embedded; empty: nothing does
