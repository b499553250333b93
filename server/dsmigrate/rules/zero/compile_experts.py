"""DS494: compiling around experts with features that exclude it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, PARAM_DEVICE, STAGE, switched_on

_KEY = "compile.autoep_non_moe"
_ENABLED = "expert_parallel.enabled"


@rule(
    "DS494",
    "compile-around-experts",
    summary="`compile.autoep_non_moe` with something that `engine.compile()` refuses beside it.",
    why="Compiling the blocks around AutoEP layers is plain `torch.compile` for ZeRO stage 0 to 2 without offload, "
    "DeepCompile, "
    "tensor or sequence parallelism and DeepEP, and for models with AutoEP layers only. `engine.compile()` raises "
    "otherwise.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/engine.py:compile",),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "compile": {"autoep_non_moe": «true»}, "expert_parallel": {"enabled": true}, '
            '"zero_optimization": {"stage": 3}}\n',
            fixed='{"train_batch_size": 1, "compile": {}, "expert_parallel": {"enabled": true}, '
            '"zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "compile": {"autoep_non_moe": «true»}, "zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "compile": {}, "zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "compile": {"autoep_non_moe": true}, "expert_parallel": {"enabled": true}, '
            '"zero_optimization": {"stage": 2}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding with the first thing that excludes it."""
    entry = switched_on(context, _KEY)
    other = _other(context)
    if entry is None or other is None:
        return
    needs = say("it needs") if other == _ENABLED else say("`engine.compile()` refuses it together with")
    yield context.finding(
        entry,
        f"{needs} {shown(other)}"
        if context.stage != 3 or other != STAGE
        else say("`engine.compile()` refuses it at stage 3"),
        fixes=[context.remove(entry, say("Remove {key}", key=shown(_KEY)), safe=False)],
        related=[(other, say("here"))] if context.has(other) else [],
    )


def _other(context: Context) -> str | None:
    if context.is_on(_ENABLED) is False:
        return _ENABLED
    if context.stage == 3:
        return STAGE
    if context.is_on("compile.deepcompile"):
        return "compile.deepcompile"
    for path in ("tensor_parallel.autotp_size", "sequence_parallel_size"):
        if (context.number(path) or 0) > 1:
            return path
    if context.value("expert_parallel.comm_backend") == "deepep":
        return "expert_parallel.comm_backend"
    if context.device("offload_optimizer") in {"cpu", "nvme"}:
        return OPTIMIZER_DEVICE
    return PARAM_DEVICE if context.device("offload_param") in {"cpu", "nvme"} else None
