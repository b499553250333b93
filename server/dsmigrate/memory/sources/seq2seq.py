"""Tensors of T5 and mT5: encoder, decoder with cross-attention, positions as a bias of the first block of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsmigrate.memory.shape import Shape
from dsmigrate.memory.sources import decoder
from dsmigrate.memory.sources.config import ModelConfig
from dsmigrate.memory.sources.decoder import Sizes, dense
from dsmigrate.memory.sources.errors import ModelError

_WORDS = frozenset({"", "ForConditionalGeneration"})


def tensors(config: ModelConfig) -> Iterator[int]:
    """Yield the elements of each tensor.

    The head is that of the embeddings whatever the config says (transformers/models/t5/configuration_t5.py:T5Config);
    before 5.0 ``tie_word_embeddings`` false gave it weights of its own.
    """
    sizes, task = decoder.sizes_of(config), config.task
    if task not in {*_WORDS, "Model", "EncoderModel"}:
        raise ModelError(f"{config.where}: {task} of {config.type} is not known; give --params")
    yield sizes.vocabulary * sizes.hidden
    stacks = ((sizes.layers, 1),) if task == "EncoderModel" else ((sizes.layers, 1), (_decoder_layers(config), 2))
    for layers, attentions in stacks:
        for layer in range(layers):
            for number in range(attentions):
                yield from (sizes.queries * sizes.hidden,) * 4
                if not layer and not number:
                    yield config.positive("relative_attention_num_buckets") * sizes.heads
                yield sizes.hidden
            yield from dense(sizes.hidden, sizes.inner, gated=_is_gated(config))
            yield sizes.hidden
        yield sizes.hidden


def shape(config: ModelConfig) -> Shape:
    """Return the dimensions that activations follow from; encoder and decoder take sequences of one length."""
    sizes: Sizes = decoder.sizes_of(config)
    more = 0 if config.task == "EncoderModel" else _decoder_layers(config)
    return replace(
        decoder.shape(config),
        layers=sizes.layers + more,
        cross=more,
        gated=_is_gated(config),
        kept_inner=4 if _is_gated(config) else 1,
        vocabulary=sizes.vocabulary if config.task in _WORDS else 0,
        positions=None,
        plain_loss=True,
    )


def _decoder_layers(config: ModelConfig) -> int:
    return config.count("num_decoder_layers", config.count("num_hidden_layers"))


def _is_gated(config: ModelConfig) -> bool:
    return str(config.value("feed_forward_proj")).startswith("gated")
