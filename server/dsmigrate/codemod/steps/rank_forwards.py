"""MG711: forward passes that only some ranks run. At ZeRO stage 3 a forward is collective."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.alone import asks_for_no_rank
from dsmigrate.codemod.steps.checkpoint_facts import PARTITIONED
from dsmigrate.codemod.steps.rank_tests import splits_ranks
from dsmigrate.codemod.tree import Function, Node, Statement

IDEAS = (
    Idea(
        "MG711",
        "A forward that only some ranks run",
        "`if rank == 0: validate(model)` waits for ever, or fails, at ZeRO stage 3.",
        "At stage 3 the ranks gather every layer's parameters together, in each forward. A rank that evaluates alone waits "
        "for the others, or takes part in what they gather for something else. Below stage 3 every rank has the whole "
        "model and may run it alone. A model with fewer parameters than stage3_max_live_parameters may get by at stage 3 "
        "as long as its parameters happen to be whole. Run the evaluation on all ranks, the same number of forwards on "
        "each, and keep what is done with the result (print, log, save) under the guard.",
        "measured against DeepSpeed 0.19.8; https://github.com/deepspeedai/DeepSpeed/issues/860",
        Kind.TODO,
    ),
)

_FORWARDS = re.compile(
    r"^(?:forward|__call__|generate|sample|predict|infer|inference|encode|decode|embed|extract|compute_loss|get_\w*features)"
    r"(?:_\w+)?$"
)
_RUNS = re.compile(
    r"eval|valid|test|infer|generat|sampl|predict|visuali|demo|bench|score|accuracy|perplex|plot", re.IGNORECASE
)
_ONLY = re.compile(r"rank_?zero|rank_?0|main_process|main_rank|master_only|on_main|on_master|only_main")
_DEPTH = 6


def run(plan: Plan) -> None:
    """Mark forwards under a rank guard at stage 3; below it one sentence says that stage 3 needs them on all ranks."""
    seen: set[Statement] = set()
    for call in plan.tree.calls:
        if plan.is_before_engine(call) or not runs_model(plan, call):
            continue
        for guard, where in guarded_places(plan, call):
            if guard in seen:
                continue
            seen.add(guard)
            if plan.zero_stage == PARTITIONED:
                plan.todo("MG711", where, "only some ranks run this forward: run it on all ranks, as often on each, and keep "
                          "the guard for its result", "at ZeRO stage 3 all ranks gather the parameters together; one alone waits for ever")  # fmt: skip
            else:
                plan.kept("MG711", where, "only some ranks run this forward; it stays",
                          "every rank has the whole model below ZeRO stage 3; at stage 3 all ranks would have to run it")  # fmt: skip
                return


def runs_model(plan: Plan, call: cst.Call) -> bool:
    """Whether a call runs the trained model: itself, by a method of it, or in a function of a module that is not here."""
    func = call.func
    if isinstance(func, cst.Name | cst.Attribute | cst.Subscript) and plan.is_ours(func):
        return True
    if isinstance(func, cst.Attribute) and _FORWARDS.match(func.attr.value) and plan.is_ours(func.value):
        return True
    if plan.flow.callee(call) is not None:
        return False
    last = (dotted(func) or "").rpartition(".")[2]
    return bool(_RUNS.search(last)) and any(
        isinstance(arg.value, cst.Name | cst.Attribute) and plan.is_ours(arg.value) for arg in call.args
    )


def guarded_places(plan: Plan, call: Node, depth: int = _DEPTH) -> Iterator[tuple[Statement, Statement]]:
    """The guards that let only some ranks to a call, each with the statement behind it; none where all ranks get there.

    Where a function is called from several places, each of them that stands under a guard is one.
    """
    statement = plan.tree.statement(call)
    own = _guard_here(plan, call, statement)
    if own is not None:
        yield own
        return
    if depth == 0:
        return
    for caller in plan.flow.callers.get(statement.function, ()):
        if plan.function_of(caller) is not statement.function:
            yield from guarded_places(plan, caller, depth - 1)


def has_free_way(plan: Plan, call: cst.Call, depth: int = _DEPTH) -> bool:
    """Whether a way leads to a call on which no guard stands, so that all ranks get there."""
    function = plan.function_of(call)
    statement = plan.tree.statement(call)
    if _guard_here(plan, call, statement) is not None or _is_for_one_process(statement):
        return False
    callers = [other for other in plan.flow.callers.get(function, ()) if plan.function_of(other) is not function]
    return not callers or depth == 0 or any(has_free_way(plan, other, depth - 1) for other in callers)


def _is_for_one_process(statement: Statement) -> bool:
    """Whether a statement stands where only a process without a launcher comes: under ``local_rank == -1 and …``."""
    branch = statement.branch
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If) and branch == "body":
            tests = [outer.node.test]
            while isinstance(tests[-1], cst.BooleanOperation) and isinstance(tests[-1].operator, cst.And):
                tests[-1:] = [tests[-1].right, tests[-1].left]
            if any(asks_for_no_rank(test, cst.Equal) for test in tests):
                return True
        branch = outer.branch
    return False


def _guard_here(plan: Plan, call: Node, statement: Statement) -> tuple[Statement, Statement] | None:
    """The guard of a call within its own function."""
    if _chosen_by_rank(plan, call):
        return statement, statement
    inner = statement
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If) and splits_ranks(plan, outer.node.test, outer.function):
            return outer, inner
        inner = outer
    left = _left_by_some(plan, statement)
    if left is not None:
        return left, statement
    if _only_by_decorator(plan, statement.function):
        return statement.function.statements[0], statement
    return None


def _chosen_by_rank(plan: Plan, call: Node) -> bool:
    """``validate(model) if rank == 0 else None`` and ``rank == 0 and validate(model)``."""
    below: Node = call
    function = plan.function_of(call)
    for node in plan.tree.ancestors(call):
        if isinstance(node, cst.BaseStatement | cst.BaseSmallStatement):
            return False
        if isinstance(node, cst.IfExp) and below is not node.test and splits_ranks(plan, node.test, function):
            return True
        if isinstance(node, cst.BooleanOperation) and below is node.right and splits_ranks(plan, node.left, function):
            return True
        below = node
    return False


def _left_by_some(plan: Plan, statement: Statement) -> Statement | None:
    """An ``if rank != 0: return`` (or ``continue``) above a statement, in a block around it."""
    around = {id(outer.block): outer for outer in (statement, *statement.enclosing())}
    for other in statement.function.statements:
        inside = around.get(id(other.block))
        if inside is None or other.order >= inside.order or not isinstance(other.node, cst.If):
            continue
        if other.node.orelse is None and _leaves(other) and splits_ranks(plan, other.node.test, other.function):
            return other
    return None


def _leaves(guard: Statement) -> bool:
    inner = list(_body(guard))
    return bool(inner) and isinstance(inner[-1].node, cst.Return | cst.Continue | cst.Break)


def _body(guard: Statement) -> Iterator[Statement]:
    for other in guard.function.statements:
        if other.up is guard:
            yield other


def _only_by_decorator(plan: Plan, function: Function) -> bool:
    node = function.node
    return isinstance(node, cst.FunctionDef) and any(_ONLY.search(plan.code(d.decorator)) for d in node.decorators)
