"""Bytes of parts as a formula in the number of parameters Ψ and of GPUs N: "2Ψ + 14Ψ/N"."""

from __future__ import annotations

from collections.abc import Iterable

from dsmigrate.memory.model import Over, Part


def text(parts: Iterable[Part]) -> str:
    """Return the bytes of parts that are shares of what trains; "0" where there is none."""
    sums: dict[str, float] = {}
    for part in parts:
        if part.over not in {Over.COUNT, Over.FROZEN}:
            share = f"Ψ/{part.divisor}" if part.over is Over.GROUP else part.over.value
            sums[share] = sums.get(share, 0) + part.width
    terms = [f"{number(sums[share])}{share}" for share in sorted(sums, key=_order) if sums[share]]
    return " + ".join(terms) or "0"


def number(value: float) -> str:
    """Return a factor: "16", "2.5"; "" for one."""
    return "" if value == 1 else f"{value:.2f}".rstrip("0").rstrip(".")


def _order(share: str) -> tuple[bool, bool, str]:
    return share != Over.MODEL.value, share == Over.SHARD.value, share
