"""Hints about the batch keys: the one that is left out, or the world size that three of them ask for."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import Triad, triad
from dsmigrate.editing.derived.batch import KEYS
from dsmigrate.editing.inlay.model import Hint, Kind, behind, named
from dsmigrate.editing.view import View
from dsmigrate.languages import mark, say
from dsmigrate.rules.batch._shared import MICRO, STEPS, TOTAL, text

_COMPUTED = mark("DeepSpeed computes it from the batch keys that are given.")


def hints(view: View) -> Iterator[Hint]:
    """Yield a hint behind the last of the given batch keys; nothing where they say it all, or do not fit."""
    context = view.context
    found = triad(context)
    if found is None or not found.fits:
        return
    given = [entry.node for key in KEYS if (entry := context.entry(key)) is not None and entry.node is not None]
    if found.formulas and given:
        shown = _shown(found)
        if shown:
            told = ", ".join(f"`{name}` = {formula}" for name, formula in found.formulas.items())
            place = behind(view.text, max(node.end for node in given))
            yield Hint(place, named(shown), f"{told}. {say(_COMPUTED)}", Kind.DERIVED)
    elif found.needed is not None and context.facts.world_size is None:
        total = context.entry(TOTAL)
        if total is not None and total.node is not None:
            ranks = text(found.needed)
            tooltip = say(
                "The three keys agree for a world size of {ranks} only; on another one DeepSpeed stops.", ranks=ranks
            )
            place = behind(view.text, total.node.end)
            yield Hint(place, say("for a world size of {ranks}", ranks=ranks), tooltip, Kind.DERIVED)


def _shown(found: Triad) -> str:
    """Return the key that is worked out of numbers of the file, the effective batch first; "" without one."""
    worked_out = (
        (TOTAL, say("effective batch"), (found.micro, found.steps)),
        (MICRO, say("micro-batch"), (found.total, found.steps)),
        (STEPS, say("accumulation"), (found.total, found.micro)),
    )
    told = (f"{name} {found.formulas[key]}" for key, name, of in worked_out if key in found.formulas and None not in of)
    return next(told, "")
