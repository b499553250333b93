"""Gradients that the script looks at or edits: between backward and step they are whole at ZeRO 0 only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Tensor, TensorKind, each, forwards_in
from dsmigrate.codemod.decision import Decision, Need
from dsmigrate.codemod.idioms.clips import clips_of, moved_norms
from dsmigrate.codemod.idioms.facts import Facts, by_place
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG409",
        "Gradients are read or edited",
        "p.grad between backward and step holds the averaged gradient only at ZeRO 0.",
        "At ZeRO 1-3 p.grad is None after backward: an edit or a custom clip would silently do nothing. The config is given ZeRO "
        "stage 0, where the script's own code works as before.",
        "deepspeed/runtime/zero/stage_1_and_2.py, reduce_ipg_grads",
        Kind.KEPT,
    ),
    Idea(
        "MG410",
        "Gradients are read after the step",
        "engine.step() has zeroed the gradients by then; under DDP they were still there.",
        "engine.get_global_grad_norm() gives the norm after the step; anything else has to be read before it, at ZeRO 0.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.TODO,
    ),
    Idea(
        "MG413",
        "torch.autograd.grad through the engine",
        "It stops at the first step; through the module behind the engine its numbers are those of DDP.",
        "The engine's hooks on its output and on its parameters take it for a backward of their own: an error at ZeRO 0, an "
        "IndexError in the reduction at ZeRO 2. A forward of engine.module has no such hooks on its output; what engine.backward "
        "gets has to come from the engine, though.",
        "deepspeed/runtime/zero/stage_1_and_2.py, reduce_ipg_grads; run on two processes, ZeRO 0 and 2",
        Kind.TODO,
    ),
)
_WHY = "p.grad is None after backward at ZeRO 1-3"


def looked_at(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each statement that reads or writes gradients of the model, or lets code that is not read do so."""
    moved = facts.gradients.of_zeroing().union(*(one.reads for one in moved_norms(training, facts)))
    kinds = (Happening.GRADIENT_READ, Happening.GRADIENT_WRITE)
    found = [
        event for event in training.events(*kinds) if event not in moved and training.holds_parameters(event["of"])
    ]
    gone = {inner for one in clips_of(training, facts) if one.why is None for inner in ast.walk(one.event.node)}
    places: dict[ast.stmt, list[Event]] = {}
    for event in found:
        if event.node not in gone:
            places.setdefault(event.module.step(event.node).node, []).append(event)
    for events in places.values():
        yield from _looks(facts, events)
    for event in {one.node: one for one in facts.gradients.given_away}.values():
        message = told("{what} may work on gradients here", what=_called(event))
        yield Decision(
            "MG409", Kind.KEPT, event.module, event.node, told("{message}, which works at ZeRO 0", message=message), "it is not read, and runs between backward and step", stage=0,
            needs=frozenset({Need.WHOLE_GRADIENTS}),
            otherwise=Decision("MG409", Kind.TODO, event.module, event.node, told("{message}: there are none at ZeRO 1-3", message=message), _WHY),
        )  # fmt: skip


def _called(event: Event) -> str:
    node = event.node
    return f"{event.module.text(node.func)}(…)"[:60] if isinstance(node, ast.Call) else "this call"


def _looks(facts: Facts, events: list[Event]) -> Iterator[Decision]:
    """What becomes of a statement that reads or writes gradients, before the step and behind it."""
    there = {event: facts.gradients.at(event) for event in events}
    before = next((event for event in events if any(one.pending for one in there[event])), None)
    behind = next(
        (
            event
            for event in events
            if there[event] and all(not one.pending for one in there[event]) and any(one.stale for one in there[event])
        ),
        None,
    )
    if before is not None:
        writes = any(event.kind is Happening.GRADIENT_WRITE for event in events)
        message = "p.grad is changed here" if writes else "p.grad is read here"
        yield Decision(
            "MG409", Kind.KEPT, before.module, before.node, told("{message}, which works at ZeRO 0", message=message), _WHY, stage=0,
            needs=frozenset({Need.WHOLE_GRADIENTS}),
            otherwise=Decision("MG409", Kind.TODO, before.module, before.node, told("{message}, and is None at ZeRO 1-3", message=message), _WHY),
        )  # fmt: skip
    if behind is not None:
        yield Decision(
            "MG410", Kind.TODO, behind.module, behind.node, "p.grad is read after the step, which has cleared it: read it before, at ZeRO 0",
            "engine.step() zeroes the gradients",
        )  # fmt: skip


def hooks(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Hooks on the gradients of the model's parameters."""
    for node, events in by_place(training.events(Happening.HOOK)).items():
        event = events[0]
        of = event["of"]
        if not any(
            isinstance(one, Tensor) and one.kind is TensorKind.PARAMETER for one in each(of)
        ) or not training.holds_parameters(of):
            continue
        late = event["name"] == Const("register_post_accumulate_grad_hook")
        what = "a hook on accumulated gradients" if late else "a hook on gradients"
        yield Decision(
            "MG409", Kind.KEPT, event.module, node, told("{what} runs as before at ZeRO 0", what=what), "ZeRO 1-3 take the gradients away as they arrive", stage=0,
            needs=frozenset({Need.WHOLE_GRADIENTS}),
            otherwise=Decision("MG409", Kind.TODO, event.module, node, told("{what} may find none at ZeRO 1-3", what=what), "ZeRO takes them away as they arrive"),
        )  # fmt: skip


def taken(training: Training, facts: Facts) -> Iterator[Decision]:
    """torch.autograd.grad of what the engine has computed."""
    for node, events in by_place(training.events(Happening.GRADIENT)).items():
        event = events[0]
        forwards = [one for one in forwards_in(event["outputs"]) if training.is_wrapper(one.model)]
        if not forwards or training.is_before(event):
            continue
        engine = facts.engine(event) or "engine"
        line = getattr(forwards[0].node, "lineno", 0)
        yield Decision(
            "MG413", Kind.TODO, event.module, node, told("torch.autograd.grad through the engine fails: let line {line} run {engine}.module here", line=line, engine=engine),
            "the engine's hooks take it for a backward",
        )  # fmt: skip
