"""Which parameters of a model a script picks: the tests that a parameter passed before it was put somewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dsmigrate.codemod.analysis.conditions import TRUE, Condition, Literal, Several, both, either, under
from dsmigrate.codemod.analysis.machine import Machine
from dsmigrate.codemod.analysis.values import NONE, TRUE_VALUE, Choice, Const, Expr, Tensor, TensorKind, Value

_PICKED = frozenset((TensorKind.PARAMETER, TensorKind.EACH_NORM))


def picked_here(run: Machine, value: Value) -> Value:
    """A parameter, or the norm of its gradient, with the tests of this turn of the loop noted in it."""
    loops = run.frame.loops
    if not isinstance(value, Tensor) or value.kind not in _PICKED or not loops:
        return value
    return with_test(value, both(*run.conditions[loops[-1].conditions :]))


def with_test(value: Value, test: Condition) -> Value:
    """A value in which is noted that its parameters passed a test."""
    if isinstance(value, Choice):
        return Choice(tuple((condition, with_test(option, test)) for condition, option in value.options))
    if not isinstance(value, Tensor) or value.kind not in _PICKED:
        return value
    said = _of_any_loop(harmless(test))
    picked = said if value.picked is None else both(value.picked, said)
    return replace(value, picked=None if picked is TRUE else picked)


def are_all(picks: Iterable[Condition | None]) -> bool:
    """Whether some picks together are of all parameters."""
    found = list(picks)
    return None in found or (bool(found) and either(*(one for one in found if one is not None)) is TRUE)


def harmless(test: Condition) -> Condition:
    """A test without what it asks of parameters that have no gradient: those are trained by nobody."""
    atoms = {atom: known for atom in _atoms(test) if (known := _known(atom)) is not None}
    return under(test, atoms) if atoms else test


def _known(atom: Expr) -> bool | None:
    if (
        atom.op == "is"
        and isinstance(atom.args[0], Tensor)
        and atom.args[0].kind is TensorKind.GRADIENT
        and atom.args[1] == NONE
    ):
        return False
    if atom.op in {"is", "=="} and isinstance(atom.args[0], Expr) and _known(atom.args[0]):
        return atom.args[1] == TRUE_VALUE if isinstance(atom.args[1], Const) else None
    return True if atom.op == "about" and atom.args[1] == "requires_grad" else None


def _atoms(test: Condition) -> Iterable[Expr]:
    if isinstance(test, Literal):
        yield test.atom
    elif isinstance(test, Several):
        for part in test.parts:
            yield from _atoms(part)


def _of_any_loop(test: Condition) -> Condition:
    """A test in which the name of a parameter is the same in whatever loop it was asked."""
    if isinstance(test, Literal):
        return _compared(_without_loop(test.atom), holds=test.holds)
    if isinstance(test, Several):
        return (both if test.all_of else either)(*map(_of_any_loop, test.parts))
    return test


def _compared(atom: Expr, *, holds: bool) -> Condition:
    """A test, those that compare a number of dimensions with a whole number in one form: whether it is less."""
    if atom.op in {"<", "<="}:
        left, right = atom.args
        if _is_count(left) and isinstance(right, Const) and isinstance(right.value, int):
            return Literal(Expr("<", left, Const(right.value + (atom.op == "<="))), holds)
        if _is_count(right) and isinstance(left, Const) and isinstance(left.value, int):
            return Literal(Expr("<", right, Const(left.value + (atom.op == "<"))), not holds)
        if atom.op == "<=":  # what another test for the rest says with "<"
            return Literal(Expr("<", right, left, varies=atom.varies), not holds)
    return Literal(atom, holds)


def _is_count(value: object) -> bool:
    return isinstance(value, Expr) and value.op == "about" and value.args[1] in {"ndim", "numel"}


def _without_loop(atom: Expr) -> Expr:
    if atom.op == "name":
        return Expr("name", varies=atom.varies)
    if atom.op == "about":  # wherever it was asked
        return Expr(
            "about",
            atom.args[0],
            {"dim": "ndim", "nelement": "numel"}.get(atom.args[1], atom.args[1]),
            varies=atom.varies,
        )
    if not any(isinstance(arg, Expr) for arg in atom.args):
        return atom
    if atom.op == "len" and (of := atom.args[0]).op == "about" and of.args[1] in {"shape", "size"}:
        return Expr("about", of.args[0], "ndim", varies=atom.varies)
    return Expr(
        atom.op, *(_without_loop(arg) if isinstance(arg, Expr) else arg for arg in atom.args), varies=atom.varies
    )
