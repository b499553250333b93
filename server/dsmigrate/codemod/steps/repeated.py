"""MG712: several trainings one after the other in the same processes, each with an engine of its own."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.parents_work import ways_to
from dsmigrate.codemod.tree import Statement

IDEAS = (
    Idea(
        "MG712",
        "Each training of a loop makes an engine of its own",
        "Where the training runs once for each fold, seed or setting, each run makes its engine; at ZeRO 1-3 the one before stays in "
        "memory, and a process group that is made anew for each run is marked.",
        "The second engine trains as the first one would. The hooks of ZeRO hold the model and the optimizer of the one before "
        "when the script has let go of it; engine.destroy() frees them at ZeRO 1 and 2. torch's destroy_process_group "
        "leaves groups behind that DeepSpeed keeps, and the next deepspeed.initialize stops at them.",
        "deepspeed/runtime/engine.py, destroy; deepspeed/utils/groups.py; measured on two CPU processes, ZeRO 0-3",
        Kind.KEPT,
    ),
)


def run(plan: Plan) -> None:
    """Say what stays of one training when the next begins; runs when the stage is known."""
    site = plan.site
    if site is None or plan.zero_stage == 0:
        return
    ways = [site.anchor, *(way for way in ways_to(plan, site.anchor) if way.function is not site.function)]
    found = [(way, outer) for way in ways for outer in way.enclosing() if isinstance(outer.node, cst.For | cst.While)]
    way, loop = found[0] if found else (None, None)
    if loop is None or any(_is_within(plan.tree.statement(call), loop) for call in _spawns(plan)):
        return
    passed = {inner.function for inner in ways[: ways.index(way)]} if way is not None else set()
    for call in plan.tree.calls:
        if "torch.distributed.destroy_process_group" not in plan.imports.names(call.func) or call.args:
            continue
        if any(_is_within(one, loop) or one.function in passed for one in ways_to(plan, plan.tree.statement(call))):
            plan.todo("MG712", call, "the next training of the loop stops at groups that DeepSpeed keeps: leave the process group as it is until "
                      "the last training is over, or use deepspeed.comm.destroy_process_group()",
                      "a second deepspeed.initialize finds the groups of the first one")  # fmt: skip
            break
    free = (
        f"{site.target}.destroy() behind a training frees it"
        if plan.zero_stage < 3
        else "give each training a process of its own"
    )
    plan.kept("MG712", loop, f"each training of this loop makes an engine of its own, and the one before stays in memory: {free}",
              f"the hooks of ZeRO {plan.zero_stage} hold the model and the optimizer")  # fmt: skip


def _spawns(plan: Plan) -> list[cst.Call]:
    return [call for call in plan.tree.calls if plan.imports.names(call.func) & set(SPAWNERS)]


def _is_within(statement: Statement, loop: Statement) -> bool:
    """Whether a statement stands in a loop, not leaving its function."""
    return statement.function is loop.function and loop.order < statement.order <= loop.last_order
