"""MG630: parameters and moments that the script reaches through the optimizer, which ZeRO fills with flat pieces."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.makers import is_inside_optimizer
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG630",
        "Parameters are reached through the optimizer",
        'optimizer.param_groups[...]["params"] and optimizer.state are used while the training runs: the config gets ZeRO stage 0.',
        "At ZeRO 1-3 the groups of the script's optimizer hold one flat float32 piece per rank in place of the model's "
        "parameters, and its state belongs to these pieces: norms that are logged are those of a piece, averages and pruning "
        "miss the model, moments of a parameter are not found. Go over model.parameters() to use a stage.",
        "deepspeed/runtime/zero/stage_1_and_2.py: param_group['params'] = [self.single_partition_of_fp32_groups[i]]",
        Kind.KEPT,
    ),
)

_READERS = frozenset({"items", "values", "keys", "get"})
_HARMLESS = frozenset({"len", "id", "type"})


def group_params(plan: Plan) -> None:
    """Choose ZeRO stage 0 where running code takes parameters or their state from the optimizer."""
    for statement in plan.tree.statements:
        node = statement.node
        if plan.zero_stage == 0 or isinstance(node, cst.FunctionDef | cst.ClassDef) or _is_gone(plan, statement):
            continue
        if is_inside_optimizer(plan.roles, statement.function) or _is_about_gradients(node):
            continue
        for sub in _of_statement(node):
            if _reaches_parameters(plan, sub, statement) and not plan.is_before_engine(sub):
                plan.needs_stage_zero("MG630", statement, "parameters or their state are taken from the optimizer here",
                                      "ZeRO 1-3 put flat pieces in their place")  # fmt: skip
                break


def _is_gone(plan: Plan, statement: Statement) -> bool:
    return any(plan.edits.is_removed(s.node) for s in (statement, *statement.enclosing()))


def _is_about_gradients(node: Node) -> bool:
    """Whether a statement goes on to ``p.grad``, which is looked after for itself (MG409)."""
    return any(isinstance(sub, cst.Attribute) and sub.attr.value == "grad" for sub in descendants(node))


def _of_statement(node: Node) -> list[Node]:
    """The nodes of a statement, without those of the statements in it."""
    if isinstance(node, cst.For):
        return [*descendants(node.iter)]
    if isinstance(node, cst.If | cst.While):
        return [*descendants(node.test)]
    return [] if isinstance(node, cst.BaseCompoundStatement) else [*descendants(node)]


def _reaches_parameters(plan: Plan, node: Node, statement: Statement) -> bool:
    if isinstance(node, cst.Subscript) and _key(node) == "params":
        parent = plan.tree.parent.get(node)
        call = plan.tree.parent.get(parent) if isinstance(parent, cst.Arg) else None
        counted = isinstance(call, cst.Call) and dotted(call.func) in _HARMLESS
        return not counted and _is_group(plan, node.value, statement)
    if isinstance(node, cst.Subscript):
        return _is_state(plan, node.value)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _READERS:
        return _is_state(plan, node.func.value)
    return False


def _key(node: cst.Subscript) -> str:
    index = node.slice[0].slice if len(node.slice) == 1 else None
    value = index.value if isinstance(index, cst.Index) else None
    return str(value.evaluated_value) if isinstance(value, cst.SimpleString) else ""


def _is_state(plan: Plan, node: Node) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "state" and plan.roles.is_optimizer(node.value)


def _is_group(plan: Plan, node: Node, statement: Statement) -> bool:
    """Whether an expression is one of the optimizer's groups: an element of ``param_groups``, or a variable of a loop over it."""
    if isinstance(node, cst.Subscript):
        return _is_groups(plan, node.value)
    if not isinstance(node, cst.Name):
        return False
    loops: list[tuple[Node, Node]] = [
        (outer.node.target, outer.node.iter)
        for outer in (statement, *statement.enclosing())
        if isinstance(outer.node, cst.For)
    ]
    loops += [(sub.target, sub.iter) for sub in descendants(statement.node) if isinstance(sub, cst.CompFor)]
    return any(
        any(isinstance(sub, cst.Name) and sub.value == node.value for sub in descendants(target))
        and any(_is_groups(plan, sub) for sub in descendants(iterated))
        for target, iterated in loops
    )


def _is_groups(plan: Plan, node: Node) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "param_groups" and plan.roles.is_optimizer(node.value)
