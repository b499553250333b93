"""What DeepSpeed's config holds for a value: as its models convert it, whatever the file writes."""

from __future__ import annotations

from pathlib import PurePosixPath

from dsmigrate.knowledge import MISSING, Key, Status
from dsmigrate.rules.context import UNKNOWN
from dsmigrate.rules.precision._shared import dtype

READ = frozenset({Status.PRESENT, Status.DEPRECATED})
"""The states of a key that a release reads."""

_YES = frozenset({"true", "1", "yes", "on", "y", "t"})
_NO = frozenset({"false", "0", "no", "off", "n", "f"})


def converted(key: Key | None, value: object) -> object:
    """Return a value as DeepSpeed keeps it: ``"3"`` is 3 where pydantic checks, ``"FP16"`` is ``"fp16"`` where case is
    nothing, ``"torch.bfloat16"`` is ``"bf16"``.

    What cannot be converted is returned as it is: DeepSpeed rejects it, or keeps it.
    """  # noqa: D205 - two sentences of one thought
    if key is None or value is UNKNOWN or value is MISSING or value is None:
        return value
    if isinstance(value, str):
        if key.name.endswith("dtype") or key.name.endswith("data_type"):
            return dtype(value.lower() if key.ignores_case else value)
        if key.ignores_case:
            return next((known for known in key.enum if str(known).lower() == value.lower()), value.lower())
        if key.unit == "path" and key.is_checked:
            return str(PurePosixPath(value))
    return _as_checked(key, value) if key.is_checked else value


def _as_checked(key: Key, value: object) -> object:
    """Return a value as pydantic converts it for a field of the key's types; the value itself where it does not."""
    if "boolean" in key.type and not set(key.type) - {"boolean", "null"}:
        return _switch(value)
    if isinstance(value, bool) and {"integer", "number"} & set(key.type):
        return int(value)
    if isinstance(value, str) and "string" not in key.type:
        if "integer" in key.type or "number" in key.type:
            return _number(value, whole="number" not in key.type)
        return value
    return value


def _switch(value: object) -> object:
    if isinstance(value, str):
        return True if value.lower() in _YES else False if value.lower() in _NO else value
    if isinstance(value, (int, float)) and value in {0, 1}:
        return bool(value)
    return value


def _number(text: str, *, whole: bool) -> object:
    for read in (int,) if whole else (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def same(old: object, new: object) -> bool:
    """Return whether DeepSpeed sees one value in both: 1, 1.0 and true are, UNKNOWN is nothing but itself."""
    waiting = [(old, new)]
    while waiting:  # values nest deeper than calls may
        one, other = waiting.pop()
        if one is UNKNOWN or other is UNKNOWN or one is MISSING or other is MISSING:
            if one is not other:
                return False
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            waiting += zip(one, other, strict=True)
        elif isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            waiting += ((value, other[name]) for name, value in one.items())
        elif not one == other:  # noqa: SIM201 - what an odd type says of equality
            return False
    return True
