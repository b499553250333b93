"""The trainings of a script: a model that is wrapped and trained, its optimizer, and where the engine is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from dsmigrate.codemod.analysis.analysis import (
    Analysis,
    implies,
    nearest_common,
    owner,
    parameters_of,
    paths_to,
    raw_models,
    things,
    under,
    wrappers,
)
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.machine import Moment
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.values import Const, Obj, Value, each, forwards_in
from dsmigrate.codemod.program.module import Module


@dataclass(frozen=True, slots=True)
class Site:
    """Where the engine is made: behind ``node``, or in the place of the wrap ``wrap`` where the optimizer is there already.

    ``target`` is what is bound to the engine, ``model`` and ``optimizer`` what it is made of, as they are said there.
    ``number``: events up to that one come before the engine.
    """

    module: Module
    node: ast.stmt
    target: str
    model: str
    optimizer: str
    names: tuple[Mapping[str, Value], ...]
    number: int
    wrap: Event | None
    block: Block


@dataclass(eq=False)
class Training:
    """One training: the wraps of its model, the models in them, the optimizers that step it, and its events."""

    analysis: Analysis
    wraps: tuple[Event, ...]
    models: frozenset[Value]
    backwards: tuple[Event, ...]
    steps: tuple[Event, ...]
    optimizers: frozenset[Value]
    runs: tuple[Training, ...] = ()
    """The same text run from several places (a worker that is spawned, or called alone), each by itself."""

    @cached_property
    def wrappers(self) -> frozenset[Obj]:
        """The wrapper objects of the model."""
        return frozenset(one for event in self.wraps for one in wrappers(event["wrapper"]))

    @cached_property
    def modules(self) -> dict[str, Module]:
        """The files that the training's events stand in."""
        return {event.module.path: event.module for event in self.analysis.events}

    def is_wrapper(self, value: Value) -> bool:
        """Whether a value may be the wrapped model."""
        return any(one in self.wrappers for one in each(value))

    def is_model(self, value: Value) -> bool:
        """Whether a value may be the model, wrapped or not, or a part of it."""
        return self.is_wrapper(value) or any(owner(one) in self.models for one in things(value))

    def is_optimizer(self, value: Value) -> bool:
        """Whether a value may be the optimizer of the model."""
        return any(one in self.optimizers for one in each(value))

    def events(self, *kinds: Happening) -> Iterator[Event]:
        return self.analysis.of(*kinds)

    # -- the engine ----------------------------------------------------------------------------------------------

    @cached_property
    def site(self) -> Site | str:
        """Where the engine is made; a sentence that says why there is no such place."""
        if not self.runs:
            return _site(self)
        sites = [run.site for run in self.runs]
        return next((site for site in sites if isinstance(site, str)), sites[0])

    def is_before(self, event: Event) -> bool:
        """Whether an event comes before the engine is made."""
        if not self.runs:
            return isinstance(self.site, Site) and event.number <= self.site.number
        common = nearest_common(self.wraps)
        here = _child_with(common, event) if under(event.block, common) else None
        run = next((run for run in self.runs if _child_with(common, run.wraps[0]) is here), self.runs[0])
        return run.is_before(event)

    def engine_at(self, event: Event) -> str | None:
        """How the engine is called at an event; None where no name there leads to it."""
        found = paths_to(event.names, set(self.wrappers))
        return found[0] if found else None

    def place_with(self, wanted: set[Value]) -> tuple[Moment, str, str] | None:
        """The first place behind the engine where names lead to it and to one of some things, with both."""
        site = self.site
        if not isinstance(site, Site):
            return None
        for moment in sorted(self.analysis.run.moments.values(), key=lambda one: one.number):
            if moment.node is not site.node and _last_number(self.analysis, moment.node, moment) <= site.number:
                continue
            engine, other = self.engine_names(moment.names), paths_to(moment.names, wanted)
            if engine and other:
                return moment, engine[0], other[0]
        return None

    def engine_names(self, names: tuple[Mapping[str, Value], ...]) -> list[str]:
        """Every way to say the engine at a place with some names."""
        return paths_to(names, set(self.wrappers))


def trainings(analysis: Analysis) -> list[Training]:
    """The trainings of a script, in the order of their wraps; a wrapped model that nothing trains is none."""
    run = analysis.run
    groups: list[tuple[set[Value], list[Event]]] = []
    for event in analysis.of(Happening.WRAP):
        if not any(isinstance(one, Obj) and role_of(one) is Role.WRAPPER for one in each(event["wrapper"])):
            continue
        models = raw_models(run, event["module"])
        group = next((group for group in groups if group[0] & models), None)
        if group is None:
            groups.append((models, [event]))
        else:
            group[0].update(models)
            group[1].append(event)
    found = []
    for models, wraps in groups:
        wrapped = {one for event in wraps for one in wrappers(event["wrapper"])}
        backwards = tuple(
            event
            for event in analysis.of(Happening.BACKWARD)
            if any(forward.model in wrapped or owner(forward.model) in models for forward in forwards_in(event["loss"]))
        )
        if not backwards:
            continue
        optimizers = {
            one
            for event in analysis.of(Happening.MADE)
            if event["role"] == Const("optimizer") and parameters_of(run, event["params"]) & models
            for one in things(event["what"])
        }
        steps = tuple(
            event for event in analysis.of(Happening.STEP) if any(one in optimizers for one in each(event["optimizer"]))
        )
        stepped = {one for event in steps for one in each(event["optimizer"]) if one in optimizers}
        found.append(
            Training(analysis, tuple(wraps), frozenset(models), backwards, steps, frozenset(stepped or optimizers))
        )
    return _joined([one for one in found if one.optimizers] or found)


def _joined(found: list[Training]) -> list[Training]:
    """One training where the same text wraps a model in several runs of its function: a worker that is also called alone."""
    joined: dict[frozenset[ast.AST], Training] = {}
    for one in found:
        key = frozenset(event.node for event in one.wraps)
        other = joined.get(key)
        joined[key] = one if other is None else Training(
            one.analysis, other.wraps + one.wraps, other.models | one.models, other.backwards + one.backwards,
            other.steps + one.steps, other.optimizers | one.optimizers, (*(other.runs or (other,)), one),
        )  # fmt: skip
    return list(joined.values())


def _site(training: Training) -> Site | str:
    """The place behind both the wrap and the optimizer, on the way to every backward."""
    analysis = training.analysis
    made = [
        event
        for event in analysis.of(Happening.MADE)
        if event["role"] == Const("optimizer") and any(one in training.optimizers for one in each(event["what"]))
    ]
    if not made:
        return "the optimizer of the wrapped model is not made where it can be seen"
    first = min(training.backwards, key=lambda event: event.number)
    events = [*training.wraps, *made]
    block = nearest_common(events)
    while (
        block.up is not None
        and not under(first.block, block)
        and not (block.kind in _WHOLE and implies(first.condition, block.condition))
    ):
        block = block.up
    last = max(events, key=lambda event: event.number)
    item = _child_with(block, last)
    node = _statement_in(block, item)
    if node is None:
        return "the wrap and the optimizer are made where no statement can stand behind both"
    module = last.module if item is last else _module_at(block, item, last)
    step = module.step(node)
    moment = _moment(analysis, step.node, item, block)
    if moment is None:
        return "what is bound behind the wrap and the optimizer cannot be seen"
    return _named_site(training, module, step.node, moment, last, made, block)


_WHOLE = frozenset({BlockKind.CALL, BlockKind.ENTRY, BlockKind.SPAWNED, BlockKind.MODULE, BlockKind.LOOP})
"""Blocks at the end of which what was bound in them is bound on all ways through them."""


def _child_with(block: Block, event: Event) -> Block | Event:
    """The item of a block that an event is in."""
    item: Block | Event = event
    for one in event.block.around():
        if one is block:
            return item
        item = one
    return item


def _statement_in(block: Block, item: Block | Event) -> ast.AST | None:
    del block
    return item.node


def _module_at(block: Block, item: Block | Event, event: Event) -> Module:
    """The file that an item of a block stands in: that of the call around it."""
    module = item.module if item.module is not None else event.module
    assert module is not None
    return module


def _moment(analysis: Analysis, node: ast.stmt, item: Block | Event, block: Block) -> Moment | None:
    """What was so right behind a statement, in the run of its function that the block is of."""
    del item
    found = [moment for (statement, _), moment in analysis.run.moments.items() if statement is node]
    exact = [moment for moment in found if moment.block is block]
    return (exact or found)[-1] if found else None


def _named_site(
    training: Training, module: Module, node: ast.stmt, moment: Moment, last: Event, made: list[Event], block: Block
) -> Site | str:
    names = moment.names
    target = next(iter(paths_to(names, set(training.wrappers))), None)
    optimizer = next(iter(paths_to(names, set(training.optimizers))), None)
    if target is None:
        return "no name leads to the wrapped model where the optimizer is there too"
    if optimizer is None:
        return "no name leads to the optimizer where the wrapped model is there too"
    in_place = _in_place(training, node, last, made, block)
    number = _last_number(training.analysis, node, moment)
    if in_place is not None:
        number = in_place.number
    return Site(module, node, target, target, optimizer, names, number, in_place, block)


def _in_place(training: Training, node: ast.stmt, last: Event, made: list[Event], block: Block) -> Event | None:
    """The wrap that the engine takes the place of: the one wrap there is, behind the optimizer, by itself, on all ways."""
    if last not in training.wraps or len({event.node for event in training.wraps}) != 1:
        return None
    if any(event.number > last.number for event in made) or last.module.step(last.node).node is not node:
        return None
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is not last.node:
        return None
    del block
    return last


def _last_number(analysis: Analysis, node: ast.stmt, moment: Moment) -> int:
    """The number of the last event of a statement."""
    inside = {one for one in ast.walk(node)}
    numbers = [
        event.number
        for event in analysis.events
        if any(block.node in inside for block in event.block.around()) or event.node in inside
    ]
    del moment
    return max(numbers, default=0)


def stays_wrapped(analysis: Analysis, trained: list[Training]) -> list[Event]:
    """The wraps of models that nothing trains."""
    known = {event for training in trained for event in training.wraps}
    return [
        event
        for event in analysis.of(Happening.WRAP)
        if event not in known
        and any(isinstance(one, Obj) and role_of(one) is Role.WRAPPER for one in each(event["wrapper"]))
    ]
