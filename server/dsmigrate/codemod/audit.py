"""The migration checks its own result: it compiles, brings no undefined name, and leaves no half-converted idiom."""

from __future__ import annotations

import ast
import difflib
import functools

from pyflakes import checker, messages

from dsmigrate.codemod.model import Change


def undefined_names(tree: ast.Module) -> set[str]:
    """Names that a module uses without defining them, as pyflakes sees it."""
    kinds = messages.UndefinedName | messages.UndefinedLocal | messages.UndefinedExport
    return {str(message.message_args[0]) for message in _messages(tree) if isinstance(message, kinds)}


def unused_imports(tree: ast.Module) -> set[str]:
    """Imports that nothing uses, as pyflakes writes them: ``module.name``, ``module.name as local``, ``module``."""
    return {str(message.message_args[0]) for message in _messages(tree) if isinstance(message, messages.UnusedImport)}


@functools.lru_cache(maxsize=8)  # a file is asked about twice before and twice after its conversion
def _messages(tree: ast.Module) -> tuple[messages.Message, ...]:
    return tuple(checker.Checker(tree).messages)


def uncovered_lines(before: str, after: str, changes: list[Change]) -> list[int]:
    """1-based lines of the original that are gone or changed and that no change speaks of."""
    covered: set[int] = set()
    for change in changes:
        covered.update(range(change.line, change.end_line + 1))
    old, new = before.splitlines(), after.splitlines()
    gone: list[int] = []
    for tag, i1, i2, _, _ in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("replace", "delete"):
            gone.extend(line for line in range(i1 + 1, i2 + 1) if line not in covered and old[line - 1].strip())
    return gone
