"""The trainings of a script: a model that is wrapped and trained, its optimizer, and where the engine is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from dsmigrate.codemod.analysis.analysis import (
    Analysis,
    modules_of,
    nearest_common,
    parameters_of,
    paths_to,
    raw_models,
    things,
    under,
    values_at,
    wrappers,
)
from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Condition, both, either
from dsmigrate.codemod.analysis.events import Block, Event, Happening
from dsmigrate.codemod.analysis.machine import Moment
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.site import Site, child_with, find_site, is_call_of, is_engine_there, last_number
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.values import UNBOUND, Const, Expr, Obj, Value, each, forwards_in, owner
from dsmigrate.codemod.program.module import Module


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

    @cached_property
    def left_wrapped(self) -> tuple[Event, ...]:
        """The wraps of models that nothing trains."""
        known = {event for training in trainings(self.analysis) for event in training.wraps}
        return tuple(
            event for event in self.events(Happening.WRAP) if event not in known and wrappers(event["wrapper"])
        )

    @cached_property
    def replicas(self) -> frozenset[Value]:
        """The DataParallel objects that hold the model in other runs of the script."""
        return frozenset(
            one
            for event in self.events(Happening.WRAP)
            for one in each(event["wrapper"])
            if isinstance(one, Obj)
            and role_of(one) is Role.REPLICAS
            and raw_models(self.analysis.run, event["module"]) & self.models
        )

    def is_wrapped(self, value: Value) -> bool:
        """Whether a value may be the model in one of its wrappers, DataParallel too."""
        return any(one in self.wrappers or one in self.replicas for one in each(value))

    def is_copy(self, value: Value) -> bool:
        """Whether a value may be a copy of the model that was made with its wrapper."""
        return any(isinstance(one, Obj) and one.data.get("copy_of") in self.wrappers for one in each(value))

    def is_plain_copy(self, value: Value) -> bool:
        """Whether a value may be a copy of the model that was made without its wrapper."""
        copied = {
            one.data.get("copy_of") if isinstance(one, Obj) else one.args[0]
            for one in each(value)
            if isinstance(one, Obj) or (isinstance(one, Expr) and one.op == "copy")
        }
        return bool(copied & self.models)

    def values_at(self, event: Event, expression: ast.expr) -> list[Value]:
        """What a name, or attributes of one, may be at an event; nothing for any other expression."""
        return values_at(self.analysis.run, event.names, expression) or []

    def is_named_wrapper(self, event: Event, expression: ast.expr) -> bool:
        """Whether an expression may lead to the wrapped model at an event, on this way or another."""
        return any(self.is_wrapped(one) for one in values_at(self.analysis.run, event.names, expression) or ())

    def says_engine(self, event: Event, expression: ast.expr) -> bool | None:
        """Whether an expression is the engine at an event of the converted script, whatever wrapped the model there."""
        found = values_at(self.analysis.run, event.names, expression)
        of = event.what.get("of", UNBOUND)
        if not any(self.is_wrapped(one) for one in ([of] if found is None else found)):
            return False
        return self.has_engine(event, expression)

    def is_wrapper(self, value: Value) -> bool:
        """Whether a value may be the wrapped model."""
        return any(one in self.wrappers for one in each(value))

    @cached_property
    def parts(self) -> frozenset[Value]:
        """The models and every module that they hold."""
        return frozenset().union(*(modules_of(self.analysis.run, model) for model in self.models))

    def is_model(self, value: Value) -> bool:
        """Whether a value may be the model, wrapped or not, or a part of it."""
        return self.is_wrapper(value) or any(owner(one) in self.parts for one in things(value))

    def holds_parameters(self, value: Value) -> bool:
        """Whether parameters of the model may be in a value."""
        return bool(parameters_of(self.analysis.run, value) & self.parts)

    def is_optimizer(self, value: Value) -> bool:
        """Whether a value may be the optimizer of the model."""
        return any(one in self.optimizers for one in each(value))

    def events(self, *kinds: Happening) -> Iterator[Event]:
        """The events of some kinds, in order."""
        return self.analysis.of(*kinds)

    def is_alone(self, place: Event | Block) -> bool:
        """Whether something is in a run without a wrapper, of a model that the same lines make an engine of."""
        if any(both(place.condition, one.condition) is not FALSE for one in self.wraps):
            return False
        return any(both(place.condition, way) is not FALSE for way in self._ways)

    @cached_property
    def _ways(self) -> frozenset[Condition]:
        """When the function that makes the engine is called."""
        site = self.site
        if not isinstance(site, Site):
            return frozenset()
        home = site.module.step(site.node).function
        blocks = self.analysis.root.blocks()
        return frozenset({TRUE} if home is None else (one.condition for one in blocks if is_call_of(one, home)))

    # -- the engine ----------------------------------------------------------------------------------------------

    @cached_property
    def site(self) -> Site | str:
        """Where the engine is made; a sentence that says why there is no such place."""
        if not self.runs:
            return find_site(self)
        sites: list[Site] = []
        for run in self.runs:
            if isinstance(run.site, str):
                return run.site
            sites.append(run.site)
        nodes = {site.node for site in sites}
        return next((site for site in sites if nodes <= set(ast.walk(site.node))), sites[0])  # the one behind all

    def is_before(self, event: Event) -> bool:
        """Whether no engine is there yet at an event, or none is made on the way to it."""
        return self.has_engine(event) is False

    def has_engine(self, event: Event, expression: ast.expr | None = None) -> bool | None:
        """Whether ``expression``, which leads to the wrapped model at an event, leads to the engine; None for maybe."""
        if not self.runs:
            return is_engine_there(self.site, event, expression) if isinstance(self.site, Site) else True
        common = nearest_common(self.wraps)
        here = child_with(common, event) if under(event.block, common) else None
        run = next((run for run in self.runs if child_with(common, run.wraps[0]) is here), self.runs[0])
        return run.has_engine(event, expression)

    def engine_at(self, event: Event) -> str | None:
        """How the engine is called at an event; None where no name there leads to it."""
        found = paths_to(event.names, set(self.wrappers))
        return found[0] if found else None

    def place_with(self, wanted: set[Value]) -> tuple[Moment, str, str] | None:
        """The first place behind the engine where names lead to it and to one of some things, with both.

        One in the function that makes the engine comes before all others.
        """
        site = self.site
        if not isinstance(site, Site):
            return None
        found: list[tuple[Moment, str, str]] = []
        made = (event for event in self.events(Happening.MADE) if any(one in wanted for one in each(event["what"])))
        last = max((event.number for event in made), default=0)
        for moment in sorted(self.analysis.run.moments.values(), key=lambda one: one.number):
            number, inside = last_number(moment.node, moment), set(ast.walk(moment.node))
            is_around = any(block.node in inside for block in site.block.around()) and number >= site.number
            if (moment.node is not site.node and not is_around and number <= site.number) or number < last:
                continue
            engine, other = self.engine_names(moment.names), paths_to(moment.names, wanted)
            if engine and other:
                found.append((moment, engine[0], other[0]))
        function = site.module.step(site.node).function
        return next(
            (
                one
                for one in found
                if one[0].module is site.module and one[0].module.step(one[0].node).function is function
            ),
            found[0] if found else None,
        )

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
        group = next((group for group in groups if group[0] & models and not _is_other_run(event, group[1])), None)
        if group is None:
            groups.append((models, [event]))
        else:
            group[0].update(models)
            group[1].append(event)
    found = []
    for models, wraps in groups:
        wrapped = {one for event in wraps for one in wrappers(event["wrapper"])}
        parts = set().union(*(modules_of(run, model) for model in models))
        backwards = tuple(
            event
            for event in analysis.of(Happening.BACKWARD)
            if "engine" not in event.what  # which trains a model of its own
            and any(forward.model in wrapped or owner(forward.model) in parts for forward in forwards_in(event["loss"]))
        )
        if not backwards:
            continue
        last = max(event.number for event in backwards)
        trained = {forward.model for event in backwards for forward in forwards_in(event["loss"])}
        if any(one in trained for one in wrapped):  # else the wrapper is not followed to the loss
            wraps[:] = [wrap for wrap in wraps if wrap.number < last or trained & set(wrappers(wrap["wrapper"]))]
        made = [event for event in analysis.of(Happening.MADE) if event["role"] == Const("optimizer")]
        if any(others is not wraps and models & shared for shared, others in groups):  # each run of the text by itself
            ways = either(*(event.condition for event in wraps))
            backwards = tuple(event for event in backwards if both(event.condition, ways) is not FALSE)
            made = [event for event in made if both(event.condition, ways) is not FALSE]
        held = {event: parameters_of(run, event["params"]) for event in made}
        optimizers = {one for event in made if held[event] & parts for one in things(event["what"])}
        if not optimizers:  # whose parameters cannot be told: those that step where this model is trained
            loose = {one for event in made if not held[event] for one in things(event["what"])}
            common = nearest_common([*wraps, *backwards])
            here = {
                one
                for event in analysis.of(Happening.STEP)
                if under(event.block, common)
                for one in each(event["optimizer"])
            }
            optimizers = loose & here or loose
        steps = tuple(
            event for event in analysis.of(Happening.STEP) if any(one in optimizers for one in each(event["optimizer"]))
        )
        stepped = {one for event in steps for one in each(event["optimizer"]) if one in optimizers}
        found.append(
            Training(analysis, tuple(wraps), frozenset(models), backwards, steps, frozenset(stepped or optimizers))
        )
    return _joined([one for one in found if one.optimizers] or found)


def _is_other_run(event: Event, wraps: list[Event]) -> bool:
    """Whether the same text wraps the model in runs of which only one can be: a worker that is spawned, or called alone."""
    return any(event.node is one.node and both(event.condition, one.condition) is FALSE for one in wraps)


def _joined(found: list[Training]) -> list[Training]:
    """One training where the same text wraps a model in several runs of its function: a worker that is also called alone."""
    joined: dict[frozenset[ast.AST], Training] = {}
    for one in found:
        nodes = frozenset(event.node for event in one.wraps)
        key = next((key for key in joined if key & nodes), nodes)
        other = joined.pop(key, None)
        joined[key | nodes] = one if other is None else Training(
            one.analysis, other.wraps + one.wraps, other.models | one.models, other.backwards + one.backwards,
            other.steps + one.steps, other.optimizers | one.optimizers, (*(other.runs or (other,)), one),
        )  # fmt: skip
    return list(joined.values())
