"""What a path reads once its variables and parameters are filled in, to compare two that are written differently.

``os.path.join(folder, name)`` in a helper that is called with ``"best.pt"`` is ``f"{folder}/best.pt"`` in its caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Save
from dsmigrate.codemod.tree import Function, Node

_DEPTH = 6
_MOST = 24
_JOINS = frozenset({"os.path.join", "posixpath.join"})
_SAME = frozenset({"str", "os.fspath", "pathlib.Path", "os.path.abspath", "os.path.normpath", "pathlib.PurePath"})


@dataclass(frozen=True, slots=True)
class _Open:
    """A variable of a function in a path, with what is taken of it: ``.folder``, ``["folder"]``."""

    function: Function
    name: str
    taken: str = ""

    def __hash__(self) -> int:
        return hash((id(self.function), self.name, self.taken))


_Part: TypeAlias = "str | _Open | tuple[Place, str]"
_Parts: TypeAlias = tuple[_Part, ...]


def texts_of(plan: Plan, node: Node, function: Function) -> frozenset[tuple[object, ...]]:
    """What a path may be, one for each way that callers fill its parameters in."""
    known: dict[tuple[Node, Function], frozenset[tuple[object, ...]]] = plan.facts.setdefault("path_texts", {})
    if (node, function) not in known:
        filled = list(islice(_filled(plan, _parts(plan, node, function, _DEPTH), _DEPTH), _MOST))
        unread = [("…", id(node))] if len(filled) == _MOST else []
        known[node, function] = frozenset([*(_settled(plan, _joined(parts)) for parts in filled), *unread])
    return known[node, function]


def meets(plan: Plan, save: Save, node: Node, function: Function) -> bool:
    """Whether an expression may be the path of a checkpoint, by what both read; variables alone tell nothing."""
    common = texts_of(plan, node, function) & texts_of(plan, save.path, save.statement.function)
    return any(isinstance(part, str) and any(c.isalnum() for c in part) for text in common for part in text)


def is_one_of(plan: Plan, saves: Iterable[Save], node: Node, function: Function) -> bool:
    """Whether an expression is the path of one of these checkpoints, however it came there."""
    written = {text for save in saves for text in texts_of(plan, save.path, save.statement.function)}
    return texts_of(plan, node, function) <= written


def _settled(plan: Plan, parts: _Parts) -> tuple[object, ...]:
    """An option (``args.folder``) is the same in every function."""
    found: list[object] = []
    for part in parts:
        if isinstance(part, _Open):
            found.append((part.name, part.taken) if part.taken else plan.flow.variable(part.name, part.function))
        else:
            found.append(part)
    return tuple(found)


def _parts(plan: Plan, node: Node, function: Function, depth: int) -> _Parts:
    if isinstance(node, cst.SimpleString | cst.ConcatenatedString) and isinstance(node.evaluated_value, str):
        return (node.evaluated_value,)
    if isinstance(node, cst.FormattedString):
        return tuple(part for piece in node.parts for part in _piece(plan, piece, function, depth))
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Divide):
        slash = ("/",) if isinstance(node.operator, cst.Divide) else ()
        return (*_parts(plan, node.left, function, depth), *slash, *_parts(plan, node.right, function, depth))
    if isinstance(node, cst.Call) and node.args and all(not a.star and a.keyword is None for a in node.args):
        names = plan.imports.names(node.func)
        given = [_parts(plan, arg.value, function, depth) for arg in node.args]
        if names & _JOINS or (names & _SAME and len(given) == 1):
            return tuple(part for index, one in enumerate(given) for part in (("/", *one) if index else one))
    return _variable(plan, node, function, depth)


def _piece(plan: Plan, piece: Node, function: Function, depth: int) -> _Parts:
    if isinstance(piece, cst.FormattedStringText):
        return (piece.value.replace("{{", "{").replace("}}", "}"),)
    if isinstance(piece, cst.FormattedStringExpression) and piece.conversion is None and piece.format_spec is None:
        return _parts(plan, piece.expression, function, depth)
    return ((("x", id(function), plan.code(piece)), ""),)


def _variable(plan: Plan, node: Node, function: Function, depth: int, taken: str = "") -> _Parts:
    """A variable that is assigned once stands for its value, all else for itself."""
    base = node
    while True:
        place = plan.flow.place(base, function)
        value = _only_value(plan, place) if place is not None and depth else None
        if value is not None and not taken:
            return _parts(plan, value[0], value[1], depth - 1)
        if value is not None and dotted(value[0]) is not None:
            return _variable(plan, value[0], value[1], depth - 1, taken)
        if isinstance(base, cst.Name):
            return (_Open(function, base.value, taken),)
        if place is not None and place[0] == "a":
            return ((place, taken),)
        step = _step(base)
        if step is None:
            return ((("x", id(function), plan.code(base)), taken),)
        base, taken = step[0], step[1] + taken


def _step(node: Node) -> tuple[Node, str] | None:
    """``object.name`` and ``object["name"]`` as the object and what is taken of it."""
    if isinstance(node, cst.Attribute):
        return node.value, f".{node.attr.value}"
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        key = node.slice[0].slice.value
        return (node.value, f"[{key.evaluated_value!r}]") if isinstance(key, cst.SimpleString) else None
    return None


def _only_value(plan: Plan, place: Place | None) -> tuple[Node, Function] | None:
    """What a variable is assigned, if that is done once."""
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].index is not None:
        return None
    return None if place in _added_to(plan) else (bindings[0].value, bindings[0].function)


def _added_to(plan: Plan) -> set[Place | None]:
    known: set[Place | None] | None = plan.facts.get("added_to")
    if known is None:
        known = plan.facts["added_to"] = {
            plan.flow.place(s.node.target, s.function) for s in plan.tree.statements if isinstance(s.node, cst.AugAssign)
        }  # fmt: skip
    return known


def _filled(plan: Plan, parts: _Parts, depth: int) -> Iterator[_Parts]:
    """The parts with the parameters of one function after the other filled in from its calls."""
    function = next((p.function for p in parts if isinstance(p, _Open) and _calls(plan, p)), None)
    if function is None or not depth:
        yield parts
        return
    for call in plan.flow.callers[function]:
        if function in plan.flow.callees(call):
            given = [_given(plan, part, function, call) for part in parts]
            yield from _filled(plan, tuple(part for one in given for part in one), depth - 1)


def _calls(plan: Plan, part: _Open) -> bool:
    """Whether a variable is a parameter that is never assigned, of a function whose calls are known."""
    bindings = plan.flow.by_place.get(plan.flow.variable(part.name, part.function), ())
    calls = plan.flow.callers.get(part.function, ())
    is_parameter = part.name in part.function.params and all(b.kind == "argument" for b in bindings)
    return is_parameter and bool(calls) and all(part.function in plan.flow.callees(call) for call in calls)


def _given(plan: Plan, part: _Part, function: Function, call: cst.Call) -> _Parts:
    if not isinstance(part, _Open) or part.function is not function or part.name not in function.params:
        return (part,)
    for arg in call.args:
        if plan.flow.parameter_of(call, function, arg) == part.name:
            caller = plan.function_of(call)
            if part.taken:
                return _variable(plan, arg.value, caller, _DEPTH - 1, part.taken)
            return _parts(plan, arg.value, caller, _DEPTH - 1)
    default = _default(function, part.name)
    if default is not None and not part.taken:
        return _parts(plan, default, function.parent or function, 1)
    return ((("x", id(function), part.name), part.taken),)


def _default(function: Function, name: str) -> Node | None:
    node = function.node
    params = node.params if isinstance(node, cst.FunctionDef) else None
    known = (*params.posonly_params, *params.params, *params.kwonly_params) if params is not None else ()
    return next((p.default for p in known if p.name.value == name), None)


def _joined(parts: _Parts) -> _Parts:
    """Neighbouring pieces of text as one."""
    found: list[_Part] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return tuple(p.replace("//", "/").removeprefix("./") if isinstance(p, str) else p for p in found)
