"""MG512: attributes that the script sets on the wrapped model and that the engine has itself."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import assigned_to
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG512",
        "An attribute of the wrapped model has the name of one of the engine's",
        "DDP has no attribute of that name; the engine has, and uses it.",
        "engine.step() steps engine.lr_scheduler, so a schedule that the script keeps there and steps as well runs twice as "
        "fast; engine.optimizer replaced by the client optimizer trains nothing at ZeRO 1-3; losses and counters are reset "
        "or moved by each step.",
        "deepspeed/runtime/engine.py, _take_model_step; two CPU processes: learning rates 0.05, 0.025 … for 0.1, 0.05 …",
        Kind.TODO,
    ),
)
# What the engine reads or writes while it trains, saves and loads.
_OF_THE_ENGINE = frozenset({
    "optimizer", "basic_optimizer", "client_optimizer", "lr_scheduler", "client_lr_scheduler", "losses", "timers",
    "monitor", "mpu", "global_steps", "global_samples", "skipped_steps", "checkpoint_engine", "training_dataloader",
    "step", "backward", "train_batch_size", "gradient_accumulation_steps", "gradient_clipping", "zero_optimization",
    "save_checkpoint", "load_checkpoint",
})  # fmt: skip


def run(plan: Plan) -> None:
    """Mark assignments to such attributes of what is the engine now."""
    for statement in plan.tree.statements:
        for target in assigned_to(statement.node):
            if not isinstance(target, cst.Attribute) or target.attr.value not in _OF_THE_ENGINE:
                continue
            if _is_wrapped(plan, target.value, statement):
                plan.todo("MG512", statement, f"{plan.code(target)} is an attribute that the engine has and uses itself: give it another name",
                          "DDP had none of that name")  # fmt: skip


def _is_wrapped(plan: Plan, node: Node, statement: Statement) -> bool:
    """Whether an expression was the DDP wrapper: not the plain model, whose name it may have before the wrap."""
    if not any(tag[0] == "E" and tag[1:] in plan.group for tag in plan.tags(node)):
        return False
    here = [wrap for wrap in plan.wraps if wrap.function is statement.function]
    return not here or any(wrap.statement.order < statement.order for wrap in here)
