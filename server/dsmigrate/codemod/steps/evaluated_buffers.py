"""MG104, MG129: BatchNorm's statistics, which DDP made rank 0's on all ranks before each forward, that of an evaluation too."""

from __future__ import annotations

from enum import Enum, auto

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.roles import Wrap
from dsmigrate.codemod.steps.buffers import has_batch_norm, names_batch_norm
from dsmigrate.codemod.steps.forwards_beside import paths_to
from dsmigrate.codemod.steps.never_called import may_run
from dsmigrate.codemod.steps.rank_forwards import guarded_places, has_free_way, runs_model
from dsmigrate.codemod.steps.reaching import calls_engine, may_serve_training, under_no_grad
from dsmigrate.codemod.steps.written_buffers import SEND_BUFFERS, SEND_BUFFERS_BESIDE, written_buffer
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG129",
        "All ranks evaluate with rank 0's statistics",
        "BatchNorm's running statistics come from each rank's own data. Where all ranks evaluate, a hook on the engine sends rank "
        "0's buffers to all ranks before each forward, as DDP did.",
        "The engine never sends buffers: the ranks would get other metrics from one model. ReduceLROnPlateau, early stopping and "
        "the choice of the best model then part from rank to rank: other learning rates, or a rank that waits for ever. DDP sent "
        "none behind a forward under no_sync; the hook knows of no no_sync and sends them, which the report says. Where "
        "only some ranks run the wrapped model in an evaluation of their own, the place is marked instead.",
        "torch/nn/parallel/distributed.py, _pre_forward; measured on two CPU processes: metrics, learning rates and the last "
        "epoch differ by rank without the hook, and are DDP's with it",
        Kind.CONVERTED,
    ),
)


class _By(Enum):
    """What an evaluation runs: the wrapped model, the engine's module in its place, or the module that the script took out."""

    ENGINE = auto()
    ITS_MODULE = auto()
    OWN_MODULE = auto()


def run(plan: Plan) -> None:
    """Send the buffers where all ranks evaluate; say elsewhere that the engine does not."""
    sending = [wrap for wrap in plan.wraps if _sends(plan, wrap)]
    if not sending or written_buffer(plan) is not None or not has_batch_norm(plan):
        return
    chosen = any(dotted(value) != "True" for wrap in sending if (value := _broadcast(wrap)) is not None)
    everywhere, alone = _evaluations(plan)
    if chosen or plan.site is None or not everywhere:
        _say(plan, sending)
        return
    beside = [call for call, by in everywhere.items() if by is _By.ITS_MODULE]
    if alone or any(_moved(plan, call) is None for call in beside):
        _say(plan, sending)
        call = next(iter(everywhere))
        plan.todo("MG129", call, "send rank 0's buffers to all ranks before this evaluation (torch.distributed.broadcast): DDP did, the "
                  "engine does not", "each rank has BatchNorm statistics of its own data: metrics, and what follows from them, would "
                  "differ by rank")  # fmt: skip
        return
    plan.need("torch")
    plan.helpers.append(SEND_BUFFERS_BESIDE if beside else SEND_BUFFERS)
    plan.after_engine[:0] = [f"send_buffers({plan.site.target})"]
    for call in beside:
        _send_before(plan, call)
    where = plan.tree.statement(next(iter(everywhere)))
    file = plan.part_of(where).path
    plan.converted("MG129", sending[0].statement, "rank 0's buffers are sent to all ranks before each forward, as under DDP",
                   f"all ranks evaluate {f'at {file}:' if file else 'in line '}{where.line}, with BatchNorm statistics of rank 0"
                   + ("" if names_batch_norm(plan) else ", if the model has BatchNorm"))  # fmt: skip
    if plan.facts.get("no_sync"):
        plan.kept("MG129", where, "behind a training forward under no_sync DDP sent no buffers: each rank evaluated with statistics of its own, "
                  "where all have rank 0's now; metrics that are gathered from the ranks may differ",
                  "DDP's next forward sends buffers only if the last one had gradients to exchange")  # fmt: skip


def _moved(plan: Plan, call: cst.Call) -> Node | None:
    """What names the engine in a call that runs its module now; None where no statement can stand before that run."""
    statement = plan.tree.statement(call)
    for node in plan.tree.ancestors(call):
        if isinstance(node, cst.Lambda):
            return None
        if node is statement.node:
            break
    if isinstance(statement.node, cst.If) and isinstance(plan.tree.parent.get(statement.node), cst.If):
        return None
    return next((node for node in (call.func, *(a.value for a in call.args)) if node in plan.edits.expressions), None)


def _send_before(plan: Plan, call: cst.Call) -> None:
    """Send the buffers before a statement that runs the engine's module, which a hook of the engine does not see."""
    node = _moved(plan, call)
    assert node is not None
    name, line = plan.code(node), plan.tree.statement(call).line_node
    if isinstance(plan.edits.expressions[node](node), cst.Attribute):
        plan.edits.insert_before(line, f"{name}.send_buffers()")
    else:  # a plain model may come there as well
        plan.edits.insert_before(line, f'getattr({name}, "send_buffers", bool)()')


def _say(plan: Plan, sending: list[Wrap]) -> None:
    sent = (
        "DDP broadcast BatchNorm buffers before each forward; the engine does not"
        if names_batch_norm(plan)
        else "if the model, which is not seen whole, has BatchNorm: DDP broadcast its buffers before each forward; the engine does not"
    )
    for wrap in sending:
        plan.kept(
            "MG104",
            wrap.statement,
            sent,
            "training losses are the same where BatchNorm trains; where it takes part in eval mode (frozen, or for a target), and in what ranks "
            "other than 0 evaluate, average with rank 0's, or save, its statistics can differ from rank 0's",
        )


def _broadcast(wrap: Wrap) -> Node | None:
    return argument(wrap.call, 4, "broadcast_buffers")


def _sends(plan: Plan, wrap: Wrap) -> bool:
    """Whether DDP sent buffers whose values may differ: not those of apex, nor those that are synchronised anyway."""
    value = _broadcast(wrap)
    return not wrap.is_apex and not (value is not None and dotted(value) == "False") and not _synchronised(plan)


def _evaluations(plan: Plan) -> tuple[dict[cst.Call, _By], list[cst.Call]]:
    """The forwards of evaluations that all ranks run, and those of the wrapped model that only some ranks run."""
    moved = {(part, one.line) for part, changes in plan.changes.items() for one in changes if one.code == "MG306"}
    everywhere: dict[cst.Call, _By] = {}
    alone: list[cst.Call] = []
    for call in plan.tree.calls:
        if plan.is_before_engine(call) or not runs_model(plan, call) or not _evaluates(plan, call):
            continue
        handed = [arg.value for arg in call.args if isinstance(arg.value, cst.Name | cst.Attribute)]
        by = _By.ENGINE if calls_engine(plan, call) or any(map(plan.is_engine, handed)) else _By.OWN_MODULE
        statement = plan.tree.statement(call)
        if by is _By.ENGINE and (plan.part_of(statement), statement.line) in moved:
            by = _By.ITS_MODULE
        guarded = [where for _, where in guarded_places(plan, call) if not _hands_module(plan, where)]
        if has_free_way(plan, call):
            everywhere[call] = by
        if guarded and by is not _By.OWN_MODULE:
            alone.append(call)
    return everywhere, alone


def _hands_module(plan: Plan, statement: Statement) -> bool:
    """Whether a statement hands on the module that the script took out of the wrapped model, and not that one."""
    args = [a.value for call in descendants(statement.node) if isinstance(call, cst.Call) for a in call.args]
    handed = [node for node in args if isinstance(node, cst.Name | cst.Attribute) and plan.is_ours(node)]
    return bool(handed) and not any(map(plan.is_engine, handed))


def _evaluates(plan: Plan, call: cst.Call) -> bool:
    """Whether a forward serves no training step: without gradients, or in a function that puts the model into evaluation."""
    statement = plan.tree.statement(call)
    run = [path for path in paths_to(plan, statement) if may_run(plan, path[-1].function)]
    if not may_serve_training(plan, statement.function):
        return bool(run)
    return any(under_no_grad(plan, one) for path in run for one in path)


def _synchronised(plan: Plan) -> bool:
    """Whether BatchNorm is synchronised without a condition, so that its statistics are equal on all ranks."""
    return any(
        (dotted(call.func) or "").rpartition(".")[2] in ("convert_sync_batchnorm", "convert_syncbn_model")
        and _always_runs(plan, call, 4)
        for call in plan.tree.calls
    )


def _always_runs(plan: Plan, call: cst.Call, depth: int) -> bool:
    """Whether no ``if`` stands around a call, nor around those of its function, and it is not the function's own recursion."""
    statement = plan.tree.statement(call)
    function = statement.function
    if any(isinstance(outer.node, cst.If) for outer in statement.enclosing()) or plan.flow.callee(call) is function:
        return False
    if function.is_module or depth == 0 or (plan.site is not None and function is plan.site.function):
        return True
    callers = [other for other in plan.flow.callers.get(function, ()) if plan.function_of(other) is not function]
    return bool(callers) and all(_always_runs(plan, other, depth - 1) for other in callers)
