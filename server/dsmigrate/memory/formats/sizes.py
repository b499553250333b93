"""Sizes in words, and the kinds of parts in the order and the colours that tables and bars have them in."""

from __future__ import annotations

from dsmigrate.memory.estimate import Estimate
from dsmigrate.memory.model import What

_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
KINDS = (
    (What.PARAMETERS, "#4c78a8", "parameters"),
    (What.GATHERED, "#72b7b2", "live"),
    (What.GRADIENTS, "#f58518", "gradients"),
    (What.MASTERS, "#54a24b", "master copy"),
    (What.OPTIMIZER, "#b279a2", "optimizer"),
    (What.BUCKETS, "#eeca3b", "buckets"),
    (What.STEP, "#9d755d", "step"),
    (What.COPIES, "#bab0ac", "copies"),
    (What.STAGING, "#e45756", "transfer"),
    (What.ACTIVATIONS, "#7f7f7f", "activations"),
)


def size(count: int | None) -> str:
    """Return bytes as text: "14.9 GiB"; "?" where they are not known."""
    if count is None:
        return "?"
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def gib(count: int | None) -> str:
    """Return GiB as a column shows them: "14.9"; "" for nothing, "?" where they are not known."""
    if count is None:
        return "?"
    return "" if not count else "<0.1" if count < (1 << 30) / 20 else f"{count / (1 << 30):,.1f}"


def used(estimates: list[Estimate]) -> list[tuple[What, str, str]]:
    """Return the kinds that any of the estimates has at its peak, with colour and name."""
    there = {what for one in estimates for what in one.by_kind}
    return [kind for kind in KINDS if kind[0] in there]


def verdict(one: Estimate) -> str:
    """Return whether it fits, in a word or two."""
    if one.fits is None:
        return ""
    return "fits" if one.fits else f"too little {' and '.join(one.lacks)}"
