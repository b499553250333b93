"""What goes past the wrapper, or asks it for what the engine does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import implies
from dsmigrate.codemod.analysis.conditions import decided, literals_of
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import forwards_in
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG121",
        "A training forward that goes past the wrapper",
        "The loss comes from model.module(x), or from a method of the module: DDP averages no gradients of such a forward, the "
        "engine averages those of any.",
        "DDP prepares its reduction in its own forward; without it each rank trains a model of its own, of which rank 0's is "
        "saved. The engine reduces whatever engine.backward gives.",
        "torch/nn/parallel/distributed.py, _pre_forward and prepare_for_backward; measured on two CPU processes",
        Kind.TODO,
    ),
    Idea(
        "MG512",
        "An attribute of the wrapped model has the name of one of the engine's",
        "DDP has no attribute of that name; the engine has, and uses it.",
        "engine.step() steps engine.lr_scheduler, so a schedule that the script keeps there and steps as well runs twice as "
        "fast; engine.optimizer replaced by the client optimizer trains nothing at ZeRO 1-3.",
        "deepspeed/runtime/engine.py, _take_model_step; two CPU processes: learning rates 0.05, 0.025 … for 0.1, 0.05 …",
        Kind.TODO,
    ),
    Idea(
        "MG517",
        "A member of the wrapper that the engine does not have",
        "reducer, process_group, _sync_params and the like are DDP's own.",
        "The engine passes unknown names on to the module, which has none of these.",
        "deepspeed/runtime/engine.py, __getattr__",
        Kind.TODO,
    ),
)
_OF_THE_ENGINE = frozenset(
    ["optimizer", "basic_optimizer", "client_optimizer", "lr_scheduler", "client_lr_scheduler", "losses", "timers", "monitor", "mpu", "global_steps", "global_samples", "skipped_steps", "checkpoint_engine", "training_dataloader", "step", "backward", "train_batch_size", "gradient_accumulation_steps", "gradient_clipping", "zero_optimization", "save_checkpoint", "load_checkpoint"]
)  # fmt: skip
"""What the engine reads or writes while it trains, saves and loads."""
_OF_THE_WRAPPER = frozenset(
    ["device_ids", "output_device", "dim", "process_group", "reducer", "logger", "static_graph", "bucket_bytes_cap", "mixed_precision", "device_type", "is_multi_device_module", "will_sync_module_buffers", "_sync_params", "_sync_buffers", "_sync_params_and_buffers", "_sync_module_states", "_get_ddp_logging_data", "_rebuild_buckets", "_distributed_rank", "require_forward_param_sync", "parameters_to_ignore", "needs_refresh", "allreduce_params", "disable_allreduce", "enable_allreduce", "scatter", "gather", "to_kwargs", "join_hook", "_log_and_throw", "_register_fused_optim"]
)  # fmt: skip


def past(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Mark losses of which no forward is the wrapper's, where the model is wrapped."""
    seen: set[ast.AST] = set()
    for backward in training.backwards:
        forwards = [one for one in forwards_in(backward["loss"]) if training.is_model(one.model)]
        if not forwards or any(training.is_wrapped(one.model) for one in forwards):
            continue
        nodes = {one.node for one in forwards}
        for event in training.events(Happening.FORWARD):
            if event.node in nodes and event.node not in seen and not _is_unwrapped_run(training, event):
                seen.add(event.node)
                yield Decision(
                    "MG121", Kind.TODO, event.module, event.node, "this forward bypasses DDP: its gradients, not averaged so far, will be",
                    "each rank trained a model of its own",
                )  # fmt: skip


def _is_unwrapped_run(training: Training, event: Event) -> bool:
    """Whether the model is not wrapped in the runs that come here, or its name leads to the wrapper in others."""
    assumed = {literal.atom: literal.holds for literal in literals_of(event.condition)}
    if all(decided(wrap.condition, assumed) is False for wrap in training.wraps):
        return True
    if not isinstance(event.node, ast.Call):
        return False
    says = event.node.func
    named = training.is_named_wrapper(event, says) or (
        isinstance(says, ast.Attribute) and training.is_named_wrapper(event, says.value)
    )
    return named and not any(implies(event.condition, wrap.condition) for wrap in training.wraps)


def members(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Mark members of the wrapper that the engine has for itself, or does not have."""
    seen: set[ast.AST] = set()
    for event in training.events(Happening.ACCESS):
        name = constant(event["name"])
        if event.node in seen or not training.is_wrapper(event["of"]):
            continue
        if "value" in event.what and name in _OF_THE_ENGINE:
            seen.add(event.node)
            yield Decision(
                "MG512", Kind.TODO, event.module, event.node, told("the engine uses .{name} itself: give this attribute another name", name=name),
                "DDP had none of that name",
            )  # fmt: skip
        elif name in _OF_THE_WRAPPER:
            seen.add(event.node)
            yield Decision(
                "MG517", Kind.TODO, event.module, event.node, told(".{name} is DistributedDataParallel's own; the engine has none", name=name),
                "it looks unknown names up in the module",
            )  # fmt: skip
