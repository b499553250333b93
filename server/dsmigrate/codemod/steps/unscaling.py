"""MG426: gradients that the script looks at before the step are unscaled, where apex amp or no scaler left them so."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod import targets
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.accumulation import looked_at_ends
from dsmigrate.codemod.steps.clipping import unscale_once
from dsmigrate.codemod.steps.sites import Sites
from dsmigrate.codemod.tree import Node, Statement

_WHY = "the code between backward and step looks at gradients, and found them unscaled before"


def unscaled_gradients(plan: Plan) -> None:
    """Let code between backward and step find gradients without the loss scale, as it did; runs after accumulation.

    apex amp unscaled at the end of each ``scale_loss``. Its successor does so within the step, unless it is asked before.
    """
    if not plan.facts.get("full_gradients") or plan.zero_stage != 0:
        return
    sites: Sites = plan.facts["sites"]
    engine = plan.engine_in(sites.backward[0])
    if "fp16" in plan.config:
        plan.todo("MG426", sites.backward[0], f"p.grad carries the loss scale of the fp16 section here: reckon with {engine}.optimizer.loss_scale",
                  _WHY)  # fmt: skip
        return
    if not plan.facts.get("amp_scaler") or not targets.holds("scaler_at_zero_0", plan.options.target_version):
        return
    places = list(dict.fromkeys(_behind(plan, call) for call in sites.backward))
    marks: set[str | None] = {"True"} if plan.facts["managed"] else set(plan.facts.get("boundaries", ()))
    if not plan.facts["managed"] and (
        len(places) > 1 or len(marks) != 1 or None in marks or not looked_at_ends(plan, sites)
    ):
        _mark(plan, sites)
        return
    mark = marks.pop()
    for place in places:
        engine = plan.engine_in(place.node)
        line = f"{engine}.amp_scaler.unscale_({engine}.optimizer)"
        plan.edits.insert_after(place.line_node, *([line] if mark == "True" else [f"if {mark}:", f"    {line}"]))
        plan.converted("MG426", place, f"{engine}.amp_scaler.unscale_ is called behind backward, as apex amp did", _WHY)
    unscale_once(plan)


def _mark(plan: Plan, sites: Sites) -> None:
    """Within a window ``unscale_`` would leave a sum of scaled and unscaled gradients: what is read there is divided."""
    engine = plan.engine_in(sites.backward[0])
    if plan.facts["managed"] or looked_at_ends(plan, sites):
        advice = (
            f"call {engine}.amp_scaler.unscale_({engine}.optimizer) once per step, before the code that looks at it"
        )
        unscale_once(plan)
    else:
        advice = f"divide what is read of it by {engine}.amp_scaler.get_scale()"
    plan.todo("MG426", sites.backward[0], f"p.grad carries the loss scale here: {advice}", _WHY)


def _behind(plan: Plan, call: cst.Call) -> Statement:
    """The statement behind which a backward is over: its own, its ``scale_loss``, or the choice between amp and none."""
    found = plan.tree.statement(call)
    for outer in found.enclosing():
        node = outer.node
        if node in plan.edits.dissolved or (isinstance(node, cst.If) and _chooses(plan, outer)):
            found = outer
        else:
            break
    return found


def _chooses(plan: Plan, outer: Statement) -> bool:
    """Whether both branches of an ``if`` run backward."""
    sites: Sites = plan.facts["sites"]
    inner = [plan.tree.statement(call) for call in sites.backward]
    branches = {_branch_of(s, outer.node) for s in inner if outer.order < s.order <= outer.last_order}
    return {"body", "orelse"} <= branches


def _branch_of(statement: Statement, node: Node) -> str:
    branch = statement.branch
    for outer in statement.enclosing():
        if outer.node is node:
            break
        branch = outer.branch
    return branch
