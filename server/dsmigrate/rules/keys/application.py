"""DS103: a key at the top level that DeepSpeed does not know, and that is near to none it does."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.keys._shared import Slip, guesses, is_comment, unknown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS103",
    "application-key",
    summary="A top-level key that means nothing to DeepSpeed and is near to no key of it.",
    why=(
        "The top level swallows every key. Many are put there on purpose, for the training script to read; one that "
        "came from an old tutorial, or from another tool, does nothing."
    ),
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig",),
    pains=(44,),
    examples=(
        Example('{"train_batch_size": 8, «"grouped_lr"»: true}'),
        Example('{"train_batch_size": 8, «"batch_size"»: 8}'),
        Example('{"train_batch_size": 8, "_grouped_lr": true, "$schema": "ds.schema.json", "//": "see the wiki"}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a quiet finding for each such key."""
    for entry, section in unknown(context):
        if section or is_comment(entry.name):
            continue
        found = guesses(context, entry, section)
        if not found or found[0].slip is Slip.PART:
            like = say("; its own key is `{found_name}`", found_name=found[0].name) if found else ""
            yield context.finding(
                entry,
                say(
                    "DeepSpeed does not read `{name}`{like}; it is there for your own code, or for nothing",
                    name=entry.name,
                    like=like,
                ),
                part="key",
            )
