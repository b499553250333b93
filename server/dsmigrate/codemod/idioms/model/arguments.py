"""Arguments of the wrapper: most of them tune a reducer that is gone, a few mean something else for the training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.classes import is_closed
from dsmigrate.codemod.analysis.code import holds_by_default
from dsmigrate.codemod.analysis.conditions import options_of
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.optimizers import moved_unused
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Obj, Value, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Remove
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG103",
        "DDP keyword without a counterpart dropped",
        "Keywords that tune DDP's reducer have no meaning for the engine.",
        "device_ids and output_device are implied by the process's device; find_unused_parameters is the engine's normal behaviour "
        "(ignore_unused_parameters defaults to true); bucket_cap_mb, gradient_as_bucket_view and static_graph tune a reducer "
        "that is no longer there.",
        "deepspeed/runtime/zero/config.py, ignore_unused_parameters",
        Kind.CONVERTED,
    ),
    Idea(
        "MG106",
        "DDP's mixed_precision policy",
        "Native DDP mixed precision casts parameters for the forward pass; the engine has its own settings.",
        "bf16, fp16 or torch_autocast in the config replace it, each with other numerics.",
        "torch.nn.parallel.DistributedDataParallel(mixed_precision=...)",
        Kind.TODO,
    ),
    Idea(
        "MG110",
        "Parameters that no rank uses get weight decay",
        "Under DDP with find_unused_parameters or static_graph such parameters keep no gradient and stay as they are.",
        "The engine's optimizer sees a zero gradient for them, so weight decay and momentum move them. Where the ranks use "
        "different parameters in one step, ZeRO 1 and 2 fill their buckets with different layers and average those with one "
        "another; ZeRO 0 puts zeros in the place of what is missing.",
        "engine-semantics 8; deepspeed/runtime/zero/stage_1_and_2.py, average_tensor",
        Kind.KEPT,
    ),
    Idea(
        "MG114",
        "Parameters that DDP was told to leave alone",
        "Experts or shards that each rank has for itself would become those of rank 0, with averaged gradients.",
        "DDP neither broadcasts nor reduces what `_ddp_params_and_buffers_to_ignore` names. deepspeed.initialize sends rank 0's "
        "parameters to all ranks and averages every gradient.",
        "torch/nn/parallel/distributed.py, _set_params_and_buffers_to_ignore_for_model; deepspeed/runtime/engine.py, _broadcast_model",
        Kind.TODO,
    ),
    Idea(
        "MG116",
        "Gradients were summed, not averaged",
        "apex's DDP adds the ranks' gradients up where gradient_average is False; the engine always averages them.",
        "Every update would be smaller by the number of ranks. With the loss times the number of ranks the averaged gradient is "
        "the sum; clipping limits stay right then.",
        "apex/parallel/distributed.py, allreduce_bucket; deepspeed/runtime/engine.py, allreduce_bucket",
        Kind.TODO,
    ),
)
_UNUSED = ("arg_find_unused_parameters", "arg_static_graph")


def arguments(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about what the wraps were told."""
    del facts
    for event in {event.node: event for event in training.wraps}.values():
        yield from _of_wrap(event)
        if _finds_unused(event):
            yield from _unused(training, event)
    for event in {event.node: event for event in training.events(Happening.ACCESS)}.values():
        if constant(event["name"]) == "_set_static_graph" and training.is_wrapper(event["of"]):
            if not any(map(_finds_unused, training.wraps)):
                yield from _unused(training, event)
            statement = event.module.step(event.node).node
            if isinstance(event.node, ast.Call) and is_statement(event):
                yield Decision(
                    "MG103", Kind.CONVERTED, event.module, event.node, "_set_static_graph() removed", "it tunes DDP's reducer",
                    edits=(Remove(event.module, statement),),
                )  # fmt: skip
    yield from _left_to_ranks(training)


def _left_to_ranks(training: Training) -> Iterator[Decision]:
    """Parameters that DDP was told to ignore; only said where no model of the default options has such."""
    event = training.wraps[0]
    found = [
        (condition, model)
        for condition, model in options_of(event["module"])
        if isinstance(model, Obj) and "_ddp_params_and_buffers_to_ignore" in model.own
    ]
    if not found:
        return
    meant = any(holds_by_default(training.analysis, condition) is not False for condition, _ in found)
    names = ", ".join(str(model.cls.data["name"]) for _, model in found if model.cls is not None)
    yield Decision(
        "MG114", Kind.TODO if meant else Kind.KEPT, event.module, event.node,
        told("{what}DDP left some parameters to each rank; the engine makes them rank 0's", what="" if meant else f"{names}: "),
        "it broadcasts all parameters and averages all gradients", differs=not meant,
    )  # fmt: skip


def _of_wrap(event: Event) -> Iterator[Decision]:
    module, node = event.module, event.node
    if "arg_gradient_average" in event.what and any(
        constant(one) is False for one in each(event["arg_gradient_average"])
    ):
        yield Decision(
            "MG116", Kind.TODO, module, node, "multiply the loss by the number of ranks: the engine averages gradients",
            "gradient_average=False added them up",
        )  # fmt: skip
    if _is_given(event, "arg_mixed_precision"):
        yield Decision(
            "MG106", Kind.TODO, module, node, "set bf16, fp16 or torch_autocast in the config instead of mixed_precision",
            "the wrapper cast the parameters for each forward",
        )  # fmt: skip
    if _is_given(event, "arg_process_group"):
        yield Decision("MG903", Kind.REFUSED, module, node, "process_group: the model is wrapped with a process group of its own",
                       "the engine averages over all ranks")  # fmt: skip


def _finds_unused(event: Event) -> bool:
    return any(name in event.what and any(constant(one) is not False for one in each(event[name])) for name in _UNUSED)


def _unused(training: Training, event: Event) -> Iterator[Decision]:
    """What moves the parameters that a step does not use, and what ranks that skip different ones need."""
    decays, keeps_moving = moved_unused(training) or (True, True)
    message = (
        "Unused parameters now get weight decay. Layers skipped at random? Use --zero-stage 0."
        if decays
        else "Parameters no longer used keep moving by momentum. Layers skipped at random? Use --zero-stage 0."
        if keeps_moving
        else "Layers skipped at random? Use --zero-stage 0."
    )
    if not (decays or keeps_moving) and not any(map(_may_skip, training.parts)):
        return
    why = (
        "DDP left them as they were" if decays or keeps_moving else "ZeRO 1-3 average different layers with one another"
    )
    yield Decision("MG110", Kind.KEPT, event.module, event.node, message, why, differs=True, least=1)


def _may_skip(part: Value) -> bool:
    """Whether a module may leave out layers in some forwards: a branch of its code has layers, or it is not read."""
    if not isinstance(part, Obj):
        return True
    if part.cls is None:
        return not part.made_by.startswith("torch.nn.")
    classes = [one.node for one in part.cls.data["order"] if isinstance(one, Obj)]
    return not is_closed(part) or any(
        _has_layers(branch, function)
        for cls in classes
        for function in (cls.body if isinstance(cls, ast.ClassDef) else ())
        if isinstance(function, ast.FunctionDef) and function.name != "__init__"
        for branch in ast.walk(function)
        if isinstance(branch, ast.If | ast.IfExp)
    )


def _has_layers(branch: ast.If | ast.IfExp, function: ast.FunctionDef) -> bool:
    """Whether an arm of a branch leads out of what is around, or has something of the module's in it."""
    own = {one.arg for one in function.args.args[:1]}
    for loop in ast.walk(function):
        if isinstance(loop, ast.For | ast.comprehension):
            own |= {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    inside = [one for arm in ast.iter_child_nodes(branch) if arm is not branch.test for one in ast.walk(arm)]
    return any(
        isinstance(one, ast.Return | ast.Continue | ast.Break) or (isinstance(one, ast.Name) and one.id in own)
        for one in inside
    )


def _is_given(event: Event, name: str) -> bool:
    """Whether an argument may be something else than None."""
    return name in event.what and any(one != NONE for one in each(event[name]))
