"""DS326: low-precision master weights that need DeepSpeedCPUAdam."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import (
    BF16_MASTERS,
    BF16_STATES,
    CPU_ADAM,
    FP16_MASTERS,
    master_path,
    offloads,
    refused_masters,
    zenflow_is_on,
)
from dsmigrate.rules.registry import rule


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
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {}}, '
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
    key, away = refused_masters(context), bool(offloads(context))
    if key is None:
        return
    path = master_path(context, key)
    states = (*path[:-1], BF16_STATES.rpartition(".")[2])
    title = say("Keep the optimizer states in bf16 too")
    open_way = key == BF16_MASTERS and not away and context.document.node_at(states) is None
    other = say(", which ZenFlow replaces by one of its own") if zenflow_is_on(context) else ""
    needs = (
        say("an `optimizer` that becomes {cpu_adam}{other}", cpu_adam=CPU_ADAM, other=other)
        if away
        else say("`zero_optimization.offload_optimizer` with {cpu_adam}", cpu_adam=CPU_ADAM)
    )
    yield context.finding(
        path,
        say("ZeRO refuses this without {needs}", needs=needs),
        fixes=[context.insert(states, True, title, safe=False)] if open_way else [],
    )
