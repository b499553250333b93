"""Sketches of the weights: a few numbers per tensor that tell how far two sets of weights lie apart.

Each tensor is multiplied with the same few pseudo-random vectors in both runs. The difference of two such products is,
in the mean, the norm of the difference of the tensors (Johnson and Lindenstrauss), so that no run has to see the
weights of the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

DIRECTIONS = 4
CHUNK = 1 << 20
_WRAPPERS = ("module", "_orig_mod")

Gather = Callable[[Any], AbstractContextManager[Any]]


def clean(name: str) -> str:
    """Return the name of a tensor without what wrappers put in front of it."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def sketch(torch: Any, model: Any, gather: Gather) -> dict[str, Any]:
    """Return norm, size, dtype and products of every parameter and floating-point buffer, by clean name.

    ``gather`` makes the whole of a partitioned parameter visible; all ranks have to come here then.
    """
    found: dict[str, Any] = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            with gather(parameter):
                found[clean(name)] = {**_of(torch, clean(name), parameter), "trained": bool(parameter.requires_grad)}
        for name, buffer in model.named_buffers():
            if buffer is not None and buffer.is_floating_point():
                found[clean(name)] = {**_of(torch, clean(name), buffer), "buffer": True}
    return found


def _of(torch: Any, name: str, tensor: Any) -> dict[str, Any]:
    flat = tensor.detach().reshape(-1)
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    products = torch.zeros(DIRECTIONS, dtype=torch.float64)
    square = 0.0
    for start in range(0, flat.numel(), CHUNK):
        part = flat[start : start + CHUNK].to(device="cpu", dtype=torch.float64)
        directions = torch.randn(DIRECTIONS, part.numel(), generator=generator, dtype=torch.float32)
        products += directions.double() @ part
        square += float(part.square().sum())
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "norm": square**0.5,
        "products": products.tolist(),
    }
