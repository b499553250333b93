"""The settings of ``dsmigrate diff``: the table ``diff`` of ours; release, consumer and facts are those of check."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dsmigrate.settings.check import CheckSettings, check_settings_for, with_setting
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.toml import DIFF, find_table, place

LEVELS = ("breaking", "warning", "info", "never")
"""The values of ``fail-on``, from the most severe."""
_CODES = re.compile(r"DF\d{0,3}")
NAMES = ("select", "ignore", "fail-on")


@dataclass(frozen=True, slots=True)
class DiffSettings:
    """What is asked of a comparison; ``check`` holds release, consumer and what is known beside the files.

    ``fail_on`` is the least severity that makes the exit code 1. Empty ``select`` takes every explanation.
    """

    check: CheckSettings = field(default_factory=CheckSettings)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str = "info"

    def takes(self, code: str) -> bool:
        """Return whether an explanation is asked for."""
        return (not self.select or code.startswith(self.select)) and not (self.ignore and code.startswith(self.ignore))


def diff_settings_for(folder: Path) -> DiffSettings:
    """Return the settings that hold in ``folder``; raises SettingsError with file and line for one not allowed."""
    settings = DiffSettings(check=replace(check_settings_for(folder), select=(), ignore=()))
    found = find_table(folder)
    if found is None:
        return settings
    table, file, text = found
    inner = table.get(DIFF, {})
    if not isinstance(inner, Mapping):
        raise SettingsError(f"{place(DIFF, file, text)}: {DIFF} is not a table")
    for name, value in inner.items():
        settings = with_diff_setting(settings, name, value, f"{place(name, file, text)}: ")
    return settings


def with_diff_setting(settings: DiffSettings, name: str, value: object, where: str = "--") -> DiffSettings:
    """Return ``settings`` with one setting changed: one of its own, or one of check.

    Raises SettingsError, which starts with ``where``, for a name or a value that is not allowed.
    """
    said = f"{where}{name}"
    if name == "select":
        return replace(settings, select=_codes(value, said))
    if name == "ignore":
        return replace(settings, ignore=_codes(value, said))
    if name == "fail-on":
        if value not in LEVELS:
            raise SettingsError(f"{said} {value!r} does not exist; allowed: {', '.join(LEVELS)}")
        return replace(settings, fail_on=str(value))
    if where != "--":
        near = difflib.get_close_matches(name.replace("_", "-"), NAMES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(NAMES)}"
        raise SettingsError(f"{where}unknown setting {name!r}; {hint}")
    return replace(settings, check=with_setting(settings.check, name, value, where))


def _codes(value: object, said: str) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise SettingsError(f"{said} {value!r} is not a list of texts")
    listed = tuple(part.strip() for part in parts if part.strip())
    for code in listed:
        if not _CODES.fullmatch(code):
            raise SettingsError(f"{said}: {code!r} is no code of an explanation, nor the beginning of one (DF4)")
    return listed
