"""Hints about the batch keys: the one that is left out, or the world size that three of them ask for."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import triad
from dsmigrate.editing.derived.batch import KEYS
from dsmigrate.editing.inlay.model import Hint, Kind
from dsmigrate.editing.view import View
from dsmigrate.languages import mark, say
from dsmigrate.rules.batch._shared import TOTAL, text

_COMPUTED = mark("DeepSpeed computes it from the batch keys that are given.")


def hints(view: View) -> Iterator[Hint]:
    """Yield a hint behind the last of the given batch keys; nothing where they say it all, or do not fit."""
    context = view.context
    found = triad(context)
    if found is None or not found.fits:
        return
    given = [entry.node for key in KEYS if (entry := context.entry(key)) is not None and entry.node is not None]
    if found.formulas and given:
        told = "; ".join(f"{name} = {formula}" for name, formula in found.formulas.items())
        yield Hint(max(node.end for node in given), told, say(_COMPUTED), Kind.DERIVED)
    elif found.needed is not None and context.facts.world_size is None:
        total = context.entry(TOTAL)
        if total is not None and total.node is not None:
            ranks = text(found.needed)
            tooltip = say(
                "The three keys agree for a world size of {ranks} only; on another one DeepSpeed stops.", ranks=ranks
            )
            yield Hint(total.node.end, say("for a world size of {ranks}", ranks=ranks), tooltip, Kind.DERIVED)
