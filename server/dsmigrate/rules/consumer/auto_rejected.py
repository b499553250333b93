"""DS801: "auto" where DeepSpeed itself fails on it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING, AutoEffect, Consumer, Status
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import autos, fillers, is_effective, is_section, parameter_fails
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Fix, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS801",
    "auto-fails",
    summary='A value "auto" that DeepSpeed itself cannot use: it stops when it meets it.',
    why='DeepSpeed never fills `"auto"`; the Transformers Trainer and Accelerate do so before they hand the config '
    "on. The batch sizes, `gradient_clipping`, the parameters of optimizers and schedulers and other keys "
    "outside the sections that pydantic checks then meet arithmetic with a text: `'>' not supported between "
    "instances of 'str' and 'int'`. A script of one's own that gives the file to `deepspeed.initialize` may replace it "
    "first: then it is a note. If this file is for one of those programs, name it as the consumer.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/config.py:DeepSpeedConfig._batch_assertion",
        "https://github.com/deepspeedai/DeepSpeed/issues/1270",
    ),
    consumers=(Consumer.DEEPSPEED,),
    keys=("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping"),
    pains=(4, 5),
    examples=(
        Example('{"train_micro_batch_size_per_gpu": «"auto"»}', accepted=False),
        Example(
            '{"train_batch_size": 8, "gradient_clipping": «"auto"»}',
            fixed='{"train_batch_size": 8, "gradient_clipping": 1.0}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": «"auto"», "betas": «"auto"»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {}}}',
        ),
        Example(
            '{"train_batch_size": 8, "flops_profiler": {"enabled": true, "module_depth": «"auto"»}}',
            fixed='{"train_batch_size": 8, "flops_profiler": {"enabled": true, "module_depth": -1}}',
        ),
        Example('{"train_micro_batch_size_per_gpu": «"auto"»}', facts=Facts(script="train.py"), accepted=False),
        Example('{"train_batch_size": 8, "flops_profiler": {"module_depth": "auto"}}'),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"buffer_dtype": «"auto"»}}',
            accepted=False,
        ),
        Example('{"train_batch_size": 8, "data_types": {"buffer_dtype": "auto"}}'),
        Example('{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {}}', consumer=Consumer.TRANSFORMERS),
        Example('{"train_batch_size": 8, "pipeline": {"stages": "auto"}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each "auto" that stops DeepSpeed while it reads the config or later."""
    for entry in autos(context):
        effect = _effect(context, entry)
        if effect is None:
            continue
        by, script = fillers(context, entry.path), context.facts.script
        when = say("when it reads the config") if effect is Effect.REJECTED else say("when it uses the value")
        yield context.finding(
            entry,
            say('"auto" is no value for DeepSpeed itself at {path}: it fails {when}', path=shown(entry.path), when=when)
            + (
                say(", unless {script} replaces it", script=script)
                if script
                else say("; {by} would fill it in", by=by)
                if by
                else say(", and no other program fills it in")
            ),
            severity=Severity.INFO if script else None,
            effect=effect,
            fixes=[_fix(context, entry)],
        )


def _effect(context: Context, entry: Entry) -> Effect | None:
    if entry.is_parameter:
        return Effect.CRASH if parameter_fails(context, entry) else None
    if entry.key is None or is_section(context, entry.key):
        return None  # no object at all: told as a wrong type
    if entry.key.status not in {Status.PRESENT, Status.DEPRECATED}:
        return None
    effect = entry.key.auto(Consumer.DEEPSPEED).effect
    if effect is AutoEffect.CONFIG_ERROR:
        return Effect.REJECTED if context.holds(entry.key.rejects_when) else None
    if effect is AutoEffect.ENGINE_ERROR and is_effective(context, entry.key, entry.path):
        return Effect.CRASH
    return None


def _fix(context: Context, entry: Entry) -> Fix | None:
    if entry.key is None:
        return context.remove(entry, say("Remove {path} and take its default", path=shown(entry.path)), safe=False)
    default = entry.key.default
    if default is MISSING or default is None:
        return None
    return context.replace(entry, default, say("Write the default, {default}", default=json_text(default)), safe=False)
