"""Every MG code with its documentation, collected from the steps."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from dsmigrate.codemod import steps
from dsmigrate.codemod.model import Idea


@cache
def ideas() -> tuple[Idea, ...]:
    """The ideas of all steps, sorted by code; a code that stands twice is an error of the project."""
    found: dict[str, Idea] = {}
    for info in pkgutil.iter_modules(steps.__path__):
        module = importlib.import_module(f"{steps.__name__}.{info.name}")
        for idea in getattr(module, "IDEAS", ()):
            if idea.code in found:
                raise ValueError(f"{idea.code} stands in two steps")
            found[idea.code] = idea
    return tuple(found[code] for code in sorted(found))
