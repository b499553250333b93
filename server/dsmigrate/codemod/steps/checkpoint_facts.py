"""What a script saves and loads: which dictionaries hold optimizer state or weights, and where they come from."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from dsmigrate.codemod.flow import Binding, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.weight_parts import belongs
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_SAVERS = frozenset({"torch.save", "torch.serialization.save"})


_SAVER_NAMES = frozenset({"save_on_master", "save_checkpoint_on_master", "safe_save"})


PARTITIONED = 3


@dataclass(slots=True)
class Save:
    """One save of a resume checkpoint: the call, what is saved and where to."""

    call: cst.Call
    statement: Statement
    state: Node
    path: Node


@dataclass(slots=True)
class Found:
    """The saves, exports and loads of a script."""

    saves: list[Save] = field(default_factory=list)
    exports: list[Save] = field(default_factory=list)
    loads: list[cst.Call] = field(default_factory=list)
    optimizer_loads: list[cst.Call] = field(default_factory=list)
    model_loads: list[cst.Call] = field(default_factory=list)
    part_loads: list[cst.Call] = field(default_factory=list)


def find(plan: Plan) -> Found:
    """Find what the script saves and loads, and which of it belongs to a resume checkpoint."""
    found = Found()
    for call in plan.tree.calls:
        func = call.func
        names = plan.imports.names(func)
        last = (dotted(func) or "").rpartition(".")[2]
        if names & _SAVERS or (last in _SAVER_NAMES and len(call.args) >= 2):
            state, path = argument(call, 0, "obj"), argument(call, 1, "f")
            if state is None or path is None:
                continue
            save = Save(call, plan.tree.statement(call), state, path)
            if _holds_optimizer(plan, state, save.statement.function, 6):
                found.saves.append(save)
            elif _holds_model(plan, state, save.statement.function, 6):
                found.exports.append(save)
        elif isinstance(func, cst.Attribute) and func.attr.value == "load_state_dict":
            if plan.roles.is_optimizer(func.value):
                found.optimizer_loads.append(call)
            elif plan.is_ours(func.value):
                found.model_loads.append(call)
            elif not plan.tags(func.value) and belongs(plan, func.value, plan.function_of(call)):
                found.part_loads.append(call)
    seen: set[Node] = set()
    for call in found.optimizer_loads:
        for load in origins(plan, call):
            if load not in seen:
                seen.add(load)
                found.loads.append(load)
    return found


def state_calls(plan: Plan, node: Node) -> list[tuple[cst.Call, str]]:
    """``x.state_dict()`` calls within an expression, with what x is: ``O`` optimizer, ``M`` model."""
    found = []
    for sub in descendants(node):
        if isinstance(sub, cst.Call) and isinstance(sub.func, cst.Attribute) and sub.func.attr.value == "state_dict":
            base = sub.func.value
            if plan.roles.is_optimizer(base):
                found.append((sub, "O"))
            elif plan.is_ours(base):
                found.append((sub, "M"))
    return found


def sources(plan: Plan, node: Node, function: Function, depth: int) -> list[tuple[Node, Function]]:
    """Expressions that what is saved is built from: the dictionary itself, and item assignments into it."""
    if depth == 0:
        return []
    if isinstance(node, cst.Name | cst.Attribute):
        place = plan.flow.place(node, function)
        found: list[tuple[Node, Function]] = []
        for binding in plan.flow.by_place.get(place, ()) if place is not None else ():
            found.extend(sources(plan, binding.value, binding.function, depth - 1))
        if place is not None:
            found.extend((value, where.function) for value, where in items_of(plan, place))
        return found
    if isinstance(node, cst.Call):
        callee = plan.flow.callee(node)
        if callee is not None and callee.name != "__init__":
            found = [(node, function)]
            for binding in plan.flow.by_place.get(plan.flow.returned(callee), ()):
                found.extend(sources(plan, binding.value, binding.function, depth - 1))
            return found
    return [(node, function)]


def items_of(plan: Plan, place: object) -> list[tuple[Node, Statement]]:
    """What is put into a dictionary or list by its items, and where."""
    found: list[tuple[Node, Statement]] = []
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.Assign):
            for target in node.targets:
                inner = target.target
                if isinstance(inner, cst.Subscript) and plan.flow.place(inner.value, statement.function) == place:
                    found.append((node.value, statement))
        elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            func = node.value.func
            if isinstance(func, cst.Attribute) and func.attr.value == "update":
                if plan.flow.place(func.value, statement.function) == place:
                    found.append((node.value, statement))
    return found


def _holds_optimizer(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    return any(
        kind == "O" for source, _ in sources(plan, node, function, depth) for _, kind in state_calls(plan, source)
    )


def _holds_model(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    for source, where in sources(plan, node, function, depth):
        if state_calls(plan, source):
            return True
        if isinstance(source, cst.Name | cst.Attribute) and any(t[0] in "ER" for t in plan.roles.of(source, where)):
            return True
    return isinstance(node, cst.Name | cst.Attribute) and any(t[0] in "ER" for t in plan.roles.of(node, function))


def origins(plan: Plan, call: cst.Call) -> list[cst.Call]:
    """The ``torch.load`` calls that a ``load_state_dict`` argument comes from."""
    if not call.args:
        return []
    found: list[cst.Call] = []
    queue: list[tuple[Node, Function, int]] = [(call.args[0].value, plan.function_of(call), 6)]
    seen: set[object] = set()
    while queue:
        node, function, depth = queue.pop()
        if depth == 0:
            continue
        for sub in descendants(node):
            if isinstance(sub, cst.Call) and plan.imports.names(sub.func) & {"torch.load", "torch.serialization.load"}:
                found.append(sub)
            elif isinstance(sub, cst.Name | cst.Attribute):
                place = plan.flow.place(sub, function)
                if place is None or place in seen:
                    continue
                seen.add(place)
                bindings = plan.flow.by_place.get(place, ())
                if function is plan.function_of(call):
                    bindings = _reaching(bindings, plan.tree.statement(call))
                queue.extend((b.value, b.function, depth - 1) for b in bindings)
    return found


def _reaching(bindings: Sequence[Binding], use: Statement) -> list[Binding]:
    """The bindings of a variable that may hold at a use: the last one before it, with its twins in other branches."""
    before = [b for b in bindings if b.function is use.function and b.statement.order < use.order]
    if not before or len(before) == len(bindings) == 1:
        return list(bindings)
    last = max(before, key=lambda b: b.statement.order)
    around = [o for o in last.statement.enclosing() if not o.order < use.order <= o.last_order]
    if not around:
        return [last]
    outermost = around[-1]
    return [b for b in before if outermost.order < b.statement.order <= outermost.last_order]


def is_handle(plan: Plan, node: Node | None, call: cst.Call) -> bool:
    """Whether an argument is an open file or a buffer rather than a path."""
    if node is None:
        return True
    if isinstance(node, cst.Call):
        return (dotted(node.func) or "").rpartition(".")[2] in ("open", "BytesIO")
    place = plan.flow.place(node, plan.function_of(call))
    for binding in plan.flow.by_place.get(place, ()) if place is not None else ():
        value = binding.value
        if isinstance(value, cst.Call) and (dotted(value.func) or "").rpartition(".")[2] in (
            "open",
            "BytesIO",
            "fdopen",
        ):
            return True
    return False


COPIES = frozenset({"shutil.copyfile", "shutil.copy", "shutil.copy2"})
MOVES = frozenset({"os.replace", "os.rename", "os.renames", "shutil.move"})


def copies_of(plan: Plan, save: Save) -> list[Save]:
    """The copies and moves that give a checkpoint another name behind its save, as saves to that name.

    ``shutil.copy`` into what may be a folder is none, nor is a move whose value is used.
    """
    found = []
    for call in plan.tree.calls:
        names, statement = plan.imports.names(call.func), plan.tree.statement(call)
        if len(call.args) < 2 or statement.function is not save.statement.function or not names & (COPIES | MOVES):
            continue
        if statement.order <= save.statement.order or not same_text(plan, call.args[0].value, save.path):
            continue
        target = call.args[1].value
        if names & MOVES:
            is_one = isinstance(statement.node, cst.Expr)
        else:
            is_one = "shutil.copyfile" in names or _is_file_name(plan, target, statement.function, 4)
        if is_one:
            found.append(Save(call, statement, save.state, target))
    return found


def _is_file_name(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    """Whether a path ends in something like ``.pt``: ``shutil.copy`` puts a file into a folder under its own name."""
    if isinstance(node, cst.Name | cst.Attribute) and depth:
        place = plan.flow.place(node, function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        return bool(bindings) and all(
            b.index is None and _is_file_name(plan, b.value, b.function, depth - 1) for b in bindings
        )
    return bool(re.search(r"\.\w{1,8}[\"'](?:\.format\(.*)?\)*$", plan.code(node)))


def has_rank(plan: Plan, path: Node, function: Function) -> bool:
    """Whether a path has the rank in it."""
    place = plan.flow.place(path, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    values = [path, *(binding.value for binding in bindings if binding.kind == "assign")]
    return any("rank" in plan.code(value).lower() for value in values)


def same_text(plan: Plan, left: Node, right: Node) -> bool:
    """Whether two expressions are the same but for quotes and white space."""
    first, second = plan.code(left), plan.code(right)
    if first == second:
        return True
    try:
        return ast.dump(ast.parse(first, mode="eval")) == ast.dump(ast.parse(second, mode="eval"))
    except SyntaxError:
        return False


def state_is_whole(plan: Plan) -> bool:
    """Whether each rank's client optimizer holds all of the state, and of the parameters that the script knows."""
    return plan.zero_stage == 0 and not {"fp16", "bf16"} & set(plan.config)
