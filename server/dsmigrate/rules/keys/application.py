"""DS103: a key at the top level that DeepSpeed does not know, and that is near to none it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry
from dsmigrate.rules.keys._shared import Slip, guesses, is_comment, unknown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS103",
    "application-key",
    summary="A top-level key that means nothing to DeepSpeed and is near to no key of it.",
    why=(
        "The top level accepts every key. Many are put there on purpose, for the training script to read; one that "
        "came from an old tutorial, or from another tool, does nothing."
    ),
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig",),
    pains=(44,),
    examples=(
        Example('{"train_batch_size": 8, «"grouped_lr"»: true}'),
        Example('{"train_batch_size": 8, «"batch_size"»: 8}'),
        Example('{"train_batch_size": 8, «"grouped_lr"»: true, "num_layers_of_mine": 12}'),
        Example('{"train_batch_size": 8, "_grouped_lr": true, "$schema": "ds.schema.json", "//": "see the wiki"}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a quiet finding for all such keys of a file, and one for each that is a part of a key of DeepSpeed."""
    foreign: list[Entry] = []
    for entry, section in unknown(context):
        if section or is_comment(entry.name):
            continue
        found = guesses(context, entry, section)
        if not found:
            foreign.append(entry)
        elif found[0].slip is Slip.PART:
            yield _told(context, entry, say("; its own key is `{found_name}`", found_name=found[0].name))
    if foreign:
        first, *others = foreign
        more = say(", nor {count} more key{en_s}", count=len(others), en_s="" if len(others) == 1 else "s")
        yield _told(context, first, more if others else "", others)


def _told(context: Context, entry: Entry, more: str, others: Sequence[Entry] = ()) -> Finding:
    return context.finding(
        entry,
        say(
            "DeepSpeed does not read `{name}`{more}: for your own code, or for nothing",
            name=entry.name,
            more=more,
        ),
        part="key",
        related=[(other, say("not read")) for other in others],
    )
