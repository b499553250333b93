"""Every idiom, and every code with its documentation."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

from dsmigrate.codemod import idioms
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.checkpoint import files
from dsmigrate.codemod.idioms.clipping import measured, norm
from dsmigrate.codemod.idioms.config import batch
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.idioms.launch import group
from dsmigrate.codemod.idioms.loop import backward, gradients, step, windows, zeroing
from dsmigrate.codemod.idioms.model import arguments, handed, unwrap, wrap
from dsmigrate.codemod.idioms.optimizer import zero
from dsmigrate.codemod.idioms.precision import regions, scaler
from dsmigrate.codemod.model import Idea

Idiom: TypeAlias = Callable[[Training, Facts], Iterator[Decision]]

IDIOMS: tuple[Idiom, ...] = (
    group.group,
    wrap.wrap,
    wrap.replicas,
    wrap.others,
    wrap.repeated,
    arguments.arguments,
    handed.handed,
    unwrap.unwrap,
    unwrap.kind_tests,
    unwrap.modes,
    backward.backward,
    step.step,
    step.adding_up,
    step.alone,
    zeroing.zeroing,
    gradients.looked_at,
    gradients.hooks,
    gradients.taken,
    windows.windows,
    windows.no_sync,
    norm.clip,
    measured.measured,
    regions.regions,
    scaler.scaler,
    zero.untested,
    files.files,
    batch.batch,
)


@cache
def ideas() -> tuple[Idea, ...]:
    """The codes of all idioms, sorted; a code that stands twice is an error of the project."""
    found: dict[str, Idea] = {}
    for info in pkgutil.walk_packages(idioms.__path__, f"{idioms.__name__}."):
        for idea in getattr(importlib.import_module(info.name), "IDEAS", ()):
            if idea.code in found:
                raise ValueError(f"{idea.code} stands in two idioms")
            found[idea.code] = idea
    return tuple(found[code] for code in sorted(found))
