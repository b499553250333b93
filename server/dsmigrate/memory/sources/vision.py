"""Tensors of the Vision Transformer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsmigrate.memory.shape import Shape
from dsmigrate.memory.sources import decoder
from dsmigrate.memory.sources.config import ModelConfig
from dsmigrate.memory.sources.decoder import dense, linear
from dsmigrate.memory.sources.errors import ModelError


def tensors(config: ModelConfig) -> Iterator[int]:
    """Yield the elements of each tensor."""
    sizes, task = decoder.sizes_of(config), config.task or "Model"
    hidden, patch = sizes.hidden, config.positive("patch_size")
    yield hidden  # the token of the class
    yield (_patches(config) + 1) * hidden
    yield from linear(hidden, config.positive("num_channels") * patch**2, bias=True)
    for _ in range(sizes.layers):
        for _ in range(3):
            yield from linear(hidden, hidden, bias=config.flag("qkv_bias"))
        yield from linear(hidden, hidden, bias=True)
        yield from dense(hidden, sizes.inner, gated=False, bias=True)
        yield from (hidden,) * 4
    yield from (hidden, hidden)
    if task == "ForImageClassification":
        yield from linear(config.labels, hidden, bias=True)
    elif task == "Model":
        yield from linear(config.count("pooler_output_size", hidden), hidden, bias=True)
    else:
        raise ModelError(f"{config.where}: {task} of {config.type} is not known; give --params")


def shape(config: ModelConfig) -> Shape:
    """Return the dimensions that activations follow from: the image decides how many tokens there are."""
    return replace(decoder.shape(config), vocabulary=0, tokens=_patches(config) + 1, positions=None)


def _patches(config: ModelConfig) -> int:
    return (config.positive("image_size") // config.positive("patch_size")) ** 2
