"""What the names of an optimizer's method hold: a parameter or something of its shape, a list of them, a state, a position."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import libcst as cst

from dsmigrate.codemod.bindings import literal_value
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.steps.elementwise_words import COUNTS
from dsmigrate.codemod.tree import Node, descendants

_ROUNDS = 5
_NO_TENSOR = frozenset({"item", "dim", "size", "numel", "is_complex", "is_floating_point", "tolist", "get_device"})
_NO_TENSOR_OF = frozenset(
    {"len", "float", "int", "bool", "isinstance", "getattr", "hasattr", "id", "str", "range", "print"}
)


class Holds(Enum):
    """What a value is; ``INDEX`` is the position of a parameter in its list."""

    OTHER = 0
    TENSOR = 1
    LIST = 2
    STATE = 3
    INDEX = 4


class Kinds:
    """What the names of one function hold, whatever the order of its statements; ``given`` speaks of its parameters."""

    def __init__(self, body: Node, given: Mapping[str, Holds]) -> None:
        self.names: dict[str, Holds] = dict(given)
        nodes = list(descendants(body))
        for _ in range(_ROUNDS):
            known = len(self.names)
            for node in nodes:
                self._bind(node)
            if len(self.names) == known:
                break

    def of(self, node: Node) -> Holds:
        """What the value of an expression is."""
        if isinstance(node, cst.Name):
            return self.names.get(node.value, Holds.OTHER)
        if isinstance(node, cst.Attribute):
            return Holds.TENSOR if node.attr.value in ("grad", "data", "real", "imag") else Holds.OTHER
        if isinstance(node, cst.Subscript):
            return self._item(node)
        if isinstance(node, cst.Call):
            return self._result(node)
        if isinstance(node, cst.ListComp | cst.GeneratorExp):
            return Holds.LIST if self.of(node.elt) is Holds.TENSOR else Holds.OTHER
        return Holds.TENSOR if any(self.of(part) is Holds.TENSOR for part in _parts(node)) else Holds.OTHER

    def _item(self, node: cst.Subscript) -> Holds:
        if is_state_table(node.value):
            return Holds.STATE
        base, item = self.of(node.value), node.slice[0].slice
        key = literal_value(item.value) if isinstance(item, cst.Index) else None
        if isinstance(key, str):
            return self._entry(base, key)
        if base is Holds.LIST:
            return Holds.LIST if isinstance(item, cst.Slice) else Holds.TENSOR
        return base if base is Holds.TENSOR else Holds.OTHER

    def _entry(self, base: Holds, key: str) -> Holds:
        if base is Holds.STATE:
            return Holds.OTHER if COUNTS.search(key) else Holds.TENSOR
        return Holds.LIST if key == "params" else Holds.OTHER

    def _result(self, call: cst.Call) -> Holds:
        func = call.func
        kinds = [self.of(arg.value) for arg in call.args]
        if isinstance(func, cst.Attribute):
            if func.attr.value in ("get", "setdefault", "pop") and call.args:
                key = literal_value(call.args[0].value)
                return Holds.STATE if is_state_table(func.value) else self._entry(self.of(func.value), str(key))
            if func.attr.value in _NO_TENSOR:
                return Holds.OTHER
            kinds.append(self.of(func.value))
        elif dotted(func) in _NO_TENSOR_OF:
            return Holds.OTHER
        return next((kind for kind in (Holds.TENSOR, Holds.LIST) if kind in kinds), Holds.OTHER)

    # -- bindings -------------------------------------------------------------------------------------------------

    def _bind(self, node: Node) -> None:
        if isinstance(node, cst.For | cst.CompFor):
            self._each(node.target, node.iter)
        elif isinstance(node, cst.NamedExpr):
            self._name(node.target, self.of(node.value))
        elif isinstance(node, cst.Assign | cst.AnnAssign | cst.AugAssign) and node.value is not None:
            for target in assigned_to(node):
                self._assign(target, node.value)
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "append":
            if node.args and self.of(node.args[0].value) is Holds.TENSOR:
                self._name(node.func.value, Holds.LIST)

    def _assign(self, target: Node, value: Node) -> None:
        if isinstance(target, cst.Tuple | cst.List):
            if isinstance(value, cst.Tuple | cst.List) and len(value.elements) == len(target.elements):
                for left, right in zip(target.elements, value.elements, strict=True):
                    self._assign(left.value, right.value)
            elif self.of(value) in (Holds.TENSOR, Holds.LIST):
                for element in target.elements:
                    self._name(element.value, Holds.TENSOR)
        else:
            self._name(target, self.of(value))

    def _each(self, target: Node, values: Node) -> None:
        """A loop over lists of parameters, side by side or counted."""
        call = dotted(values.func) if isinstance(values, cst.Call) else None
        if isinstance(values, cst.Call) and isinstance(target, cst.Tuple):
            if call == "zip" and len(target.elements) == len(values.args):
                for element, arg in zip(target.elements, values.args, strict=True):
                    self._each(element.value, arg.value)
                return
            if call == "enumerate" and len(target.elements) == 2 and values.args:
                counted = values.args[0].value
                self._each(target.elements[1].value, counted)
                if self._is_listed(counted):
                    self._name(target.elements[0].value, Holds.INDEX)
                return
            if isinstance(values.func, cst.Attribute) and values.func.attr.value == "items":
                if is_state_table(values.func.value) and len(target.elements) == 2:
                    self._name(target.elements[0].value, Holds.TENSOR)
                    self._name(target.elements[1].value, Holds.STATE)
                return
        if self.of(values) in (Holds.LIST, Holds.TENSOR):
            self._name(target, Holds.TENSOR)

    def _is_listed(self, node: Node) -> bool:
        """Whether a parameter's place in it is counted: a list of them, or several beside each other."""
        if isinstance(node, cst.Call) and dotted(node.func) == "zip":
            return any(self._is_listed(arg.value) for arg in node.args)
        return self.of(node) is Holds.LIST

    def _name(self, target: Node, kind: Holds) -> None:
        if isinstance(target, cst.Name) and kind is not Holds.OTHER:
            self.names.setdefault(target.value, kind)


def _parts(node: Node) -> list[Node]:
    if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
        return [node.left, node.right]
    if isinstance(node, cst.UnaryOperation):
        return [] if isinstance(node.operator, cst.Not) else [node.expression]
    if isinstance(node, cst.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, cst.Comparison):
        by_identity = any(isinstance(c.operator, cst.Is | cst.IsNot | cst.In | cst.NotIn) for c in node.comparisons)
        return [] if by_identity else [node.left, *(c.comparator for c in node.comparisons)]
    return [node.value] if isinstance(node, cst.NamedExpr) else []


def is_state_table(node: Node) -> bool:
    """Whether an expression is the dictionary from parameters to their states."""
    return isinstance(node, cst.Attribute) and node.attr.value == "state"
