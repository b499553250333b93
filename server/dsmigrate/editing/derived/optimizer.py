"""The optimizer and the schedule of a file: the names that it gives, and the class that is built."""

from __future__ import annotations

from dsmigrate.knowledge import TypeFacts
from dsmigrate.rules.context import Context
from dsmigrate.rules.optimizer._shared import build_of, class_name
from dsmigrate.rules.typed import Section, built_type


def type_facts(context: Context, section: Section) -> TypeFacts | None:
    """Return the type that this release builds for a section; None when it builds none."""
    return built_type(context, section)


def built_class(context: Context, facts: TypeFacts) -> str:
    """Return the name of the class that an optimizer type becomes here; "" when that is open or says nothing new."""
    if facts.kind != "optimizer" or build_of(context, facts) is None:
        return ""
    name = class_name(context, facts).strip("`")
    return "" if name == facts.name else name
