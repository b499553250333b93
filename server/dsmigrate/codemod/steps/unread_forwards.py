"""MG307 again: functions and classes of files without a word of training, which run the engine outside of autocast.

Such files are no part of the tree. Their texts show whether a function calls what it is given, or a class what it keeps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.forwards_beside import is_sheltered, paths_to
from dsmigrate.codemod.tree import Statement

_DEPTH = 3
_Defined = ast.FunctionDef | ast.ClassDef


def unread_forwards(plan: Plan, regions: Sequence[Statement]) -> None:
    """Mark calls in no region that run the engine in a file that is not looked at."""
    found: dict[Statement, None] = {}
    for call in plan.tree.calls:
        name = (dotted(call.func) or "").rpartition(".")[2]
        if not name or plan.is_before_engine(call) or plan.flow.callee(call) is not None:
            continue
        for index, arg in enumerate(call.args):
            if isinstance(arg.value, cst.Name | cst.Attribute) and plan.is_engine(arg.value) and not arg.star:
                where = arg.keyword.value if arg.keyword is not None else index
                for defined in _defined(plan, name):
                    found.update(dict.fromkeys(_runs(plan, call, defined, where)))
    for statement in found:
        if any(not any(is_sheltered(plan, s, regions) for s in path) for path in paths_to(plan, statement)):
            plan.todo("MG307", statement, "the model runs in a function that is called here outside of autocast; the engine runs every "
                      "forward under torch_autocast", "the engine uses one setting for every forward")  # fmt: skip


def _defined(plan: Plan, name: str) -> Iterator[_Defined]:
    """The functions and classes of this name in local files, at the top of a module."""
    known: dict[str, list[_Defined]] = plan.facts.setdefault("unread", {})
    if name not in known:
        known[name] = []
        for text in texts_beside(plan):
            if f"def {name}(" in text or f"class {name}" in text:
                known[name] += [
                    node
                    for node in _module(text)
                    if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
                ]
    yield from known[name]


def texts_beside(plan: Plan) -> tuple[str, ...]:
    """The texts of the local files that the script imports, by whatever way, read once they are asked for."""
    if "texts_beside" not in plan.facts:
        plan.facts["texts_beside"] = plan.facts["beside"]()
    found: tuple[str, ...] = plan.facts["texts_beside"]
    return found


def _module(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError):
        return []


def _runs(plan: Plan, call: cst.Call, defined: _Defined, where: int | str) -> Iterator[Statement]:
    """The statements that run the model which a call hands over: its own, or those that call the object it makes."""
    if isinstance(defined, ast.FunctionDef):
        if _calls_given(plan, defined, where, _DEPTH):
            yield plan.tree.statement(call)
    elif _calls_kept(defined, where):
        places = {b.place for b in plan.flow.bindings if b.value is call and b.index is None and b.kind == "assign"}
        if not places:  # `Consistency(model)(x)`
            yield plan.tree.statement(call)
        for other in plan.tree.calls:
            held = [other.func, other.func.value] if isinstance(other.func, cst.Attribute) else [other.func]
            function = plan.function_of(other)
            if places and any(plan.flow.place(node, function) in places for node in held):
                yield plan.tree.statement(other)


def _parameter(function: ast.FunctionDef, where: int | str, skip: int = 0) -> str | None:
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(where, int):
        return names[where + skip] if where + skip < len(names) else None
    return where if where in (*names, *(arg.arg for arg in function.args.kwonlyargs)) else None


def _calls_given(plan: Plan, function: ast.FunctionDef, where: int | str, depth: int) -> bool:
    """Whether a function calls a parameter, or hands it to another function of local files that does."""
    name = _parameter(function, where)
    if name is None or depth == 0:
        return False
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        if _called(call) == name:
            return True
        inner = call.func.id if isinstance(call.func, ast.Name) else ""
        given: list[int | str] = [i for i, arg in enumerate(call.args) if isinstance(arg, ast.Name) and arg.id == name]
        given += [k.arg for k in call.keywords if k.arg and isinstance(k.value, ast.Name) and k.value.id == name]
        for defined in _defined(plan, inner) if inner and given else ():
            if isinstance(defined, ast.FunctionDef) and any(_calls_given(plan, defined, g, depth - 1) for g in given):
                return True
    return False


def _calls_kept(defined: ast.ClassDef, where: int | str) -> bool:
    """Whether a class keeps what its constructor is given, and calls it in a method."""
    methods = [node for node in defined.body if isinstance(node, ast.FunctionDef)]
    name = next((_parameter(node, where, skip=1) for node in methods if node.name == "__init__"), None)
    if name is None:
        return False
    assigned = [node for method in methods for node in ast.walk(method) if isinstance(node, ast.Assign)]
    kept = {
        ast.unparse(node.targets[0]) for node in assigned if isinstance(node.value, ast.Name) and node.value.id == name
    }
    return any(_called(node) in kept for method in methods for node in ast.walk(method) if isinstance(node, ast.Call))


def _called(call: ast.Call) -> str:
    """``net`` of ``net(x)`` and ``net.forward(x)``."""
    func = call.func
    return ast.unparse(func.value if isinstance(func, ast.Attribute) and func.attr == "forward" else func)
