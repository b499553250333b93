"""DS200: neither batch size is given."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dsmigrate.document import edits as editing
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import MICRO, STEPS, TOTAL, WRAPPED, is_elastic
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Fix, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS200",
    "missing-batch-size",
    summary="Neither `train_batch_size` nor `train_micro_batch_size_per_gpu` is given.",
    why="DeepSpeed derives the three batch keys from each other and needs one of these two; "
    "`gradient_accumulation_steps` alone is not enough, and `null` counts as absent. Transformers and Accelerate fill "
    'keys that say `"auto"`, but add none of the two, so that DeepSpeed stops there as well. Lightning adds the '
    "micro-batch of its loader.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:_set_batch_related_parameters",),
    keys=(TOTAL, MICRO, STEPS),
    pains=(3,),
    examples=(
        Example(
            '«{»"zero_optimization": {"stage": 2}}\n',
            fixed='{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 1}\n',
        ),
        Example(
            '{«"gradient_accumulation_steps"»: 4}\n',
            fixed='{"gradient_accumulation_steps": 4, "train_micro_batch_size_per_gpu": 1}\n',
        ),
        Example('{«"train_batch_size"»: null, "gradient_accumulation_steps": 4}\n', accepted=False),
        Example(
            '«{»"zero_optimization": {"stage": 2}}\n',
            fixed='{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto", '
            '"gradient_accumulation_steps": "auto"}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 4}\n'),
        Example('{"zero_optimization": {"stage": 2}}\n', facts=Facts(lightning=True), accepted=None),  # it adds one
        Example('{"train_micro_batch_size_per_gpu": 1}\n'),
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": 8, "micro_batch_sizes": [1, 2]}}\n',
            version="0.18.0",
            accepted=None,  # an older release
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield one finding when both batch sizes are absent or null."""
    if (
        context.root is None
        or context.facts.lightning
        or is_elastic(context)
        or any(_says(context, path) for path in (TOTAL, MICRO))
    ):
        return
    null, steps = context.entry(TOTAL) or context.entry(MICRO), context.entry(STEPS)
    if null is not None:
        lacks = say("null counts as absent, and neither `{total}` nor `{micro}` is given", total=TOTAL, micro=MICRO)
    elif steps is not None:
        lacks = say("`{steps}` is not enough without `{total}` or `{micro}`", steps=STEPS, total=TOTAL, micro=MICRO)
    else:
        lacks = say("neither `{total}` nor `{micro}` is given", total=TOTAL, micro=MICRO)
    where = null or steps or ()
    yield context.finding(
        where, say("DeepSpeed stops with an AssertionError: {lacks}", lacks=lacks), part="key", fixes=[_fix(context)]
    )


def _says(context: Context, path: str) -> bool:
    """Return whether a key is there and not null; one that is being typed counts."""
    return context.document.member_at((path,)) is not None and context.raw(path) is not None


def _fix(context: Context) -> Fix | None:
    if any(context.has(path) for path in (TOTAL, MICRO)):
        return None
    if context.consumer not in WRAPPED:
        return context.insert((MICRO,), 1, say("Add `{micro}`", micro=MICRO), safe=False)
    missing = [path for path in (MICRO, STEPS) if not context.has(path)]
    return context.fix_all(
        say('Add the batch keys as "auto"'),
        [partial(editing.insert, path=(path,), value="auto") for path in missing],
        safe=False,
    )
