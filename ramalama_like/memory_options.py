"""What of a server's command line decides how much memory it takes, with llama-server's own defaults.

Defaults are those of ``llama-server --help`` (build 11669): four slots that share one cache (``-np`` auto), 16-bit
cache, batches of 2048 tokens computed in steps of 512, flash attention where the backend has it, and ``-fit on``, which
leaves 1024 MiB of a device free.
"""

from __future__ import annotations

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ramalama_like.options import Settings

MIB = 1 << 20
AUTO_SLOTS = 4
ALL_LAYERS = 1 << 20
_WITH_NUMBER = {
    "-c": "context", "--ctx-size": "context", "-np": "slots", "--parallel": "slots", "-b": "batch",
    "--batch-size": "batch", "-ub": "step", "--ubatch-size": "step", "-ncmoe": "expert_layers",
    "--n-cpu-moe": "expert_layers", "--kv-unified-per-slot": "slot_context", "-fitc": "least_context",
    "--fit-ctx": "least_context",
}  # fmt: skip
_WITH_WORD = {
    "-ctk": "key_type", "--cache-type-k": "key_type", "-ctv": "value_type", "--cache-type-v": "value_type",
    "-fa": "flash", "--flash-attn": "flash", "-fit": "adjusts", "--fit": "adjusts", "-ngl": "layers",
    "--gpu-layers": "layers", "--n-gpu-layers": "layers", "-fitt": "margin", "--fit-target": "margin",
}  # fmt: skip
_SWITCHES: Mapping[str, tuple[str, object]] = {
    "--swa-full": ("whole_windows", True), "-kvu": ("shared", True), "--kv-unified": ("shared", True),
    "-no-kvu": ("shared", False), "--no-kv-unified": ("shared", False), "-nkvo": ("cache_on_device", False),
    "--no-kv-offload": ("cache_on_device", False), "-kvo": ("cache_on_device", True),
    "--kv-offload": ("cache_on_device", True), "-cmoe": ("expert_layers", ALL_LAYERS),
    "--cpu-moe": ("expert_layers", ALL_LAYERS),
}  # fmt: skip


@value
class MemoryOptions:
    """How a server is started, as far as it decides about memory."""

    context: int = 0  # tokens that were asked for; 0: the model's own
    slots: int = 0  # conversations at the same time; 0: llama-server's choice
    slot_context: int = 0  # tokens of each slot, where that was asked for instead
    shared: bool | None = None  # one cache for all slots; None: where the number of slots is left to the server
    key_type: str = "f16"
    value_type: str = "f16"
    batch: int = 2048
    step: int = 512  # tokens that are computed at once
    flash: bool = True
    whole_windows: bool = False  # a full cache for layers that attend to a window only
    layers: int | None = None  # to be put on the device, the output counted as one; None: as many as fit
    expert_layers: int = 0  # whose experts stay in main memory
    cache_on_device: bool = True
    adjusts: bool = True  # the server shortens the context and moves layers until all fits
    least_context: int = 4096  # below which it does not shorten the context by itself
    margin_bytes: int = 1024 * MIB  # that it leaves free


def read_memory_options(settings: Settings, command: str) -> MemoryOptions:
    """The options of ``run``, ``serve``, ``bench`` and ``perplexity``. Words that make no sense are left to the server.

    llama-bench holds one conversation of 512 + 128 tokens, llama-perplexity four pieces of 512 (their ``--help``).
    """
    found: dict[str, object] = {"context": settings.ctx_size.value}
    if settings.ngl.value:
        found["layers"] = _layers(settings.ngl.value)
    if settings.ncmoe.value is not None:
        found["expert_layers"] = settings.ncmoe.value
    if command == "bench":
        found |= {"context": 512 + 128, "slots": 1, "adjusts": False}
    elif command == "perplexity":
        found |= {"context": max(2048, settings.ctx_size.value), "shared": True}
    read_words(settings.runtime_args.value, found)
    return MemoryOptions(**found)  # type: ignore[arg-type]


def read_words(words: Sequence[str], found: dict[str, object]) -> None:
    """Add what words for the server mean to the fields of ``MemoryOptions`` that are ``found`` already."""
    for place, given in enumerate(words):
        # llama.cpp takes underscores for dashes in long options, and the embedded server an equals sign too.
        word, equals, after = given.partition("=") if given.startswith("--") else (given, "", "")
        if word.startswith("--"):
            word = word.replace("_", "-")
        following = after if equals else words[place + 1] if place + 1 < len(words) else ""
        if word in _SWITCHES:
            name, meaning = _SWITCHES[word]
            found[name] = meaning
        elif word in _WITH_NUMBER and _is_number(following):
            # 0 is a context (the model's own) and a number of layers; elsewhere it makes no sense.
            if int(following) or _WITH_NUMBER[word] in ("context", "expert_layers"):
                found[_WITH_NUMBER[word]] = int(following)
        elif word in _WITH_WORD and following:
            _read_word(_WITH_WORD[word], following, found)


def _read_word(name: str, word: str, found: dict[str, object]) -> None:
    if name == "layers":
        found["layers"] = _layers(word)
    elif name == "margin":
        first = word.partition(",")[0]  # one for each device; the first speaks for all
        if _is_number(first):
            found["margin_bytes"] = int(first) * MIB
    elif name in ("flash", "adjusts"):
        found[name] = word not in ("off", "0", "false", "disabled")
    else:
        found[name] = word


def _layers(word: str) -> int | None:
    if word in ("all", "-1"):
        return ALL_LAYERS
    return int(word) if _is_number(word) else None


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10
