"""Which statements all ranks reach, and which only some do."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.measured import is_measured
from dsmigrate.codemod.steps.rank_tests import asks_for_rank, names_rank, splits_ranks
from dsmigrate.codemod.steps.reaching import leads_to_backward
from dsmigrate.codemod.steps.sites import find_backward, find_steps
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_FIRST_ONLY = re.compile(
    r"rank(?:\(\w*\))?\s*==\s*0|\bnot\s[\w.]*rank\b|is_main|is_master|main_process|master_process|is_primary|is_chief|is_root|"
    r"is_global_zero",
    re.IGNORECASE,
)

_COUNTER = re.compile(
    r"^(?!\w*writer)(?:__name__|\w*(?:epoch|step|iter|idx|index|batch_i|num|count|update)s?\w*|(?:\w+_)?(?:it|ep)s?(?:_\w+)?|i|j|k|n|e|t|self|args|opt|opts|cfg|config|conf|"
    r"hparams|params|FLAGS|len|True|False|None|int|math|\w*(?:interval|freq|every|total|max|last|loader|dataloader)\w*)$",
    re.IGNORECASE,
)


_FOR_SOME = re.compile(r"rank_?(?:zero|0)|(?:zero|master|main|primary|root|chief|rank0)\w*_only|only_?(?:on|for)?_?(?:master|main|rank)", re.IGNORECASE)  # fmt: skip


def rank_guard(plan: Plan, statement: Statement) -> Statement | None:
    """The outermost ``if`` around a statement that lets only some ranks in."""
    found = None
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If) and asks_for_rank(plan, outer.node.test, outer.function):
            found = outer
    return found


def reached_by_all(plan: Plan, statement: Statement, depth: int) -> list[Statement] | None:
    """The statements around this one, in its function or in those that call it, that all ranks reach with an engine.

    None where one of the ways to the statement has no such place.
    """
    places = asked_at(plan, statement, depth)
    return None if places is None else [anchor for _, anchor in places]


def asked_at(plan: Plan, statement: Statement, depth: int) -> list[tuple[Statement, Statement]] | None:
    """As ``reached_by_all``, each place with the statement in it that leads to this one."""
    ways = ways_of_others(plan, statement)
    if depth == 0 or any(isinstance(way, cst.Break) for way, _ in ways):
        return None
    left = any(not isinstance(way, cst.Continue) for way, _ in ways)
    guard = _outermost_doubt(plan, statement)
    function = statement.function
    calls = plan.flow.callers.get(function, ()) or calls_by_name(plan, function)
    callers = [plan.tree.statement(call) for call in calls]
    guarded_call = _is_called_under_guard(plan, function, depth + 2)
    anchor = guard if guard is not None else statement
    early = plan.site is not None and function is plan.site.function and anchor.order <= plan.site.order
    lost = left or early or isinstance(statement.node, cst.Return)  # nothing comes behind a `return`
    further = (
        lost
        or guarded_call
        or (guard is None and _is_saver(function))
        or plan.engine_name(function) is None
        or _is_called_in_doubt(plan, function, depth + 2)
    )
    if not further:
        return [(statement, _up_to(anchor, [inner.block for _, inner in ways if inner is not None]))]
    if not callers:
        return None if lost or plan.engine_name(function) is None else [(statement, anchor)]
    found: list[tuple[Statement, Statement]] = []
    for caller in callers:
        inner = asked_at(plan, caller, depth - 1)
        if inner is None:
            return None
        found.extend(inner)
    return found


def some_ranks_only(plan: Plan, statement: Statement) -> bool:
    """Whether only some ranks come to a statement, by a guard of a caller or because the others have left by then."""
    return bool(ways_of_others(plan, statement, measured=False)) or _is_called_under_guard(plan, statement.function, 4)


def _is_called_under_guard(plan: Plan, function: Function, depth: int) -> bool:
    """Whether a call of a function, or of one that calls it, stands where only some ranks come."""
    if depth == 0 or (plan.site is not None and function is plan.site.function):
        return False
    for call in plan.flow.callers.get(function, ()) or calls_by_name(plan, function):
        caller = plan.tree.statement(call)
        if rank_guard(plan, caller) is not None or ways_of_others(plan, caller):
            return True
        if any(isinstance(o.node, cst.If) and lets_rank_zero_in(plan, o.node.test, caller) for o in caller.enclosing()):
            return True
        if caller.function is not function and _is_called_under_guard(plan, caller.function, depth - 1):
            return True
    return False


def _is_called_in_doubt(plan: Plan, function: Function, depth: int) -> bool:
    """Whether a call of a function, or of one that calls it, may be passed over on some ranks (``if loss < best:``).

    What leads to a backward pass runs on all ranks, as they average their gradients there.
    """
    if depth == 0 or (plan.site is not None and function is plan.site.function) or leads_training(plan, function):
        return False
    return any(
        _outermost_doubt(plan, caller) is not None
        or (caller.function is not function and _is_called_in_doubt(plan, caller.function, depth - 1))
        for caller in map(plan.tree.statement, plan.flow.callers.get(function, ()) or calls_by_name(plan, function))
    )


def leads_training(plan: Plan, function: Function) -> bool:
    """Whether a function leads to a backward pass."""
    found: set[Function] | None = plan.facts.get("training_functions")
    if found is None:
        queue = [plan.function_of(call) for call in find_backward(plan)]
        found = plan.facts["training_functions"] = set(queue)
        while queue:
            more = {plan.function_of(call) for call in plan.flow.callers.get(queue.pop(), ())} - found
            found |= more
            queue += more
    return function in found


def ways_of_others(plan: Plan, statement: Statement, *, measured: bool = True) -> list[tuple[Node, Statement | None]]:
    """The ``return`` of ``if rank != 0: return`` above a statement, or ``continue``, ``break``, each with its ``if``.

    The others alone go on. With ``measured`` also where a rank leaves by a metric of its own, which no rank does in front of a
    step of the training. A decorator such as ``@rank_zero_only`` lets only some in, too.
    """
    function = statement.function.node
    for decorator in function.decorators if isinstance(function, cst.FunctionDef) else ():
        if _FOR_SOME.search(plan.code(decorator.decorator)):
            return [(decorator, None)]
    blocks = {outer.block for outer in (statement, *statement.enclosing())}
    above = [
        other
        for other in plan.tree.statements
        if other.block in blocks and other.last_order < statement.order and isinstance(other.node, cst.If)
    ]
    ways = [
        (way.node, way.up)
        for way in (plan.tree.statements if above else ())
        if way.up in above and isinstance(way.node, cst.Return | cst.Continue | cst.Break)
    ]
    return [(way, test) for way, test in ways if _parts_ranks(plan, way, test, statement, measured=measured)]


def _parts_ranks(plan: Plan, way: Node, guard: Statement | None, statement: Statement, *, measured: bool) -> bool:
    """Whether only some ranks leave by the way out under an ``if``."""
    assert guard is not None
    assert isinstance(guard.node, cst.If)
    if asks_for_rank(plan, guard.node.test, guard.function):
        return True
    if not measured or isinstance(way, cst.Break) or not is_measured(plan, guard.node.test, guard.function):
        return False
    training = (*find_backward(plan), *find_steps(plan))
    lines = [plan.tree.statement(call) for call in training]
    return not any(line.function is guard.function and guard.order < line.order < statement.order for line in lines)


def since(plan: Plan, anchor: Statement) -> Statement | None:
    """The first ``if`` above a statement by whose ``continue`` only some ranks go on with the loop around both."""
    guards = [
        guard for way, guard in ways_of_others(plan, anchor) if guard is not None and isinstance(way, cst.Continue)
    ]
    return min(guards, key=lambda guard: guard.order, default=None)


def _up_to(statement: Statement, blocks: list[Node]) -> Statement:
    """The statement around one that stands in the outermost of some blocks, or itself."""
    return [outer for outer in (statement, *statement.enclosing()) if outer is statement or outer.block in blocks][-1]


def lets_rank_zero_in(plan: Plan, test: Node, statement: Statement) -> bool:
    """Whether a test lets only some ranks in: by its words, or as it asks for what differs, or what only rank 0 made."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return any(lets_rank_zero_in(plan, side, statement) for side in (test.left, test.right))
    if isinstance(test, cst.BooleanOperation):
        return False
    if _FIRST_ONLY.search(plan.code(test)):
        return True
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        is_not = isinstance(test.comparisons[0].operator, cst.IsNot)
        test = test.left if is_not and dotted(test.comparisons[0].comparator) == "None" else test
    if not isinstance(test, cst.Name | cst.Attribute):
        return False
    function = statement.function
    return splits_ranks(plan, test, function) or _is_made_at_rank_zero(plan, test, function, 4)


def _is_made_at_rank_zero(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    """``x = None`` and an assignment under ``if rank == 0``."""
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    made = [binding for binding in bindings if dotted(binding.value) != "None"]
    for value, statement in ((b.value, b.statement) for b in made):
        if isinstance(value, cst.Name | cst.Attribute):
            if depth and _is_made_at_rank_zero(plan, value, statement.function, depth - 1):
                return True
        elif len(made) < len(bindings):
            tests = [plan.code(o.node.test) for o in statement.enclosing() if isinstance(o.node, cst.If)]
            if any(_FIRST_ONLY.search(test) for test in tests):
                return True
    return False


def calls_by_name(plan: Plan, function: Function) -> list[cst.Call]:
    """Calls that may run a method of an object that came by a way not followed: those of any ``x.name(…)``."""
    if function.owner is None:
        return []
    return [
        call
        for call in plan.tree.calls
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value == function.name
        and plan.flow.callee(call) is None
        and not plan.imports.meanings((dotted(call.func) or "").partition(".")[0], plan.function_of(call))
    ]


def _is_saver(function: Function) -> bool:
    return bool(re.search(r"save|checkpoint|ckpt|snapshot|dump|store", function.name, re.IGNORECASE))


def _outermost_doubt(plan: Plan, statement: Statement) -> Statement | None:
    """The outermost enclosing ``if`` that may go another way on another rank."""
    doubt, looped = None, False
    site = plan.site
    for outer in statement.enclosing():
        if site is not None and outer.function is site.function and outer.order < site.anchor.order <= outer.last_order:
            break
        looped = looped or _may_train(outer.node)
        if isinstance(outer.node, cst.If) and (
            lets_rank_zero_in(plan, outer.node.test, outer)
            or not (looped or is_uniform(plan, outer.node.test))
            or (looped and _lets_some_save(plan, outer, outer.node.test))
        ):
            doubt = outer
    while (
        doubt is not None
        and doubt.up is not None
        and isinstance(doubt.up.node, cst.If)
        and doubt.up.node.orelse is doubt.node
    ):
        doubt = doubt.up
    return doubt


def _lets_some_save(plan: Plan, guard: Statement, test: Node) -> bool:
    """Whether a test of a metric stands around loops that train nothing, as one over the names of files."""
    return is_measured(plan, test, guard.function) and not leads_to_backward(plan, guard)


def _may_train(node: Node) -> bool:
    """Whether a statement is a loop, and none over things that are written there, as the names of two files."""
    if isinstance(node, cst.For):
        return not isinstance(node.iter, cst.Tuple | cst.List | cst.Set | cst.Dict)
    return isinstance(node, cst.While)


def is_uniform(plan: Plan, test: Node) -> bool:
    """Whether a test is made of counters, options and constants only, which all ranks share."""
    if names_rank(plan, test):
        return False
    for sub in descendants(test):
        if isinstance(sub, cst.Attribute) and sub.attr.value in _attributes_of_rank(plan):
            return False
        if isinstance(sub, cst.Attribute) and is_measured(plan, sub, plan.function_of(sub)):
            return False
        if isinstance(sub, cst.Call) and dotted(sub.func) not in ("len", "int", "max", "min", "getattr", "hasattr"):
            return False
        if isinstance(sub, cst.Name) and not _is_attribute_name(plan, sub):
            where = plan.tree.statement(sub)
            if not _COUNTER.match(sub.value) or lets_rank_zero_in(plan, sub, where):
                return False
            if is_measured(plan, sub, where.function):
                return False
    return True


def _attributes_of_rank(plan: Plan) -> set[str]:
    """The names of attributes that somewhere get a value with the rank in it, or one under a test of the rank.

    More than differ are no harm: a save behind their tests is asked of all ranks, and does nothing where none requested one.
    """
    found: set[str] | None = plan.facts.get("attributes_of_rank")
    if found is None:
        found = plan.facts["attributes_of_rank"] = set()
        for statement in plan.tree.statements:
            node = statement.node
            targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else []
            names = {target.attr.value for target in targets if isinstance(target, cst.Attribute)}
            if names and isinstance(node, cst.Assign) and _depends_on_rank(plan, node.value, statement):
                found |= names
    return found


def _depends_on_rank(plan: Plan, value: Node, statement: Statement) -> bool:
    tests = [outer.node.test for outer in statement.enclosing() if isinstance(outer.node, cst.If)]
    return any(asks_for_rank(plan, part, statement.function) for part in (value, *tests))


def _is_attribute_name(plan: Plan, node: cst.Name) -> bool:
    parent = plan.tree.parent.get(node)
    return isinstance(parent, cst.Attribute) and parent.attr is node
