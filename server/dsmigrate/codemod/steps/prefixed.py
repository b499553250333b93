"""MG508: between the old wrap and the engine, names of weights still begin with ``module.``.

DDP's state dicts and named parameters have that prefix, those of the plain model have not: a state dict would not fit, or,
with ``strict=False``, nothing of it would be loaded, and tests such as ``"module.head" in name`` would never hold.
"""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.wrapped_when import condition, holds_still, target, ways_to_wraps, wraps_before
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

IDEAS = (
    Idea(
        "MG508",
        "Names of weights keep the prefix that DDP gave them",
        'state_dict, load_state_dict and named_parameters go through ModuleDict({"module": model}) before the engine, where '
        "the original had wrapped the model.",
        "The wrapper's names begin with `module.`, and so do those of its files. The plain model's do not: with "
        "strict=False nothing of such a file would be loaded, without a word.",
        "torch.nn.Module.load_state_dict; measured against torch 2.13",
        Kind.CONVERTED,
    ),
)

_KEYED = frozenset({"state_dict", "load_state_dict"})
_NAMED = frozenset({"named_parameters", "named_modules", "named_buffers"})
_PREFIX = re.compile(r"module(?:\\*\.|$)")
DEPTH = 4


def prefixed(plan: Plan) -> None:
    """Give the model its prefix back where the script was between the wrap and what is the engine's place now."""
    names_matter = _names_matter(plan)
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in _KEYED | _NAMED:
            continue
        if func.attr.value in _NAMED and not names_matter and not _is_name_used(plan, call):
            continue
        model = func.value
        if not isinstance(model, cst.Name | cst.Attribute) or not plan.is_ours(model):
            continue
        if not plan.is_before_engine(call) or model in plan.edits.expressions:
            continue
        wrapped = is_wrapped(plan, model, plan.tree.statement(call), DEPTH)
        if wrapped is None:
            plan.todo("MG508", call, "some callers hand in the model that was wrapped, with names that begin with 'module.'",
                      "the engine is made further down: all of them hand in the plain model now")  # fmt: skip
        elif wrapped:
            _give_prefix(plan, call, model)


def _give_prefix(plan: Plan, call: cst.Call, model: Node) -> None:
    """Put the prefix back, where the original had it: a wrap under a condition gave it under that condition."""
    text, use = plan.code(model), plan.tree.statement(call)
    prefix = f'torch.nn.ModuleDict({{"module": {text}}})'
    why = "it was the wrapper's here; the engine is made further down"
    ways = ways_to_wraps(plan, text, use)
    if ways and holds_still(plan, ways, use):
        prefix = f"({prefix} if {condition(plan, ways)} else {text})"
        why += ", under the wrap's condition"
    else:
        unsaid = [condition(plan, ways)] if ways else sorted(_conditions_of_callers(plan, model, use, DEPTH))
        if unsaid:
            why += f"; the original had no prefix where it did not wrap: it asked for {', '.join(unsaid)}"
    plan.need("torch")
    plan.edits.replace(model, prefix)
    plan.converted("MG508", call, f"{text}.{plan.code(call.func).rpartition('.')[2]} keeps the prefix 'module.'", why)


def _conditions_of_callers(plan: Plan, model: Node, use: Statement, depth: int) -> set[str]:
    """The conditions of the wraps in the functions that hand the model in."""
    found: set[str] = set()
    if depth and isinstance(model, cst.Name) and not any(wraps_before(plan, model.value, use)):
        for binding in plan.flow.by_place.get(("v", id(use.function), model.value), ()):
            if binding.kind == "argument":
                ways = ways_to_wraps(plan, plan.code(binding.value), binding.statement)
                found |= {condition(plan, ways)} if ways else set()
                found |= _conditions_of_callers(plan, binding.value, binding.statement, depth - 1)
    return found


def _names_matter(plan: Plan) -> bool:
    """Whether the script looks for the prefix in the names of weights."""
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.FunctionDef | cst.ClassDef) or _is_text(node):
            continue
        for sub in descendants(_head(node)):
            if isinstance(sub, cst.SimpleString) and _PREFIX.match(str(sub.evaluated_value).lstrip("^")):
                if not _asks_for_attribute(plan, sub):
                    return True
    return False


def _is_name_used(plan: Plan, call: cst.Call) -> bool:
    """Whether names are looked at for more than what they contain: where they begin, what stands at a place, as keys."""
    above = plan.tree.parent.get(call)
    if not isinstance(above, cst.For | cst.CompFor) or not isinstance(above.target, cst.Tuple):
        return isinstance(above, cst.Arg | cst.For | cst.CompFor) and not _is_counted(plan, above)
    first = above.target.elements[0].value
    name = first.value if isinstance(first, cst.Name) else ""
    within = above if isinstance(above, cst.For) else plan.tree.parent.get(above)
    for sub in descendants(within) if within is not None else ():
        if isinstance(sub, cst.Name) and sub.value == name and sub is not first and not _is_searched(plan, sub):
            return True
    return False


def _is_counted(plan: Plan, above: Node) -> bool:
    """``len(list(model.named_parameters()))`` and the like look at no name."""
    call = plan.tree.parent.get(above) if isinstance(above, cst.Arg) else None
    if isinstance(call, cst.Call) and dotted(call.func) in ("list", "tuple"):
        outer = plan.tree.parent.get(call)
        return outer is not None and _is_counted(plan, outer)
    return isinstance(call, cst.Call) and dotted(call.func) in ("len", "print")


def _is_searched(plan: Plan, name: Node) -> bool:
    """``"bias" in name``, or the name in what is printed; also where ``name`` is no variable but an attribute's."""
    above = plan.tree.parent.get(name)
    if isinstance(above, cst.Attribute):
        return above.attr is name
    if isinstance(above, cst.ComparisonTarget):
        return isinstance(above.operator, cst.In | cst.NotIn)
    if isinstance(above, cst.FormattedStringExpression):
        return True
    call = plan.tree.parent.get(above) if isinstance(above, cst.Arg) else None
    if isinstance(above, cst.Arg) and above.keyword is name:
        return True
    return isinstance(call, cst.Call) and (dotted(call.func) or "").rpartition(".")[2] in _SHOWN


_SHOWN = frozenset({"print", "info", "debug", "warning", "log", "write"})


def _is_text(node: Node) -> bool:
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString)


def _head(node: Node) -> Node:
    if isinstance(node, cst.If | cst.While):
        return node.test
    if isinstance(node, cst.For):
        return node.iter
    return cst.Pass() if isinstance(node, cst.BaseCompoundStatement) else node


def _asks_for_attribute(plan: Plan, text: Node) -> bool:
    """``hasattr(model, "module")`` and ``getattr(model, "module", model)`` ask for no prefix."""
    argument = plan.tree.parent.get(text)
    call = plan.tree.parent.get(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and dotted(call.func) in ("hasattr", "getattr", "setattr")


def is_wrapped(plan: Plan, model: Node, use: Statement, depth: int) -> bool | None:
    """Whether the original had wrapped a model at a place; None where only some callers had."""
    text, function = plan.code(model), use.function
    for wrap in plan.wraps:
        if wrap.function is function and wrap.statement.order < use.order and target(plan, wrap.statement) == text:
            return not _is_taken_back(plan, text, wrap.statement, use)
    if not isinstance(model, cst.Name) or model.value not in function.params or depth == 0:
        return False
    return _by_callers(plan, model.value, function, depth)


def _by_callers(plan: Plan, name: str, function: Function, depth: int) -> bool | None:
    answers: set[bool | None] = set()
    for binding in plan.flow.by_place.get(("v", id(function), name), ()):
        if binding.kind == "argument":
            named = isinstance(binding.value, cst.Name | cst.Attribute)
            answers.add(named and is_wrapped(plan, binding.value, binding.statement, depth - 1))
    return answers.pop() if len(answers) == 1 else None if answers else False


def _is_taken_back(plan: Plan, text: str, wrap: Statement, use: Statement) -> bool:
    """``model = model.module`` between the wrap and a use."""
    return any(
        target(plan, statement) == text
        and isinstance(statement.node, cst.Assign)
        and isinstance(statement.node.value, cst.Attribute)
        for statement in plan.statements_between(wrap, use)
    )
