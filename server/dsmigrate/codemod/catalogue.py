"""Every MG code with its documentation, collected from the steps, and its example, read from ``examples/``."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from importlib.resources import files

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
            found[idea.code] = replace(idea, before=example(idea.code, "before"), after=example(idea.code, "after"))
    return tuple(found[code] for code in sorted(found))


def example(code: str, side: str) -> str:
    """The example script of a code, ``before`` or ``after`` its migration; "" where there is none (a refusal has no after)."""
    path = files("dsmigrate.codemod") / "examples" / f"{code}.{side}.txt"
    return path.read_text(encoding="utf-8") if path.is_file() else ""
