"""Values of keys that pydantic checks: what it refuses, and what it converts."""

from __future__ import annotations

from dsmigrate.knowledge import Key
from dsmigrate.knowledge.versions import order
from dsmigrate.knowledge.wording import range_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect
from dsmigrate.rules.types._read import SCALE, items
from dsmigrate.rules.types._values import in_range, is_int, is_listed, kinds_of, wanted_text
from dsmigrate.rules.types._verdict import Kind, Verdict

SCALE_SINCE = "0.19.3"
LOSS_SCALE_SINCE = "0.18.8"
"""The validator of ``fp16.loss_scale`` came before the others."""
PYDANTIC_2_SINCE = "0.15.0"
"""Before it DeepSpeed was on pydantic 1, which converts more: 2.5 to the integer 2, any number to a string."""
_RAW = frozenset({"tensor_parallel.autotp_size"})
"""Checked keys that the engine reads again from the file itself, where a string is still one."""
_ON = frozenset({"true", "yes", "on", "t", "y", "1"})
_OFF = frozenset({"false", "no", "off", "f", "n", "0"})


def checked(context: Context, key: Key, value: object) -> Verdict | None:
    """Judge a field of a pydantic model."""
    wanted = wanted_text(key)
    if key.path == "tensor_parallel.dtype":
        return Verdict(Kind.UNSETTABLE, Effect.REJECTED, say("nothing"))
    if {"integer", "string"} <= set(key.type) and isinstance(value, str):
        return Verdict(Kind.TYPE, Effect.REJECTED, say('{wanted}, or "auto"', wanted=wanted))
    taken = None if _is_refused_scale(context, key, value) else _taken(context, key, value)
    if taken is None:
        kind = Kind.LISTED if key.enum and kinds_of(value) & set(key.type) else Kind.TYPE
        return Verdict(kind, Effect.REJECTED, wanted)
    read = taken[0]
    if isinstance(read, list):
        return items(key, read)
    found = _limits(context, key, read, wanted)
    if found is None and key.path in _RAW and isinstance(value, str):
        return Verdict(Kind.TYPE, Effect.REJECTED, wanted)
    if found is None and kinds_of(value).isdisjoint(key.type):
        return Verdict(Kind.COERCED, Effect.MISREAD, wanted)
    return found


def _limits(context: Context, key: Key, read: object, wanted: str) -> Verdict | None:
    """Judge what pydantic read by the closed list and the range of its key."""
    if key.enum and read is not None and not is_listed(key, read):
        if key.takes_values_not_listed:
            return Verdict(Kind.LISTED, Effect.MISREAD, wanted)
        refused = key.rejects_values_not_listed or key.path == "zero_optimization.zenflow.select_strategy"
        return Verdict(Kind.LISTED, Effect.REJECTED if refused else Effect.CRASH, wanted)
    if not isinstance(read, int | float) or in_range(key, read) or not range_text(key):
        return None
    if key.path in SCALE and key.type == ("integer",) and not (_has_scale_limits(context) and _is_dynamic(context)):
        return None
    return Verdict(Kind.RANGE, Effect.REJECTED, wanted)


def _is_refused_scale(context: Context, key: Key, value: object) -> bool:
    """Return whether the validators of the loss scale refuse a value before pydantic converts it."""
    since = LOSS_SCALE_SINCE if key.path == "fp16.loss_scale" else SCALE_SINCE
    if key.path not in SCALE or order(context.known.version) < order(since):
        return False
    return isinstance(value, bool) or (key.type == ("integer",) and isinstance(value, str) and not is_int(value))


def _has_scale_limits(context: Context) -> bool:
    return order(context.known.version) >= order(SCALE_SINCE)


def _is_dynamic(context: Context) -> bool:
    return bool(context.is_on("fp16.enabled")) and context.number("fp16.loss_scale") == 0


def is_pydantic_1(context: Context) -> bool:
    return order(context.known.version) < order(PYDANTIC_2_SINCE)


def _taken(context: Context, key: Key, value: object) -> list[object] | None:
    """Return what pydantic reads, in a list, or None when it refuses."""
    if not is_pydantic_1(context):
        return next((taken for kind in key.type if (taken := _coerced(kind, value))), None)
    if key.enum and value is not None:
        return [value] if is_listed(key, value) else None
    return next((taken for kind in key.type if (taken := _coerced_1(key, kind, value))), None)


def _coerced_1(key: Key, kind: str, value: object) -> list[object]:
    """Return what pydantic 1 makes of a value for a JSON type, or nothing when it refuses."""
    if kind == "integer" and isinstance(value, bool | int | float | str):
        try:
            return [int(value)]
        except (ValueError, OverflowError):
            return []
    if kind == "string" and isinstance(value, int | float) and key.name != "nvme_path":
        return [str(value)]
    if kind == "object" and value in ("", []):
        return [{}]
    return _coerced(kind, value)


def _coerced(kind: str, value: object) -> list[object]:
    """Return what pydantic makes of a value for a JSON type, or nothing when it refuses."""
    if kind == "null":
        return [None] if value is None else []
    if kind == "boolean":
        return [read for read in (as_boolean(value),) if read is not None]
    if kind == "integer":
        return [read for read in (_as_integer(value),) if read is not None]
    if kind == "number":
        read = as_number(value)
        return [] if read is None else [read]
    return [value] if kind in kinds_of(value) else []


def as_boolean(value: object) -> bool | None:
    """Return what pydantic reads as a boolean."""
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    if isinstance(value, str) and value.lower() in _ON | _OFF:
        return value.lower() in _ON
    return None


def _as_integer(value: object) -> int | None:
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**63 else None
    if isinstance(value, str):
        text = value.strip().replace("_", "")
        whole, dot, rest = text.partition(".")
        return int(whole) if is_int(whole) and (not dot or set(rest) <= {"0"}) else None
    return None


def as_number(value: object) -> float | int | None:
    """Return what pydantic reads as a number."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None
