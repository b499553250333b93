"""Tensors of Falcon, whose attention has three forms: of 7B, of 40B and later, and of RefinedWeb 1B."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsmigrate.memory.shape import Shape
from dsmigrate.memory.sources import decoder
from dsmigrate.memory.sources.config import ModelConfig
from dsmigrate.memory.sources.decoder import Sizes, dense, linear


def tensors(config: ModelConfig) -> Iterator[int]:
    """Yield the elements of each tensor."""
    sizes, biased = _sizes(config), config.flag("bias")
    yield sizes.vocabulary * sizes.hidden
    for _ in range(sizes.layers):
        yield from linear(sizes.queries + 2 * sizes.keys, sizes.hidden, bias=biased)
        yield from linear(sizes.hidden, sizes.hidden, bias=biased)
        yield from dense(sizes.hidden, sizes.inner, gated=False, bias=biased)
        for _ in range(_norms(config)):
            yield from (sizes.hidden, sizes.hidden)
    yield from (sizes.hidden, sizes.hidden)
    yield from decoder.head(config, sizes.vocabulary, sizes.hidden)


def shape(config: ModelConfig) -> Shape:
    """Return the dimensions that activations follow from."""
    sizes = _sizes(config)
    found = decoder.shape(config)
    return replace(found, key_value_heads=sizes.key_value_heads, inner=sizes.inner)


def _sizes(config: ModelConfig) -> Sizes:
    sizes = decoder.sizes_of(config)
    if config.flag("new_decoder_architecture"):
        return sizes
    return replace(sizes, key_value_heads=1 if config.flag("multi_query") else sizes.heads)


def _norms(config: ModelConfig) -> int:
    """Return the norms of a block (transformers/models/falcon/modeling_falcon.py:FalconDecoderLayer)."""
    if config.flag("new_decoder_architecture"):
        return config.count("num_ln_in_parallel_attn", 2)
    return 1 if config.flag("parallel_attn") else 2
