"""What is the matter with a value, and what comes of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dsmigrate.rules.model import Effect, Severity


class Kind(enum.Enum):
    """What is the matter with a value; each belongs to one rule."""

    SECTION = "section"
    UNSETTABLE = "unsettable"
    TYPE = "type"
    ITEM = "item"
    LISTED = "listed"
    RANGE = "range"
    COERCED = "coerced"
    TRUTHY = "truthy"
    NUMBER = "number"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A kind of mistake with what comes of it; ``wanted`` says in words what belongs there."""

    kind: Kind
    effect: Effect
    wanted: str

    @property
    def severity(self) -> Severity:
        """An error where training cannot start or go on."""
        return Severity.ERROR if self.effect in {Effect.REJECTED, Effect.CRASH} else Severity.WARNING
