"""Which parameters of the model a value holds: all of them, some, or what cannot be told."""

from __future__ import annotations

from dsmigrate.codemod.analysis.analysis import things
from dsmigrate.codemod.analysis.picks import are_all
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Expr, Kind, Obj, Tensor, TensorKind, Value, each, owner

_PARAMETERS = frozenset((TensorKind.PARAMETER, TensorKind.GRADIENT, TensorKind.NORM))


def holds_all(training: Training, value: Value) -> bool | None:
    """Whether a value holds every parameter of the model, or its gradient; None where that cannot be told."""
    if _of_optimizer(training, value):
        return True
    found = list(training.analysis.run.things_in(value))
    tensors = [one for one in found if isinstance(one, Tensor) and one.kind in _PARAMETERS]
    if any(_covers(training, model, tensors) for model in training.models):
        return True
    unread = any(isinstance(one, Expr) for one in found) or any(
        isinstance(one.of, Expr) and one.of not in training.models for one in tensors
    )
    return None if unread or not tensors else False


def _of_optimizer(training: Training, value: Value) -> bool:
    """Whether a value goes over what the optimizer has: its groups, or apex's copies of their parameters."""
    for one in each(value):
        if isinstance(one, Obj) and any(
            training.is_optimizer(holder)
            for holder in (one.data.get("groups_of"), one.data.get("masters_of"), one.data.get("params_of"))
            if holder is not None
        ):
            return True
    return False


def _covers(training: Training, module: Value, tensors: list[Tensor]) -> bool:
    """Whether some parameters are all of a module: as they were taken of it, or of each of its parts."""
    if are_all(one.picked for one in tensors if one.of is module):
        return True
    if not isinstance(module, Obj) or module.kind not in {Kind.INSTANCE, Kind.LIBRARY}:
        return False
    held = [one for value in module.own.values() for one in each(value)]
    if any(isinstance(one, Tensor) and one.kind is TensorKind.PARAMETER for one in held):
        return False
    parts = [one for value in held for one in things(value) if one is not module and role_of(one) is Role.MODEL]
    return bool(parts) and all(_covers(training, part, tensors) for part in parts)


def outsiders(training: Training, value: Value) -> list[Value]:
    """The modules, and tensors of none, whose parameters a value holds beside those of the model."""
    found: list[Value] = [
        one.of if one.of is not None else one
        for one in training.analysis.run.things_in(value)
        if isinstance(one, Tensor)
        and one.kind is TensorKind.PARAMETER
        and (one.of is None or owner(one.of) not in training.parts)
    ]
    return list(dict.fromkeys(found))
