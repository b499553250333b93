"""The settings of ``dsmigrate verify``: the table ``verify`` inside of ours, the same names as the flags."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.toml import VERIFY, find_table, place
from dsmigrate.verify.request import DEVICES, LAUNCHERS

Values = dict[str, Any]
"""Fields of ``dsmigrate.verify.request.Request``."""


def verify_settings_for(folder: Path) -> Values:
    """Return the settings that hold in ``folder``; raises SettingsError with file and line for one not allowed."""
    found = find_table(folder)
    if found is None:
        return {}
    table, file, text = found
    inner = table.get(VERIFY, {})
    if not isinstance(inner, Mapping):
        raise SettingsError(f"{place(VERIFY, file, text)}: {VERIFY} is not a table")
    settings: Values = {}
    for name, value in inner.items():
        settings |= setting(name, value, f"{place(name, file, text)}: ")
    return settings


def setting(name: str, value: object, where: str = "--") -> Values:
    """Return the field that a setting stands for.

    Raises SettingsError, which starts with ``where``, for a name or a value that is not allowed.
    """
    if name not in _PARSERS:
        near = difflib.get_close_matches(name.replace("_", "-"), _PARSERS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(_PARSERS)}"
        raise SettingsError(f"{where}unknown setting {name!r}; {hint}")
    field, parse = _PARSERS[name]
    return {field: parse(value, f"{where}{name}")}


def _count(value: object, said: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{said} {value!r} is not a number from 1 on")
    return value


def _whole(value: object, said: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SettingsError(f"{said} {value!r} is not a number from 0 on")
    return value


def _positive(value: object, said: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise SettingsError(f"{said} {value!r} is not a number above 0")
    return float(value)


def _stages(value: object, said: str) -> tuple[int, ...]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [value]
    stages = [str(part).strip() for part in parts]
    if not stages or any(stage not in {"0", "1", "2", "3"} for stage in stages):
        raise SettingsError(f"{said} {value!r}: ZeRO stages are 0, 1, 2 and 3; several as 0,2,3")
    return tuple(dict.fromkeys(map(int, stages)))


def _one_of(choices: tuple[str, ...]) -> Callable[[object, str], str]:
    def parse(value: object, said: str) -> str:
        if value not in choices:
            raise SettingsError(f"{said} {value!r} does not exist; allowed: {', '.join(choices)}")
        return str(value)

    return parse


def _text(value: object, said: str) -> str:
    if not isinstance(value, str) or not value:
        raise SettingsError(f"{said} {value!r} is not a text")
    return value


def _words(value: object, said: str) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise SettingsError(f"{said} {value!r}: {error}") from None
    if not isinstance(value, (list, tuple)) or not all(isinstance(part, str) for part in value):
        raise SettingsError(f"{said} {value!r} is not a command line")
    return tuple(value)


_PARSERS: dict[str, tuple[str, Callable[[object, str], Any]]] = {
    "processes": ("processes", _count),
    "steps": ("steps", _count),
    "zero-stage": ("stages", _stages),
    "seed": ("seed", _whole),
    "timeout": ("timeout", _positive),
    "tolerance": ("tolerance", _positive),
    "launcher": ("launcher", _one_of(LAUNCHERS)),
    "device": ("device", _one_of(DEVICES)),
    "python": ("python", _text),
    "resume-args": ("resume", _words),
    "converted-args": ("converted_arguments", _words),
}
"""The field behind each name, and what makes its value."""

NAMES = tuple(_PARSERS)
"""The names of the settings, as in settings files."""
