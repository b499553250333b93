"""Which clips of a script the engine does in its place, and why it does not do the others."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from dsmigrate.codemod.analysis.analysis import nearest_common, within
from dsmigrate.codemod.analysis.code import condition_said, said
from dsmigrate.codemod.analysis.conditions import (
    FALSE,
    TRUE,
    Condition,
    Literal,
    Several,
    both,
    either,
    literals_of,
    negate,
    under,
)
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.gradients import zeroes
from dsmigrate.codemod.analysis.holdings import holds_all
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import FALSE_VALUE, NONE, TRUE_VALUE, Const, Obj, Tensor, TensorKind, Value, each
from dsmigrate.codemod.idioms.behind import Measured, behind_step
from dsmigrate.codemod.idioms.facts import Facts, constant, given_at, is_statement
from dsmigrate.codemod.program.arms import is_in_old_form
from dsmigrate.codemod.program.edits import Edit, Template
from dsmigrate.codemod.program.module import Module


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip of the model's gradients, with the step behind it; ``why`` it stays: the code that says so, and a sentence."""

    event: Event
    step: Event | None
    condition: Condition
    why: tuple[str, str] | None

    @property
    def is_library(self) -> bool:
        """Whether a library's object clips, within a call that does more."""
        return "library" in self.event.what


def clips_of(training: Training, facts: Facts) -> list[Clip]:
    """Every clip of gradients of the model."""
    found = []
    for event in training.events(Happening.CLIP):
        if not training.holds_parameters(event["params"]) and holds_all(training, event["params"]) is not True:
            continue
        steps = [step for step in training.steps if any(event in there.clipped for there in facts.gradients.at(step))]
        step = steps[0] if steps else None
        found.append(
            Clip(
                event,
                step,
                event.condition if step is None else _relative(event, step),
                _why_not(training, facts, event, step),
            )
        )
    return found


def _relative(event: Event, step: Event) -> Condition:
    """Under which condition a clip comes before its step, where that is made."""
    common = nearest_common([event, step])
    own, its = within(event, common), within(step, common)
    if own is its:
        return TRUE
    parts = (
        own.parts - (its.parts if isinstance(its, Several) and its.all_of else {its})
        if isinstance(own, Several) and own.all_of
        else {own}
    )
    return under(both(*parts), {literal.atom: literal.holds for literal in literals_of(its)})


def _why_not(training: Training, facts: Facts, event: Event, step: Event | None) -> tuple[str, str] | None:
    if step is None:
        return "MG423", "no step uses what it clips"
    if any(isinstance(one, Tensor) and one.kind is TensorKind.PARAMETER for one in each(event["params"])):
        return "MG423", "it clips each parameter by itself"
    if any(event in there.clipped for backward in training.backwards for there in facts.gradients.at(backward)):
        return "MG423", "gradients are added to what it clipped"
    if constant(event["by_value"]) is not False:
        return "MG423", "it clips each number by itself"
    if constant(event["norm"]) != 2:
        return "MG423", "it uses another norm than the second"
    if holds_all(training, event["params"]) is False:
        return "MG423", "it clips some parameters only"
    if event.what.get("raises", FALSE_VALUE) not in {FALSE_VALUE, NONE}:
        return "MG423", "it stops at a norm that is not finite"
    if _looked_at(training, facts, event):
        return "MG423", "the gradients are looked at between the clip and the step"
    if said(event["limit"], facts.site.names) is None:
        return "MG424", "its limit is not known where the engine is made"
    return None


def is_behind(facts: Facts, clip: Clip) -> bool:
    """Whether a clip finds only gradients that a step has used."""
    there = facts.gradients.at(clip.event)
    return clip.step is None and bool(there) and all(not one.pending for one in there)


def _looked_at(training: Training, facts: Facts, event: Event) -> bool:
    """Whether gradients are read or written between a clip and the step behind it."""
    kinds = (Happening.GRADIENT_READ, Happening.GRADIENT_WRITE, Happening.ZERO_GRAD)
    seen = [
        one for one in training.events(*kinds) if training.holds_parameters(one["of"]) or training.is_model(one["of"])
    ]
    seen = [one for one in seen if one.kind is not Happening.ZERO_GRAD or not zeroes(training, one)]
    return any(
        event in there.clipped for one in (*seen, *facts.gradients.given_away) for there in facts.gradients.at(one)
    )


def limit_of(training: Training, facts: Facts, found: list[Clip]) -> Value | None:
    """The limit that the engine clips by in the place of all clips; None where it cannot follow."""
    found = [one for one in found if not is_behind(facts, one)]
    if not found or any(one.why is not None for one in found):
        return None
    by_value: dict[Value, list[Condition]] = {}
    for step in training.steps:
        own = [
            (one.condition, one.event["limit"])
            for one in found
            if any(one.event in there.clipped for there in facts.gradients.at(step))
        ]
        by_value.setdefault(_at_step(own), []).append(_of_run(step.condition, facts))
    runs = [(either(*conditions), value) for value, conditions in by_value.items()]
    if any(both(one, other) is not FALSE for index, (one, _) in enumerate(runs) for other, _ in runs[:index]):
        return None
    value = runs[0][1] if len(runs) == 1 else choose(runs)
    return value if said(value, facts.site.names) is not None else None


def _at_step(clips: list[tuple[Condition, Value]]) -> Value:
    """The limit at one step: that of the clips which come before it, 0.0 where none does."""
    whole = next((limit for condition, limit in clips if condition is TRUE or _is_about(condition, limit)), None)
    if whole is not None:
        return whole
    return choose([*clips, (negate(either(*(condition for condition, _ in clips))), Const(0.0))])


def _of_run(condition: Condition, facts: Facts) -> Condition:
    """The part of a condition that a run decides once, where the engine is made."""
    parts = [literal for literal in literals_of(condition) if not literal.loops and not literal.varies]
    return both(*(literal for literal in parts if condition_said(literal, facts.site.names) is not None))


def _is_about(condition: Condition, limit: Value) -> bool:
    """Whether a condition only asks whether there is a limit: ``if clip:``, ``if clip > 0``, ``if clip is not None``."""
    if not isinstance(condition, Literal):
        return False
    atom = condition.atom
    if atom == limit:
        return condition.holds
    if atom.op in {"<", "<="} and atom.args[0] in _ZEROES and atom.args[1] == limit:
        return condition.holds
    return (
        not condition.holds
        and atom.op in {"==", "is"}
        and atom.args[0] == limit
        and atom.args[1] in {*_ZEROES, Const(None)}
    )


_ZEROES = frozenset((Const(0), Const(0.0)))


def is_scaled(training: Training, facts: Facts, clip: Clip) -> bool:
    """Whether what a clip sees may carry a gradient scaler's scale."""
    scaled = {
        event.node
        for event in training.backwards
        for one in each(event["loss"])
        if isinstance(one, Tensor)
        and isinstance(one.scaler, Obj)
        and one.scaler.own.get("enabled", TRUE_VALUE) != FALSE_VALUE
    }
    return any(there.pending & scaled and not there.unscaled for there in facts.gradients.at(clip.event))


def limit_code(event: Event) -> ast.expr:
    """The expression of a clip's limit where it is called."""
    node = event.node
    assert isinstance(node, ast.Call)
    return next(
        (found for name in ("max_norm", "clip_value", "value", "clip_grad") if (found := given_at(node, 99, name))),
        None,
    ) or (node.args[1] if len(node.args) > 1 else node)


def other_modes(event: Event) -> Template:
    """The test that a clip is by norm, where an option says by what it is."""
    mode, node = event.what.get("mode"), event.node
    if mode is None or mode == Const("norm") or not isinstance(node, ast.Call):
        return ()
    code = given_at(node, 2, "mode")
    return () if code is None else ("assert ", code, ' == "norm"')


@dataclass(frozen=True, slots=True)
class Moved:
    """Norms that are taken of the engine behind a step: how, and of which clips and calls."""

    step: Event
    engine: str
    edits: tuple[Edit, ...]
    nodes: frozenset[ast.AST]
    reads: frozenset[Event]


def moved_norms(training: Training, facts: Facts) -> list[Moved]:
    """The statements that measure the norm of all gradients, by a clip or by a function of the script, before a step."""
    clips = clips_of(training, facts)
    clipped = limit_of(training, facts, clips) is not None
    places: list[tuple[ast.AST, Event, Event, Module, frozenset[Event]]] = [
        (one.event.node, one.event, one.step, one.event.module, frozenset())
        for one in clips
        if clipped and one.step is not None and not one.is_library and not is_statement(one.event)
    ]
    for call in facts.gradients.norm_calls():
        step = next((step for step in training.steps if step.number > call.reads[-1].number), None)
        if (
            step is not None
            and call.block.node is not None
            and call.block.module is not None
            and (clipped or not clips)
        ):
            places.append((call.block.node, call.reads[-1], step, call.block.module, frozenset(call.reads)))
    by_step: dict[ast.AST, list[tuple[ast.AST, Event, Event, Module, frozenset[Event]]]] = {}
    for place in places:
        by_step.setdefault(place[2].node, []).append(place)
    found = []
    for several in by_step.values():
        step = several[0][2]
        engine = facts.engine(step)
        measured = _measured(several)
        if engine is None or not measured:
            continue
        quiet = not any(
            several[0][1].number < event.number < step.number and event.kind in _LOUD
            for event in training.analysis.events
        )
        is_done = all(is_in_old_form(one.module, one.node) for one in measured)  # by another script's conversion
        code = f"ds_compat.grad_norm({engine})"
        edits = () if is_done else behind_step(measured, step, engine, code, quiet=quiet)
        if edits is not None:
            reads = frozenset().union(*(place[4] for place in several))
            found.append(Moved(step, engine, edits, frozenset(place[0] for place in several), reads))
    return found


_LOUD = frozenset((
    Happening.RATE_WRITE, Happening.SCHEDULE, Happening.GRADIENT_WRITE, Happening.WEIGHT_WRITE, Happening.WEIGHT_READ, Happening.BUFFER_WRITE,
    Happening.OPAQUE, Happening.SAVE, Happening.STATE, Happening.RESTORE, Happening.FORWARD, Happening.BACKWARD, Happening.ZERO_GRAD,
    Happening.COPY, Happening.THAW, Happening.SCALER_UPDATE,
))  # fmt: skip
"""What must not happen after a step that came before it."""


def _measured(places: list[tuple[ast.AST, Event, Event, Module, frozenset[Event]]]) -> list[Measured]:
    """The assignments of norms; none where one of them is taken otherwise."""
    found: dict[ast.AST, Measured] = {}
    for node, _, _, module, _ in places:
        statement = module.step(node).node
        if not isinstance(statement, ast.Assign) or statement.value is not node or len(statement.targets) != 1:
            return []
        if not isinstance(statement.targets[0], ast.Name | ast.Attribute):
            return []
        found[statement] = Measured(module, statement, module.text(statement.targets[0]))
    return list(found.values())
