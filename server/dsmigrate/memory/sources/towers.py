"""Tensors of models that see: a tower for images, a projection, and a decoder of another family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dsmigrate.memory.shape import Shape
from dsmigrate.memory.sources import decoder
from dsmigrate.memory.sources.config import ModelConfig
from dsmigrate.memory.sources.decoder import dense, linear
from dsmigrate.memory.sources.errors import ModelError

_TASKS = frozenset({"", "ForConditionalGeneration", "Model"})


def tensors(config: ModelConfig) -> Iterator[int]:
    """Yield the elements of each tensor of the whole model."""
    if config.task not in _TASKS:
        raise ModelError(f"{config.where}: {config.task} of {config.type} is not known; give --params")
    vision, text = _vision(config), _text(config)
    if vision.type == "siglip_vision_model":
        yield from tower(vision)
        yield vision.positive("hidden_size") * text.positive("hidden_size")
        yield vision.positive("hidden_size")
    else:
        yield from _merging(vision)
    yield from decoder.tensors(text)


def shape(config: ModelConfig) -> Shape:
    """Return the dimensions of the decoder, which activations follow from."""
    return decoder.shape(_text(config))


def tower(config: ModelConfig) -> Iterator[int]:
    """Yield the tensors of SigLIP: patches, positions, blocks, and a head that pools by attention."""
    if config.task not in {"", "Model"}:
        raise ModelError(f"{config.where}: {config.task} of {config.type} is not known; give --params")
    hidden, inner, patch = (config.positive(name) for name in ("hidden_size", "intermediate_size", "patch_size"))
    yield from linear(hidden, config.positive("num_channels") * patch**2, bias=True)
    yield (config.positive("image_size") // patch) ** 2 * hidden
    for _ in range(config.count("num_hidden_layers")):
        for _ in range(4):
            yield from linear(hidden, hidden, bias=True)
        yield from dense(hidden, inner, gated=False, bias=True)
        yield from (hidden,) * 4
    yield from (hidden, hidden)
    if config.flag("vision_use_head"):
        yield hidden
        yield from linear(3 * hidden, hidden, bias=True)
        yield from linear(hidden, hidden, bias=True)
        yield from (hidden, hidden)
        yield from dense(hidden, inner, gated=False, bias=True)


def tower_shape(config: ModelConfig) -> Shape:
    """Return the dimensions of a tower alone: the image decides how many tokens there are."""
    patches = (config.positive("image_size") // config.positive("patch_size")) ** 2
    return replace(decoder.shape(config), vocabulary=0, tokens=patches, positions=None)


def _merging(config: ModelConfig) -> Iterator[int]:
    """Yield the tensors of Qwen's tower, whose patches are merged on the way out."""
    hidden, inner = config.positive("hidden_size"), config.count("intermediate_size", 0)
    inner = inner or config.positive("mlp_ratio") * hidden
    norm = (hidden, hidden) if config.trait("norm_bias") else (hidden,)
    frames, patch = config.positive("temporal_patch_size"), config.positive("patch_size")
    yield hidden * config.positive("num_channels") * frames * patch**2
    for _ in range(config.count("num_hidden_layers")):
        yield from linear(3 * hidden, hidden, bias=True)
        yield from linear(hidden, hidden, bias=True)
        yield from dense(hidden, inner, gated=config.trait("gated"), bias=True)
        yield from (*norm, *norm)
    merged = hidden * config.positive("spatial_merge_size") ** 2
    yield from norm
    yield from linear(merged, merged, bias=True)
    yield from linear(config.positive("out_size"), merged, bias=True)


def _vision(config: ModelConfig) -> ModelConfig:
    return ModelConfig(_part(config, "vision_config") | {"model_type": config.family["vision"]}, config.where)


def _text(config: ModelConfig) -> ModelConfig:
    """Return the config of the decoder, whose values Qwen's files before Transformers 4.52 have at the top."""
    values = _part(config, "text_config") or (dict(config.values) if config.trait("flat") else {})
    task = "Model" if config.task == "Model" else "ForCausalLM"
    tied = {name: value for name, value in config.values.items() if name == "tie_word_embeddings"}
    return ModelConfig(values | tied | {"model_type": config.family["text"], "architectures": [task]}, config.where)


def _part(config: ModelConfig, name: str) -> dict[str, Any]:
    found = config.values.get(name)
    return dict(found) if isinstance(found, Mapping) else {}
