"""How a value or a condition is said in code at a place of a script, by the names that are bound there."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from dsmigrate.codemod.analysis.analysis import (
    Analysis,
    code_for,
    held_at,
    is_left_out,
    library_said,
    name_of,
    named,
    static_value,
)
from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Condition, Literal, Several, both, either, negate
from dsmigrate.codemod.analysis.expressions import from_condition
from dsmigrate.codemod.analysis.run import Run
from dsmigrate.codemod.analysis.values import UNBOUND, Choice, Const, Expr, Lib, Value, each

Names = tuple[Mapping[str, Value], ...]


def said(value: Value, names: Names) -> str | None:
    """An expression that gives a value at a place; None where there is none."""
    if isinstance(value, Choice):
        return named(value, names) or _chosen(value, names)
    if isinstance(value, Lib):
        return library_said(value.name, names)
    if isinstance(value, Expr) and value.op in {"==", "<", "<=", "is", "in", "not", "and", "or", "condition"}:
        return _test(value, names)
    return code_for(value, names)


def _chosen(value: Choice, names: Names) -> str | None:
    options = [(condition, option) for condition, option in value.options if option is not UNBOUND]
    if not 2 <= len(options) <= _LONGEST:
        return None
    code = said(options[-1][1], names)
    for condition, option in reversed(options[:-1]):
        test, one = condition_said(condition, names), said(option, names)
        if test is None or one is None or code is None:
            return None
        code = f"{one} if {test} else {code}"
    return code


_LONGEST = 4
"""Values that a conditional expression chooses from, at most."""


def as_written(analysis: Analysis, code: ast.expr, there: Names, here: Names) -> str | None:
    """An expression of one place at another one, if it only reads, and its names hold the same at both."""
    if not all(isinstance(one, _READS) for one in ast.walk(code)):
        return None
    names = [one for one in ast.walk(code) if isinstance(one, ast.Name)]
    held = [[held_at(analysis.run, scope, one) for scope in (there, here)] for one in names]
    return ast.unparse(code) if all(at_one and at_one == at_other for at_one, at_other in held) else None


_READS = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.UnaryOp, ast.unaryop, ast.expr_context)  # fmt: skip


def condition_said(condition: Condition, names: Names) -> str | None:
    """A test that holds where a condition does; None where there is none."""
    if condition is TRUE:
        return "True"
    if condition is FALSE:
        return "False"
    if isinstance(condition, Literal):
        code = said(condition.atom, names) if condition.holds else _negated(condition.atom, names)
        return code or _named(condition, names)
    if isinstance(condition, Several):
        name = _named(condition, names)
        if name is not None:
            return name
        parts = sorted(
            (condition_said(part, names) or "" for part in condition.parts),
            key=lambda part: ("hasattr(" not in part, len(part), part),  # an attribute is asked for before it is read
        )
        if "" in parts:
            return None
        nested = [isinstance(part, Several) for part in condition.parts]
        word = " and " if condition.all_of else " or "
        return word.join(f"({part})" if any(nested) and (" and " in part or " or " in part) else part for part in parts)
    return None


def flag_said(run: Run, condition: Condition, names: Names) -> str | None:
    """The same for what takes a bool alone, as a config does: a name that holds a text, or None, is none."""
    code = condition_said(condition, names)
    held = held_at(run, names, ast.parse(code, mode="eval").body) if code else None
    values = [one for value in held or () for one in each(value)]
    is_other = any(isinstance(one, Const) and not isinstance(one.value, bool | int) for one in values)
    return f"bool({code})" if is_other else code


def _named(condition: Condition, names: Names) -> str | None:
    """What holds a condition, or its opposite: a name, or the comparison of one with a constant."""
    for wanted, word, compares in ((condition, "", "=="), (negate(condition), "not ", "!=")):
        value = from_condition(wanted)
        name = name_of(lambda held, wanted=wanted, value=value: held == value or _holds(held) is wanted, names)  # type: ignore[misc]
        if name is not None:
            return f"{word}{name}"
        texts: list[str] = []
        name = name_of(lambda held, wanted=wanted, texts=texts: _is_text(held, wanted, texts), names)  # type: ignore[misc]
        if name is not None:
            return f"{name} {compares} {code_for(Const(texts[0]), ())}"
    return None


def _is_text(value: Value, condition: Condition, texts: list[str]) -> bool:
    """Whether one of several constants is a text under a condition, and nothing else is; notes the text."""
    if isinstance(value, Choice) and all(isinstance(one, Const) for _, one in value.options):
        texts += [
            one.value
            for there, one in value.options
            if there is condition and isinstance(one, Const) and isinstance(one.value, str)
        ]
    return bool(texts)


def _holds(value: Value) -> Condition | None:
    """Where one of several constants and options counts as true."""
    if not isinstance(value, Choice) or not all(isinstance(one, Const | Expr) for _, one in value.options):
        return None
    ways = [
        both(condition, (TRUE if one.value else FALSE) if isinstance(one, Const) else Literal(one))
        for condition, one in value.options
        if isinstance(one, Const | Expr)
    ]
    found = either(*ways)
    return found if isinstance(found, Literal) or (isinstance(found, Several) and not found.unsure) else None


_OPPOSITE = {"==": "!=", "<": ">=", "<=": ">", "is": "is not", "in": "not in"}


def _test(value: Expr, names: Names) -> str | None:
    if value.op == "condition":
        return condition_said(value.args[0], names)
    if value.op == "not":
        return _negated(value.args[0], names)
    parts = [said(arg, names) for arg in value.args]
    if any(part is None for part in parts):
        return None
    if value.op in {"<", "<="} and isinstance(value.args[0], Const):  # "0 < x" reads better turned
        return f"{parts[1]} {'>' if value.op == '<' else '>='} {parts[0]}"
    return f" {value.op} ".join(str(part) for part in parts)


def _negated(atom: Value, names: Names) -> str | None:
    if isinstance(atom, Expr) and atom.op in _OPPOSITE:
        parts = [said(arg, names) for arg in atom.args]
        if any(part is None for part in parts):
            return None
        if atom.op in {"<", "<="} and isinstance(atom.args[0], Const):
            return f"{parts[1]} {'<=' if atom.op == '<' else '<'} {parts[0]}"
        return f"{parts[0]} {_OPPOSITE[atom.op]} {parts[1]}"
    inner = said(atom, names)
    return (
        None
        if inner is None
        else f"not {inner}"
        if inner.replace(".", "").replace("_", "").isalnum()
        else f"not ({inner})"
    )


def holds_by_default(analysis: Analysis, condition: Condition) -> bool | None:
    """Whether a condition holds where no option is given; None where that is not known."""
    if condition is TRUE:
        return True
    if condition is FALSE:
        return False
    if isinstance(condition, Literal):
        found = truth_by_default(analysis, condition.atom)
        return None if found is None else found is condition.holds
    if isinstance(condition, Several):
        found_all = [holds_by_default(analysis, part) for part in condition.parts]
        if condition.all_of:
            return False if False in found_all else None if None in found_all else True
        return True if True in found_all else None if None in found_all else False
    return None


def truth_by_default(analysis: Analysis, value: Value) -> bool | None:
    """Whether a value counts as true where no option is given; None where that is not known."""
    if isinstance(value, Expr):
        if value.op in {"==", "<", "<="}:
            left, right = (static_value(analysis, arg) for arg in value.args)
            if left is None or right is None:
                return None
            try:
                return bool({"==": left == right, "<": left < right, "<=": left <= right}[value.op])  # type: ignore[operator]
            except TypeError:
                return None
        if value.op == "is" and isinstance(value.args[0], Expr) and value.args[0].op == "arg":
            return static_value(analysis, value.args[0]) is None
        if value.op == "not":
            found = truth_by_default(analysis, value.args[0])
            return None if found is None else not found
        if value.op == "condition":
            return holds_by_default(analysis, value.args[0])
        if value.op in {"and", "or"}:
            found_all = [truth_by_default(analysis, arg) for arg in value.args]
            decisive = value.op == "or"
            return decisive if decisive in found_all else None if None in found_all else not decisive
        if value.op == "setting":
            return bool(static_value(analysis, value))
        if value.op == "arg":
            found_static = static_value(analysis, value)
            return (
                bool(found_static)
                if found_static is not None
                else False
                if is_left_out(analysis, value.args[0])
                else None
            )
    if isinstance(value, Const):
        return bool(value.value)
    return None
