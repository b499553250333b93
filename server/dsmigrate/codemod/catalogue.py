"""Every code of the codemod with its documentation, and its example, read from ``examples/``."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files

from dsmigrate.codemod import shared, validate
from dsmigrate.codemod.idioms import catalogue
from dsmigrate.codemod.model import Idea


@cache
def ideas() -> tuple[Idea, ...]:
    """The ideas of the idioms and of what stands around them, sorted by code; each code once."""
    found: dict[str, Idea] = {}
    for idea in (*catalogue.ideas(), *shared.IDEAS, *validate.IDEAS):
        if idea.code in found:
            raise ValueError(f"{idea.code} stands in two places")
        found[idea.code] = with_example(idea)
    return tuple(found[code] for code in sorted(found))


def with_example(idea: Idea) -> Idea:
    """An idea with its example, where there is one."""
    return replace(idea, before=example(idea.code, "before"), after=example(idea.code, "after"))


def example(code: str, side: str) -> str:
    """The example script of a code, ``before`` or ``after`` its migration; "" where there is none (a refusal has no after)."""
    path = files("dsmigrate.codemod") / "examples" / f"{code}.{side}.txt"
    return path.read_text(encoding="utf-8") if path.is_file() else ""
