"""Converts one file: parse, recognise, plan, rewrite, audit. Pure: nothing is read, written, imported or run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod import decide, imports_edit, result
from dsmigrate.codemod.edit import Edits
from dsmigrate.codemod.model import Change, FileResult, Kind, Options, Status
from dsmigrate.codemod.names import Imports
from dsmigrate.codemod.plan import Plan, RefusedError
from dsmigrate.codemod.project import libraries
from dsmigrate.codemod.roles import recognise
from dsmigrate.codemod.tree import Tree
from dsmigrate.files import syntax
from dsmigrate.files.text import SourceError, SourceText, decode

# A file that names none of these has nothing for us; looking for them is much cheaper than parsing.
_WORDS = ("DistributedDataParallel", "DDP", "init_process_group", "init_distributed", ".backward(")

_ALONE = "script.py"

Texts: TypeAlias = tuple[str, ...]


def migrate_source(source: bytes, *, path: str, options: Options, beside: Callable[[], Texts] = tuple) -> FileResult:
    """Convert the source of one script.

    Takes the bytes of the file, the path to name in the report, and what gives the texts of the local files that it imports;
    gives what would be written, with a change for
    every decision. Bad input gives ``Status.ERROR`` with the line, never an exception.
    """
    try:
        text = decode(source)
        if not any(word in text.text for word in _WORDS):
            syntax.parse(text.text)
            return FileResult(path, Status.UNCHANGED)
        if libraries.named_in(text.text):
            together = _with_libraries(source, path, options)
            if together is not None:
                return together
        return syntax.with_deep_stack(lambda: _migrate(text, path, options, beside))
    except SourceError as error:
        return _failed(path, error.line, error.message)


def _with_libraries(source: bytes, path: str, options: Options) -> FileResult | None:
    """The conversion of a script that leaves backward and step to a library's class; None where none is used."""
    from dsmigrate.codemod.across import migrate_set

    found = migrate_set({_ALONE: source}.get, _ALONE, shown=lambda _: path, options=options)
    return None if found is None else found.entry


def _failed(path: str, line: int, message: str) -> FileResult:
    change = Change("MG900", Kind.REFUSED, line, line, message, "the file is left as it is")
    return FileResult(path, Status.ERROR, (change,))


def _migrate(source: SourceText, path: str, options: Options, beside: Callable[[], Texts]) -> FileResult:
    python = syntax.parse(source.text)
    try:
        module = cst.parse_module(source.text)
    except cst.ParserSyntaxError as error:
        return _failed(path, error.raw_line, f"LibCST cannot read this: {error.message}")
    tree = Tree(module, python)
    imports = Imports(tree)
    roles = recognise(tree, imports)
    plan = Plan(tree, imports, roles, decide.with_stage_of(options), Edits(tree))
    plan.facts["texts"] = (source.text,)
    plan.facts["beside"] = beside
    try:
        if not decide.concerns_us(plan):
            return FileResult(path, Status.UNCHANGED)
        decide.decide(plan)
        imports_edit.add_needed(plan)
    except RefusedError as refusal:
        return FileResult(path, Status.REFUSED, (refusal.change,))
    return result.of(plan, source, path)
