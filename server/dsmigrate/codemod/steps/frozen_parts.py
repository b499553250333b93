"""Which parts of a module its own class freezes: what is written there has no copy in the optimizer."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.modules import code_of, is_beginning, related
from dsmigrate.codemod.steps.unpacking import unpacked
from dsmigrate.codemod.tree import Class, Statement, descendants

_OFF = r"\.requires_grad(?:_\(\s*(?:requires_grad\s*=\s*)?False|\s*=\s*False)"
_FREEZES = re.compile(r"freeze|frozen|requires_?grad|no_?grad|disable_?grad", re.IGNORECASE)
_ALL_OF = frozenset({"parameters", "named_parameters", "modules", "named_modules", "children", "named_children"})


def is_frozen(plan: Plan, cls: Class, owner: str, path: Sequence[str]) -> bool:
    """Whether ``self.a.b``, given as its names, or a part that it belongs to, is frozen by its class.

    A part counts where the module's beginning freezes it on all ways; the parameter itself, wherever that is said.
    """
    parts = [".".join((owner, *path[:count])) for count in range(len(path) + 1)]
    for one in related(plan, cls):
        code = code_of(plan, one)
        if "requires_grad" not in code and not _FREEZES.search(code):
            continue
        if path and re.search(rf"\b{re.escape(parts[-1])}(?:\.data)?{_OFF}", code):
            return True
        begins = [function for function in one.methods.values() if is_beginning(function)]
        statements = [statement for function in begins for statement in function.statements]
        if any(_is_on_all_ways(statement) and _freezes(plan, statement, parts) for statement in statements):
            return True
    return False


def _is_on_all_ways(statement: Statement) -> bool:
    return not any(isinstance(outer.node, cst.If | cst.Try | cst.While) for outer in statement.enclosing())


def _freezes(plan: Plan, statement: Statement, parts: list[str]) -> bool:
    """``for p in self.a.parameters(): p.requires_grad = False``, ``self.a.requires_grad_(False)``, ``freeze(self.a)``."""
    node = statement.node
    if isinstance(node, cst.For):
        return _freezes_all(plan, node, parts)
    call = node.value if isinstance(node, cst.Expr) else None
    if not isinstance(call, cst.Call) or not call.args:
        return False
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "requires_grad_":
        return dotted(call.func.value) in parts and dotted(call.args[0].value) == "False"
    name = (dotted(call.func) or "").rpartition(".")[2]
    if dotted(call.args[0].value) not in parts or "unfreeze" in name or not _FREEZES.search(name):
        return False
    return not any(dotted(a.value) == "True" for a in call.args)


def _freezes_all(plan: Plan, loop: cst.For, parts: list[str]) -> bool:
    if any(isinstance(sub, cst.If) for sub in descendants(loop.body)):
        return False
    for target, iterable, _ in unpacked(loop.target, loop.iter):
        func = iterable.func if isinstance(iterable, cst.Call) else None
        if isinstance(func, cst.Attribute) and func.attr.value in _ALL_OF and dotted(func.value) in parts:
            if isinstance(target, cst.Name) and re.search(rf"\b{target.value}[\w.]*{_OFF}", plan.code(loop.body)):
                return True
    return False
