"""Functions of a project that this training never calls: samplers and tools that other scripts use."""

from __future__ import annotations

from collections import Counter

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, descendants

_PLAIN_DECORATORS = ("no_grad", "inference_mode", "staticmethod", "classmethod")
_PLAIN_BASES = frozenset({"object", "Module", "ABC"})


def may_run(plan: Plan, function: Function) -> bool:
    """Whether a function may run in this training: what runs calls it, or its name is used in another way than a call."""
    running: set[Function] | None = plan.facts.get("running")
    if running is None:
        running = plan.facts["running"] = _running(plan)
    return function in running


def _running(plan: Plan) -> set[Function]:
    called: dict[Function, set[Function]] = {}
    calls: dict[str, set[cst.Call]] = {}
    for function in plan.tree.functions:
        callers = plan.flow.callers.get(function, ())
        calls.setdefault(function.name, set()).update(callers)
        for call in callers:
            called.setdefault(plan.function_of(call), set()).add(function)
    defined = Counter(function.name for function in plan.tree.functions)
    mentions = _mentions(plan)
    queue = [
        function
        for function in plan.tree.functions
        if function.is_module
        or mentions[function.name] > defined[function.name] + len(calls[function.name])
        or _is_called_from_afar(plan, function)
    ]
    found = set(queue)
    while queue:
        more = called.get(queue.pop(), set()) - found
        found |= more
        queue += more
    return found


def _is_called_from_afar(plan: Plan, function: Function) -> bool:
    """Whether a library may call a function: a decorator or a class of the library has it, or Python itself does."""
    node, owner = function.node, function.owner
    if not isinstance(node, cst.FunctionDef) or function.name == "forward" or function.name.startswith("__"):
        return True
    if any(not any(word in plan.code(d.decorator) for word in _PLAIN_DECORATORS) for d in node.decorators):
        return True
    if owner is None:
        return False
    classes = [owner, *plan.flow.bases(owner)]
    here = {cls.scope.name for cls in classes}
    return any(base.rpartition(".")[2] not in here | _PLAIN_BASES for cls in classes for base in cls.bases)


def _mentions(plan: Plan) -> Counter[str]:
    """How often each name stands in the files of this training, in a text too."""
    found: Counter[str] = Counter()
    for part in plan.tree.parts:
        for node in descendants(part.module):
            if isinstance(node, cst.Name):
                found[node.value] += 1
            elif isinstance(node, cst.SimpleString):
                found[str(node.evaluated_value)] += 1
    return found
