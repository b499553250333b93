"""DS326: low-precision master weights that need DeepSpeedCPUAdam."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import (
    BF16_MASTERS,
    BF16_STATES,
    FP16_MASTERS,
    low_masters,
    master_path,
    offloads,
    uses_bf16_optimizer,
)
from dsmigrate.rules.registry import rule

_CPU_ADAM = "DeepSpeedCPUAdam"


@rule(
    "DS326",
    "master-weights-without-offload",
    summary="Low-precision master weights without optimizer offload and DeepSpeedCPUAdam.",
    why="ZeRO asserts `Master weights feature requires ZeRO Offload with DeepSpeedCPUAdam` when the optimizer is "
    "wrapped. `bf16_master_weights_and_grads` is exempt when `bf16_optimizer_states` is on and nothing is "
    "offloaded. `Adam` and `AdamW` in the config become DeepSpeedCPUAdam under offload; other types do not.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/base_optimizer.py:_configure_master_weights",),
    keys=(FP16_MASTERS, BF16_MASTERS),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, '
            '"bf16": {"enabled": true, "bf16_master_weights_and_grads": «true»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2}, '
            '"bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3}, '
            '"fp16": {"fp16_master_weights_and_grads": «true»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "zero_allow_untested_optimizer": true, '
            '"optimizer": {"type": "SGD", "params": {"lr": 0.1}}, '
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"fp16": {"enabled": true, "fp16_master_weights_and_grads": «true»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}, '
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"fp16": {"enabled": true, "fp16_master_weights_and_grads": true}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, '
            '"bf16": {"bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the switch whose optimizer cannot be DeepSpeedCPUAdam."""
    on, away = low_masters(context), offloads(context)
    if not context.stage or away is None or uses_bf16_optimizer(context) or {FP16_MASTERS, BF16_MASTERS} <= on:
        return
    key = next((key for key in (FP16_MASTERS, BF16_MASTERS) if key in on), None)
    if key is None or (key == BF16_MASTERS and BF16_STATES in on and not away) or (away and _may_be_cpu_adam(context)):
        return
    path = master_path(context, key)
    states = (*path[:-1], BF16_STATES.rpartition(".")[2])
    title = "Keep the optimizer states in bf16 too"
    open_way = key == BF16_MASTERS and not away and context.document.node_at(states) is None
    needs = (
        f"an `optimizer` that becomes {_CPU_ADAM}"
        if away
        else f"`zero_optimization.offload_optimizer` with {_CPU_ADAM}"
    )
    yield context.finding(
        path,
        f"ZeRO refuses this without {needs}",
        fixes=[context.insert(states, True, title, safe=False)] if open_way else [],
    )


def _may_be_cpu_adam(context: Context) -> bool:
    """Return whether the optimizer may be DeepSpeedCPUAdam; one that the script makes may."""
    if not context.has("optimizer.type"):
        return True
    facts = context.type_of("optimizer")
    return facts is None or (
        any(name.startswith(f"{_CPU_ADAM} ") for name in facts.builds)
        and not context.raw("optimizer.params.torch_adam")
    )
