"""The format of master weights and optimizer states."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.precision import precision
from dsmigrate.languages import mark, say
from dsmigrate.rules.precision._shared import BF16_MASTERS, BF16_STATES, MASTERS, low_masters, uses_bf16_optimizer

_LOST = {"fp16": mark("about one 2000th"), "bf16": mark("about one 256th")}
_ZERO = '{"train_batch_size": 8, "bf16": {"enabled": true'
_OFFLOAD = ', "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}'


@explanation(
    "DF305",
    "master-weights",
    summary="Master weights, or the moments of the optimizer, are kept in 16 bit or in fp32.",
    why=(
        "The optimizer adds small updates to master weights. In fp32 they add up; in 16 bit an update that is smaller"
        " than the last bit of the weight vanishes. Each state in 16 bit saves 2 bytes per parameter, divided by ZeRO"
        " over the ranks."
    ),
    source=(
        "deepspeed/runtime/base_optimizer.py:ZeROOptimizer._configure_master_weights",
        "deepspeed/runtime/config.py:DeepSpeedConfig._do_error_check",
    ),
    examples=(
        Example(
            _ZERO + "}" + _OFFLOAD,
            _ZERO + ', "bf16_master_weights_and_grads": true}' + _OFFLOAD,
            "Master weights are bf16 instead of fp32: 2 bytes per parameter less, and updates below about one 256th"
            " of a weight are lost",
            paths=(BF16_MASTERS,),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.CHECKPOINT),
            severity=Severity.WARNING,
        ),
        Example(
            _ZERO + ', "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}, "zero_optimization":'
            ' {"stage": 2}}',
            _ZERO + '}, "zero_optimization": {"stage": 2}}',
            "Master weights are fp32 instead of bf16: 2 bytes per parameter more, and small updates add up again; the"
            " moments of the optimizer are fp32 as well",
            paths=(BF16_MASTERS, BF16_STATES),
        ),
        Example(
            _ZERO + ', "bf16_master_weights_and_grads": true}' + _OFFLOAD,
            _ZERO + ', "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}' + _OFFLOAD,
            "The moments of the optimizer are bf16 instead of fp32: 4 bytes per parameter less with Adam",
        ),
        Example(
            _ZERO + '}, "zero_optimization": {"stage": 2}}',
            _ZERO + ', "bf16_master_weights_and_grads": false}, "zero_optimization": {"stage": 2}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield in what format masters and moments are kept now."""
    paths = [path for path in MASTERS if pair.change(path) is not None]
    if not paths or any(uses_bf16_optimizer(side.context) for side in (pair.old, pair.new)):
        return
    before, after = (precision(side.context).masters for side in (pair.old, pair.new))
    old, new = (BF16_STATES in low_masters(side.context) for side in (pair.old, pair.new))
    moments = ("bf16" if old else "fp32"), ("bf16" if new else "fp32")
    states = moments[0] != moments[1]
    if before != after and after is not None:
        message = say(
            "Master weights are {after} instead of {before}: {bytes}",
            after=after,
            before=before,
            bytes=_bytes(after, before),
        )
        message += say("; the moments of the optimizer are {format} as well", format=moments[1]) if states else ""
        brief = say("{after} master weights", after=after)
    elif states:
        message = say("The moments of the optimizer are {new} instead of {old}: ", new=moments[1], old=moments[0]) + (
            say("4 bytes per parameter less with Adam") if new else say("4 bytes per parameter more with Adam")
        )
        brief = say("{format} optimizer states", format=moments[1])
    else:
        return
    yield pair.says(
        *paths,
        effects=(Effect.NUMERICS, Effect.MEMORY, Effect.CHECKPOINT),
        severity=Severity.WARNING,
        message=message,
        brief=brief,
    )


def _bytes(after: str, before: str | None) -> str:
    if after == "fp32":
        return say("2 bytes per parameter more, and small updates add up again")
    less = say("2 bytes per parameter less, and ") if before == "fp32" else ""
    return say("{less}updates below {lost} of a weight are lost", less=less, lost=say(_LOST[after]))
