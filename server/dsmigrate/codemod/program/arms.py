"""Code that stands in two forms under ``ds_compat.is_engine``, as the conversion of another script left it."""

from __future__ import annotations

import ast

from dsmigrate.codemod.program.module import Module


def is_in_old_form(module: Module, node: ast.AST) -> bool:
    """Whether what a node stands in is run where there is no engine: where there is one, its new form is run."""
    step = module.step(node)
    for one in step.around():
        outer = one.up.node if one.up is not None else None
        engine = asks_for_engine(outer.test) if isinstance(outer, ast.If) else None
        if engine is not None and isinstance(outer, ast.If) and one.body is (outer.orelse if engine else outer.body):
            return True
    chosen = (one for one in ast.walk(step.node) if isinstance(one, ast.IfExp) and asks_for_engine(one.test))
    return any(node in set(ast.walk(one.orelse)) for one in chosen)


def asks_for_engine(test: ast.expr) -> bool | None:
    """Whether a test is that of a conversion, for the engine or (False) for what is none; None for any other."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = asks_for_engine(test.operand)
        return None if found is None else not found
    return True if isinstance(test, ast.Call) and ast.unparse(test.func).endswith("ds_compat.is_engine") else None
