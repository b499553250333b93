"""The migration checks its own result, as pyflakes sees it: it brings no undefined name and leaves no import unused."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyflakes import checker, messages

_UNDEFINED = messages.UndefinedName | messages.UndefinedLocal | messages.UndefinedExport


@dataclass(frozen=True, slots=True)
class Audit:
    """Names that a module uses without defining them, and imports that nothing uses.

    Imports are written as pyflakes does: ``module.name``, ``module.name as local``, ``module``.
    """

    undefined_names: frozenset[str]
    unused_imports: frozenset[str]


def audited(tree: ast.Module) -> Audit:
    """What pyflakes finds in a module."""
    found = checker.Checker(tree).messages
    undefined = (one.message_args[0] for one in found if isinstance(one, _UNDEFINED))
    unused = (one.message_args[0] for one in found if isinstance(one, messages.UnusedImport))
    return Audit(frozenset(map(str, undefined)), frozenset(map(str, unused)))
