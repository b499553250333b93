"""DDP's communication hooks: where one is registered, which one it is, and under which conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from dsmigrate.codemod.bindings import bound_values, is_rebound
from dsmigrate.codemod.deciding import Condition
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.hook_copies import format_of
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, Statement

_HOOKS = "torch.distributed.algorithms.ddp_comm_hooks"
# What DDP's own hooks send gradients in; "" is what they are in anyway.
_FORMATS = {
    "allreduce_hook": "", "fp16_compress_hook": "fp16", "bf16_compress_hook": "bf16",
    "ALLREDUCE": "", "FP16_COMPRESS": "fp16", "BF16_COMPRESS": "bf16",
}  # fmt: skip
_WRAPPERS = {"fp16_compress_wrapper": "fp16", "bf16_compress_wrapper": "bf16"}
_LOW_RANK = (
    "DeepSpeed sends no low-rank gradients; the nearest is communication_data_type fp16 or bf16, which halves them "
    "(its 1-bit Adam left with 0.19.7)"
)
_QUANTISED = (
    "the nearest is ZeRO++'s zero_quantized_gradients, at ZeRO 3 and between nodes only; its numbers are others"
)
_LOCAL = "the engine averages gradients at every step; the nearest to fewer exchanges are longer accumulation windows"
_OVERLAP = "the engine steps after backward"
# By the beginning or a part of a hook's name: what DeepSpeed has instead.
_OTHERS = (
    ("batched_powersgd", _LOW_RANK), ("powersgd", _LOW_RANK), ("power_sgd", _LOW_RANK), ("quantiz", _QUANTISED),
    ("post_localsgd", _LOCAL), ("noop", "the engine always averages gradients"), ("zero_step", _OVERLAP),
    ("hook_with_optimizer", _OVERLAP), ("_register_fused_optim", _OVERLAP),
)  # fmt: skip
_ANY = "the engine has its own communication; what the hook does to gradients would be lost"

REGISTERS = ("register_comm_hook", "_register_builtin_comm_hook", "_register_fused_optim")


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook under the conditions that choose it among others.

    ``format`` is what gradients travel in ("" as they are); ``obstacle`` says why there is no such thing, or is "".
    """

    name: str
    format: str
    obstacle: str = ""
    conditions: tuple[Condition, ...] = ()

    def under(self, condition: Condition) -> Hook:
        """The hook with one more condition in front."""
        return replace(self, conditions=(condition, *self.conditions))


@dataclass(frozen=True, slots=True)
class Registration:
    """A call that registers a hook: the model, the state (None where none is given), and the expression of the hook."""

    call: cst.Call
    statement: Statement
    model: Node | None
    state: Node | None
    hook: Node | None
    by_name: str = ""
    """The hook's full name, where no argument tells it."""


def registrations(plan: Plan) -> Iterator[Registration]:
    """Every call of the tree that gives a DDP model a communication hook."""
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in REGISTERS:
            model, name = call.func.value, call.func.attr.value
            if name == "register_comm_hook":
                state, hook = argument(call, 0, "state"), argument(call, 1, "hook")
                yield Registration(call, statement, model, state, hook)
            elif name == "_register_builtin_comm_hook":
                yield Registration(call, statement, model, None, argument(call, 0, "comm_hook_type"))
            else:
                yield Registration(call, statement, model, None, None, name)
        names = plan.imports.names(call.func)
        if f"{_HOOKS}.register_ddp_comm_hook" in names:
            kind, model_, state = (argument(call, i, n) for i, n in enumerate(("comm_hook_type", "model", "state")))
            yield Registration(call, statement, model_, state, kind)
        for name in names:
            if name.startswith(f"{_HOOKS}.DDPCommHookType.") and name.endswith(".value"):
                model_, state = argument(call, None, "model"), argument(call, None, "state")
                yield Registration(call, statement, model_, state, None, name.removesuffix(".value"))


def chosen(plan: Plan, found: Registration) -> list[Hook]:
    """The hooks that a registration may choose from; the first whose conditions hold is the one."""
    if found.hook is None:
        return [_named(found.by_name)] if found.by_name else [Hook("the hook", "", "it is not seen here")]
    return _hooks(plan, found.hook, found.statement.function, 5)


def _named(name: str) -> Hook:
    last = name.rpartition(".")[2]
    known = name.startswith((f"{_HOOKS}.", "torch.distributed.BuiltinCommHookType.", "torch._C."))
    if known and last in _FORMATS:
        return Hook(last, _FORMATS[last])
    lowered = last.lower()
    return Hook(last, "", next((text for part, text in _OTHERS if part.lower() in lowered), _ANY))


def _hooks(plan: Plan, node: Node, function: Function, depth: int) -> list[Hook]:
    if isinstance(node, cst.IfExp):
        condition = Condition(node.test, function)
        return [
            *(hook.under(condition) for hook in _hooks(plan, node.body, function, depth)),
            *(hook.under(condition.negated()) for hook in _hooks(plan, node.orelse, function, depth)),
        ]
    if isinstance(node, cst.Subscript):
        return _of_table(plan, node, function, depth)
    if isinstance(node, cst.Call):
        return _of_call(plan, node, function, depth)
    names = sorted(plan.imports.names(node))
    if any(name.startswith((_HOOKS, "torch.")) for name in names):
        found = [_named(name) for name in names]
        return found[:1] if all(hook == found[0] for hook in found) else [replace(found[0], obstacle=_ANY)]
    star = f"{_HOOKS}.default_hooks"
    if isinstance(node, cst.Name) and star in plan.imports.star_modules and node.value in _FORMATS:
        return [_named(f"{star}.{node.value}")]
    own = plan.flow.function_named(node, function)
    format_ = format_of(plan, own) if own is not None else None
    if format_ is not None:
        return [Hook(plan.code(node), format_)]
    bound = bound_values(plan, node, function)
    if depth and len(bound) == 1 and not is_rebound(plan, node, function):
        return _hooks(plan, bound[0][0], bound[0][1], depth - 1)
    return [replace(_named(plan.code(node)), format="")] if dotted(node) else [Hook(plan.code(node), "", _ANY)]


def _of_table(plan: Plan, node: cst.Subscript, function: Function, depth: int) -> list[Hook]:
    """``{"fp16": fp16_compress_hook, …}[name]``, also through a name of the table."""
    other = [Hook(plan.code(node), "", _ANY)]
    table: Node = node.value
    if isinstance(table, cst.Name):
        bound = bound_values(plan, table, function)
        if len(bound) != 1 or is_rebound(plan, table, function):
            return other
        table = bound[0][0]
    if not isinstance(table, cst.Dict) or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return other
    key = node.slice[0].slice.value
    found: list[Hook] = []
    for element in table.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return other
        condition = Condition(key, function, equals=plan.code(element.key))
        found.extend(hook.under(condition) for hook in _hooks(plan, element.value, function, depth))
    return found


def _of_call(plan: Plan, node: cst.Call, function: Function, depth: int) -> list[Hook]:
    """A wrapper around another hook; ``fp16_compress_wrapper(allreduce_hook)`` is ``fp16_compress_hook``."""
    name = min(plan.imports.names(node.func), default="")
    last = name.rpartition(".")[2]
    if not name.startswith(_HOOKS) or last not in _WRAPPERS or len(node.args) != 1 or not depth:
        return [replace(_named(name or plan.code(node)), format="", obstacle=_named(f"{name}(").obstacle or _ANY)]
    wrapped = _hooks(plan, node.args[0].value, function, depth - 1)
    found = []
    for hook in wrapped:
        same = hook.format in ("", _WRAPPERS[last])
        obstacle = hook.obstacle or ("" if same else "one format inside of another")
        found.append(replace(hook, name=f"{last}({hook.name})", format=_WRAPPERS[last], obstacle=obstacle))
    return found


# -- conditions ----------------------------------------------------------------------------------------------------


def conditions(plan: Plan, statement: Statement) -> tuple[Condition, ...] | None:
    """What has to hold for a statement to run, given that the model is wrapped; None where that cannot be read."""
    above = _functions_around(plan, [wrap.function for wrap in plan.wraps])
    training = _functions_around(plan, [plan.site.function] if plan.site is not None else [])
    found: list[Condition] = []
    for _ in range(_CALLS):
        inner = _in_function(plan, statement)
        if inner is None or (statement.function not in training and _may_be_left_before(plan, statement)):
            return None
        found[:0] = inner
        function = statement.function
        if function in above or function.is_module:
            return tuple(found)
        calls = plan.flow.callers.get(function, [])
        if len(calls) != 1:
            return None
        statement = plan.tree.statement(calls[0])
    return None


_CALLS = 6
"""How many calls up the conditions of a statement are looked for."""


def _functions_around(plan: Plan, functions: list[Function]) -> set[Function]:
    """Functions, and those from which they are called."""
    queue = list(functions)
    found: set[Function] = set()
    while queue:
        function = queue.pop()
        if function not in found:
            found.add(function)
            queue.extend(plan.function_of(call) for call in plan.flow.callers.get(function, ()))
    return found


def _in_function(plan: Plan, statement: Statement) -> list[Condition] | None:
    """The conditions around a statement in its own function, outermost first."""
    wraps = [wrap.statement for wrap in plan.wraps if wrap.function is statement.function]
    shared = {(outer, branch) for wrap in wraps for outer, branch in _branches(wrap)}
    found: list[Condition] = []
    for outer, branch in _branches(statement):
        node = outer.node
        if isinstance(node, cst.If):
            found.insert(0, Condition(node.test, statement.function, branch == "body", "", (outer, branch) in shared))
        elif isinstance(node, cst.With) or (isinstance(node, cst.Try | cst.TryStar) and branch != "handler"):
            continue
        elif (outer, branch) not in shared:
            return None
    return found


def _may_be_left_before(plan: Plan, statement: Statement) -> bool:
    """Whether a condition may end the function between the wrap and a statement: the training goes on without it.

    Not asked of a function that makes the engine, or calls the one that does: left early, nothing is trained.
    """
    wraps = [wrap.statement.order for wrap in plan.wraps if wrap.function is statement.function]
    first = max((order for order in wraps if order < statement.order), default=-1)
    return any(first < s.order < statement.order and _leaves(s) for s in statement.function.statements)


def _branches(statement: Statement) -> list[tuple[Statement, str]]:
    """The compound statements around one, innermost first, each with the branch of it that leads there."""
    found: list[tuple[Statement, str]] = []
    inner = statement
    for outer in statement.enclosing():
        found.append((outer, inner.branch))
        inner = outer
    return found


def _leaves(statement: Statement) -> bool:
    """Whether a statement may end its function early, under a condition."""
    if not isinstance(statement.node, cst.Return):
        return False
    return next(statement.enclosing(), None) is not None
