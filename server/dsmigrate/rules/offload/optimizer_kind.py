"""DS550: an optimizer that is not made for host memory."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, ZENFLOW, offloads_optimizer, section

_CPU = '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}\n'


@rule(
    "DS550",
    "offload-optimizer-kind",
    summary="Optimizer offload with an optimizer that DeepSpeed has no CPU implementation of.",
    why="Adam, AdamW, Adagrad and Lion become DeepSpeed's own CPU classes. Lamb is a CUDA kernel alone and fails on "
    "states in host "
    "memory. Optimizers of torch, and Adam with `torch_adam`, work there many times slower.",
    severity=Severity.INFO,
    effect=Effect.SLOW,
    source=("deepspeed/runtime/engine.py:_configure_basic_optimizer",),
    keys=("optimizer.type", OPTIMIZER_DEVICE),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_allow_untested_optimizer": true, '
            '"optimizer": {"type": «"Lamb"», "params": {"lr": 0.001}}, ' + _CPU,
            accepted=None,  # a CUDA kernel
        ),
        Example(
            '{"train_batch_size": 1, "zero_allow_untested_optimizer": true, '
            '"optimizer": {"type": «"RMSprop"», "params": {"lr": 0.001}}, ' + _CPU,
        ),
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "weight_decay": 0, '
            '«"torch_adam"»: true}}, ' + _CPU,
            fixed='{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "weight_decay": 0}}, '
            + _CPU,
        ),
        Example('{"train_batch_size": 1, "optimizer": {"type": "Lion", "params": {"lr": 0.001}}, ' + _CPU),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the type, or at the switch to torch's Adam."""
    kind = context.type_of("optimizer")
    if kind is None or context.stage not in {1, 2, 3} or not offloads_optimizer(context):
        return
    if section(context, ZENFLOW) is not None:
        return  # which takes Adam alone
    params = context.raw("optimizer.params")
    switch = ("optimizer", "params", "torch_adam")
    if kind.name == "Lamb":
        told = say("Lamb is a CUDA kernel and fails in the first step on states in host memory")
        yield context.finding("optimizer.type", told, severity=Severity.ERROR, effect=Effect.CRASH)
    elif kind.torch:
        told = say(
            "`{kind_name}` of torch updates states in host memory much more slowly than DeepSpeed's CPU Adam",
            kind_name=kind.name,
        )
        yield context.finding("optimizer.type", told)
    elif isinstance(params, dict) and params.get("torch_adam") and any("CPUAdam" in name for name in kind.builds):
        yield context.finding(
            switch,
            say("with offload torch's Adam is many times slower than DeepSpeed's CPU Adam"),
            part="key",
            fixes=[context.remove(switch, say("Remove `torch_adam`"), safe=False)],
        )
