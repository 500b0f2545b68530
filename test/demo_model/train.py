# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy", "gguf>=0.17"]
# ///
"""Train the demo model from scratch and write it as a GGUF file: `python test/demo_model/train.py [--out PATH]`.

One seed decides everything, so that the same machine and the same versions give the same file. Three things are
unusual, and each has a reason:

- The tokenizer below repeats llama.cpp's SPM merging step by step, so that training and inference see equal tokens.
- Tokens the model must never produce (bytes, roles, unknown) are banned by construction: channel 0 of the residual
  stream is a positive constant that only their output rows look at, with a large negative weight. Loose bytes would
  break UTF-8, which llama-server answers with an error. They remain fine as input.
- Questions are varied anew each time they are seen: spelling, case, synonyms, courtesy, turns before, system messages.
"""

from __future__ import annotations

import argparse
import heapq
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from demo_model import corpus  # the path above makes it importable from anywhere

SEED = 20260
DEFAULT_OUT = Path(__file__).resolve().parents[2] / "ramalama_like" / "data" / "demo" / "demo.gguf"

UNK, BOS, END, SYSTEM, USER, ASSISTANT = range(6)
SPECIAL = ("<unk>", "<s>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")
FIRST_BYTE = len(SPECIAL)
FIRST_PIECE = FIRST_BYTE + 256
SPACE = "\u2581"

VOCABULARY = 1280
WIDTH, LAYERS, HEADS, KV_HEADS, HEAD, FEED = 256, 3, 4, 2, 64, 512
EPSILON, ROPE_BASE, CONSTANT, BAN = 1e-5, 10000.0, 0.5, 2000.0
CONTEXT = 2048


# --- tokenizer ---------------------------------------------------------------------------------------------------


class Tokenizer:
    """SentencePiece-style merging as llama.cpp does it: the best-scored neighbours first, bytes for the rest."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces
        self.score = {piece: -float(rank) for rank, piece in enumerate(pieces)}
        self.id = {piece: FIRST_PIECE + rank for rank, piece in enumerate(pieces)}
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Encode plain text. No piece has a space inside, so each word with its leading space stands alone."""
        ids: list[int] = []
        for word in re.findall(f"{SPACE}?[^{SPACE}]*", text.replace(" ", SPACE)):
            if word:
                if word not in self._cache:
                    self._cache[word] = self._encode_word(word)
                ids += self._cache[word]
        return ids

    def _encode_word(self, word: str) -> list[int]:
        symbols: list[str] = list(word)
        right = [*range(1, len(symbols)), -1]
        left = [*range(-1, len(symbols) - 1)]
        queue: list[tuple[float, int, int, str]] = []

        def offer(a: int, b: int) -> None:
            if a >= 0 and b >= 0 and (merged := symbols[a] + symbols[b]) in self.score:
                heapq.heappush(queue, (-self.score[merged], a, b, merged))

        for index in range(len(symbols) - 1):
            offer(index, index + 1)
        while queue:
            _, a, b, merged = heapq.heappop(queue)
            if not symbols[a] or not symbols[b] or symbols[a] + symbols[b] != merged or right[a] != b:
                continue
            symbols[a], symbols[b] = merged, ""
            right[a] = right[b]
            if right[b] >= 0:
                left[right[b]] = a
            offer(left[a], a)
            offer(a, right[a])
        ids: list[int] = []
        for symbol in symbols:
            if symbol in self.id:
                ids.append(self.id[symbol])
            else:
                ids += [FIRST_BYTE + byte for byte in symbol.encode()]
        return ids


def learn_pieces(words: Counter[str], count: int) -> list[str]:
    """Byte-pair training on words: printable ASCII first, then the most frequent pairs of letters or of marks."""
    merged: list[str] = []
    known = {chr(code) for code in range(33, 127)} | {SPACE, "\n"}
    # The single characters come last: their rank is never compared, only merged pieces compete.
    split = {word: list(word) for word in words}
    while len(known) < count:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in split.items():
            for pair in pairwise(parts):
                pairs[pair] += words[word]
        candidates = [(-number, a, b) for (a, b), number in pairs.items() if "\n" not in a + b and a + b not in known]
        _, a, b = min(candidates)
        merged.append(a + b)
        known.add(a + b)
        for word, parts in split.items():
            if len(parts) > 1 and a + b in word:
                index, fresh = 0, []
                while index < len(parts):
                    if index + 1 < len(parts) and parts[index] == a and parts[index + 1] == b:
                        fresh.append(a + b)
                        index += 2
                    else:
                        fresh.append(parts[index])
                        index += 1
                split[word] = fresh
    return merged + sorted(known - set(merged))


def make_tokenizer() -> Tokenizer:
    """Learn the pieces from the answers (counted twice) and the questions, upper case at their beginning included."""
    words: Counter[str] = Counter()

    def count(text: str, weight: int) -> None:
        for word in re.findall(f"{SPACE}?[^{SPACE}]+", text.replace(" ", SPACE)):
            for part in re.findall(f"{SPACE}?[A-Za-z]+|{SPACE}?[^A-Za-z{SPACE}]+|{SPACE}", word):
                # A number in an answer shall be one token: digit by digit, a small model miscounts them.
                words[part] += 50 if weight == 2 and re.search(r"\d", part) else weight

    for answer in (*corpus.TOPIC_OF_ANSWER, *corpus.PLAIN_TEXT):
        count(answer, 2)
    for topic in corpus.TOPICS:
        for question in topic.questions:
            text = question.format(p="ramalama-like", m="model", g="gpu")
            count(" " + text, 3)
            count(" " + text.capitalize(), 1)
    for name in corpus.SLOTS["m"]:
        count(" " + name, 20)
    for group in (corpus.PREFIXES, *corpus.SYNONYMS, *corpus.SLOTS.values()):
        for text in group:
            count(" " + text, 1)
    return Tokenizer(learn_pieces(words, VOCABULARY - FIRST_PIECE))


# Sounds of made-up words: beginnings, middles and ends of syllables.
ONSETS = [*"bcdfghjklmnprstvwz", "br", "ch", "cl", "dr", "fl", "gr", "kr", "pl", "qu", "sh", "sk", "sp", "st", "tr"]
NUCLEI = [*"aeiouaeiou", "ai", "ea", "ee", "io", "oo", "ou", "y"]
CODAS = ["", "", "", *"nrlstmx", "ck", "nd", "st", "ng"]
SYNONYM_PATTERNS = [
    (group, re.compile(r"\b(" + "|".join(re.escape(word) for word in sorted(group, key=len, reverse=True)) + r")\b"))
    for group in corpus.SYNONYMS
]


# --- text --------------------------------------------------------------------------------------------------------


@dataclass
class Writer:
    """Writes varied questions and whole conversations; all chance comes from one generator."""

    random: random.Random
    variety: float = 0.8

    def made_up_word(self) -> str:
        """A word nobody knows, so that the model learns what not knowing looks like."""
        syllables = [
            self.random.choice(ONSETS) + self.random.choice(NUCLEI) + self.random.choice(CODAS)
            for _ in range(self.random.randint(1, 3))
        ]
        return "".join(syllables)

    def fill(self, text: str) -> str:
        """Put words into the slots of a question."""

        def word(match: re.Match[str]) -> str:
            name = match[1]
            if name == "word" or (name in ("noun", "name") and self.random.random() < 0.25):
                return self.made_up_word()
            if name == "act" and self.random.random() < 0.2:
                return f"{self.made_up_word()} {self.random.choice(['a', 'my', 'the'])} {self.made_up_word()}"
            if name == "words":
                return " ".join(self.made_up_word() for _ in range(self.random.randint(2, 5)))
            return self.random.choice(corpus.SLOTS[name])

        return re.sub(r"\{(\w+)\}", word, text)

    def misspell(self, text: str) -> str:
        """One slip of the finger in a longer word."""
        words = text.split(" ")
        long = [index for index, word in enumerate(words) if len(word) > 4 and word.isalpha()]
        if not long:
            return text
        where = self.random.choice(long)
        word = words[where]
        spot = self.random.randrange(1, len(word) - 1)
        words[where] = self.random.choice(
            [
                word[:spot] + word[spot + 1 :],
                word[:spot] + word[spot] + word[spot:],
                word[:spot] + word[spot + 1] + word[spot] + word[spot + 2 :],
                word[:spot] + self.random.choice("abcdefghijklmnopqrstuvwxyz") + word[spot + 1 :],
            ]
        )
        return " ".join(words)

    def vary(self, text: str) -> str:
        """Ask the same in another way."""
        chance = self.random.random
        if chance() < 0.5:
            groups = [(group, pattern) for group, pattern in SYNONYM_PATTERNS if pattern.search(text)]
            for group, pattern in self.random.sample(groups, min(len(groups), 1 + (chance() < 0.3))):
                new = self.random.choice(group)
                text = pattern.sub(new, text, count=1)
        if chance() < 0.12:
            small = list(re.finditer(r"\b(the|a|an|i|do|is|my|can|does|it|in|of|to) ", text))
            if small:
                gone = self.random.choice(small)
                text = text[: gone.start()] + text[gone.end() :]
        words = text.split(" ")
        if len(words) > 3 and chance() < 0.12:
            del words[self.random.randrange(len(words))]
        if len(words) > 2 and chance() < 0.12:
            words.insert(self.random.randrange(1, len(words) + 1), self.random.choice(corpus.FILLERS))
        text = " ".join(words)
        if chance() < 0.2:
            text = self.random.choice(corpus.PREFIXES) + text
        if chance() < 0.12:
            text += self.random.choice(corpus.SUFFIXES)
        return text

    def dress(self, text: str) -> str:
        """Case, marks and misspellings as people type them."""
        chance = self.random.random
        if chance() < 0.12:
            text = self.misspell(text)
        style = chance()
        if style < 0.5:
            text = text[:1].upper() + text[1:]
            text = re.sub(r"\bi\b", "I", text)
            if chance() < 0.5:
                text = re.sub(r"\b(gpu|api|cpu|json|amd|nvidia|cuda|rocm|gguf)\b", lambda m: m[0].upper(), text)
        elif style < 0.53:
            text = text.upper()
        elif style < 0.56:
            text = text.title()
        mark = chance()
        if mark < 0.6:
            text += "?"
        elif mark < 0.68:
            text += "."
        elif mark < 0.72:
            text += self.random.choice(["!", "??", " ?", "...", "!!", "?!"])
        return text

    def turn(self) -> tuple[str, str]:
        """One question with its answer."""
        kind = self.random.random()
        if kind < 0.13:
            text, answer = self.fill(self.random.choice(corpus.OFF_TOPIC)), corpus.FALLBACK
            if self.random.random() < 0.2:
                text = self.random.choice(corpus.PREFIXES) + text
        elif kind < 0.14:
            return corpus.FIXED_PROMPT, corpus.FIXED_ANSWER
        else:
            topic = self.random.choices(corpus.TOPICS, [min(len(topic.questions), 24) + 6 for topic in corpus.TOPICS])[
                0
            ]
            text, answer = self.fill(self.random.choice(topic.questions)), topic.answer
            if self.random.random() < self.variety:
                text = self.vary(text)
        return self.dress(text), answer

    def glimpse(self, tokenizer: Tokenizer) -> tuple[list[int], list[bool]]:
        """A question and the first words of its answer: choosing the answer is hard, continuing it is easy."""
        question, answer = self.turn()
        start = [BOS, USER, *self.blot(tokenizer.encode(" " + question)), END, ASSISTANT]
        begun = tokenizer.encode(answer)[: self.random.randint(3, 10)]
        return start + begun, [False] * len(start) + [True] * len(begun)

    def blot(self, tokens: list[int]) -> list[int]:
        """Now and then make a token unreadable, so that no single word decides alone."""
        share = 0.06 if self.random.random() < 0.4 else 0.0
        return [UNK if self.random.random() < share else token for token in tokens]

    def long_document(self, tokenizer: Tokenizer) -> tuple[list[int], list[bool]]:
        """A conversation that fills much of the context."""
        return self.document(tokenizer, self.random.choice([8, 16, 24, 32, 40]))

    def document(self, tokenizer: Tokenizer, turns: int = 0) -> tuple[list[int], list[bool]]:
        """A conversation or, now and then, running text; the flags mark the tokens to be learned."""
        ids, learn = [BOS], [False]

        def add(text: str, wanted: bool) -> None:
            fresh = tokenizer.encode(text)
            ids.extend(fresh)
            learn.extend([wanted] * len(fresh))

        def mark(token: int, wanted: bool = False) -> None:
            ids.append(token)
            learn.append(wanted)

        if self.random.random() < 0.03:
            paragraphs = self.random.sample(corpus.PLAIN_TEXT, self.random.randint(1, 5))
            add("\n\n".join(paragraphs) + "\n", True)
            return ids, learn
        if self.random.random() < 0.2:
            mark(SYSTEM)
            add(" " + self.dress(self.fill(self.random.choice(corpus.SYSTEM))), False)
            mark(END)
        for _ in range(turns or self.random.choice([1, 1, 1, 1, 2, 2, 3, 4, 6, 10])):
            question, answer = self.turn()
            mark(USER)
            fresh = tokenizer.encode(" " + question)
            ids.extend(self.blot(fresh))
            learn.extend([False] * len(fresh))
            mark(END)
            mark(ASSISTANT)
            add(answer, True)
            mark(END, True)
        return ids, learn


Shape = tuple[int, int]


@dataclass
class Batch:
    """Rows of several documents each; a document sees only itself."""

    ids: torch.Tensor
    target: torch.Tensor
    document: torch.Tensor


def make_batch(write: Callable[[Tokenizer], tuple[list[int], list[bool]]], tokenizer: Tokenizer, shape: Shape) -> Batch:
    """Fill each row with documents; the last one is cut."""
    rows, length = shape
    ids = np.zeros((rows, length), np.int64)
    target = np.full((rows, length), -100, np.int64)
    document = np.zeros((rows, length), np.int64)
    for row in range(rows):
        position, number = 0, 0
        while position < length:
            text, learn = write(tokenizer)
            size = min(len(text) - 1, length - position)
            ids[row, position : position + size] = text[:size]
            target[row, position : position + size] = [
                token if wanted else -100 for token, wanted in zip(text[1 : size + 1], learn[1 : size + 1], strict=True)
            ]
            document[row, position : position + size] = number
            position, number = position + size, number + 1
    return Batch(torch.from_numpy(ids), torch.from_numpy(target), torch.from_numpy(document))


# --- model -------------------------------------------------------------------------------------------------------


class Model:
    """The llama architecture with plain tensors, named as GGUF names them."""

    def __init__(self) -> None:
        shapes = {"token_embd": (VOCABULARY, WIDTH), "output": (VOCABULARY, WIDTH)}
        for layer in range(LAYERS):
            shapes |= {
                f"blk.{layer}.attn_q": (HEADS * HEAD, WIDTH),
                f"blk.{layer}.attn_k": (KV_HEADS * HEAD, WIDTH),
                f"blk.{layer}.attn_v": (KV_HEADS * HEAD, WIDTH),
                f"blk.{layer}.attn_output": (WIDTH, HEADS * HEAD),
                f"blk.{layer}.ffn_gate": (FEED, WIDTH),
                f"blk.{layer}.ffn_up": (FEED, WIDTH),
                f"blk.{layer}.ffn_down": (WIDTH, FEED),
            }
        self.weights: dict[str, torch.Tensor] = {}
        for name, shape in shapes.items():
            spread = 0.1 if name == "token_embd" else shape[1] ** -0.5 * (0.5 if "output" in name else 1.0)
            self.weights[name] = torch.randn(shape) * spread
        names = ["output_norm", *(f"blk.{layer}.{kind}_norm" for layer in range(LAYERS) for kind in ("attn", "ffn"))]
        self.weights |= {name: torch.ones(WIDTH) for name in names}
        for weight in self.weights.values():
            weight.requires_grad_(True)
        self.banned = torch.zeros(VOCABULARY, dtype=torch.bool)
        self.banned[:FIRST_PIECE] = True
        self.banned[END] = False
        self.hold_constant_channel()

    @torch.no_grad()
    def hold_constant_channel(self) -> None:
        """Channel 0 is written by the embedding alone, and read by no output row of a token that may be produced."""
        self.weights["token_embd"][:, 0] = CONSTANT
        self.weights["output"][:, 0] = 0.0
        self.weights["output_norm"][0] = 1.0
        for layer in range(LAYERS):
            self.weights[f"blk.{layer}.attn_output"][0] = 0.0
            self.weights[f"blk.{layer}.ffn_down"][0] = 0.0

    def forward(self, ids: torch.Tensor, document: torch.Tensor, dropout: float = 0.0) -> torch.Tensor:
        """The last hidden states."""
        w, (rows, length) = self.weights, ids.shape
        x = w["token_embd"][ids]
        same = document[:, None, :, None] == document[:, None, None, :]
        mask = same & torch.ones(length, length, dtype=torch.bool).tril()
        angle = torch.arange(length)[:, None] * ROPE_BASE ** (-torch.arange(0, HEAD, 2) / HEAD)
        cos, sin = angle.cos(), angle.sin()

        def rotate(t: torch.Tensor) -> torch.Tensor:
            even, odd = t[..., 0::2], t[..., 1::2]
            return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

        def heads(t: torch.Tensor, count: int) -> torch.Tensor:
            return t.view(rows, length, count, HEAD).transpose(1, 2)

        for layer in range(LAYERS):
            name = f"blk.{layer}."
            y = F.rms_norm(x, (WIDTH,), w[name + "attn_norm"], EPSILON)
            q = rotate(heads(y @ w[name + "attn_q"].T, HEADS))
            k = rotate(heads(y @ w[name + "attn_k"].T, KV_HEADS)).repeat_interleave(HEADS // KV_HEADS, 1)
            v = heads(y @ w[name + "attn_v"].T, KV_HEADS).repeat_interleave(HEADS // KV_HEADS, 1)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
            x = x + F.dropout(y @ w[name + "attn_output"].T, dropout)
            y = F.rms_norm(x, (WIDTH,), w[name + "ffn_norm"], EPSILON)
            y = F.silu(y @ w[name + "ffn_gate"].T) * (y @ w[name + "ffn_up"].T)
            x = x + F.dropout(y @ w[name + "ffn_down"].T, dropout)
        return F.rms_norm(x, (WIDTH,), w["output_norm"], EPSILON)

    def loss(self, batch: Batch, dropout: float) -> torch.Tensor:
        """Cross entropy over the answers; banned tokens take no part."""
        hidden = self.forward(batch.ids, batch.document, dropout)
        wanted = batch.target >= 0
        logits = hidden[wanted] @ self.weights["output"].T
        return F.cross_entropy(logits.masked_fill(self.banned, -1e4), batch.target[wanted])


class Muon:
    """Momentum with orthogonalised steps: needs about half as many steps as Adam for the inner matrices."""

    def __init__(self, weights: list[torch.Tensor], momentum: float = 0.95) -> None:
        self.weights, self.momentum = weights, momentum
        self.speed = [torch.zeros_like(weight) for weight in weights]

    @torch.no_grad()
    def step(self, rate: float, decay: float) -> None:
        """Move each matrix along the nearest orthogonal matrix of its gradient (Newton-Schulz iteration)."""
        for weight, speed in zip(self.weights, self.speed, strict=True):
            assert weight.grad is not None
            speed.mul_(self.momentum).add_(weight.grad)
            step = weight.grad + self.momentum * speed
            tall = step.shape[0] > step.shape[1]
            step = step.T if tall else step
            step = step / (step.norm() + 1e-7)
            for _ in range(5):
                square = step @ step.T
                step = 3.4445 * step + (-4.7750 * square + 2.0315 * square @ square) @ step
            step = step.T if tall else step
            weight.mul_(1 - rate * decay).add_(step, alpha=-rate * max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5)
            weight.grad = None


def train(model: Model, tokenizer: Tokenizer, steps: int) -> None:
    """Warm up, then let the rate fall to zero; first mostly beginnings, then whole answers."""
    writer = Writer(random.Random(SEED))
    inner = [weight for name, weight in model.weights.items() if name.startswith("blk") and weight.ndim == 2]
    outer = [weight for weight in model.weights.values() if not any(weight is other for other in inner)]
    muon = Muon(inner)
    adam = torch.optim.AdamW(outer, lr=1.0, betas=(0.9, 0.95), weight_decay=0.0)
    started, total = time.monotonic(), 0.0
    for step in range(steps):
        rate = min((step + 1) / 30, 1.0 - step / steps)
        if step == round(0.82 * steps):
            writer.variety = 0.5
        if step % 12 == 11:
            batch = make_batch(writer.long_document, tokenizer, (1, CONTEXT))
        elif step % 4 == 3 or step >= 0.82 * steps:
            batch = make_batch(writer.document, tokenizer, (5, 512))
        else:
            batch = make_batch(writer.glimpse, tokenizer, (20, 128))
        loss = model.loss(batch, 0.08)
        loss.backward()  # type: ignore[no-untyped-call]
        muon.step(0.02 * rate, 0.1)
        for group in adam.param_groups:
            group["lr"] = 0.004 * rate
        adam.step()
        adam.zero_grad()
        model.hold_constant_channel()
        total += loss.item()
        if step % 50 == 49:
            spent = time.monotonic() - started
            print(f"step {step + 1} of {steps}: loss {total / 50:.4f}, {spent:.0f} s", file=sys.stderr, flush=True)
            total = 0.0


# --- file --------------------------------------------------------------------------------------------------------


def write_gguf(model: Model, tokenizer: Tokenizer, out: Path) -> None:
    """Write weights, vocabulary, template and provenance."""
    writer: Any = gguf.GGUFWriter(str(out), "llama")
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name("ramalama_like demo")
    writer.add_author("the ramalama-like authors")
    writer.add_license("MIT")
    writer.add_description(
        "A very small language model that answers questions about ramalama-like; for tests and first steps. "
        "Trained from scratch on text written for it, by test/demo_model/train.py."
    )
    writer.add_languages(["en"])
    writer.add_string("ramalama_like.corpus_sha256", corpus.corpus_sha256())
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_vocab_size(VOCABULARY)

    kind = gguf.TokenType
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *tokenizer.pieces]
    types = [kind.UNKNOWN, *[kind.CONTROL] * (len(SPECIAL) - 1), *[kind.BYTE] * 256]
    types += [kind.NORMAL] * len(tokenizer.pieces)
    scores = [0.0] * FIRST_PIECE + [-float(rank) for rank in range(len(tokenizer.pieces))]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_unk_token_id(UNK)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(END)
    writer.add_eot_token_id(END)
    writer.add_pad_token_id(UNK)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(corpus.CHAT_TEMPLATE)

    weights = {name: weight.detach().numpy().copy() for name, weight in model.weights.items()}
    banned = model.banned.numpy()
    weights["output"][banned] = 0.0
    weights["output"][banned, 0] = -BAN
    q8 = gguf.GGMLQuantizationType.Q8_0
    for name, weight in weights.items():
        if weight.ndim == 1:
            writer.add_tensor(name + ".weight", weight.astype(np.float32))
        else:
            writer.add_tensor(name + ".weight", gguf.quants.quantize(weight, q8), raw_dtype=q8)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Train, then write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="where to write the model")
    parser.add_argument("--steps", type=int, default=1200, help="fewer steps for a quick try")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    tokenizer = make_tokenizer()
    model = Model()
    train(model, tokenizer, arguments.steps)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_gguf(model, tokenizer, arguments.out)
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
