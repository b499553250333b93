"""Whether an optimizer's step treats every number by itself: what is not known to do so looks at whole parameters."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.bindings import literal_value
from dsmigrate.codemod.callables import held_by, is_partial
from dsmigrate.codemod.flow import Flow
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.steps.elementwise_words import (
    ACTS,
    BUILTINS,
    INHERITED,
    LOOKS,
    MAKES,
    MODULES,
    OF_TORCH,
    OVER_ALL,
    OWN,
    PLAIN,
)  # fmt: skip
from dsmigrate.codemod.steps.tensor_kinds import Holds, Kinds, is_state_table
from dsmigrate.codemod.tree import Function, Node, semantic_children

_CONSTANTS = frozenset({"None", "True", "False"})


@dataclass(frozen=True, slots=True)
class Look:
    """What in a step looks at a whole parameter, as it is written; ``is_sure`` is False where that is only not known."""

    node: Node
    is_sure: bool


@dataclass(frozen=True, slots=True)
class _Scope:
    function: Function
    kinds: Kinds


class Reader:
    """Reads a step and every function of the tree that it calls; ``looks`` is what it found.

    ``has_known_name``: the class is called like an update rule that treats every number by itself, so that a function
    that is not seen may stand in for one that is (a kernel for the same rule).
    """

    def __init__(self, flow: Flow, *, has_known_name: bool = False) -> None:
        self.flow = flow
        self.has_known_name = has_known_name
        self.looks: list[Look] = []
        self.read: set[Function] = set()
        self._seen: set[tuple[Function, frozenset[tuple[str, Holds]]]] = set()

    def follow(self, function: Function, given: dict[str, Holds]) -> None:
        """Read a function whose parameters hold what is given."""
        key = (function, frozenset(given.items()))
        if key in self._seen or not isinstance(function.node, cst.FunctionDef):
            return
        self._seen.add(key)
        self.read.add(function)
        body = function.node.body
        self._visit(body, _Scope(function, Kinds(body, given)))

    def _found(self, node: Node, *, sure: bool = True) -> None:
        self.looks.append(Look(node, sure))

    # -- the walk -------------------------------------------------------------------------------------------------

    def _visit(self, node: Node, at: _Scope) -> None:
        if isinstance(node, cst.Annotation | cst.Decorator | cst.Raise | cst.Import | cst.ImportFrom | cst.Param):
            return
        if isinstance(node, cst.Call):
            self._call(node, at)
            return
        if isinstance(node, cst.If) and _is_sparse(node.test):
            for part in (node.test, node.orelse):
                if part is not None:
                    self._visit(part, at)
            return
        if isinstance(node, cst.Attribute):
            self._attribute(node, at)
            return
        if isinstance(node, cst.For | cst.CompFor):
            self._side_by_side(node.iter, at)
        elif isinstance(node, cst.Subscript):
            if self._subscript(node, at):
                self._visit(node.value, at)
                return
        elif isinstance(node, cst.Comparison):
            if self._comparison(node, at):
                return
        elif isinstance(node, cst.MatrixMultiply | cst.MatrixMultiplyAssign) or self._is_index(node, at):
            self._found(node)
        for child in semantic_children(node):
            if not (isinstance(node, cst.For | cst.CompFor) and child is node.target):
                self._visit(child, at)

    def _is_index(self, node: Node, at: _Scope) -> bool:
        return isinstance(node, cst.Name) and at.kinds.of(node) is Holds.INDEX

    def _attribute(self, node: cst.Attribute, at: _Scope) -> None:
        name, text = node.attr.value, dotted(node)
        if self._is_imported(node, at):
            return
        if name in LOOKS:
            self._found(node)
        elif name not in OWN and text is not None and text.partition(".")[0] == at.function.self_name:
            return
        elif name not in OWN and at.kinds.of(node.value) is Holds.TENSOR:
            self._found(node)
        else:
            self._visit(node.value, at)

    def _subscript(self, node: cst.Subscript, at: _Scope) -> bool:
        """Look at an index; gives whether it needs no more looking: a position in lists that go side by side."""
        item, base = node.slice[0].slice, at.kinds.of(node.value)
        index = item.value if isinstance(item, cst.Index) else None
        held = at.kinds.of(index) if index is not None else Holds.OTHER
        if held is Holds.INDEX:
            is_listed = isinstance(node.value, cst.Name) and self._is_collected(node.value, at)
            if not is_listed:
                self._found(node)
            return True
        if held is Holds.TENSOR and not is_state_table(node.value):
            self._found(node)
        elif base in (Holds.TENSOR, Holds.LIST) and not (index is None and base is Holds.LIST):
            if index is None or not isinstance(literal_value(index), str):
                self._found(node)
        return False

    def _is_collected(self, name: cst.Name, at: _Scope) -> bool:
        """Whether a list is filled beside the parameters: made empty here, or handed to a function."""
        if name.value in at.function.params or at.kinds.of(name) is Holds.LIST:
            return True
        place = self.flow.place(name, at.function)
        values = [binding.value for binding in self.flow.by_place.get(place, ())] if place is not None else []
        return bool(values) and all(isinstance(value, cst.List | cst.ListComp) for value in values)

    def _comparison(self, node: cst.Comparison, at: _Scope) -> bool:
        """Look at identities; gives whether all is looked at."""
        operator, right = node.comparisons[0].operator, node.comparisons[0].comparator
        pair = (at.kinds.of(node.left), at.kinds.of(right))
        if isinstance(operator, cst.Is | cst.IsNot):
            if dotted(right) not in _CONSTANTS and pair[0] in (Holds.TENSOR, Holds.INDEX):
                self._found(node)
        elif isinstance(operator, cst.In | cst.NotIn):
            if pair[0] is Holds.TENSOR and not is_state_table(right) and pair[1] is not Holds.STATE:
                self._found(node)
        elif isinstance(node.left, cst.Call) and dotted(node.left.func) == "len" and literal_value(right) == 0:
            return True
        return False

    def _side_by_side(self, values: Node, at: _Scope) -> None:
        """``zip`` of the parameters and something that has one entry for each of the original ones."""
        for call in _zips(values):
            kinds = [at.kinds.of(arg.value) for arg in call.args]
            for arg, kind in zip(call.args, kinds, strict=True):
                if Holds.LIST in kinds and kind is Holds.OTHER and isinstance(arg.value, cst.Subscript | cst.Attribute):
                    self._found(call)

    def _is_imported(self, node: Node, at: _Scope) -> bool:
        root = (dotted(node) or "").partition(".")[0]
        return bool(root and self.flow.imports.meanings(root, at.function)) and root not in at.kinds.names

    # -- calls ----------------------------------------------------------------------------------------------------

    def _call(self, call: cst.Call, at: _Scope) -> None:
        func = call.func
        makes = isinstance(func, cst.Attribute) and func.attr.value in MAKES
        for arg in call.args:
            value = _without_shape(arg.value) if makes else arg.value
            self._visit(value, at)
        called = self.flow.function_named(func, at.function)
        if called is not None:
            self._follow_call(call, called, at)
        elif self._is_imported(func, at):
            self._library(call, self.flow.imports.names(func), at)
        elif isinstance(func, cst.Name):
            self._named(call, func, at)
        elif isinstance(func, cst.Attribute):
            self._method(call, func, at)
        else:
            self._visit(func, at)
            if not (isinstance(func, cst.Call) and self._is_imported(func.func, at)):
                self._found(call, sure=False)

    def _follow_call(self, call: cst.Call, function: Function, at: _Scope) -> None:
        given: dict[str, Holds] = {}
        for arg in call.args:
            name, kind = self.flow.parameter_of(call, function, arg), at.kinds.of(arg.value)
            if name is not None and kind is not Holds.OTHER:
                given[name] = kind
        self.follow(function, given)

    def _library(self, call: cst.Call, names: set[str], at: _Scope) -> None:
        for full in names:
            root, last = full.partition(".")[0], full.rpartition(".")[2]
            if last in ("max", "min") and root != "math":
                given = [arg.value for arg in call.args if arg.keyword is None]
                if len(given) != 2 or at.kinds.of(given[1]) is not Holds.TENSOR:
                    self._found(call)
            elif last.startswith("_foreach_"):
                if last.rpartition("_")[2] in ("norm", "max"):
                    self._found(call)
            elif not _is_elementwise(full):
                self._found(call, sure=last.rstrip("_") in LOOKS or "distributed" in full)

    def _named(self, call: cst.Call, func: cst.Name, at: _Scope) -> None:
        name = func.value
        kinds = [at.kinds.of(arg.value) for arg in call.args]
        has_whole = Holds.TENSOR in kinds or Holds.LIST in kinds
        if name in ("id", "hash") or (name == "len" and has_whole):
            self._found(call)
        elif name in OVER_ALL:
            if has_whole and len(call.args) == 1:
                self._found(call)
        elif name in ("getattr", "hasattr", "setattr", "delattr"):
            if kinds[:1] == [Holds.TENSOR] and literal_value(call.args[1].value) not in OWN:
                self._found(call)
        elif name not in BUILTINS and name != "len":
            self._held(call, func, at, has_whole=has_whole)

    def _held(self, call: cst.Call, func: Node, at: _Scope, *, has_whole: bool) -> None:
        """A function as a value: each that may be meant is read; a closure that is given no parameter is the script's."""
        place = self.flow.place(func, at.function)
        unseen: list[set[str]] = []
        is_read = False
        for binding in self.flow.by_place.get(place, ()) if place is not None else ():
            for choice in _choices(self.flow, binding.value):
                held = held_by(self.flow, choice, binding.function)
                for one in held:
                    self._follow_call(call, one.function, at)
                is_read |= bool(held)
                if not held:
                    unseen.append(self.flow.imports.names(choice) - {dotted(choice) or ""})
        for names in unseen if not (is_read and self.has_known_name) else ():
            self._library(call, names, at)
            if not names and has_whole:
                self._found(call, sure=False)
        if not unseen and not is_read and has_whole:
            self._found(call, sure=False)

    def _method(self, call: cst.Call, func: cst.Attribute, at: _Scope) -> None:
        name, base = func.attr.value, func.value
        if isinstance(base, cst.Call) and dotted(base.func) == "super":
            return
        self._visit(base, at)
        kinds = [at.kinds.of(arg.value) for arg in call.args]
        if name in ("max", "min"):
            if kinds != [Holds.TENSOR]:
                self._found(call)
        elif name in ("get", "pop", "setdefault"):
            if kinds[:1] == [Holds.TENSOR] and not is_state_table(base):
                self._found(call)
        elif isinstance(base, cst.Name) and base.value == at.function.self_name and name not in LOOKS:
            if name not in INHERITED:
                has_place = bool(self.flow.by_place.get(self.flow.place(func, at.function) or ("", 0, "")))
                self._held(call, func, at, has_whole=True) if has_place else self._found(call, sure=False)
        elif not _acts(name, PLAIN):
            self._found(call, sure=name.rstrip("_") in LOOKS)


def _choices(flow: Flow, value: Node) -> list[Node]:
    """The functions that a value may be: both of a choice, the one that is filled in advance."""
    if isinstance(value, cst.Call) and is_partial(flow, value):
        return [value.args[0].value]
    return [value.body, value.orelse] if isinstance(value, cst.IfExp) else [value]


def _is_elementwise(full: str) -> bool:
    """Whether a function of a library is known to treat every number by itself, or to touch no tensor."""
    root, last = full.partition(".")[0], full.rpartition(".")[2]
    if full.startswith("torch.optim.") and last.islower():
        return last not in ("adafactor", "muon")
    return root in MODULES or (root in ("torch", "numpy") and _acts(last, OF_TORCH))


def _acts(name: str, others: frozenset[str]) -> bool:
    return name in others or name in MAKES or name.rstrip("_") in ACTS


def _is_sparse(test: Node) -> bool:
    return isinstance(test, cst.Attribute) and test.attr.value == "is_sparse"


def _without_shape(value: Node) -> Node:
    """What a buffer's shape is taken from."""
    if isinstance(value, cst.Attribute) and value.attr.value == "shape":
        return value.value
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "size":
        return value if value.args else value.func.value
    return value


def _zips(values: Node) -> list[cst.Call]:
    if not isinstance(values, cst.Call):
        return []
    inner = [call for arg in values.args for call in _zips(arg.value)]
    return [values, *inner] if dotted(values.func) == "zip" else inner
