"""Configs and loops for the tests of precision."""

from __future__ import annotations


def autocast(dtype: str, *, enabled: bool = True) -> dict[str, object]:
    """The section that keeps the numerics of an autocast region at every ZeRO stage."""
    return {"enabled": enabled, "dtype": dtype, "lower_precision_safe_modules": []}


def region(context: str) -> str:
    return f"""
        for x, y in train_loader:
            with {context}:
                loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
