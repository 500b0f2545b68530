"""The verdict: what fits where, what the command prints, and what is refused before anything starts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import HOSTS, Recorder, Result, error_text, gguf_bytes, gguf_pair, gguf_tensor, language_model, run_cli
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like import fit as fitting
from ramalama_like.accelerator import Accelerator
from ramalama_like.facts import Gpu, HostFacts
from ramalama_like.fit import Fit, Place, device_place, main_place, make_fit
from ramalama_like.fit_words import fit_text, size_text, verdict_lines
from ramalama_like.memory import Part, count_cells, make_need
from ramalama_like.memory_options import ALL_LAYERS, MemoryOptions
from ramalama_like.probe import probe
from ramalama_like.shape import Layer, Shape
from ramalama_like.value import replace

Install = Callable[..., Recorder]
MIB, GIB = 1 << 20, 1 << 30


def shape(layers: int = 32, *, experts: int = 0, context: int = 131072, layer_mib: int = 128) -> Shape:
    """A model like those of 8 billion parameters: 1024 elements of K and V each, 128 MiB in each layer."""
    layer = Layer(layer_mib * MIB, experts * MIB, 1024, 1024, windowed=False, state_bytes=0)
    return Shape(
        (layer,) * layers, input_bytes=256 * MIB, output_bytes=256 * MIB, tied_bytes=0, trained_context=context,
        vocabulary=128256, window=0, width=4096, attention_width=4096, heads=32, forward_width=14336,
        expert_output_width=0, recurrent_width=0,
    )  # fmt: skip


def card(gib: float) -> Place:
    return Place("Card", "vulkan", 1, int(gib * GIB), int(gib * GIB))


def look(place: Place, options: MemoryOptions, *, memory_gib: int | None = 64, model: Shape | None = None) -> Fit:
    memory = None if memory_gib is None else memory_gib * GIB
    return make_fit([model or shape()], options, place, HostFacts(memory_bytes=memory))


# Each token takes 128 KiB of cache (32 layers, 2 x 1024 elements of 16 bits) and 1 KiB of masks, a step 116 MiB on a
# card and 124 MiB on the CPU; the weights take 4352 MiB on a card and 4608 MiB on the CPU. 1024 MiB are left free.
AUTO = MemoryOptions()
ASKED = MemoryOptions(context=131072)
# Place, options and main memory in GiB; verdict, longest context, layers, and what people are told.
VERDICTS: dict[str, tuple[Place, MemoryOptions, int | None, tuple[str, int | None, int | None], str]] = {
    "all of it": (card(24), AUTO, 64, ("fits", None, None), ""),
    "a shorter context": (
        card(12), AUTO, 64, ("fits with a shorter context", 53760, 33),
        "The server shortens the context of 131072 tokens to about 53760",
    ),
    "some layers": (
        card(4), AUTO, 64, ("fits partly", 0, 19),
        "19 of 33 layers fit on it; the rest is computed in main memory"
        " The server shortens the context of 131072 tokens to about 4096",
    ),
    "some layers of what was asked for": (
        card(12), ASKED, 64, ("fits partly", 53760, 17),
        "17 of 33 layers fit on it; the rest is computed in main memory",
    ),
    "the context was asked for": (
        card(4), ASKED, 8, ("the context is too long", 0, 4),
        "A context of 131072 tokens does not fit; not even the shortest does",
    ),
    "the layers were asked for": (
        card(4), MemoryOptions(layers=ALL_LAYERS), 64, ("too many layers", 0, 19),
        "Only 19 of 33 layers fit on it: leave --ngl out, or give --ngl 19",
    ),
    "few layers were asked for": (card(4), MemoryOptions(layers=5, context=8192), 64, ("fits", None, None), ""),
    "nowhere": (card(2), AUTO, 2, ("does not fit", 0, 5), ""),
    "an unknown device": (Place("Card", "cuda", 1, None, None), AUTO, 1, ("unknown", None, None), ""),
    "unknown main memory": (
        card(2), AUTO, None, ("fits partly", 0, 5),
        "5 of 33 layers fit on it; the rest is computed in main memory"
        " The server shortens the context of 131072 tokens to about 4096",
    ),
    "the CPU": (main_place(HostFacts(memory_bytes=64 * GIB)), AUTO, 64, ("fits", None, None), ""),
    "a shorter context on the CPU": (
        main_place(HostFacts(memory_bytes=8 * GIB)), AUTO, 8, ("fits with a shorter context", 19200, None),
        "The server shortens the context of 131072 tokens to about 19200",
    ),
    "too long for the CPU": (
        main_place(HostFacts(memory_bytes=8 * GIB)), ASKED, 8, ("the context is too long", 27392, None),
        "A context of 131072 tokens does not fit; --ctx-size 27392 does",
    ),
    "not on the CPU": (main_place(HostFacts(memory_bytes=4 * GIB)), AUTO, 4, ("does not fit", 0, None), ""),
    "less than is left free on the CPU": (
        main_place(HostFacts(memory_bytes=int(5.5 * GIB))), AUTO, None,
        ("fits with a shorter context", 0, None), "The server shortens the context of 131072 tokens to about 4096",
    ),
    "nothing to shorten on the CPU": (
        main_place(HostFacts(memory_bytes=int(5.5 * GIB))), MemoryOptions(context=4096, layers=3), None,
        ("fits", None, None), "",
    ),
    "main memory is unknown": (main_place(HostFacts()), AUTO, None, ("unknown", None, None), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name: str) -> None:
    place, options, memory, verdict, told = VERDICTS[name]
    found = look(place, options, memory_gib=memory)
    assert ((found.verdict, found.fitting_context, found.fitting_layers), " ".join(verdict_lines(found))) == (
        verdict,
        told,
    )


def test_the_figures_of_a_device() -> None:
    found = look(card(24), AUTO)
    weights, cache = (32 * 128 + 256) * MIB, 131072 * 32 * 2048 * 2
    assert (found.weights_bytes, found.cache_bytes) == (weights, cache)
    masks, step = 131072 * 512 * 2, (4 * 4096 + 3 * 14336) * 512 * 4
    assert found.overhead_bytes == masks + step
    assert found.main_bytes == 256 * MIB + masks + 4 * 4096 * 512 * 4 + 128256 * 4 * 4
    assert (found.context, found.context_asked, found.layers) == (131072, False, 33)
    assert fit_text(found) == "20.5 GiB (weights 4.2, context 16.0, overhead 0.2) of 24.0 GiB on Card"


def test_experts_can_stay_in_main_memory() -> None:
    found = look(card(6), MemoryOptions(context=4096), model=shape(experts=160, layer_mib=256))
    assert (found.verdict, found.fitting_layers, found.expert_layers) == ("fits partly", 18, 25)
    assert verdict_lines(found)[1:] == ("With --ncmoe 25 only experts would have to stay in main memory",)


@given(
    gib=st.floats(0.5, 40), memory=st.integers(1, 64), context=st.sampled_from([0, 300, 4096, 50000]),
    layers=st.sampled_from([None, 0, 7, ALL_LAYERS]), devices=st.integers(0, 2), experts=st.sampled_from([0, 100]),
    slots=st.integers(0, 3),
)  # fmt: skip
def test_what_fits_is_the_most_that_fits(
    gib: float, memory: int, context: int, layers: int | None, devices: int, experts: int, slots: int
) -> None:
    size = int(gib * GIB)
    place = Place("x", "vulkan", devices, size, size) if devices else Place("x", "cpu", 0, memory * GIB, 0)
    options, facts = MemoryOptions(context=context, layers=layers, slots=slots), HostFacts(memory_bytes=memory * GIB)
    model = shape(experts=experts)
    found = make_fit([model], options, place, facts, thorough=True)
    inside = fitting._Look([model], options, place, facts.memory_bytes, 0)

    def fits(tokens: int) -> bool:
        return inside.has_room(inside.need(tokens, inside.layers))

    assert found.fitting_context is not None
    assert found.fitting_context == 0 or fits(found.fitting_context)
    assert found.fitting_context >= max(found.context, model.trained_context) or not fits(found.fitting_context + 256)
    if place.devices:
        assert (found.verdict == "fits") == fits(found.context)
    else:
        assert found.verdict == "fits" or not fits(found.context)
    if found.verdict == "does not fit":
        least, capacity = found.least, found.capacity_bytes
        assert least is not None
        assert capacity is not None
        assert least.total > capacity
    if devices:
        assert found.fitting_layers is not None
        assert 0 <= found.fitting_layers <= 33


@given(
    slots=st.integers(0, 5), context=st.integers(0, 10000), shared=st.sampled_from([None, True, False]),
    layers=st.integers(0, 40), whole=st.booleans(),
)  # fmt: skip
def test_nothing_is_lost_between_device_and_main_memory(
    slots: int, context: int, shared: bool | None, layers: int, whole: bool
) -> None:
    options = MemoryOptions(context=context, slots=slots, shared=shared, whole_windows=whole, expert_layers=3)
    model = shape(experts=50)
    cells = count_cells(model, options)
    alone = make_need(model, options, cells, devices=0)
    both = make_need(model, options, cells, devices=1, layers=layers)
    assert alone.device == Part()
    assert both.device.weights + both.main.weights == alone.main.weights == model.weight_bytes
    assert both.device.cache + both.main.cache == alone.main.cache
    assert cells.context >= max(context, 1)
    assert cells.context == cells.each * cells.streams
    assert cells.each % 256 == 0


# Places.


def accelerator(*cards: Gpu, backend: str = "vulkan") -> Accelerator:
    return Accelerator(backend, "Something", "because", "default", cards=cards)


def test_places() -> None:
    own = Gpu("amd", pci_address="0000:03:00.0", name="RX", vram_bytes=24 * GIB, shared_bytes=32 * GIB)
    inside = Gpu("amd", gfx="gfx1150", vram_bytes=GIB, shared_bytes=24 * GIB, integrated=True)
    known, unknown = Gpu("nvidia", name="NVIDIA GeForce RTX 4090"), Gpu("nvidia", name="NVIDIA GeForce RTX 3060")
    told, by_name = "told by the driver", "known by the card's name"
    assert device_place(accelerator(backend="cpu")) is None
    assert device_place(accelerator()) == Place("Something", "vulkan", 1, None, None, "unknown")
    assert device_place(accelerator(own)) == Place("RX", "vulkan", 1, 24 * GIB, 24 * GIB, told)
    assert device_place(accelerator(own, own)) == Place("2 cards (RX)", "vulkan", 2, 48 * GIB, 48 * GIB, told)
    assert device_place(accelerator(inside)) == Place("AMD Radeon (gfx1150)", "vulkan", 1, 25 * GIB, GIB, told)
    assert device_place(accelerator(known)) == Place(known.name, "vulkan", 1, 24 * GIB, 24 * GIB, by_name)
    assert device_place(accelerator(unknown)) == Place(unknown.name, "vulkan", 1, None, None, "unknown")
    assert device_place(accelerator(own, unknown)) == Place(
        "2 cards (RX and NVIDIA GeForce RTX 3060)", "vulkan", 2, None, None, "unknown"
    )


def test_memory_that_a_card_shares_is_counted_once() -> None:
    place = Place("APU", "vulkan", 1, 25 * GIB, GIB)
    found = make_fit([shape(layer_mib=768)], AUTO, place, HostFacts(memory_bytes=23 * GIB))
    # 24.5 GiB of weights would fit into 25 GiB of the card's, but most of these are the same 23 GiB.
    assert (found.capacity_bytes, found.verdict) == (24 * GIB, "does not fit")


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 MiB"), (340 * MIB, "340 MiB"), (GIB, "1.0 GiB"), (5478000000, "5.1 GiB")]
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


# The command.


def write_big(path: Path, *, layers: int = 32, layer_mib: int = 128, context: int = 131072) -> str:
    """A file that takes no room on disk, and whose header is that of ``shape()``."""
    pairs = [gguf_pair("general.architecture", "text", "llama")]
    numbers = {"block_count": layers, "embedding_length": 4096, "context_length": context, "vocab_size": 128256,
               "feed_forward_length": 14336, "attention.head_count": 32, "attention.head_count_kv": 8}  # fmt: skip
    pairs += [gguf_pair(f"llama.{key}", "u32", number) for key, number in numbers.items()]
    sizes = {"token_embd.weight": 256 * MIB, "output.weight": 256 * MIB}
    for number in range(layers):
        sizes |= {f"blk.{number}.attn_k.weight": 28 * MIB, f"blk.{number}.ffn_up.weight": (layer_mib - 28) * MIB}
    tensors, offset = [], 0
    for name, size in sizes.items():
        tensors.append(gguf_tensor(name, [size // 4], 0, offset))
        offset += size
    path.write_bytes(gguf_bytes(*pairs, tensors=tensors))
    os.truncate(path, path.stat().st_size + offset)
    return str(path)


@pytest.fixture
def big(world: Path) -> str:
    (world / "models").mkdir()
    return write_big(world / "models" / "big.gguf")


def test_the_table_of_a_machine(big: str) -> None:
    assert run_cli("fit", big, "--engine", "none", "--host-facts", str(HOSTS / "radeon-890m"), "-c", "16000") == Result(
        0,
        "big: 32 layers, context of 16128 tokens, made for 131072, cache f16\n"
        "\n"
        "AMD Radeon (gfx1150), vulkan\n"
        "  weights            4.2 GiB\n"
        "  context cache      2.0 GiB\n"
        "  overhead           132 MiB\n"
        "  total              6.3 GiB\n"
        "  memory usable      24.5 GiB\n"
        "  in main memory     306 MiB\n"
        "  verdict            fits\n"
        "  context that fits  131072 tokens (the model's most)\n"
        "  layers that fit    33 of 33\n"
        "\n"
        "CPU\n"
        "  weights            4.5 GiB\n"
        "  context cache      2.0 GiB\n"
        "  overhead           142 MiB\n"
        "  total              6.6 GiB\n"
        "  memory usable      46.9 GiB\n"
        "  verdict            fits\n"
        "  context that fits  131072 tokens (the model's most)\n",
        "",
    )


@pytest.mark.parametrize("options", [[], ["--backend", "cpu"], ["--backend", "vulkan"], ["-c", "9"], ["--ngl", "all"]])
@pytest.mark.parametrize("host", ["no-gpu", "radeon-890m", "rtx-4090", "two-mi300x", "rx-7900-xtx-and-igpu"])
def test_the_table_is_narrow_and_json_says_the_same(host: str, options: list[str], big: str) -> None:
    line = ["fit", big, "--engine", "none", "--host-facts", str(HOSTS / host), *options]
    table, document = run_cli(*line), run_cli(*line, "--json")
    assert (table.code, document.code) == (0, 0)
    assert max(map(len, table.out.splitlines())) <= 80
    places = json.loads(document.out)["places"]
    blocks = table.out.split("\n\n")[1:]
    assert len(places) == len(blocks)
    for place, block in zip(places, blocks, strict=True):
        rows = dict(line.strip().split("  ", 1) for line in block.splitlines()[1:] if "  " in line.strip())
        assert {key: text.strip() for key, text in rows.items()}["total"] == size_text(place["total_bytes"])
        assert block.splitlines()[0].startswith(place["name"])
        assert place["total_bytes"] == place["weights_bytes"] + place["cache_bytes"] + place["overhead_bytes"]


def test_what_fits_nowhere_ends_with_22(world: Path) -> None:
    (world / "models").mkdir()
    path = write_big(world / "models" / "huge.gguf", layer_mib=4096)
    done = run_cli("fit", path, "--engine", "none", "--host-facts", str(HOSTS / "radeon-890m"))
    assert (done.code, done.out.count("  verdict            does not fit\n"), done.err) == (22, 2, "")


def test_server_arguments_count(big: str) -> None:
    def cache(*words: str) -> int:
        done = run_cli("fit", big, "--engine", "none", "--host-facts", str(HOSTS / "no-gpu"), "--json", *words)
        (place,) = json.loads(done.out)["places"]
        size: int = place["cache_bytes"]
        return size

    whole = 131072 * 32 * 2048
    assert cache() == whole * 2
    assert cache("--runtime-args", "-ctk q8_0 --cache-type-v=q8_0") == whole * 34 // 32
    assert cache("--runtime-args", "--cache_type_k q4_0") == whole + whole * 18 // 64
    assert cache("--runtime-args", "-np 2 -c 5000") == 5120 * 32 * 2048 * 2
    assert cache("-c", "5000", "--runtime-args", "-c 300") == 512 * 32 * 2048 * 2


def test_what_cannot_be_measured(world: Path) -> None:
    (world / "models").mkdir()
    path = world / "models" / "small.gguf"
    path.write_bytes(language_model())
    assert run_cli("fit", str(path)) == Result(22, "", error_text(
        f"{path}: the header does not tell how much memory the model needs",
        "only language models in GGUF can be measured",
    ))  # fmt: skip
    assert run_cli("--offline", "fit", "hf://a/b") == Result(5, "", error_text(
        "hf://a/b: is not on this machine, and nothing is fetched while offline",
        "leave out --offline, and unset HF_HUB_OFFLINE",
    ))  # fmt: skip


# Starting.


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is one with 4 GiB of memory and no card."""
    facts = replace(probe(str(HOSTS / "no-gpu")), root="/", memory_bytes=4 * GIB)
    monkeypatch.setattr("ramalama_like.pipeline.probe", lambda _root: facts)


NEEDS = ("needs at least 5.1 GiB (weights 4.5, context 0.5, overhead 0.1), and main memory holds 4.0 GiB",
         "choose a smaller model or quantization, or try it all the same with --force")  # fmt: skip


@pytest.mark.usefixtures("small_machine")
@pytest.mark.parametrize("command", ["run", "serve", "bench", "perplexity"])
def test_a_model_that_cannot_fit_is_refused_before_anything_starts(
    command: str, fake_engine: Install, big: str
) -> None:
    recorder = fake_engine("podman-4.9")
    line = [command, big, *(["--file", __file__] if command == "perplexity" else [])]
    refused = run_cli(*line)
    assert (refused.code, recorder.take()) == (22, [])
    if command == "serve":
        assert refused == Result(22, "", error_text(f"{big} {NEEDS[0]}", NEEDS[1]))
    assert run_cli(*line, "--force").err != refused.err
    assert len(recorder.take_runs()) == 1
    dry = run_cli("--dryrun", *line)
    assert (dry.code, dry.out.count("\n")) == (0, 2 if command == "run" else 1)
    note = f"Note: {big} does not fit into memory, so only --force would start it\n"
    assert (note in dry.err, recorder.take_runs()) == (True, [])


@pytest.mark.usefixtures("small_machine")
def test_the_plan_tells(fake_engine: Install, big: str, world: Path) -> None:
    fake_engine("podman-4.9")
    small = write_big(world / "models" / "small.gguf", layers=16, layer_mib=96)
    plan = json.loads(run_cli("--dryrun=json", "serve", small).out)
    text = "10.2 GiB (weights 2.0, context 8.0, overhead 0.2) of 4.0 GiB on CPU"
    told = "The server shortens the context of 131072 tokens to about 14080"
    assert plan["decisions"]["memory"] == {"value": text, "why": told, "origin": "default"}
    assert f"memory: {text}\n    why: {told}\n" in run_cli("explain", "serve", small).out
    started = run_cli("serve", small, "-q")
    assert "Needs" not in started.err
    started = run_cli("serve", small)
    assert started.err.startswith(f"Needs {text}\n{told}\n")
    assert run_cli("explain", "serve", big).out.count("    why: does not fit\n") == 1


@pytest.mark.usefixtures("small_machine")
def test_no_claim_where_nothing_is_known(fake_engine: Install, world: Path) -> None:
    recorder = fake_engine("podman-4.9")
    (world / "models").mkdir()
    (world / "models" / "x.gguf").write_bytes(language_model())
    done = run_cli("serve", f"{world}/models/x.gguf")
    assert ("Needs" in done.err, len(recorder.take_runs())) == (False, 1)


@pytest.mark.usefixtures("small_machine")
def test_a_draft_model_and_a_projector_count(fake_engine: Install, world: Path) -> None:
    fake_engine("podman-4.9")
    (world / "models").mkdir()
    (world / "drafts").mkdir()
    small = write_big(world / "models" / "small.gguf", layers=16, layer_mib=96, context=4096)
    draft = write_big(world / "drafts" / "draft.gguf", layers=4, layer_mib=32, context=4096)

    def weights(*line: str) -> str:
        plan = json.loads(run_cli("--dryrun=json", "serve", *line).out)
        text: str = plan["decisions"]["memory"]["value"]
        return text.partition(" of ")[0]

    assert weights(small) == "2.4 GiB (weights 2.0, context 0.2, overhead 0.1)"
    assert weights(small, "--model-draft", draft) == "3.2 GiB (weights 2.6, context 0.3, overhead 0.3)"
    projector = world / "models" / "mmproj-small-f16.gguf"
    projector.write_bytes(gguf_bytes(gguf_pair("general.architecture", "text", "clip")))
    os.truncate(projector, GIB)
    assert weights(small) == "3.4 GiB (weights 3.0, context 0.2, overhead 0.1)"


def test_a_short_context_is_not_shortened_on_the_cpu() -> None:
    """As llama-server says then: which is <= the min. context size of 4096 -> no change."""
    place = main_place(HostFacts(memory_bytes=6 * GIB))
    found = look(place, AUTO, memory_gib=6, model=shape(context=4096))
    assert (found.verdict, found.served_context, found.fitting_context, verdict_lines(found)) == (
        "fits",
        4096,
        4096,
        (),
    )
