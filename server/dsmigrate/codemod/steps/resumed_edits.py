"""MG622 again: state that a script changes between the checkpoint and ``load_state_dict``.

``engine.load_checkpoint`` brings back what was saved. Where the script drops keys, sets a head anew, stretches an
embedding or lowers a learning rate on the way, it would come back unchanged, so such places are marked. What leaves a
checkpoint of the converted script as it is needs nothing: prefixes that go, keys that the model lacks, shapes that differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.flow import Binding, Place, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import PASS_METHODS
from dsmigrate.codemod.steps.checkpoint_facts import Found
from dsmigrate.codemod.steps.resumed_forms import (
    are_exclusive,
    is_put_back,
    is_refill,
    is_renaming,
    keeps_own,
    path_of,
    puts_back,
    removes_nothing,
    renewed_at,
)
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

Keys: TypeAlias = tuple[str | None, ...]

_LOADERS = frozenset({"torch.load", "torch.serialization.load"})
_SAME = frozenset(
    {"dict", "OrderedDict", "deepcopy", "copy", "items", "values", "state_dict", "list", "detach", "clone"}
)
_MUTATORS = frozenset({"popitem", "clear", "update", "setdefault"})
_LOOKS = re.compile(
    r"^(?:len|sorted|list|set|keys|isinstance|type|sum|max|min|any|all|enumerate|zip|str|repr|format|dict|copy|deepcopy|iter"
    r"|hasattr|getattr|id)$|print|log|consume_prefix|load_state_dict|check|assert|inspect|show|compare|valid|save",
    re.IGNORECASE,
)
_CHANGES = re.compile(r"convert|interpol|remap|rename|strip|fix|adapt|resize|clean|filter|remove|patch|inflate|expand|prune", re.IGNORECASE)  # fmt: skip
_DEPTH = 12


def changed_on_the_way(plan: Plan, found: Found) -> None:
    """Mark what the script does to resumed state before it loads it, where that does not leave it as it was saved."""
    for call in (*found.optimizer_loads, *found.model_loads, *found.part_loads):
        if not call.args:
            continue
        strict = argument(call, 1, "strict")
        way = _Way(plan, found, call, strict=strict is None or dotted(strict) == "True")
        way.back(call.args[0].value, plan.function_of(call), (), _DEPTH)
        if not way.resumed:
            continue
        way.forward()
        for statement in sorted({*way.doubts, *way.edits()}, key=lambda s: s.order):
            made = isinstance(statement.node, cst.Assign) and isinstance(statement.node.targets[0].target, cst.Name)
            verb = "may be" if made else "is"
            plan.todo("MG622", statement, f"what was read from the checkpoint {verb} changed here: the engine brings back what was saved; "
                      "change it where it is saved, or load it before deepspeed.initialize without resume_engine",
                      "engine.load_checkpoint reads weights and optimizer state from the checkpoint itself")  # fmt: skip


@dataclass(slots=True)
class _Way:
    """The way from checkpoints to one ``load_state_dict``: variables that hold the state, with the keys that lead to it."""

    plan: Plan
    found: Found
    call: cst.Call
    strict: bool
    resumed: bool = False
    watched: set[tuple[Place, Keys]] = field(default_factory=set)
    seen: set[tuple[Place, Keys]] = field(default_factory=set)
    inner: set[Place] = field(default_factory=set)
    renewed: dict[Place, int] = field(default_factory=dict)
    doubts: list[Statement] = field(default_factory=list)

    # -- from load_state_dict back to torch.load ------------------------------------------------------------------

    def back(self, node: Node, function: Function, keys: Keys, depth: int) -> None:
        """Follow a value to where it was read, noting what holds it and what is done to it."""
        if depth == 0:
            return
        base, path = path_of(node)
        if isinstance(node, cst.IfExp):
            self.back(node.body, function, keys, depth - 1)
            self.back(node.orelse, function, keys, depth - 1)
        elif isinstance(node, cst.BooleanOperation):
            self.back(node.left, function, keys, depth - 1)
            self.back(node.right, function, keys, depth - 1)
        elif isinstance(node, cst.Name | cst.Attribute):
            self._named(node, function, keys, depth)
        elif path:
            self._items(node, function, keys, depth)
            self.back(base, function, (*path, *keys), depth - 1)
        elif isinstance(node, cst.DictComp):
            if not is_renaming(self.plan, node, strict=self.strict):
                self._doubt(node, function)
            self.back(node.for_in.iter, function, keys, depth - 1)
        elif isinstance(node, cst.Dict):
            self._literal(node, function, keys, depth)
        elif isinstance(node, cst.Call):
            self._called(node, function, keys, depth)

    def _named(self, node: Node, function: Function, keys: Keys, depth: int) -> None:
        place = self.plan.flow.place(node, function)
        bindings = self._bindings(place, function) if place is not None else []
        if place is not None and (place, keys) not in self.watched:
            self.watched.add((place, keys))
            for binding in bindings:
                self._bound(binding, keys, depth - 1)
            for value, where in self._filled(place, keys):
                self.back(value, where, (), depth - 1)
        if isinstance(node, cst.Attribute) and not bindings:  # `snapshot.model`
            self.back(node.value, function, (node.attr.value, *keys), depth - 1)

    def _bound(self, binding: Binding, keys: Keys, depth: int) -> None:
        value = binding.value
        callee = self.plan.flow.callee(value) if isinstance(value, cst.Call) and binding.index is not None else None
        if callee is None:
            self.back(value, binding.function, keys, depth)
            return
        for returned in self.plan.flow.by_place.get(self.plan.flow.returned(callee, binding.index), ()):
            self.back(returned.value, returned.function, keys, depth)

    def _items(self, node: Node, function: Function, keys: Keys, depth: int) -> None:
        """What the script itself puts under a key: ``checkpoint["model"] = …``."""
        place = self.plan.flow.place(node, function)
        if place is None or (place, keys) in self.seen:
            return
        self.seen.add((place, keys))
        for binding in self._bindings(place, function):
            self._bound(binding, keys, depth - 1)

    def _literal(self, node: cst.Dict, function: Function, keys: Keys, depth: int) -> None:
        if node.elements and not all(isinstance(element, cst.StarredDictElement) for element in node.elements):
            self._doubt(node, function)
        for element in node.elements:
            self.back(element.value, function, keys, depth - 1)

    def _called(self, node: cst.Call, function: Function, keys: Keys, depth: int) -> None:
        if self.plan.imports.names(node.func) & _LOADERS:
            self.resumed = self.resumed or node in self.found.loads
            return
        callee = self.plan.flow.callee(node)
        last = (dotted(node.func) or "").rpartition(".")[2]
        if isinstance(node.func, cst.Attribute):
            last = node.func.attr.value
            if callee is None and last in (_SAME | PASS_METHODS) and not (node.args and last in ("deepcopy", "copy")):
                self.back(node.func.value, function, keys, depth - 1)
                return
        if callee is not None and callee.name != "__init__":
            for binding in self.plan.flow.by_place.get(self.plan.flow.returned(callee), ()):
                self.back(binding.value, binding.function, keys, depth - 1)
            return
        if last not in _SAME and callee is None:
            self._doubt(node, function)
            return
        for arg in node.args:
            self.back(arg.value, function, keys if last in _SAME else (), depth - 1)

    def _doubt(self, node: Node, function: Function) -> None:
        """Note a statement that makes something else of the state, if it is the resumed state that it gets."""
        if self._is_resumed(node, function):
            self.resumed = True
            self.doubts.append(self.plan.tree.statement(node))

    def _bindings(self, place: Place, function: Function) -> list[Binding]:
        return [
            b for b in self.plan.flow.by_place.get(place, ())
            if b.function is not function or (self._before(b.statement) and not self._is_over(place, b.statement))
        ]  # fmt: skip

    def _before(self, statement: Statement) -> bool:
        """Whether a statement may run before the state is loaded: not below it, nor in the other branch of an ``if``."""
        use = self.plan.tree.statement(self.call)
        if statement.function is not use.function:
            return True
        return statement.order <= use.order and not are_exclusive(statement, use)

    def _is_over(self, place: Place, statement: Statement) -> bool:
        """Whether a variable has got something new between a statement and the load, whatever way the script took."""
        use = self.plan.tree.statement(self.call)
        if statement.function is not use.function:
            return False
        if place not in self.renewed:
            self.renewed[place] = renewed_at(self.plan, place, use)
        return statement.order < self.renewed[place]

    def _filled(self, place: Place, keys: Keys) -> Iterator[tuple[Node, Function]]:
        """What is put into a dictionary that begins without the state: ``new[name] = value``, ``own.update(state)``."""
        for statement in self.plan.tree.statements if not keys else ():
            node, function = statement.node, statement.function
            if isinstance(node, cst.Assign) and self._before(statement):
                for target in node.targets:
                    base, path = path_of(target.target)
                    if len(path) == 1 and self.plan.flow.place(base, function) == place:
                        yield node.value, function
            elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) and self._before(statement):
                func = node.value.func
                if isinstance(func, cst.Attribute) and func.attr.value == "update" and node.value.args:
                    if self.plan.flow.place(func.value, function) == place:
                        yield node.value.args[0].value, function

    # -- other names of the same state, and what is done to it ----------------------------------------------------

    def forward(self) -> None:
        """Watch other variables too that get what is watched, or something inside of it, as arguments and in loops."""
        own = self.plan.tree.statement(self.call)
        bindings = [b for b in self.plan.flow.bindings if b.statement is not own and self._before(b.statement)]
        while True:
            known = len(self.watched) + len(self.inner)
            for binding in bindings:
                value = binding.value
                if binding.kind in ("assign", "argument") and binding.index is None:
                    self.watched |= {(binding.place, keys) for keys in self._rest(value, binding.function)}
                    if self._is_inside(value, binding.function):
                        self.inner.add(binding.place)
                elif binding.kind == "for" and self._gives_inside(value, binding.index, binding.function):
                    self.inner.add(binding.place)
            if len(self.watched) + len(self.inner) == known:
                return

    def _is_inside(self, node: Node, function: Function) -> bool:
        return self._within(node, function)

    def _gives_inside(self, node: Node, index: int | None, function: Function) -> bool:
        """Whether a loop's variable gets something inside: ``for group in state["param_groups"]``, ``state.items()``."""
        if (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and node.func.attr.value in ("items", "values")
        ):
            if index != (1 if node.func.attr.value == "items" else None):
                return False
            return self._whole(node.func.value, function) or self._is_inside(node.func.value, function)
        return index is None and self._is_inside(node, function)

    def _rest(self, node: Node, function: Function) -> set[Keys]:
        """The keys that lead from an expression to the loaded state; none where it does not hold it."""
        base, path = path_of(node)
        place = self.plan.flow.place(base, function) if isinstance(base, cst.Name | cst.Attribute) else None
        if place is None or self._is_over(place, self.plan.tree.statement(node)):
            return set()
        return {keys[len(path) :] for held, keys in self.watched if held == place and keys[: len(path)] == path}

    def edits(self) -> Iterator[Statement]:
        """The statements that change what is loaded."""
        for statement in self.plan.tree.statements:
            node = statement.node
            if isinstance(node, cst.BaseCompoundStatement | cst.Import | cst.ImportFrom) or not self._before(statement):
                continue
            if statement is self.plan.tree.statement(self.call) or keeps_own(self.plan, statement):
                continue
            if self._is_edit(statement):
                yield statement

    def _is_edit(self, statement: Statement) -> bool:
        node, function = statement.node, statement.function
        if isinstance(node, cst.Assign):
            hit = any(self._within(target.target, function) for target in node.targets)
            if hit and puts_back(self.plan, node, statement):
                return False
            if hit:
                return not self._refills(node, statement)
            if is_put_back(self.plan, node, statement):
                return False
        elif isinstance(node, cst.AugAssign) and self._within_or_is(node.target, function):
            return True
        elif isinstance(node, cst.Del):
            targets = [e.value for e in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
            return any(self._within(t, function) and not removes_nothing(self.plan, t, statement) for t in targets)
        return any(self._changes(sub, function) for sub in descendants(node) if isinstance(sub, cst.Call))

    def _refills(self, node: cst.Assign, statement: Statement) -> bool:
        """Whether a new dictionary gets an entry of the state under a name without prefix."""
        base, _ = path_of(node.targets[0].target)
        place = self.plan.flow.place(base, statement.function)
        made = self._bindings(place, statement.function) if place is not None else []
        fresh = not any(self._loads_in(b.value, b.function) for b in made)
        return fresh and is_refill(self.plan, node, statement, strict=self.strict)

    def _within(self, node: Node, function: Function) -> bool:
        """Whether an expression names something inside of what is loaded: an entry of it, a tensor's slice."""
        base, path = path_of(node)
        place = self.plan.flow.place(base, function) if path else None
        if place is not None and self._is_over(place, self.plan.tree.statement(node)):
            return False
        return (place is not None and place in self.inner) or any(
            held == place and len(path) > len(keys) and all(a in (b, None) for a, b in zip(path, keys, strict=False))
            for held, keys in self.watched
        )  # fmt: skip

    def _within_or_is(self, node: Node, function: Function) -> bool:
        return self._within(node, function) or self.plan.flow.place(node, function) in self.inner

    def _changes(self, call: cst.Call, function: Function) -> bool:
        """``state.pop(key)``, ``state.update(…)``, ``state["x"].zero_()``, and a function of others that is given it."""
        func = call.func
        last = func.attr.value if isinstance(func, cst.Attribute) else (dotted(func) or "")
        if isinstance(func, cst.Attribute):
            if last == "pop" and self._within(call, function):
                return True
            if last in _MUTATORS and self._whole(func.value, function):
                return last != "update" or self._is_resumed(func.value, function)
            if last.endswith("_") and not last.endswith("__") and self._within_or_is(func.value, function):
                return True
        if self.plan.flow.callee(call) is not None or call is self.call or self._is_load(call):
            return False
        if _LOOKS.search(last):
            return False
        given = [self._rest(arg.value, function) for arg in call.args]
        return any(() in rest or (rest and _CHANGES.search(last)) for rest in given)

    def _whole(self, node: Node, function: Function) -> bool:
        return any(not keys for keys in self._rest(node, function))

    def _is_resumed(self, node: Node, function: Function) -> bool:
        return any(load in self.found.loads for load in self._loads_in(node, function))

    def _is_load(self, call: cst.Call) -> bool:
        return isinstance(call.func, cst.Attribute) and call.func.attr.value == "load_state_dict"

    def _loads_in(self, node: Node, function: Function) -> set[cst.Call]:
        """The ``torch.load`` calls that an expression is made of."""
        found: set[cst.Call] = set()
        queue: list[tuple[Node, Function]] = [(node, function)]
        seen: set[Place] = set()
        while queue:
            current, where = queue.pop()
            for sub in descendants(current):
                if isinstance(sub, cst.Call) and self.plan.imports.names(sub.func) & _LOADERS:
                    found.add(sub)
                is_state = isinstance(sub, cst.Name) and not self.plan.is_model_like(sub)
                place = self.plan.flow.place(sub, where) if is_state else None
                if place is not None and place not in seen:
                    seen.add(place)
                    bindings = self.plan.flow.by_place.get(place, ())
                    queue.extend((b.value, b.function) for b in bindings if self._before(b.statement))
        return found
