"""Finds and reads the settings file that governs a script."""

from __future__ import annotations

import difflib
import functools
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import MissingFileError, read
from dsmigrate.files.text import SourceError
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.fields import SETTINGS, Value

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # the same library under its former name

OWN_FILE = "dsmigrate.toml"
SHARED_FILE = "pyproject.toml"
_TABLE = "tool.dsmigrate"
CHECK = "check"
"""The table inside of ours that ``settings.check`` reads."""
DIFF = "diff"
"""The table inside of ours that ``settings.diff`` reads."""
VERIFY = "verify"
"""The table inside of ours that ``settings.verify`` reads."""


def find_table(folder: Path) -> tuple[Mapping[str, object], Path, str] | None:
    """Return our table that governs ``folder``, its file and the text of that; None when there is none.

    Upward from ``folder``, the first ``dsmigrate.toml``, or ``pyproject.toml`` with a ``[tool.dsmigrate]`` table,
    counts; the former where both lie in one directory. Raises SettingsError for a file that is not TOML.
    """
    return _find_table(resolved(folder))


@functools.cache
def _find_table(folder: Path) -> tuple[Mapping[str, object], Path, str] | None:
    for directory in (folder, *folder.parents):
        for name in (OWN_FILE, SHARED_FILE):
            file = directory / name
            found = _read(file)
            if found is not None:
                return found[0], file, found[1]
    return None


def forget() -> None:
    """Read settings files again when they are next asked for."""
    _find_table.cache_clear()


def settings_for(folder: Path) -> tuple[dict[str, Value], Path | None]:
    """Return the settings that hold in ``folder``, by name, and the file they come from.

    See ``find_table`` for which file counts. Raises SettingsError with file and line for a file that is not TOML, an
    unknown name, or a value that is not allowed.
    """
    found = find_table(folder)
    if found is None:
        return {}, None
    table, file, text = found
    own = {name: value for name, value in table.items() if name not in {CHECK, DIFF, VERIFY}}
    return {_known(name, file, text): _value(name, value, file, text) for name, value in own.items()}, file


def _read(file: Path) -> tuple[Mapping[str, object], str] | None:
    shared = file.name == SHARED_FILE
    try:
        text = read(file).decode()
        if shared and "dsmigrate" not in text:
            return None
        table: object = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: not valid TOML: {error}") from None
    except MissingFileError:
        return None
    except SourceError as error:
        raise SettingsError(f"{file}: {error.message}") from None
    for name in _TABLE.split(".") if shared else ():
        table = table.get(name) if isinstance(table, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise SettingsError(f"{file}: {_TABLE} is not a table")
    return table, text


def _known(name: str, file: Path, text: str) -> str:
    if name in SETTINGS:
        return name
    close = difflib.get_close_matches(name.replace("_", "-"), SETTINGS, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(SETTINGS)}"
    raise SettingsError(f"{place(name, file, text)}: unknown setting {name!r}; {hint}")


def _value(name: str, value: object, file: Path, text: str) -> Value:
    checked = SETTINGS[name].check(value, f"{place(name, file, text)}: {name}")
    if name in {"config", "nvme-path"}:
        return str(file.parent / str(checked))
    return checked


def place(name: str, file: Path, text: str) -> str:
    """Return "file:line" of the key, or the file where the key is written in a way not looked for."""
    table = text.find(f"[{_TABLE}]") if file.name == SHARED_FILE else 0
    key = re.compile(rf"^[ \t]*(['\"]?){re.escape(name)}\1[ \t]*[=.]", re.MULTILINE)
    found = key.search(text, max(table, 0))
    return f"{file}:{text.count(chr(10), 0, found.start()) + 1}" if found else str(file)
