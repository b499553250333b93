"""MG404-MG406: gradient accumulation in the shape the script gave it, and no_sync."""

from __future__ import annotations

from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod import targets
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.forwards_beside import paths_to
from dsmigrate.codemod.steps.resumed_forms import are_exclusive
from dsmigrate.codemod.steps.sites import Sites, mark_twins
from dsmigrate.codemod.tree import Node, Statement, descendants

Way: TypeAlias = tuple[tuple[Node, str], ...]

IDEAS = (
    Idea(
        "MG404",
        "Accumulation keeps the script's own windows",
        "managed_gradient_accumulation is false: the engine steps where the script steps, and the script's own division "
        "of the loss stays.",
        "DeepSpeed's managed accumulation counts micro-batches over the whole run and knows no last partial window; a "
        "window counted per epoch is the same only if the loader's length is a multiple of it, which no file shows. "
        "Unmanaged accumulation is exact for every shape of loop. At ZeRO stage 0 a window of 1 with several backwards and one "
        "step is exact as well, and p.grad is what DDP gave after each of them: that is chosen where code looks at it.",
        "engine-semantics 3 and 4; DeepSpeed 0.19.4, managed_gradient_accumulation",
        Kind.KEPT,
    ),
    Idea(
        "MG405",
        "no_sync goes",
        "Skipping DDP's gradient exchange has no place in the engine; it asserts at ZeRO 2 and 3.",
        "With ZeRO gradients are partitioned as they arrive; the sums are the same.",
        "engine-semantics 5; https://github.com/deepspeedai/DeepSpeed/issues/6793",
        Kind.CONVERTED,
    ),
    Idea(
        "MG406",
        "The end of a window is marked by hand",
        "The engine is told by set_gradient_accumulation_boundary which backward ends a window.",
        "managed_gradient_accumulation is new in 0.19.4; and without management gradients are averaged inside step(), too "
        "late for code that looks at p.grad before it, as no_sync let it do once per window. Where leftovers are stepped "
        "behind the loop, no single condition ends a window: such loops are left to the person, or averaged in every "
        "backward at ZeRO stage 0. From 0.17.6 to 0.18.2 stage 2 loses all micro-batches of a window "
        "but the last, so that for these releases the config gets stage 0.",
        "engine-semantics 3",
        Kind.CONVERTED,
    ),
)


def no_sync(plan: Plan) -> None:
    """Take ``no_sync`` and its switch away, in every form scripts give it."""
    before = sum(map(len, plan.changes.values()))
    _take_no_sync(plan)
    plan.facts["no_sync"] = sum(map(len, plan.changes.values())) > before


def _take_no_sync(plan: Plan) -> None:
    for statement in plan.tree.withs:
        node = statement.node
        assert isinstance(node, cst.With)
        hits = [item for item in node.items if _is_no_sync(plan, item.item)]
        if not hits:
            continue
        if len(hits) == len(node.items):
            plan.edits.dissolve(node)
        else:
            for item in hits:
                plan.edits.replace(item.item, "contextlib.nullcontext()")
                plan.need("contextlib")
        mark_twins(plan, statement)
        plan.converted(
            "MG405", statement, "no_sync removed", "the engine exchanges gradients itself; the sums are the same"
        )
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0].target
        if (
            isinstance(target, cst.Attribute)
            and target.attr.value == "require_backward_grad_sync"
            and plan.is_ours(target.value)
        ):
            plan.edits.remove(node)
            plan.converted("MG405", statement, "require_backward_grad_sync removed", "it switches DDP's reducer")
        elif _is_no_sync(plan, node.value) or _is_no_sync_function(plan, node.value):
            called = isinstance(_plain_branch(node.value), cst.Call)
            plan.need("contextlib")
            plan.edits.replace(node.value, "contextlib.nullcontext()" if called else "contextlib.nullcontext")
            plan.converted("MG405", statement, "no_sync removed", "the engine exchanges gradients itself")
    for call in plan.tree.calls:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "enter_context" and call.args:
            if _is_no_sync(plan, call.args[0].value):
                statement = plan.tree.statement(call)
                if isinstance(statement.node, cst.Expr):
                    plan.edits.remove(statement.node)
                    plan.converted("MG405", statement, "no_sync removed", "the engine exchanges gradients itself")


def _is_no_sync(plan: Plan, node: Node) -> bool:
    if isinstance(node, cst.IfExp):
        return _is_no_sync(plan, node.body) or _is_no_sync(plan, node.orelse)
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "no_sync"


def _is_no_sync_function(plan: Plan, node: Node) -> bool:
    if isinstance(node, cst.IfExp):
        return _is_no_sync_function(plan, node.body) or _is_no_sync_function(plan, node.orelse)
    return isinstance(node, cst.Attribute) and node.attr.value == "no_sync"


def _plain_branch(node: Node) -> Node:
    return _plain_branch(node.body) if isinstance(node, cst.IfExp) else node


def unmanaged(plan: Plan, sites: Sites) -> None:
    """Note that the loop is not one backward per step; ``choose_accumulation`` decides once gradients were looked at."""
    where = plan.tree.statement(sites.steps[0])
    plan.facts["unmanaged_at"] = where


def choose_accumulation(plan: Plan) -> None:
    """Unmanaged accumulation, or windows marked by hand where that is not there or whole gradients are needed.

    Without management the engine averages inside step(), so that at ZeRO 0 p.grad is still this rank's own between
    backward and step; managed with a window of 1 it averages in every backward, as DDP does, and with a marked boundary in
    the last backward of the window, as DDP does under ``no_sync``.
    """
    where: Statement | None = plan.facts.get("unmanaged_at")
    if where is None:
        return
    _at_stage_zero_where_micro_batches_are_lost(plan, where)
    exists = targets.holds("managed_gradient_accumulation", plan.options.target_version)
    if exists and not plan.facts.get("full_gradients"):
        plan.config["managed_gradient_accumulation"] = False
        plan.kept(
            "MG404",
            where,
            "the script's own windows stay: managed_gradient_accumulation is false, and the engine divides no loss",
            "the engine steps where the script steps; exact at ZeRO 0-3, partial windows included",
        )
        return
    sites: Sites = plan.facts["sites"]
    marks = [_boundary(plan, call, sites) for call in sites.backward]
    plan.facts["boundaries"] = marks
    known = all(mark is not None for mark in marks)
    synced = not plan.facts.get("no_sync")
    if plan.zero_stage == 0 and (not known or (synced and plan.facts.get("full_gradients"))):
        _averaged_every_time(plan, sites, where, synced=synced)
    elif known:
        _mark_windows(plan, sites, marks, where)
    else:
        _left_to_mark(plan, where, exists=exists)


def _averaged_every_time(plan: Plan, sites: Sites, where: Statement, *, synced: bool) -> None:
    """A window of 1 at stage 0: several backwards and one step are what DDP makes of them without ``no_sync``."""
    averaged = "the script's own windows stay: at ZeRO stage 0 gradients are averaged in every backward"
    if synced or looked_at_ends(plan, sites):
        plan.kept("MG404", where, f"{averaged}{', as DDP did' if synced else ''}",
                  "the engine divides no loss, and steps where the script steps")  # fmt: skip
    else:
        plan.todo("MG404", where, f"{averaged}; under no_sync p.grad was this rank's own before the end of a window",
                  "p.grad is looked at or changed within a window")  # fmt: skip


def _mark_windows(plan: Plan, sites: Sites, marks: list[str | None], where: Statement) -> None:
    for call, mark in zip(sites.backward, marks, strict=True):
        engine = plan.engine_in(call)
        statement = plan.tree.statement(call)
        plan.edits.insert_before(statement.line_node, f"{engine}.set_gradient_accumulation_boundary({mark})")
        plan.converted("MG406", statement, f"the window ends where {mark}",
                       "the engine averages gradients in the last backward of a window")  # fmt: skip
    if plan.facts.get("no_sync"):
        return
    plan.kept("MG406", where, "before the last micro-batch of a window p.grad is this rank's own; DDP averaged it every time",
              "what is logged there differs; what is stepped does not")  # fmt: skip


def _left_to_mark(plan: Plan, where: Statement, *, exists: bool) -> None:
    if exists:
        plan.config["managed_gradient_accumulation"] = False
    message = "call set_gradient_accumulation_boundary(True or False) on the engine before each backward"
    plan.todo(
        "MG406",
        where,
        f"{message}, and take managed_gradient_accumulation out of the config" if exists else message,
        "without it gradients are averaged inside step(), too late for code that looks at them; unmanaged, the engine "
        "refuses the call"
        if exists
        else "managed_gradient_accumulation is new in 0.19.4",
    )


def looked_at_ends(plan: Plan, sites: Sites) -> bool:
    """Whether all that looks at whole gradients does so where a window ends, in the branch of its step."""
    steps = [plan.tree.statement(step) for step in sites.steps]
    backs = [plan.tree.statement(call) for call in sites.backward]
    looks: list[Statement] = plan.facts.get("looks", [])
    return all(
        any(_is_at_end(s, step, backs) for step in steps for s in way) for look in looks for way in paths_to(plan, look)
    )


def _is_at_end(statement: Statement, step: Statement, backs: list[Statement]) -> bool:
    """Whether a statement stands in the branch of a step, and in no loop within it that runs backwards."""
    end, path = branches_to(step), branches_to(statement)
    if statement.function is not step.function or path[: len(end)] != end:
        return False
    loops = {pair for pair in path[len(end) :] if isinstance(pair[0], cst.For | cst.While)}
    return not any(loops & set(branches_to(back)) for back in backs)


def _at_stage_zero_where_micro_batches_are_lost(plan: Plan, where: Statement) -> None:
    """Some releases keep the last micro-batch of a window only, at ZeRO 2 without offload."""
    release = plan.options.target_version
    if not targets.holds("lost_micro_batches", release) or plan.zero_stage != 2 or plan.options.offload != "none":
        return
    reason = "gradients of the earlier ones are overwritten in stage_1_and_2.py; 0.17.5 and 0.18.3 are right"
    message = f"DeepSpeed {release} loses all micro-batches of a window but the last at ZeRO 2"
    plan.needs_stage_zero("MG406", where, message, reason)


def _boundary(plan: Plan, call: cst.Call, sites: Sites) -> str | None:
    """The condition under which a backward is the last of its window, as source text; None if it cannot be told."""
    statement = plan.tree.statement(call)
    steps = [s for s in map(plan.tree.statement, sites.steps)
             if s.function is statement.function and s.order >= statement.order and not are_exclusive(s, statement)]  # fmt: skip
    ways = _merged({branches_to(step) for step in steps})
    if len(ways) != 1:  # leftovers are stepped elsewhere
        return None
    path, other = branches_to(statement), ways.pop()
    common = 0
    while common < min(len(path), len(other)) and path[common] == other[common]:
        common += 1
    mine, its = path[common:], other[common:]
    if all(isinstance(n, cst.If) and b == "body" for n, b in its) and all(isinstance(n, cst.If) for n, _ in mine):
        gates = [n.test for n, _ in its if isinstance(n, cst.If)]
        tests = [plan.code(test) for test in gates]
        if any(_changes_between(plan, statement, step, test) for step in steps for test in gates):
            return None
        return " and ".join(f"({t})" if " or " in t and len(tests) > 1 else t for t in tests) or "True"
    if not its and len(mine) == 1 and isinstance(mine[0][0], cst.For):
        loop = mine[0][0]
        if isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "range" and len(loop.iter.args) == 1:
            return f"{plan.code(loop.target)} == {plan.code(loop.iter.args[0].value)} - 1"
    return None


def _merged(ways: set[Way]) -> set[Way]:
    """Ways to steps without those within others; where both branches of an ``if`` step, it decides nothing."""
    for way in ways:
        head, last = way[:-1], way[-1:]
        if (
            last
            and isinstance(last[0][0], cst.If)
            and {(*head, (last[0][0], "body")), (*head, (last[0][0], "orelse"))} <= ways
        ):
            return _merged(
                {other for other in ways if other[:-1] != head or not other or other[-1][0] is not last[0][0]} | {head}
            )
    return {way for way in ways if not any(way != other and way[: len(other)] == other for other in ways)}


def _changes_between(plan: Plan, first: Statement, last: Statement, test: Node) -> bool:
    """Whether anything that a gate's test reads may get another value between backward and gate."""
    read = {dotted(sub) for sub in descendants(test) if isinstance(sub, cst.Name | cst.Attribute)} - {None}
    attributes = any(
        text is not None and "." in text and text.split(".")[0] == first.function.self_name for text in read
    )
    for statement in plan.statements_between(first, last):
        node = statement.node
        if any(dotted(target) in read for target in assigned_to(node)):
            return True
        if not attributes or isinstance(node, cst.BaseCompoundStatement):
            continue
        for sub in descendants(node):
            if (
                isinstance(sub, cst.Call)
                and isinstance(sub.func, cst.Attribute)
                and dotted(sub.func.value) in {first.function.self_name} - {None}
            ):
                return True
    return False
