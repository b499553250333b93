"""Which gradients there are when: between backward and step, and behind the step until they are thrown away."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from dsmigrate.codemod.analysis.conditions import FALSE, MAYBE, TRUE, Condition, both, either, negate, outside
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.training import Training

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class There:
    """Under which conditions gradients are there: ``pending`` no step has used them, ``stale`` a step has."""

    pending: Condition
    stale: Condition


@dataclass(eq=False)
class Gradients:
    """What gradients are there right before each backward, step, clip and zeroing of a training."""

    before: dict[Event, There] = field(default_factory=dict)

    def accumulate(self, training: Training) -> bool:
        """Whether gradients of several backwards come together before a step."""
        return any(self.before[event].pending is not FALSE for event in training.backwards if event in self.before)

    def are_kept(self, training: Training) -> bool:
        """Whether gradients that a step has used are added to: nothing zeroes them in between."""
        return any(self.before[event].stale is not FALSE for event in training.backwards if event in self.before)

    def thrown_away(self, event: Event) -> bool:
        """Whether a zeroing throws gradients away that no step has used."""
        return event in self.before and self.before[event].pending is not FALSE


def gradients_of(training: Training) -> Gradients:
    """Go through the tree of events with what gradients there are."""
    found = Gradients()
    _walk(training, training.analysis.root, There(FALSE, FALSE), TRUE, found)
    return found


def _walk(training: Training, block: Block, state: There, path: Condition, found: Gradients) -> There:
    for item in block.items:
        if isinstance(item, Event):
            state = _happened(training, item, state, path, found)
        elif item.kind is BlockKind.LOOP and isinstance(item.node, ast.AST):
            head = state
            for _ in range(_ROUNDS):
                end = _walk(training, item, head, path, found)
                back = There(_behind(head.pending, end.pending, item.node), _behind(head.stale, end.stale, item.node))
                if back == head:
                    break
                head = back
            state = head
        elif item.kind in {BlockKind.BRANCH, BlockKind.HANDLER}:
            state = _walk(training, item, state, both(path, item.test), found)
        else:
            state = _walk(training, item, state, path, found)
    return state


def _behind(head: Condition, end: Condition, loop: ast.AST) -> Condition:
    """What holds at the head of a loop: what held before it, or at the end of a turn."""
    left = outside(end, loop)
    return head if left is FALSE else left if head is FALSE else either(head, left) if left is not MAYBE else MAYBE


def _happened(training: Training, event: Event, state: There, path: Condition, found: Gradients) -> There:
    match event.kind:
        case Happening.BACKWARD if event in training.backwards:
            found.before[event] = _and(state, path)
            return There(either(state.pending, path), both(state.stale, negate(path)))
        case Happening.STEP if event in training.steps:
            found.before[event] = _and(state, path)
            return There(both(state.pending, negate(path)), either(state.stale, path))
        case Happening.ZERO_GRAD if training.is_optimizer(event["of"]) or training.is_model(event["of"]):
            found.before[event] = _and(state, path)
            return There(both(state.pending, negate(path)), both(state.stale, negate(path)))
        case Happening.CLIP:
            found.before[event] = _and(state, path)
    return state


def _and(state: There, path: Condition) -> There:
    return There(both(state.pending, path), both(state.stale, path))


def before_of(gradients: Gradients) -> Mapping[Event, There]:
    """What was there before each event."""
    return gradients.before
