"""Tensors of BERT and its kin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsmigrate.memory.shape import Shape
from dsmigrate.memory.sources import decoder
from dsmigrate.memory.sources.config import ModelConfig
from dsmigrate.memory.sources.decoder import Sizes, dense, linear
from dsmigrate.memory.sources.errors import ModelError

_WORDS = frozenset({"ForMaskedLM", "ForPreTraining", "ForCausalLM", "LMHeadModel"})


def tensors(config: ModelConfig) -> Iterator[int]:
    """Yield the elements of each tensor."""
    sizes = decoder.sizes_of(config)
    yield sizes.vocabulary * sizes.hidden
    yield config.positive("max_position_embeddings") * sizes.hidden
    if config.kind != "distilbert":
        yield config.count("type_vocab_size") * sizes.hidden
    yield from _norm(sizes)
    for _ in range(sizes.layers):
        for _ in range(4):
            yield from linear(sizes.hidden, sizes.hidden, bias=True)
        yield from dense(sizes.hidden, sizes.inner, gated=False, bias=True)
        yield from (*_norm(sizes), *_norm(sizes))
    yield from _head(config, sizes)


def shape(config: ModelConfig) -> Shape:
    """Return the dimensions that activations follow from."""
    sizes = decoder.sizes_of(config)
    words = sizes.vocabulary if config.task in _WORDS else 0
    return replace(decoder.shape(config), vocabulary=words, plain_loss=True)


def _head(config: ModelConfig, sizes: Sizes) -> Iterator[int]:
    """Yield the pooler, which only some classes have, and the head."""
    task, kind, hidden = config.task or "Model", config.kind, sizes.hidden
    pools = {"Model", "ForPreTraining", "ForSequenceClassification"} if kind == "bert" else {"Model"}
    if kind != "distilbert" and task in pools:
        yield from linear(hidden, hidden, bias=True)
    if task in _WORDS and (task != "ForPreTraining" or kind == "bert"):
        yield from (*linear(hidden, hidden, bias=True), *_norm(sizes), sizes.vocabulary)
        if not config.flag("tie_word_embeddings"):
            yield sizes.vocabulary * hidden
            yield from () if kind == "distilbert" else (sizes.vocabulary,)  # a bias of its own, too
        if task == "ForPreTraining":
            yield from linear(2, hidden, bias=True)
    elif task == "ForSequenceClassification":
        if kind != "bert":  # a layer of its own in place of the pooler
            yield from linear(hidden, hidden, bias=True)
        yield from linear(config.labels, hidden, bias=True)
    elif task in {"ForTokenClassification", "ForQuestionAnswering"}:
        yield from linear(config.labels, hidden, bias=True)
    elif task != "Model":
        raise ModelError(f"{config.where}: {task} of {config.type} is not known; give --params")


def _norm(sizes: Sizes) -> tuple[int, int]:
    return sizes.hidden, sizes.hidden
