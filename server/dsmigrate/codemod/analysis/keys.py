"""Values and conditions as text without places: equal for the same thing in two runs of texts that differ elsewhere."""

from __future__ import annotations

import ast
import itertools

from dsmigrate.codemod.analysis.conditions import LARGEST, TRUE, Condition, Literal, Several, atoms_of
from dsmigrate.codemod.analysis.values import UNBOUND, Choice, Const, Expr, Lib, Obj, Tensor, Tup


def condition_key(condition: Condition) -> str:
    """A condition as text without places."""
    if isinstance(condition, Literal):
        key = f"{condition.atom.op} of data" if is_of_data(condition.atom) else key_of(condition.atom)
        return key if condition.holds else f"not {key}"
    if isinstance(condition, Several):
        word = " and " if condition.all_of else " or "
        return "(" + word.join(sorted(condition_key(part) for part in condition.parts)) + ")"
    return str(condition)


_NUMBERS = frozenset({"abs", "float", "int", "max", "min", "round", "sum"})


def is_said_otherwise(one: Condition, other: Condition) -> bool:
    """Whether two conditions, of two runs, hold in the same cases: by what they ask, tried out for every answer."""
    asked = sorted({condition_key(Literal(atom)) for condition in (one, other) for atom in atoms_of(condition)})
    return len(asked) <= LARGEST and all(
        _holds(one, answers) is _holds(other, answers)
        for values in itertools.product((False, True), repeat=len(asked))
        for answers in [dict(zip(asked, values, strict=True))]
    )


def _holds(condition: Condition, answers: dict[str, bool]) -> bool:
    if isinstance(condition, Literal):
        return answers[condition_key(Literal(condition.atom))] is condition.holds
    if isinstance(condition, Several):
        return (all if condition.all_of else any)(_holds(part, answers) for part in condition.parts)
    return condition is TRUE


def is_of_data(value: object) -> bool:
    """Whether a value is worked out from tensors, or is one of many: how far it can be followed differs by run."""
    if isinstance(value, Choice):
        return any(is_of_data(option) for _, option in value.options)
    if isinstance(value, Tensor):
        return True
    if isinstance(value, Expr) and value.op == "unknown":
        return isinstance(value.args[0], ast.Call) and ast.unparse(value.args[0].func) in _NUMBERS
    return isinstance(value, Expr) and (value.op in {"number", "one of"} or any(map(is_of_data, value.args)))


_OF_DIRECTORIES = {"isfile": "exists", "is_file": "exists"}
"""What asks for a checkpoint that is a file asks for one that is a directory in other words."""


def key_of(value: object) -> str:
    """A value as text without places: equal for the same value in two runs of texts that differ elsewhere."""
    match value:
        case Const():
            return repr(value.value)
        case Expr(op="unknown"):
            node = value.args[0]
            return f"?{_code(node)}"
        case Expr(op="process"):
            return f"process({', '.join(map(key_of, value.args[1:]))})"  # however it is started
        case Expr(op="loaded"):
            return f"loaded({key_of(value.args[0])})"
        case Expr(op="one of"):
            return "one of many"  # where they meet first differs by run
        case Expr(op="condition"):
            return condition_key(value.args[0])
        case Expr():
            return f"{value.op}({', '.join(key_of(_OF_DIRECTORIES.get(arg, arg)) for arg in value.args)})"
        case Tup():
            return f"({', '.join(map(key_of, value.items))})"
        case Lib():
            return value.name
        case Choice():
            return "|".join(sorted({key_of(option) for _, option in value.options if option is not UNBOUND}))
        case Tensor():
            return value.kind.value
        case Obj():
            name = value.made_by or (
                value.cls.data["name"] if value.cls is not None else str(value.data.get("name", ""))
            )
            return name or value.kind.value
        case ast.AST():
            return _code(value)
    return str(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__


def _code(node: object) -> str:
    if isinstance(node, ast.For | ast.AsyncFor):
        return f"for {ast.unparse(node.target)}"
    if isinstance(node, ast.While):
        return "while"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Call):
        return ast.unparse(node.func)
    return ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
