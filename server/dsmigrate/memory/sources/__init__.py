"""Where a model is described: a ``config.json``, .safetensors files, a folder with both, or a number of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dsmigrate.files.paths import resolved
from dsmigrate.memory.model import Model
from dsmigrate.memory.shape import WHOLE, Described, Shape
from dsmigrate.memory.sources import decoder, encoder, falcon, latent, safetensors, seq2seq, speech, towers, vision
from dsmigrate.memory.sources.config import ModelConfig, base_of, families, load
from dsmigrate.memory.sources.errors import ModelError
from dsmigrate.memory.sources.typical import typical

__all__ = ["ModelError", "described", "shaped", "typical"]

_BUILDERS = {
    "decoder": (decoder.tensors, decoder.shape),
    "encoder": (encoder.tensors, encoder.shape),
    "falcon": (falcon.tensors, falcon.shape),
    "latent": (latent.tensors, latent.shape),
    "seeing": (towers.tensors, towers.shape),
    "seq2seq": (seq2seq.tensors, seq2seq.shape),
    "speech": (speech.tensors, speech.shape),
    "tower": (towers.tower, towers.tower_shape),
    "vision": (vision.tensors, vision.shape),
}
_INDEX = "model.safetensors.index.json"
_WEIGHTS = "model.safetensors"


def described(path: Path) -> Described:
    """Return the model that a file or folder describes; raises ModelError with the place of what is wrong.

    ``path`` is a ``config.json``, a ``.safetensors`` file or its index, or a folder with one of them. Beside weights
    the config gives the shape; beside a config of a family that is not known the weights give the tensors.
    """
    config, weights = _found(path)
    if config is None and weights is None:
        raise ModelError(f"{path}: no config.json, {_WEIGHTS} or {_INDEX} there")
    values = load(config) if config is not None else None
    if values is not None and str(values.get("model_type")) in families():
        return _from_config(values, str(config), weights if path.is_dir() else None)
    if weights is None:
        assert values is not None  # noqa: S101 - one of the two is there
        ModelConfig(values, str(config))  # says what is not known
    assert weights is not None  # noqa: S101 - as above
    return _from_weights(weights, values)


def _found(path: Path) -> tuple[Path | None, Path | None]:
    """Return the config and the weights, as far as they are there."""
    if path.is_dir():
        weights = next((path / name for name in (_INDEX, _WEIGHTS) if (path / name).is_file()), None)
        config = path / "config.json"
        return config if config.is_file() else None, weights
    if not path.exists():
        raise ModelError(f"{path}: no such file or folder")
    if path.name.endswith((".safetensors", ".safetensors.index.json")):
        config = path.parent / "config.json"
        return config if config.is_file() else None, path
    return path, None


def _from_config(values: Mapping[str, Any], where: str, weights: Path | None) -> Described:
    config = ModelConfig(values, where)
    if config.family["builder"] not in _BUILDERS:
        raise ModelError(f"{where}: {config.type} is a part of a model, and none itself")
    tensors, shape = _BUILDERS[str(config.family["builder"])]
    model = Model.of(tensors(config))
    if not model.parameters:
        raise ModelError(f"{where}: a model without parameters")
    notes = [WHOLE]
    if "vision" in config.family:
        notes.append("Activations are those of the decoder: its tokens are words and images, the tower is not counted.")
    if "quantization_config" in values:
        notes.append("quantization_config: weights that train are counted in 16 bit, not as they are stored.")
    if weights is not None:
        stored = sum(safetensors.read(weights).sizes)
        if stored != model.parameters:
            notes.append(
                f"{weights.name} holds {stored:,} elements: shared tensors may be stored twice, or buffers too."
            )
    name = values.get("_name_or_path") or resolved(Path(where)).parent.name or str(config.type)
    source = f"the tensors of {config.type}{' ' + config.task if config.task else ''}, from {Path(where).name}"
    block = str(config.family.get("block", ""))
    return Described(
        str(name)[:80], model, shape(config), source, exact=True, notes=tuple(notes), block=block, base=base_of(values)
    )


def _from_weights(file: Path, values: Mapping[str, Any] | None) -> Described:
    found = safetensors.read(file)
    notes = ["Every floating-point tensor of the file is counted as trained."]
    if found.others:
        notes.append(f"{found.others} tensors of whole numbers are left out: quantised weights, or buffers.")
    shape = _shape(values) if values is not None else None
    if shape is None:
        notes.append("The file does not tell the shape: give --layers, --hidden, --heads and --vocab for activations.")
    return Described(
        file.stem[:80], Model.of(found.sizes), shape, f"the header of {file.name}", exact=True, notes=tuple(notes)
    )


def _shape(values: Mapping[str, Any]) -> Shape | None:
    """Return the shape that the usual names of a config tell, of a family that is not known."""
    inner = values.get("text_config")
    values = inner if isinstance(inner, dict) else values
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
    sizes = [values.get(name) for name in names]
    if not all(isinstance(size, int) and not isinstance(size, bool) and 0 < size < 10**9 for size in sizes):
        return None
    layers, hidden, heads, vocabulary = (int(size) for size in sizes if size is not None)
    return Shape.of_gpt(layers, hidden, heads, vocabulary) if heads <= hidden else None


def shaped(
    model: Described,
    layers: int | None = None,
    hidden: int | None = None,
    heads: int | None = None,
    vocab: int | None = None,
) -> Described:
    """Return a model with a shape that is given in place of what its files tell; raises ModelError for half a one."""
    given = {"--layers": layers, "--hidden": hidden, "--heads": heads, "--vocab": vocab}
    if not any(given.values()):
        return model
    missing = [name for name, value in given.items() if not value]
    if layers is None or hidden is None or heads is None or vocab is None:
        raise ModelError(
            f"beside --model the whole shape has to be given, or nothing of it: {', '.join(missing)} is missing"
        )
    if heads > hidden:
        raise ModelError(f"{heads} heads do not divide a hidden size of {hidden}")
    return replace(model, shape=Shape.of_gpt(layers, hidden, heads, vocab))
