"""What of a model trains: all of it, a number of its parameters, or the adapters of an ``adapter_config.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsmigrate.memory.model import Model
from dsmigrate.memory.shape import WHOLE, Described, Shape
from dsmigrate.memory.sources.config import load
from dsmigrate.memory.sources.errors import ModelError
from dsmigrate.schemas_location import schema_toml
from dsmigrate.settings.check import size_of

ADAPTER = "adapter_config.json"
BASES: Mapping[str, float | None] = {"16bit": None, "8bit": 1.0, "4bit": 0.5 + 4 / 64, "4bit-double": 0.5 + 1 / 64}
"""Bytes per element of the matrices of a frozen base: bitsandbytes has a scale of 32 bit for each 64 elements of 4 bit,
and one of 8 bit with ``bnb_4bit_use_double_quant``."""
_LEAST_ROWS = 16
"""Rows from which a tensor of a block is taken to be a matrix, which is quantised, and no bias or norm."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """LoRA as PEFT configures it, as far as its size goes."""

    rank: int
    targets: tuple[str, ...]
    saved: tuple[str, ...] = ()
    """Whole modules that train as copies (``modules_to_save``)."""
    magnitudes: bool = False
    """Whether each target has a vector of magnitudes as well (``use_dora``)."""


def adapter(path: Path) -> Adapter:
    """Return what an ``adapter_config.json``, or a folder with one, asks for; raises ModelError."""
    file = path / ADAPTER if path.is_dir() else path
    values = load(file)
    kind, rank, targets = values.get("peft_type"), values.get("r"), values.get("target_modules")
    instead = "; give the number of parameters that train with --trainable"
    if kind != "LORA":
        raise ModelError(f"{file}: peft_type {kind!r} is not known, only 'LORA'{instead}")
    if not isinstance(rank, int) or isinstance(rank, bool) or not 0 < rank < 1 << 20:
        raise ModelError(f"{file}: r {rank!r} is not a rank")
    if isinstance(targets, str) and targets != "all-linear":
        raise ModelError(f"{file}: target_modules is a pattern, which takes the model itself to know{instead}")
    if values.get("rank_pattern") or values.get("layers_to_transform") is not None:
        raise ModelError(f"{file}: rank_pattern and layers_to_transform are not known{instead}")
    named = [targets] if isinstance(targets, str) else targets
    return Adapter(rank, _names(named), _names(values.get("modules_to_save")), bool(values.get("use_dora")))


def _names(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - whatever the file holds
    return tuple(sorted({str(one) for one in value})) if isinstance(value, list) else ()


def narrowed(model: Described, wanted: str, base: str | None = None) -> Described:
    """Return a model of which a number such as "40m", or an ``adapter_config.json``, says what trains.

    ``base`` is how the rest is kept; None leaves it to the files of the model. Raises ModelError and SettingsError.
    """
    kept, path = base or model.base, Path(wanted)
    if kept not in BASES:
        raise ModelError(f"base {kept!r} is not one of {', '.join(BASES)}")
    if path.suffix == ".json" or path.exists():
        return with_adapter(model, adapter(path), kept)
    return with_trainable(model, size_of(wanted, "--trainable"), kept)


def with_adapter(model: Described, wanted: Adapter, base: str = "16bit") -> Described:
    """Return a model of which adapters train, and modules that are saved whole; raises ModelError for unknown names."""
    if model.shape is None:
        raise ModelError(
            "the shape of the model is not known: give the number of parameters that train, not an adapter"
        )
    own = (*_matrices(model, model.shape, wanted), *_saved(model.shape, wanted))
    if not own:
        raise ModelError("the adapter names no module: nothing trains")
    said = f"LoRA of rank {wanted.rank} on {', '.join(wanted.targets)}"
    more = f", and {', '.join(wanted.saved)} as a whole" if wanted.saved else ""
    return _frozen(model, Model.of(own), model.model.tensors or (model.model.parameters,), base, said + more)


def with_trainable(model: Described, count: int, base: str = "16bit") -> Described:
    """Return a model of which ``count`` parameters train, the last ones; raises ModelError where there are fewer."""
    tensors = list(model.model.tensors or (model.model.parameters,))
    if not 0 < count <= model.model.parameters:
        raise ModelError(f"--trainable: {count:,} of {model.model.parameters:,} parameters cannot train")
    own: list[int] = []
    while (left := count - sum(own)) > 0:
        last = tensors.pop()
        own.append(min(last, left))
        if last > left:
            tensors.append(last - left)
    if not tensors:
        return model
    return _frozen(model, Model.of(reversed(own)), tuple(tensors), base, f"{count:,} parameters")


def _frozen(model: Described, own: Model, rest: tuple[int, ...], base: str, said: str) -> Described:
    wide, shape = BASES[base], model.shape
    width = None
    if wide is not None:
        rows = _LEAST_ROWS * (shape.hidden if shape is not None else 1)
        words = shape.vocabulary * shape.hidden if shape is not None else 0
        packed = sum(size for size in rest if size > rows and size != words)
        width = (wide * packed + 2 * (sum(rest) - packed)) / sum(rest)
    kept = "in the format of the others" if wide is None else f"with matrices in {base}"
    notes = (
        f"{said[0].upper()}{said[1:]} train; the rest is frozen, {kept}. Activations are those of training it whole.",
    )
    whole = replace(own, frozen=rest, frozen_width=width)
    return replace(model, model=whole, notes=(*(note for note in model.notes if note != WHOLE), *notes))


def _matrices(model: Described, shape: Shape, wanted: Adapter) -> Iterator[int]:
    """Yield the elements of the two matrices that LoRA puts beside each target, block by block."""
    known = schema_toml("models/adapters.toml")
    sizes = {
        "hidden": shape.hidden,
        "queries": shape.heads * shape.head_size,
        "keys": shape.key_value_heads * shape.head_size,
        "inner": shape.inner,
    }
    sizes |= {"fused": sizes["queries"] + 2 * sizes["keys"], "both": 2 * shape.inner}
    targets = _all(shape) if wanted.targets == ("all-linear",) else wanted.targets
    for name in targets:
        found = [(part, pair) for part in ("attention", "mlp") for pair, names in known[part].items() if name in names]
        if not found:
            raise ModelError(f"target_modules: {name!r} is not known; give the number of parameters that train")
        for part, pair in found:
            if part == "mlp" and model.block:
                raise ModelError(f"target_modules: {name!r} is of experts; give the number of parameters that train")
            into, out = (sizes[one] for one in pair.split())
            for _ in range(shape.layers + (shape.cross if part == "attention" else 0)):
                yield from (wanted.rank * into, wanted.rank * out)
                if wanted.magnitudes:
                    yield out


def _all(shape: Shape) -> tuple[str, ...]:
    return ("q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj", *(("gate_proj",) if shape.gated else ()))


def _saved(shape: Shape, wanted: Adapter) -> Iterator[int]:
    for name in wanted.saved:
        if name not in {"embed_tokens", "lm_head", "wte", "word_embeddings", "embed_in", "embed_out"}:
            raise ModelError(f"modules_to_save: {name!r} is not known; give the number of parameters that train")
        yield shape.vocabulary * shape.hidden
