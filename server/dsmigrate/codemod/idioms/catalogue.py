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
from dsmigrate.codemod.idioms.checkpoint import directories, files
from dsmigrate.codemod.idioms.clipping import measured, norm
from dsmigrate.codemod.idioms.config import batch, optimizer, precision, stage
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.idioms.launch import alone, environment, forked, group, options, ranks
from dsmigrate.codemod.idioms.loop import backward, gradients, step, windows, zeroing
from dsmigrate.codemod.idioms.model import (
    arguments,
    beside,
    buffers,
    compiled,
    copies,
    early,
    handed,
    hooks,
    inputs,
    keys,
    parameters,
    stage3,
    starts,
    unwrap,
    weights,
    wrap,
)
from dsmigrate.codemod.idioms.optimizer import frozen, layers, pieces, redundancy, zero
from dsmigrate.codemod.idioms.precision import apex, native, regions, scaler
from dsmigrate.codemod.idioms.precision import weights as kinds_of_weights
from dsmigrate.codemod.idioms.refusals import backwards, kinds, several
from dsmigrate.codemod.model import Idea

Idiom: TypeAlias = Callable[[Training, Facts], Iterator[Decision]]

REFUSALS: tuple[Idiom, ...] = (
    several.models,
    several.optimizers,
    kinds.kinds,
    backwards.backwards,
    backwards.closures,
    backwards.steps,
)
"""Those that look at a training before the place of the engine is known."""

IDIOMS: tuple[Idiom, ...] = (
    group.group,
    ranks.ranks,
    options.local_rank,
    environment.address,
    environment.visible_devices,
    forked.forked,
    alone.alone,
    alone.on_cpu,
    wrap.wrap,
    wrap.replicas,
    wrap.others,
    wrap.repeated,
    arguments.arguments,
    handed.handed,
    keys.keys,
    buffers.buffers,
    hooks.hooks,
    inputs.inputs,
    parameters.odd,
    parameters.late,
    compiled.compiled,
    copies.copies,
    early.early,
    copies.whole,
    copies.parameters,
    weights.writes,
    starts.starts,
    stage3.partitioned,
    beside.past,
    beside.members,
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
    native.native,
    kinds_of_weights.weights,
    apex.apex,
    zero.untested,
    frozen.groups,
    redundancy.redundancy,
    layers.layers,
    pieces.pieces,
    files.files,
    files.pickled,
    directories.directories,
    batch.batch,
    precision.asked,
    optimizer.in_config,
    stage.first_update,
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
