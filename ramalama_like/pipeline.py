"""From a request to a plan: the pipeline of docs/architecture.md, one stage after the other, each once.

Everything that looks at the world happens here and is handed to the planner as values.
"""

from __future__ import annotations

import os
import sys

from ramalama_like import planner, settings
from ramalama_like.accelerator import choose_accelerator, gpu_variables
from ramalama_like.cards import AUTO
from ramalama_like.errors import EngineError, ValueProblem
from ramalama_like.facts import EngineFacts
from ramalama_like.fit_words import refuse_unfit
from ramalama_like.models import resolve_model
from ramalama_like.models.lookup import MISSING
from ramalama_like.options import COMMANDS
from ramalama_like.plan import Adapter
from ramalama_like.probe import check_root, probe
from ramalama_like.probe.engine import ask_cdi_directories, probe_engine
from ramalama_like.probe.ports import find_free_port, port_is_free
from ramalama_like.probe.sockets import folder_is_free
from ramalama_like.request import Given
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.accelerator import Accelerator
    from ramalama_like.facts import HostFacts
    from ramalama_like.measured import Measured
    from ramalama_like.model import Model
    from ramalama_like.options import Settings
    from ramalama_like.plan import Plan
    from ramalama_like.request import Request
    from ramalama_like.settings import LoadedSettings

PORTS_TRIED = 100  # after the first one


@value
class Decided:
    """A plan, and what it was made from."""

    request: Request
    plan: Plan
    loaded: LoadedSettings
    facts: HostFacts


def decide(request: Request, *, engine: EngineFacts | None = None, pulled: bool = False, like: Decided | None = None
           ) -> Decided:  # fmt: skip
    """Everything up to the plan. Changes nothing. Raises AppError.

    ``engine`` is given where it is known already. ``pulled``: what had to be fetched is here by now. The models are
    those of ``like`` where that is given.
    """
    loaded = settings.load_settings(request)
    merged = loaded.settings
    facts = find_facts(merged)
    engine = engine or find_engine(merged, facts)
    if like:
        model, draft = like.plan.model, like.plan.draft
    else:
        model, draft = _find_models(request, merged, pulled=pulled)
    if len(request.arguments) > 1 and request.command == "serve":
        raise ValueProblem("several models cannot be served together yet", "start one server for each")
    _check_files(merged)
    situation = _situation(request, merged, facts, engine, model)
    plan = planner.make_plan(request, merged, facts, engine, model, draft, situation)
    return Decided(request, plan, loaded, facts)


def _find_models(request: Request, merged: Settings, *, pulled: bool) -> tuple[Model, Model | None]:
    """The model, and the draft model where there is one."""
    lookup = settings.find_lookup(merged)
    if pulled:
        lookup = replace(lookup, policy=MISSING)
    draft = merged.model_draft.value
    return resolve_model(request.model, lookup), resolve_model(draft, lookup) if draft else None


def find_facts(merged: Settings) -> HostFacts:
    """The facts of the machine that is decided for. Raises ValueProblem for a path that holds none."""
    other = merged.host_facts.value
    check_root(other)
    return probe(other or "/")


def find_accelerator(merged: Settings, facts: HostFacts, engine: EngineFacts) -> Accelerator:
    """The accelerator alone, for commands that make no plan. Raises ValueProblem."""
    return choose_accelerator(
        backend=merged.backend, devices=merged.device, keep_groups=merged.keep_groups, gpus=merged.gpu, facts=facts,
        engine=engine, family=merged.image_family.value,
        environment=settings.collect_gpu_environment(gpu_variables()),
    )  # fmt: skip


def _check_files(merged: Settings) -> None:
    """Refuse paths that lead nowhere, before an engine makes folders of them or fails in its own words."""
    for setting in (merged.file, merged.authfile, merged.chat_template):
        if setting.value and not os.path.isfile(setting.value):
            why = "is not a file" if os.path.exists(setting.value) else "does not exist"
            raise ValueProblem(f"{setting.origin}: {setting.value} {why}", "give the path of a file")
    slots = merged.slot_save_path
    if slots.value and not os.path.isdir(slots.value):
        raise ValueProblem(f"{slots.origin}: {slots.value} is not a folder", "make it first")
    if merged.embedding.value and merged.rerank.value:
        raise ValueProblem(f"{merged.embedding.origin} and {merged.rerank.origin} exclude each other", "choose one")
    log = merged.logfile
    if log.value and (os.path.isdir(log.value) or not os.path.isdir(os.path.dirname(log.value))):
        raise ValueProblem(f"{log.origin}: {log.value} cannot be written", "name a file in a folder that exists")


def find_adapters(merged: Settings) -> tuple[Adapter, ...]:
    """The adapters that were asked for: ``FILE`` or ``FILE:SCALE``. Raises ValueProblem."""
    found = []
    for text in merged.lora.value:
        path, scale = text, 1.0
        before, colon, after = text.rpartition(":")
        if colon and not os.path.exists(text):
            try:
                path, scale = before, float(after)
            except ValueError:
                path = text
        if not os.path.isfile(path) or scale - scale != 0:  # neither infinity nor NaN is a scale
            raise ValueProblem(f"{merged.lora.origin}: {text} is not an adapter's file", "write FILE or FILE:SCALE")
        found.append(Adapter(os.path.abspath(path), scale))
    return tuple(found)


def find_engine(merged: Settings, facts: HostFacts) -> EngineFacts:
    """The container engine that these settings ask for. Raises EngineError, TimedOut."""
    engine = probe_engine(
        merged.engine.value, contained=merged.container.value, in_toolbox=facts.in_container == "toolbox",
        find=settings.find_program, cache_dir=settings.user_cache_dir(), elsewhere=not facts.is_this_machine,
        timeout_s=merged.timeout.value,
    )  # fmt: skip
    if engine.kind == "docker" and facts.cdi and settings.find_program(engine.program):
        engine = replace(engine, cdi_directories=ask_cdi_directories(engine.program, merged.timeout.value))
    if engine.kind == "podman" and any(node.through_group for node in facts.nodes):
        engine = replace(engine, oci_runtime=_oci_runtime(merged, facts))
    return engine


def assume_engine(merged: Settings) -> EngineFacts:
    """A current engine of the kind that these settings ask for: in place of one that is missing or broken."""
    return probe_engine(
        merged.engine.value, contained=merged.container.value, in_toolbox=False, find=lambda _: "", cache_dir="",
        elsewhere=True, timeout_s=merged.timeout.value,
    )  # fmt: skip


def no_engine(why: str) -> EngineFacts:
    """What stands for an engine that cannot be asked."""
    return EngineFacts(kind="broken", why=why)


def _oci_runtime(merged: Settings, facts: HostFacts) -> str:
    if merged.oci_runtime.value or not facts.is_this_machine:
        return merged.oci_runtime.value
    from ramalama_like.probe.oci_runtime import probe_oci_runtime

    return probe_oci_runtime(settings.variable, settings.home_dir(), settings.find_program)


def split_backends(request: Request) -> tuple[Request, ...]:
    """One request for each back end where several were asked for, which only ``bench`` allows."""
    if request.command != "bench":
        return (request,)
    backend = settings.load_settings(request).settings.backend
    names = backend.value.split(",")
    if len(names) == 1:
        return (request,)
    return tuple(replace(request, given={**request.given, "backend": Given(name, backend.origin)}) for name in names)


def find_measured(merged: Settings, facts: HostFacts, engine: EngineFacts, model: Model) -> Measured | None:
    """What ``bench`` has measured on such a machine with a model of this size, where it may decide."""
    if merged.backend.value != AUTO or merged.benchmarks_disable.value or not model.size_bytes:
        return None
    path = settings.results_file(merged)
    if not os.path.exists(path):  # the usual case, which should cost nothing
        return None
    from time import gmtime, strftime

    from ramalama_like.measured import driver_keys, family_key, host_key, prefer
    from ramalama_like.result_store import recent_results

    family = family_key(family=merged.image_family.value, image=merged.image.value, native=engine.kind == "none")
    return prefer(recent_results(path), host=host_key(facts), drivers=driver_keys(facts), family=family,
                  size_bytes=model.size_bytes, now=strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()))  # fmt: skip


def check_executable(request: Request, decided: Decided) -> None:
    """Raise what forbids the execution of a plan that may well be shown."""
    plan = decided.plan
    required = decided.loaded.settings.require_gpu
    if required.value:
        from ramalama_like.proof import refuse_cpu_plan

        refuse_cpu_plan(plan.accelerator, required.origin)
    if COMMANDS[request.command].starts and not decided.facts.is_this_machine:
        raise ValueProblem("--host-facts decides for another machine, so nothing can be started",
                           "add --dryrun to see the commands")  # fmt: skip
    for model in (plan.model, plan.draft):
        if model and model.problem:
            raise ValueProblem(model.problem, model.hint, exit_code=model.exit_code)
    if not decided.loaded.settings.force.value:
        refuse_unfit(plan.fit, plan.model.reference)


def _situation(request: Request, merged: Settings, facts: HostFacts, engine: EngineFacts, model: Model
               ) -> planner.Situation:  # fmt: skip
    runtime_dir = settings.runtime_dir()
    if request.command in ("bench", "perplexity") or planner.wants_socket(request, merged, engine, facts):
        port, origin = _free_slot(runtime_dir, model.alias, merged.port.value, facts, request.passed_over), "default"
    else:
        port, origin = _choose_port(request, merged, facts)
    native = engine.kind == "none"
    return planner.Situation(
        port=port, port_origin=origin, runtime_dir=runtime_dir, program=own_program(),
        environment=settings.collect_gpu_environment(gpu_variables()),
        native_server=_native_server() if native and request.command in ("run", "serve") else ("llama-server",),
        native_tools=_native_tools() if native else {}, measured=find_measured(merged, facts, engine, model),
        adapters=find_adapters(merged),
    )  # fmt: skip


def _free_slot(runtime_dir: str, alias: str, first: int, facts: HostFacts, passed_over: tuple[int, ...]) -> int:
    # No port is opened; the number only keeps names apart: those of several conversations, and those of servers that
    # have a port.
    for port in range(first, min(first + PORTS_TRIED, 65535) + 1):
        if port in passed_over:
            continue
        folder = planner.socket_folder(runtime_dir, planner.container_name(alias, port))
        if not facts.is_this_machine or (folder_is_free(folder) and port_is_free("127.0.0.1", port)):
            return port
    return first


def _choose_port(request: Request, merged: Settings, facts: HostFacts) -> tuple[int, str]:
    first, host = merged.port.value, merged.host.value
    if not facts.is_this_machine:
        return first, merged.port.origin
    if "port" in request.given:
        if not port_is_free(host, first):
            raise ValueProblem(f"--port {first}: the port is taken on {host}",
                               "choose another one, or leave --port out for the next free one")  # fmt: skip
        return first, merged.port.origin
    port = find_free_port(first, min(first + PORTS_TRIED, 65535), host, request.passed_over)
    if port is None:
        raise ValueProblem(f"no port from {first} to {first + PORTS_TRIED} is free on {host}",
                           "choose one with --port, or check --host")  # fmt: skip
    return port, merged.port.origin if port == first else f"the first free one from {first}"


def _native_server() -> tuple[str, ...]:
    if settings.find_program("llama-server"):
        return ("llama-server",)
    from importlib.util import find_spec

    if find_spec("xllamacpp"):
        return (sys.executable, "-m", planner.EMBEDDED)
    raise EngineError("there is no container engine, no llama-server on PATH, and no embedded server",
                      "install podman, or: pip install 'ramalama-like[embedded]'")  # fmt: skip


def _native_tools() -> dict[str, str]:
    found = {name: settings.find_program(name) for name in ("llama-bench", "llama-perplexity")}
    return {name: path for name, path in found.items() if path}


def own_program() -> tuple[str, ...]:
    """How this very program can be started again, as short as is certain."""
    started = sys.argv[0]
    name = os.path.basename(started)
    if name == "ramalama-like":
        found = settings.find_program(name)
        if found and os.path.samefile(found, started):
            return (name,)
        return (os.path.abspath(started),)
    return (sys.executable, "-m", "ramalama_like")
