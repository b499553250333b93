"""The settings of ``dsmigrate check``: the table ``check`` inside of ours, the same names as the flags."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from dsmigrate.files.paths import resolved
from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import LANGUAGES
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.releases import check_release
from dsmigrate.settings.toml import CHECK, find_table, place

_CODES = re.compile(r"(?:DS|CV)\d{0,3}")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtb]?)(?:i?b)?", re.IGNORECASE)
_SCALE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What is asked of a check; None leaves it to evidence. ``gpu_memory`` is in GiB of one GPU.

    ``per_file_ignores`` maps globs, relative to ``base``, to codes; ``include`` names more files to check and
    ``exclude`` files to pass over in directories. ``schemas`` are paths of JSON Schemas from ``base``, ``scripts``
    are named in one run with the configs.
    """

    version: str | None = None
    before: str | None = None
    consumer: Consumer | None = None
    world_size: int | None = None
    gpu_memory: float | None = None
    parameters: int | None = None
    hardware: str | None = None
    model: Path | None = None
    trainable: str | None = None
    base_weights: str | None = None
    arguments: str | None = None
    transformers: str | None = None
    accelerate: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    scripts: tuple[Path, ...] = ()
    lang: str | None = None
    """The tag of the language of messages; None is that of the editor, in a terminal English."""
    base: Path | None = None

    def ignored_in(self, file: Path) -> tuple[str, ...]:
        """Return the codes that are ignored in a file: everywhere, and by its name."""
        extra = [code for glob, codes in self.per_file_ignores if self.matches(file, glob) for code in codes]
        return (*self.ignore, *extra)

    def matches(self, file: Path, glob: str) -> bool:
        """Return whether a glob means a file: by its name alone, or by its path from the settings file."""
        path = resolved(file)
        if self.base is not None and path.is_relative_to(self.base):
            path = path.relative_to(self.base)
        return fnmatch(file.name, glob) or fnmatch(path.as_posix(), glob) or fnmatch(path.as_posix(), f"*/{glob}")


def check_settings_for(folder: Path) -> CheckSettings:
    """Return the settings that hold in ``folder``; raises SettingsError with file and line for one that is not allowed.

    The release may also be given as ``target-version`` of our table, as a migration has it.
    """
    found = find_table(folder)
    if found is None:
        return CheckSettings()
    table, file, text = found
    settings = CheckSettings(base=resolved(file).parent)
    if isinstance(table.get("target-version"), str):
        settings = replace(settings, version=check_release(str(table["target-version"]), "target-version"))
    inner = table.get(CHECK, {})
    if not isinstance(inner, Mapping):
        raise SettingsError(f"{place(CHECK, file, text)}: {CHECK} is not a table")
    for name, value in inner.items():
        settings = with_setting(settings, name, value, f"{place(name, file, text)}: ")
    return settings


def with_setting(settings: CheckSettings, name: str, value: object, where: str = "--") -> CheckSettings:
    """Return ``settings`` with one setting changed.

    Raises SettingsError, which starts with ``where``, for a name or a value that is not allowed.
    """
    said = f"{where}{name}"
    if name not in _PARSERS:
        near = difflib.get_close_matches(name.replace("_", "-"), _PARSERS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(_PARSERS)}"
        raise SettingsError(f"{where}unknown setting {name!r}; {hint}")
    field, parse = _PARSERS[name]
    return replace(settings, **{field: parse(value, said)})


def _text(value: object, said: str) -> str:
    if not isinstance(value, str) or not value:
        raise SettingsError(f"{said} {value!r} is not a text")
    return value


def _consumer(value: object, said: str) -> Consumer | None:
    if value == "auto":
        return None
    try:
        return Consumer(value)
    except ValueError:
        known = ", ".join(consumer.value for consumer in Consumer)
        raise SettingsError(f"{said} {value!r} does not exist; allowed: auto, {known}") from None


def _positive(value: object, said: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{said} {value!r} is not a number of processes")
    return value


def _number(value: object, said: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise SettingsError(f"{said} {value!r} is not a size in GiB")
    return float(value)


def size_of(value: object, said: str) -> int:
    """Return a number of parameters: 7000000000, "7b", "350M"; raises SettingsError, which starts with ``said``."""
    found = _SIZE.fullmatch(str(value).strip()) if not isinstance(value, bool) else None
    size = int(float(found[1]) * _SCALE[found[2].lower()]) if found else 0
    if size < 1:
        raise SettingsError(f"{said} {value!r} is not a number of parameters, such as 7b or 350M")
    return size


def _list(value: object, said: str) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise SettingsError(f"{said} {value!r} is not a list of texts")
    return tuple(part.strip() for part in parts if part.strip())


def _per_file(value: object, said: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"{said} {value!r} is not a table of globs with codes")
    return tuple((str(glob), _list(codes, f"{said}.{glob}")) for glob, codes in value.items())


def _language(value: object, said: str) -> str | None:
    if value == "auto":
        return None
    if value not in LANGUAGES:
        raise SettingsError(f"{said} {value!r} does not exist; allowed: auto, {', '.join(LANGUAGES)}")
    return str(value)


def _release(value: object, said: str) -> str:
    return check_release(_text(value, said), said)


def _version(value: object, said: str) -> str:
    text = _text(value, said)
    try:
        order(text)
    except ValueError:
        raise SettingsError(f"{said} {value!r} is not a release") from None
    return text


def _codes(value: object, said: str) -> tuple[str, ...]:
    listed = _list(value, said)
    for code in listed:
        if not _CODES.fullmatch(code):
            raise SettingsError(f"{said}: {code!r} is no code of a rule, nor the beginning of one (DS4)")
    return listed


_PARSERS: dict[str, tuple[str, Callable[[object, str], Any]]] = {
    "deepspeed-version": ("version", _release),
    "before": ("before", _release),
    "consumer": ("consumer", _consumer),
    "world-size": ("world_size", _positive),
    "gpu-memory": ("gpu_memory", _number),
    "parameters": ("parameters", size_of),
    "arguments": ("arguments", _text),
    "model": ("model", lambda value, said: Path(_text(value, said))),
    "trainable": ("trainable", _text),
    "base": ("base_weights", _text),
    "hardware": ("hardware", lambda value, said: _text(value, said).lower()),
    "transformers-version": ("transformers", _version),
    "accelerate-version": ("accelerate", _version),
    "select": ("select", _codes),
    "ignore": ("ignore", _codes),
    "per-file-ignores": ("per_file_ignores", _per_file),
    "include": ("include", _list),
    "exclude": ("exclude", _list),
    "schemas": ("schemas", _list),
    "lang": ("lang", _language),
}
"""The field of ``CheckSettings`` behind each name, and what makes its value."""

NAMES = tuple(_PARSERS)
"""The names of the settings, as in settings files."""
