"""MG210: a file of definitions alone, which trains only when another script imports it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan

IDEAS = (
    Idea(
        "MG210",
        "Nothing in the file starts the training",
        "The file defines the training and does not run it; the launch commands would end at once.",
        "The script that imports it makes the processes and the arguments. Given that script, both are converted; "
        "converted alone, the file expects the variables of a launcher, which mp.spawn in another script does not set.",
        "torchrun runs the file as __main__; deepspeed/comm/comm.py, init_distributed",
        Kind.KEPT,
    ),
)


def run(plan: Plan) -> None:
    """Say so where the entry script only defines things."""
    body = plan.tree.parts[0].python.body
    own = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    if plan.wraps and _only_defines(body, own):
        plan.kept("MG210", plan.wraps[0].statement, "nothing in this file starts the training: convert the script that does, it is the one to launch",
                  "run by itself, the file only defines functions and classes")  # fmt: skip


def _only_defines(body: Sequence[ast.stmt], own: set[str]) -> bool:
    """Whether statements import, define and set things, and call nothing that the file defines."""
    for node in body:
        if isinstance(node, ast.Try):
            parts = [node.body, node.orelse, node.finalbody, *(handler.body for handler in node.handlers)]
            if not all(_only_defines(part, own) for part in parts):
                return False
        elif isinstance(node, ast.If):
            if "__name__" in ast.dump(node.test) or not all(_only_defines(b, own) for b in (node.body, node.orelse)):
                return False
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            if any(isinstance(sub, ast.Call) and _root(sub.func) in own for sub in ast.walk(node)):
                return False
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                return False
        elif not isinstance(node, _DEFINING):
            return False
    return True


_DEFINING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
