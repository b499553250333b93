"""DS270: a gradient format that something else decides."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import DATA, SEQUENCE, degree, given
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_KEY = "communication_data_type"
_SEQUENCE_KEY = "seq_parallel_communication_data_type"


@rule(
    "DS270",
    "communication-type-overridden",
    summary="`communication_data_type` beside sequence parallelism or `torch_autocast`, which choose another format.",
    why="With a sequence-parallel degree above 1 the engine puts `seq_parallel_communication_data_type` (fp32 "
    "unless set) in its place. With `torch_autocast`, ZeRO 1 to 3 reduce each gradient in the format of its "
    "parameter: the autocast format for the listed modules, the parameter's own for the others.",
    severity=Severity.INFO,
    effect=Effect.OVERRIDDEN,
    source=(
        "deepspeed/runtime/engine.py:_configure_distributed_model",
        "deepspeed/runtime/base_optimizer.py:get_param_comm_dtype",
    ),
    keys=(_KEY, _SEQUENCE_KEY),
    examples=(
        Example(
            '{"train_batch_size": 1, "communication_data_type": «"fp32"», "zero_optimization": {"stage": 2}, '
            '"torch_autocast": {"enabled": true, "dtype": "bfloat16"}}\n'
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "communication_data_type": «"bf16"», '
            '"sequence_parallel_size": 2, "data_parallel_size": 1}\n',
            accepted=None,  # takes two processes
        ),
        Example(
            '{"train_batch_size": 1, "communication_data_type": "fp32", '
            '"torch_autocast": {"enabled": true, "dtype": "bfloat16"}}\n'
        ),
        Example('{"train_batch_size": 1, "communication_data_type": "fp32", "zero_optimization": {"stage": 2}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at a format that is not used."""
    if given(context, _KEY) is None or not isinstance(context.value(_KEY), str):
        return
    size = degree(context, SEQUENCE)
    if size is not None and size > 1 and degree(context, DATA) is not None:
        if given(context, _SEQUENCE_KEY) or context.known.default(_SEQUENCE_KEY) == "fp32":
            used = context.value(_SEQUENCE_KEY)
            if used != context.value(_KEY):
                yield context.finding(
                    _KEY,
                    say(
                        "sequence parallelism uses `{sequence_key}` instead, which is {what}",
                        sequence_key=_SEQUENCE_KEY,
                        what=used or say("that of the mode"),
                    ),
                )
    elif given(context, "torch_autocast.enabled") and context.is_on("torch_autocast.enabled") and context.stage:
        yield context.finding(
            _KEY,
            say(
                "with `torch_autocast` ZeRO {stage} chooses the format per parameter and does not read this key",
                stage=context.stage,
            ),
            related=[("torch_autocast.enabled", say("switched on here"))],
        )
