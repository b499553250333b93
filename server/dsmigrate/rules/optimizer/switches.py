"""DS645: switches of optimizers that exclude each other, or that the class refuses."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import Build, build_of, optimizer
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import given, params_path


@rule(
    "DS645",
    "optimizer-switches",
    summary="Switches of an optimizer that exclude each other, need another parameter, or that its class lacks.",
    why="torch's constructors check some pairs when the engine is built: `nesterov` needs `momentum` above 0 and "
    "`dampening` 0, and `fused` excludes `foreach` and `differentiable`. `differentiable` alone is taken and fails in "
    "the first step, because the engine updates leaf tensors that require gradients; `capturable` fails there on CPU "
    "tensors, optimizer offload included. FusedLamb refuses `amsgrad`.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",),
    keys=("optimizer.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1, «"nesterov": true»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"fused": true, «"foreach": true»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"fused": true}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {«"differentiable": true»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"optimizer": {"type": "AdamW", "params": {"torch_adam": true, «"capturable": true»}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"optimizer": {"type": "AdamW", "params": {"torch_adam": true}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Lamb", "params": {«"amsgrad": true»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Lamb", "params": {}}}',
            accepted=None,  # the kernel needs a GPU
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {«"differentiable": 0»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {}}}',
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"momentum": 0.9, "nesterov": true}}}'),
        Example('{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"fused": true, "foreach": false}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each switch that is on and cannot be."""
    facts = optimizer(context)
    if facts is None or facts.takes_anything:
        return
    values = {name: value for name, value in given(context, "optimizer").items() if name in facts.parameters}
    if facts.name == "Lamb" and values.get("amsgrad"):
        path = params_path("optimizer", "amsgrad")
        yield context.finding(
            path,
            say("FusedLamb has no AMSGrad variant: the engine cannot build the optimizer"),
            part="member",
            fixes=[context.remove(path, say("Remove {path}", path=shown(path)), safe=False)],
        )
    if build_of(context, facts) is not Build.TORCH:
        return
    for name, reason, effect in _clashes(context, values):
        path = params_path("optimizer", name)
        fix = context.remove(path, say("Remove {path}", path=shown(path)), safe=False)
        yield context.finding(path, reason, part="member", effect=effect, fixes=[fix] if name != "nesterov" else ())


def _clashes(context: Context, values: dict[str, object]) -> Iterator[tuple[str, str, Effect]]:
    if values.get("nesterov") and (not _positive(values.get("momentum", 0)) or values.get("dampening", 0) != 0):
        yield (
            "nesterov",
            say("`nesterov` needs `momentum` above 0 and `dampening` 0: the engine cannot build the optimizer"),
            Effect.REJECTED,
        )
    if values.get("fused") and values.get("foreach"):
        yield "foreach", say("`foreach` excludes `fused`: the engine cannot build the optimizer"), Effect.REJECTED
    differentiable = values.get("differentiable", False)
    if not isinstance(differentiable, (bool, str, list, dict)):
        yield (
            "differentiable",
            say(
                "`differentiable` is true or false, not {differentiable}: the first step is a `TypeError`",
                differentiable=json_text(differentiable),
            ),
            Effect.CRASH,
        )
    elif differentiable is True:
        if values.get("fused"):
            yield (
                "differentiable",
                say("`differentiable` excludes `fused`: the engine cannot build the optimizer"),
                Effect.REJECTED,
            )
        else:
            yield (
                "differentiable",
                say("`differentiable` fails in the first step, which updates leaf tensors that require gradients"),
                Effect.CRASH,
            )
    if values.get("capturable") and context.stage and context.device("offload_optimizer") in {"cpu", "nvme"}:
        yield (
            "capturable",
            say("`capturable` needs tensors on the accelerator: with `offload_optimizer` the first step fails"),
            Effect.CRASH,
        )


def _positive(value: object) -> bool:
    return not isinstance(value, (int, float)) or value > 0
