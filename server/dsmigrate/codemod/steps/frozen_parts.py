"""Which parts of a module its own class freezes: what is written there has no copy in the optimizer."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.modules import code_of, related
from dsmigrate.codemod.steps.unpacking import unpacked
from dsmigrate.codemod.tree import Class, Statement

_OFF = r"\.requires_grad(?:_\(\s*(?:requires_grad\s*=\s*)?False|\s*=\s*False)"
_FREEZES = re.compile(r"freeze|frozen|requires_?grad|no_?grad|disable_?grad", re.IGNORECASE)
_ALL_OF = frozenset({"parameters", "named_parameters", "modules", "named_modules", "children", "named_children"})


def is_frozen(plan: Plan, cls: Class, owner: str, path: Sequence[str]) -> bool:
    """Whether ``self.a.b``, given as its names, or a part that it belongs to, is frozen by its class."""
    parts = [".".join((owner, *path[:count])) for count in range(len(path) + 1)]
    for one in related(plan, cls):
        code = code_of(plan, one)
        if "requires_grad" not in code and not _FREEZES.search(code):
            continue
        if any(re.search(rf"\b{re.escape(part)}(?:\.data)?{_OFF}", code) for part in parts):
            return True
        statements = [statement for function in one.methods.values() for statement in function.statements]
        if any(_freezes(plan, statement, parts) for statement in statements):
            return True
    return False


def _freezes(plan: Plan, statement: Statement, parts: list[str]) -> bool:
    """``for p in self.a.parameters(): p.requires_grad = False``, ``freeze(self.a)``, ``set_requires_grad(self.a, False)``."""
    node = statement.node
    if isinstance(node, cst.For):
        body = plan.code(node.body)
        for target, iterable, _ in unpacked(node.target, node.iter):
            func = iterable.func if isinstance(iterable, cst.Call) else None
            if isinstance(func, cst.Attribute) and func.attr.value in _ALL_OF and dotted(func.value) in parts:
                if isinstance(target, cst.Name) and re.search(rf"\b{target.value}[\w.]*{_OFF}", body):
                    return True
        return False
    call = node.value if isinstance(node, cst.Expr) else None
    if not isinstance(call, cst.Call) or not call.args or dotted(call.args[0].value) not in parts:
        return False
    name = (dotted(call.func) or "").rpartition(".")[2]
    return (
        bool(_FREEZES.search(name)) and "unfreeze" not in name and not any(dotted(a.value) == "True" for a in call.args)
    )
