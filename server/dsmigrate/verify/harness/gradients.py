"""Norms of gradients, in 64-bit floating point.

A CPU adds up the squares of a tensor one after the other: in 32 bits that is off by 1e-5 for a million numbers and by
3e-4 for ten million, and DeepSpeed's own norms are of 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def gradients(parameters: Iterable[Any]) -> list[Any]:
    """Return the gradients that there are, each once, dense."""
    found: dict[int, Any] = {}
    for parameter in parameters:
        gradient = getattr(parameter, "grad", None)
        if gradient is not None:
            found[id(gradient)] = gradient.coalesce().values() if gradient.is_sparse else gradient
    return list(found.values())


def norm(torch: Any, parameters: Iterable[Any]) -> float | None:
    """Return the 2-norm over all gradients, None where there is none."""
    found = [gradient.detach() for gradient in gradients(parameters)]
    if not found:
        return None
    with torch.no_grad():
        norms = [torch.linalg.vector_norm(_real(torch, gradient), dtype=torch.float64) for gradient in found]
        device = norms[0].device
        return float(torch.linalg.vector_norm(torch.stack([one.to(device) for one in norms])))


def _real(torch: Any, gradient: Any) -> Any:
    return torch.view_as_real(gradient) if gradient.is_complex() else gradient


def parameters_of(optimizers: Iterable[Any]) -> list[Any]:
    """Return the parameters of all groups of the optimizers, each once."""
    found: dict[int, Any] = {}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            found.update((id(parameter), parameter) for parameter in group["params"])
    return list(found.values())
