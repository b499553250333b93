"""What Accelerate makes of the values of its fields: the launcher hands them on as text."""

from __future__ import annotations

from typing import Any

from dsmigrate.convert.facts import Field
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say

DEVICES = ("none", "cpu", "nvme")


class BadValueError(ValueError):
    """A value that Accelerate or DeepSpeed cannot take; the message says what happens."""


def taken(field: Field, value: object) -> Any:  # noqa: ANN401 - whatever the field holds
    """Return the value that ends up in the config, None for a field without a value.

    Raises BadValueError for a text that Accelerate fails to read, and for a device that DeepSpeed does not know.
    """
    if value is None:
        return None
    return _READERS[field.type](field.name, value)


def _integer(name: str, value: object) -> int | str:
    if str(value) == "auto" and name == "gradient_accumulation_steps":
        return "auto"
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise BadValueError(say("{name} {value} is no whole number", name=name, value=json_text(value)))
    try:
        return int(str(value)) if not isinstance(value, float) else int(value)
    except ValueError:
        message = say("{name} {value} is no whole number, at which Accelerate stops", name=name, value=json_text(value))
        raise BadValueError(message) from None


def _number(name: str, value: object) -> float | str:
    if str(value) == "auto":
        return "auto"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    try:
        return float(str(value))
    except ValueError:
        message = say("{name} {value} is no number, at which Accelerate stops", name=name, value=json_text(value))
        raise BadValueError(message) from None


def _device(name: str, value: object) -> str:
    device = str(value).lower()
    if device not in DEVICES:
        known = say(", ").join(DEVICES)
        raise BadValueError(
            say(
                "{name} {value} does not exist; DeepSpeed takes {known}", name=name, value=json_text(value), known=known
            )
        )
    return device


def _boolean(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in {"true", "false"}:
        return str(value).lower() == "true"
    raise BadValueError(
        say("{name} {value} counts as false: only the word true is true", name=name, value=json_text(value))
    )


def _string(_: str, value: object) -> str:
    return str(value)


_READERS = {"integer": _integer, "number": _number, "device": _device, "boolean": _boolean, "string": _string}
