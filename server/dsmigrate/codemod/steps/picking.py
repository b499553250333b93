"""Reads the tests by which scripts sort parameters into groups: by name, by shape, by whether they are trained."""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.nodes import number
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.made_parameters import model_classes
from dsmigrate.codemod.steps.modules import above
from dsmigrate.codemod.steps.picked import ALL, NONE, Base, Formula, atom, both, either, fails
from dsmigrate.codemod.tree import Node, Statement
from dsmigrate.codemod.values import settled

_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATIVE: dict[type, str] = {cst.NotEqual: "==", cst.NotIn: "in", cst.IsNot: "is"}
_POSITIVE: dict[type, str] = {cst.Equal: "==", cst.In: "in", cst.Is: "is"}
_ENDS = {"startswith": "starts", "endswith": "ends"}
_RANK_FORMS = (
    "{}.ndim",
    "{}.dim()",
    "{}.ndimension()",
    "len({}.shape)",
    "len({}.size())",
    "{}.data.ndim",
    "{}.data.dim()",
)
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Variables:
    """How a place in the code calls a parameter and its name, and what the name is relative to."""

    name: str | None
    parameter: str
    base: Base


def formula_of(plan: Plan, test: Node, where: Statement, variables: Variables, depth: int = _DEPTH) -> Formula:
    """What passes a test; a test that is not understood is an atom of its own text."""
    if isinstance(test, cst.BooleanOperation):
        sides = [formula_of(plan, side, where, variables, depth) for side in (test.left, test.right)]
        return both(*sides) if isinstance(test.operator, cst.And) else either(*sides)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return fails(formula_of(plan, test.expression, where, variables, depth))
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return _compared(plan, test, where, variables)
    if isinstance(test, cst.Call):
        found = _called(plan, test, where, variables) or (
            _by_function(plan, test, where, variables, depth) if depth else None
        )
        return found or _text(plan, test, variables)
    if dotted(test) in ("True", f"{variables.parameter}.requires_grad"):
        return ALL
    if isinstance(test, cst.Name) and depth:
        bindings = plan.flow.by_place.get(plan.flow.variable(test.value, where.function), ())
        if len(bindings) == 1 and bindings[0].kind == "assign" and bindings[0].index is None:
            return formula_of(plan, bindings[0].value, where, variables, depth - 1)
    return _text(plan, test, variables)


def _text(plan: Plan, node: Node, variables: Variables, more: str = "") -> Formula:
    text = " ".join((plan.code(node) + more).split())
    for name, shown in ((variables.name, "<name>"), (variables.parameter, "<parameter>")):
        if name:
            text = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", shown, text)
    return atom("text", text)


def _compared(plan: Plan, test: cst.Comparison, where: Statement, variables: Variables) -> Formula:
    sign, right = test.comparisons[0].operator, test.comparisons[0].comparator
    if (ranked := _ranked(plan, test.left, sign, right, variables.parameter)) is not None:
        return ranked
    if type(sign) in _NEGATIVE:
        return fails(_positive(plan, test.left, _NEGATIVE[type(sign)], right, where, variables))
    if type(sign) in _POSITIVE:
        return _positive(plan, test.left, _POSITIVE[type(sign)], right, where, variables)
    return _text(plan, test, variables)


def _ranked(plan: Plan, left: Node, sign: cst.BaseCompOp, right: Node, parameter: str) -> Formula | None:
    """``p.ndim > 1``, ``len(p.shape) == 1``, ``2 <= p.dim()``."""
    forms = {form.format(parameter) for form in _RANK_FORMS}
    word = plan.code(sign).strip()
    for one, other, said in ((left, right, word), (right, left, _TURNED.get(word, ""))):
        value = number(other)
        if plan.code(one) in forms and said in _TURNED and isinstance(value, int):
            return atom("rank", said, None, value)
    return None


def _positive(plan: Plan, left: Node, sign: str, right: Node, where: Statement, variables: Variables) -> Formula:
    if dotted(left) == f"{variables.parameter}.requires_grad" and dotted(right) in ("True", "False"):
        return ALL if dotted(right) == "True" else NONE
    one, other = plan.code(left), plan.code(right)
    if variables.name is not None:
        value = settled(plan, left if other == variables.name else right, where.function)
        if sign == "in" and other == variables.name and isinstance(value, str):
            return atom("in", value, variables.base)
        if one == variables.name and sign == "==" and isinstance(value, str):
            return atom("is", value, variables.base)
        if one == variables.name and sign == "in" and _is_words(value):
            return either(*(atom("is", word, variables.base) for word in value))
    if sign == "in" and one == f"id({variables.parameter})" and (path := _path_of_ids(plan, right, where)) is not None:
        return atom("part", path)
    return _text(plan, left, variables, f" {sign} {other}")


def _is_words(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def _path_of_ids(plan: Plan, node: Node, where: Statement) -> str | None:
    """The part of ``list(map(id, model.head.parameters()))``, also through a name."""
    if isinstance(node, cst.Name):
        bindings = plan.flow.by_place.get(plan.flow.variable(node.value, where.function), ())
        if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].index is not None:
            return None
        return _path_of_ids(plan, bindings[0].value, bindings[0].statement) if node is not bindings[0].value else None
    if isinstance(node, cst.Call) and dotted(node.func) in ("list", "set", "tuple") and len(node.args) == 1:
        return _path_of_ids(plan, node.args[0].value, where)
    owner: Node | None = None
    if isinstance(node, cst.Call) and dotted(node.func) == "map" and len(node.args) == 2:
        owner = node.args[1].value if dotted(node.args[0].value) == "id" else None
    elif isinstance(node, cst.ListComp | cst.SetComp | cst.GeneratorExp) and not node.for_in.ifs:
        owner = node.for_in.iter if plan.code(node.elt) == f"id({dotted(node.for_in.target)})" else None
    if isinstance(owner, cst.Call) and isinstance(owner.func, cst.Attribute) and owner.func.attr.value == "parameters":
        found = base_of(plan, owner.func.value, where)
        return found.path if found is not None and found.path else None
    return None


def _called(plan: Plan, call: cst.Call, where: Statement, variables: Variables) -> Formula | None:
    """``n.startswith("head.")``, and ``any(word in n for word in words)``."""
    name = dotted(call.func)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _ENDS and len(call.args) == 1:
        if variables.name is None or plan.code(call.func.value) != variables.name:
            return None
        value = settled(plan, call.args[0].value, where.function)
        words = [value] if isinstance(value, str) else value
        kind = _ENDS[call.func.attr.value]
        return either(*(atom(kind, word, variables.base) for word in words)) if _is_words(words) else None
    if name not in ("any", "all") or len(call.args) != 1:
        return None
    each = call.args[0].value
    if not isinstance(each, cst.GeneratorExp | cst.ListComp) or each.for_in.ifs or each.for_in.inner_for_in is not None:
        return None
    return _of_words(plan, each, where, variables, is_any=name == "any")


def _by_function(plan: Plan, call: cst.Call, where: Statement, variables: Variables, depth: int) -> Formula | None:
    """``is_plain(n, p)`` of a lambda, or of a function that is one ``return``."""
    place = plan.flow.place(call.func, where.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    made = bindings[0].value if len(bindings) == 1 else None
    if isinstance(made, cst.Lambda):
        names, body, inside = [param.name.value for param in made.params.params], made.body, where
    else:
        function = plan.flow.callee(call)
        lines = [s for s in function.statements if not _is_docstring(s.node)] if function is not None else []
        node = lines[0].node if len(lines) == 1 else None
        if function is None or not isinstance(node, cst.Return) or node.value is None:
            return None
        names, body, inside = list(function.params), node.value, lines[0]
    given = {plan.code(arg.value): name for name, arg in zip(names, call.args, strict=False) if arg.keyword is None}
    if len(given) < len(names) or not set(given) <= {variables.name, variables.parameter}:
        return None
    name = given.get(variables.name) if variables.name is not None else None
    own = Variables(name, given.get(variables.parameter, ""), variables.base)
    return formula_of(plan, body, inside, own, depth - 1)


def _is_docstring(node: Node) -> bool:
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString)


def _of_words(
    plan: Plan, each: cst.GeneratorExp | cst.ListComp, where: Statement, variables: Variables, *, is_any: bool
) -> Formula:
    """``any`` and ``all`` over words: those that can be read one by one, others as one atom, which ``not`` turns around."""
    words = settled(plan, each.for_in.iter, where.function)
    target = each.for_in.target
    if _is_words(words) and isinstance(target, cst.Name):
        tests = [_with_word(plan, each.elt, target.value, word, variables) for word in words]
        if all(test is not None for test in tests):
            known = [test for test in tests if test is not None]
            return either(*known) if is_any else both(*known)
    over = f" for {plan.code(target)} in {plan.code(each.for_in.iter)}"
    test = formula_of(plan, each.elt, where, variables, 0)
    if test.kind == "not" and (inner := test.inner[0].atom) is not None and inner.kind == "text":
        one = atom("text", f"{'all' if is_any else 'any'} {inner.word}{over}")
        return fails(one)
    return (
        _text(plan, each.elt, variables, f"{over} {'any' if is_any else 'all'}")
        if test.atom is None
        else atom("text", f"{'any' if is_any else 'all'} {test.atom.word}{over}")
    )


def _with_word(plan: Plan, test: Node, target: str, word: str, variables: Variables) -> Formula | None:
    """``target in n``, ``n.startswith(target)`` and so on, for one word."""
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        sign, right = test.comparisons[0].operator, test.comparisons[0].comparator
        one, other = plan.code(test.left), plan.code(right)
        kind = "in" if isinstance(sign, cst.In | cst.NotIn) and (one, other) == (target, variables.name) else ""
        if isinstance(sign, cst.Equal | cst.NotEqual) and {one, other} == {target, variables.name}:
            kind = "is"
        found = atom(kind, word, variables.base) if kind else None
        return fails(found) if found is not None and type(sign) in _NEGATIVE else found
    if isinstance(test, cst.Call) and isinstance(test.func, cst.Attribute) and test.func.attr.value in _ENDS:
        if variables.name is not None and plan.code(test.func.value) == variables.name and len(test.args) == 1:
            if plan.code(test.args[0].value) == target:
                return atom(_ENDS[test.func.attr.value], word, variables.base)
    return None


def is_model(plan: Plan, where: Statement) -> bool:
    """Whether a statement stands in a method of the trained model."""
    owner = where.function.owner
    return owner is not None and any(owner in above(plan, cls) for cls in model_classes(plan))


def base_of(plan: Plan, node: Node, where: Statement, depth: int = _DEPTH) -> Base | None:
    """The trained model or a part of it as the names that lead there; None for anything else."""
    found: list[str] = []
    while not plan.is_ours(node):
        if isinstance(node, cst.Name) and node.value == where.function.self_name and is_model(plan, where):
            return Base(".".join(found))
        if isinstance(node, cst.Attribute):
            found.insert(0, node.attr.value)
            node = node.value
        elif isinstance(node, cst.Subscript):
            index = node.slice[0].slice if len(node.slice) == 1 else None
            value = number(index.value) if isinstance(index, cst.Index) else None
            if not isinstance(value, int) or value < 0:
                return None
            found.insert(0, str(value))
            node = node.value
        elif isinstance(node, cst.Name) and depth:
            place = plan.flow.place(node, where.function)
            bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
            if len(bindings) != 1 or bindings[0].kind not in ("assign", "argument") or bindings[0].index is not None:
                return None
            inner = base_of(plan, bindings[0].value, bindings[0].statement, depth - 1)
            return None if inner is None else Base(".".join((*inner.path.split("."), *found)).strip("."), inner.fronts)
        else:
            return None
    kinds = {tag[0] for tag in plan.tags(node)}
    fronts = tuple(front for kind, front in (("E", "module."), ("R", "")) if kind in kinds)
    return Base(".".join(found), ("",) if found else fronts or ("",))
