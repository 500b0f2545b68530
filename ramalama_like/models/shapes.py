"""From a header to the shape of the model. What the header does not tell is unknown: then there is no shape.

Names of keys and tensors are those of the GGUF specification and of the ``gguf`` package's constants; what they mean
for the cache is llama.cpp's (src/llama-hparams.cpp: n_embd_k_gqa, n_embd_v_gqa, n_embd_r, n_embd_s; build 11669).
"""

from __future__ import annotations

from ramalama_like.data import load_table
from ramalama_like.shape import Layer, Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.models.gguf import GgufHeader

MOST_LAYERS = 1024  # llama.cpp allows 512
_MOST = 1 << 24  # of any width or count: more is nonsense
_MOST_TOKENS = 1 << 31  # of a context or a vocabulary: llama.cpp counts them with 32 bits
# Tensors that belong to the input side: llama.cpp looks rows up in them, in main memory.
_INPUTS = ("token_embd", "position_embd", "token_types", "per_layer_token_embd")


def make_shape(headers: Sequence[GgufHeader]) -> Shape | None:
    """The shape that the headers of all parts of a model tell; None where they do not tell enough."""
    keys = _Keys(headers[0])
    count, width = keys.number("block_count"), keys.number("embedding_length")
    weights = _Weights(count)
    for header in headers:
        weights.add(header.tensors)
    if not 0 < count <= MOST_LAYERS or not width or not any(weights.layers):
        return None
    windowed, window = _windows(keys, count)
    heads = keys.each("attention.head_count", count)
    head_width = keys.number("attention.key_length") or width // max(1, *heads)
    experts = min(keys.number("expert_used_count"), keys.number("expert_count"))
    expert_forward = keys.most("expert_feed_forward_length") or keys.most("feed_forward_length")
    forward = experts * expert_forward if experts else keys.most("feed_forward_length")
    tied = 0 if weights.has_output else weights.embedding_bytes
    return Shape(
        layers=_layers(keys, count, weights, windowed, heads, width), input_bytes=weights.input_bytes,
        output_bytes=weights.output_bytes, tied_bytes=tied, trained_context=keys.number("context_length"),
        vocabulary=headers[0].length("tokenizer.ggml.tokens") or keys.number("vocab_size"),
        window=window if any(windowed) else 0, width=width, attention_width=max(heads) * head_width, heads=max(heads),
        forward_width=forward, expert_output_width=experts * width, recurrent_width=keys.number("ssm.inner_size"),
    )  # fmt: skip


def trained_context(header: GgufHeader) -> int:
    """The tokens of context that a model was made for; 0 where its header does not tell a number that can be meant."""
    return _Keys(header).number("context_length")


class _Keys:
    """The metadata of one architecture, with numbers that cannot be meant taken as missing."""

    def __init__(self, header: GgufHeader) -> None:
        self.header = header
        self.architecture = header.text("general.architecture")

    def number(self, key: str) -> int:
        found = self.header.number(f"{self.architecture}.{key}")
        return found if 0 < found < (_MOST_TOKENS if key in ("context_length", "vocab_size") else _MOST) else 0

    def has(self, key: str) -> bool:
        return f"{self.architecture}.{key}" in self.header.metadata

    def array(self, key: str) -> tuple[int, ...]:
        found = self.header.arrays.get(f"{self.architecture}.{key}", ())
        return tuple(int(member) if 0 < member < _MOST else 0 for member in found)

    def each(self, key: str, count: int) -> tuple[int, ...]:
        """A number for each layer: an array, or one number for all of them."""
        found = self.array(key)[:count]
        return found + (0,) * (count - len(found)) if found else (self.number(key),) * count

    def most(self, key: str) -> int:
        return max((*self.array(key), self.number(key)))


class _Weights:
    """Bytes of tensors by where they belong."""

    def __init__(self, count: int) -> None:
        known = count if 0 < count <= MOST_LAYERS else 0
        self.layers = [0] * known
        self.experts = [0] * known
        self.kinds: list[set[str]] = [set() for _ in range(known)]
        self.input_bytes = self.output_bytes = self.embedding_bytes = 0
        self.has_output = False

    def add(self, tensors: Sequence[tuple[str, int]]) -> None:
        """Count the tensors of one part."""
        known = len(self.layers)
        for name, size in tensors:
            kind, _, rest = name.partition(".")
            if kind == "blk":
                number, _, rest = rest.partition(".")
                if number.isascii() and number.isdigit() and len(number) < 5 and int(number) < known:
                    layer = int(number)
                    self.layers[layer] += size
                    part = rest.partition(".")[0]
                    self.kinds[layer].add(part)
                    if "_exps" in part or "_chexps" in part:
                        self.experts[layer] += size
                    continue
            if kind in _INPUTS:
                self.input_bytes += size
                self.embedding_bytes += size if kind == "token_embd" else 0
            else:
                self.output_bytes += size
                self.has_output = self.has_output or kind == "output"


def _layers(
    keys: _Keys, count: int, weights: _Weights, windowed: Sequence[bool], heads: Sequence[int], width: int
) -> tuple[Layer, ...]:
    cached = min(_layers_with_cache(keys, count), count)
    cached_heads = keys.each("attention.head_count_kv", count) if keys.has("attention.head_count_kv") else heads
    usual = width // max(1, *heads)
    latent = keys.number("attention.key_length_mla") > 0
    key, val = keys.number("attention.key_length") or usual, keys.number("attention.value_length") or usual
    key_window = keys.number("attention.key_length_swa") or key
    val_window = keys.number("attention.value_length_swa") or val
    state_bytes = _state_bytes(keys, width, heads)
    found = []
    for number in range(count):
        kinds = weights.kinds[number]
        recurrent = any(kind.startswith(("ssm_", "shortconv", "time_mix")) for kind in kinds)
        attends = not recurrent or bool({"attn_k", "attn_kv_a_mqa"} & kinds)
        heads_here = cached_heads[number] if attends and number < cached else 0
        inside = windowed[number]
        # With latent attention (MLA) V is a part of K and has no cache of its own.
        found.append(Layer(
            weights.layers[number], weights.experts[number], heads_here * (key_window if inside else key),
            0 if latent else heads_here * (val_window if inside else val), inside, state_bytes if recurrent else 0,
        ))  # fmt: skip
    return tuple(found)


def _layers_with_cache(keys: _Keys, count: int) -> int:
    """How many layers, from the first, have a context cache of their own.

    The others share those of layers before them, or predict further tokens and are not used (MTP).
    """
    shared = keys.number("attention.shared_kv_layers")
    own: int = load_table("attention")["own_cache"].get(keys.architecture, count)
    return (count - shared if shared < count and shared else own) - keys.number("nextn_predict_layers")


def _windows(keys: _Keys, count: int) -> tuple[tuple[bool, ...], int]:
    """For each layer whether it attends to a window only, and the tokens of the window."""
    table, none = load_table("attention"), (False,) * count
    architecture = keys.architecture
    period = table["period"].get(architecture, 0)
    window = keys.number("attention.sliding_window")
    if not window and (not period or keys.has("attention.sliding_window")):
        return none, 0
    window = window or table["window"].get(architecture, 0)
    pattern = keys.array("attention.sliding_window_pattern")
    if pattern and window:
        return tuple(bool(member) for member in (*pattern[:count], *none[len(pattern) :])), window
    period = keys.number("attention.sliding_window_pattern") or period
    if not period or not window:
        return none, 0
    full = 0 if table["first_full"].get(architecture) else period - 1
    return tuple(number % period != full for number in range(count)), window


def _state_bytes(keys: _Keys, width: int, heads: Sequence[int]) -> int:
    """Bytes of a recurrent layer's state for one conversation: 32-bit floats of a convolution and of the state."""
    convolution = max(0, keys.number("ssm.conv_kernel") - 1)
    inner, state = keys.number("ssm.inner_size"), keys.number("ssm.state_size")
    if head := keys.number("wkv.head_size"):
        elements = (keys.number("token_shift_count") or 2) * width + width * head
    elif kernel := keys.number("shortconv.l_cache"):
        elements = width * (kernel - 1)
    elif head := keys.number("kda.head_dim"):
        elements = 3 * (convolution or 3) * max(heads) * head + head * head * max(heads)
    else:
        elements = convolution * (inner + 2 * keys.number("ssm.group_count") * state) + state * inner
    return 4 * elements
