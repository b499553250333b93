"""fp16 with and without ZeRO: only ZeRO multiplies the loss by the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.optimizer._built import built
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.force import STAGE
from dsmigrate.languages import say
from dsmigrate.rules.precision._shared import DYNAMIC, mode
from dsmigrate.rules.typed import before

_UNSCALED_SINCE = "0.18.3"
"""Since when nobody but ZeRO multiplies the loss by the loss scale."""
_SGD = (
    '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 1e-2}}, "zero_allow_untested_optimizer":'
    ' true, "fp16": {"enabled": true}'
)
_ADAM = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "fp16": {"enabled": true}'
_RULE = "DS302"
"""The rule that says the same of a config alone."""


@explanation(
    "DF314",
    "fp16-without-zero",
    summary="ZeRO comes to fp16 training, or leaves it, and with it the loss scale that is really applied.",
    why=(
        "Since 0.18.3 `engine.backward` leaves the scaling of the loss to ZeRO. Without ZeRO nobody multiplies, and the"
        " wrapper of fp16 divides all the same: steps of SGD are too small by the scale, 65536 at the start, and"
        " clipping never bites. Adam normalizes most of it away."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine.backward",
        "deepspeed/runtime/fp16/fused_optimizer.py:FP16_Optimizer",
    ),
    examples=(
        Example(
            _SGD + ', "zero_optimization": {"stage": 2}}',
            _SGD + "}",
            "Updates are divided by a loss scale that the loss is not multiplied by without ZeRO: they come out too"
            " small",
            paths=(STAGE,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            _ADAM + "}",
            _ADAM + ', "zero_optimization": {"stage": 1}}',
            "Loss and updates are scaled alike with ZeRO; without it updates are divided by a loss scale that the loss"
            " is not multiplied by, which Adam normalizes away for the most part",
        ),
        Example(
            _SGD.replace("fp16", "bf16") + "}",
            _SGD.replace("fp16", "bf16") + ', "zero_optimization": {"stage": 1}}',
            "",
        ),
        Example(
            _ADAM + "}", _ADAM + ', "zero_optimization": {"stage": 1}}', "", old_version="0.18.2", new_version="0.18.2"
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what becomes of the loss scale with another stage."""
    stages = pair.old.context.stage, pair.new.context.stage
    both = all(mode(side.context) == "fp16" for side in (pair.old, pair.new))
    if pair.change(STAGE) is None or None in stages or stages.count(0) != 1 or not both:
        return
    bare = pair.new if stages[1] == 0 else pair.old
    if before(bare.context, _UNSCALED_SINCE) or bare.number(DYNAMIC) == 1:
        return
    end = (
        say(", which Adam normalizes away for the most part") if _normalizes(bare) else say(": they come out too small")
    )
    yield pair.says(
        STAGE,
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING,
        message=say("Updates are divided by a loss scale that the loss is not multiplied by without ZeRO{end}", end=end)
        if bare is pair.new
        else say(
            "Loss and updates are scaled alike with ZeRO; without it updates are divided by a loss scale that the "
            "loss is not multiplied by{end}",
            end=end,
        ),
        brief=say("fp16 without a working loss scale") if bare is pair.new else say("fp16 with a working loss scale"),
        found=tuple(finding for finding in bare.view.findings if finding.code == _RULE),
    )


def _normalizes(side: Side) -> bool:
    found = built(side)
    return found is not None and "betas" in found.facts.parameters
