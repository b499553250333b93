"""Rules: what is wrong, ignored, overridden or unwise in a DeepSpeed config.

Each rule is a module below this package: its metadata, its examples, which are its tests and its page, and a function
from a ``Context`` to findings. ``check`` runs them.
"""

from __future__ import annotations

from dsmigrate.rules.model import (
    Accelerated,
    Arguments,
    Default,
    Effect,
    Example,
    Facts,
    Finding,
    Fix,
    ModelFacts,
    OwnSchema,
    Related,
    Rule,
    Said,
    Severity,
    Tag,
)
from dsmigrate.rules.registry import every_rule
from dsmigrate.rules.run import Settings, check

__all__ = [
    "Accelerated",
    "Arguments",
    "Default",
    "Effect",
    "Example",
    "Facts",
    "Finding",
    "Fix",
    "ModelFacts",
    "OwnSchema",
    "Related",
    "Rule",
    "Said",
    "Settings",
    "Severity",
    "Tag",
    "check",
    "every_rule",
]
