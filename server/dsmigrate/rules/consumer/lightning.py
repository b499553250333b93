"""DS826: what Lightning's DeepSpeedStrategy refuses, replaces and needs in the config that it hands on."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import STEPS
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE

_UNTESTED = "zero_allow_untested_optimizer"
_LIGHTNING = Facts(lightning=True)


@rule(
    "DS826",
    "lightning",
    summary="A key that Lightning's `DeepSpeedStrategy` refuses, or that it needs, or that replaces what it would do.",
    why="Lightning writes `gradient_accumulation_steps` from `accumulate_grad_batches` and raises a "
    "`MisconfigurationException` if the config has it. It adds `train_micro_batch_size_per_gpu` from the loader, "
    "`gradient_clipping` from `gradient_clip_val`, and `fp16` or `bf16` from `precision`, each only where the key "
    'is absent; `"auto"` is filled nowhere. With an `optimizer` section `configure_optimizers` is not called. At '
    "stage 3 `trainer.test`, `validate` and `predict` read `zero_allow_untested_optimizer` of the config without "
    "asking whether it is there. All of it is the same from 1.5.0 to 2.6.5. A config counts as Lightning's if a "
    "script gives it to `DeepSpeedStrategy(config=…)`, a launcher sets `PL_DEEPSPEED_CONFIG_PATH` to it, or nothing "
    "names it and the project trains with that strategy.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "lightning/pytorch/strategies/deepspeed.py:DeepSpeedStrategy._format_batch_size_and_grad_accum_config",
        "lightning/pytorch/strategies/deepspeed.py:DeepSpeedStrategy._initialize_deepspeed_inference",
    ),
    consumers=(Consumer.DEEPSPEED,),
    keys=(STEPS, "optimizer", _UNTESTED),
    examples=(
        Example(
            '{«"gradient_accumulation_steps"»: 4, "zero_optimization": {"stage": 2}}',
            fixed='{"zero_optimization": {"stage": 2}}',
            facts=_LIGHTNING,
            accepted=None,  # Lightning adds the batch size
        ),
        Example(
            '{«"optimizer"»: {"type": "AdamW", "params": {"lr": 1e-4}}, "zero_optimization": {"stage": 2}}',
            fixed='{"zero_optimization": {"stage": 2}}',
            facts=_LIGHTNING,
            accepted=None,  # as above
        ),
        Example(
            '{"zero_optimization": {"stage": «3»}}',
            fixed='{"zero_optimization": {"stage": 3}, "zero_allow_untested_optimizer": true}',
            facts=_LIGHTNING,
            accepted=None,  # as above
        ),
        Example('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}', facts=_LIGHTNING, accepted=None),
        Example('{"train_batch_size": 8, "gradient_accumulation_steps": 4}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each of the keys."""
    if not context.facts.lightning:
        return
    if context.has(STEPS):
        yield context.finding(
            STEPS,
            say("Lightning stops at `{key}`: it writes the key from `accumulate_grad_batches`", key=STEPS),
            part="key",
            fixes=[context.remove(STEPS, say("Remove `{name}`", name=STEPS), safe=True)],
        )
    if context.has("optimizer"):
        yield context.finding(
            "optimizer",
            say("with an `optimizer` section Lightning does not call `configure_optimizers`"),
            part="key",
            severity=Severity.INFO,
            effect=Effect.OVERRIDDEN,
            fixes=[context.remove("optimizer", say("Remove `{name}`", name="optimizer"), safe=False)],
        )
    if context.stage == 3 and context.has(STAGE) and not context.has(_UNTESTED):
        yield context.finding(
            STAGE,
            say(
                "at stage 3 `trainer.test`, `validate` and `predict` stop with a KeyError without `{key}`",
                key=_UNTESTED,
            ),
            severity=Severity.WARNING,
            effect=Effect.CRASH,
            fixes=[
                context.insert(
                    (_UNTESTED,), True, say("Add `{key}` and accept other optimizers", key=_UNTESTED), safe=False
                )
            ],
        )
