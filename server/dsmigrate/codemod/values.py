"""What an expression is worth: a value known now, or source text that gives it where the engine is made.

A setting that the script takes from its command line must keep following the command line, so it is carried to the
place of ``deepspeed.initialize`` as an expression; a literal, or a name that is a literal for good, goes to the JSON.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import libcst as cst

from dsmigrate.codemod.flow import Place, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan, number
from dsmigrate.codemod.tree import Function, Node, descendants, semantic_children

_BUILTINS = frozenset({"int", "float", "bool", "max", "min", "str", "len", "abs", "round", "True", "False", "None"})
_UNKNOWN = object()


@dataclass(frozen=True, slots=True)
class Value:
    """``static`` is the value as far as it is known now (a default, perhaps), ``expression`` how to get the real one.

    ``expression`` is None where ``static`` is the whole truth, or, with ``is_default``, where the real value cannot be
    had where the engine is made; ``known`` is False where nothing static was found.
    """

    static: Any = None
    expression: str | None = None
    known: bool = False
    is_default: bool = False

    @property
    def usable(self) -> bool:
        """Whether the value can be written down or carried over at all."""
        return self.known or self.expression is not None


def resolve(plan: Plan, node: Node, function: Function) -> Value:
    """The value of an expression of ``function``, as seen from the place of the engine."""
    literal = _literal(node)
    if literal is not _UNKNOWN:
        return Value(literal, known=True)
    static = _static(plan, node, function, 6)
    if static is not _UNKNOWN and _is_final(plan, node, function):
        return Value(static, known=True)
    expression = carry(plan, node, function)
    if static is _UNKNOWN:
        static = _default(plan, node, function)
    if static is _UNKNOWN:
        return Value(None, expression)
    return Value(static, expression, known=True, is_default=expression is None)


def _literal(node: Node) -> Any:
    value = number(node)
    if value is not None:
        return value
    if isinstance(node, cst.Name) and node.value in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[node.value]
    if isinstance(node, cst.SimpleString):
        return node.evaluated_value
    if isinstance(node, cst.Tuple | cst.List) and node.elements:
        values = [_literal(element.value) for element in node.elements]
        return _UNKNOWN if any(value is _UNKNOWN for value in values) else values
    return _UNKNOWN


def _bindings(plan: Plan, node: Node, function: Function) -> list[tuple[Node, Function]]:
    place = plan.flow.place(node, function)
    return [(b.value, b.function) for b in plan.flow.by_place.get(place, ()) if b.index is None] if place else []


def _is_rebound(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a name gets its value in more than one way (several bindings, augmented assignment, loop, parameter)."""
    place = plan.flow.place(node, function)
    if place is None or len(plan.flow.by_place.get(place, ())) != 1:
        return True
    for statement in plan.tree.statements:
        if (
            isinstance(statement.node, cst.AugAssign)
            and plan.flow.place(statement.node.target, statement.function) == place
        ):
            return True
    # `exec` and `globals()` may change any module-level name (nanoGPT's configurator).
    if any(place[1] == id(part.top) for part in plan.tree.parts):
        return any(dotted(call.func) in ("exec", "globals") for call in plan.tree.calls)
    return False


def _is_final(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a static value cannot differ when the script runs."""
    if _literal(node) is not _UNKNOWN:
        return True
    if isinstance(node, cst.Name) and node.value not in _BUILTINS:
        bindings = _bindings(plan, node, function)
        if not bindings and _never_given(plan, node.value, function):
            return True
        return not _is_rebound(plan, node, function) and all(_is_final(plan, v, f) for v, f in bindings)
    if isinstance(node, cst.Attribute):
        return False
    return not any(isinstance(sub, cst.Name | cst.Attribute | cst.Call | cst.Subscript) for sub in descendants(node))


def _never_given(plan: Plan, name: str, function: Function) -> bool:
    """Whether a parameter keeps its default: every call of the function is seen, and none gives it."""
    calls = plan.flow.callers.get(function, ())
    if name not in function.params or not calls or any(arg.star for call in calls for arg in call.args):
        return False
    places = [
        plan.flow.place(s.node.target, function) for s in function.statements if isinstance(s.node, cst.AugAssign)
    ]
    return ("v", id(function), name) not in places


def _static(plan: Plan, node: Node, function: Function, depth: int) -> Any:
    """A value computed from literals, following names that are bound once; ``_UNKNOWN`` where that fails."""
    if depth == 0:
        return _UNKNOWN
    literal = _literal(node)
    if literal is not _UNKNOWN:
        return literal
    if isinstance(node, cst.Name):
        bindings = _bindings(plan, node, function)
        if len(bindings) == 1:
            return _static(plan, bindings[0][0], bindings[0][1], depth - 1)
        values = [_static(plan, v, f, depth - 1) for v, f in bindings]
        if not bindings:
            return _parameter_default(node.value, function)
        return values[0] if values and all(v == values[0] for v in values) else _UNKNOWN
    if isinstance(node, cst.BinaryOperation):
        left, right = _static(plan, node.left, function, depth - 1), _static(plan, node.right, function, depth - 1)
        if isinstance(left, int | float) and isinstance(right, int | float):
            return _arithmetic(node.operator, left, right)
    if isinstance(node, cst.Call) and dotted(node.func) in ("int", "float") and len(node.args) == 1:
        inner = _static(plan, node.args[0].value, function, depth - 1)
        if isinstance(inner, int | float):
            return int(inner) if dotted(node.func) == "int" else float(inner)
    return _UNKNOWN


def _arithmetic(operator: Node, left: float, right: float) -> Any:
    try:
        if isinstance(operator, cst.Multiply):
            return left * right
        if isinstance(operator, cst.Add):
            return left + right
        if isinstance(operator, cst.Subtract):
            return left - right
        if isinstance(operator, cst.Divide):
            return left / right
        if isinstance(operator, cst.FloorDivide):
            return left // right
    except ArithmeticError:
        return _UNKNOWN
    return _UNKNOWN


def _parameter_default(name: str, function: Function) -> Any:
    if not isinstance(function.node, cst.FunctionDef):
        return _UNKNOWN
    params = function.node.params
    for param in (*params.posonly_params, *params.params, *params.kwonly_params):
        if param.name.value == name and param.default is not None:
            return _literal(param.default)
    return _UNKNOWN


def _default(plan: Plan, node: Node, function: Function) -> Any:
    """The default of a command-line option or class attribute that an expression reads, if it reads just one."""
    if isinstance(node, cst.Call) and dotted(node.func) in ("int", "float") and len(node.args) == 1:
        return _default(plan, node.args[0].value, function)
    if isinstance(node, cst.Attribute):
        found = option_default(plan, node.attr.value)
        if found is not _UNKNOWN:
            return found
        for cls in plan.tree.classes.values():
            for statement in plan.tree.statements:
                if statement.up is None or statement.up.node is not cls.node:
                    continue
                inner = statement.node
                if isinstance(inner, cst.Assign) and dotted(inner.targets[0].target) == node.attr.value:
                    return _literal(inner.value)
                if isinstance(inner, cst.AnnAssign) and dotted(inner.target) == node.attr.value and inner.value:
                    return _literal(inner.value)
    if isinstance(node, cst.Name):
        bindings = _bindings(plan, node, function)
        for value, where in bindings:
            found = _default(plan, value, where)
            if found is not _UNKNOWN:
                return found
        for value, where in bindings:
            found = _static(plan, value, where, 4)
            if found is not _UNKNOWN:
                return found
    if isinstance(node, cst.Subscript):
        return _UNKNOWN
    return _UNKNOWN


def option_default(plan: Plan, name: str) -> Any:
    """The literal default of the command-line option that fills ``args.name``, or an unknown marker."""
    for call in option_calls(plan):
        if option_name(call) == name:
            value = argument(call, None, "default")
            if value is None:
                action = argument(call, None, "action")
                text = action.evaluated_value if isinstance(action, cst.SimpleString) else None
                return {"store_true": False, "store_false": True}.get(str(text), None if text is None else _UNKNOWN)
            found = _literal(value)
            if found is not _UNKNOWN:
                return found
            try:
                return ast.literal_eval(plan.code(value))
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                return _UNKNOWN
    return _UNKNOWN


def option_calls(plan: Plan) -> list[cst.Call]:
    """Every ``add_argument`` call of the file."""
    found: list[cst.Call] | None = plan.facts.get("options")
    if found is None:
        found = [
            call
            for call in plan.tree.calls
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("add_argument", "add_arg")
        ]
        plan.facts["options"] = found
    return found


def option_name(call: cst.Call) -> str | None:
    """The attribute name that an ``add_argument`` call fills."""
    dest = argument(call, None, "dest")
    if isinstance(dest, cst.SimpleString):
        return str(dest.evaluated_value)
    spellings = [
        str(arg.value.evaluated_value)
        for arg in call.args
        if arg.keyword is None and isinstance(arg.value, cst.SimpleString)
    ]
    long = next((s for s in spellings if s.startswith("--")), spellings[0] if spellings else None)
    return long.lstrip("-").replace("-", "_") if long else None


def carry(plan: Plan, node: Node, function: Function, depth: int = 5) -> str | None:
    """Source text that gives, where the engine is made, the value an expression has in ``function``; None if unsafe."""
    site = plan.site
    if site is None or depth == 0:
        return None
    if not _is_plain(node):
        return None
    here = function is site.function
    replacements: dict[str, str] = {}
    for name in _roots(node):
        if name in _BUILTINS:
            continue
        seen_from_site = plan.flow.variable(name, site.function)
        seen_from_here = plan.flow.variable(name, function)
        imported = plan.imports.meanings(name, function)
        if (
            imported == plan.imports.meanings(name, site.function) != set()
            and seen_from_here == ("v", id(function.top), name)
            and seen_from_site == ("v", id(site.function.top), name)
        ):
            continue
        if seen_from_here == seen_from_site and _bound_in_time(plan, name, function):
            continue
        incoming = _parameter_with(plan, seen_from_here)
        if incoming is not None:
            replacements[name] = incoming
            continue
        if name == function.self_name and function.class_seen is not None:
            if site.function.self_name is not None and site.function.class_seen is not None:
                same = plan.flow.family(site.function.class_seen) == plan.flow.family(function.class_seen)
                if same and _attributes_in_time(plan, node, function):
                    replacements[name] = site.function.self_name
                    continue
            return None
        if here or name not in function.params:
            text = _by_definition(plan, name, function, depth)
            if text is None:
                return None
            replacements[name] = text
            continue
        text = _through_callers(plan, name, function, depth)
        if text is None:
            return None
        replacements[name] = text
    return _substitute(plan, node, replacements)


def _parameter_with(plan: Plan, place: Place) -> str | None:
    """The parameter of the engine's function that receives the same variable from its callers, if there is one."""
    site = plan.site
    assert site is not None
    for name in site.function.params:
        bindings = plan.flow.by_place.get(("v", id(site.function), name), ())
        arguments = [b for b in bindings if b.kind == "argument"]
        if arguments and len(arguments) == len(bindings):
            if all(plan.flow.place(b.value, b.function) == place for b in arguments):
                return name
    return None


def _by_definition(plan: Plan, name: str, function: Function, depth: int) -> str | None:
    """A local name that is set too late, or elsewhere: its own definition, where that can be carried."""
    node = cst.Name(name)
    bindings = _bindings(plan, node, function)
    if len(bindings) != 1 or _is_rebound(plan, node, function):
        return None
    text = carry(plan, bindings[0][0], bindings[0][1], depth - 1)
    return f"({text})" if text is not None and not text.replace(".", "").replace("_", "").isalnum() else text


def _through_callers(plan: Plan, name: str, function: Function, depth: int) -> str | None:
    place = ("v", id(function), name)
    texts = set()
    for binding in plan.flow.by_place.get(place, ()):
        if binding.kind != "argument":
            return None
        texts.add(carry(plan, binding.value, binding.function, depth - 1))
    if len(texts) != 1:
        return None
    return texts.pop()


def _bound_in_time(plan: Plan, name: str, function: Function) -> bool:
    """Whether a variable has its value before the engine is made."""
    site = plan.site
    assert site is not None
    place = plan.flow.variable(name, function)
    if place[1] == id(site.function) and name in site.function.params:
        return True
    bindings = plan.flow.by_place.get(place, ())
    if not bindings and not plan.imports.meanings(name, function):
        top = site.function.top
        inner = name in site.function.inner or name in top.inner or name in plan.tree.part_of_top[top].classes
        return inner or place[1] != id(top)
    owner_is_site = place[1] == id(site.function)
    if not owner_is_site:
        return True
    first = min(b.statement.order for b in bindings)
    last = max(b.statement.order for b in bindings)
    if first <= site.order and (last <= site.order or _stable_after(name)):
        return True
    if last <= site.latest_order:
        _move_site(plan, last)
        return True
    return False


def _move_site(plan: Plan, order: int) -> None:
    """Make the engine a little later, behind the statement with this order: a value is known only then."""
    site = plan.site
    assert site is not None
    block = site.anchor.block
    for statement in site.function.statements:
        if statement.block is block and site.order < statement.order <= order <= statement.last_order:
            site.anchor = statement
            site.replaces = None
            return
        if statement.block is block and statement.order <= order <= statement.last_order:
            return


def _stable_after(name: str) -> bool:
    return name in ("args", "opt", "cfg", "config", "opts", "hparams", "FLAGS", "params", "conf")


def _attributes_in_time(plan: Plan, node: Node, function: Function) -> bool:
    """Whether every ``self.x`` that an expression reads is set before the engine is made, as far as one class shows."""
    site = plan.site
    assert site is not None
    for sub in descendants(node):
        if isinstance(sub, cst.Attribute) and isinstance(sub.value, cst.Name) and sub.value.value == function.self_name:
            place = plan.flow.place(sub, function)
            bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
            if any(b.function is site.function and b.statement.order > site.order for b in bindings):
                return False
    return True


def _is_plain(node: Node) -> bool:
    """Whether an expression can be evaluated a second time, elsewhere, without harm."""
    for sub in descendants(node):
        if isinstance(sub, cst.Call):
            name = dotted(sub.func) or ""
            last = name.rpartition(".")[2]
            if name not in _BUILTINS and last not in (
                "get", "get_world_size", "device_count", "is_available", "is_bf16_supported", "getattr", "device",
            ):  # fmt: skip
                return False
        if isinstance(sub, cst.Await | cst.Yield | cst.NamedExpr | cst.Lambda | cst.ListComp | cst.GeneratorExp):
            return False
    return True


def _roots(node: Node) -> list[str]:
    """The variables an expression starts from; attribute names and keyword names are not among them."""
    found: list[str] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Attribute):
            stack.append(current.value)
        elif isinstance(current, cst.Name):
            if current.value not in found:
                found.append(current.value)
        elif isinstance(current, cst.Arg):
            stack.append(current.value)
        else:
            stack.extend(semantic_children(current))
    return found


class _Substitute(cst.CSTTransformer):
    def __init__(self, replacements: dict[str, str]) -> None:
        super().__init__()
        self.replacements = replacements

    def visit_Attribute_attr(self, node: cst.Attribute) -> None:  # noqa: N802 - LibCST's naming
        self._inside_attr = node.attr

    def visit_Arg_keyword(self, node: cst.Arg) -> None:  # noqa: N802 - LibCST's naming
        self._inside_attr = node.keyword

    _inside_attr: Node | None = None

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:  # noqa: N802
        if original_node is self._inside_attr:
            return updated_node
        text = self.replacements.get(original_node.value)
        return updated_node if text is None else cst.parse_expression(text)


def _substitute(plan: Plan, node: Node, replacements: dict[str, str]) -> str:
    if not any(replacements[name] != name for name in replacements):
        return plan.code(node)
    new = node.visit(_Substitute(replacements))
    return plan.tree.module.code_for_node(new).strip()  # type: ignore[arg-type]
