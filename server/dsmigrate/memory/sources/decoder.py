"""Tensors of decoders: attention and MLP, block by block, with or without experts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.memory.shape import Shape
from dsmigrate.memory.sources.config import ModelConfig
from dsmigrate.memory.sources.errors import ModelError

_BY_HAND = frozenset({"gelu_new", "gelu_fast", "gelu_accurate", "quick_gelu"})
_LM = frozenset({"", "ForCausalLM", "LMHeadModel"})


@dataclass(frozen=True, slots=True)
class Sizes:
    """The dimensions that tensors of a block are products of."""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    head_size: int
    inner: int

    @property
    def queries(self) -> int:
        """The width of all heads together."""
        return self.heads * self.head_size

    @property
    def keys(self) -> int:
        """The width of the keys, and of the values."""
        return self.key_value_heads * self.head_size


def sizes_of(config: ModelConfig) -> Sizes:
    """Return the dimensions; raises ModelError where heads do not divide the width."""
    hidden, heads = config.positive("hidden_size"), config.positive("num_attention_heads")
    groups = config.positive("num_key_value_heads", heads) if config.trait("grouped") else heads
    groups = 1 if config.trait("one_kv_head") else groups
    if config.value("head_dim") is None and hidden % heads:
        raise ModelError(f"{config.where}: {heads} attention heads do not divide a hidden size of {hidden}")
    return Sizes(
        vocabulary=config.count("vocab_size", 0),
        hidden=hidden,
        layers=config.count("num_hidden_layers"),
        heads=heads,
        key_value_heads=groups,
        head_size=config.positive("head_dim", hidden // heads),
        inner=4 * hidden if config.trait("fixed_inner") else config.count("intermediate_size", 4 * hidden),
    )


def tensors(config: ModelConfig) -> Iterator[int]:
    """Yield the elements of each tensor; those that two modules share once."""
    sizes = sizes_of(config)
    embedded = config.count("word_embed_proj_dim", sizes.hidden)
    yield sizes.vocabulary * embedded
    if config.trait("learned_positions"):
        yield (config.positive("max_position_embeddings") + int(config.family.get("position_offset", 0))) * sizes.hidden
    if embedded != sizes.hidden:  # into the model, and out of it
        yield from (embedded * sizes.hidden, embedded * sizes.hidden)
    if config.trait("embedding_norm"):
        yield from _norm(config, sizes.hidden)
    for layer in range(sizes.layers):
        yield from _attention(config, sizes)
        yield from _mlp(config, sizes, layer)
        for _ in range(_norms(config)):
            yield from _norm(config, sizes.hidden)
    if _has_final_norm(config):
        yield from _norm(config, sizes.hidden)
    yield from head(config, sizes.vocabulary, embedded)


def shape(config: ModelConfig) -> Shape:
    """Return the dimensions that activations follow from; experts count as one MLP of those that a token passes."""
    sizes = sizes_of(config)
    inner = sizes.inner
    if "experts" in config.family:
        chosen = config.count(str(config.family["experts_per_token"]))
        inner = chosen * config.count(str(config.family["experts_size"])) + _shared(config)
    return Shape(
        layers=sizes.layers,
        hidden=sizes.hidden,
        heads=sizes.heads,
        key_value_heads=sizes.key_value_heads,
        head_size=sizes.head_size,
        inner=inner,
        gated=config.trait("gated"),
        kept_inner=kept_inner(config, gated=config.trait("gated")),
        vocabulary=sizes.vocabulary if config.task in _LM else 0,
        dropout=config.drops(),
        upcasts=config.trait("upcasts"),
        positions=config.count("max_position_embeddings", 0) or None,
    )


def kept_inner(config: ModelConfig, *, gated: bool) -> int:
    """Return the tensors of the inner width that an MLP keeps.

    The function's input and output; of ReLU the output alone, and five tensors of GELU where the library computes it
    by single operations (transformers/activations.py:NewGELUActivation). A gate adds a factor and a product.
    """
    of_function = 1 if config.activation == "relu" else 5 if config.activation in _BY_HAND else 2
    return of_function + 2 * gated


def head(config: ModelConfig, vocabulary: int, hidden: int) -> Iterator[int]:
    """Yield the tensors of the head that the class of the model has."""
    task = config.task
    if task in _LM:
        if not config.flag("tie_word_embeddings"):
            yield vocabulary * hidden
        if config.trait("head_bias"):
            yield vocabulary
    elif task == "ForSequenceClassification":
        yield config.labels * hidden
    elif task in {"ForTokenClassification", "ForQuestionAnswering"}:
        labels = 2 if task == "ForQuestionAnswering" else config.labels
        yield from (labels * hidden, labels)
    elif task != "Model":
        raise ModelError(f"{config.where}: {task} of {config.type} is not known; give --params")


def linear(rows: int, columns: int, *, bias: bool) -> Iterator[int]:
    """Yield the tensors of a linear layer."""
    yield rows * columns
    if bias:
        yield rows


def _attention(config: ModelConfig, sizes: Sizes) -> Iterator[int]:
    biased = config.trait("qkv_bias")
    if config.trait("fused_qkv"):
        yield from linear(sizes.queries + 2 * sizes.keys, sizes.hidden, bias=biased)
    else:
        for width in (sizes.queries, sizes.keys, sizes.keys):
            yield from linear(width, sizes.hidden, bias=biased)
    yield from linear(sizes.hidden, sizes.queries, bias=config.trait("out_bias"))
    kind = config.family.get("qk_norm")
    if kind == "head":
        yield from (sizes.head_size, sizes.head_size)
    elif kind == "whole" or config.flag("use_qk_norm"):
        yield from (sizes.queries, sizes.keys)
    elif config.flag("qk_layernorm"):
        raise ModelError(f"{config.where}: qk_layernorm of {config.type} is not known; give --params")
    if config.trait("sinks"):
        yield sizes.heads


def _mlp(config: ModelConfig, sizes: Sizes, layer: int) -> Iterator[int]:
    if "experts" in config.family and _is_sparse(config, layer):
        yield from _experts(config, sizes.hidden)
        return
    yield from dense(
        sizes.hidden,
        sizes.inner,
        gated=config.trait("gated"),
        fused=config.trait("fused_gate"),
        bias=config.trait("mlp_bias"),
    )


def dense(hidden: int, inner: int, *, gated: bool, fused: bool = False, bias: bool = False) -> Iterator[int]:
    """Yield the tensors of an MLP."""
    if gated and fused:
        yield from linear(2 * inner, hidden, bias=bias)
    else:
        for _ in range(1 + gated):
            yield from linear(inner, hidden, bias=bias)
    yield from linear(hidden, inner, bias=bias)


def _is_sparse(config: ModelConfig, layer: int) -> bool:
    """Return whether a block has experts (``decoder_sparse_step``, ``mlp_only_layers``)."""
    step = config.family.get("sparse_step")
    if step is None:
        return True
    every, dense_ones = config.count(str(step), 1), config.value("mlp_only_layers") or ()
    return every > 0 and (layer + 1) % every == 0 and layer not in dense_ones


def _experts(config: ModelConfig, hidden: int) -> Iterator[int]:
    """Yield router and experts, which are two tensors for all of them together."""
    count, inner = config.positive(str(config.family["experts"])), config.positive(str(config.family["experts_size"]))
    yield from linear(count, hidden, bias=config.trait("router_bias"))
    yield count * 2 * inner * hidden
    yield count * inner * hidden
    if config.trait("experts_bias"):
        yield from (count * 2 * inner, count * hidden)
    shared = _shared(config)
    if shared:
        yield from dense(hidden, shared, gated=True)
        if config.trait("shared_gate"):
            yield hidden


def _shared(config: ModelConfig) -> int:
    name = config.family.get("shared_size")
    return config.count(str(name)) if name else 0


def _norms(config: ModelConfig) -> int:
    if config.type == "stablelm" and config.flag("use_parallel_residual"):
        return 1
    return int(config.family.get("norms", 2))


def _has_final_norm(config: ModelConfig) -> bool:
    if config.type != "opt":
        return True
    return config.flag("do_layer_norm_before") and not config.flag("_remove_final_layer_norm")


def _norm(config: ModelConfig, width: int) -> Iterator[int]:
    if config.value("layer_norm_elementwise_affine") is False:
        return
    yield width
    if config.trait("norm_bias"):
        yield width
