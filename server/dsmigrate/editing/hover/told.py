"""What the diagnostics at a place say already: a client shows them beside the hover."""

from __future__ import annotations

from collections.abc import Iterable

from dsmigrate.editing.hover.target import Target
from dsmigrate.editing.view import View
from dsmigrate.rules.model import Effect, Finding

USELESS = frozenset({Effect.IGNORED, Effect.OVERRIDDEN, Effect.DEFAULT})
"""What findings about keys without effect say."""
REFUSED = frozenset(Effect) - {Effect.SLOW, Effect.MEMORY, Effect.RISKY}
"""What findings about keys and values that do not belong there say."""


def is_told(view: View, target: Target, effects: Iterable[Effect]) -> bool:
    """Return whether a finding of one of ``effects`` about the key, or about its section, is shown at the place.

    Rules that have not run yet say nothing: asking must not run them.
    """
    found: tuple[Finding, ...] = vars(view).get("findings", ()) if view.shows_findings else ()
    start, end, path = target.start, target.end, target.path
    here = [finding for finding in found if finding.start < end and start < finding.end]
    return any(finding.effect in effects and finding.path == path[: len(finding.path)] != () for finding in here)
