"""What a tensor that goes into the model is told by: exactly, and up to rounding.

A sum does not know the order of what it adds up. Here every bit counts, with its place: two tensors with the same
number are the same. The product with fixed random numbers tells how far apart two tensors are that are not.
"""

from __future__ import annotations

import zlib
from typing import Any

SAMPLE = 1_000_003
"""Elements of which the product is made at most, evenly spread; on a GPU also those that are numbered at once."""

_BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
_weights: dict[str, tuple[Any, Any]] = {}


def seen(torch: Any, tensor: Any) -> tuple[Any, Any, Any, str]:
    """Return the number of a tensor, its product, its norm and its type; those of a GPU wait on it as tensors."""
    kind = str(tensor.dtype).removeprefix("torch.")
    flat = tensor.detach().contiguous().reshape(-1)
    flat = torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat
    whole, real = _weights_on(torch, flat.device)
    sample = flat[:: flat.numel() // SAMPLE + 1].to(torch.float64)
    return _number(torch, flat, whole), sample @ real[: sample.numel()], sample.square().sum().sqrt(), kind


def _number(torch: Any, flat: Any, weights: Any) -> Any:
    if flat.device.type == "cpu":
        return zlib.crc32(flat.view(torch.uint8).numpy())
    found = torch.zeros((), dtype=torch.int64, device=flat.device)
    for start in range(0, flat.numel(), SAMPLE):
        part = flat[start : start + SAMPLE]
        bits = part.view(getattr(torch, _BITS[part.element_size()])).to(torch.int64)
        found = found * 31 + (bits * weights[: part.numel()]).sum()  # wraps, which is as good
    return found


def _weights_on(torch: Any, device: Any) -> tuple[Any, Any]:
    found = _weights.get(str(device))
    if found is None:
        generator = torch.Generator().manual_seed(0)
        real = torch.randn(SAMPLE, generator=generator, dtype=torch.float64)
        whole = torch.randint(1, 1 << 62, (SAMPLE,), generator=generator, dtype=torch.int64) | 1
        found = _weights[str(device)] = (whole.to(device), real.to(device))
    return found
