"""MG110 again: parts of the model that each rank chooses by its own random numbers (layer drop, one expert of several)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.chosen_calls import chosen_calls
from dsmigrate.codemod.steps.inputs import allowing_unused
from dsmigrate.codemod.steps.module_weights import is_in_the_model
from dsmigrate.codemod.steps.modules import is_method_of_a_module, runs_later
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_RANDOM = re.compile(
    r"^(?:random|numpy\.random|secrets)\.\w+|^torch\.(?:rand|randn|randint|randperm|bernoulli|multinomial)(?:_like)?$"
)
_OF_A_TENSOR = frozenset({"uniform_", "bernoulli_", "bernoulli", "random_", "multinomial"})
_DEPTH = 3


def run(plan: Plan) -> None:
    """Let the config have ZeRO 0 where a forward, or the loop that calls it, chooses at random which parts of the model run."""
    if not any(True for _ in allowing_unused(plan)):
        return
    for statement in chosen_calls(plan):
        plan.needs_stage_zero("MG110", statement, "random numbers of each rank choose here how the model is called, so the ranks may have "
                              "gradients of different parameters", "ZeRO 1 and 2 exchange them by their places in a bucket: those of one "
                              "layer with those of another, or buckets of different sizes, which stops the run")  # fmt: skip
    for statement in plan.tree.statements:
        function = statement.function
        if function.owner is None or function.name == "__init__" or not _chooses(plan, statement):
            continue
        if (
            is_method_of_a_module(plan, function)
            and runs_later(plan, function)
            and is_in_the_model(plan, function.owner)
        ):
            plan.needs_stage_zero("MG110", statement, "random numbers of each rank choose here which parts of the model run, so the ranks "
                                  "may have gradients of different parameters",
                                  "ZeRO 1 and 2 average them by their places in a bucket: those of one layer with those of another")  # fmt: skip


def _chooses(plan: Plan, statement: Statement) -> bool:
    """``if random.random() < p: continue`` around parts, and ``self.layers[random.randrange(n)](x)``."""
    node, function = statement.node, statement.function
    if isinstance(node, cst.If):
        return _is_random(plan, node.test, function) and _leaves_out(statement)
    if isinstance(node, cst.For):
        names = _over_parts(node, function)
        calls = (sub for sub in descendants(node.body) if isinstance(sub, cst.Call))
        return _is_random(plan, node.iter, function) and any(_is_part(call.func, function, names) for call in calls)
    if isinstance(node, cst.BaseCompoundStatement):
        return False
    return any(_is_random(plan, chosen, function) for chosen in _chosen(node, function))


def _chosen(node: Node, function: Function) -> Iterator[Node]:
    """What tells which part is called, or whether one is: the index of it, the test of ``part(x) if test else x``."""
    for sub in descendants(node):
        if isinstance(sub, cst.Call) and isinstance(sub.func, cst.Subscript) and _is_own(sub.func.value, function):
            yield from sub.func.slice
        elif isinstance(sub, cst.Call) and isinstance(sub.func, cst.Call):
            if any(_is_own(arg.value, function) for arg in sub.func.args):
                yield sub.func
        elif isinstance(sub, cst.IfExp):
            calls = [
                each for side in (sub.body, sub.orelse) for each in descendants(side) if isinstance(each, cst.Call)
            ]
            if any(_is_part(call.func, function, set()) for call in calls):
                yield sub.test


def _leaves_out(statement: Statement) -> bool:
    """Whether one branch of an ``if`` runs a part of the model, or leaves out those that come after it."""
    node, function = statement.node, statement.function
    loops = [outer for outer in statement.enclosing() if isinstance(outer.node, cst.For | cst.While)]
    around = [node]
    if any(isinstance(sub, cst.Return) for sub in descendants(node)):
        around = [inner.node for inner in function.statements]
    elif loops and any(isinstance(sub, cst.Continue | cst.Break) for sub in descendants(node)):
        around = [loops[0].node]
    names = {name for outer in loops for name in _over_parts(outer.node, function)}
    calls = (sub for each in around for sub in descendants(each) if isinstance(sub, cst.Call))
    return any(_is_part(call.func, function, names) for call in calls)


def _over_parts(loop: Node, function: Function) -> set[str]:
    """The variables of a loop over attributes of the module: ``for layer in self.layers``."""
    if isinstance(loop, cst.For) and any(_is_own(sub, function) for sub in descendants(loop.iter)):
        return {sub.value for sub in descendants(loop.target) if isinstance(sub, cst.Name)}
    return set()


def _is_part(func: Node, function: Function, names: set[str]) -> bool:
    """``self.layer``, ``self.layers[i]``, or the variable of a loop over parts, as what is called."""
    func = func.value if isinstance(func, cst.Subscript) else func
    return _is_own(func, function) or (isinstance(func, cst.Name) and func.value in names)


def _is_own(node: Node, function: Function) -> bool:
    name = dotted(node) or ""
    return function.self_name is not None and name.startswith(f"{function.self_name}.")


def _is_random(plan: Plan, node: Node, function: Function, depth: int = _DEPTH) -> bool:
    """Whether an expression has random numbers in it, through variables of its function."""
    for sub in descendants(node):
        if isinstance(sub, cst.Call):
            method = sub.func.attr.value if isinstance(sub.func, cst.Attribute) else ""
            if method in _OF_A_TENSOR or any(_RANDOM.search(name) for name in plan.imports.names(sub.func)):
                return True
            if depth and _gives_random(plan, sub, depth - 1):
                return True
        elif isinstance(sub, cst.Name) and depth:
            place = plan.flow.variable(sub.value, function)
            bound = [
                b for b in plan.flow.by_place.get(place, ()) if b.function is function and b.kind in ("assign", "for")
            ]
            if any(_is_random(plan, b.value, function, depth - 1) for b in bound):
                return True
    return False


def _gives_random(plan: Plan, call: cst.Call, depth: int) -> bool:
    """Whether a function of the tree gives back a random number, or a test of one."""
    return any(
        isinstance(binding.value, cst.Comparison | cst.BooleanOperation | cst.Name | cst.Call)
        and _is_random(plan, binding.value, binding.function, depth)
        for callee in plan.flow.callees(call)
        for binding in plan.flow.by_place.get(plan.flow.returned(callee), ())
    )
