"""What a file comes to: in a line, and in detail."""

from __future__ import annotations

from dsmigrate.editing.derived import Triad, offloads, precision, replaced_steps, stage_text, triad
from dsmigrate.editing.derived.batch import computed_elsewhere
from dsmigrate.editing.derived.trained import trained
from dsmigrate.editing.view import View
from dsmigrate.languages import say
from dsmigrate.rules.context import Context


def summary(view: View) -> str:
    """Return what a file comes to in a few words, such as "ZeRO-3 · bf16 · nvme · batch 64"."""
    context = view.context
    found = precision(context)
    short = say("{autocast} autocast", autocast=found.autocast) if found.autocast else found.weights
    places = dict.fromkeys(where for _, where in offloads(context))
    parts = [stage_text(context), short, " + ".join(places), _batch(context)]
    return " · ".join(part for part in parts if part)


def details(view: View) -> tuple[tuple[str, str], ...]:
    """Return what a file comes to, each thing with its name."""
    context = view.context
    moved = say(", ").join(say("{what} on {where}", what=say(what), where=where) for what, where in offloads(context))
    found = triad(context)
    effective = "" if _decided(context) or found is None or not found.fits else found.effective
    every = (
        ("ZeRO", stage_text(context)),
        (say("Precision"), _precision(context)),
        (say("Offloaded"), moved),
        (say("Effective batch"), effective or _batch(context)),
        (say("Model"), trained(context.facts)),
    )
    return tuple((name, said) for name, said in every if said)


def _precision(context: Context) -> str:
    found = precision(context)
    weights = found.weights or say("set by {consumer}", consumer=context.consumer.title)
    return (
        say("{weights} with {autocast} autocast", weights=weights, autocast=found.autocast)
        if found.autocast
        else weights
    )


def _batch(context: Context) -> str:
    decided, found = _decided(context), triad(context)
    if decided or found is None:
        return decided
    if not found.fits:
        return say("batch keys do not fit")
    return say("batch {effective}", effective=found.effective) if _is_worked_out(found) else ""


def _decided(context: Context) -> str:
    """Return what decides about the batch instead of the three keys; "" for nothing."""
    by = computed_elsewhere(context)
    if by:
        return say("batch by {by}", by=by)
    return say("batch by {by}", by="ZenFlow") if replaced_steps(context) else ""


def _is_worked_out(found: Triad) -> bool:
    """Return whether the effective batch is more than the names of what it is made of."""
    return found.total is not None or (found.micro is not None and found.steps is not None)
