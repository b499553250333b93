"""Where the optimizer may be without its name: in dictionaries, lists, attributes that are asked for by a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.flow import Binding, Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.unpacking import unpacked
from dsmigrate.codemod.tree import Class, Function, Node, descendants

_Seen: TypeAlias = set[Place]
_Where: TypeAlias = tuple[Node, Function]

_MAKERS = re.compile(
    r"^(?:dict|list|tuple|set|sorted|reversed|iter|filter|map|zip|enumerate|tqdm|(?:\w+\.)?chain|OrderedDict|deepcopy|copy"
    r"|\w*Namespace|Munch|EasyDict|AttrDict|edict|Dict)$"
)
_READERS = frozenset({"items", "values", "get", "pop", "copy"})
_MAX = 60
"""How many names are followed from one expression."""


def in_loops(plan: Plan, name: cst.Name) -> list[tuple[Node, int | None]]:
    """What a variable of the innermost loop around it, or of a comprehension, runs over."""
    statement = plan.tree.statement(name)
    loops = [(sub.target, sub.iter) for sub in descendants(statement.node) if isinstance(sub, cst.CompFor)]
    if isinstance(statement.node, cst.BaseCompoundStatement):
        loops = []
    loops += [(o.node.target, o.node.iter) for o in statement.enclosing() if isinstance(o.node, cst.For)]
    for target, iterable in loops:
        found = [
            (value, index)
            for element, value, index in unpacked(target, iterable)
            if isinstance(element, cst.Name) and element.value == name.value
        ]
        if found:
            return found
    return []


def may_hold_optimizer(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression may be the optimizer, or something that has it as an element."""
    return any(
        (isinstance(inner, cst.Name | cst.Attribute) and _is_optimizer(plan.roles.of(inner, where)))
        or _all_of(plan, inner, where)
        for inner, where in elements(plan, node, function)
    )


def elements(plan: Plan, node: Node, function: Function) -> Iterator[_Where]:
    """An expression, what it may be by other names, and what it may have as its elements, each with where it stands."""
    seen: _Seen = set()
    queue = [(node, function)]
    for _ in range(_MAX):
        if not queue:
            return
        inner, where = queue.pop()
        yield inner, where
        queue += _elements(plan, inner, where, seen)


def _is_optimizer(tags: set[str]) -> bool:
    return any(tag[0] == "O" for tag in tags)


def _elements(plan: Plan, node: Node, function: Function, seen: _Seen) -> list[_Where]:
    """What an expression may be, or have as its elements."""
    if isinstance(node, cst.Name | cst.Attribute):
        loops = in_loops(plan, node) if isinstance(node, cst.Name) else []
        return [(value, function) for value, index in loops if not _is_key(value, index)] or _arriving(
            plan, node, function, seen
        )
    if isinstance(node, cst.Subscript):
        return [(node.value, function), *_arriving(plan, node, function, seen)]
    if isinstance(node, cst.Call):
        return _of_call(plan, node, function)
    if isinstance(node, cst.Dict | cst.List | cst.Tuple | cst.Set):
        return [(element.value, function) for element in node.elements]
    if isinstance(node, cst.IfExp):
        return [(node.body, function), (node.orelse, function)]
    if isinstance(node, cst.BooleanOperation | cst.BinaryOperation):
        return [(node.left, function), (node.right, function)]
    if isinstance(node, cst.DictComp):
        return [(node.value, function)]
    if isinstance(node, cst.ListComp | cst.GeneratorExp | cst.SetComp):
        return [(node.elt, function)]
    return []


def _is_key(value: Node, index: int | None) -> bool:
    """Whether this element of a pair is the key of ``parts.items()``."""
    return index == 0 and isinstance(value, cst.Call) and (dotted(value.func) or "").endswith(".items")


def _arriving(plan: Plan, node: Node, function: Function, seen: _Seen) -> list[_Where]:
    """What arrives in a variable or attribute: values, items that are put into it, arguments behind a star."""
    place = plan.flow.place(node, function)
    if place is None or place in seen:
        return []
    seen.add(place)
    found: list[_Where] = [
        where
        for binding in plan.flow.by_place.get(place, ())
        if not (binding.kind == "for" and _is_key(binding.value, binding.index))
        for where in _element_of(plan, binding)
    ]
    named = _set_by_name(plan, place) if place[0] == "a" and not found else ()
    return [*found, *named, *_put_into(plan).get(place, ()), *_behind_stars(plan, place)]


def _element_of(plan: Plan, binding: Binding) -> list[_Where]:
    """What a binding gives: of a call whose function returns a tuple, the element that is unpacked."""
    callee = plan.flow.callee(binding.value) if isinstance(binding.value, cst.Call) else None
    if binding.kind == "for" or binding.index is None or callee is None or callee.name == "__init__":
        return [(binding.value, binding.function)]
    given = plan.flow.by_place.get(plan.flow.returned(callee, binding.index), ())
    return [(one.value, one.function) for one in given] or [(binding.value, binding.function)]


def _set_by_name(plan: Plan, place: Place) -> Iterator[_Where]:
    """What ``setattr(self, name, value)`` or ``self.__dict__.update(values)`` may put into an attribute that nothing else sets."""
    for call in plan.tree.calls:
        function, text = plan.function_of(call), dotted(call.func) or ""
        if function.class_seen is None or plan.flow.family(function.class_seen) != place[1] or not function.self_name:
            continue
        if text == "setattr" and len(call.args) > 2 and dotted(call.args[0].value) == function.self_name:
            names = _texts(plan, call.args[1].value, function)
            if names is None or names.fullmatch(place[2]):
                yield call.args[2].value, function
        elif text == f"{function.self_name}.__dict__.update":
            yield from ((arg.value, function) for arg in call.args)


def _put_into(plan: Plan) -> dict[Place, list[_Where]]:
    """The values of ``parts[key] = value``, ``parts.append(value)`` and ``parts.update(…)``, by what they go into."""
    known: dict[Place, list[_Where]] | None = plan.facts.get("put_into")
    if known is not None:
        return known
    found: dict[Place, list[_Where]] = {}
    for statement in plan.tree.statements:
        node, function = statement.node, statement.function
        for target in node.targets if isinstance(node, cst.Assign) else ():
            if isinstance(target.target, cst.Subscript):
                _note(plan, found, target.target.value, function, [node.value])  # type: ignore[attr-defined]
    for call in plan.tree.calls:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in (
            "append",
            "update",
            "setdefault",
            "extend",
        ):
            _note(plan, found, call.func.value, plan.function_of(call), [arg.value for arg in call.args])
    plan.facts["put_into"] = found
    return found


def _note(
    plan: Plan, found: dict[Place, list[_Where]], holder: Node, function: Function, values: list[cst.BaseExpression]
) -> None:
    place = plan.flow.place(holder, function)
    if place is not None:
        found.setdefault(place, []).extend((value, function) for value in values)


def _behind_stars(plan: Plan, place: Place) -> Iterator[_Where]:
    """The arguments that ``*args`` or ``**kwargs`` of a function of the script may get."""
    function = next((f for f in plan.tree.functions if place[:2] == ("v", id(f))), None)
    if function is None or not isinstance(function.node, cst.FunctionDef):
        return
    params = function.node.params
    stars = [star for star in (params.star_arg, params.star_kwarg) if isinstance(star, cst.Param)]
    if place[2] not in {star.name.value for star in stars}:
        return
    for call in plan.flow.callers.get(function, ()):
        for arg in call.args:
            if plan.flow.parameter_of(call, function, arg) is None:
                yield arg.value, plan.function_of(call)


def _of_call(plan: Plan, node: cst.Call, function: Function) -> list[_Where]:
    """What a call gives on of what it gets, or of what its function returns."""
    callee = plan.flow.callee(node)
    if callee is not None and callee.name != "__init__":
        return [(b.value, b.function) for b in plan.flow.by_place.get(plan.flow.returned(callee), ())]
    text = dotted(node.func) or ""
    if callee is None and _MAKERS.match(text.removeprefix("collections.").removeprefix("copy.")):
        return [(arg.value, function) for arg in node.args]
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _READERS:
        return [(node.func.value, function)]
    return []


def _all_of(plan: Plan, node: Node, function: Function) -> bool:
    """Whether all attributes of an object or all variables are asked for, or one by a text that may name the optimizer."""
    if isinstance(node, cst.Attribute) and node.attr.value == "__dict__":
        return any(True for _ in _attributes(plan, node.value, function, None))
    if not isinstance(node, cst.Call):
        return False
    text = dotted(node.func)
    if text in ("globals", "locals") and not node.args and not plan.is_before_engine(node):
        scope = function.top if text == "globals" else function
        return any(place[:2] == ("v", id(scope)) and _is_optimizer(tags) for place, tags in plan.roles.env.items())
    if text == "vars" and len(node.args) == 1:
        return any(True for _ in _attributes(plan, node.args[0].value, function, None))
    if text == "getattr" and len(node.args) >= 2:
        names = _texts(plan, node.args[1].value, function)
        return any(True for _ in _attributes(plan, node.args[0].value, function, names))
    return False


def _attributes(plan: Plan, node: Node, function: Function, names: re.Pattern[str] | None) -> Iterator[Place]:
    """The attributes of an object of the script's classes that hold the optimizer, of all or of those with such a name."""
    families = {plan.flow.family(cls) for cls in classes_of(plan, node, function)}
    for place, tags in plan.roles.env.items():
        if place[0] == "a" and place[1] in families and _is_optimizer(tags):
            if names is None or names.fullmatch(place[2]):
                yield place


def classes_of(plan: Plan, node: Node, function: Function) -> list[Class]:
    """The classes of the script that an expression may be an object of."""
    if isinstance(node, cst.Name) and node.value == function.self_name and function.class_seen is not None:
        return [function.class_seen]
    place = plan.flow.place(node, function)
    return plan.flow.kinds.get(place, []) if place is not None else []


def _texts(plan: Plan, node: Node, function: Function) -> re.Pattern[str] | None:
    """What a text may be, as far as the script shows; None for any."""
    if isinstance(node, cst.SimpleString):
        return re.compile(re.escape(str(node.evaluated_value)))
    if isinstance(node, cst.BinaryOperation) and isinstance(node.left, cst.SimpleString):
        return re.compile(re.escape(str(node.left.evaluated_value)) + ".*")
    if isinstance(node, cst.FormattedString) and node.parts and isinstance(node.parts[0], cst.FormattedStringText):
        return re.compile(re.escape(node.parts[0].value) + ".*")
    if not isinstance(node, cst.Name):
        return None
    given = [value for value, _ in in_loops(plan, node)]
    values: list[_Where] = [(value, function) for value in given]
    for value in given:
        values += _arriving(plan, value, function, set()) if isinstance(value, cst.Name | cst.Attribute) else []
    strings = [sub for value, _ in values for sub in descendants(value) if isinstance(sub, cst.SimpleString)]
    return re.compile("|".join(re.escape(str(s.evaluated_value)) for s in strings)) if strings else None
