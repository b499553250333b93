"""The migration checks its own result: it compiles, brings no undefined name, and leaves no half-converted idiom."""

from __future__ import annotations

import ast
import functools

from pyflakes import checker, messages


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
