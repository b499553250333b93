"""Where all ranks still are before something that only some of them do, and how it is said there who does it, and when."""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dsmigrate.codemod.analysis.analysis import dividing, held_at, loops_around, may_part, under, values_at
from dsmigrate.codemod.analysis.code import Names, condition_said
from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Condition, Literal, Several, atoms_of, both
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.lengths import differs, same_for_all
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Expr, Kind, Lib, Obj, Tup, Value, each, option_of
from dsmigrate.codemod.program.module import Module, Step


@dataclass(frozen=True, slots=True)
class Meeting:
    """The statement that all ranks come to before an event. ``test``: when they have to meet, "" for always.

    ``keep`` says in code which ranks run the event; "" for the first of each node.
    """

    module: Module
    node: ast.stmt
    engine: str
    test: str
    keep: str
    by_data: bool = False
    """Whether each rank decides by data of its own."""
    when: Condition = TRUE
    """What ``test`` says, as far as it is known."""


def meeting(training: Training, event: Event) -> Meeting | None:
    """The place where all ranks are before an event, behind the engine, with a name for it; None where there is none."""
    block = parting(training, event)
    divided = block is not None
    if block is None:
        engine = training.engine_at(event)
        step = _outside_elif(event.module.step(event.node))
        if engine is not None:
            return Meeting(event.module, step.node, engine, "", "True")
        block = event.block
    while block is not None and (block.node is None or block.module is None or not training.engine_names(block.names)):
        block = next((one for one in block.around() if one is not block and one.kind is BlockKind.CALL), None)
    if block is None or block.node is None or block.module is None or not _is_behind(training, block):
        return None
    chain = [one for one in event.block.around() if any(inner is block for inner in one.around())]
    engine = training.engine_names(block.names)[0]
    step = _outside_elif(block.module.step(block.node))
    same = same_for_all(training)
    varying = [
        part
        for one in chain
        for part in _conjuncts(one.test)
        if divided and may_part(training.analysis, part, lambda test: differs(test, same))
    ]
    by_data = bool(varying) and not any(
        speaks_of_rank(atom) or not part.varies for part in varying for atom in atoms_of(part)
    )
    keep = _who(varying, block, event) if divided else "True"
    when = [
        part for one in reversed(chain) for part in _conjuncts(one.test) if part not in varying and part is not TRUE
    ]
    test = condition_said(both(*when), block.names)
    if test is None:
        written = _tested(training, block, event, same)
        parts: dict[object, str] = {}
        for one in reversed(chain):
            asked = [part for part in _conjuncts(one.test) if part in when]
            said = [text for part in asked if (text := condition_said(part, block.names)) is not None]
            texts = written.get(one, [])
            parts.update((_meant(text), text) for text in (texts if len(texts) >= len(said) else (*said, *texts)))
        test = " and ".join(f"({one})" if " or " in one and len(parts) > 1 else one for one in parts.values())
    test = "" if test == "True" else test
    return Meeting(block.module, step.node, engine, test, keep, by_data, both(*when))


def meetings(training: Training, events: Iterable[Event]) -> dict[Event, Meeting | None]:
    """The places for some events; none where ranks stop alone."""
    met = {
        event: None if is_stopping(training, event) or is_apart(training, event) else meeting(training, event)
        for event in events
    }
    return {event: _of_all_ways(training, event, met) for event in met}


def _of_all_ways(training: Training, event: Event, met: dict[Event, Meeting | None]) -> Meeting | None:
    """The place for an event: where other ways to the same line need one further out, that one."""
    found = met[event]
    for other, place in met.items():
        if (
            found is None
            or place is None
            or other.node is not event.node
            or place.node is found.node
            or dividing(other) is None
        ):
            continue
        around, others = ({step.node for inner in _chain(one) for step in _steps(inner)} for one in (event, other))
        if place.node in around:
            found = replace(found, module=place.module, node=place.node, engine=place.engine)
        elif found.node in others:  # where that way comes along, too
            found = next((one for one in _calls(training, event) if one.node not in others), found)
    return found


def _calls(training: Training, event: Event) -> Iterator[Meeting]:
    """The statements with the calls that lead to an event, from the inside out, where a name leads to the engine."""
    for block in event.block.around():
        if block.kind is BlockKind.CALL and block.node is not None and block.module is not None:
            for engine in training.engine_names(block.names)[:1]:
                yield Meeting(block.module, _outside_elif(block.module.step(block.node)).node, engine, "", "True")


def is_at_each_step(training: Training, event: Event, place: Meeting) -> bool:
    """Whether ranks meet at each step of the optimizer for an event that comes now and then."""
    stepped = {next(iter(loops_around(step)), None) for step in training.steps}
    loop = next((one for one in loops_around(event) if one in stepped), None)
    if loop is None:
        return False
    below = list(itertools.takewhile(lambda one: one is not loop, _chain(event)))
    parts = [part for one in below if isinstance(one, Block) for part in _conjuncts(one.test) if part is not TRUE]
    around = {step.node for step in place.module.step(place.node).around()} - {place.node}
    if all(any(map(speaks_of_rank, atoms_of(part))) for part in parts) or any(
        isinstance(one, Block) and one.test is not TRUE and one.node in around for one in below
    ):
        return False
    return any(
        step.node is place.node
        for one in below
        for step in itertools.takewhile(lambda step: step.node is not loop.node, _steps(one))
    )


def _chain(event: Event) -> list[Event | Block]:
    """An event and the blocks around it, from the inside out."""
    return [event, *event.block.around()]


def _steps(one: Event | Block) -> Iterator[Step]:
    """The statements around something."""
    with contextlib.suppress(KeyError):  # a whole file
        if one.module is not None and one.node is not None:
            yield from one.module.step(one.node).around()


def parting(training: Training, event: Event) -> Block | None:
    """The outermost block around an event that not all ranks may enter; what is not read may let only some through."""
    found = None
    for one in event.block.around():
        is_decorated = one.kind is BlockKind.CALL and isinstance(one.label, Obj) and "decorated" in one.label.data
        if any(under(step.block, one) for step in training.steps):
            break  # all ranks come to a step
        differ = one.test.varies and differs(one.test, same_for_all(training))
        may_differ = is_decorated or may_part(training.analysis, one.test, lambda _: False)
        if differ or (may_differ and _is_behind(training, one)):
            found = one
    return found


def is_apart(training: Training, event: Event) -> bool:
    """Whether ranks train in different arms of a branch, and those in the others do not come to the event."""
    nodes = {step.node for step in training.steps}
    for block in event.block.around():
        if block.kind is BlockKind.BRANCH and block.test.varies and block.up is not None:
            arms = [one for one in block.up.items if isinstance(one, Block) and one.node is block.node]
            reached = [{inner.node for inner in arm.events()} for arm in arms if arm is not block]
            if any(nodes & found and event.node not in found for found in reached):
                return any(under(step.block, block) for step in training.steps)
    return False


def is_stopping(training: Training, event: Event) -> bool:
    """Whether an event happens as the training went wrong, or when a signal comes: other ranks may not be there."""
    inner: Event | Block = event
    for block in event.block.around():
        if (block.kind is BlockKind.HANDLER and _is_around_training(training, block)) or _is_registered(block):
            return True
        if block.kind is BlockKind.BRANCH and _ends_rank(training, block, inner):
            return True
        inner = block
    return False


def _ends_rank(training: Training, arm: Block, inner: Event | Block) -> bool:
    """Whether a rank that comes to an arm by data of its own stops there: ``if not isfinite(loss): …; sys.exit(1)``."""
    if not may_part(training.analysis, arm.test) or any(map(speaks_of_rank, atoms_of(arm.test))):
        return False
    if any(event.kind is Happening.EXIT and event.condition is arm.condition for event in arm.events()):
        return True
    if not isinstance(arm.node, ast.If) or inner.node is None:
        return False
    bodies = (body for body in (arm.node.body, arm.node.orelse) for one in body if inner.node in ast.walk(one))
    return any(isinstance(body[-1], ast.Raise) for body in bodies)


def is_group_gone(training: Training, event: Event) -> bool:
    """Whether the process group has ended before an event, and no other was set up since."""
    required = dict.fromkeys(alive for _, alive in training.analysis.run.required)  # other runs have ended before
    ends = [
        one
        for one in training.events(Happening.GROUP_GONE)
        if one.number < event.number and both(one.condition, event.condition) is not FALSE
        if not any(both(one.condition, alive) is FALSE for alive in required)
    ]
    return bool(ends) and not any(
        ends[-1].number < one.number < event.number for one in training.events(Happening.GROUP)
    )


def _is_around_training(training: Training, handler: Block) -> bool:
    """Whether a handler catches more than the end of an iterator, of statements in which the training goes on."""
    if handler.label == Lib("builtins.StopIteration") or handler.up is None:
        return False
    return any(under(step.block, handler.up) and not under(step.block, handler) for step in training.steps)


def is_last(training: Training, event: Event) -> bool:
    """Whether an event happens in a ``finally`` around the training, where a rank that failed comes to as well."""
    places = [
        (event.module, event.node),
        *((one.module, one.node) for one in event.block.around() if one.kind is BlockKind.CALL),
    ]
    for module, node in places:
        if module is None or node is None:
            continue
        for step in module.step(node).around():
            outer = step.up.node if step.up is not None else None
            if isinstance(outer, ast.Try) and any(step.node is one for one in outer.finalbody):
                if any(block.node is outer for one in training.steps for block in one.block.around()):
                    return True
    return False


def _is_registered(block: Block) -> bool:
    """Whether a function is called as it was handed to ``signal.signal`` or ``atexit.register``."""
    node = block.node
    if block.kind is not BlockKind.CALL or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return ast.unparse(node.func) in {"signal.signal", "atexit.register"}


def _is_behind(training: Training, block: Block) -> bool:
    first = next(block.events(), None)
    return first is not None and not training.is_before(first)


def _outside_elif(step: Step) -> Step:
    """The whole ``if`` that an ``elif`` belongs to."""
    while (
        step.up is not None
        and isinstance(step.up.node, ast.If)
        and step.up.node.orelse == [step.node]
        and isinstance(step.node, ast.If)
    ):
        step = step.up
    return step


def _tested(training: Training, place: Block, event: Event, same: frozenset[Value]) -> dict[Block, list[str]]:
    """The parts of tests around an event that read the same at the place: of names that hold one thing on all ranks."""
    found: dict[Block, list[str]] = {}
    assert place.node is not None
    assert place.module is not None
    outer = place.module.step(place.node)
    inner: Event | Block = event
    for block in event.block.around():
        if (
            block.kind is BlockKind.BRANCH
            and isinstance(block.node, ast.If)
            and inner.node is not None
            and block.module is place.module
            and block.module.step(block.node).function is outer.function
            and any(inner.node in ast.walk(one) for one in block.node.body)
        ):
            stored = {
                ast.unparse(one)
                for one in ast.walk(outer.function or place.module.tree)
                if isinstance(one, ast.Name | ast.Attribute)
                and isinstance(one.ctx, ast.Store)
                and outer.node.lineno <= one.lineno < block.node.lineno
            }
            test = block.node.test
            parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
            found[block] = [
                f"({ast.unparse(one)})" if isinstance(one, ast.IfExp) else ast.unparse(one)
                for one in parts
                if _is_one(training, one, block.names, stored, same)
            ]
        if block is place:
            break
        inner = block
    return found


def _meant(test: str) -> object:
    """What two tests share that differ in the order of their parts."""
    node = ast.parse(test, mode="eval").body
    return (
        (type(node.op), frozenset(map(ast.unparse, node.values))) if isinstance(node, ast.BoolOp) else ast.unparse(node)
    )


def _is_one(training: Training, part: ast.expr, names: Names, stored: set[str], same: frozenset[Value]) -> bool:
    """Whether an expression only reads, of all ranks the same, and nothing that is stored meanwhile."""
    match part:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name() | ast.Attribute()], keywords=[]):
            return _is_one(training, part.args[0], names, stored, same)
        case ast.Name() | ast.Attribute():
            run = training.analysis.run
            held = held_at(run, names, part) or []
            if not held and isinstance(part, ast.Attribute):
                bases = values_at(run, names, part.value) or []
                held = [
                    option_of(one, part.attr) for one in bases if isinstance(one, Obj) and one.kind is Kind.NAMESPACE
                ]
            return held != [] and ast.unparse(part) not in stored and not any(differs(one, same) for one in held)
    return isinstance(part, ast.BoolOp | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Constant) and all(
        _is_one(training, one, names, stored, same) for one in ast.iter_child_nodes(part) if isinstance(one, ast.expr)
    )


def _who(varying: list[Condition], block: Block, event: Event) -> str:
    if any(is_first_of_node(part) for part in varying):
        return ""
    said = [_as_written(part, block, event) or condition_said(part, block.names) for part in varying]
    texts = [text for text in dict.fromkeys(said) if text is not None]
    return " and ".join(texts) if len(texts) == len(set(said)) == 1 else "True"


def _as_written(condition: Condition, block: Block, event: Event) -> str | None:
    """The part of the test of an ``if`` that asks an unread function, as it stands there."""
    outer = block.node
    if (
        not isinstance(outer, ast.If)
        or not isinstance(condition, Literal)
        or not any(event.node in ast.walk(one) for one in outer.body)
    ):
        return None
    parts = (
        outer.test.values if isinstance(outer.test, ast.BoolOp) and isinstance(outer.test.op, ast.And) else [outer.test]
    )
    asked = [
        sub.args[0] for sub in (condition.atom, *condition.atom.args) if isinstance(sub, Expr) and sub.op == "unknown"
    ]
    found = [part for part in parts if any(call in ast.walk(part) for call in asked)]
    return ast.unparse(found[0]) if len(found) == 1 else None


def _conjuncts(condition: Condition) -> list[Condition]:
    return sorted(condition.parts, key=str) if isinstance(condition, Several) and condition.all_of else [condition]


def is_first_of_node(condition: Condition) -> bool:
    """Whether only ranks come through that are the first of their node: ``rank == 0``, ``not local_rank``."""
    if isinstance(condition, Several):
        parts = [part for part in condition.parts if part.varies]
        return all(map(is_first_of_node, parts)) if not condition.all_of else any(map(is_first_of_node, parts))
    if not isinstance(condition, Literal):
        return False
    atom = condition.atom
    if not condition.holds:
        return _is_rank(atom)
    match atom.op, atom.args:
        case (("==" | "<="), (subject, Const(value=0 | -1))):  # -1: no launcher
            return _is_rank(subject)
        case "<", (subject, Const(value=1)):
            return _is_rank(subject)
        case "in", (subject, Const(value=tuple(values) | list(values))):
            return _is_rank(subject) and set(values) <= {-1, 0}
        case "in", (subject, Tup(items=items)):
            return _is_rank(subject) and all(one in {Const(-1), Const(0)} for one in items)
    return False


def speaks_of_rank(value: Value) -> bool:
    """Whether what a value comes from has the number of this rank in it."""
    return any(isinstance(one, Expr) and (_is_rank(one) or any(map(speaks_of_rank, one.args))) for one in each(value))


def _is_rank(value: Value) -> bool:
    if not isinstance(value, Expr) or not value.varies:
        return False
    if value.op in {"int", "%", "max"}:
        return _is_rank(value.args[0])
    return value.op in {"rank", "local_rank", "process", "env", "arg"}
