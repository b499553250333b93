"""One line about a file: what it trains with."""

from __future__ import annotations

from dsmigrate.editing.derived import offloads, precision, replaced_steps, stage_text, triad
from dsmigrate.editing.derived.batch import computed_elsewhere
from dsmigrate.editing.view import View
from dsmigrate.languages import say
from dsmigrate.rules.context import Context


def summary(view: View) -> str:
    """Return what a file comes to, such as "ZeRO-3, bf16, offload optimizer cpu; effective batch 64"."""
    context = view.context
    parts = [
        stage_text(context),
        _precision(context),
        *(say("offload {what} {where}", what=say(what), where=where) for what, where in offloads(context)),
    ]
    batch = _batch(context)
    line = say(", ").join(part for part in parts if part)
    return say("{line}; {batch}", line=line, batch=batch) if batch else line


def _precision(context: Context) -> str:
    found = precision(context)
    weights = found.weights or say("precision set by {consumer}", consumer=context.consumer.title)
    return (
        say("{weights} with {autocast} autocast", weights=weights, autocast=found.autocast)
        if found.autocast
        else weights
    )


def _batch(context: Context) -> str:
    by = computed_elsewhere(context)
    if by:
        return say("batch sizes computed by {by}", by=by)
    if replaced_steps(context):
        return say("effective batch decided by ZenFlow")
    found = triad(context)
    if found is None:
        return ""
    return (
        say("effective batch {effective}", effective=found.effective)
        if found.fits
        else say("batch keys that do not fit")
    )
