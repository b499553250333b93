"""What rewritings of a script share: its scopes, fresh names, and walks over its blocks."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from copy import deepcopy

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | Function
_NESTED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Fresh:
    """Names that a module does not have yet."""

    def __init__(self, tree: ast.AST) -> None:
        self.taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.taken |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self.count = 0

    def __call__(self, stem: str) -> str:
        while True:
            self.count += 1
            name = f"{stem}{self.count}"
            if name not in self.taken:
                self.taken.add(name)
                return name


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of functions and classes in it."""
    todo: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _NESTED):
            todo.extend(ast.iter_child_nodes(node))


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions of a module, methods included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node


def assigned(scope: ast.AST) -> dict[str, int]:
    """The names that a scope binds by assignment, with the number of places."""
    found: dict[str, int] = {}
    for node in own_nodes(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found[node.id] = found.get(node.id, 0) + 1
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = found.get(node.target.id, 0) + 1
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            found[node.name] = found.get(node.name, 0) + 1
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = (alias.asname or alias.name).partition(".")[0]
                found[name] = found.get(name, 0) + 1
    return found


def parameters(function: Function | ast.Lambda) -> set[str]:
    """The names of a function's parameters."""
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *(one for one in (args.vararg, args.kwarg) if one)]
    return {one.arg for one in every}


def is_plain(function: Function) -> bool:
    """Whether a function has no scopes in it and no names of other scopes that it binds."""
    return not any(
        isinstance(
            node, _NESTED | _COMPREHENSION | ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.NamedExpr
        )
        or (isinstance(node, ast.Name) and node.id in {"locals", "exec", "eval", "vars"})
        for node in own_nodes(function)
    )


def loaded(nodes: list[ast.stmt]) -> set[str]:
    """The names that statements read."""
    return {
        one.id
        for node in nodes
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }


def is_builtin(name: str) -> bool:
    """Whether a name is one of Python's own."""
    return hasattr(builtins, name)


def name(text: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(text, ast.Load())


def assign(target: str, value: ast.expr) -> ast.Assign:
    """A variable that is set."""
    return ast.Assign([ast.Name(target, ast.Store())], value)


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def each_statement(tree: ast.AST, change: Callable[[ast.stmt], list[ast.stmt] | None]) -> None:
    """Put other statements in the place of those for which there are some; those made are not looked at again."""
    for block in list(blocks(tree)):
        made: list[ast.stmt] = []
        for statement in block:
            found = change(statement)
            made.extend([statement] if found is None else found)
        block[:] = made


def negated(test: ast.expr) -> ast.expr:
    """The opposite of a test."""
    return (
        test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else ast.UnaryOp(ast.Not(), test)
    )


class Renamed(ast.NodeTransformer):
    """Puts expressions in the place of names that are read, inside nested scopes too."""

    def __init__(self, by_name: dict[str, ast.expr]) -> None:
        self.by_name = by_name

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name that is read."""
        made = self.by_name.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return node if made is None else deepcopy(made)


def rebinds(node: ast.AST, text: str) -> bool:
    """Whether a scope below a node has a name of its own that is the same."""
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef | ast.Lambda) and text in parameters(one):
            return True
        if isinstance(one, ast.Name) and one.id == text and not isinstance(one.ctx, ast.Load):
            return True
    return False
