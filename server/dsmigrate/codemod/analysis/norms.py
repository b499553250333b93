"""The norm of gradients, however a script works it out: of each gradient, squared, added up, taken of all at once."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from dsmigrate.codemod.analysis.conditions import MAYBE, Condition, either
from dsmigrate.codemod.analysis.machine import Given, Machine
from dsmigrate.codemod.analysis.picks import picked_here
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.values import Choice, Const, Tensor, TensorKind, Value, each

_KEEPS = frozenset(
    (
        "item",
        "tolist",
        "float",
        "double",
        "to",
        "cuda",
        "cpu",
        "detach",
        "clone",
        "data",
        "abs",
        "squeeze",
        "view",
        "reshape",
        "flatten",
        "type",
    )
)
_NORMS = frozenset((TensorKind.NORM, TensorKind.EACH_NORM))


def norm_method(run: Machine, of: Tensor, name: str, given: Given) -> Value | None:
    """What a method of a gradient, or of a norm, gives that is a norm; None where it is none."""
    del run
    if name == "norm" and is_second(given.get(0, "p", Const(2))):
        return norm_of((of,))
    if of.kind not in _NORMS:
        return None
    if name in _KEEPS:
        return of
    if name == "sum":
        return summed((of,))
    if name in {"pow", "sqrt", "square"}:
        return powered(of, Const({"sqrt": 0.5, "square": 2}[name]) if name != "pow" else given.get(0, "exponent"))
    return None


def norm_operated(run: Machine, op: ast.operator, left: Value, right: Value) -> Value | None:
    """What an operator gives that is a norm: a power, or a sum that squares are added to."""
    if isinstance(op, ast.Pow):
        norms = _beside_nothing(left)
        return powered(norms[0], right) if len(norms) == 1 else None
    if isinstance(op, ast.Add):
        parts = [*_beside_nothing(left), *_beside_nothing(right)]
        if len(parts) == sum(one not in _NOTHING for value in (left, right) for one in each(value)):
            return summed(tuple(one for part in parts if isinstance(one := picked_here(run, part), Tensor)))
    return None


_NOTHING = frozenset((Const(0), Const(0.0)))
"""What a sum starts from; also what it is of where no parameter has a gradient."""


def _beside_nothing(value: Value) -> list[Tensor]:
    """The norms that a value may be; none where it may be anything else but zero."""
    found = [one for one in each(value) if one not in _NOTHING]
    return (
        [one for one in found if isinstance(one, Tensor)]
        if all(isinstance(one, Tensor) and one.kind in _NORMS for one in found)
        else []
    )


def powered(of: Tensor, power: Value) -> Tensor | None:
    """A power of a norm."""
    if of.kind not in _NORMS or not isinstance(power, Const) or not isinstance(power.value, int | float):
        return None
    return replace(of, power=of.power * power.value)


def norm_of(tensors: tuple[Tensor, ...]) -> Value | None:
    """The second norm of one gradient, or of the norms of several; one for each model that they may be of."""
    if tensors and all(one.kind is TensorKind.GRADIENT for one in tensors):
        return _of_each_model(tensors, kind=TensorKind.EACH_NORM, power=1.0, varies=False)
    if tensors and all(one.kind in _NORMS and one.power == 1 for one in tensors):
        return _of_each_model(tensors, kind=TensorKind.NORM)
    return None


def summed(tensors: tuple[Tensor, ...]) -> Value | None:
    """A sum of squared norms; one for each model that they may be of."""
    if tensors and all(one.kind in _NORMS and one.power == 2 for one in tensors):
        return _of_each_model(tensors, kind=TensorKind.NORM)
    return None


def _of_each_model(tensors: tuple[Tensor, ...], **changes: Any) -> Value:
    found: dict[Value | None, list[Tensor]] = defaultdict(list)
    for one in tensors:
        found[one.of].append(one)
    return choose((MAYBE, replace(several[0], picked=_either(several), **changes)) for several in found.values())


def norms_in(run: Machine, value: Value) -> tuple[Tensor, ...]:
    """The gradients and their norms in a value, if it holds nothing else."""
    found = list(run.things_in(value))
    tensors = tuple(one for one in found if isinstance(one, Tensor))
    return tensors if len(tensors) == len(found) else ()


def total_norms(value: Value) -> Iterator[Tensor]:
    """The norms of gradients that a value may be, each to the first power."""
    yield from (
        one for one in each(value) if isinstance(one, Tensor) and one.kind is TensorKind.NORM and one.power == 1
    )


def is_second(norm: Value) -> bool:
    """Whether a norm is the second, which is the usual one."""
    options = list(each(norm)) if isinstance(norm, Choice) else [norm]
    return all(isinstance(one, Const) and one.value in {2, None, "fro"} for one in options)


def _either(tensors: Iterable[Tensor]) -> Condition | None:
    picks = [one.picked for one in tensors]
    return None if None in picks else either(*(one for one in picks if one is not None))
