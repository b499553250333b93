"""The micro-batch: the batch size of the loader that feeds the training forward."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import implies, loops_around, name_of, static_value
from dsmigrate.codemod.analysis.classes import bases_of
from dsmigrate.codemod.analysis.code import Names, holds_by_default, said
from dsmigrate.codemod.analysis.conditions import TRUE, either, implied, options_of
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.site import Site
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Const, Expr, Obj, Value, each, forwards_in
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.languages import told

_LOADER, _BATCHES = "torch.utils.data.DataLoader", "torch.utils.data.BatchSampler"
KEY = "train_micro_batch_size_per_gpu"
IDEAS = (
    Idea(
        "MG701",
        "The micro-batch size follows the script",
        "train_micro_batch_size_per_gpu is the batch size of the training loader, from the same option or literal.",
        "The script keeps its own DataLoader and sampler; the number tells DeepSpeed the batch geometry, which it uses for "
        "throughput figures.",
        "deepspeed/runtime/config.py, _batch_assertion",
        Kind.CONVERTED,
    ),
    Idea(
        "MG702",
        "The micro-batch size is not readable from the script",
        "train_micro_batch_size_per_gpu is 1 in the config; put the real one there for correct throughput figures.",
        "With the script's own loader the number does not change the training.",
        "deepspeed/runtime/engine.py, tput_timer",
        Kind.KEPT,
    ),
)


def batch(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decision about the micro-batch size."""
    site = facts.site
    found: int | None = None
    for event in _batches(training):
        size = _size(training, event)
        if size is None:
            continue
        code = said(size, site.names) or _held_where_fetched(event, size, site.names)
        if code is not None and "get_world_size()" in code and not _has_group(training, site):
            code = None
        code = code or _told_by_loader(event, site.names)
        number = _number(static_value(training.analysis, size))
        if code is None and (number is None or not isinstance(size, Const)):
            found = found or number
            continue
        yield Decision(
            "MG701", Kind.CONVERTED, event.module, event.node, f"{KEY} = {number if isinstance(size, Const) else code}", "the training loader's batch size",
            config={KEY: Setting(size, static=number, code="" if isinstance(size, Const) else str(code))}, lines=(0, 0),
        )  # fmt: skip
        return
    message = (
        told("{key} is {found}, your option's default: change both", key=KEY, found=found)
        if found
        else told("put your batch size in {key}", key=KEY)
    )
    yield Decision(
        "MG702", Kind.KEPT, site.module, site.node, message, "the engine uses it for throughput figures only",
        config={KEY: Setting(None, static=found or 1)}, lines=(0, 0),
    )  # fmt: skip


def _told_by_loader(event: Event, names: Names) -> str | None:
    """The size as the loader tells it, where that is there already, and told by every loader that it may be."""
    fetched = event.what.get("loader")
    loaders: list[Value] = []

    def is_it(held: Value) -> bool:
        loaders[:] = each(held)
        return fetched in loaders

    name = name_of(is_it, names)
    if name is None:
        return None
    held = [one.own for one in loaders if isinstance(one, Obj) and _LOADER in bases_of(one)]
    samplers = {sampler for own in held for sampler in each(own.get("batch_sampler", NONE))} - {NONE}
    if len(held) < len(loaders) or not all(isinstance(one, Obj) and _BATCHES in bases_of(one) for one in samplers):
        return None
    if samplers:
        return f"{name}.batch_sampler.batch_size"
    return None if any(NONE in each(own.get("batch_size", Const(1))) for own in held) else f"{name}.batch_size"


def _number(static: object) -> int | None:
    if isinstance(static, float) and static.is_integer():
        static = int(static)
    return static if isinstance(static, int) and not isinstance(static, bool) and static > 0 else None


def _has_group(training: Training, site: Site) -> bool:
    """Whether every run has a process group where the engine is made."""
    made = either(*(event.condition for event in training.events(Happening.GROUP) if event.number < site.number))
    return implies(site.block.condition, made)


def _held_where_fetched(event: Event, size: Value, names: Names) -> str | None:
    """What holds a batch size in the runs that fetch such batches: ``if distributed: args.batch_size //= world_size``."""

    def is_it(held: Value) -> bool:
        there = {option for condition, option in options_of(held) if implied(condition, event.condition) is not False}
        return there == set(each(size))

    return name_of(is_it, names)


def _batches(training: Training) -> Iterator[Event]:
    """The events that fetch what the training's forwards are given: in the same loop, before the forward first."""
    behind = {(one.node, one.context) for event in training.backwards for one in forwards_in(event["loss"])}
    fetched = list(training.events(Happening.BATCH))
    for event in training.events(Happening.FORWARD):
        if (event.node, event.context) not in behind or not training.is_model(event["model"]):
            continue
        for index, loop in enumerate(loops_around(event)):
            here = [one for one in fetched if next(iter(loops_around(one)), None) is loop]
            if not here and not index:  # through code that hands the batches on
                here = [one for one in fetched if loop in loops_around(one)]
            before = [one for one in here if one.number < event.number]
            likely = [one for one in here if holds_by_default(training.analysis, one.condition)]
            yield from dict.fromkeys([*(one for one in before if one in likely), *likely, *before, *here])


def _size(training: Training, event: Event) -> Value | None:
    """The batch size behind a fetch: of a loader, of its batch sampler, of an unread factory, or of random indices."""
    loader = event["loader"]
    if loader == NONE:
        return event.what.get("size")
    samplers = options_of(loader.own.get("batch_sampler", NONE)) if isinstance(loader, Obj) else [(TRUE, NONE)]
    sizes = [(condition, _kept(training, loader if one == NONE else one)) for condition, one in samplers]
    return None if any(size == NONE for _, size in sizes) else choose(sizes)


def _kept(training: Training, thing: Value) -> Value:
    """The batch size that a loader or a batch sampler was made with."""
    if isinstance(thing, Obj):
        return thing.own.get("batch_size", NONE)
    return training.analysis.run.sizes.get(thing, NONE) if isinstance(thing, Expr) else NONE
