"""The stage, what is offloaded, and what ZeRO decides where nothing is written."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import in_force, offloads, stage_text
from dsmigrate.editing.derived.force import CONTIGUOUS, OPTIMIZER_DEVICE, OVERLAP, PREFETCH, SEQUENTIAL, STAGE, ZERO
from dsmigrate.editing.derived.trained import trained
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.editing.hover.told import is_told
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.hints._memory import in_gigabytes, state_bytes
from dsmigrate.rules.model import Effect
from dsmigrate.rules.precision._shared import uses_bf16_optimizer


def lines(at: Subject) -> Iterator[str]:
    """Yield what ZeRO comes to."""
    context, path = at.context, at.path
    if path == ZERO:
        yield say(
            "{text}.",
            text=say(", ").join(
                [
                    stage_text(context),
                    *(say("{what} on {where}", what=say(what), where=where) for what, where in offloads(context)),
                ]
            ),
        )
    elif path == STAGE:
        yield from _stage(context)
    elif path == OVERLAP and context.value(path) is None and context.stage:
        yield say(
            "Unset: {word} at stage {stage}.",
            word=say("on") if in_force(context, OVERLAP) else say("off"),
            stage=context.stage,
        )
    elif path == CONTIGUOUS and not context.is_on(path) and in_force(context, path) is True and context.stage:
        yield say("On all the same: the optimizer is offloaded.")
    elif path == PREFETCH and in_force(context, PREFETCH) == 1 != context.number(PREFETCH):
        yield say("Overridden: `{sequential}` is on and makes it 1 element.", sequential=SEQUENTIAL)
    elif path == OPTIMIZER_DEVICE and ("optimizer", "cpu") in offloads(context) and _says_nvme(at):
        yield say("The optimizer goes to the CPU: NVMe is for stage 3, and the stage is {stage}.", stage=context.stage)


def _says_nvme(at: Subject) -> bool:
    return at.context.device("offload_optimizer") == "nvme" and not is_told(at.view, at.target, Effect)


def _stage(context: Context) -> Iterator[str]:
    stage = context.stage
    if stage is None:
        return
    if uses_bf16_optimizer(context):
        yield say("`BF16_Optimizer` takes the place of stage 1: bf16 weights, fp32 sums, no CPU offload.")
    model = context.facts.model
    if model is not None:
        held = None if model.held is None else model.held(context)
        if held is not None:
            yield say(
                "States and buffers take about {held} of each of {world_size} GPUs before any activation: {trained}.",
                held=in_gigabytes(held),
                world_size=context.facts.world_size,
                trained=trained(context.facts),
            )
        return
    needed = state_bytes(context.facts, stage)
    if needed is not None and not offloads(context) and 0 < needed < 1e18:
        yield say(
            "Weights, gradients and Adam states take about {in_gigabytes} on each GPU in 16-bit training: "
            "{parameters} parameters on {world_size} GPUs.",
            in_gigabytes=in_gigabytes(needed),
            parameters=context.facts.parameters,
            world_size=context.facts.world_size,
        )
