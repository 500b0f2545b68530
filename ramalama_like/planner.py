"""Making the plan: the one place where everything that was asked, found and configured becomes a decision.

Pure: what it needs of the world (a free port, the folder for sockets, the user's variables) arrives in ``Situation``.
The image is chosen here and nowhere else, after everything is parsed and merged: that it was chosen too early, and
twice, is the fault that this program exists to avoid.
"""

from __future__ import annotations

import os.path

from ramalama_like.accelerator import Accelerator, choose_accelerator
from ramalama_like.data import load_table
from ramalama_like.errors import NotBuiltYet, ValueProblem
from ramalama_like.fit import device_place, main_place, make_fit
from ramalama_like.fit_words import fit_text, verdict_lines
from ramalama_like.image import choose_image
from ramalama_like.limits import choose_threads, container_limit, warn_of_limits
from ramalama_like.memory_options import read_memory_options
from ramalama_like.options import all_options
from ramalama_like.plan import Container, Endpoint, Mount, Plan, Publish, Security
from ramalama_like.reference import plain_url
from ramalama_like.runtimes import llama_cpp
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ramalama_like.facts import EngineFacts, HostFacts
    from ramalama_like.fit import Fit
    from ramalama_like.image import Image
    from ramalama_like.measured import Measured
    from ramalama_like.model import Model, ModelFile
    from ramalama_like.options import Setting, Settings
    from ramalama_like.plan import Adapter
    from ramalama_like.request import Request

MODELS = "/mnt/models"
SOCKETS = "/run/ramalama"
SOCKET_NAME = "s.sock"
SAMPLES = "/data/samples.txt"
LOGS = "/var/log/ramalama"
TEMPLATE = f"{MODELS}/template/template.jinja"
STATES = "/mnt/states"
# Linux limits the path of a Unix socket to 107 bytes (sun_path in unix(7)); other systems to a few less.
LONGEST_SOCKET_PATH = 103
LONGEST_NAME = 40
EMBEDDED = "ramalama_like.embedded"  # the module that is llama-server where there is no other


@value
class Situation:
    """What else a plan depends on: how things stand on this machine at this moment."""

    port: int  # the port that was asked for, or the first free one
    port_origin: str
    runtime_dir: str  # this program's own folder for sockets
    environment: Mapping[str, str]  # the user's variables that concern accelerators
    program: tuple[str, ...]  # how this program is started
    native_server: tuple[str, ...] = ("llama-server",)  # how llama.cpp's server is started without an engine
    native_tools: Mapping[str, str] = {}  # llama.cpp's other programs on PATH
    measured: Measured | None = None  # what bench has found out about such a model on this machine
    adapters: tuple[Adapter, ...] = ()  # that exist
    terminal_input: bool = True  # standard input is a terminal: no prompt comes from there


def make_plan(
    request: Request,
    settings: Settings,
    facts: HostFacts,
    engine: EngineFacts,
    model: Model,
    draft: Model | None,
    situation: Situation,
) -> Plan:
    """Decide everything about one command. Raises AppError for a combination that cannot work."""
    accelerator = choose_accelerator(
        backend=settings.backend, devices=settings.device, keep_groups=settings.keep_groups, gpus=settings.gpu,
        facts=facts, engine=engine, family=settings.image_family.value, environment=situation.environment,
        measured=situation.measured,
    )  # fmt: skip
    draw = _Drawing(request, settings, facts, engine, model, draft, situation, accelerator)
    return draw.native() if engine.kind == "none" else draw.contained()


def container_name(alias: str, port: int) -> str:
    """The container's default name: unique for each port, so that a dry run can print it."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_.-") else "-" for letter in alias)
    return f"ramalama-{plain.strip('-.')[:LONGEST_NAME] or 'model'}-{port}"


def _checked_name(setting: Setting[str]) -> str:
    """A container's name by the engines' own rule. It also names a folder, so nothing else may pass."""
    name = setting.value
    if name and not (name.isascii() and name[0].isalnum() and all(c.isalnum() or c in "_.-" for c in name)):
        raise ValueProblem(f"{setting.origin} {name}: not the name of a container",
                           "letters, digits and _ . - make one, and it begins with a letter or digit")  # fmt: skip
    return name


class _Drawing:
    """The parts of a plan while it is being made; used once and dropped."""

    def __init__(
        self,
        request: Request,
        settings: Settings,
        facts: HostFacts,
        engine: EngineFacts,
        model: Model,
        draft: Model | None,
        situation: Situation,
        accelerator: Accelerator,
    ) -> None:
        self.request = request
        self.settings = settings
        self.facts = facts
        self.engine = engine
        self.model = model
        self.draft = draft
        self.situation = situation
        self.accelerator = accelerator
        self.name = _checked_name(settings.name) or container_name(model.alias, situation.port)
        self.warnings = [*accelerator.warnings, *model.notes, *(draft.notes if draft else ())]
        self.threads = choose_threads(settings, facts)
        self.warnings += self.threads.warnings
        self.warnings += warn_of_limits(
            settings, facts, engine, on_cpu=accelerator.backend == "cpu",
            model_bytes=model.size_bytes + (draft.size_bytes if draft else 0),
        )  # fmt: skip
        self.fit = self._make_fit()
        self._note_meaningless()

    # What runs where

    def contained(self) -> Plan:
        """The plan for a container engine."""
        settings = self.settings
        self._note_labels()
        image = choose_image(
            accelerator=self.accelerator, facts_arch=self.facts.arch, family=settings.image_family,
            explicit=settings.image, overrides=settings.images, default_image=settings.default_image,
        )  # fmt: skip
        if not self._is_server() and not settings.image.value:
            image = with_tools(image)
        self.warnings += image.warnings
        socket_folder = self._socket_folder()
        mounts = [Mount(file.path, f"{MODELS}/{file.name}") for file in self.model.files]
        if self.draft:
            mounts += [Mount(file.path, f"{MODELS}/draft/{file.name}") for file in self.draft.files]
        if self._is_server():
            mounts += self._extra_mounts()
        if socket_folder:
            mounts.append(Mount(socket_folder, SOCKETS, read_only=False))
        if settings.logfile.value:
            # The file alone, not its folder: whatever else is there is none of the container's business.
            log_file = f"{LOGS}/server.log"
            mounts.append(Mount(settings.logfile.value, log_file, read_only=False))
        else:
            log_file = ""
        if self._is_server():
            endpoint, listen, publish = self._endpoint(socket_folder)
            server = self._server_command(MODELS, f"{MODELS}/draft", listen, log_file)
        else:
            endpoint, publish = None, ()
            server = self._tool_command(f"{MODELS}/{self.model.main.name}", SAMPLES)
            if self.request.command == "perplexity":
                mounts.append(Mount(settings.file.value, SAMPLES))
        container = self._container(image, tuple(mounts), publish, bool(endpoint and not endpoint.socket))
        return self._plan(image, container, words_after(image.ref, server), endpoint)

    def native(self) -> Plan:
        """The plan without an engine: the server is a child process of its own."""
        self._refuse_without_engine()
        model = self.model.main.path
        if any(file.role == "shard" and os.path.basename(file.path) != file.name for file in self.model.files):
            # The server finds the other parts by their names, which only a container gives to files of the store.
            raise ValueProblem(f"{self.model.reference}: is in parts, which the store can give to a container only",
                               "use an engine, or give the path of the first part")  # fmt: skip
        if self._is_server():
            endpoint, listen, _ = self._endpoint("")
            _refuse_commas(self.situation.adapters)
            command = self._server_command(os.path.dirname(model), "", listen, self.settings.logfile.value)
            if self.situation.native_server[-1] == EMBEDDED:
                self._refuse_what_embedded_lacks(command[1:])
            command = (*self.situation.native_server, *command[1:])
        else:
            endpoint = None
            command = self._tool_command(model, self.settings.file.value)
            if command[0] not in self.situation.native_tools:
                raise ValueProblem(f"{self.request.command} without a container engine needs {command[0]} on PATH",
                                   "install podman, or llama.cpp's programs")  # fmt: skip
        pairs = (*self.accelerator.env, *_pairs(self.settings.env.value))
        env = [(name, text) for name, text in pairs if text is not None]
        if env:
            # As a command of its own, so that what is shown is all that is executed.
            command = ("env", *(f"{name}={text}" for name, text in env), *command)
        return self._plan(None, None, command, endpoint)

    def _plan(self, image: Image | None, container: Container | None, server: tuple[str, ...],
              endpoint: Endpoint | None) -> Plan:  # fmt: skip
        return Plan(
            command=self.request.command, engine=self.engine, accelerator=self.accelerator, image=image,
            model=self.model, draft=self.draft, container=container, server=server, endpoint=endpoint,
            chat=self._chat_command(endpoint) if self.request.command == "run" and endpoint else (),
            timeout_s=self.settings.timeout.value, fit=self.fit, warnings=tuple(self.warnings),
            decisions=self._decisions(image, container, endpoint),
        )  # fmt: skip

    def _is_server(self) -> bool:
        return self.request.command in ("run", "serve")

    # The server's own command line

    def _server_command(
        self, folder: str, draft_folder: str, listen: tuple[str, ...], log_file: str
    ) -> tuple[str, ...]:
        settings, projector = self.settings, self.model.projector
        contained = bool(draft_folder)

        def seen(file: ModelFile) -> str:
            return f"{folder}/{file.name}" if contained else file.path

        main = seen(self.model.main)
        draft = ""
        mmproj = seen(projector) if projector else ""
        if self.draft:
            draft = f"{draft_folder}/{self.draft.main.name}" if contained else self.draft.main.path
        template = self.model.template
        # A template that the user gives beats the one that came with the model.
        chosen = self._seen(settings.chat_template.value, TEMPLATE, contained)
        return llama_cpp.make_server_command(
            self.settings, alias=self.model.alias, model=main, mmproj=mmproj, draft=draft, listen=listen,
            threads=self.threads.count, log_file=log_file, template=chosen or (seen(template) if template else ""),
            states=self._seen(settings.slot_save_path.value, STATES, contained),
            adapters=[*((seen(adapter), 1.0) for adapter in self.model.adapters),
                      *((self._seen(adapter.path, _adapter_target(number), contained), adapter.scale)
                        for number, adapter in enumerate(self.situation.adapters))],
        )  # fmt: skip

    def _extra_mounts(self) -> list[Mount]:
        settings = self.settings
        mounts = [Mount(adapter.path, _adapter_target(number))
                  for number, adapter in enumerate(self.situation.adapters)]  # fmt: skip
        if settings.chat_template.value:
            mounts.append(Mount(settings.chat_template.value, TEMPLATE))
        if settings.slot_save_path.value:
            mounts.append(Mount(settings.slot_save_path.value, STATES, read_only=False))
        return mounts

    def _seen(self, path: str, inside: str, contained: bool) -> str:
        """A path as the server sees it; empty where there is none."""
        return inside if path and contained else path

    def _tool_command(self, model: str, text: str) -> tuple[str, ...]:
        if self.request.command == "bench":
            return llama_cpp.make_bench_command(self.settings, model=model, threads=self.threads.count)
        if not self.settings.file.value:
            raise ValueProblem("perplexity needs a text to measure", "name it with --file PATH")
        return llama_cpp.make_perplexity_command(self.settings, model=model, threads=self.threads.count, text=text)

    def _chat_command(self, endpoint: Endpoint) -> tuple[str, ...]:
        settings = self.settings
        command = [*self.situation.program, "chat", "--url", endpoint.url, "--model", self.model.alias]
        command += ["--wait", repr(settings.timeout.value)]
        for flag, setting in (
            ("--color", settings.color), ("--prefix", settings.prefix), ("--thoughts", settings.thoughts),
            ("--system", settings.system), ("--schema", settings.schema), ("--grammar", settings.grammar),
            ("--summarize-after", settings.summarize_after),
        ):  # fmt: skip
            if not setting.is_default:
                # Joined, since a text that begins with a dash is no option.
                command.append(f"{flag}={setting.value}")
        if settings.max_tokens.value:
            command += ["--max-tokens", str(settings.max_tokens.value)]
        if not settings.temp.is_default:
            command += ["--temp", repr(settings.temp.value)]
        command += [f"--file={path}" for path in settings.files.value]
        command += [f"--mcp={url}" for url in settings.mcp.value]
        for flag, switch in (("--interactive", settings.interactive), ("--json", settings.answer_json),
                             ("--debug", settings.debug), ("--quiet", settings.quiet)):  # fmt: skip
            if switch.value:
                command.append(flag)
        if self.request.words:
            command += ["--", *self.request.words]
        return tuple(command)

    # The container

    def _container(self, image: Image, mounts: tuple[Mount, ...], publish: tuple[Publish, ...], reachable: bool
                   ) -> Container:  # fmt: skip
        settings, accelerator = self.settings, self.accelerator
        no_devices = settings.device.value == ("none",)
        docker = self.engine.kind == "docker"
        network = settings.network.value or ("" if reachable else "none")
        return Container(
            name=self.name,
            labels=self._labels(publish),
            network=network,
            publish=publish,
            mounts=mounts,
            device_nodes=(*accelerator.device_nodes, *(() if no_devices else settings.device.value)),
            cdi_devices=accelerator.cdi_devices,
            docker_gpus=accelerator.docker_gpus if docker else "",
            groups=accelerator.groups,
            keep_groups=settings.keep_groups.value or accelerator.keep_groups,
            env=(("HOME", "/tmp"), *accelerator.env, *_pairs(settings.env.value)),  # noqa: S108 - in the container
            security=_security(settings),
            cpus=settings.cpus.value,
            memory_bytes=settings.memory.value,
            oci_runtime=settings.oci_runtime.value or accelerator.oci_runtime,
            pull=settings.pull.value,
            tls_verify=settings.tls_verify.value,
            authfile=settings.authfile.value,
            # A container in the background stays after its end, so that its log can still be read.
            remove=not settings.detach.value,
            detach=settings.detach.value,
            engine_args=settings.engine_args.value,
        )

    def _labels(self, publish: tuple[Publish, ...]) -> tuple[tuple[str, str], ...]:
        port = str(publish[0].host_port) if publish else ""
        labels = {
            "ai.ramalama": "", "ai.ramalama.model": self.model.reference, "ai.ramalama.engine": self.engine.kind,
            "ai.ramalama.runtime": self.settings.runtime.value, "ai.ramalama.port": port,
            "ai.ramalama.command": self.request.command,
        }  # fmt: skip
        return tuple((name, text) for name, text in labels.items() if text or name == "ai.ramalama")

    def _endpoint(self, socket_folder: str) -> tuple[Endpoint, tuple[str, ...], tuple[Publish, ...]]:
        """Where the API is for clients, how the server is told so, and what the engine publishes."""
        settings, port = self.settings, self.situation.port
        if socket_folder:
            return Endpoint(socket=f"{socket_folder}/{SOCKET_NAME}"), ("--host", f"{SOCKETS}/{SOCKET_NAME}"), ()
        host = settings.host.value
        if not host.strip("[]"):
            raise ValueProblem(f"{settings.host.origin}: the address is empty", "0.0.0.0 stands for all addresses")
        loopback = host in ("127.0.0.1", "localhost", "::1", "[::1]")
        if not loopback:
            self.warnings.append(
                f"the API is published on {host} for whoever can reach this machine, and asks for no key"
            )
        endpoint = Endpoint(host=host.strip("[]"), port=port)
        if self.engine.kind == "none":
            return endpoint, ("--host", host.strip("[]"), "--port", str(port)), ()
        if settings.network.value == "none":
            raise ValueProblem("--network none leaves no port to publish",
                               "leave --network out: run then talks over a Unix socket where it can")  # fmt: skip
        if settings.network.value == "host":
            # The container shares the host's network: nothing to publish, but the address still counts.
            return endpoint, ("--host", host.strip("[]"), "--port", str(port)), ()
        # All addresses of the container's own network; what can reach it is decided by what is published.
        inside = ("--host", "0.0.0.0", "--port", str(port))  # noqa: S104
        return endpoint, inside, (Publish("127.0.0.1" if host == "localhost" else host, port, port),)

    def _socket_folder(self) -> str:
        """The host's folder for the API's socket; empty where a port is used."""
        if not wants_socket(self.request, self.settings, self.engine, self.facts):
            return ""
        folder = socket_folder(self.situation.runtime_dir, self.name)
        if len(os.fsencode(f"{folder}/{SOCKET_NAME}")) > LONGEST_SOCKET_PATH:
            self.warnings.append(f"{folder} is too long for a Unix socket, so a loopback port is used")
            return ""
        return folder

    # Small choices

    def _make_fit(self) -> Fit | None:
        """What all of it takes of the memory where it will be computed; None where a header does not tell."""
        shapes = [model.shape for model in (self.model, self.draft) if model]
        known = [shape for shape in shapes if shape]
        if len(known) < len(shapes):
            return None
        options = read_memory_options(self.settings, self.request.command)
        limit = container_limit(self.settings, self.facts, self.engine)
        place = device_place(self.accelerator) or main_place(self.facts, limit)
        return make_fit(known, options, place, self.facts, more_bytes=self.model.projector_bytes, limit=limit)

    def _note_meaningless(self) -> None:
        for name in llama_cpp.MEANINGLESS.get(self.request.command, ()):
            given = self.request.given.get(name)
            if given:
                self.warnings.append(f"{given.flag} has no meaning for {self.request.command}")

    def _note_labels(self) -> None:
        """SELinux separates containers from devices too, unless a boolean of its policy lets them through."""
        if self.facts.selinux != "enforcing" or not self.settings.selinux.value:
            return
        for row in load_table("accelerators")["selinux"]:
            passed = (*self.accelerator.device_nodes, *self.accelerator.cdi_devices)
            if any(device.startswith(row["device"]) for device in passed):
                self.warnings.append(f"SELinux may keep the container from {row['device']}: "
                                     f"sudo setsebool -P {row['boolean']} 1")  # fmt: skip

    def _refuse_without_engine(self) -> None:
        memory = self.request.given.get("memory")
        if memory:
            raise ValueProblem(f"{memory.flag} limits a container, and {self.engine.why}",
                               "install podman, or start it below systemd-run --user --scope -p MemoryMax=SIZE"
                               )  # fmt: skip
        for name in ("image", "image_family", "device", "network", "privileged", "selinux", "oci_runtime", "pull",
                     "engine_args", "keep_groups", "authfile", "tls_verify", "name", "detach"):  # fmt: skip
            given = self.request.given.get(name)
            # `--device none` asks for what is the case anyway.
            if given and not (name == "device" and self.settings.device.value == ("none",)):
                raise ValueProblem(f"{given.flag} needs a container engine, and {self.engine.why}",
                                   f"install podman, or leave {given.flag} out")  # fmt: skip

    def _refuse_what_embedded_lacks(self, arguments: tuple[str, ...]) -> None:
        from ramalama_like.runtimes.embedded import find_unsupported

        lacking = find_unsupported(arguments)
        if lacking:
            raise ValueProblem(f"the embedded server cannot honour {', '.join(lacking)}",
                               "install podman or llama.cpp's llama-server, or leave it out")  # fmt: skip

    # Why

    def _decisions(self, image: Image | None, container: Container | None, endpoint: Endpoint | None
                   ) -> tuple[tuple[str, str, str, str], ...]:  # fmt: skip
        settings, accelerator = self.settings, self.accelerator
        version = self.engine.version_text
        rows = [
            ("engine", f"{self.engine.kind} {version}".strip(), self.engine.why, settings.engine.origin),
            ("model", self.model.reference, self.model.why, "argument"),
            ("accelerator", f"{accelerator.backend} ({accelerator.name})", accelerator.why, accelerator.origin),
        ]
        rows += [(f"device {node}", "passed", how, "default") for node, how in accelerator.access]
        measured = self.situation.measured
        if measured:
            known = ", ".join(speed.backend for speed in measured.speeds)
            rows.append(("measured", known or "nothing", "; ".join((measured.why, *measured.notes)), "default"))
        if image:
            rows.append(("image", image.ref, image.why, image.origin))
        if container:
            default = "from the model's name and the port"
            rows.append(("name", self.name, default if settings.name.is_default else "as asked", settings.name.origin))
            why = "as asked" if settings.network.value else "nothing needs one" if container.network else "for the port"
            rows.append(("network", container.network or "the engine's default", why, settings.network.origin))
            rows += self._label_decision(container)
            rows.append(("pull", container.pull, "when the image is fetched", settings.pull.origin))
        if endpoint:
            why = "a Unix socket needs no network" if endpoint.socket else "published on this address only"
            rows.append(("api", endpoint.url, why, self.situation.port_origin))
        if self.fit:
            why = "; ".join(verdict_lines(self.fit)) or self.fit.verdict
            rows.append(("memory", fit_text(self.fit), why, "default"))
        rows.append(("threads", str(self.threads.count), self.threads.why, self.threads.origin))
        rows += [(name, _shown(setting), "as asked", setting.origin) for name, setting in self._other_settings()]
        return tuple(rows)

    def _label_decision(self, container: Container) -> list[tuple[str, str, str, str]]:
        if not self.facts.selinux:
            return []
        origin = self.settings.selinux.origin
        if container.security.separate_labels:
            return [("SELinux label", "container_t", "what is mounted is relabelled (z)", origin)]
        return [("SELinux label", "disabled", "so that models stay where and as they are; --selinux on keeps it",
                 origin)]  # fmt: skip

    def _other_settings(self) -> list[tuple[str, Setting[object]]]:
        told = ("backend", "gpu", "image", "name", "network", "pull", "port", "threads", "api_key")
        return [(name, setting) for name, setting in vars(self.settings).items()
                if name not in told and all_options()[name].group != "Program" and not setting.is_default]  # fmt: skip


def wants_socket(request: Request, settings: Settings, engine: EngineFacts, facts: HostFacts) -> bool:
    """Whether the API is best reached over a Unix socket: ``run`` with podman on Linux, unless a port was asked for.

    A port or host from a file is where ``serve`` goes; only a flag asks ``run`` for one.
    """
    if request.command != "run" or engine.kind != "podman" or facts.os != "linux":
        return False
    return settings.network.value in ("", "none") and not {"port", "host"} & set(request.given)


def socket_folder(runtime_dir: str, name: str) -> str:
    """The folder that holds the API's socket of the container ``name``."""
    return f"{runtime_dir}/{name}"


def _adapter_target(number: int) -> str:
    return f"{MODELS}/adapters/{number}.gguf"  # llama.cpp separates adapters by commas, which names may hold


def _refuse_commas(adapters: tuple[Adapter, ...]) -> None:
    for adapter in adapters:
        if "," in adapter.path or ":" in adapter.path:
            raise ValueProblem(f"--lora: {adapter.path}: llama.cpp takes no comma or colon in an adapter's path",
                               "rename the file, or make a link to it")  # fmt: skip


def _security(settings: Settings) -> Security:
    if settings.privileged.value:
        return Security(privileged=True, drop_capabilities=False, no_new_privileges=False, read_only_root=False,
                        separate_labels=settings.selinux.value)  # fmt: skip
    return Security(separate_labels=settings.selinux.value)


def _pairs(env: tuple[str, ...]) -> tuple[tuple[str, str | None], ...]:
    """``NAME=VALUE``, or ``NAME`` alone, which hands on the user's own variable without showing its value."""
    pairs: list[tuple[str, str | None]] = []
    for text in env:
        name, equals, rest = text.partition("=")
        if not name:
            raise ValueProblem(f"--env {text}: no name stands before the =", "write --env NAME=VALUE")
        pairs.append((name, rest if equals else None))
    return tuple(pairs)


def with_tools(image: Image) -> Image:
    """The image that also holds the tools, where a family has one image for the server and another for everything."""
    for row in load_table("engines")["entrypoint"]:
        if image.ref.startswith(row["prefix"]) and "instead" in row:
            ref = row["instead"] + image.ref[len(row["prefix"]) :]
            return replace(image, ref=ref, why=f"{image.why}, with the tools that {image.ref} lacks")
    return image


def words_after(ref: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """The words after the image, for images that start something by themselves."""
    for row in load_table("engines")["entrypoint"]:
        if ref.startswith(row["prefix"]):
            if command[0] not in row["words"]:
                raise NotBuiltYet(f"{ref} holds no {command[0]}", f"choose another image with --image: {row['other']}")
            word = row["words"][command[0]]
            return (*((word,) if word else ()), *command[1:])
    return command


def _shown(setting: Setting[object]) -> str:
    if isinstance(setting.value, tuple):
        return " ".join(map(str, setting.value))
    return plain_url(str(setting.value))  # a draft model may have an address
