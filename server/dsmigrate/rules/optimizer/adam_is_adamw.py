"""DS650: the type Adam with a weight decay, which is AdamW."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._stated import stated
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Arguments, Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import given, params_path


@rule(
    "DS650",
    "adam-means-adamw",
    summary="The type Adam with a weight decay, which DeepSpeed decouples as AdamW does.",
    why="Unless `adam_w_mode` is false, `Adam` builds the same class as `AdamW` in every release since 0.9.0: "
    "the decay shrinks the weights by `lr * weight_decay` and does not pass through the moments. With a decay "
    "that was tuned for `torch.optim.Adam` the run trains to other numbers; without decay the two are the same. "
    "With `torch_adam` it is `torch.optim.AdamW`, which decays by 0.01 when `weight_decay` is left out.",
    severity=Severity.INFO,
    effect=Effect.MISREAD,
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",
        "deepspeed/runtime/config.py:ADAM_W_MODE_DEFAULT",
    ),
    keys=("optimizer.type", "optimizer.params"),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"Adam"», "params": {"lr": 1e-4, "weight_decay": 0.01}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": '
            "0.01}}}",
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"Adam"», "params": {"lr": 1e-4, "torch_adam": true}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": true}}}',
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "weight_decay": 0}}}'),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"weight_decay": "auto"}}, '
            '"zero_optimization": {}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"Adam"», "params": {"weight_decay": "auto"}}, '
            '"zero_optimization": {}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"weight_decay": "auto"}}, '
            '"zero_optimization": {}}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"weight_decay": "0.1"}),)),
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"weight_decay": 0.01, '
            '"adam_w_mode": false}}}'
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"weight_decay": 0.01, '
            '"adam_w_mode": true}}}'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for an Adam that decays and does not say how."""
    facts = optimizer(context)
    params = given(context, "optimizer")
    decay = params.get("weight_decay", 0.01 if params.get("torch_adam") else 0)
    if facts is None or facts.name != "Adam" or "adam_w_mode" in params:
        return
    if decay == "auto" and context.consumer is Consumer.TRANSFORMERS:
        decay = next((one.value for one in stated(context, "optimizer.params.weight_decay")), 0)  # its default
    if not (decay == "auto" or (isinstance(decay, (int, float)) and decay)):
        return
    yield context.finding(
        "optimizer.type",
        say(
            "`Adam` is AdamW in DeepSpeed: `weight_decay` {decay} is decoupled from the gradient; `AdamW` "
            "says the same, `adam_w_mode` false in `params` gives torch's Adam",
            decay=json_text(decay),
        ),
        fixes=[
            context.replace("optimizer.type", "AdamW", say("Write `AdamW`, which it is"), safe=False),
            context.insert(
                params_path("optimizer", "adam_w_mode"),
                value=False,
                title=say("Decay through the gradient, as torch's Adam"),
                safe=False,
            ),
        ],
    )
