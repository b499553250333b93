"""What forward keeps for backward, by published formulas; all of it is an estimate.

Per token and block, in 16 bit: "Reducing Activation Recomputation in Large Transformer Models" (arXiv:2205.05198),
section 4.1, comes to ``sbh(34 + 5as/h)`` for an MLP four times as wide with dropout. The terms are kept apart here, so
that grouped keys, gated MLPs and models without dropout follow. What an attention kernel as FlashAttention does not
keep, ``5as/h``, is what the paper's selective recomputation recomputes. With checkpointing of every block its input
stays, ``2sbh``, and one block is recomputed at a time. What the loss takes is measured: tests/e2e/loss_judge.py counts
the storages that are alive while it is computed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.memory.model import Over, Part, Place, Surety, What, When
from dsmigrate.memory.shape import Shape

_FP32 = 4


class Checkpointing(enum.Enum):
    """Which activations are kept."""

    NONE = "none"
    FULL = "full"
    """The input of every block."""
    HOST = "host"
    """The same in host memory (``activation_checkpointing.cpu_checkpointing``)."""


class Attention(enum.Enum):
    """How attention is computed."""

    FLASH = "flash"
    """By a kernel that keeps no scores: FlashAttention, or what ``sdpa`` of torch chooses in 16 bit."""
    EAGER = "eager"
    """By single operations, which keep the scores of all heads."""


class Loss(enum.Enum):
    """How the loss of a language model is computed, which decides how often its logits are there at a time."""

    UPCAST = "upcast"
    """Over logits in fp32, as Transformers does it since 4.46; the 16-bit logits stay as well."""
    SHIFTED = "shifted"
    """Over a shifted copy of logits in fp32, as Transformers did it before."""
    PLAIN = "plain"
    """``torch.nn.functional.cross_entropy`` of logits as they are."""
    CHUNKED = "chunked"
    """Of all logits, of which eight chunks are brought to fp32 one by one, as torchtune and torchtitan do it."""
    FUSED = "fused"
    """With the head in tiles, so that all logits are never there: Liger, Cut Cross Entropy, TiledFusedLogitsLoss."""


_CHUNKS = 8


@dataclass(frozen=True, slots=True)
class Workload:
    """What one rank works on at a time: samples of a micro-batch, tokens of a sample, and what is kept of them."""

    micro_batch: int = 1
    sequence: int = 2048
    checkpointing: Checkpointing = Checkpointing.NONE
    attention: Attention = Attention.FLASH
    loss: Loss | None = None
    """How the loss is computed; None as the class of the model does it in Transformers."""
    shared: int = 1
    """Ranks that share the tokens of a sample (Ulysses)."""

    def tokens(self, shape: Shape) -> int:
        """Return the tokens of a sample that the rank has, which the model may fix."""
        return shape.tokens or -(-self.sequence // self.shared)

    def computed(self, shape: Shape) -> Loss:
        """Return how the loss is computed for a model."""
        return self.loss or (Loss.PLAIN if shape.plain_loss else Loss.UPCAST)

    def answered(self, shape: Shape) -> int:
        """Return the tokens of a sample that logits are made for."""
        return self.tokens(shape) if shape.answer is None else min(self.sequence, shape.answer)


def activations(shape: Shape, work: Workload, width: int = 2, *, frozen: bool = False) -> Iterator[Part]:
    """Yield what activations take on a rank; ``width`` is bytes of an element of the weights, ``frozen`` their head."""
    tokens, said = work.micro_batch * work.tokens(shape), work.micro_batch * work.answered(shape)
    each = block_bytes(shape, work, width)
    blocks, crosses = shape.layers - shape.cross, shape.cross
    block, cross = tokens * each, said * (each + cross_bytes(shape, work, width))
    if work.checkpointing is Checkpointing.NONE:
        yield _part(round(blocks * block + crosses * cross), "activations of all blocks")
    else:
        place = Place.HOST if work.checkpointing is Checkpointing.HOST else Place.GPU
        inputs = (blocks * tokens + crosses * said) * width * shape.hidden
        yield _part(inputs, "the input of every block, kept for backward", place)
        says = "activations of the block that is computed again"
        yield _part(round(max(block, cross) if crosses else block), says, when=When.BACKWARD)
    yield _part(round(tokens * ends_bytes(shape, width)), "embeddings, the last norm and the input of the head")
    if shape.vocabulary:
        yield from _loss(shape, work, width, frozen=frozen)


def _loss(shape: Shape, work: Workload, width: int, *, frozen: bool) -> Iterator[Part]:
    """Yield what the loss takes at its peak, which is in its backward: logits in their formats, and their gradients."""
    tokens, words = work.micro_batch * work.answered(shape), shape.vocabulary
    kind, upcasts = work.computed(shape), width < _FP32
    if kind is Loss.FUSED:
        tile = min(tokens, 1 << (max(1, tokens * shape.hidden // words) - 1).bit_length())
        yield _part(tile * words * width, "logits of a tile", when=When.LOSS)
        yield _part(tokens * shape.hidden * width, "the gradient of the input of the head", when=When.LOSS)
        if not frozen:
            yield _part(words * shape.hidden * width, "the gradient of the head, beside its sum", when=When.LOSS)
        return
    logits = {Loss.PLAIN: width, Loss.SHIFTED: _FP32}.get(kind, width)
    yield _part(tokens * words * logits, f"logits in {logits * 8} bit", when=When.LOSS)
    if kind is Loss.CHUNKED:
        yield _part(tokens * words * _FP32, "log-probabilities in fp32", when=When.LOSS)
        if upcasts:
            yield _part(-(-tokens // _CHUNKS) * words * _FP32, "a chunk of the logits in fp32", when=When.LOSS)
        return
    wide = width if kind is Loss.PLAIN else _FP32
    yield _part(tokens * words * wide, f"log-probabilities in {wide * 8} bit", when=When.LOSS)
    yield _part(tokens * words * 2 * wide, "their gradient, and that of the logits", when=When.LOSS)


def block_bytes(shape: Shape, work: Workload, width: int = 2) -> float:
    """Return the bytes that a block keeps per token."""
    norms = 2 * norm_bytes(shape, width)
    mlp = width * shape.hidden + width * shape.kept_inner * shape.inner
    masks = shape.hidden if shape.dropout else 0  # one after attention is counted there
    return norms + attention_bytes(shape, work, width) + mlp + masks


def attention_bytes(shape: Shape, work: Workload, width: int = 2) -> float:
    """Return the bytes that attention keeps per token: its input, queries, keys, values, and what comes of them."""
    queries, keys = shape.heads * shape.head_size, shape.key_value_heads * shape.head_size
    kept = width * (shape.hidden + 2 * queries + 2 * keys) + (shape.hidden if shape.dropout else 0)
    if work.attention is Attention.FLASH:
        return kept + _FP32 * shape.heads  # one number per row of scores
    scores = width * (2 if shape.dropout else 1) + (1 if shape.dropout else 0) + (_FP32 if shape.upcasts else 0)
    return kept + scores * shape.heads * (shape.tokens or work.sequence)  # a share of the heads has all tokens


def cross_bytes(shape: Shape, work: Workload, width: int = 2) -> float:
    """Return the bytes that a block keeps per token for looking at the encoder: a norm and attention."""
    return norm_bytes(shape, width) + attention_bytes(shape, work, width)


def norm_bytes(shape: Shape, width: int = 2) -> int:
    """Return the bytes that a norm keeps per token: its input, in fp32 as well where it works so."""
    return (width + (_FP32 if shape.upcasts else 0)) * shape.hidden


def ends_bytes(shape: Shape, width: int = 2) -> float:
    """Return the bytes per token before the first block and behind the last."""
    head = width * shape.hidden if shape.vocabulary else 0
    return (shape.hidden if shape.dropout else 0) + norm_bytes(shape, width) + head


def _part(count: int, says: str, place: Place = Place.GPU, when: When = When.FORWARD) -> Part:
    kept = place is Place.HOST
    return Part(What.ACTIVATIONS, place, when, 1, Over.COUNT, count, says, Surety.ESTIMATE, pinned=kept)
