"""DS964: weights offloaded while the far larger optimizer states stay on the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS964",
    "offload-param-alone",
    summary="`offload_param` without `offload_optimizer` in a training config: the larger part stays on the GPU.",
    why="With Adam in 16-bit training a parameter takes 2 bytes as weight and 12 as master weight and Adam states. "
    "Offloading the weights alone pays the traffic of every forward and backward pass for the smallest part. "
    "ZeRO inference, without an optimizer, is what `offload_param` alone is for.",
    severity=Severity.HINT,
    effect=Effect.MEMORY,
    source=("deepspeed/runtime/zero/stage3.py:estimate_zero3_model_states_mem_needs",),
    keys=("zero_optimization.offload_param.device",),
    examples=(
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 3, "offload_param": {"device": «"cpu"»}},
  "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}
}
"""
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}'),
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"}},
  "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}
}
"""
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the device of the weights."""
    path = "zero_optimization.offload_param.device"
    if context.stage != 3 or not context.has(path) or not context.has("optimizer.type"):
        return
    if context.device("offload_param") in {"cpu", "nvme"} and context.device("offload_optimizer") == "none":
        yield context.finding(
            path,
            say(
                "The weights, 2 bytes for each parameter, leave the GPU; the optimizer states, about 12 with "
                "Adam, stay: `offload_optimizer` saves more for less traffic"
            ),
        )
