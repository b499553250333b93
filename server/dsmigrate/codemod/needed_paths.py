"""Options that are None by default and that a script takes for a path when it starts, whatever else is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

_TAKES_PATH = frozenset(
    {"realpath", "abspath", "dirname", "basename", "join", "expanduser", "isfile", "isdir", "exists"}
)
_FOLDERS = frozenset({"os.makedirs", "os.mkdir", "open"})
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def used_as_paths(entry: ast.Module) -> frozenset[str]:
    """The attributes, ``dist_file`` in ``os.path.realpath(args.dist_file)``, which the script cannot start with as None."""
    stored = {
        node.attr for node in ast.walk(entry) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }
    functions = {node.name: node for node in entry.body if isinstance(node, ast.FunctionDef)}
    found: set[str] = set()
    queue: list[Sequence[ast.stmt]] = [entry.body]
    seen: set[str] = set()
    while queue:
        for statement in _always(queue.pop()):
            for call in _evaluated(statement):
                found.update(_paths(call))
                name = call.func.id if isinstance(call.func, ast.Name) else ""
                if name in functions and name not in seen:
                    seen.add(name)
                    queue.append(functions[name].body)
    return frozenset(found - stored)


def _always(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The simple statements of a block that nothing but the script's start is a condition of."""
    for statement in block:
        if isinstance(statement, ast.If) and ast.unparse(statement.test).startswith("__name__"):
            yield from _always(statement.body)
        elif isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
            yield statement
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        elif any(isinstance(node, _LEAVES) for node in ast.walk(statement)):
            return


def _evaluated(node: ast.AST) -> Iterator[ast.Call]:
    """The calls of a statement that are evaluated whatever its values are."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.IfExp | ast.BoolOp | ast.Lambda | ast.comprehension):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _evaluated(child)


def _paths(call: ast.Call) -> Iterator[str]:
    text = ast.unparse(call.func)
    head, _, last = text.rpartition(".")
    if text in _FOLDERS or (head in ("os.path", "osp") and last in _TAKES_PATH):
        for arg in call.args if last == "join" else call.args[:1]:
            if isinstance(arg, ast.Attribute) and isinstance(arg.value, ast.Name):
                yield arg.attr
