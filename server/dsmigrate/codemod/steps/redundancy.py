"""MG610: ZeroRedundancyOptimizer becomes the optimizer that it shards; sharding is the engine's business."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from dsmigrate.codemod.bindings import UNKNOWN
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.makers import REDUNDANCY_OWN, is_partial, redundancy_parameter
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import REDUNDANCY_NAMES
from dsmigrate.codemod.steps.sites import mark_twins, short
from dsmigrate.codemod.tree import Function, Node, Statement
from dsmigrate.codemod.values import settled

IDEAS = (
    Idea(
        "MG610",
        "ZeroRedundancyOptimizer becomes the optimizer it shards",
        "The class it was given is made plainly, with the same arguments; the config gets ZeRO stage 1 unless another is "
        "asked for, and consolidate_state_dict goes.",
        "ZeroRedundancyOptimizer gives each rank some of the parameters to update, and broadcasts them after the step; its "
        "arguments beyond its own go to the class that it makes. ZeRO stage 1 shards the same state inside of the engine. "
        "Both at once would shard what is sharded. Trained beside the original on two processes the losses are the same at "
        "ZeRO 0 to 3. engine.save_checkpoint writes the shard of every rank, so that nothing has to be consolidated. A "
        "process group of its own, overlap_with_ddp (which does not update in the first steps), and subclasses are refused "
        "with MG903.",
        "torch/distributed/optim/zero_redundancy_optimizer.py; tests/e2e, zero_redundancy",
        Kind.CONVERTED,
    ),
)
_CLASS = "ZeroRedundancyOptimizer"
_WORLD = ("group.WORLD", "GroupMember.WORLD")


@dataclass(slots=True)
class _Making:
    """A call that makes the optimizer, ``partial`` or not, and what it becomes."""

    call: cst.Call
    partial: bool
    made: Node
    """The class that it is given."""
    dropped: list[cst.Arg] = field(default_factory=list)
    elements: list[tuple[cst.Dict, cst.BaseDictElement]] = field(default_factory=list)
    """What goes from a dictionary that is handed over with ``**``."""


def run(plan: Plan) -> None:
    """Make the inner optimizer in its place; raises ``RefusedError`` where that would be something else."""
    named = _uses(plan)
    if not named:
        return
    plan.facts["sharded_state"] = True
    known: set[Node] = set()
    for call in plan.tree.calls:
        partial = is_partial(plan.flow, call) and call.args[0].value in named
        if call.func in named or partial:
            _convert(plan, _read(plan, call, partial=partial))
            known.add(call.args[0].value if partial else call.func)
    _consolidations(plan)
    for node in named:
        if node not in known:
            _other_use(plan, node)
    for read in _local_optimizers(plan):
        plan.todo("MG610", read, f"{short(plan.code(read))}: the optimizer is a plain one now, and has no other inside",
                  "ZeroRedundancyOptimizer kept this rank's part of it there")  # fmt: skip


def _uses(plan: Plan) -> list[Node]:
    """Every place in code that names the class; imports and annotations do not count."""
    aliases = {
        local
        for meanings in plan.imports.by_part.values()
        for local, full in meanings.items()
        if full & REDUNDANCY_NAMES
    }
    found: list[Node] = []
    for node, statement in plan.tree.statement_of.items():
        if isinstance(node, cst.Attribute):
            candidate = node.attr.value == _CLASS
        else:
            candidate = isinstance(node, cst.Name) and node.value in aliases
        if not candidate or isinstance(statement.node, cst.Import | cst.ImportFrom):
            continue
        parent = plan.tree.parent.get(node)
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            continue
        if not plan.imports.names(node) & REDUNDANCY_NAMES:
            continue
        if not any(isinstance(outer, cst.Annotation) for outer in plan.tree.ancestors(node)):
            found.append(node)
    return found


def _refused(plan: Plan, where: Node | Statement, message: str, reason: str) -> Exception:
    return plan.refuse("MG903", where, f"ZeroRedundancyOptimizer {message}", reason)


# -- reading -------------------------------------------------------------------------------------------------------


def _read(plan: Plan, call: cst.Call, *, partial: bool) -> _Making:
    """What a call is given, with everything checked that decides about the training."""
    args = list(call.args[1:] if partial else call.args)
    if partial and any(arg.keyword is None for arg in args):
        raise _refused(plan, call, "gets positional arguments through functools.partial", "they cannot be told apart")
    if any(arg.star == "*" for arg in args):
        raise _refused(plan, call, "gets its arguments through a star", "the class that it makes is not seen")
    making = _Making(call, partial, call)
    given: dict[str, Node] = {}
    for position, arg in enumerate(args):
        name = redundancy_parameter(position, arg)
        if name is not None:
            given[name] = arg.value
            making.dropped.append(arg)
        elif arg.star:
            _read_spread(plan, making, arg, given)
    made = given.get("optimizer_class")
    if made is None:
        raise _refused(plan, call, "is given no optimizer_class that can be seen", "it makes an object of that class")
    making.made = made
    _check(plan, call, given)
    return making


def _read_spread(plan: Plan, making: _Making, arg: cst.Arg, given: dict[str, Node]) -> None:
    """``**options``: what of it is the sharding's own goes from the dictionary."""
    function = plan.function_of(making.call)
    place = plan.flow.place(arg.value, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    value = arg.value if isinstance(arg.value, cst.Dict) else bindings[0].value if len(bindings) == 1 else None
    if isinstance(arg.value, cst.Name) and _are_the_class_own(plan, arg.value.value, function):
        return
    entries = _entries(value)
    if entries is None or value is None:
        plan.todo("MG610", making.call, f"take {', '.join(REDUNDANCY_OWN[1:])} out of {plan.code(arg.value)}, if they are in it",
                  "these are ZeroRedundancyOptimizer's own; any other class raises a TypeError for them")  # fmt: skip
        return
    for name, entry in entries.items():
        if name not in REDUNDANCY_OWN:
            continue
        given[name] = entry.value
        if isinstance(value, cst.Dict) and isinstance(entry, cst.DictElement):
            making.elements.append((value, entry))
            if name != "optimizer_class" or dotted(entry.value) is not None:
                continue
        raise _refused(
            plan, making.call, f"gets {name} through {plan.code(arg.value)}", "it cannot be moved from there"
        )


def _are_the_class_own(plan: Plan, name: str, function: Function) -> bool:
    """Whether ``**name`` are the function's own keyword arguments, and no call in sight gives one of the sharding's."""
    star = function.node.params.star_kwarg if isinstance(function.node, cst.FunctionDef) else None
    calls = plan.flow.callers.get(function, [])
    if star is None or star.name.value != name or not calls:
        return False
    given = [arg for call in calls for arg in call.args]
    return not any(arg.star or (arg.keyword is not None and arg.keyword.value in REDUNDANCY_OWN) for arg in given)


def _entries(value: Node | None) -> dict[str, cst.DictElement | cst.Arg] | None:
    """The entries of ``{"a": …}`` or ``dict(a=…)``; None where they cannot be seen."""
    if isinstance(value, cst.Dict):
        found: dict[str, cst.DictElement | cst.Arg] = {}
        for element in value.elements:
            if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                return None
            found[str(element.key.evaluated_value)] = element
        return found
    if isinstance(value, cst.Call) and dotted(value.func) == "dict":
        if any(arg.keyword is None for arg in value.args):
            return None
        return {arg.keyword.value: arg for arg in value.args if arg.keyword is not None}
    return None


def _check(plan: Plan, call: cst.Call, given: dict[str, Node]) -> None:
    """Refuse what ZeRO does otherwise than ZeroRedundancyOptimizer."""
    function = plan.function_of(call)
    group = given.get("process_group")
    if group is not None and not is_whole_world(group):
        raise _refused(plan, call, "shards over a process group of its own", "the engine shards over all ranks")
    overlap = given.get("overlap_with_ddp")
    if overlap is not None and settled(plan, overlap, function) is not False:
        raise _refused(
            plan,
            call,
            "steps inside of DDP's communication (overlap_with_ddp)",
            "its first two or three steps update nothing; the engine's do, and it has no such hook",
        )
    made = given["optimizer_class"]
    name = (dotted(made) or "").rpartition(".")[2]
    if "Functional" in name or settled(plan, made, function) is not UNKNOWN:
        raise _refused(plan, call, f"is given {plan.code(made)}", "that is no class of optimizers an engine can step")


def is_whole_world(group: Node) -> bool:
    """Whether an expression names the group of all ranks: None, ``dist.group.WORLD``, ``new_group()`` of no ranks."""
    if isinstance(group, cst.Call):
        last = (dotted(group.func) or "").rpartition(".")[2]
        return last in ("new_group", "_get_default_group") and argument(group, 0, "ranks") is None
    text = dotted(group) or ""
    return text == "None" or text.endswith(_WORLD)


# -- rewriting -----------------------------------------------------------------------------------------------------


def _convert(plan: Plan, making: _Making) -> None:
    call, text = making.call, plan.code(making.made)
    if not isinstance(making.made, cst.Name | cst.Attribute | cst.Call | cst.Subscript):
        text = f"({text})"
    dropped = [call.args.index(arg) for arg in making.dropped]
    plan.edits.replace(call, lambda node: _plain(node, text, dropped, partial=making.partial))
    for owner in {id(owner): owner for owner, _ in making.elements}.values():
        gone = [owner.elements.index(entry) for known, entry in making.elements if known is owner]
        plan.edits.replace(owner, lambda node, gone=gone: _without(node, gone))  # type: ignore[misc]
        plan.converted("MG610", owner, "what belonged to the sharding goes", "sharding is the engine's")
    plan.facts.setdefault("sharded", {})[call] = making.made
    statement = plan.tree.statement(call)
    mark_twins(plan, statement)
    plan.converted("MG610", statement, f"ZeroRedundancyOptimizer → {short(plan.code(making.made))}, made plainly",
                   "sharding is the engine's: ZeRO stage 1 shards the same state")  # fmt: skip
    asked = plan.options.zero_stage
    if asked is not None and asked > 1:
        plan.kept("MG610", statement, f"ZeRO stage {asked} was asked for, which shards more than the optimizer state",
                  "ZeroRedundancyOptimizer shards what stage 1 shards")  # fmt: skip


def at_stage_zero(plan: Plan) -> None:
    """Say, once the stage is settled, that nothing shards the state any more; sought by what was made plainly."""
    chosen = "was asked for" if plan.options.zero_stage == 0 else "is in the config, for what else the script needs"
    for call in plan.facts.get("sharded", ()) if plan.zero_stage == 0 else ():
        plan.kept("MG610", call, f"ZeRO stage 0 {chosen}: every rank holds the whole optimizer state, which was sharded before",
                  "stage 1 shards it; the losses are the same")  # fmt: skip


def _plain(node: Node, text: str, dropped: list[int], *, partial: bool) -> Node:
    """The call without the arguments of the sharding, of the class itself (or a ``partial`` of it)."""
    assert isinstance(node, cst.Call)
    args = [arg for position, arg in enumerate(node.args) if position not in dropped]
    if args and args[-1] is not node.args[-1]:  # the last one brings the layout of the closing parenthesis
        last = node.args[-1]
        args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    made = cst.parse_expression(text)
    if partial:
        args[0] = args[0].with_changes(value=made)
        return node.with_changes(args=args)
    return node.with_changes(func=made, args=args)


def _without(node: Node, gone: list[int]) -> Node:
    assert isinstance(node, cst.Dict)
    elements = [element for position, element in enumerate(node.elements) if position not in gone]
    if elements and elements[-1] is not node.elements[-1]:
        elements[-1] = elements[-1].with_changes(comma=node.elements[-1].comma)
    return node.with_changes(elements=elements)


def _consolidations(plan: Plan) -> None:
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "consolidate_state_dict":
            continue
        statement = plan.tree.statement(call)
        if isinstance(statement.node, cst.Expr) and statement.node.value is call:
            plan.edits.remove(statement.node)
        else:
            plan.edits.replace(call, "None")
        plan.converted("MG610", statement, "consolidate_state_dict goes: engine.save_checkpoint writes what each rank holds",
                       "a plain optimizer has no such method")  # fmt: skip


def _other_use(plan: Plan, node: Node) -> None:
    """The class where it is not called: tests of types, base classes, values."""
    statement = plan.tree.statement(node)
    tests = [n for n in plan.tree.ancestors(node) if isinstance(n, cst.Call) and dotted(n.func) == "isinstance"]
    if not tests:
        what = "has a subclass here" if isinstance(statement.node, cst.ClassDef) else "is used as a value here"
        raise _refused(plan, statement, what, "what is made of it cannot be followed")
    if not (isinstance(statement.node, cst.If) and _is_emptied(plan, statement)):
        plan.todo("MG610", statement, "isinstance(…, ZeroRedundancyOptimizer) is False now: the optimizer is a plain one",
                  "sharding is the engine's")  # fmt: skip


def _is_emptied(plan: Plan, statement: Statement) -> bool:
    """Whether everything in a branch goes away, so that its test goes too."""
    assert isinstance(statement.node, cst.If)
    inner = plan.tree.statements[statement.order + 1 : statement.last_order + 1]
    return statement.node.orelse is None and all(plan.edits.is_removed(each.node) for each in inner)


def _local_optimizers(plan: Plan) -> list[cst.Attribute]:
    """``optimizer.optim``: the object that ZeroRedundancyOptimizer made on this rank."""
    return [
        node
        for node in plan.tree.statement_of
        if isinstance(node, cst.Attribute) and node.attr.value == "optim" and plan.roles.is_optimizer(node.value)
    ]
