"""Compares files of ``torch.save``: ``python compare_files.py EXPECTED ACTUAL [EXPECTED ACTUAL ...]``.

Prints one line per pair, ``weights loss <relative difference>``, or what differs in names, order, shapes and types and
in what is not a number, and exits with 1 in that case. The relative difference is that of all weights together, or of
one state of the optimizer over all weights, by Euclidean norm: the largest of these.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

torch: Any = importlib.import_module("torch")

Path = tuple[Any, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield what a checkpoint holds, with the keys that lead there."""
    if isinstance(value, argparse.Namespace):
        value = vars(value)
    if not isinstance(value, dict | list | tuple):
        yield path, value
        return
    yield path, type(value)
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(inner, (*path, key))


def as_tensor(value: Any) -> Any:
    """A float as a tensor, so that it is measured too."""
    return torch.tensor(value, dtype=torch.float64) if isinstance(value, float) else value


def kind(path: Path) -> Path:
    """What is measured together: the weights of a model, a state of the optimizer."""
    numbered = any(isinstance(key, int) for key in path)
    return tuple(key for key in (path if numbered else path[:-1]) if not isinstance(key, int))


def tensors(held: dict[Path, Any]) -> list[Path]:
    """Where the tensors are, in their order."""
    return [path for path, value in held.items() if torch.is_tensor(value)]


def problem_or_distance(expected: object, actual: object) -> str | float:
    """The distance of two checkpoints, or in words why there is none."""
    before, after = dict(leaves(expected)), dict(leaves(actual))
    if odd := before.keys() ^ after.keys():
        return f"in one file only: {sorted('.'.join(map(str, path)) for path in odd)[:6]}"
    if tensors(before) != tensors(after):
        return "another order of tensors"
    squares: defaultdict[Path, Any] = defaultdict(lambda: torch.zeros(2, dtype=torch.float64))
    for path, held in before.items():
        name, value, other = ".".join(map(str, path)), as_tensor(held), as_tensor(after[path])
        if not torch.is_tensor(value) or not torch.is_tensor(other):
            if type(value) is not type(other) or value != other:
                return f"{name}: {value!r} became {other!r}"
            continue
        if value.shape != other.shape or value.dtype != other.dtype:
            return f"{name}: {tuple(value.shape)} {value.dtype} became {tuple(other.shape)} {other.dtype}"
        change = value.double() - other.double()
        squares[kind(path)] += torch.stack([change.square().sum(), value.double().square().sum()])
    return max((float((change / whole).sqrt()) for change, whole in squares.values() if change), default=0.0)


def main(paths: list[str]) -> int:
    failed = False
    for before, after in zip(paths[::2], paths[1::2], strict=True):
        result = problem_or_distance(*(torch.load(path, weights_only=False) for path in (before, after)))
        failed |= isinstance(result, str)
        print(f"{after}: {result}" if isinstance(result, str) else f"weights loss {result:.9e}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
