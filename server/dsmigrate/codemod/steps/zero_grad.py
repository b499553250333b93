"""MG403, MG407, MG408: clearing gradients."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from dsmigrate.codemod.holders import is_holder
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to, innermost_loop
from dsmigrate.codemod.steps.forwards_beside import branches_apart, paths_to
from dsmigrate.codemod.steps.left_behind import finds_gradients
from dsmigrate.codemod.steps.owned import owns_outsiders
from dsmigrate.codemod.steps.passing import hand_over
from dsmigrate.codemod.steps.refusals import stepped_optimizer
from dsmigrate.codemod.steps.sites import Sites, mark_twins, short
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG403",
        "zero_grad goes",
        "engine.step() zeroes the gradients itself.",
        "A zero_grad beside the step, or before the first backward of a step, clears what is already clear. Where the optimizer "
        "owns parameters outside of the model, it stays (MG408): at ZeRO 0 the engine clears its module's only. So it does where "
        "another backward may run between the last step and it.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.CONVERTED,
    ),
    Idea(
        "MG407",
        "The script does not zero its gradients at every step",
        "engine.step() zeroes them after every step; under DDP they kept adding up.",
        "That is nearly always a bug of the original, but the training changes. A second step on the same gradients finds none.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.TODO,
    ),
    Idea(
        "MG408",
        "zero_grad that throws gradients away",
        "A zero_grad away from the step, or behind a backward that no step followed (adversarial examples, SAM, a probe), drops "
        "what has been accumulated; it goes to the engine's optimizer.",
        "At ZeRO 1-3 gradients live in the engine, not in p.grad, so the client optimizer's zero_grad would miss them.",
        "engine-semantics 11",
        Kind.CONVERTED,
    ),
)


def find_zeroes(plan: Plan) -> list[Statement]:
    """Every statement that clears the gradients of the trained model."""
    found = []
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "zero_grad":
            continue
        if plan.roles.is_optimizer(func.value) or plan.is_ours(func.value) or _is_handed_on(plan, call, func):
            statement = plan.tree.statement(call)
            if isinstance(statement.node, cst.Expr) and statement.node.value is call:
                found.append(statement)
    found.extend(statement for statement in plan.tree.statements if _is_none_loop(plan, statement))
    return sorted(found, key=lambda s: s.order)


def _is_handed_on(plan: Plan, call: cst.Call, func: cst.Attribute) -> bool:
    """Whether an object that holds the optimizer has no zero_grad of its own, but a ``__getattr__``."""
    place = plan.flow.place(func.value, plan.function_of(call))
    return place is not None and plan.flow.callee(call) is None and is_holder(plan.flow, place)


_CLEARS = re.compile(r"^(\w+)\.grad(?:=None|(?:\.data)?\.zero_\(\)|\.detach_\(\)|\.requires_grad_\(False\))$")


def _is_none_loop(plan: Plan, statement: Statement) -> bool:
    """``for p in model.parameters(): p.grad = None``, also over ``optimizer.param_groups`` and with ``p.grad.zero_()``."""
    if not isinstance(statement.node, cst.For) or not _goes_over_all(plan, statement.node.iter):
        return False
    inner = plan.tree.statements[statement.order + 1 : statement.last_order + 1]
    variables = {plan.code(s.node.target) for s in (statement, *inner) if isinstance(s.node, cst.For)}
    names = {part.strip() for text in variables for part in text.strip("()").split(",")}
    clears = False
    for other in inner:
        node = other.node
        text = plan.code(node.test if isinstance(node, cst.If) else node).replace(" ", "")
        if isinstance(node, cst.For):
            if not plan.code(node.iter).replace('"', "'").endswith("['params']"):
                return False
        elif isinstance(node, cst.If):
            if node.orelse is not None or text.removesuffix("isnotNone") not in {f"{name}.grad" for name in names}:
                return False
        else:
            found = _CLEARS.match(text)
            if found is None or found[1] not in names:
                return False
            clears = clears or text.endswith(("=None", ".zero_()"))
    return clears


def _goes_over_all(plan: Plan, node: Node) -> bool:
    """``model.parameters()``, ``model.named_parameters()`` or ``optimizer.param_groups``."""
    if isinstance(node, cst.Attribute) and node.attr.value == "param_groups":
        return plan.roles.is_optimizer(node.value)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    return node.func.attr.value in ("parameters", "named_parameters") and plan.is_ours(node.func.value)


def zero_grads(plan: Plan, sites: Sites, *, managed: bool) -> None:
    """Take away what engine.step() does by itself, and hand on what throws gradients away."""
    if not sites.zeroes:
        plan.todo("MG407", sites.steps[0], "nothing in this file zeroes the gradients; engine.step() does after every step",
                  "under DDP the gradients of all steps would add up")  # fmt: skip
        return
    _adds_up(plan, sites)
    _steps_again(plan, sites)
    step_paths = {branches_to(plan.tree.statement(call)) for call in sites.steps}
    step_functions = {plan.function_of(call) for call in sites.steps}
    owns_more = owns_outsiders(plan)
    filled = finds_gradients(plan, sites)
    for statement in sites.zeroes:
        beside_step = any(branches_to(statement)[: len(p)] == p or p[: len(branches_to(statement))] == branches_to(statement)
                          for p in step_paths) and statement.function in step_functions  # fmt: skip
        if _loses_the_step(plan, statement, sites):
            plan.todo("MG408", statement, "the gradients are thrown away between backward and step here, so that nothing is trained: "
                      "take this out, or the step", "the step finds no gradients")  # fmt: skip
            _hand_on(plan, statement, is_filled=True, more=False)
            continue
        more = owns_more and _clears_optimizer(plan, statement)
        is_clear = managed or (beside_step and statement not in filled and _clears_nothing(plan, statement, sites))
        if is_clear and not more:
            plan.edits.remove(statement.node)
            mark_twins(plan, statement)
            plan.converted("MG403", statement, f"{short(plan.code(statement.node))} removed",
                           "engine.step() zeroes the gradients")  # fmt: skip
        else:
            _hand_on(plan, statement, is_filled=statement in filled, more=more)


def _hand_on(plan: Plan, statement: Statement, *, is_filled: bool, more: bool) -> None:
    """Let the engine drop what it has gathered; before there is an engine, there is nothing to drop."""
    engine = plan.engine_name(statement.function)
    before = (
        plan.site is not None
        and statement.function is plan.site.function
        and (statement.order <= plan.site.order or (not is_filled and innermost_loop(statement) is None))
    )
    if is_filled and engine is None and not before:
        engine = hand_over(plan, statement.function)
        if engine is None:
            raise plan.refuse("MG913", statement, "gradients are thrown away where neither the model nor its holder can be named",
                              "they are in the engine")  # fmt: skip
    if before or engine is None:
        plan.edits.remove(statement.node)
        plan.converted("MG403", statement, f"{short(plan.code(statement.node))} removed", "there is no gradient yet")
        return
    plan.edits.substitute(statement.node, f"drop_gradients({engine})")
    if _DROP_HELPER not in plan.helpers:
        plan.helpers.append(_DROP_HELPER)
    plan.converted("MG408", statement, f"{short(plan.code(statement.node))} → drop_gradients({engine})",
                   "engine.step() clears those of its module only" if more else "gradients live in the engine's optimizer")  # fmt: skip


def _clears_optimizer(plan: Plan, statement: Statement) -> bool:
    """Whether a statement clears all that the optimizer owns, not the model's parameters alone."""
    node = statement.node
    called = node.value.func if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) else None
    over = called if called is not None else node.iter if isinstance(node, cst.For) else None
    return isinstance(over, cst.Attribute) and plan.roles.is_optimizer(over.value)


def _adds_up(plan: Plan, sites: Sites) -> None:
    """Mark a step that is taken more often than the gradients are zeroed: they add up over several steps."""
    zeroes = [path for statement in sites.zeroes for path in paths_to(plan, statement)]
    for call in sites.steps:
        for path in paths_to(plan, plan.tree.statement(call)):
            around = next((found for statement in path if (found := _loop_around(statement)) is not None), None)
            if around is None:
                continue
            inside = [within for zero in zeroes if (within := _guards_within(zero, around)) is not None]
            if not inside or ([] not in inside and _guards_within(path, around) == []):
                plan.todo("MG407", call, "the gradients are not zeroed before every step here; engine.step() does after each",
                          "under DDP the gradients of several steps add up")  # fmt: skip
                return


def _steps_again(plan: Plan, sites: Sites) -> None:
    """Mark a step that comes after another one without a zero_grad between them: it would use the same gradients again."""
    zeroes = [s for statement in sites.zeroes for path in paths_to(plan, statement) for s in path]
    steps = [(plan.tree.statement(call), stepped_optimizer(plan, call)) for call in sites.steps]
    for first, optimizer in steps:
        for then, other in steps:
            if first.function is not then.function or first.order >= then.order or optimizer is None or other is None:
                continue
            if plan.code(optimizer) != plan.code(other) or branches_apart((first,), (then,)):
                continue
            loop, sure = _loop_around(first), _is_untested(first, then)
            start = first.order if sure or loop is None else loop.order  # a window may begin with its zero_grad
            between = any(z.function is first.function and start < z.order < then.order for z in zeroes)
            if not between and (sure or _is_untested(then, first)):
                plan.todo("MG407", then, "this step takes the gradients of the step above it once more; engine.step() has cleared them",
                          "under DDP they stay until they are zeroed")  # fmt: skip
                return


def _is_untested(statement: Statement, other: Statement) -> bool:
    """Whether no test stands between a statement and the branches that it shares with another one."""
    shared = set(branches_to(other))
    return not any(isinstance(node, cst.If) and (node, branch) not in shared for node, branch in branches_to(statement))


def _loop_around(statement: Statement) -> Statement | None:
    return next((outer for outer in statement.enclosing() if isinstance(outer.node, cst.For | cst.While)), None)


def _guards_within(path: Sequence[Statement], loop: Statement) -> list[Statement] | None:
    """The ``if`` statements between a loop and a statement that is reached from it; None where it is not."""
    guards: list[Statement] = []
    for statement in path:
        for outer in statement.enclosing():
            if outer is loop:
                return guards
            guards += [outer] if isinstance(outer.node, cst.If) else []
    return None


_DROP_HELPER = '''def drop_gradients(engine):
    """What optimizer.zero_grad() did for gradients that were not stepped yet, at every ZeRO stage."""
    engine.optimizer.zero_grad()
    if engine.zero_optimization_stage() == 2:
        zero = engine.optimizer
        (zero.all_grad_tensors if hasattr(zero, "all_grad_tensors") else zero.averaged_gradients).clear()
'''


def _loses_the_step(plan: Plan, zero: Statement, sites: Sites) -> bool:
    """Whether a zero_grad stands between a backward and the step of the same branch, with no other backward behind it."""
    path = branches_to(zero)
    beside = [
        (plan.tree.statement(call).order, kind)
        for kind, calls in (("b", sites.backward), ("s", sites.steps))
        for call in calls
        if plan.function_of(call) is zero.function and branches_to(plan.tree.statement(call)) == path
    ]
    before = [kind for order, kind in sorted(beside) if order < zero.order]
    after = [kind for order, kind in sorted(beside) if order > zero.order]
    return before[-1:] == ["b"] and after[:1] == ["s"]


def _clears_nothing(plan: Plan, zero: Statement, sites: Sites) -> bool:
    """Whether a zero_grad stands beside a step (same branch), so that the engine has just cleared everything."""
    path = branches_to(zero)
    for call in sites.steps:
        step = plan.tree.statement(call)
        if step.function is zero.function and branches_to(step) == path:
            return zero.order > step.order or not _may_pass_the_step(plan, step, sites)
        # Twins: the step in both branches of an `if`, zero_grad behind it.
        if step.function is zero.function and branches_to(step)[: len(path)] == path and zero.order > step.order:
            deeper = branches_to(step)[len(path) :]
            if all(isinstance(node, cst.If) and is_twin(plan, node, sites) for node, _ in deeper):
                return True
    return False


def _may_pass_the_step(plan: Plan, step: Statement, sites: Sites) -> bool:
    """Whether a turn of the loop may end between backward and step, and leave gradients to the zero_grad of the next."""
    backs = [plan.tree.statement(call).order for call in sites.backward if plan.function_of(call) is step.function]
    first = min((order for order in backs if order < step.order), default=step.order)
    return any(
        first < statement.order < step.order
        and (isinstance(statement.node, cst.Return) or innermost_loop(statement) is innermost_loop(step))
        for statement in step.function.statements
        if isinstance(statement.node, cst.Continue | cst.Break | cst.Return)
    )


def is_twin(plan: Plan, node: Node, sites: Sites) -> bool:
    """Whether a step stands in both branches of an ``if``."""
    statement = plan.tree.statement_of[node]
    branches = {
        branches_to(plan.tree.statement(call))[len(branches_to(statement))][1]
        for call in sites.steps
        if statement.order < plan.tree.statement(call).order <= statement.last_order
        and len(branches_to(plan.tree.statement(call))) > len(branches_to(statement))
    }
    return {"body", "orelse"} <= branches
