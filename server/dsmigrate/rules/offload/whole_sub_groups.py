"""DS565: a ratio of partial offload that the few sub-groups of a rank cannot follow."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before
from dsmigrate.rules.zero._shared import ZERO, given

_KEY = f"{ZERO}.offload_optimizer.ratio"
_SIZE = f"{ZERO}.sub_group_size"
_ROUNDS_UP_SINCE = "0.18.0"
_MANY = 10
"""With so many sub-groups the ratio is met well enough."""
_ADAM = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
_HEAD = _ADAM + '"zero_optimization": {"stage": 3, '
_OFFLOAD = '"offload_optimizer": {"device": "cpu", "ratio": '


@rule(
    "DS565",
    "whole-sub-groups",
    summary="An `offload_optimizer.ratio` between 0 and 1 where a rank has only a few sub-groups.",
    why="Stage 3 updates a rank's part of the model in sub-groups of at least `sub_group_size` elements, and `ratio` "
    "counts whole ones. By default that is 1e9 elements: a rank with fewer has one sub-group, all of which is "
    "offloaded, and before 0.18.0, which rounded down, none of it. Told if the number of sub-groups is not known to "
    "be large.",
    severity=Severity.INFO,
    effect=Effect.OVERRIDDEN,
    source=(
        "deepspeed/runtime/zero/stage3.py:DeepSpeedZeroOptimizer_Stage3._create_fp16_sub_groups",
        "https://github.com/deepspeedai/DeepSpeed/issues/4775",
    ),
    keys=(_KEY, _SIZE),
    examples=(
        Example(_HEAD + _OFFLOAD + "«0.1»}}}"),
        Example(_HEAD + _OFFLOAD + "«0.1»}}}", version="0.12.6"),
        Example(_HEAD + _OFFLOAD + "«0.3»}}}", facts=Facts(parameters=30_000_000_000, world_size=8)),
        Example(_HEAD + _OFFLOAD + "0.3}}}", facts=Facts(parameters=300_000_000_000, world_size=8)),
        Example(_HEAD + '"sub_group_size": 1e7, ' + _OFFLOAD + "0.3}}}"),
        Example(_HEAD + _OFFLOAD + "1.0}}}"),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the ratio."""
    ratio, size = context.number(_KEY), context.number(_SIZE)
    if given(context, _KEY) is None or ratio is None or not 0 < ratio < 1 or not size:
        return
    if context.stage != 3 or context.device("offload_optimizer") != "cpu":
        return
    rounds_down = before(context, _ROUNDS_UP_SINCE)
    parameters, ranks = context.facts.parameters, context.facts.world_size
    if parameters is None or ranks is None:
        if size < 1e8:
            return
        told = (
            say("a rank with fewer parameters has one, and none of it is offloaded")
            if rounds_down
            else say("a rank with fewer parameters has one, and all of it is offloaded")
        )
        message = say(
            "`ratio` counts whole sub-groups of `sub_group_size`, {size} elements: {told}",
            size=json_text(int(size)),
            told=told,
        )
    else:
        groups = -(-parameters // int(ranks * size))
        if groups >= _MANY:
            return
        offloaded = int(ratio * groups) if rounds_down else groups - int((1 - ratio) * groups)
        message = say(
            "`ratio` counts whole sub-groups of `sub_group_size`, {size} elements: a rank has about {groups}, of which "
            "{offloaded} are offloaded",
            size=json_text(int(size)),
            groups=groups,
            offloaded=offloaded,
        )
    yield context.finding(_KEY, message)
