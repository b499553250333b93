"""Which gradients there are when: between backward and step, and behind the step until they are thrown away.

The tree of events is gone through with *worlds*: what is taken for given, and which gradients are there then. A branch
that is not decided splits a world in two; worlds in which the same gradients are there become one again.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from dsmigrate.codemod.analysis.analysis import loops_around, parameters_of
from dsmigrate.codemod.analysis.analysis import under as is_under
from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Condition, atoms_of, under
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.lengths import gone_over
from dsmigrate.codemod.analysis.norms import total_norms
from dsmigrate.codemod.analysis.picks import harmless
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Choice, Const, Expr, Kind, Obj, Tensor, TensorKind, Value, each, loops_of

_ROUNDS = 8
_MOST = 24
"""Worlds of one state that are kept apart; of more, what is taken for given is forgotten."""
_DEEPEST = 10
"""Atoms that a world takes for given, at most."""

Given = frozenset[tuple[Expr, bool]]


@dataclass(frozen=True, slots=True)
class There:
    """The gradients that are there.

    ``pending``: the backwards whose gradients no step has used; ``stale``: a step has used some that are still there;
    ``clipped``: the clips and ``unscaled``: the unscalings since the last backward.
    """

    pending: frozenset[ast.AST] = frozenset()
    stale: bool = False
    clipped: frozenset[Event] = frozenset()
    unscaled: bool = False


Worlds = dict[There, set[Given]]


@dataclass(eq=False)
class Gradients:
    """What gradients may be there right before each event that has to do with gradients."""

    training: Training
    before: dict[Event, tuple[There, ...]] = field(default_factory=dict)

    def at(self, event: Event) -> tuple[There, ...]:
        """The gradients that may be there right before an event."""
        return self.before.get(event, ())

    @property
    def accumulate(self) -> bool:
        """Whether gradients of several backwards come together before a step."""
        return any(there.pending for event in self.training.backwards for there in self.at(event))

    def kept(self) -> Event | None:
        """A backward that adds to gradients which a step has used already; None where they are zeroed in between."""
        return next((event for event in self.training.backwards if any(there.stale for there in self.at(event))), None)

    def stepped_again(self) -> Event | None:
        """A step that uses gradients which another one has used already, and no others."""
        steps = self.training.steps
        return next(
            (event for event in steps if any(there.stale and not there.pending for there in self.at(event))), None
        )

    def thrown_away(self, event: Event) -> bool:
        """Whether a zeroing throws gradients away that no step has used."""
        return any(there.pending for there in self.at(event))

    def dropped_before_step(self, event: Event) -> Event | None:
        """A step that always finds nothing because a zeroing in the same block came right before it."""
        block = event.block
        steps = [
            step
            for step in self.training.steps
            if step.number > event.number and any(one is block for one in step.block.around())
        ]
        first = min(steps, key=lambda step: step.number, default=None)
        found = self.at(first) if first is not None else ()
        return first if found and all(not there.pending for there in found) else None

    def norm_calls(self) -> list[NormCall]:
        """The calls of functions that do nothing but work out the norm of all gradients that the next step uses."""
        found: list[NormCall] = []
        for block in self.training.analysis.root.blocks():
            if (
                block.kind is not BlockKind.CALL
                or block.result is None
                or any(is_under(block, one.block) for one in found)
            ):
                continue
            norms = list(total_norms(block.result))
            events = list(block.events())
            reads = tuple(event for event in events if event.kind is Happening.GRADIENT_READ)
            if not reads or any(event.kind not in _MEASURES for event in events) or not self._are_unclipped(reads):
                continue
            if (
                norms
                and all(norm.of in self.training.models and norm.picked is None for norm in norms)
                and _is_nothing_else(block.result)
            ):
                found.append(NormCall(block, reads))
        return found

    @cached_property
    def given_away(self) -> tuple[Event, ...]:
        """Calls that are not read, of what holds the model, between a backward and the step that uses its gradients."""
        training = self.training
        found = []
        for event in training.events(Happening.OPAQUE):
            things = [value for name, value in event.what.items() if name.startswith("thing")]
            if not any(training.is_model(one) or training.holds_parameters(one) for one in things):
                continue
            loop = next(iter(loops_around(event)), None)
            behind = [
                step
                for step in training.steps
                if step.number > event.number and next(iter(loops_around(step)), None) is loop
            ]
            if behind and any(there.pending for there in self.at(event)):
                found.append(event)
        return tuple(found)

    def of_zeroing(self) -> frozenset[Event]:
        """The reads that only ask whether there is a gradient to zero, in loops that do nothing else to gradients."""
        found: set[Event] = set()
        for event in self.training.events(Happening.ZERO_GRAD):
            loop = next((block for block in loops_around(event) if over_parameters(self.training, block)), None)
            inside = [one for one in loop.events() if one.kind in _KINDS] if loop is not None else []
            if all(one.kind in {Happening.GRADIENT_READ, Happening.ZERO_GRAD} for one in inside):
                found.update(one for one in inside if one.kind is Happening.GRADIENT_READ)
        return frozenset(found)

    def _are_unclipped(self, reads: tuple[Event, ...]) -> bool:
        return all(there.pending and not there.clipped for event in reads for there in self.at(event))


@dataclass(frozen=True, slots=True, eq=False)
class NormCall:
    """A call that works out the norm of all gradients, and where it reads them."""

    block: Block
    reads: tuple[Event, ...]


_MEASURES = frozenset(
    (Happening.GRADIENT_READ, Happening.MOVED, Happening.PARAMETERS, Happening.ACCESS, Happening.KIND_TEST)
)


def _is_nothing_else(value: Value) -> bool:
    """Whether a value is a norm, or nothing where no parameter has a gradient."""
    norms = set(total_norms(value))
    others = (
        [(condition, one) for condition, one in value.options if one not in norms] if isinstance(value, Choice) else []
    )
    return all(
        any(
            atom.op in {"filled", "len"} or (atom.args and isinstance(atom.args[0], Expr) and atom.args[0].op == "len")
            for atom in atoms_of(condition)
        )
        for condition, _ in others
    )


def gradients_of(training: Training) -> Gradients:
    """Go through the tree of events with what gradients there are."""
    walk = _Walk(training, Gradients(training))
    walk.block(training.analysis.root, {There(): {frozenset()}})
    return walk.found


def zeroes(training: Training, event: Event) -> bool:
    """Whether a zeroing is of all gradients of the training: by the optimizer, the model, or parameter by parameter."""
    of = event["of"]
    if training.is_optimizer(of) or training.is_wrapper(of) or zeroes_within(training, event):
        return True
    for one in each(of):
        if one in training.models:
            return True
        if (
            isinstance(one, Obj)
            and role_of(one) is Role.REPLICAS
            and any(inner in training.models for inner in each(one.own.get("module", Const(None))))
        ):
            return True
        if (
            isinstance(one, Tensor)
            and one.kind in {TensorKind.PARAMETER, TensorKind.GRADIENT}
            and one.of in training.models
        ):
            return _happens_to_all(training, event)
    return False


def zeroes_within(training: Training, event: Event) -> bool:
    """Whether a zeroing is by an optimizer that the training's holds, as LARS holds SGD."""
    held = {
        one
        for optimizer in training.optimizers
        if isinstance(optimizer, Obj)
        for value in optimizer.own.values()
        for one in each(value)
        if role_of(one) is Role.OPTIMIZER
    }
    return any(one in held for one in each(event["of"]))


def _happens_to_all(training: Training, event: Event) -> bool:
    """Whether what a loop over all parameters does at an event is done to each of them that has a gradient."""
    loops = [block for block in loops_around(event) if over_parameters(training, block)]
    inside = itertools.takewhile(lambda block: block is not loops[-1], event.block.around()) if loops else ()
    return bool(loops) and all(harmless(block.test) is TRUE for block in inside)


def over_parameters(training: Training, block: Block) -> bool:
    """Whether a loop goes over all parameters of the model, or over all that the optimizer has."""
    for one in each(block.label) if block.label is not None else ():
        if not isinstance(one, Obj):
            return False
        if one.kind is Kind.LIST and any(
            training.is_optimizer(held)
            for held in (one.data.get("groups_of"), one.data.get("params_of"))
            if held is not None
        ):
            return True
        if parameters_of(training.analysis.run, one) & training.models:
            return True
    return False


@dataclass(eq=False)
class _Walk:
    training: Training
    found: Gradients
    concerned: dict[Block, bool] = field(default_factory=dict)

    def block(self, block: Block, worlds: Worlds) -> Worlds:
        items = block.items
        index = 0
        while index < len(items):
            item = items[index]
            index += 1
            if isinstance(item, Event):
                worlds = self._happened(item, worlds)
            elif not self._concerns(item):
                continue
            elif item.kind is BlockKind.LOOP and item.node is not None:
                worlds = self._loop(item, item.node, worlds)
            elif item.kind in {BlockKind.BRANCH, BlockKind.HANDLER}:
                arms = [item]
                while index < len(items) and _is_arm(items[index], item):
                    arm = items[index]
                    assert isinstance(arm, Block)
                    arms.append(arm)
                    index += 1
                worlds = self._arms(arms, worlds)
            else:
                worlds = self.block(item, worlds)
        return worlds

    def _concerns(self, block: Block) -> bool:
        known = self.concerned.get(block)
        if known is None:
            known = self.concerned[block] = any(
                self._concerns(item) if isinstance(item, Block) else item.kind in _KINDS for item in block.items
            )
        return known

    def _loop(self, block: Block, node: ast.AST, worlds: Worlds) -> Worlds:
        if over_parameters(self.training, block) and not any(
            event in self.training.backwards for event in block.events()
        ):
            return self.block(block, worlds)  # what is done to every parameter is done to all
        concerned = (inner for inner in block.blocks() if self._concerns(inner))
        asked = {atom for inner in concerned for atom in atoms_of(inner.test) if node in atom.loops}
        first = {(atom, holds) for atom in asked if (holds := _at_first(atom, node)) is not None}
        later = {(atom, not holds) for atom, holds in first if atom.op != "==" or atom.args[0].op == "index"}
        head = _merged((there, given | first) for there, given in _all(worlds))
        for _ in range(_ROUNDS):
            end = self.block(block, head)
            behind = ((there, _next_turn(given, node) | later) for there, given in _all(end))
            joined = _merged([*_all(head), *behind])
            if joined == head:
                break
            head = joined
        last = [
            (there, given)
            for there, given in _all(end)
            if not any(not holds and _is_last(atom, block) for atom, holds in given)
        ]
        inside = set(block.events())
        is_window = not inside.isdisjoint(self.training.backwards) and inside.isdisjoint(self.training.steps)
        ways = last if is_window else [*_all(worlds), *last]  # a window has a batch
        return _merged((there, frozenset(one for one in given if node not in one[0].loops)) for there, given in ways)

    def _arms(self, arms: list[Block], worlds: Worlds) -> Worlds:
        """Each world goes into the arm that its test leads to; one that nothing decides goes into each."""
        inside: list[list[tuple[There, Given]]] = [[] for _ in arms]
        past: list[tuple[There, Given]] = []
        by_parameter = any(
            over_parameters(self.training, block) for block in arms[0].around() if block.kind is BlockKind.LOOP
        )
        for there, given in _all(worlds):
            for known, taken in _decided([arm.test for arm in arms], given, certain=by_parameter):
                (past if taken is None else inside[taken]).append((there, known))
        if isinstance(arms[0].node, ast.Call) and any(inside):  # a call of one of several things: of nothing it raises
            past = []
        ends = [
            found
            for arm, worlds_in in zip(arms, inside, strict=True)
            if worlds_in
            for found in _all(self.block(arm, _merged(worlds_in)))
        ]
        return _merged([*past, *ends])

    def _happened(self, event: Event, worlds: Worlds) -> Worlds:
        if event.kind not in _KINDS:
            return worlds
        training = self.training
        change: Callable[[There], There]
        match event.kind:
            case Happening.BACKWARD if event in training.backwards:
                change = lambda there: There(there.pending | {event.node}, there.stale, there.clipped)  # noqa: E731
            case Happening.STEP if event in training.steps:
                change = lambda there: There(stale=there.stale or bool(there.pending))  # noqa: E731
            case Happening.ZERO_GRAD if zeroes(training, event):
                change = lambda there: There()  # noqa: ARG005, E731
            case Happening.CLIP:
                change = lambda there: replace(there, clipped=there.clipped | {event})  # noqa: E731
            case Happening.UNSCALE:
                change = lambda there: replace(there, unscaled=True)  # noqa: E731
            case _:
                change = lambda there: there  # noqa: E731
        self.found.before[event] = tuple(worlds)
        return _merged((change(there), given) for there, given in _all(worlds))


_KINDS = frozenset(
    (
        Happening.BACKWARD,
        Happening.STEP,
        Happening.ZERO_GRAD,
        Happening.CLIP,
        Happening.UNSCALE,
        Happening.GRADIENT_READ,
        Happening.GRADIENT_WRITE,
        Happening.SCALE,
        Happening.SCALER_UPDATE,
        Happening.OPAQUE,
    )
)


def _is_arm(item: Event | Block, first: Block) -> bool:
    """Whether a block is another arm of the same statement."""
    return isinstance(item, Block) and item.kind is first.kind is BlockKind.BRANCH and item.node is first.node


def _all(worlds: Worlds) -> Iterator[tuple[There, Given]]:
    for there, several in worlds.items():
        for given in several:
            yield there, given


def _merged(found: Iterable[tuple[There, Given]]) -> Worlds:
    """Worlds by what is there; of two that differ in one thing taken for given that thing goes."""
    worlds: Worlds = {}
    for there, given in found:
        worlds.setdefault(there, set()).add(given)
    for there, several in worlds.items():
        pending = list(several)
        while pending:
            given = pending.pop()
            if given not in several:
                continue
            for atom, holds in given:
                if (given - {(atom, holds)}) | {(atom, not holds)} in several:
                    several -= {given, (given - {(atom, holds)}) | {(atom, not holds)}}
                    several.add(given - {(atom, holds)})
                    pending.append(given - {(atom, holds)})
                    break
        least = {one for one in several if not any(other < one for other in several)}
        worlds[there] = least if len(least) <= _MOST else {frozenset()}
    return worlds


def _decided(tests: list[Condition], given: Given, *, certain: bool) -> Iterator[tuple[Given, int | None]]:
    """Which of some arms is taken (None: no one), split by what decides it. ``certain``: what is not known is taken."""
    assumed: Mapping[Expr, bool] = dict(given)
    left = [under(test, assumed) for test in tests]
    if TRUE in left:
        yield given, left.index(TRUE)
        return
    open_ = [index for index, test in enumerate(left) if test is not FALSE]
    if not open_:
        yield given, None
        return
    atom = next((atom for index in open_ for atom in atoms_of(left[index])), None)
    if certain:
        yield given, open_[0]
    elif atom is None or len(given) >= _DEEPEST:
        yield from ((given, index) for index in open_)
        if len(tests) == 1:
            yield given, None
    else:
        for holds in (True, False):
            yield from _decided(tests, given | {(atom, holds)}, certain=certain)


def _at_first(atom: Expr, loop: ast.AST) -> bool | None:
    """What a test is in the first turn of a loop: ``i == 0`` and ``i % n == 0`` hold there, ``i`` is not true."""
    turn = atom.args[0] if atom.op == "==" and atom.args[1] == Const(0) else atom
    if turn is not atom and isinstance(turn, Expr) and turn.op == "%":
        turn = turn.args[0]
    if not isinstance(turn, Expr) or turn.op != "index" or turn.args[0] is not loop:
        return None
    begins_at_0 = len(turn.args) <= 2 or turn.args[1] == Const(0)  # else a range says where it begins
    return turn is not atom if begins_at_0 else None


def _is_last(atom: Expr, loop: Block) -> bool:
    """Whether a test asks for the last turn of a loop: ``i + 1 == len(loader)``, ``i == len(loader) - 1``."""
    if atom.op != "==" or not all(isinstance(arg, Expr) for arg in atom.args):
        return False
    for turn, count in (atom.args, atom.args[::-1]):
        shift = 0
        if turn.op == "+" and turn.args[1] == Const(1):
            turn, shift = turn.args[0], 1  # noqa: PLW2901 - the number of the turn itself
        if count.op == "-" and count.args[1] == Const(1):
            count, shift = count.args[0], shift + 1  # noqa: PLW2901
        if turn.op == "index" and turn.args[0] is loop.node and count.op == "len" and shift == 1:
            return count.args[0] in set(gone_over(loop.label))
    return False


def _next_turn(given: Given, loop: ast.AST) -> Given:
    """What is still known at the next turn of a loop: ``(i + 1) % n == 0`` has become ``i % n == 0``."""
    found = set()
    for atom, holds in given:
        shifted = _shifted(atom, loop) if loop in atom.loops else atom
        if isinstance(shifted, Expr):
            found.add((shifted, holds))
    return frozenset(found)


def _shifted(value: Value, loop: ast.AST) -> Value | None:
    match value:
        case Expr(op="+", args=(Expr(op="index") as index, Const(value=1))) if index.args[0] is loop:
            return index
        case Expr() if loop in value.loops:
            parts = [_shifted(arg, loop) if isinstance(arg, Expr | Choice) else arg for arg in value.args]
            if value.op in {"index", "counter", "each", "unknown"} or any(part is None for part in parts):
                return None
            return Expr(
                value.op,
                *parts,
                varies=value.varies,
                loops=loops_of(part for part in parts if isinstance(part, Choice)),
            )
        case Choice():
            pairs = [
                (condition, _shifted(option, loop))
                for condition, option in value.options
                if loop not in condition.loops
            ]
            options = tuple((condition, option) for condition, option in pairs if option is not None)
            return Choice(options) if len(options) == len(value.options) else None
    return value
