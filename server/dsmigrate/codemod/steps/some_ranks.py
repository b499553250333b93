"""MG711: at ZeRO 3 every forward is collective, so a forward on some ranks only waits for the others for ever."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.evaluation import is_evaluation_elsewhere
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

IDEAS = (
    Idea(
        "MG711",
        "A forward on some ranks only hangs at ZeRO 3",
        "All ranks have to run the forward together at ZeRO 3, an evaluation under a rank guard too.",
        "Every rank holds a part of each parameter, and a forward gathers them: the rank that evaluates alone waits for the "
        "others, which go on to another collective. At ZeRO 0, 1 and 2 each rank has the whole model.",
        "measured against DeepSpeed 0.19.8; deepspeed/runtime/zero/partition_parameters.py, all_gather_coalesced",
        Kind.TODO,
    ),
)

_RANK = re.compile(r"rank|\bgpu(?:_id)?\b|proc(?:ess)?_?id", re.IGNORECASE)
_ONE = re.compile(
    r"(?:is_?|_)?(?:main|master|primary|chief|zero|root|first)_?(?:process|proc|worker|rank)?\b|is_(?:main|master|primary|chief|root)|"
    r"(?:main|master)_(?:process|proc|worker)|is_(?:local_|global_)?(?:rank_)?zero|is_logger",
    re.IGNORECASE,
)
_DEPTH = 5


def run(plan: Plan) -> None:
    """Mark every rank guard around a forward of the trained model; nothing to do below stage 3."""
    if plan.zero_stage != 3:
        return
    marked: set[Statement] = set()
    for call in plan.tree.calls:
        if not _runs_the_model(plan, call) or plan.is_before_engine(call):
            continue
        for guard in _guards(plan, plan.tree.statement(call), _DEPTH, set()):
            if guard not in marked and not _on_both_sides(plan, guard):
                marked.add(guard)
                plan.todo("MG711", guard, "all ranks have to run this forward at ZeRO stage 3, not only some",
                          "a forward gathers the parameters from all ranks")  # fmt: skip


def _runs_the_model(plan: Plan, call: cst.Call) -> bool:
    """Whether a call is a forward of the model, or hands it to an evaluation that another module defines."""
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value in ("forward", "__call__", "generate"):
        func = func.value
    if isinstance(func, cst.Name | cst.Attribute | cst.Subscript) and plan.is_ours(func):
        return True
    return is_evaluation_elsewhere(plan, call) and _is_given_the_model(plan, call)


def _is_given_the_model(plan: Plan, call: cst.Call) -> bool:
    return any(isinstance(arg.value, cst.Name | cst.Attribute) and plan.is_ours(arg.value) for arg in call.args)


def _guards(plan: Plan, statement: Statement, depth: int, seen: set[Function]) -> list[Statement]:
    """The outermost rank guards on the ways to a statement, in its function and in those that call it."""
    around = [outer for outer in statement.enclosing() if isinstance(outer.node, cst.If)]
    if any(_is_for_one_process(plan, outer.node.test) for outer in around if isinstance(outer.node, cst.If)):
        return []
    here = [outer for outer in around if _is_rank_guard(plan, outer)]
    here = here or _early_exits(plan, statement)
    if here:
        return here[-1:]
    function = statement.function
    if depth == 0 or function in seen:
        return []
    seen.add(function)
    callers = [plan.tree.statement(call) for call in plan.flow.callers.get(function, ())]
    return [guard for caller in callers for guard in _guards(plan, caller, depth - 1, seen)]


def _early_exits(plan: Plan, statement: Statement) -> list[Statement]:
    """``if rank != 0: return`` in front of a statement, in one of the blocks around it."""
    blocks = {statement.block, *(outer.block for outer in statement.enclosing())}
    return [
        other
        for other in plan.tree.statements
        if other.function is statement.function
        and other.order < statement.order
        and other.block in blocks
        and _is_rank_guard(plan, other)
        and _ends_early(other.node)
    ]


def _ends_early(node: Node) -> bool:
    if not isinstance(node, cst.If) or node.orelse is not None or not isinstance(node.body, cst.IndentedBlock):
        return False
    last = node.body.body[-1] if node.body.body else None
    if not isinstance(last, cst.SimpleStatementLine):
        return False
    return isinstance(last.body[-1], cst.Return | cst.Continue)


def _is_rank_guard(plan: Plan, statement: Statement) -> bool:
    return isinstance(statement.node, cst.If) and lets_some_in(plan, statement.node.test)


def lets_some_in(plan: Plan, test: Node) -> bool:
    """Whether a test holds on some of the ranks of a distributed training and not on the others."""
    if isinstance(test, cst.BooleanOperation):
        return lets_some_in(plan, test.left) or lets_some_in(plan, test.right)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return lets_some_in(plan, test.expression) or _is_rank(plan, test.expression)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return _compares_a_rank(plan, test)
    if isinstance(test, cst.Name | cst.Attribute | cst.Call):
        name = dotted(test.func if isinstance(test, cst.Call) else test) or ""
        return bool(_ONE.fullmatch(name.rpartition(".")[2]))
    return False


def _compares_a_rank(plan: Plan, test: cst.Comparison) -> bool:
    """``rank == 0``, ``rank in (-1, 0)``, ``rank != 0``; but not ``rank != -1``, which asks for any distributed run."""
    operator, other = test.comparisons[0].operator, test.comparisons[0].comparator
    if not _is_rank(plan, test.left):
        return _is_rank(plan, other) and isinstance(operator, cst.Equal) and plan.code(test.left).strip() == "0"
    text = plan.code(other).replace(" ", "")
    if isinstance(operator, cst.In):
        return "0" in re.findall(r"-?\w+", text)
    if isinstance(operator, cst.Equal | cst.NotEqual | cst.GreaterThan):
        return text == "0"
    return isinstance(operator, cst.LessThan) and text == "1"


def _is_for_one_process(plan: Plan, test: Node) -> bool:
    """``local_rank == -1``: a script's sign that it does not train distributed at all."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _is_for_one_process(plan, test.left) or _is_for_one_process(plan, test.right)
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not _is_rank(plan, test.left):
        return False
    target = test.comparisons[0]
    return isinstance(target.operator, cst.Equal) and plan.code(target.comparator).replace(" ", "") == "-1"


def _is_rank(plan: Plan, node: Node) -> bool:
    """Whether an expression names the rank of this process, also as ``rank % gpus``."""
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, cst.Modulo) and _is_rank(plan, node.left)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "int" and node.args:
        return _RANK.search(plan.code(node.args[0].value)) is not None
    name = dotted(node.func if isinstance(node, cst.Call) else node) or ""
    return _RANK.search(name.rpartition(".")[2]) is not None


def _on_both_sides(plan: Plan, guard: Statement) -> bool:
    """Whether a guard runs the model in each of its branches, so that every rank comes by a forward."""
    node = guard.node
    if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.Else):
        return False
    return all(
        any(
            isinstance(sub, cst.Call) and (_runs_the_model(plan, sub) or _is_given_the_model(plan, sub))
            for sub in descendants(branch)
        )
        for branch in (node.body, node.orelse)
    )
