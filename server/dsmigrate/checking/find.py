"""From the paths on a command line to the configs to check."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.checking.recognise import SUFFIXES, YAML, is_accelerate, is_config, may_be_config
from dsmigrate.document import Document, DocumentError, parse_bytes
from dsmigrate.files.discovery import skipped
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.launchers.regions import kind_of
from dsmigrate.settings.check import CheckSettings, check_settings_for

SettingsFor = Callable[[Path], CheckSettings]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file to check with the settings that hold for it; ``document`` is its content where that was looked at."""

    path: Path
    settings: CheckSettings
    document: Document | None = None


class NothingThereError(Exception):
    """A path or pattern that leads to nothing; the message names it."""


def find(paths: Sequence[str], settings_for: SettingsFor | None = None) -> tuple[Candidate, ...]:
    """Return each file once: named files as they stand, directories searched for configs, patterns expanded.

    In directories, files are recognised by their keys as well as by their names; hidden names, environments and
    symlinks are passed over. Raises NothingThereError, and SettingsError for a settings file that is not usable.
    """
    look = settings_for or check_settings_for
    seen: dict[str, Candidate] = {}
    for given in paths:
        for path in _expanded(given):
            named = not path.is_dir()
            for file in (path,) if named else _walk(path):
                real = os.path.realpath(file)
                if real in seen:
                    continue
                settings = look(file.parent)
                found = Candidate(file, settings) if named else _wanted(file, settings)
                if found is not None:
                    seen[real] = found
    return tuple(seen.values())


def _expanded(given: str) -> list[Path]:
    path = Path(given)
    if path.exists() or path.is_symlink():
        return [path]
    if glob.has_magic(given):
        found = [Path(match) for match in sorted(glob.glob(given, recursive=True))]  # noqa: PTH207 - Path has no pattern from a root
        if found:
            return found
        raise NothingThereError(f"{given}: the pattern matches no file")
    raise NothingThereError(f"{given}: no such file or directory")


def _walk(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        here = Path(folder)
        names[:] = sorted(name for name in names if not skipped(here / name))
        for name in sorted(files):
            file = here / name
            read_at_all = file.suffix.lower() in SUFFIXES | YAML or kind_of(name, "")
            if read_at_all and not name.startswith(".") and not file.is_symlink():
                yield file


def _wanted(file: Path, settings: CheckSettings) -> Candidate | None:
    if any(settings.matches(file, pattern) for pattern in settings.exclude):
        return None
    if any(settings.matches(file, pattern) for pattern in settings.include):
        return Candidate(file, settings)
    if file.suffix.lower() in YAML:
        return Candidate(file, settings) if _holds_accelerate(file) else None
    if kind_of(file.name, ""):
        return Candidate(file, settings) if _launches(file) else None
    try:
        data = read(file)
        if not may_be_config(file.name, data):
            return None
        document = parse_bytes(data)
    except (SourceError, DocumentError):
        return None
    return Candidate(file, settings, document) if is_config(file.name, document) else None


def _holds_accelerate(file: Path) -> bool:
    try:
        return is_accelerate(read(file))
    except SourceError:
        return False


def _launches(file: Path) -> bool:
    """Whether a launcher says how DeepSpeed trains."""
    from dsmigrate.checking.launched import launches, may_launch  # noqa: PLC0415 - what few projects need
    from dsmigrate.convert.job import text_of  # noqa: PLC0415
    from dsmigrate.convert.model import ConvertError  # noqa: PLC0415

    try:
        data = read(file)
        return may_launch(data) and any(launches(file.name, text_of(file.name, data)))
    except (SourceError, ConvertError):
        return False
