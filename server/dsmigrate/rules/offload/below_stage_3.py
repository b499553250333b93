"""DS501: parameters that are offloaded at a stage that keeps them on the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE, ZERO, given, section, switched_on

_SECTION = f"{ZERO}.offload_param"
_OLD = f"{ZERO}.cpu_offload_param"


@rule(
    "DS501",
    "offload-param-below-3",
    summary="`offload_param` below ZeRO stage 3, where it is ignored.",
    why="Only stage 3 shards parameters, so only there can shards leave the GPU. At stage 0, 1 and 2 the section is "
    "accepted and "
    "never read, without a message: nothing gets smaller.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=(
        "deepspeed/runtime/engine.py:_configure_zero_optimizer",
        "https://github.com/deepspeedai/DeepSpeed/issues/1403",
    ),
    keys=(_SECTION, f"{_SECTION}.device"),
    pains=(36,),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2, «"offload_param": {"device": "cpu"}»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 1, «"cpu_offload_param": true»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 1}}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "offload_param": {"device": "none"}}}\n'),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the section, or at the old switch."""
    if context.stage not in {0, 1, 2} or context.raw(STAGE) == "auto" or not context.has(STAGE):
        return  # without a stage ZeRO is off as a whole
    entry = section(context, _SECTION) or switched_on(context, _OLD)
    if entry is None or context.device("offload_param") not in {"cpu", "nvme"}:
        return
    yield context.finding(
        entry,
        say(
            "parameters stay on the GPU at stage {stage}: {path} is for stage 3",
            stage=context.stage,
            path=shown(entry.path),
        ),
        part="member",
        fixes=[
            context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=True),
            context.replace(STAGE, 3, say("Use stage 3"), safe=False),
        ],
        related=[(STAGE, say("the stage"))] if given(context, STAGE) else [],
        tags=[Tag.UNNECESSARY],
    )
