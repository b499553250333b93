"""Which classes make parts of a model in their forward; by the standard library's parser."""

from __future__ import annotations

import ast
import re

_PART = re.compile(r"(?:^|\.)[A-Z]\w*$")


def makes_late(definition: ast.ClassDef) -> bool:
    """Whether a method that a forward runs makes layers or parameters: ``self.proj = nn.Linear(…)``."""
    methods = {m.name: m for m in definition.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)}
    queue = [name for name in methods if name.startswith("forward")]
    seen: set[str] = {"__init__"}
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in ast.walk(methods[name]):
            if _makes(node):
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
                queue.append(node.func.attr)
    return False


def _makes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in ("register_parameter", "add_module")
    if not isinstance(node, ast.Assign) or not any(isinstance(target, ast.Attribute) for target in node.targets):
        return False
    return any(isinstance(sub, ast.Call) and _PART.search(ast.unparse(sub.func)) for sub in ast.walk(node.value))
