"""Looking at what ``doctor`` judges: one file for each subject, each with functions that return values of observed.py.

Unlike probing this asks programs and services, so every question has a short limit, and all are asked at once. None of
them raises but for Interrupted: what does not answer is an observation too.
"""

from __future__ import annotations

from threading import Thread
from time import monotonic, time
from typing import Generic, TypeVar

from ramalama_like.examine.account import examine_account
from ramalama_like.examine.engine import examine_engine, examine_image
from ramalama_like.examine.network import examine_hub, examine_registry, registry_of
from ramalama_like.examine.system import (
    examine_groups,
    examine_native_server,
    examine_ports,
    examine_provider,
    examine_proxies,
    examine_room,
    find_emulated,
    find_missing,
    find_system,
    measure_available_memory,
)
from ramalama_like.observed import EngineState, ImageState, Observed, Reply
from ramalama_like.probe.tree import Tree
from ramalama_like.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ramalama_like.facts import EngineFacts, HostFacts

ENGINE_PATIENCE_S = 10.0  # a cold podman on a slow disk takes seconds
NETWORK_PATIENCE_S = 1.3
GRACE_S = 0.1  # for starting to ask

T = TypeVar("T")


@value
class Wanted:
    """What is to be looked at."""

    engine: EngineFacts
    facts: HostFacts
    image: str  # reference; empty: none is needed
    nodes: tuple[str, ...]  # device nodes that the plan passes
    store: str  # folder
    host: str
    first_port: int
    last_port: int
    pulls: bool  # whether the registry may be asked for the image
    verify: bool = True  # its certificate


def examine(wanted: Wanted) -> Observed:
    """Look at everything at once. Raises only Interrupted."""
    engine, tree = wanted.engine, Tree("/")
    asks_engine, asks_registry = bool(engine.program), bool(wanted.image and wanted.pulls)
    hub = _Question(lambda: examine_hub(NETWORK_PATIENCE_S), NETWORK_PATIENCE_S)
    state = asks_engine and _Question(lambda: examine_engine(engine, ENGINE_PATIENCE_S), ENGINE_PATIENCE_S)
    image = asks_engine and wanted.image and _Question(
        lambda: examine_image(engine, wanted.image, ENGINE_PATIENCE_S), ENGINE_PATIENCE_S
    )  # fmt: skip
    registry = asks_registry and _Question(
        lambda: examine_registry(wanted.image, NETWORK_PATIENCE_S, engine.kind, wanted.verify), NETWORK_PATIENCE_S
    )
    port_free, next_port = examine_ports(wanted.host, wanted.first_port, wanted.last_port)
    engine_state = state.answer(EngineState("no answer in time")) if state else None
    late = Reply("", problem="no answer in time")
    hub_reply, token, token_problem = hub.answer((late, "", ""))
    images = engine_state.image_folder if engine_state else ""
    return Observed(
        now=time(),
        engine=engine_state,
        image=image.answer(ImageState(present=False, problem="no answer in time")) if image else None,
        account=examine_account(tree) if engine.kind == "podman" and engine.rootless else None,
        registry=registry.answer(replace(late, address=registry_of(wanted.image))) if registry else None,
        hub=hub_reply,
        hub_token=token,
        hub_token_problem=token_problem,
        store=examine_room(wanted.store),
        images=examine_room(images) if images else None,
        memory_available_bytes=measure_available_memory(tree),
        port_free=port_free,
        next_port=next_port,
        proxies=examine_proxies(),
        machine_provider=examine_provider(tree) if wanted.facts.os == "darwin" else "",
        groups=examine_groups(tree, wanted.facts),
        missing_nodes=find_missing(wanted.nodes),
        emulated=find_emulated(tree),
        system=find_system(tree),
        server=examine_native_server() if engine.kind == "none" else "",
    )


class _Question(Generic[T]):
    """A question that is asked beside others. One that hangs for longer than its own limit is left behind: looking a
    name up knows no limit."""

    def __init__(self, ask: Callable[[], T], patience_s: float) -> None:
        self._answers: list[T] = []
        self._deadline = monotonic() + patience_s + GRACE_S
        self._thread = Thread(target=lambda: self._answers.append(ask()), daemon=True)
        self._thread.start()

    def answer(self, late: T) -> T:
        """The answer, or ``late`` where it did not come in time."""
        self._thread.join(max(0.0, self._deadline - monotonic()))
        return self._answers[0] if self._answers else late
