"""DS456: switches that ZenFlow needs at stage 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import ACCUMULATION, dtype, mode
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZENFLOW, ZERO, section, switched_off, switched_on

_OVERLAP = f"{ZERO}.overlap_comm"
_SCATTER = f"{ZERO}.reduce_scatter"
_CONTIGUOUS = f"{ZERO}.contiguous_gradients"
_OFFLOAD = f"{ZENFLOW}.offload"
_HEAD = '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
_CPU = '{"stage": 2, "offload_optimizer": {"device": "cpu"}, '


@rule(
    "DS456",
    "zenflow-switches",
    summary="ZenFlow without `reduce_scatter`, offload without `overlap_comm`, or sums in another format at stage 1.",
    why="`zenflow.offload` asserts `overlap_comm`, which is off at stage 1 and 2 unless asked for. With "
    "`reduce_scatter` false the "
    "first backward fails with a TypeError about a missing argument. At stage 1 a `data_types.grad_accum_dtype` other "
    "than the format of the weights keeps the gradients where ZenFlow does not look, and at stage 3 it takes "
    "gradients that lie in one piece: without `contiguous_gradients` the first backward fails too.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/zenflow/zenflow_stage_1_and_2.py:ZenFlowZeroOptimizer",),
    keys=(_OFFLOAD, _OVERLAP, _SCATTER),
    examples=(
        Example(
            _HEAD + _CPU + '"zenflow": {"update_interval": 1, "offload": «true»}}}\n',
            fixed=_HEAD + _CPU + '"zenflow": {"update_interval": 1, "offload": true}, "overlap_comm": true}}\n',
        ),
        Example(
            _HEAD + _CPU + '"reduce_scatter": «false», "zenflow": {"update_interval": 1}}}\n',
            fixed=_HEAD + _CPU + '"zenflow": {"update_interval": 1}}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": «"fp32"»}, '
            '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 1, "offload_optimizer": {"device": "cpu"}, "zenflow": {"update_interval": 1}}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {}, '
            '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 1, "offload_optimizer": {"device": "cpu"}, "zenflow": {"update_interval": 1}}}\n',
        ),
        Example(
            _HEAD + _CPU.replace("2", "3") + '"contiguous_gradients": «false», "zenflow": {"update_interval": 1}}}\n',
            fixed=_HEAD + _CPU.replace("2", "3") + '"zenflow": {"update_interval": 1}}}\n',
            accepted=None,  # at stage 3 ZenFlow needs CUDA
        ),
        Example(_HEAD + _CPU + '"overlap_comm": true, "zenflow": {"update_interval": 1, "offload": true}}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each switch that is the wrong way."""
    if section(context, ZENFLOW) is None:
        return
    contiguous = switched_off(context, _CONTIGUOUS)
    if context.stage == 3 and contiguous is not None:
        yield context.finding(
            contiguous,
            say("false makes ZenFlow fail in the first backward at stage 3"),
            effect=Effect.CRASH,
            fixes=[context.remove(contiguous, say("Remove `{contiguous}`", contiguous=_CONTIGUOUS), safe=True)],
        )
    if context.stage not in {1, 2}:
        return
    if switched_on(context, _OFFLOAD) is not None and not context.is_on(_OVERLAP):
        where = context.path_of(_OVERLAP)
        write = context.replace if context.has(_OVERLAP) else context.insert
        yield context.finding(
            _OFFLOAD,
            say(
                "true needs `{overlap}`, which is off at stage {stage} unless set",
                overlap=_OVERLAP,
                stage=context.stage,
            ),
            fixes=[write(where, True, say("Switch `overlap_comm` on"), safe=False)],  # noqa: FBT003 - the value of the key
        )
    scatter = switched_off(context, _SCATTER)
    if scatter is not None:
        yield context.finding(
            scatter,
            say("false makes ZenFlow fail in the first backward"),
            effect=Effect.CRASH,
            fixes=[context.remove(scatter, say("Remove `{scatter}`", scatter=_SCATTER), safe=True)],
        )
    weights, sums = mode(context), dtype(context.value(ACCUMULATION))
    if context.stage == 1 and weights is not None and sums in {"fp16", "bf16", "fp32"} - {weights}:
        yield context.finding(
            ACCUMULATION,
            say(
                "ZenFlow at stage 1 cannot sum in {sums} while the weights are {weights}: the first backward fails",
                sums=sums,
                weights=weights,
            ),
            effect=Effect.CRASH,
            fixes=[context.remove(ACCUMULATION, say("Remove `{accumulation}`", accumulation=ACCUMULATION), safe=False)],
        )
