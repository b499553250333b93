"""Conversions for tests and benchmarks: bytes in, results out, as the command makes them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

from dsmigrate.codemod.convert import Conversion, convert
from dsmigrate.codemod.model import FileResult, Options
from dsmigrate.files.diff import gone_lines
from dsmigrate.migration.job import Job, run


def migrate_source(source: bytes, *, path: str, options: Options) -> FileResult:
    """Convert a script that is taken alone."""
    return run(Job(Path(path), Path(), options, source)).result


def migrate_files(
    texts: Mapping[str, bytes], entry: str, options: Options | None = None, shown: Callable[[str], str] = str
) -> Conversion:
    """Convert a script of a project, given as the texts of its files."""
    return convert(texts.get, entry, options or Options(), shown=shown)


def uncovered(result: FileResult, source: bytes) -> list[int]:
    """The lines that the diff takes away and no change of the report speaks of.

    Not of blank ones, comments, imports and what is tried if they fail, lines that only move or are indented, branches
    that went with all that was in them, and an ``elif`` that has become the first one.
    """
    covered = {line for change in result.changes for line in range(change.line, change.end_line + 1)}
    lines = source.split(b"\n")
    still = {line.strip() for line in (result.new_source or b"").split(b"\n")}
    still |= {b"el" + line for line in still if line.startswith(b"if ")}
    gone = set(gone_lines(result.diff))
    left = [line for line in sorted(gone - covered) if lines[line - 1].strip() not in still | {b""}]
    left = [line for line in left if not lines[line - 1].strip().startswith(b"#")]
    if left:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Try) and _imports(node)):
                covered.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        covered.update(line for line in left if lines[line - 1].rstrip().endswith(b":") and line + 1 in gone)
    return [line for line in left if line not in covered]


def _imports(node: ast.Try) -> bool:
    return all(isinstance(one, ast.Import | ast.ImportFrom) for one in node.body)
