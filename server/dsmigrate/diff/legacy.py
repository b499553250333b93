"""Deprecated spellings as DeepSpeed rewrites them itself: ``cpu_offload``, ``zero_optimization: true``."""

from __future__ import annotations

from dsmigrate.knowledge import Key, Knowledge, Status

_STAGE = "zero_optimization.stage"


def rewritten(known: Knowledge, key: Key, value: object) -> tuple[str, object] | None:
    """Return the path and value that DeepSpeed makes of a deprecated key or form; None for what stays as it is.

    A path of "" means that the value is dropped (deepspeed/runtime/config_utils.py:_process_deprecated_field,
    deepspeed/runtime/zero/config.py:read_zero_config_deprecated).
    """
    if key.path == "zero_optimization" and isinstance(value, bool):
        return _STAGE, int(value)
    if key.status is not Status.DEPRECATED or value == "auto":
        return None
    if len(key.successors) != 1:
        return "", None
    successor = known.key(key.successors[0])
    if successor is None:
        return None
    if not successor.is_section:
        return successor.path, value
    return (f"{successor.path}.device", "cpu") if _is_on(value) else ("", None)


def _is_on(value: object) -> bool:
    return value.lower() in {"true", "1", "yes", "on", "y", "t"} if isinstance(value, str) else bool(value)
