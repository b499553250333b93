"""MG621 again: entries that a script takes back out of the dictionary that it saves as a checkpoint.

Helpers write the weights into a second file (``torch.save(state["state_dict"], best)``), or hand the dictionary on. The
entry of the weights then keeps them, beside the engine's own copy; that of the optimizer is a note, which is marked.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.acquiring import own_parts
from dsmigrate.codemod.steps.checkpoint_facts import Found, sources, state_calls
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_LOADERS = frozenset({"torch.load", "torch.serialization.load"})
_NO_READS = frozenset({"update", "keys", "setdefault"})


def taken_back(plan: Plan, found: Found) -> None:
    """Keep the weights in the dictionary where they may be taken out of it, and mark where the optimizer's state is."""
    keys = {kind: _keys(plan, found, kind) for kind in "MO"}
    for node, key in _reads(plan, found):
        if key is None or key in keys["M"]:
            plan.facts["keep_weights"] = True
        if key is not None and key in keys["O"] - keys["M"]:
            plan.todo("MG621", node, "the optimizer's state is taken out of the checkpoint here, where a note stands now: "
                      "the engine alone saves it, use its checkpoint", "at ZeRO 1-3 no rank holds all of it")  # fmt: skip


def _keys(plan: Plan, found: Found, kind: str) -> set[str]:
    """The keys that the states of a kind are saved under."""
    keys: set[str] = set()
    for save in found.saves:
        for source, _ in sources(plan, save.state, save.statement.function, 6):
            for call, what in state_calls(plan, source):
                parent = plan.tree.parent.get(call)
                key: Node | None = None
                if isinstance(parent, cst.DictElement):
                    key = parent.key
                elif isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Subscript):
                    key = _index(parent.targets[0].target)
                elif isinstance(parent, cst.Arg) and parent.keyword is not None and what == kind:
                    keys.add(parent.keyword.value)
                if isinstance(key, cst.SimpleString) and what == kind:
                    keys.add(str(key.evaluated_value))
    return keys


def _reads(plan: Plan, found: Found) -> Iterator[tuple[Node, str | None]]:
    """Where a script reads what it saves, with the key; None where it takes the whole dictionary, or a key not known."""
    places = _places(plan, found)
    saved = {id(save.state) for save in found.saves}
    loads = [*found.model_loads, *found.optimizer_loads, *found.part_loads]
    loaded = {id(sub) for call in loads for sub in descendants(call)}
    for statement in plan.tree.statements if places else ():
        if plan.edits.is_removed(statement.node):
            continue
        for node in (sub for part in own_parts(statement.node) for sub in descendants(part)):
            if not isinstance(node, cst.Name | cst.Attribute) or id(node) in saved | loaded:
                continue
            if plan.flow.place(node, statement.function) in places and not _is_of_a_load(plan, node, statement):
                yield from _read(plan, node)


def _read(plan: Plan, node: Node) -> Iterator[tuple[Node, str | None]]:
    parent = plan.tree.parent.get(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        if not isinstance(plan.tree.parent.get(parent), cst.AssignTarget | cst.Del):
            key = _index(parent)
            yield node, str(key.evaluated_value) if isinstance(key, cst.SimpleString) else None
    elif isinstance(parent, cst.Attribute) and parent.value is node:
        call = plan.tree.parent.get(parent)
        if isinstance(call, cst.Call) and parent.attr.value not in _NO_READS:
            first = call.args[0].value if call.args and parent.attr.value in ("get", "pop") else None
            is_dropped = parent.attr.value == "pop" and isinstance(plan.tree.parent.get(call), cst.Expr)
            if not is_dropped:
                yield node, str(first.evaluated_value) if isinstance(first, cst.SimpleString) else None
    elif isinstance(parent, cst.Arg):
        call = plan.tree.parent.get(parent)
        if isinstance(call, cst.Call) and plan.flow.callee(call) is None:
            yield node, None


def _index(node: cst.Subscript) -> Node | None:
    inner = node.slice[0].slice
    return inner.value if isinstance(inner, cst.Index) else None


def _is_of_a_load(plan: Plan, node: Node, statement: Statement) -> bool:
    """Whether a variable holds what was loaded where it is read: the same name serves for both."""
    place = plan.flow.place(node, statement.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    before = [b for b in bindings if b.function is statement.function and b.statement.order < statement.order]
    last = max(before, key=lambda b: b.statement.order, default=None)
    if last is None:
        return False
    return isinstance(last.value, cst.Call) and bool(plan.imports.names(last.value.func) & _LOADERS)


def _places(plan: Plan, found: Found) -> set[Place]:
    """The variables that hold a dictionary that is saved: those of helpers, of their callers, and other names for it."""
    places: set[Place] = set()
    queue: list[tuple[Node, Function]] = [(save.state, save.statement.function) for save in found.saves]
    for node, function in queue:
        place = plan.flow.place(node, function)
        if place is None or place in places:
            continue
        places.add(place)
        queue += [(b.value, b.function) for b in plan.flow.by_place.get(place, ()) if b.index is None]
    while True:
        more = {
            binding.place
            for binding in plan.flow.bindings
            if binding.index is None and binding.kind in ("assign", "argument") and binding.place not in places
            if plan.flow.place(binding.value, binding.function) in places
        }  # fmt: skip
        if not more:
            return places
        places |= more
