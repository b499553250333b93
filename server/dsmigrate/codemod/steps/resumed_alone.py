"""MG622 again: a checkpoint of which the script brings back the optimizer's state, and not always the weights.

DeepSpeed loads weights without the optimizer (``load_module_only``), and not the other way round: ``resume_engine`` brings
the weights of the saved run too. Whoever goes on with others has to be told.
"""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.checkpoint_facts import Found, origins
from dsmigrate.codemod.steps.implied_tests import is_implied
from dsmigrate.codemod.steps.rank_tests import asks_for_rank
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_NAMED = re.compile(r"""^["'](\w+)["']$""")
_WEIGHTS = re.compile(
    r"model|state|net|weight|module|param|coder|backbone|generat|discrim|student|head|ema", re.IGNORECASE
)
_NO_WEIGHTS = re.compile(r"optim|sched|scaler|epoch|step|rng|random|args|config|cfg", re.IGNORECASE)
_ASKS = frozenset({"get", "pop", "keys"})
_DEPTH = 4


def weights_left_out(plan: Plan, found: Found) -> None:
    """Say where weights come back that the script leaves as they are when it resumes."""
    ours, again = set(found.loads), set(plan.facts["read_again"])
    for call in found.optimizer_loads:
        loads = set(origins(plan, call)) & ours
        if not loads:
            continue
        known = loads | again
        beside = [c for c in (*found.model_loads, *found.part_loads) if set(origins(plan, c)) & known]
        if beside:
            _under_conditions(plan, plan.tree.statement(call), [plan.tree.statement(c) for c in beside], known)
        elif not _reads_weights(plan, found, known):
            _not_loaded(plan, found, call)


def _not_loaded(plan: Plan, found: Found, call: cst.Call) -> None:
    """Mark a resume that begins with new weights; where others are loaded, they are mostly those of the same run."""
    if found.model_loads or found.part_loads or any(_is_pretrained(other) for other in plan.tree.calls):
        plan.kept("MG622", call, "resume_engine brings back the weights of this checkpoint with the optimizer's state; those that were loaded "
                  "from elsewhere are replaced by them", "engine.load_checkpoint loads both")  # fmt: skip
        return
    plan.todo("MG622", call, "only the optimizer's state was loaded from this checkpoint, and resume_engine brings back its weights too: where "
              "training should go on with others, load them in front of deepspeed.initialize, and do without resume_engine",
              "engine.load_checkpoint cannot load the optimizer's state without the weights")  # fmt: skip


def _is_pretrained(call: cst.Call) -> bool:
    return (dotted(call.func) or "").rpartition(".")[2] == "from_pretrained"


def _under_conditions(plan: Plan, optimizer: Statement, weights: list[Statement], loads: set[cst.Call]) -> None:
    """Mark weights that are loaded under a condition that the optimizer's state does not have."""
    if any(one.function is not optimizer.function for one in weights):
        return
    around = set(branches_to(optimizer))
    for one in weights:
        further = [
            (node, branch)
            for node, branch in branches_to(one)
            if (node, branch) not in around
            and not (isinstance(node, cst.If) and is_implied(plan, node.test, branch, one, optimizer))
        ]
        tests = [
            node.test
            for node, branch in further
            if isinstance(node, cst.If) and not any(_is_in_another(node, branch, other) for other in weights)
        ]
        if not any(_is_open(plan, test, one.function, loads) for test in tests):
            return
    plan.todo("MG622", weights[0], "the weights come back with the optimizer's state now, whatever the condition around their load says: "
              "keep resume_engine from running where they should stay", "engine.load_checkpoint loads both")  # fmt: skip


def _is_in_another(node: Node, branch: str, other: Statement) -> bool:
    """Whether a load stands in another branch of the same ``if``: then one of them always runs."""
    return any(outer is node and which != branch for outer, which in branches_to(other))


def _is_open(plan: Plan, test: Node, function: Function, loads: set[cst.Call]) -> bool:
    """Whether a condition asks for neither the rank, nor the kind of the model, nor what the checkpoint holds."""
    if asks_for_rank(plan, test, function):
        return False
    parts = [sub for sub in descendants(test) if isinstance(sub, cst.Name | cst.Call)]
    return not any(
        (isinstance(sub, cst.Call) and dotted(sub.func) in ("hasattr", "isinstance"))
        or _is_of(plan, sub, function, loads)
        for sub in parts
    )


def _reads_weights(plan: Plan, found: Found, loads: set[cst.Call]) -> bool:
    """Whether more than the states of optimizers and numbers is taken out of a checkpoint, or it is handed on as a whole."""
    states = set(found.optimizer_loads)
    return any(
        _takes_weights(plan, sub, statement.function, loads)
        for statement in plan.tree.statements
        if not isinstance(statement.node, cst.BaseCompoundStatement)
        for sub in descendants(statement.node)
        if sub not in states
    )


def _takes_weights(plan: Plan, node: Node, function: Function, loads: set[cst.Call]) -> bool:
    """``checkpoint["model"]``, ``checkpoint.get("model")``, ``checkpoint.model`` and ``read(checkpoint)``."""
    if isinstance(node, cst.Call):
        func = node.func
        if isinstance(func, cst.Attribute) and func.attr.value in _ASKS and node.args:
            return _is_of(plan, func.value, function, loads) and _may_name_weights(plan.code(node.args[0]))
        if dotted(func) in ("len", "print", "isinstance", "type"):
            return False
        return any(_is_of(plan, arg.value, function, loads) for arg in node.args)
    if isinstance(node, cst.Subscript):
        key = ", ".join(plan.code(element) for element in node.slice)
    elif isinstance(node, cst.Attribute) and node.attr.value not in _ASKS:
        key = f'"{node.attr.value}"'
    else:
        return False
    return _may_name_weights(key) and _is_of(plan, node.value, function, loads)


def _may_name_weights(key: str) -> bool:
    """Whether weights may stand under a key; under one that is no text, anything may."""
    named = _NAMED.match(key.partition(",")[0].strip())
    return named is None or bool(_WEIGHTS.search(named[1]) and not _NO_WEIGHTS.search(named[1]))


def _is_of(plan: Plan, node: Node, function: Function, loads: set[cst.Call], depth: int = _DEPTH) -> bool:
    """Whether an expression is what one of the loads gave."""
    if node in loads:
        return True
    place = plan.flow.place(node, function) if depth and isinstance(node, cst.Name | cst.Attribute) else None
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return any(_is_of(plan, b.value, b.function, loads, depth - 1) for b in bindings if b.index is None)
