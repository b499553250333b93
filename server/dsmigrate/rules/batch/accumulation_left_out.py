"""DS206: accumulation that Accelerate's plugin sets to 1."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING, Consumer
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import MICRO, STEPS, TOTAL, WRAPPED
from dsmigrate.rules.consumer._stated import scripted, stated
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Accelerated, Arguments, Effect, Example, Facts, Finding, Said, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.sections._autotuning import is_tuned


@rule(
    "DS206",
    "accumulation-left-out",
    summary="Accelerate writes `gradient_accumulation_steps` 1 where the file leaves it out.",
    why="Accelerate's plugin, which Transformers uses too, adds `gradient_accumulation_steps: 1` to a config "
    "without the key, whatever the script or `--gradient_accumulation_steps` says. Accelerate then takes over the 1 "
    'with a warning. With `train_batch_size` `"auto"`, Transformers multiplies by its own number, and DeepSpeed '
    "stops unless that is 1.",
    severity=Severity.INFO,
    effect=Effect.OVERRIDDEN,
    source=("accelerate/utils/dataclasses.py:DeepSpeedPlugin", "accelerate/accelerator.py:_prepare_deepspeed"),
    consumers=WRAPPED,
    keys=(STEPS,),
    pains=(31,),
    training=True,
    examples=(
        Example(
            '{"zero_optimization": {}, «"train_micro_batch_size_per_gpu"»: "auto"}\n',
            fixed='{"zero_optimization": {}, "train_micro_batch_size_per_gpu": "auto", '
            '"gradient_accumulation_steps": "auto"}\n',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{«"train_batch_size"»: "auto", "train_micro_batch_size_per_gpu": "auto", "zero_optimization": {}}\n',
            fixed='{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "zero_optimization": {}, '
            '"gradient_accumulation_steps": "auto"}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", '
            '"zero_optimization": {}}\n',
            consumer=Consumer.ACCELERATE,
        ),
        Example('{"train_micro_batch_size_per_gpu": 4}\n'),
        Example(
            '{"zero_optimization": {}, "train_micro_batch_size_per_gpu": "auto"}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"gradient_accumulation_steps": "1"}),)),
        ),
        Example(
            '{"zero_optimization": {}, "train_micro_batch_size_per_gpu": "auto"}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"learning_rate": "1e-5"}),)),
        ),
        Example(
            '{"zero_optimization": {}, «"train_micro_batch_size_per_gpu"»: "auto"}',
            fixed='{"zero_optimization": {}, "train_micro_batch_size_per_gpu": "auto", '
            '"gradient_accumulation_steps": "auto"}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"gradient_accumulation_steps": None}),)),
        ),
        Example(
            '{"zero_optimization": {}, «"train_micro_batch_size_per_gpu"»: "auto"}',
            fixed='{"zero_optimization": {}, "train_micro_batch_size_per_gpu": "auto", '
            '"gradient_accumulation_steps": "auto"}',
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerated=(Accelerated({STEPS: Said("train.py:9", f"Accelerator({STEPS}=4)", 4)}),)),
        ),
        Example(
            '{"zero_optimization": {}, "train_micro_batch_size_per_gpu": "auto"}',
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerated=(Accelerated({STEPS: Said("train.py:9", "", 1)}),)),
        ),
        Example(
            '{"zero_optimization": {}, "train_micro_batch_size_per_gpu": "auto", "autotuning": {"enabled": true}}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("tune.sh:3", {"autotuning": "run"}),)),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the batch size of a config without accumulation; a missing batch size is told elsewhere."""
    if context.document.member_at((STEPS,)) is not None:
        return
    where = next((path for path in (TOTAL, MICRO) if context.raw(path) not in (MISSING, None)), None)
    if where is None:
        return
    is_trainer = context.consumer is Consumer.TRANSFORMERS
    given = [*(stated if is_trainer else scripted)(context, STEPS)]
    wrong = next((one for one in given if one.value != 1), None)
    started = context.facts.arguments if is_trainer else ()
    fits = wrong is None and (bool(given) or bool(started and all(STEPS not in one.values for one in started)))
    if fits or is_tuned(context):
        return
    pinned = context.raw(MICRO) not in (MISSING, None)
    split = is_trainer and context.raw(TOTAL) == "auto" and pinned
    yield context.finding(
        where,
        say("`{steps}` is left out, so Accelerate writes 1 for DeepSpeed, whatever the script accumulates", steps=STEPS)
        + (say(", and {said} has no effect", said=wrong.said) if wrong else "")
        + (say('; `{total}` "auto" then fits only `--{steps} 1`', total=TOTAL, steps=STEPS) if split else ""),
        part="key",
        severity=Severity.WARNING if split or (wrong and not wrong.is_default) else None,
        fixes=[context.insert((STEPS,), "auto", say('Add `{steps}` "auto"', steps=STEPS), safe=False)],
    )
