"""DS803: "auto" that DeepSpeed itself keeps as a text."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import AutoEffect, Consumer
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import autos, fillers, is_effective, parameter_fails
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS803",
    "auto-stays-text",
    summary='A value "auto" that DeepSpeed itself keeps as a text, which counts as true or means nothing.',
    why='Keys that DeepSpeed reads without a check keep the text `"auto"`. Where a switch is expected it counts as '
    "true, as any non-empty text does; elsewhere nothing understands it. No program fills these keys in, but for "
    "`zero_allow_untested_optimizer`.",
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/config_utils.py:get_scalar_param",),
    consumers=(Consumer.DEEPSPEED,),
    keys=("prescale_gradients", "zero_allow_untested_optimizer", "dump_state"),
    pains=(5,),
    examples=(
        Example(
            '{"train_batch_size": 8, "prescale_gradients": «"auto"»}',
            fixed='{"train_batch_size": 8}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1, "nesterov": «"auto"»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}',
        ),
        Example('{"train_batch_size": 8, "prescale_gradients": true}'),
        Example('{"train_batch_size": 8, "pipeline": {"partition": "auto"}}'),
        Example('{"train_batch_size": 8, "_comment": "auto"}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each "auto" that reaches DeepSpeed's code as a text and is used there."""
    for entry in autos(context):
        kinds = _types(context, entry)
        if kinds is None:
            continue
        what = say("which counts as true") if "boolean" in kinds else say("which nothing understands")
        by = fillers(context, entry.path)
        yield context.finding(
            entry,
            say('"auto" stays a text at {path}, {what}', path=shown(entry.path), what=what)
            + (say("; {by} would fill it in", by=by) if by else ""),
            fixes=[
                context.remove(entry, say("Remove {path} and take its default", path=shown(entry.path)), safe=False)
            ],
        )


def _types(context: Context, entry: Entry) -> tuple[str, ...] | None:
    """Return the types the entry means to take, when "auto" stays a text there and is used."""
    if entry.is_parameter:
        return entry.parameter.type if entry.parameter and parameter_fails(context, entry) is False else None
    key = entry.key
    if key is not None:
        stays = key.auto(Consumer.DEEPSPEED).effect is AutoEffect.TEXT and not key.is_section
        return key.type if stays and is_effective(context, key, entry.path) is not False else None
    return None
