"""MG507, MG624-MG628: weights-only exports, loads of weights, and optimizer state in other hands."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import PARTITIONED, Found, origins, sources, state_calls, state_is_whole
from dsmigrate.codemod.steps.ranks import reached_by_all
from dsmigrate.codemod.steps.training_after import training_follows, trains_within
from dsmigrate.codemod.steps.weight_parts import belongs
from dsmigrate.codemod.tree import Function, Statement

IDEAS = (
    Idea(
        "MG624",
        "A weights-only export stays",
        "torch.save of model.state_dict() writes the whole model at ZeRO 0, 1 and 2.",
        "At ZeRO 3 the module holds empty tensors unless the parameters are gathered on all ranks.",
        "engine-semantics 16",
        Kind.KEPT,
    ),
    Idea(
        "MG625",
        "Weights are loaded after the engine is made",
        "load_state_dict on the module is undone by the next step at ZeRO 1-3.",
        "The engine's master copy was taken before. Load the weights before deepspeed.initialize.",
        "engine-semantics 12",
        Kind.TODO,
    ),
    Idea(
        "MG626",
        "The optimizer state goes through a helper of another module",
        "A function outside this file saves or loads the optimizer's state.",
        "At ZeRO 1-3 the optimizer object holds this rank's part only; engine.save_checkpoint and load_checkpoint have to "
        "take over in that helper.",
        "engine-semantics 13",
        Kind.TODO,
    ),
    Idea(
        "MG627",
        "Optimizer state used outside a checkpoint",
        "optimizer.state_dict() and optimizer.state hold this rank's flat partition at ZeRO 1-3.",
        "Reads of the learning rate through param_groups are fine; reads of the state are not. Where the optimizer is only one "
        "of several things in a dictionary or a list whose states are saved or loaded, the config gets ZeRO stage 0.",
        "deepspeed/runtime/zero/stage_1_and_2.py",
        Kind.TODO,
    ),
    Idea(
        "MG507",
        "A loader of another module got the wrapped model",
        "Between the old wrap and the engine a helper receives the plain model, whose keys have no 'module.' prefix.",
        "A state dict of a DDP model has the prefix, one of the plain model has not; whether the helper copes is not known.",
        "torch.nn.parallel.DistributedDataParallel, state_dict",
        Kind.TODO,
    ),
    Idea(
        "MG628",
        "Weights are gathered for an export at ZeRO 3",
        "GatheredParameters on all ranks around the rank guard, a no-op below stage 3.",
        "state_dict() has shapes (0,) at ZeRO 3 otherwise.",
        "engine-semantics 16",
        Kind.CONVERTED,
    ),
)


def exports(plan: Plan, found: Found) -> None:
    """Keep weights-only exports whole: nothing to do below ZeRO 3, gathered parameters at 3."""
    for save in found.exports:
        if plan.zero_stage == PARTITIONED:
            calls = [
                c
                for source, _ in sources(plan, save.state, save.statement.function, 6)
                for c, _ in state_calls(plan, source)
            ]
            for statement in {plan.tree.statement(c): None for c in calls} or {save.statement: None}:
                gather(plan, statement)
            continue
        plan.kept("MG624", save.statement, "this export of the weights stays; it is whole at ZeRO 0, 1 and 2",
                  "at ZeRO 3 the parameters would have to be gathered first")  # fmt: skip


def pretrained(plan: Plan) -> None:
    """``model.save_pretrained(…)`` exports the weights as well."""
    for call in plan.tree.calls:
        func = call.func
        if (
            isinstance(func, cst.Attribute)
            and func.attr.value in ("save_pretrained", "save_weights")
            and plan.is_ours(func.value)
        ):
            if plan.zero_stage == PARTITIONED:
                plan.todo("MG628", call, "gather the parameters on all ranks around this (deepspeed.zero.GatheredParameters)",
                          "the module holds empty tensors at ZeRO 3")  # fmt: skip
            else:
                plan.kept("MG624", call, "this export of the weights stays; it is whole at ZeRO 0, 1 and 2",
                          "at ZeRO 3 the parameters would have to be gathered first")  # fmt: skip


def gather(plan: Plan, statement: Statement) -> None:
    """Gather the parameters, on all ranks, around a statement that takes the state dict of the module."""
    anchors = reached_by_all(plan, statement, 4)
    if anchors is None:
        plan.todo("MG628", statement, "gather the parameters on all ranks around this (deepspeed.zero.GatheredParameters)",
                  "state_dict() has shapes (0,) at ZeRO 3")  # fmt: skip
        return
    for anchor in anchors:
        engine = plan.engine_name(anchor.function)
        plan.edits.surround(anchor.line_node, f"deepspeed.zero.GatheredParameters(list({engine}.module.parameters()))")
    plan.need("deepspeed")
    plan.converted(
        "MG628",
        statement,
        "the parameters are gathered on all ranks around this",
        "state_dict() has shapes (0,) at ZeRO 3",
    )


def late_weights(plan: Plan, found: Found) -> None:
    """Weights that are loaded into the module after the engine took its master copy."""
    for call in (*found.model_loads, *found.part_loads):
        statement = plan.tree.statement(call)
        if call in plan.handled or plan.edits.is_removed(statement.node) or plan.is_before_engine(call):
            continue
        if not belongs(plan, call.func.value, statement.function):  # type: ignore[attr-defined]
            continue
        if plan.zero_stage == 0:
            plan.kept("MG625", statement, "weights loaded after deepspeed.initialize stay, as the config has ZeRO stage 0",
                      "at ZeRO 1-3 the next step would undo them")  # fmt: skip
            continue
        if call in found.part_loads and set(origins(plan, call)) & set(found.loads):
            plan.kept("MG625", statement, "weights of a part are loaded from the checkpoint that the engine restores as a whole",
                      "its own copy of them wins at ZeRO 1-3, and holds the same values")  # fmt: skip
            continue
        if not training_follows(plan, statement):
            plan.kept("MG625", statement, "weights are loaded for evaluation here; they do not reach the optimizer",
                      "at ZeRO 1-3 the next training step would undo them")  # fmt: skip
            continue
        if _is_put_back(plan, call, found.model_loads):
            plan.kept("MG625", statement, "other weights are put in and taken out again before anything trains",
                      "the optimizer's copy at ZeRO 1-3 holds what is put back")  # fmt: skip
            continue
        plan.todo("MG625", statement, "weights loaded after deepspeed.initialize are undone by the next step, but for frozen ones: load them before",
                  "the engine's master copy of what the optimizer has wins at ZeRO 1-3")  # fmt: skip


def _is_put_back(plan: Plan, call: cst.Call, loads: list[cst.Call]) -> bool:
    """``own = deepcopy(net.state_dict())``, weights that are put in, and ``net.load_state_dict(own)`` behind them."""
    here = plan.tree.statement(call)
    function, subject = here.function, plan.code(call.func)
    turns = [one for one in loads if plan.function_of(one) is function and plan.code(one.func) == subject]
    if len(turns) < 2 or trains_within(plan, function):
        return False
    first, last = plan.tree.statement(turns[0]), plan.tree.statement(turns[-1])
    if _ways(plan, first) != _ways(plan, last):
        return False
    leaves = any(isinstance(s.node, cst.Return) for s in function.statements if first.order < s.order < last.order)
    own = turns[-1].args[0].value if turns[-1].args else None
    place = plan.flow.place(own, function) if isinstance(own, cst.Name) else None
    kept = plan.flow.by_place.get(place, ()) if place is not None else ()
    taken = subject.replace(".load_state_dict", ".state_dict()")
    return (
        not leaves
        and bool(kept)
        and all(
            b.statement.order < first.order
            and re.search("copy|clone", plan.code(b.value))
            and taken in plan.code(b.value)
            for b in kept
        )
    )


def _ways(plan: Plan, statement: Statement) -> list[str]:
    """The tests and loops around a statement, each with the branch that it stands in."""
    branches = [statement.branch, *(outer.branch for outer in statement.enclosing())]
    heads = [getattr(outer.node, "test", getattr(outer.node, "iter", None)) for outer in statement.enclosing()]
    return [
        f"{branch} {plan.code(head) if head is not None else ''}" for branch, head in zip(branches, heads, strict=False)
    ]


def _takes_unseen(plan: Plan, call: cst.Call, callee: Function) -> bool:
    """Whether a function gets the optimizer in its ``**kwargs``, where nothing shows what it does with it."""
    return any(
        plan.roles.is_optimizer(arg.value) and plan.flow.parameter_of(call, callee, arg) is None for arg in call.args
    )


def outside_helpers(plan: Plan) -> None:
    """Calls that hand the optimizer to a saving or loading function of another module."""
    for call in plan.tree.calls:
        text = dotted(call.func) or ""
        last = text.rpartition(".")[2]
        callee = plan.flow.callee(call)
        if (callee is not None and not _takes_unseen(plan, call, callee)) or not re.search(
            r"save|load|resume|checkpoint|ckpt|restore|state_dict", last, re.IGNORECASE
        ):
            continue
        if last in ("load_state_dict", "state_dict") or call in plan.handled:
            continue
        if "load" in last.lower() or "restore" in last.lower():
            wrapped_before = [
                arg for arg in call.args
                if isinstance(arg.value, cst.Name | cst.Attribute)
                and any(t[0] == "E" and t[1:] in plan.group for t in plan.tags(arg.value))
                and plan.is_before_engine(arg.value)
                and any(w.function is plan.function_of(call) and w.statement.order < plan.tree.statement(call).order for w in plan.wraps)
            ]  # fmt: skip
            if wrapped_before:
                plan.todo("MG507", call, f"{text} gets the plain model here; it was wrapped, with keys that begin with 'module.'",
                          "the engine is made further down")  # fmt: skip
        if not any(plan.roles.is_optimizer(arg.value) for arg in call.args):
            continue
        if "state_dict" in last and state_is_whole(plan):
            plan.kept("MG626", call, f"{text} finds the optimizer's whole state, as the config has ZeRO stage 0",
                      "at ZeRO 1-3 the optimizer object holds this rank's partition")  # fmt: skip
        else:
            plan.todo("MG626", call, f"{text} handles the optimizer state: it has to use engine.save_checkpoint/load_checkpoint",
                      "the optimizer object holds this rank's partition at ZeRO 1-3; saving is collective")  # fmt: skip


def stray_state(plan: Plan) -> None:
    """Mark optimizer state that is used outside a checkpoint."""
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "state_dict" or call in plan.edits.expressions:
            continue
        if not plan.roles.is_optimizer(func.value) or call in plan.handled:
            continue
        if state_is_whole(plan):
            plan.kept("MG627", call, "optimizer.state_dict() stays; it is whole, as the config has ZeRO stage 0",
                      "at ZeRO 1-3 it holds this rank's part only")  # fmt: skip
        else:
            plan.todo("MG627", call, "optimizer.state_dict() holds this rank's part only at ZeRO 1-3",
                      "use engine.save_checkpoint for state that has to come back")  # fmt: skip
