"""Compares weight files: ``python compare_weights.py EXPECTED ACTUAL [EXPECTED ACTUAL ...]``.

Prints one line per pair, ``weights loss <relative difference>``, or what differs in names, shapes and dtypes, and
exits with 1 in that case. The relative difference is taken over all weights of a file, by Euclidean norm.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

torch: Any = importlib.import_module("torch")


def problem_or_distance(expected: dict[str, Any], actual: object) -> str | float:
    """The distance of two state dicts, or in words why there is none."""
    if not isinstance(actual, dict):
        return f"a {type(actual).__name__} instead of a dict"
    if list(expected) != list(actual):
        return f"names {sorted(set(expected) ^ set(actual))[:6]} in one file only, or another order"
    squares = torch.zeros(2, dtype=torch.float64)
    for name, weight in expected.items():
        other = actual[name]
        if weight.shape != other.shape or weight.dtype != other.dtype:
            return f"{name}: {tuple(weight.shape)} {weight.dtype} became {tuple(other.shape)} {other.dtype}"
        change = weight.double() - other.double()
        squares += torch.stack([change.square().sum(), weight.double().square().sum()])
    return float((squares[0] / squares[1]).sqrt())


def main(paths: list[str]) -> int:
    failed = False
    for before, after in zip(paths[::2], paths[1::2], strict=True):
        result = problem_or_distance(torch.load(before), torch.load(after))
        failed |= isinstance(result, str)
        print(f"{after}: {result}" if isinstance(result, str) else f"weights loss {result:.9e}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
