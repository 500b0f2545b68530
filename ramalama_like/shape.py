"""The shape of a model: what decides how much memory it takes, read from its header.

Sizes are bytes, widths are numbers of elements. ``models/shapes.py`` fills it, ``memory.py`` counts with it.
"""

from __future__ import annotations

from ramalama_like.value import value


@value
class Layer:
    """One repeating layer (``blk.N`` in the file)."""

    weight_bytes: int  # all of its tensors
    expert_bytes: int  # those of them that hold its experts
    key_width: int  # elements of K in the context cache for each token; 0 where the layer has none
    value_width: int
    windowed: bool  # attends to a window of tokens only
    state_bytes: int  # of a recurrent layer, for each conversation, whatever its length


@value
class Shape:
    """A model's layers, and the widths that decide what a step of it takes."""

    layers: tuple[Layer, ...]
    input_bytes: int  # the embeddings of tokens, which stay in main memory
    output_bytes: int  # what comes after the last layer
    tied_bytes: int  # embeddings that are used again at the end, so that a device needs a copy of them
    trained_context: int  # tokens; 0: unknown
    vocabulary: int
    window: int  # tokens of the layers that attend to a window; 0: none do
    width: int  # of the embedding
    attention_width: int  # all heads of Q together, in the widest layer
    heads: int  # of Q, in the layer that has most
    forward_width: int  # of the feed-forward part, all experts that one token uses counted
    expert_output_width: int  # of the outputs of these experts before they are added up; 0 without experts
    recurrent_width: int  # of the state of recurrent layers; 0 without them

    @property
    def weight_bytes(self) -> int:
        """All tensors, as they lie in the file."""
        return self.input_bytes + self.output_bytes + sum(layer.weight_bytes for layer in self.layers)
