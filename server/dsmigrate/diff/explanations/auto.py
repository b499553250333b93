"""A literal becomes "auto", or "auto" a literal: who decides the value now."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff import findings
from dsmigrate.diff.effects import effects_of
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.phrases import capital
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.precision import precision
from dsmigrate.knowledge import MISSING, Auto, Consumer
from dsmigrate.languages import say
from dsmigrate.rules import Effect as RuleEffect
from dsmigrate.rules import Finding
from dsmigrate.rules import Severity as RuleSeverity
from dsmigrate.rules.context import TYPED


@explanation(
    "DF120",
    "auto",
    summary="A value of the file becomes one that the consumer fills in, or the other way round.",
    why=(
        'Transformers and Accelerate replace "auto" with their own values, some whatever the file says. Whether'
        " the value changes thereby depends on the script and its arguments; what is certain is who decides it."
    ),
    source=(
        "transformers/integrations/deepspeed.py:HfTrainerDeepSpeedConfig",
        "accelerate/utils/dataclasses.py:DeepSpeedPlugin.deepspeed_config_process",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8, "gradient_clipping": 1.0}',
            '{"train_batch_size": 8, "gradient_clipping": "auto"}',
            "Now filled in by Transformers Trainer from TrainingArguments.max_grad_norm, previously `1`",
            paths=("gradient_clipping",),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": "auto"}',
            '{"train_micro_batch_size_per_gpu": 4}',
            "Now `4`, previously filled in by Transformers Trainer from TrainingArguments.per_device_train_batch",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}',
            "Now `true`, previously filled in by Transformers Trainer from TrainingArguments.bf16 or bf16_full_eval;"
            " if it was off, weights, activations and gradients become bf16, with fp32 master weights in the optimizer",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": "auto"}',
            '{"train_batch_size": "auto", "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto"}}}',
            "",  # the family of schedules tells what comes with the section
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": "auto"}',
            '{"train_micro_batch_size_per_gpu": "auto", "gradient_clipping": 1.0}',
            "",
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each key that the consumer decides on one side alone."""
    for change in pair.live():
        path = change.path
        begins, ends = pair.new.fills(path), pair.old.fills(path)
        if begins is ends or _comes_with_its_type(pair, change):
            continue
        auto = (pair.new if begins else pair.old).known.auto(path, pair.new.context.consumer)
        if auto is None:
            continue
        effects = effects_of(pair, path)
        numbers = Effect.NUMERICS in effects
        gone = tuple(_of_absence(pair, change))
        yield pair.says(
            path,
            effects=effects,
            severity=Severity.WARNING if numbers else Severity.INFO,
            message=_begins(pair, change, auto) if begins else _ends(pair, change, auto),
            advice=_advice(change, auto) if begins else _must_match(pair, change, auto) or _left_out(gone),
            found=() if begins else (*gone, *(_risks(pair, path) if auto.must_match else ())),
            tally=_tally(pair.new.context.consumer.title, begins=begins),
        )


def _risks(pair: Pair, path: str) -> Iterator[Finding]:
    """Yield the remark that the value has to be that of an argument, as the advice says."""
    finding = findings.at(pair.new, pair.new.place(path), RuleEffect.RISKY)
    if finding is not None and finding.severity is RuleSeverity.INFO:
        yield finding


def _of_absence(pair: Pair, change: Change) -> Iterator[Finding]:
    """Yield what a rule says of a key that is no longer there."""
    if change.new is MISSING:
        for finding in pair.new.view.findings:
            if pair.new.path_of(finding.path) == change.path and finding.effect not in findings.REJECTS:
                yield finding


def _left_out(gone: tuple[Finding, ...]) -> str:
    return capital(gone[0].message) if gone else ""


def _tally(who: str, *, begins: bool) -> str:
    """Return what the verdict counts, with a place for the number of values."""
    if begins:
        return say("Now filled in by {who}: {{values}}", who=who)
    return say("No longer filled in by {who}: {{values}}", who=who)


def _comes_with_its_type(pair: Pair, change: Change) -> bool:
    """Return whether a parameter is there on one side alone, as is the optimizer or schedule that it belongs to."""
    section, _, name = change.path.partition(".params.")
    if section not in TYPED or not name or MISSING not in (change.old, change.new):
        return False
    before, after = pair.values(f"{section}.type")
    return before != after


def _begins(pair: Pair, change: Change, auto: Auto) -> str:
    who = pair.new.context.consumer.title
    return say(
        "Now filled in by {who} from {source}, previously {value}",
        who=who,
        source=auto.source,
        value=_value(change.old, change.old_meant),
    )


def _ends(pair: Pair, change: Change, auto: Auto) -> str:
    who = pair.old.context.consumer.title
    told = say(
        "Now {value}, previously filled in by {who} from {source}",
        value=_value(change.new, change.new_meant),
        who=who,
        source=auto.source,
    )
    kind, _, name = change.path.partition(".")
    masters = precision(pair.new.context).masters
    if name != "enabled" or kind not in {"bf16", "fp16"} or change.new_meant is not True or not masters:
        return told
    return told + say(
        "; if it was off, weights, activations and gradients become {kind}, with {masters} master weights in the "
        "optimizer",
        kind=kind,
        masters=masters,
    )


def _value(written: object, meant: object) -> str:
    if meant is MISSING:
        return say("left out")
    return say("the default, {meant}", meant=shown(meant)) if written is MISSING else shown(meant)


def _advice(change: Change, auto: Auto) -> str:
    if not auto.source.startswith("TrainingArguments.") or change.old_meant is MISSING:
        return ""
    return say("The value stays if {source} is {old_meant}", source=auto.source, old_meant=shown(change.old_meant))


def _must_match(pair: Pair, change: Change, auto: Auto) -> str:
    if not auto.must_match or change.new is MISSING:
        return ""
    return say(
        "{consumer} stops when {source} is something else", consumer=pair.new.context.consumer.title, source=auto.source
    )
