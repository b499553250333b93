"""DS700: a schedule that neither DeepSpeed nor torch has."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import folded, is_here, nearest_names, one_of, written_type

_OF_TRANSFORMERS = {
    "linear": "WarmupDecayLR",
    "cosine": "WarmupCosineLR",
    "constant": "WarmupLR",
    "constant_with_warmup": "WarmupLR",
}
"""Names of `TrainingArguments.lr_scheduler_type` with the schedule of DeepSpeed that comes closest."""


@rule(
    "DS700",
    "unknown-scheduler",
    summary="A schedule that neither DeepSpeed nor `torch.optim.lr_scheduler` has under that name.",
    why="The name is looked up letter by letter, first among DeepSpeed's five schedules, then in "
    "`torch.optim.lr_scheduler`. Anything else, another case too, is `AssertionError: DeepSpeed does not recognize LR "
    "scheduler` when the engine is built; reading the config alone does not tell. Names of Transformers (`linear`, "
    "`cosine`) are not known here.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._scheduler_from_config",),
    keys=("scheduler.type",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": «"warmuplr"», "params": {"warmup_num_steps": 100}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": «"WarmupCosine"», "params": {"total_num_steps": 5000}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": '
            "5000}}}",
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": «"WarmupCosineLR"», "params": {"total_num_steps": 5000}}}',
            version="0.12.2",
            accepted=None,  # a verdict of another release
        ),
        Example('{"train_batch_size": 8, "scheduler": {"type": «"Noam"», "params": {}}}', accepted=False),
        Example('{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a type that the release cannot build."""
    written = written_type(context, "scheduler")
    facts = None if written is None else context.known.scheduler(written)
    if written is None or (facts is not None and is_here(facts, context)):
        return
    if facts is not None:
        yield context.finding(
            "scheduler.type",
            say(
                "DeepSpeed {known_version} does not know `{written}`, which came with {since}: the engine "
                "refuses to start",
                known_version=context.known.version,
                written=written,
                since=facts.since,
            ),
        )
        return
    close = _OF_TRANSFORMERS.get(written)
    likely = [close] if close else nearest_names(written, [known.name for known in context.known.schedulers()])
    advice = say("; did you mean {likely}?", likely=one_of(likely)) if likely else ""
    if likely and folded(likely[0]) == folded(written):
        advice = say(": the case counts, write {likely}", likely=one_of(likely[:1]))
    yield context.finding(
        "scheduler.type",
        say(
            "neither DeepSpeed nor `torch.optim.lr_scheduler` has a schedule `{written}`: the engine refuses "
            "to start{advice}",
            written=written,
            advice=advice,
        ),
        fixes=[
            context.replace(
                "scheduler.type", name, say("Write `{name}`", name=name), safe=folded(name) == folded(written)
            )
            for name in likely
        ],
    )
