"""What a value means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsmigrate.document import Scalar
from dsmigrate.editing.markdown import code
from dsmigrate.knowledge import Key
from dsmigrate.knowledge.wording import value_name
from dsmigrate.languages import say


def meaning(scalar: Scalar | None, key: Key) -> str:
    """Return a line about a value: what it stands for; "" when nothing is known of it."""
    if scalar is None:
        return ""
    value = scalar.value()
    if value == "auto" and "auto" not in key.values:
        return ""
    found = listed(key, value) or suggested(key.suggestions, value)
    return say("{what}: {means}", what=written(scalar), means=found) if found else ""


def written(value: Scalar) -> str:
    """Return a value as it is written, without quotes, as a code span."""
    text = value.value()
    return code(text if isinstance(text, str) else value.raw)


def suggested(suggestions: Sequence[Mapping[str, object]], value: object) -> str:
    """Return what a value that is among the sensible ones stands for."""
    if isinstance(value, (list, dict)):
        return ""
    return next((str(one["means"]) for one in suggestions if _same(one["value"], value)), "")


def listed(key: Key, value: object) -> str:
    """Return what a value of the closed list means; a switch may be spelled as a text or number."""
    if isinstance(value, (list, dict)):
        return ""
    name = value_name(value)
    if name in key.values:
        return key.values[name]
    if key.ignores_case and isinstance(value, str):
        return next((means for name, means in key.values.items() if name.lower() == value.lower()), "")
    return ""


def _same(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) is isinstance(other, bool)
