"""Where values go: places (variables, attributes, return values) and the bindings between them.

A small, flow-insensitive model of a tree. A *place* can hold a value: a variable of a function, an attribute of ``self`` or
of a named object, or what a function returns. A *binding* says that the value of an expression may arrive in a place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod import callables, dispatch, fields, holders
from dsmigrate.codemod.binding_forms import calls_in_branches, named_expressions
from dsmigrate.codemod.class_tables import chosen_classes, made_classes
from dsmigrate.codemod.names import Imports, dotted
from dsmigrate.codemod.tree import Class, Function, Node, Statement, Tree

Place: TypeAlias = tuple[str, int | str, str]

# How a spawned worker is started: the first argument is the function, `args=` its arguments after the process index.
_MP = "torch.multiprocessing"
SPAWNERS = (f"{_MP}.spawn", f"{_MP}.spawn.spawn", f"{_MP}.start_processes")


@dataclass(frozen=True, slots=True)
class Binding:
    """``place`` may hold ``value`` (its ``index``-th element, where the value is unpacked) after ``statement``."""

    place: Place
    value: Node
    index: int | None
    function: Function
    statement: Statement
    kind: str = "assign"


class Flow:
    """The bindings of a file, and the resolution of names to places and of calls to functions."""

    def __init__(self, tree: Tree, imports: Imports) -> None:
        self.tree = tree
        self.imports = imports
        self.bindings: list[Binding] = []
        self.by_place: dict[Place, list[Binding]] = {}
        self.instances: dict[Place, Class] = {}
        self.kinds: dict[Place, list[Class]] = {}
        self.held: dict[Place, list[callables.Held]] = {}
        self.callers: dict[Function, list[cst.Call]] = {}
        self._attributes: dict[tuple[str, str], Place] = {}
        self._bound: set[tuple[cst.Call, Function]] = set()
        self._spawns: set[cst.Call] = set()
        self._records: set[cst.Call] = set()
        self._filled: set[tuple[cst.Call, Place]] = set()
        self.tables: dict[tuple[Function, str], list[Class]] | None = None
        self._classes_by_instance()
        self._collect()
        self._bind_calls(tree.calls)
        self.holders = holders.find_holders(self)
        if len(tree.parts) > 1 or self.holders:
            self._follow_instances()
        for binding in self.bindings:
            self.by_place.setdefault(binding.place, []).append(binding)

    # -- places ---------------------------------------------------------------------------------------------------

    def variable(self, name: str, function: Function) -> Place:
        """The place of a bare name as seen from a function."""
        scope: Function | None = function
        while scope is not None:
            if name in scope.global_names:
                break
            if name in scope.local_names and name not in scope.imported_names:
                return ("v", id(scope), name)
            if name in scope.local_names:
                found = self.tree.resolve(name, function)
                return ("v", id(scope), name) if found is None else ("v", id(found[0].top), found[1])
            scope = scope.parent
        found = self.tree.resolve(name, function)  # through `from module import *`
        return ("v", id(function.top), name) if found is None else ("v", id(found[0].top), found[1])

    def class_named(self, name: str, function: Function) -> Class | None:
        """The class of the tree that a dotted name stands for in a function."""
        if "." not in name:
            found = self.tree.part_of_top[function.top].classes.get(name)
            if found is not None:
                return found
        target = self.tree.resolve(name, function)
        return None if target is None else target[0].classes.get(target[1])

    def bases(self, cls: Class) -> list[Class]:
        """The base classes that stand in the tree."""
        found = [self.class_named(name, cls.scope) for name in cls.bases]
        return [base for base in found if base is not None and base is not cls]

    def family(self, cls: Class) -> str:
        """The key of the topmost base class of the tree: subclasses share their attributes with it."""
        seen = {cls.key}
        while True:
            base = next((b for b in self.bases(cls) if b.key not in seen), None)
            if base is None:
                return cls.key
            seen.add(base.key)
            cls = base

    def place(self, node: Node, function: Function) -> Place | None:
        """The place an expression names, or None for anything that is not a name or an attribute."""
        if isinstance(node, cst.Name):
            return self.variable(node.value, function)
        if isinstance(node, cst.Attribute):
            base = node.value
            if isinstance(base, cst.Name) and base.value == function.self_name and function.class_seen is not None:
                return self._attribute(function.class_seen, node.attr.value)
            inner = self.place(base, function)
            if inner is not None:
                cls = self.instances.get(inner)
                if cls is not None:
                    return self._attribute(cls, node.attr.value)
                text = dotted(base)
                full = dotted(node)
                found = self.tree.resolve(full, function) if full is not None else None
                if found is not None:
                    return ("v", id(found[0].top), found[1])
                return ("n", text or "", node.attr.value)
        if isinstance(node, cst.Subscript):
            base_text = dotted(node.value)
            if base_text is not None and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
                key = node.slice[0].slice.value
                if isinstance(key, cst.SimpleString):
                    return ("n", base_text, key.value.strip("\"'"))
        return None

    def _attribute(self, cls: Class, name: str) -> Place:
        """The place of an object's attribute: what the getter returns, where it is a property."""
        key = (cls.key, name)
        if key not in self._attributes:
            getter = dispatch.find_method(self, cls, name)
            is_computed = getter is not None and dispatch.is_property(self, getter)
            found = self.returned(getter) if getter is not None and is_computed else None
            self._attributes[key] = found or ("a", self.family(cls), name)
        return self._attributes[key]

    def returned(self, function: Function, index: int | None = None) -> Place:
        """The place of what a function returns (of the ``index``-th element of the tuple it returns)."""
        return ("r", id(function), "" if index is None else str(index))

    # -- calls ----------------------------------------------------------------------------------------------------

    def function_named(self, node: Node, function: Function) -> Function | None:
        """The function of the tree that an expression names, if any."""
        if isinstance(node, cst.Name):
            scope: Function | None = function
            while scope is not None:
                if node.value in scope.inner:
                    return scope.inner[node.value]
                scope = scope.parent
            return self._elsewhere(node, function)
        if isinstance(node, cst.Attribute):
            base = node.value
            if isinstance(base, cst.Name) and base.value == function.self_name and function.class_seen is not None:
                return dispatch.find_method(self, function.class_seen, node.attr.value)
            if (
                isinstance(base, cst.Call)
                and isinstance(base.func, cst.Name)
                and base.func.value == "super"
                and function.class_seen is not None
            ):
                for parent in self.bases(function.class_seen):
                    found = dispatch.find_method(self, parent, node.attr.value)
                    if found is not None:
                        return found
                return None
            place = self.place(base, function)
            cls = self.instances.get(place) if place is not None else None
            if cls is None and isinstance(base, cst.Call):
                name = dotted(base.func)
                cls = self.class_named(name, function) if name is not None else None
            if cls is not None:
                return dispatch.find_method(self, cls, node.attr.value)
            return self._elsewhere(node, function)
        return None

    def _elsewhere(self, node: Node, function: Function) -> Function | None:
        """The function of another file that a dotted name stands for."""
        text = dotted(node)
        found = self.tree.resolve(text, function) if text is not None else None
        return None if found is None else found[0].top.inner.get(found[1])

    def callee(self, call: cst.Call) -> Function | None:
        """The function of the tree that a call runs (``__init__`` for a class), if it can be told."""
        function = self.tree.statement(call).function
        name = dotted(call.func)
        cls = self.class_named(name, function) if name is not None else None
        if cls is not None:
            return dispatch.find_method(self, cls, "__init__")
        found = self.function_named(call.func, function)
        chosen = chosen_classes(self, call.func, function) if found is None else []
        if chosen:
            return dispatch.find_method(self, chosen[0], "__init__")
        if found is None:
            place = self.place(call.func, function)
            instance = self.instances.get(place) if place is not None else None
            if instance is not None:
                return dispatch.find_method(self, instance, "__call__")
            held = self.held.get(place, ()) if place is not None else ()
            return held[0].function if held else None
        return found

    def callees(self, call: cst.Call) -> list[Function]:
        """Every function of the tree that a call may run: the one of ``callee``, overrides, those of other classes."""
        first = self.callee(call)
        if first is None:
            return []
        function = self.tree.statement(call).function
        if first.name == "__init__":
            made = [dispatch.find_method(self, cls, "__init__") for cls in chosen_classes(self, call.func, function)]
            return list(dict.fromkeys(one for one in (first, *made) if one is not None))
        place = self.place(call.func, function)
        held = [one.function for one in self.held.get(place, ())] if place is not None else []
        return held if first in held else [first, *dispatch.others(self, call, first)]

    def parameter_of(self, call: cst.Call, function: Function, arg: cst.Arg) -> str | None:
        """The parameter name of ``function`` that an argument of ``call`` fills."""
        if arg.keyword is not None:
            return arg.keyword.value if arg.keyword.value in function.params else None
        if arg.star:
            return None
        position = 0
        for other in call.args:
            if other is arg:
                break
            if other.star:
                return None
            position += 1
        place = self.place(call.func, self.tree.statement(call).function)
        held = self.held.get(place, ()) if place is not None else ()
        position += next((one.filled for one in held if one.function is function), 0)
        params = self.positional(function)
        return params[position] if position < len(params) else None

    def positional(self, function: Function) -> tuple[str, ...]:
        """Parameters that positional arguments fill: without ``self`` for methods."""
        return function.params if function.owner is None or function.is_static else function.params[1:]

    # -- building -------------------------------------------------------------------------------------------------

    def _classes_by_instance(self) -> None:
        for statement in self.tree.statements:
            node = statement.node
            if isinstance(node, cst.Assign):
                calls = calls_in_branches(node.value)
                made = [cls for call in calls for cls in made_classes(self, call, statement.function)]
                for target in node.targets if made else ():
                    place = self.place(target.target, statement.function)
                    for cls in made:
                        if place is not None:
                            self._note_instance(place, cls)

    def _note_instance(self, place: Place, cls: Class) -> None:
        self.instances.setdefault(place, cls)
        kinds = self.kinds.setdefault(place, [])
        if cls not in kinds:
            kinds.append(cls)

    def made_class(self, call: cst.Call, function: Function) -> Class | None:
        """The class of the tree that a call makes an object of."""
        name = dotted(call.func)
        if name is None or ("." in name and len(self.tree.parts) == 1):
            return None
        return self.class_named(name, function)

    def _bind_calls(self, calls: Iterable[cst.Call]) -> None:
        for call in calls:
            for function in self.callees(call):
                if (call, function) not in self._bound:
                    self._bound.add((call, function))
                    self.callers.setdefault(function, []).append(call)
                    self._bind_arguments(call, function)
            self._bind_fields(call)
            if call not in self._spawns and self.imports.names(call.func) & set(SPAWNERS):
                self._spawns.add(call)
                self._bind_spawn(call)

    def _follow_instances(self) -> None:
        """Carry objects of the tree's classes through arguments and returns, so that calls of their methods are known."""
        for _ in range(_ROUNDS):
            known = sum(len(kinds) for kinds in self.kinds.values())
            news = [callables.note(self, binding) for binding in self.bindings]
            for binding in self.bindings:
                for cls in self._classes_of(binding):
                    self._note_instance(binding.place, cls)
            if not any(news) and sum(len(kinds) for kinds in self.kinds.values()) == known:
                return
            sure = {call for call, function in self._bound if function.owner is None or function.name == "__init__"}
            self._bind_calls([call for call in self.tree.calls if call not in sure and call not in self._spawns])

    def _classes_of(self, binding: Binding) -> list[Class]:
        value = binding.value
        if binding.kind in ("for", "with"):
            return []
        if isinstance(value, cst.Call):
            callee = self.callee(value)
            if callee is not None and callee.name != "__init__":
                return self.kinds.get(self.returned(callee, binding.index), [])
            return made_classes(self, value, binding.function) if binding.index is None else []
        if binding.index is not None:
            return []
        place = self.place(value, binding.function)
        return self.kinds.get(place, []) if place is not None else []

    def _add(self, target: Node, value: Node, index: int | None, statement: Statement, kind: str = "assign") -> None:
        function = statement.function
        if isinstance(target, cst.Tuple | cst.List):
            if isinstance(value, cst.Tuple | cst.List) and len(value.elements) == len(target.elements):
                for left, right in zip(target.elements, value.elements, strict=True):
                    self._add(left.value, right.value, None, statement, kind)
            elif index is None:
                for position, element in enumerate(target.elements):
                    if not isinstance(element, cst.StarredElement):
                        self._add(element.value, value, position, statement, kind)
            return
        place = self.place(target, function)
        if place is not None:
            self.bindings.append(Binding(place, value, index, function, statement, kind))

    def _collect(self) -> None:
        for statement in self.tree.statements:
            node = statement.node
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    self._add(target.target, node.value, None, statement)
            elif isinstance(node, cst.AnnAssign) and node.value is not None:
                self._add(node.target, node.value, None, statement)
            elif isinstance(node, cst.With):
                for item in node.items:
                    if item.asname is not None:
                        self._add(item.asname.name, item.item, None, statement, "with")
            elif isinstance(node, cst.For):
                self._add(node.target, node.iter, None, statement, "for")
            elif isinstance(node, cst.Return) and node.value is not None and not statement.function.is_module:
                self._return(node.value, statement)
            for named in named_expressions(node):
                self._add(named.target, named.value, None, statement)

    def _return(self, value: Node, statement: Statement) -> None:
        function = statement.function
        if isinstance(value, cst.Tuple):
            for position, element in enumerate(value.elements):
                place = self.returned(function, position)
                self.bindings.append(Binding(place, element.value, None, function, statement, "return"))
        self.bindings.append(Binding(self.returned(function), value, None, function, statement, "return"))

    def _bind_arguments(self, call: cst.Call, function: Function) -> None:
        statement = self.tree.statement(call)
        for arg in call.args:
            name = self.parameter_of(call, function, arg)
            if name is not None:
                place: Place = ("v", id(function), name)
                self.bindings.append(Binding(place, arg.value, None, statement.function, statement, "argument"))

    def _bind_fields(self, call: cst.Call) -> None:
        given: list[tuple[Place, Node]] = []
        given += ((("v", id(worker), name), value) for worker, name, value in callables.filled(self, call))
        if call not in self._records:
            self._records.add(call)
            given += fields.filled(self, call, self.tree.statement(call))
        for place, value in given:
            if (call, place) not in self._filled:
                self._filled.add((call, place))
                statement = self.tree.statement(call)
                self.bindings.append(Binding(place, value, None, statement.function, statement, "argument"))

    def _bind_spawn(self, call: cst.Call) -> None:
        statement = self.tree.statement(call)
        worker, given = callables.spawned(self, argument(call, 0, "fn"), argument(call, 1, "args"), statement.function)
        if worker is not None:
            self.callers.setdefault(worker, []).append(call)
        for place, value in given:
            self.bindings.append(Binding(place, value, None, statement.function, statement, "argument"))


_ROUNDS = 8
"""How many calls deep an object is followed."""


def argument(call: cst.Call, position: int | None, keyword: str | None) -> Node | None:
    """The value of an argument by position or keyword; None where it is absent or hidden behind a star."""
    if keyword is not None:
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == keyword:
                return arg.value
    if position is not None:
        for index, arg in enumerate(call.args):
            if arg.star or arg.keyword is not None:
                break
            if index == position:
                return arg.value
    return None
