"""Conditions are one for what means the same, and none for what cannot be."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.analysis.conditions import FALSE, MAYBE, Condition, Literal, both, either, negate
from dsmigrate.codemod.analysis.keys import is_said_otherwise
from dsmigrate.codemod.analysis.values import Const, Expr

A, B, C = (Literal(Expr("arg", name)) for name in "abc")
LEVEL = Expr("arg", "level")
IS_O1, IS_NONE = Literal(Expr("==", LEVEL, Const("O1"))), Literal(Expr("==", LEVEL, Const("")))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (both(Literal(LEVEL), IS_O1), IS_O1),
        (both(Literal(LEVEL), IS_NONE), FALSE),
        (either(negate(Literal(LEVEL)), negate(IS_O1)), negate(IS_O1)),
        (either(both(A, B), both(negate(both(A, B)), C)), either(both(A, B), C)),
        (both(either(both(A, B), C), negate(either(both(A, B), C))), FALSE),
        (both(negate(A), negate(B), either(A, B)), FALSE),
        (both(MAYBE, either(MAYBE, A)), MAYBE),
    ],
)
def test_what_means_the_same_is_the_same(said: Condition, meant: Condition) -> None:
    assert said is meant


def test_conditions_in_other_words_hold_in_the_same_cases() -> None:
    assert is_said_otherwise(both(either(A, B), either(A, C)), either(A, both(B, C)))
    assert not is_said_otherwise(both(either(A, B), C), either(A, both(B, C)))
