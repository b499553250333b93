"""Findings at ranges of the text, which need no member to stand at."""

from __future__ import annotations

from collections.abc import Iterable

from dsmigrate.document import Path
from dsmigrate.patience import pause
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Finding, Fix, Related, Severity


def at(
    context: Context,
    start: int,
    end: int,
    message: str,
    *,
    path: Path = (),
    severity: Severity | None = None,
    effect: Effect | None = None,
    fixes: Iterable[Fix] = (),
    related: Iterable[Related] = (),
) -> Finding:
    """Return a finding of the current rule at a range of the text; ``path`` leads to the key it is about, if any."""
    rule = context.rule
    assert rule is not None  # noqa: S101 - set by run before a rule is called
    pause()
    return Finding(
        code=rule.code,
        severity=severity or rule.severity,
        effect=effect or rule.effect,
        message=message,
        path=path,
        start=start,
        end=end,
        related=tuple(related),
        proposed=tuple(fixes),
    )
