"""DS415: an odd allgather bucket."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZENFLOW, ZERO, given, is_bf16_optimizer

_KEY = f"{ZERO}.allgather_bucket_size"


@rule(
    "DS415",
    "odd-allgather-bucket",
    summary="An odd `allgather_bucket_size`, which stage 1 and 2 refuse.",
    why="Stage 1 and 2 assert that the number is a multiple of 2, although they use it for nothing outside "
    "ZenFlow's offload.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer",),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2, "allgather_bucket_size": «500000001»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": true, "allgather_size": «3»}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": true}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "allgather_bucket_size": 5e8}}\n'),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 0, "allgather_bucket_size": 3}}\n'),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}, '
            '"zero_optimization": {"stage": 1, "allgather_bucket_size": 3}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at an odd number of elements."""
    path = (
        "allgather_size" if context.raw(ZERO) is True else _KEY
    )  # the switch of old files takes it from the top level
    size = context.number(path)
    if context.stage not in {1, 2} or is_bf16_optimizer(context):
        return
    if given(context, path) is None or size is None or size % 2 != 1:
        return
    if context.is_on(f"{ZENFLOW}.offload"):
        fix = context.replace(path, int(size) + 1, say("Use {number}", number=int(size) + 1), safe=True)
    else:
        fix = context.remove(path, say("Remove {path}", path=shown(path)), safe=True)
    yield context.finding(
        path,
        say("{size} is odd; ZeRO stage {stage} takes even numbers only", size=int(size), stage=context.stage),
        fixes=[fix],
    )
