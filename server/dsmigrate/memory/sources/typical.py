"""A model of which only the size is known: the published model next to it in size stands for its shape."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dsmigrate.memory.model import Model
from dsmigrate.memory.shape import Described, Shape
from dsmigrate.memory.sources.errors import ModelError
from dsmigrate.schemas_location import schema_toml

_MOST_TENSORS = 100_000


@functools.cache
def _published() -> tuple[tuple[str, int, Shape], ...]:
    """Return name, parameters and shape of published models, the smallest first (schemas/models/published.toml)."""
    found = schema_toml("models/published.toml")["model"]
    models = [(one["name"], int(one["parameters"]), _shape(one)) for one in found]
    return tuple(sorted(models, key=lambda model: model[1]))


def _shape(entry: Mapping[str, Any]) -> Shape:
    shape = Shape.of_gpt(entry["layers"], entry["hidden"], entry["heads"], entry["words"])
    if "gated" not in entry:
        return shape
    shape = replace(shape, key_value_heads=entry.get("keys", shape.heads))
    return replace(shape, inner=entry["gated"], gated=True, kept_inner=4, dropout=False, upcasts=True)


def typical(
    parameters: int,
    layers: int | None = None,
    hidden: int | None = None,
    heads: int | None = None,
    vocabulary: int | None = None,
) -> Described:
    """Return a model with so many parameters; what is not given of its shape is that of a published model.

    With a width or heads of its own the blocks are those that papers take for granted (``Shape.of_gpt``).

    Raises ModelError where heads do not divide the width, or the shape has more parameters than there are.
    """
    name, size, like = min(_published(), key=lambda model: abs(math.log(parameters / model[1])))
    wide = hidden or like.hidden
    many = heads or (like.heads if hidden is None else max(1, wide // 128))
    if many > wide or (heads and wide % many):
        raise ModelError(f"{many} heads do not divide a hidden size of {wide}")
    shape = replace(like, layers=layers or like.layers, vocabulary=vocabulary or like.vocabulary)
    if hidden or heads:
        shape = Shape.of_gpt(shape.layers, wide, many, shape.vocabulary)
    given = [word for word, value in (("layers", layers), ("hidden", hidden), ("heads", heads)) if value]
    rest = (
        "" if len(given) == 3 else f"; the shape is that of {name}" + (f" but for {', '.join(given)}" if given else "")
    )
    model = Model.of(_tensors(parameters, shape))
    assumed = (
        () if not rest else (f"Tensors and activations are those of {name} ({_short(size)}), scaled to the size.",)
    )
    return Described(_short(parameters), model, shape, f"the number given{rest}", exact=False, notes=assumed)


def _tensors(parameters: int, shape: Shape) -> Iterator[int]:
    """Yield sizes of tensors that come to ``parameters``: words, and four matrices of attention and two of the MLP.

    The matrices are scaled alike, so that the sum is right; norms and biases of a block are its small tensors.
    """
    words = min(shape.vocabulary * shape.hidden, parameters // 2)
    layers = max(1, min(shape.layers, _MOST_TENSORS // 8, (parameters - words) // 64 or 1))
    if words:
        yield words
    block, left = divmod(parameters - words, layers)
    for number in range(layers):
        own = block + (left if not number else 0)
        small = min(2 * shape.hidden, own // 16)
        part = (own - 2 * small) // 12
        yield from (size for size in (small, small, part, part, part, part, 4 * part) if size)
        yield own - 2 * small - 8 * part


def _short(parameters: int) -> str:
    for size, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K")):
        if parameters >= size:
            return f"{parameters / size:.3g}{unit}"
    return str(parameters)
