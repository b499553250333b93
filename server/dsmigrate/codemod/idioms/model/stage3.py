"""What ZeRO stage 3 adds: parameters are whole only while they are gathered, and a forward is collective."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import dividing, regions_around
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.meeting import parting
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Tensor
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Enclose, Import, Replace
from dsmigrate.codemod.program.module import Step

IDEAS = (
    Idea(
        "MG705",
        "ZeRO stage 3 partitions the parameters",
        "Weights read outside forward are empty at stage 3 unless gathered.",
        "Averages, norms and pruning that go over the parameters need GatheredParameters on all ranks.",
        "engine-semantics 16",
        Kind.TODO,
    ),
    Idea(
        "MG707",
        "Parameters are gathered around an averaged copy",
        "At ZeRO 3 the update of an EMA model reads the parameters, so all ranks gather them around it.",
        "Outside forward and backward the module holds empty tensors at ZeRO 3.",
        "engine-semantics 16",
        Kind.CONVERTED,
    ),
    Idea(
        "MG710",
        "no_grad instead of inference_mode",
        "Evaluation at ZeRO 3 runs under torch.no_grad().",
        "Parameters gathered under inference_mode are inference tensors; the next training step cannot use them.",
        "engine-semantics 16",
        Kind.CONVERTED,
    ),
    Idea(
        "MG711",
        "A forward that only some ranks run",
        "`if rank == 0: validate(model)` hangs or fails at ZeRO stage 3.",
        "At stage 3 the ranks gather every layer's parameters together, in each forward. Run the evaluation on all ranks, the same "
        "number of forwards on each, and keep what is done with the result under the guard.",
        "measured against DeepSpeed 0.19.8; https://github.com/deepspeedai/DeepSpeed/issues/860",
        Kind.TODO,
    ),
)


def partitioned(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions that only stage 3 asks for."""
    if facts.options.zero_stage != 3:
        return
    yield from _forwards(training)
    yield from _averages(training)


def _forwards(training: Training) -> Iterator[Decision]:
    seen: set[ast.AST] = set()
    for event in training.events(Happening.FORWARD):
        if not training.is_model(event["model"]) or training.is_before(event):
            continue
        if event.node not in seen and parting(training, event) is not None:
            seen.add(event.node)
            yield Decision("MG711", Kind.TODO, event.module, event.node, "run this forward on all ranks: at ZeRO 3 it hangs if some do not come",
                           "the ranks gather each layer together")  # fmt: skip
        for block in regions_around(event, "torch.inference_mode"):
            call = None if block.node is None else _named(block.node)
            if call is not None and call not in seen and block.module is not None:
                seen.add(call)
                yield Decision(
                    "MG710", Kind.CONVERTED, block.module, call, "inference_mode → no_grad", "the next training step fails after inference_mode",
                    edits=(Replace(block.module, call, ("torch.no_grad",)),), imports=(Import(block.module, "torch"),),
                )  # fmt: skip


def _named(node: ast.AST) -> ast.expr | None:
    """What names ``torch.inference_mode`` in a ``with`` or a decorator."""
    calls = [one.func if isinstance(one, ast.Call) else one for one in ast.walk(node)]
    return next(
        (
            one
            for one in calls
            if isinstance(one, ast.Attribute | ast.Name) and ast.unparse(one).endswith("inference_mode")
        ),
        None,
    )


def _averages(training: Training) -> Iterator[Decision]:
    """Gather the parameters around statements that read their values into an average."""
    done: set[ast.AST] = set()
    for event in training.events(Happening.PARAMETERS, Happening.WEIGHT_READ):
        if (
            training.is_before(event)
            or not isinstance(event.node, ast.Call)
            or not (training.is_model(event["of"]) or training.is_wrapped(event["of"]))
        ):
            continue
        step = event.module.step(event.node)
        if any(one.node in done for one in step.around()) or not (
            event.kind is Happening.WEIGHT_READ or _fills(training, step)
        ):
            continue
        done.add(step.node)
        holder = (
            event.node.args[0]
            if event.kind is Happening.WEIGHT_READ and event.node.args
            else getattr(event.node.func, "value", None)
        )
        if dividing(event) is not None or holder is None:
            yield Decision("MG705", Kind.TODO, event.module, event.node, "gather the parameters on all ranks around this (GatheredParameters)",
                           "the module holds empty tensors at ZeRO 3")  # fmt: skip
            continue
        header = f"with deepspeed.zero.GatheredParameters(list({event.module.text(holder)}.parameters())):"
        yield Decision(
            "MG707", Kind.CONVERTED, event.module, event.node, "the parameters are gathered around this", "the module holds empty tensors at ZeRO 3",
            edits=(Enclose(event.module, step.node, header),), imports=(Import(event.module, "deepspeed"),),
        )  # fmt: skip


def _fills(training: Training, step: Step) -> bool:
    """Whether a statement writes weights of another model: an average."""
    inside = set(ast.walk(step.node))
    return any(
        event.node in inside
        and isinstance(of := event["of"], Tensor)
        and of.of is not None
        and not training.is_model(of.of)
        for event in training.events(Happening.WEIGHT_WRITE)
    )
