"""Buffers: DDP sent rank 0's to all ranks, when it was made and before each forward; the engine sends none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.buffers import Buffers
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, by_place, constant
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert, Replace
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG104",
        "Buffers are no longer broadcast",
        "DDP sends rank 0's buffers to all ranks before every forward; DeepSpeed never does.",
        "Training losses are unchanged where no forward reads what each rank has written to its own buffers, as with BatchNorm.",
        "engine-semantics 15",
        Kind.KEPT,
    ),
    Idea(
        "MG109",
        "Buffers are spread once",
        "DDP's constructor sent rank 0's buffers to all ranks; broadcast_buffers does.",
        "initialize broadcasts parameters but not buffers. Buffers filled at random (a queue) or by rank 0 alone would differ. With "
        "broadcast_buffers=False DDP sends none (since torch 2.1), and none are sent.",
        "engine-semantics 15; torch/nn/parallel/distributed.py, init_sync_buffers",
        Kind.CONVERTED,
    ),
    Idea(
        "MG128",
        "Buffers that training writes are sent before each forward",
        "A running mean, a centre or a codebook in a buffer, which each rank writes from its own data: rank 0's are sent to all "
        "ranks before each forward, as DDP did.",
        "A model that reads its own buffers would train with other values on each rank. Buffers that are written from gathered "
        "or reduced values are equal and need nothing.",
        "torch/nn/parallel/distributed.py, _pre_forward; measured on two CPU processes: losses differ without it, and are DDP's with it",
        Kind.CONVERTED,
    ),
    Idea(
        "MG129",
        "All ranks evaluate with rank 0's statistics",
        "BatchNorm's running statistics come from each rank's own data. Where all ranks evaluate, rank 0's are sent to all ranks "
        "before each forward, as DDP did.",
        "The ranks would get other metrics from one model. ReduceLROnPlateau, early stopping and the choice of the best model "
        "then part from rank to rank.",
        "torch/nn/parallel/distributed.py, _pre_forward; measured on two CPU processes",
        Kind.CONVERTED,
    ),
)
_EACH = "broadcast_buffers_each_forward"


def buffers(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decision about the model's buffers."""
    asked = [event["arg_broadcast_buffers"] for event in training.wraps if "arg_broadcast_buffers" in event.what]
    if asked and all(constant(one) is False for value in asked for one in each(value)):
        return
    found = Buffers(training)
    wrap = training.wraps[0]
    if found.are_sent:
        code = "MG128" if found.written else "MG129"
        why = (
            "training writes them"
            if found.written
            else "all ranks evaluate" + ("" if found.running else ", if the model has running statistics")
        )
        for node, events in by_place(found.evaluated_by_some).items():
            yield _alone(training, node, events)
        yield _line(facts, code, _EACH, told("rank 0's buffers are sent before each forward: {why}", why=why))
    elif any(one.varies for one in found.own) or (found.are_restored_by_some and (found.may_run or found.own)):
        yield _line(facts, "MG109", "broadcast_buffers", "rank 0's buffers are sent to all ranks once, as DDP did")
    elif not found.is_read:
        yield Decision(
            "MG104", Kind.KEPT, wrap.module, wrap.node, "DDP sent rank 0's buffers before each forward; the engine sends none",
            "only a model that writes buffers and reads them in training notices", differs=True,
        )  # fmt: skip


def _alone(training: Training, node: ast.AST, events: list[Event]) -> Decision:
    """An evaluation that some ranks run uses the module: the wrapped forward would wait for all."""
    module = events[0].module
    every = [event for event in training.events(Happening.FORWARD) if event.node is node]
    wrapped = {event.context for event in every if training.is_wrapped(event["model"])}
    if isinstance(node, ast.Call) and all(
        event["method"] == Const("")
        and ((event.context in wrapped and training.has_engine(event, node.func)) or training.is_alone(event))
        for event in every
    ):
        text = module.text(node.func)
        return Decision(
            "MG129", Kind.CONVERTED, module, node, f"{text}(…) → {text}.module(…)", "only some ranks run it",
            edits=(Replace(module, node.func, (node.func, ".module")),),
        )  # fmt: skip
    return Decision(
        "MG129", Kind.TODO, module, node, "evaluate model.module here: the wrapped forward sends buffers to all ranks", "only some ranks run it",
    )  # fmt: skip


def _line(facts: Facts, code: str, part: str, message: str) -> Decision:
    site = facts.site
    line = f"ds_compat.{part}({site.target})"
    return Decision(
        code, Kind.CONVERTED, site.module, site.node, message, "the engine sends no buffers",
        edits=(Insert(site.module, site.node, ((line,),), after=True, rank=2),), parts=frozenset({part}), lines=(0, 0),
    )  # fmt: skip
