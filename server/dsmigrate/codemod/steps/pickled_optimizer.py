"""MG631: the optimizer itself in a file, or an object that holds it or the engine."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.contained import classes_of, elements, may_hold_optimizer
from dsmigrate.codemod.steps.copies import SAVERS
from dsmigrate.codemod.tree import Class, Function, Node

IDEAS = (
    Idea(
        "MG631",
        "The optimizer itself goes into a file",
        'torch.save({"model": model, "optimizer": optimizer}, path) pickles the optimizer, not its state_dict(); so does '
        "torch.save of an object that holds it.",
        "At ZeRO 1-3 a pickled optimizer has rank 0's flat piece in place of the model's parameters, and the script that reads "
        "it stops (KeyError). At ZeRO 0 it has parameters of its own, which are no longer those of the model in the same file, "
        "as that one is a copy: after a resume the optimizer steps tensors that nothing uses, and nothing is trained any more, "
        "without a word. The engine, in an object, cannot be pickled at all. Save state dicts, which become a checkpoint of "
        "the engine.",
        "run on two processes with DeepSpeed 0.19.8, ZeRO 0 and 2: saved, read again and trained on",
        Kind.TODO,
    ),
)
_OWN_PICKLE = frozenset({"__getstate__", "__reduce__", "__reduce_ex__"})


def pickled_optimizer(plan: Plan) -> None:
    """Mark files that hold the optimizer, or an object with it or with the model."""
    for call in plan.tree.calls:
        state = argument(call, 0, "obj")
        if not plan.imports.names(call.func) & SAVERS or state is None or plan.is_before_engine(call):
            continue
        function = plan.function_of(call)
        if may_hold_optimizer(plan, state, function):
            plan.facts["pickled_optimizer"] = True
            plan.todo("MG631", call, "the optimizer itself goes into this file, where it is of no use for a resume: save optimizer.state_dict() "
                      "and the model's state_dict(), load them with load_state_dict, and migrate again",
                      "ZeRO 1-3 put flat pieces in place of its parameters, and at ZeRO 0 they are no longer those of the model in the file")  # fmt: skip
            continue
        holder = _holder(plan, state, function)
        if holder is not None:
            plan.todo("MG631", call, f"an object of {holder.name} goes into this file, which holds the engine's model or optimizer: save state dicts",
                      "neither the engine nor the hooks of its module can be pickled, and the optimizer has flat pieces in place of parameters")  # fmt: skip


def _holder(plan: Plan, state: Node, function: Function) -> Class | None:
    """The class of an object in a file that holds the model or the optimizer, and does not say itself what is pickled."""
    for node, where in elements(plan, state, function):
        if not isinstance(node, cst.Name | cst.Attribute) or plan.roles.of(node, where):
            continue
        for cls in classes_of(plan, node, where):
            if not _OWN_PICKLE & cls.methods.keys() and _holds_training(plan, cls):
                return cls
    return None


def _holds_training(plan: Plan, cls: Class) -> bool:
    family = plan.flow.family(cls)
    return any(
        place[:2] == ("a", family) and any(tag[0] == "O" or (tag[0] in "ER" and tag[1:] in plan.group) for tag in tags)
        for place, tags in plan.roles.env.items()
    )
