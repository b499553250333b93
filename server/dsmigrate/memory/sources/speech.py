"""Tensors of Whisper: convolutions over the sound, an encoder, and a decoder with cross-attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsmigrate.memory.shape import Shape
from dsmigrate.memory.sources import decoder
from dsmigrate.memory.sources.config import ModelConfig
from dsmigrate.memory.sources.decoder import dense, linear
from dsmigrate.memory.sources.errors import ModelError

_TASKS = frozenset({"", "ForConditionalGeneration", "Model"})


def tensors(config: ModelConfig) -> Iterator[int]:
    """Yield the elements of each tensor; keys have no bias, and the head is that of the embeddings."""
    if config.task not in _TASKS:
        raise ModelError(f"{config.where}: {config.task} of {config.type} is not known; give --params")
    hidden = config.positive("hidden_size")
    yield from linear(hidden, 3 * config.positive("num_mel_bins"), bias=True)
    yield from linear(hidden, 3 * hidden, bias=True)
    yield config.positive("max_source_positions") * hidden
    yield from _stack(config, config.count("num_hidden_layers"), "encoder_ffn_dim", attentions=1)
    yield config.positive("vocab_size") * hidden
    yield config.positive("max_target_positions") * hidden
    yield from _stack(config, config.count("decoder_layers"), "decoder_ffn_dim", attentions=2)
    if config.task != "Model" and not config.flag("tie_word_embeddings"):
        yield config.positive("vocab_size") * hidden


def shape(config: ModelConfig) -> Shape:
    """Return the dimensions that activations follow from: the encoder always hears 30 seconds."""
    crosses = config.count("decoder_layers")
    return replace(
        decoder.shape(config),
        layers=config.count("num_hidden_layers") + crosses,
        cross=crosses,
        vocabulary=config.positive("vocab_size") if config.task != "Model" else 0,
        positions=None,
        plain_loss=True,
        tokens=config.positive("max_source_positions"),
        answer=config.positive("max_target_positions"),
    )


def _stack(config: ModelConfig, layers: int, inner: str, *, attentions: int) -> Iterator[int]:
    hidden = config.positive("hidden_size")
    for _ in range(layers):
        for _ in range(attentions):
            for biased in (False, True, True, True):
                yield from linear(hidden, hidden, bias=biased)
            yield from (hidden, hidden)
        yield from dense(hidden, config.positive(inner), gated=False, bias=True)
        yield from (hidden, hidden)
    yield from (hidden, hidden)
