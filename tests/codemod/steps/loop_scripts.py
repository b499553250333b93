"""Loops for the tests of backward, step and accumulation."""

from __future__ import annotations


def loop(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n{body}"
