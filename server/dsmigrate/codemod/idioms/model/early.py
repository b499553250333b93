"""Copies of the weights between the wrap, where DDP sent rank 0's to all ranks, and the engine, which sends them later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import dividing, implies
from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Tensor, each, may_vary
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG119",
        "Rank 0's weights are sent before they are copied",
        "A copy or average that is made of the wrapped model before deepspeed.initialize begins with rank 0's weights on all ranks.",
        "DDP's constructor sent them. deepspeed.initialize does so too, but comes behind the optimizer. Where every rank makes the model "
        "with the same seed, they are equal, and nothing is sent.",
        "torch/nn/parallel/distributed.py, _sync_module_states; deepspeed/runtime/engine.py, _broadcast_model",
        Kind.CONVERTED,
    ),
)


def early(training: Training, facts: Facts) -> Iterator[Decision]:
    """Send the weights before the first copy that is made of them between the wrap and the engine."""
    first = min(event.number for event in training.wraps)
    taken = [
        event
        for event in training.events(*_TAKES)
        if first < event.number <= facts.site.number and _is_taken(training, event)
    ]
    if not taken or _is_seeded(training, first):
        return
    event = taken[0]
    module, node, names = event.module, event.node, training.engine_names(event.names)
    if not names:
        for block in event.block.around():
            if (
                block.kind is BlockKind.CALL
                and block.node is not None
                and block.module is not None
                and training.engine_names(block.names)
            ):
                module, node, names = block.module, block.node, training.engine_names(block.names)
                break
    if not names:
        return
    step = module.step(node)
    wraps = {wrap.node for wrap in training.wraps}
    while (
        step.up is not None and isinstance(step.up.node, ast.For | ast.With) and not wraps & set(ast.walk(step.up.node))
    ):
        step = step.up
    line = f"ds_compat.broadcast_model({names[0]})"
    yield Decision(
        "MG119", Kind.CONVERTED, event.module, event.node, told("{line} before the copy", line=line), "DDP sent rank 0's weights when it was made",
        edits=(Insert(module, step.node, ((line,),)),), parts=frozenset({"broadcast_model"}), lines=(0, 0),
    )  # fmt: skip


_TAKES = (Happening.COPY, Happening.STATE, Happening.WEIGHT_READ, Happening.WEIGHT_WRITE)


def _is_taken(training: Training, event: Event) -> bool:
    """Whether all ranks take the weights of the model, to put them elsewhere."""
    of = event["of"]
    if dividing(event) is not None:
        return False
    if event.kind is Happening.WEIGHT_WRITE:
        other = of.of if isinstance(of, Tensor) else None
        return other is not None and not training.is_model(other) and any(
            read.block is event.block or read.module is event.module for read in training.events(Happening.PARAMETERS) if training.is_model(read["of"])
        )  # fmt: skip
    return training.is_model(of) or training.is_wrapped(of)


def _is_seeded(training: Training, before: int) -> bool:
    """Whether every rank has begun its random numbers alike before the model was wrapped."""
    seeds = [event for event in training.events(Happening.SEED) if event.number < before]
    if not seeds:
        return False
    last = seeds[-1]
    always = all(implies(wrap.condition, last.condition) for wrap in training.wraps)
    return always and dividing(last) is None and not any(may_vary(one) for one in each(last["value"]))
