"""MG111: functions of the loop that never see the model get the engine as an argument of their own.

A scaler object (``loss_scaler(loss, optimizer, …)``) or a helper (``backward_and_step(loss, optimizer)``) runs backward
and step without the model. The engine has to reach them: a keyword-only parameter, filled at every call.
"""

from __future__ import annotations

from functools import partial

import libcst as cst

from dsmigrate.codemod.binding_forms import calls_in_branches
from dsmigrate.codemod.callables import held_by, is_partial
from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.sites import short
from dsmigrate.codemod.tree import Class, Function, Node, descendants

IDEAS = (
    Idea(
        "MG111",
        "The engine is passed to the helper that runs backward or step",
        "A helper that only gets the loss and the optimizer gets the engine too, from every place that calls it.",
        "backward and step are methods of the engine; a loss or an optimizer does not lead to it.",
        "deepspeed/runtime/engine.py, DeepSpeedEngine.backward and step",
        Kind.CONVERTED,
    ),
)

_DEPTH = 4
"""How many calls the engine is passed through."""


def hand_over(plan: Plan, function: Function) -> str | None:
    """The name of the engine in a function, which becomes a parameter where that is needed; None where it cannot."""
    return plan.engine_name(function) or _pass(plan, function, _DEPTH)


def _pass(plan: Plan, function: Function, depth: int) -> str | None:
    group = _run_by_the_same_calls(plan, function)
    calls = list(dict.fromkeys(call for member in group for call in plan.flow.callers.get(member, ())))
    if depth == 0 or not calls or any(plan.is_before_engine(call) for call in calls):
        return None
    for member in group:
        own = plan.flow.callers.get(member, [])
        if not isinstance(member.node, cst.FunctionDef) or _escapes(plan, member, own):
            return None
    name = "ds_engine" if any("engine" in member.local_names for member in group) else "engine"
    for member in group:
        plan.handed_over[member] = name  # a recursive call finds its own parameter
    given: list[tuple[cst.Call, str]] = []
    for call in calls:
        caller = plan.function_of(call)
        engine = plan.engine_name(caller) or _pass(plan, caller, depth - 1)
        if engine is None:
            for member in group:
                del plan.handed_over[member]
            return None
        given.append((call, engine))
    plan.facts.setdefault("passed", []).append((group, name, given))
    return name


def _run_by_the_same_calls(plan: Plan, function: Function) -> list[Function]:
    """A function together with those that stand in for it at some call: they all take what the call gives."""
    group = [function]
    for member in group:
        for call in plan.flow.callers.get(member, ()):
            group.extend(other for other in plan.flow.callees(call) if other not in group)
    return group


def _escapes(plan: Plan, function: Function, calls: list[cst.Call]) -> bool:
    """Whether a function is also used as a value, or called where that cannot be followed: then a call may be missed."""
    own = {id(call.func) for call in calls}
    cls = function.owner
    variables, attributes = {function.name}, {function.name}
    if cls is None:
        attributes = set()  # `loss.backward()` is no call of a function of that name
    elif function.name == "__call__":
        objects = [place for place, made in plan.flow.kinds.items() if cls in made]
        if any(_may_be_unknown(plan, place) for place in objects):
            return True
        variables = {place[2] for place in objects if place[0] == "v"}
        attributes = {place[2] for place in objects if place[0] != "v"}
    for call in plan.tree.calls:
        if id(call.func) in own:
            continue
        names = variables if isinstance(call.func, cst.Name) else attributes
        last = (dotted(call.func) or "").rpartition(".")[2]
        if last in names and plan.flow.callee(call) is None and not _is_construction(plan, call):
            if not _is_of_torch(plan, call):
                return True
    if function.name == "__call__":
        return False
    if any(
        plan.flow.callee(call) is None and not is_partial(plan.flow, call)
        for call in plan.tree.calls
        for arg in call.args
        if any(held.function is function for held in held_by(plan.flow, arg.value, plan.function_of(call)))
    ):
        return True
    return any(
        isinstance(sub, cst.Name | cst.Attribute)
        and id(sub) not in own
        and (dotted(sub) or "").rpartition(".")[2] == function.name
        and not isinstance(plan.tree.parent.get(sub), cst.Attribute | cst.ImportAlias | cst.FunctionDef)
        and plan.flow.function_named(sub, plan.function_of(sub)) is function
        and not _is_followed(plan, sub)
        for statement in plan.tree.statements
        if not isinstance(statement.node, cst.BaseCompoundStatement | cst.Import | cst.ImportFrom)
        for sub in descendants(statement.node)
    )


def _is_of_torch(plan: Plan, call: cst.Call) -> bool:
    """Whether a method is called on an optimizer that is made in sight, a scheduler or a scaler."""
    tags = plan.tags(call.func.value) if isinstance(call.func, cst.Attribute) else set()
    made = {f"O{site.index}" for site in plan.roles.optimizers if site.call is not None}
    return bool(tags) and tags <= made | {"S", "G"}


def _is_followed(plan: Plan, node: Node) -> bool:
    """Whether a function that is named as a value comes to a place whose calls are known, and to no other."""
    parent = plan.tree.parent.get(node)
    if isinstance(parent, cst.Arg):
        call = plan.tree.parent.get(parent)
        if not isinstance(call, cst.Call) or not is_partial(plan.flow, call):
            return isinstance(call, cst.Call) and plan.flow.callee(call) is not None
        return _is_followed(plan, call)
    if isinstance(parent, cst.IfExp):
        return _is_followed(plan, parent)
    return any(binding.value is node for binding in plan.flow.bindings)


def _may_be_unknown(plan: Plan, place: Place) -> bool:
    """Whether what is called may also be an object that something out of sight has made."""
    return any(
        plan.flow.callee(branch) is None and not _is_construction(plan, branch)
        for binding in plan.flow.by_place.get(place, ())
        if binding.kind == "assign"
        for branch in calls_in_branches(binding.value)
    )


def _is_construction(plan: Plan, call: cst.Call) -> bool:
    text = dotted(call.func)
    made: Class | None = plan.flow.class_named(text, plan.function_of(call)) if text is not None else None
    return made is not None


def run(plan: Plan) -> None:
    """Write the parameters and the arguments; runs last, over whatever the other steps made of the calls."""
    for group, name, given in plan.facts.get("passed", ()):
        for function in group:
            assert isinstance(function.node, cst.FunctionDef)
            plan.edits.replace(function.node.params, partial(_with_parameter, name=name))
            plan.converted("MG111", plan.tree.statement_of[function.node], f"{_shown(function)} takes the engine",
                           "backward and step are the engine's")  # fmt: skip
        for call, engine in given:
            former = plan.edits.expressions.get(call)
            plan.edits.replace(call, partial(_with_argument, name=name, engine=engine, former=former))
            plan.converted("MG111", call, f"{short(plan.code(call.func))}(…) is given the engine",
                           "backward and step are the engine's")  # fmt: skip


def _shown(function: Function) -> str:
    return f"{function.owner.name}.{function.name}" if function.owner is not None else function.name


def _with_parameter(params: Node, *, name: str) -> Node:
    """The parameters with one more that is keyword-only, so that positions stay what they were."""
    assert isinstance(params, cst.Parameters)
    new = cst.Param(cst.Name(name))
    star = params.star_arg
    if not isinstance(star, cst.Param | cst.ParamStar):
        star = cst.ParamStar()
    plain, named = list(params.params), list(params.kwonly_params)
    last = (named or plain)[-1] if named or (plain and star is not params.star_arg) else None
    if last is not None and isinstance(last.comma, cst.Comma):  # over several lines, each with its comma
        between = plain[0].comma if plain and isinstance(plain[0].comma, cst.Comma) else last.comma
        new = new.with_changes(comma=last.comma)
        (named or plain)[-1] = last.with_changes(comma=between)
        if isinstance(star, cst.ParamStar) and star is not params.star_arg:
            star = star.with_changes(comma=between)
    return params.with_changes(params=plain, star_arg=star, kwonly_params=[*named, new])


def _with_argument(call: Node, *, name: str, engine: str, former: object) -> Node:
    if callable(former):
        call = former(call)
    assert isinstance(call, cst.Call)
    bare = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    new = cst.Arg(cst.parse_expression(engine), keyword=cst.Name(name), equal=bare)
    args = list(call.args)
    if args and args[-1].star == "**":
        before = args[-1]
        return call.with_changes(args=[*args[:-1], new.with_changes(comma=_COMMA), before])
    if args:
        comma = args[-1].comma
        between = _COMMA
        if isinstance(comma, cst.Comma):  # a trailing comma, perhaps with the line break of a call over several lines
            new = new.with_changes(comma=comma)
            if len(args) > 1 and isinstance(args[-2].comma, cst.Comma):
                between = args[-2].comma
        args[-1] = args[-1].with_changes(comma=between)
    return call.with_changes(args=[*args, new])


_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
