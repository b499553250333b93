"""Zeroed gradients: engine.step() zeroes what it used; what no step used is dropped by ``drop_gradients``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import loops_around
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.gradients import over_parameters, zeroes, zeroes_within
from dsmigrate.codemod.analysis.holdings import outsiders
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const
from dsmigrate.codemod.decision import Decision, Need
from dsmigrate.codemod.idioms.facts import Facts, by_place, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Remove, ReplaceStatement
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG403",
        "zero_grad goes",
        "engine.step() zeroes the gradients itself.",
        "A zero_grad beside the step, or before the first backward of a step, clears what is already clear.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.CONVERTED,
    ),
    Idea(
        "MG408",
        "zero_grad that throws gradients away",
        "A zero_grad behind a backward that no step followed drops what has been accumulated; it becomes drop_gradients(engine).",
        "At ZeRO 1 and 2 gradients are kept outside of p.grad, where zero_grad of the script's optimizer does not reach.",
        "deepspeed/runtime/zero/stage_1_and_2.py, zero_grad",
        Kind.CONVERTED,
    ),
)


def zeroing(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that zeroes gradients of the model."""
    for node, events in by_place(training.events(Happening.ZERO_GRAD)).items():
        ours = [event for event in events if zeroes(training, event)]
        event = events[0]
        if ours:
            yield from _whole(facts, node, ours, others=len(events) > len(ours) and not _of_nothing(facts, events))
        elif training.holds_parameters(event["of"]) or training.is_model(event["of"]):
            pending = any(there.pending for one in events for there in facts.gradients.at(one))
            if pending:
                yield _of_part(event)


def _whole(facts: Facts, node: ast.AST, events: list[Event], *, others: bool) -> Iterator[Decision]:
    event = events[0]
    module = event.module
    own, place = module.step(node).node, _outermost(facts.training, event)
    text = _short(module.text(place))
    if any(facts.gradients.thrown_away(one) for one in events):
        engine = facts.engine(event)
        if engine is None or others or not (place is not own or is_statement(event)):
            yield Decision(
                "MG408",
                Kind.TODO,
                module,
                node,
                "call ds_compat.drop_gradients(engine) here",
                "the engine keeps gradients that no step used",
            )
            return
        yield Decision(
            "MG408", Kind.CONVERTED, module, place, f"{text} → ds_compat.drop_gradients({engine})", "the engine keeps gradients that no step used",
            edits=(ReplaceStatement(module, place, ((f"ds_compat.drop_gradients({engine})",),)),), parts=frozenset({"drop_gradients"}),
        )  # fmt: skip
        if any(facts.gradients.dropped_before_step(one) for one in events):
            yield Decision(
                "MG408", Kind.TODO, module, node, "gradients are dropped between backward and step here: nothing is trained", "the step finds none",
            )  # fmt: skip
        return
    if others or any(zeroes_within(facts.training, one) for one in events):
        # it zeroes something else in another call, or in the optimizer's own class: to do it twice does no harm
        return
    if any(_has_outsiders(facts.training, one) for one in events):
        yield Decision(
            "MG403", Kind.KEPT, module, node, told("{code} stays: it clears another module's gradients too", code=text), "the engine clears its module's alone",
        )  # fmt: skip
        return
    if place is not own or is_statement(event) or isinstance(place, ast.Assign):
        yield Decision(
            "MG403", Kind.CONVERTED, module, place, told("{code} removed", code=text), "engine.step() zeroes the gradients",
            edits=(Remove(module, place),),
        )  # fmt: skip


def _has_outsiders(training: Training, event: Event) -> bool:
    """Whether an optimizer is zeroed that has parameters of other modules."""
    return training.is_optimizer(event["of"]) and any(
        outsiders(training, made["params"])
        for made in training.events(Happening.MADE)
        if made["role"] == Const("optimizer") and training.is_optimizer(made["what"])
    )


def _of_nothing(facts: Facts, events: list[Event]) -> bool:
    """Whether the other things that are zeroed there are other runs of the same: their optimizer is not seen."""
    return all(facts.training.is_optimizer(event["of"]) or zeroes(facts.training, event) for event in events)


def _of_part(event: Event) -> Decision:
    message, reason = (
        "gradients of a part of the model are cleared before the step",
        "p.grad is None after backward at ZeRO 1-3",
    )
    return Decision(
        "MG408", Kind.KEPT, event.module, event.node, message, reason, stage=0, needs=frozenset({Need.WHOLE_GRADIENTS}),
        otherwise=Decision("MG408", Kind.TODO, event.module, event.node, told("{message}: this does nothing at ZeRO 1-3", message=message), reason),
    )  # fmt: skip


def _outermost(training: Training, event: Event) -> ast.stmt:
    """The statement that does nothing but zero: a loop over all parameters, where the zeroing is in one."""
    module = event.module
    own = module.step(event.node).node
    loops = [block.node for block in loops_around(event) if block.module is module and over_parameters(training, block)]
    outer = loops[-1] if loops else None
    if not isinstance(outer, ast.For):
        return own
    cleared = {module.step(one.node).node for one in training.events(Happening.ZERO_GRAD) if one.module is module}
    inside = [one for one in ast.walk(outer) if isinstance(one, ast.stmt)]
    return (
        outer
        if all(isinstance(one, ast.For | ast.If | ast.Continue) or one in cleared or _detaches(one) for one in inside)
        else own
    )


def _detaches(statement: ast.stmt) -> bool:
    """``p.grad.detach_()``, which prepares a zeroing."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in {"detach_", "requires_grad_"}
    )


def _short(text: str) -> str:
    first, _, rest = text.partition("\n")
    return f"{first} …" if rest else first
