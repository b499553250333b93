"""Conversions for tests and benchmarks: bytes in, results out, as the command makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dsmigrate.codemod.convert import Conversion, convert
from dsmigrate.codemod.model import FileResult, Options
from dsmigrate.migration.job import Job, run


def migrate_source(source: bytes, *, path: str, options: Options) -> FileResult:
    """Convert a script that is taken alone."""
    return run(Job(Path(path), Path(), options, source)).result


def migrate_files(
    texts: Mapping[str, bytes], entry: str, options: Options | None = None, shown: Callable[[str], str] = str
) -> Conversion:
    """Convert a script of a project, given as the texts of its files."""
    return convert(texts.get, entry, options or Options(), shown=shown)
