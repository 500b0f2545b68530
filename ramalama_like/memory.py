"""How much memory llama-server takes for a model, part by part: weights, context cache, buffers of a step.

Every formula is llama.cpp's (build 11669): the cache by reading src/llama-kv-cache.cpp, src/llama-kv-cache-iswa.cpp
and src/llama-memory-recurrent.cpp, the buffers of a step by measuring the "buffer size" lines that
``llama-server -lv 4`` prints for models of many shapes, on the CPU and on a Vulkan device. docs/fit.md has the table.
"""

from __future__ import annotations

from ramalama_like.memory_options import AUTO_SLOTS
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.memory_options import MemoryOptions
    from ramalama_like.shape import Layer, Shape

# Cache type -> elements and bytes of a block: ggml's type table.
CACHE_TYPES = {
    "f32": (1, 4), "f16": (1, 2), "bf16": (1, 2), "q8_0": (32, 34), "q4_0": (32, 18), "q4_1": (32, 20),
    "iq4_nl": (32, 18), "q5_0": (32, 22), "q5_1": (32, 24),
}  # fmt: skip
PADDING = 256  # tokens; llama.cpp rounds contexts and windows up to it
FLOAT = 4  # bytes; activations are 32-bit floats


@value
class Part:
    """Bytes in one place: a device, or main memory."""

    weights: int = 0
    cache: int = 0
    overhead: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.cache + self.overhead


@value
class Need:
    """What a model takes on the device (or all of its devices together) and in main memory."""

    device: Part
    main: Part


@value
class Cells:
    """The size of the context cache in tokens."""

    context: int  # of all conversations together
    each: int  # of one stream: shared by all slots, or one for each
    streams: int
    slots: int
    step: int  # tokens that are computed at once


def count_cells(shape: Shape, options: MemoryOptions, context: int = 0) -> Cells:
    """The cache for ``context`` tokens (0: those asked for, else the model's own).

    llama.cpp rounds up to 256. Slots share one cache where their number is left to the server; otherwise each has its
    share of what was asked for, or the whole context of the model where nothing was. A step holds no more tokens than
    a batch, or than were asked for.
    """
    slots = options.slots or AUTO_SLOTS
    shared = options.shared if options.shared is not None else not options.slots
    wanted = context or options.context or slots * options.slot_context
    step = max(1, min(options.step, options.batch, wanted or options.step))
    if shared:
        tokens = _padded(wanted or shape.trained_context)
        return Cells(tokens, tokens, 1, slots, step)
    each = _padded(-(-wanted // slots) if wanted else shape.trained_context)
    return Cells(each * slots, each, slots, slots, step)


def cache_bytes(shape: Shape, options: MemoryOptions, cells: Cells, layer: Layer) -> int:
    """One layer's context cache: K and V for each token, or the state of a recurrent layer for each slot.

    A layer that attends to a window keeps window (once for each slot that shares the cache) + step tokens, rounded up
    to 256, never more than a full layer does (llama-kv-cache-iswa.cpp).
    """
    tokens = _windowed_tokens(shape, options, cells) if layer.windowed else cells.each
    row = _row_bytes(options.key_type, layer.key_width) + _row_bytes(options.value_type, layer.value_width)
    return tokens * cells.streams * row + layer.state_bytes * cells.slots


def make_need(shape: Shape, options: MemoryOptions, cells: Cells, *, devices: int, layers: int = 0) -> Need:
    """What is taken with the last ``layers`` of the model on ``devices`` devices (0: only the CPU computes).

    llama.cpp puts the output on the device first and then the layers from the last to the first, so that a model of
    n layers has n + 1 to offload; the embeddings of tokens always stay in main memory.
    """
    count = len(shape.layers)
    first = max(0, count + 1 - layers) if devices else count  # the first layer on the device
    device_weights = shape.output_bytes + shape.tied_bytes if devices and layers else 0
    main_weights = shape.input_bytes + (0 if devices and layers else shape.output_bytes)
    device_cache = main_cache = 0
    for number, layer in enumerate(shape.layers):
        cache = cache_bytes(shape, options, cells, layer)
        if number >= first:
            kept = layer.expert_bytes if number < options.expert_layers else 0
            device_weights += layer.weight_bytes - kept
            main_weights += kept
        else:
            main_weights += layer.weight_bytes
        if number >= first and options.cache_on_device:
            device_cache += cache
        else:
            main_cache += cache
    answers = shape.vocabulary * cells.slots * FLOAT  # "output buffer": the scores of the next token for each slot
    masks = _mask_bytes(shape, options, cells)
    if not devices:
        return Need(Part(), Part(main_weights, main_cache, answers + masks + _step_bytes(shape, options, cells)))
    # The device has no need of the embeddings of tokens, main memory holds them and what is sent to and fro.
    device_step = _step_bytes(shape, options, cells) - cells.step * shape.width * FLOAT
    elsewhere = shape.layers[:first] if options.cache_on_device else shape.layers
    # Room for what it borrows of a layer whose cache is in main memory, while attending to it.
    moved = max((cache_bytes(shape, options, cells, layer) for layer in elsewhere), default=0)
    device_overhead = (masks + device_step + moved) * devices
    main_overhead = answers + masks + 4 * cells.step * shape.width * FLOAT
    return Need(Part(device_weights, device_cache, device_overhead), Part(main_weights, main_cache, main_overhead))


def _mask_bytes(shape: Shape, options: MemoryOptions, cells: Cells) -> int:
    """Which token sees which, for each token of a step: 16 bits with flash attention, else 32; one more for windows."""
    if not any(layer.key_width for layer in shape.layers):
        return 0
    tokens = cells.each if not all(layer.windowed for layer in shape.layers) else 0
    if shape.window:
        tokens += _windowed_tokens(shape, options, cells)
    return tokens * cells.step * (2 if options.flash else 4)


def _step_bytes(shape: Shape, options: MemoryOptions, cells: Cells) -> int:
    """What is alive at the worst moment of a step, in the layer where that is most. Measured, not derived:

    feed-forward: five widths of the embedding (residual, norms), three of the gate, up and product; where the outputs
    of the experts are wider than what becomes free, they come on top. Of the last layer only the answers are computed,
    so that a model of two layers needs two widths less, and one of a single layer has no such moment.
    attention with flash: three widths, Q twice (before and after rotation), K and V twice; two widths more where these
    are wider than the embedding.
    attention without: three widths, Q three times, K and V, and the scores of all heads for the whole cache.
    recurrent: five widths of the embedding and five of the state.
    """
    wide, layers = shape.width, len(shape.layers)
    gates, outputs = shape.forward_width, shape.expert_output_width
    forward = 0
    if layers > 1:
        forward = (5 if layers > 2 else 3) * wide + 3 * gates
        if outputs > 2 * gates:
            forward += outputs - (3 * gates if gates <= wide else 0)
    cached = max((max(layer.key_width, layer.value_width) for layer in shape.layers), default=0)
    if options.flash:
        attention = (5 if cached > wide else 3) * wide + 2 * (shape.attention_width + cached)
    else:
        attention = 3 * wide + 3 * shape.attention_width + 2 * cached + shape.heads * cells.each
    recurrent = 5 * (wide + shape.recurrent_width) if shape.recurrent_width else 0
    return max(forward, attention, recurrent) * cells.step * FLOAT


def _windowed_tokens(shape: Shape, options: MemoryOptions, cells: Cells) -> int:
    if options.whole_windows:
        return cells.each
    sharing = cells.slots if cells.streams == 1 else 1
    return _padded(min(cells.each, shape.window * sharing + cells.step))


def _row_bytes(kind: str, width: int) -> int:
    elements, size = CACHE_TYPES.get(kind, CACHE_TYPES["f16"])
    return -(-width // elements) * size


def _padded(tokens: int) -> int:
    return max(PADDING, -(-tokens // PADDING) * PADDING)
