"""MG4xx: backward, step, zero_grad and gradient accumulation.

A loop that is proven to run exactly one backward per step becomes the plain engine loop. Everything else (windows,
tails, inner micro-loops, several losses) keeps its shape under ``managed_gradient_accumulation: false``, where the
engine steps exactly when the script says so and does not divide the loss: measured exact at ZeRO 0-3.
"""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.makers import is_inside_optimizer
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.project.libraries import is_library
from dsmigrate.codemod.steps.accumulation import no_sync, unmanaged
from dsmigrate.codemod.steps.backward_arguments import gradient_of, passed_on, second_order, weighted
from dsmigrate.codemod.steps.balance import is_one_to_one
from dsmigrate.codemod.steps.gradients import gradient_access
from dsmigrate.codemod.steps.own_engine import runs_own_backward
from dsmigrate.codemod.steps.passing import hand_over
from dsmigrate.codemod.steps.sites import Sites, find_backward, find_steps, mark_twins, scaler_of, short, step_text
from dsmigrate.codemod.steps.zero_grad import find_zeroes, zero_grads
from dsmigrate.codemod.tree import Node, Statement, descendants
from dsmigrate.codemod.values import resolve

IDEAS = (
    Idea(
        "MG401",
        "loss.backward() becomes engine.backward(loss)",
        "The engine runs backward and averages the gradients.",
        "loss.backward() fails at ZeRO 0 and bypasses loss scaling; engine.backward works at every stage.",
        "engine-semantics 5; ddp-idioms trap 9",
        Kind.CONVERTED,
    ),
    Idea(
        "MG402",
        "optimizer.step() becomes engine.step()",
        "The engine clips, steps the optimizer and zeroes the gradients.",
        "Stepping the optimizer directly bypasses the engine: no clipping at ZeRO 0, no partitioned update.",
        "engine-semantics 10",
        Kind.CONVERTED,
    ),
    Idea(
        "MG411",
        "create_graph must be false",
        "A backward whose create_graph is a variable is preceded by an assertion that it is false.",
        "engine.backward has no create_graph; second-order optimizers, for which the flag is there, cannot be used.",
        "deepspeed/runtime/engine.py, DeepSpeedEngine.backward",
        Kind.KEPT,
    ),
)


def run(plan: Plan) -> None:
    """Convert the loop; the config says which kind of accumulation the engine has to do."""
    sites = Sites(find_backward(plan), find_steps(plan), find_zeroes(plan))
    if not sites.steps:
        raise plan.refuse("MG910", sites.backward[0] if sites.backward else plan.wraps[0].statement,
                          "the optimizer is stepped in another module", "half a conversion would not train")  # fmt: skip
    for call in (*sites.backward, *sites.steps):
        if plan.site is not None and plan.function_of(call) is plan.site.function and plan.is_before_engine(call):
            raise _too_early(plan, call)
    _steps_out_of_sight(plan, sites)
    for call in sites.backward:
        _retained(plan, call, sites)
        if not runs_own_backward(plan, call):
            _backward(plan, call)
    for call in sites.steps:
        _step(plan, call)
    managed = is_one_to_one(plan, sites)
    plan.facts["managed"] = managed
    no_sync(plan)
    zero_grads(plan, sites, managed=managed)
    if not managed:
        unmanaged(plan, sites)
    plan.facts["sites"] = sites
    gradient_access(plan)


def _too_early(plan: Plan, call: cst.Call) -> Exception:
    """The refusal of a training that runs before the engine would be made, or makes another one while it runs."""
    loops = {outer for outer in plan.tree.statement(call).enclosing() if isinstance(outer.node, cst.For | cst.While)}
    again = [wrap for wrap in plan.wraps if loops & set(wrap.statement.enclosing())]
    if again and len(again) < len(plan.wraps):
        return plan.refuse("MG913", call, f"the model is wrapped once more in line {again[0].statement.line}, while it is trained here",
                           "another engine would begin with another optimizer, and parameters cannot be added to one that is there")  # fmt: skip
    return plan.refuse("MG913", call, "backward or step runs before model and optimizer are both there for an engine",
                       "the engine has to exist before it is used")  # fmt: skip


def _steps_out_of_sight(plan: Plan, sites: Sites) -> None:
    """``strategy.step(optimizer)``: the optimizer is given away to be stepped, which would go past the engine."""
    for call in plan.tree.calls:
        func = call.func
        if (
            not isinstance(func, cst.Attribute)
            or func.attr.value not in ("step", "optimizer_step")
            or call in sites.steps
        ):
            continue
        given = [arg.value for arg in call.args if not arg.star]
        if plan.flow.callee(call) is None and any(plan.roles.is_optimizer(value) for value in given):
            if not is_inside_optimizer(plan.roles, plan.function_of(call)):
                raise plan.refuse("MG913", call, f"{short(plan.code(call))} steps the optimizer by a way that is not followed",
                                  "the engine has to step")  # fmt: skip


def _retained(plan: Plan, call: cst.Call, sites: Sites) -> None:
    if any(arg.keyword is not None for arg in passed_on(plan, call)) and len(sites.backward) > 1:
        raise plan.refuse(
            "MG905", call, "several backward passes share a graph (retain_graph=True)",
            "the engine reduces gradients during each of them",
        )  # fmt: skip


def loss_of(plan: Plan, call: cst.Call) -> Node:
    """The loss expression of a backward call: through ``scaler.scale(loss)`` and ``optimizer.backward(loss)``."""
    assert isinstance(call.func, cst.Attribute)
    base = call.func.value
    if plan.roles.is_optimizer(base) and call.args:
        return call.args[0].value
    if isinstance(base, cst.Call) and isinstance(base.func, cst.Attribute) and base.func.attr.value == "scale":
        if base.args:
            return base.args[0].value
    return base


def _is_of_another(plan: Plan, call: cst.Call) -> bool:
    """Whether a function that sees neither model nor optimizer runs backward on something that it computes itself."""
    function = plan.function_of(call)
    if plan.engine_name(function) is not None or any(plan.function_of(step) is function for step in find_steps(plan)):
        return False
    queue, seen = [loss_of(plan, call)], set()
    while queue:
        for sub in descendants(queue.pop()):
            if isinstance(sub, cst.Call) and isinstance(sub.func, cst.Name):
                return True
            if isinstance(sub, cst.Name) and sub.value not in seen:
                seen.add(sub.value)
                bindings = plan.flow.by_place.get(plan.flow.variable(sub.value, function), ())
                queue.extend(b.value for b in bindings if b.function is function and b.kind == "assign")
    return False


def _backward(plan: Plan, call: cst.Call) -> None:
    engine = None if _is_of_another(plan, call) else hand_over(plan, plan.function_of(call))
    statement = plan.tree.statement(call)
    if engine is None and is_library(plan.part_of(statement).path) and not plan.flow.callers.get(statement.function):
        raise plan.refuse("MG910", plan.wraps[0].statement, "the model is wrapped here, but the training loop is in another module",
                          "the loop has to be converted together with the wrap")  # fmt: skip
    if engine is None:
        raise plan.refuse(
            "MG913", call, "backward runs where neither the model nor its holder can be named",
            "the engine has to run it",
        )  # fmt: skip
    _second_order(plan, call, statement)
    loss = loss_of(plan, call)
    scaler = scaler_of(plan, call) if plan.options.precision == "keep" else None
    own_scaler = f"{engine}.amp_scaler" if scaler is None and plan.facts.get("amp_scaler") else None
    has_gradient = gradient_of(plan, call) is not None
    is_optimizer_backward = plan.roles.is_optimizer(call.func.value)  # type: ignore[attr-defined]
    keep = passed_on(plan, call)

    def edit(updated: Node) -> Node:
        assert isinstance(updated, cst.Call)
        assert isinstance(updated.func, cst.Attribute)
        base: Node = updated.func.value
        if is_optimizer_backward:
            value = updated.args[0].value
        elif loss is not call.func.value:  # type: ignore[attr-defined]
            assert isinstance(base, cst.Call)
            value = base.args[0].value
        else:
            value = base  # type: ignore[assignment]
        value = weighted(value, updated) if has_gradient else _bare_parentheses(value)
        arguments = [cst.Arg(value), *keep]
        if scaler is not None:
            assert isinstance(base, cst.Call)
            assert isinstance(base.func, cst.Attribute)
            arguments.insert(0, cst.Arg(cst.parse_expression(engine)))
            return cst.Call(cst.Attribute(base.func.value, cst.Name("engine_backward")), arguments)
        if own_scaler is not None:
            arguments.insert(0, cst.Arg(cst.parse_expression(engine)))
            return cst.Call(cst.parse_expression(f"{own_scaler}.engine_backward"), arguments)
        return cst.Call(cst.Attribute(cst.parse_expression(engine), cst.Name("backward")), arguments)

    plan.edits.replace(call, edit)
    plan.handled.add(call)
    if scaler is not None:
        plan.facts["scaler_used"] = True
    elif own_scaler is None:
        plan.facts.setdefault("unscaled_backward", []).append(statement)
    mark_twins(plan, statement)
    shown = plan.code(scaler) if scaler is not None else own_scaler
    target = f"{shown}.engine_backward({engine}, …)" if shown is not None else f"{engine}.backward(…)"
    plan.converted("MG401", statement, f"{short(plan.code(call))} → {target}", "the engine averages the gradients")


def _second_order(plan: Plan, call: cst.Call, statement: Statement) -> None:
    """``create_graph=flag``: a literal True is refused elsewhere; a flag is asked when the script runs."""
    given = second_order(plan, call)
    if given is None:
        return
    value = resolve(plan, given, statement.function)
    if value.known and value.expression is None and not value.is_default and not value.static:
        return
    flag = plan.code(given)
    plan.edits.insert_before(
        statement.line_node, f'assert not {flag if flag.isidentifier() else f"({flag})"}, "engine.backward builds no graph of gradients"'
    )  # fmt: skip
    plan.kept("MG411", statement, f"create_graph={flag} must be false when the script runs: it is asserted",
              "engine.backward builds no graph of gradients (second-order optimizers need one)")  # fmt: skip


def _bare_parentheses(value: cst.BaseExpression) -> cst.BaseExpression:
    if getattr(value, "lpar", ()) and not isinstance(value, cst.Tuple | cst.GeneratorExp | cst.NamedExpr):
        if "\n" not in cst.Module([]).code_for_node(value):
            return value.with_changes(lpar=(), rpar=())
    return value


def _step(plan: Plan, call: cst.Call) -> None:
    statement = plan.tree.statement(call)
    engine = hand_over(plan, statement.function)
    if engine is None:
        raise plan.refuse(
            "MG913", call, "the optimizer is stepped where neither the model nor its holder can be named",
            "the engine has to step",
        )  # fmt: skip
    scaler = scaler_of(plan, call) if plan.options.precision == "keep" else None
    text = step_text(plan, plan.code(scaler) if scaler is not None else None, engine)
    if not isinstance(statement.node, cst.Expr):
        plan.todo("MG402", statement, "the value of the optimizer's step is used; engine.step() returns None",
                  "the engine's step has no result")  # fmt: skip
    plan.edits.replace(call, text)
    plan.handled.add(call)
    mark_twins(plan, statement)
    plan.converted("MG402", statement, f"{short(plan.code(call))} → {text}", "the engine clips, steps and zeroes")
