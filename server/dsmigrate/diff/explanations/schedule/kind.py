"""Which schedule moves the learning rate, and who brings it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.schedule._owner import PARAMS, RATES, TYPE, built, described, is_another, replaces
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say

_LR = "optimizer.params.lr"
_ADAM = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}'
_DECAY = (
    '{"type": "WarmupDecayLR", "params": {"warmup_max_lr": 1e-4, "warmup_num_steps": 100, "total_num_steps": 1000}}'
)
_WARMUP = '{"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4, "warmup_num_steps": 100}}'


@explanation(
    "DF701",
    "schedule",
    summary="The learning rate follows another schedule, or the config begins or ends to name one.",
    why=(
        "A schedule in the file sets the rate of every optimizer step, for all parameter groups. WarmupDecayLR,"
        " OneCycle, LRRangeTest and WarmupLR with `warmup_max_lr` set rates of their own instead of the"
        " optimizer's. With a schedule in the file one that the script passes to `initialize` is ignored silently."
    ),
    source=(
        "deepspeed/runtime/lr_schedules.py",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_lr_scheduler",
    ),
    examples=(
        Example(
            _ADAM + "}",
            _ADAM + ', "scheduler": ' + _DECAY + "}",
            "The learning rate now follows WarmupDecayLR: 0 → 0.0001 over 100 steps (log), then linearly down until"
            " step 1000; without it the rate stays at 0.0001 unless the script moves it",
            paths=(TYPE, f"{PARAMS}.total_num_steps"),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            _ADAM + ', "scheduler": ' + _WARMUP + "}",
            _ADAM + ', "scheduler": ' + _DECAY + "}",
            "The learning rate now follows WarmupDecayLR: 0 → 0.0001 over 100 steps (log), then linearly down until"
            " step 1000; previously WarmupLR: 0 → 0.0001 over 100 steps (log), then constant",
            paths=(TYPE,),
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto",'
            ' "warmup_num_steps": "auto"}}}',
            '{"train_batch_size": 8}',
            "The file names no schedule any more, previously WarmupLR: warm-up, then constant, with numbers from"
            " Transformers Trainer; without it the Trainer makes one",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            _ADAM + "}",
            _ADAM + ', "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3}}}',
            "The learning rate now follows OneCycle: one rise and fall, then optional decay; cycles beta1 too",
        ),
        Example(_ADAM + ', "scheduler": ' + _DECAY + "}", _ADAM + ', "scheduler": ' + _DECAY + "}", ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield which course the learning rate takes now."""
    if pair.change(TYPE) is None or not is_another(pair):
        return
    before, after = built(pair.old), built(pair.new)
    paths = [TYPE, *(change.path for change in pair.live(PARAMS))]
    if not (replaces(pair.old) and replaces(pair.new)):
        paths += [path for name in RATES if pair.change(path := f"optimizer.params.{name}") is not None]
    if after is not None:
        begin = say(
            "The learning rate now follows {course}: {course_2}",
            course=_course(pair.new)[0],
            course_2=_course(pair.new)[1],
        )
        rest = (
            say("previously {course}", course=say(": ").join(_of_file(pair.old)))
            if before is not None
            else say("without it {alone}", alone=_alone(pair.old))
        )
        brief = (
            say("schedule {before_name} → {after_name}", before_name=before.name, after_name=after.name)
            if before is not None
            else say("schedule {after_name}", after_name=after.name)
        )
    else:
        begin = say(
            "The file names no schedule any more, previously {course}", course=say(": ").join(_course(pair.old))
        )
        rest = say("without it {alone}", alone=_alone(pair.new))
        brief = say("no schedule in the file")
    yield pair.says(
        *paths,
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING,
        message=say("{begin}; {rest}", begin=begin, rest=rest),
        brief=brief,
    )


def _course(side: Side) -> tuple[str, str]:
    """Return the name of a schedule and what it does, with who fills in its numbers."""
    name, course = _of_file(side)
    if not described(side) or course == described(side):
        return name, course
    return name, course + say(", with numbers from {consumer}", consumer=side.context.consumer.title)


def _of_file(side: Side) -> tuple[str, str]:
    facts = built(side)
    assert facts is not None  # noqa: S101 - asked of a side that has one
    course = described(side)
    if course and course.count("auto") <= 1:
        return facts.name, course
    key = side.known.key(TYPE)
    summary = (key.values.get(facts.name, "") if key is not None else "") or facts.summary.rstrip(".。")
    return facts.name, f"{summary[:1].lower()}{summary[1:]}"


def _alone(side: Side) -> str:
    """Return who moves the rate where the file does not."""
    if side.context.consumer is Consumer.TRANSFORMERS:
        return say("the Trainer makes one by `lr_scheduler_type`")
    rate = side.number(_LR)
    return say(
        "the rate stays at {what} unless the script moves it",
        what=number(rate) if rate is not None else say("that of the optimizer"),
    )
