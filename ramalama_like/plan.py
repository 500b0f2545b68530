"""The plan: everything that one command will do, decided once, as a frozen value.

Fields say what is wanted (``network="none"``, ``pull="missing"``, ``read_only=True``); the renderers spell it for one
engine or target each. Dry run, real run and generated files all start from the same plan and add no decision.
"""

from __future__ import annotations

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.accelerator import Accelerator
    from ramalama_like.facts import EngineFacts
    from ramalama_like.fit import Fit
    from ramalama_like.image import Image
    from ramalama_like.model import Model


@value
class Publish:
    """A port of the container that the host can reach."""

    host: str  # address on the host
    host_port: int
    port: int


@value
class Mount:
    """A file or folder of the host that the container sees."""

    source: str
    target: str
    read_only: bool = True


@value
class Adapter:
    """A LoRA adapter and how strongly it is applied."""

    path: str
    scale: float = 1.0


@value
class Security:
    """How far the container is locked in."""

    privileged: bool = False
    drop_capabilities: bool = True
    no_new_privileges: bool = True
    read_only_root: bool = True
    separate_labels: bool = False  # SELinux separation; mounts are then relabelled


@value
class Container:
    """What the engine is asked for."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    network: str = ""  # "none", a name, or empty for the engine's default
    publish: tuple[Publish, ...] = ()
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    docker_gpus: str = ""
    groups: tuple[int, ...] = ()
    keep_groups: bool = False
    env: tuple[tuple[str, str | None], ...] = ()  # None: the value is the user's own, handed on unseen
    security: Security = Security()
    cpus: float | None = None  # processors that it may use, as a quota of time
    memory_bytes: int | None = None  # that it may use, swapped out or not
    oci_runtime: str = ""
    pull: str = "missing"
    tls_verify: bool = True
    authfile: str = ""
    host_gateway: bool = False  # the host is reachable by name from inside
    remove: bool = True  # when it ends
    detach: bool = False
    engine_args: tuple[str, ...] = ()


@value
class Endpoint:
    """Where the API will be: a Unix socket, or an address and port of the host."""

    host: str = ""
    port: int = 0
    socket: str = ""

    @property
    def url(self) -> str:
        """The base address for clients."""
        if self.socket:
            return f"unix://{self.socket}"
        # A wildcard is no address to connect to; brackets keep an IPv6 address apart from its port.
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self.port}/v1"


@value
class Step:
    """One command of a plan, ready to execute: its argument list is final."""

    kind: str  # server, tool (runs to its end), chat (this program's own client)
    argv: tuple[str, ...]
    why: str


@value
class Plan:
    """One command, completely decided."""

    command: str
    engine: EngineFacts
    accelerator: Accelerator
    image: Image | None  # None: nothing runs in a container
    model: Model
    container: Container | None
    server: tuple[str, ...]  # the server's or tool's own command line
    endpoint: Endpoint | None
    chat: tuple[str, ...] = ()  # this program's client, as a command line
    timeout_s: float = 180.0
    draft: Model | None = None
    fit: Fit | None = None  # what it takes of the machine's memory; None where the header does not tell
    warnings: tuple[str, ...] = ()  # for people, on stderr
    decisions: tuple[tuple[str, str, str, str], ...] = ()  # what, value, why, origin: quoted by explain and JSON
