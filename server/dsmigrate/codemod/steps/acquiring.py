"""How a function comes by the model or the optimizer: by a statement of its own, or on entry."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.evaluating import evaluate_element, through
from dsmigrate.codemod.flow import Binding
from dsmigrate.codemod.holders import held_name
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.own_engine import makes_engine
from dsmigrate.codemod.steps.trained import target_of
from dsmigrate.codemod.tree import Class, Function, Node, Statement, descendants


@dataclass(slots=True)
class Acquisition:
    """How a function comes by a value: by a statement of its own, or on entry (parameter, attribute, global)."""

    name: str
    statements: list[Statement]

    @property
    def on_entry(self) -> bool:
        """Whether the value is there when the function begins."""
        return not self.statements


def acquire(plan: Plan, function: Function, prefix: str, keys: set[str]) -> dict[str, Acquisition]:
    """By which names a function can speak of a value with these tags, and which of its statements give it to them.

    An optimizer that is known by its use alone comes out of whatever its name is given.
    """
    found: dict[str, Acquisition] = {}
    wanted = {f"{prefix}{key}" for key in keys}
    parameters = set(function.params)
    used = {site.place for site in plan.roles.optimizers if site.call is None} if prefix == "O" else set()
    for place, tags in plan.roles.env.items():
        if not tags & wanted:
            continue
        name = _name_in(plan, place, function)
        if name is None:
            continue
        statements = [
            b.statement
            for b in plan.flow.by_place.get(place, ())
            if b.function is function
            and b.kind in ("assign", "with")
            and not _passes_itself_on(plan, b)
            and not makes_engine(plan, b.value, b.function)
            and (_gives(plan, b.value, b.index, b.function, wanted) or (place in used and dotted(b.value) != "None"))
        ]
        if prefix == "O" and place[0] == "n" and not statements and _made_here(plan, name, function):
            continue  # the attribute is filled out of sight, by whatever made the object
        if name in parameters and not statements:
            found[name] = Acquisition(name, [])
        else:
            found[name] = Acquisition(name, statements)
    return found


def acquire_by_object(plan: Plan, function: Function) -> dict[str, Acquisition]:
    """The wrapped model as an attribute of an object whose method wraps it, in a function that calls this method."""
    found: dict[str, Acquisition] = {}
    for wrap in plan.wraps:
        target = target_of(wrap)
        place = plan.flow.place(target, wrap.function) if target is not None else None
        if place is None or place[0] != "a":
            continue
        for call in plan.flow.callers.get(wrap.function, ()):
            holder = _object_of(plan, call, wrap.function) if plan.function_of(call) is function else None
            if holder is None or holder == function.self_name:
                continue
            item = found.setdefault(f"{holder}.{place[2]}", Acquisition(f"{holder}.{place[2]}", []))
            if plan.tree.statement(call) not in item.statements:
                item.statements.append(plan.tree.statement(call))
    return found


def acquire_held(plan: Plan, function: Function, keys: set[str]) -> dict[str, Acquisition]:
    """The optimizer as an attribute of an object that steps it (``NoamOpt``), in a function that has the object."""
    found: dict[str, Acquisition] = {}
    wanted = {f"O{key}" for key in keys}
    for place, classes in plan.flow.kinds.items() if plan.flow.holders else ():
        for cls in classes:
            held = held_name(plan.flow, cls)
            name = _name_in(plan, place, function) if held is not None else None
            if (
                held is None
                or name is None
                or not plan.roles.env.get(("a", plan.flow.family(cls), held), set()) & wanted
            ):
                continue
            filled = _filled_by(plan, cls, held, function)
            if filled is not None:
                bindings = [
                    b for b in plan.flow.by_place.get(place, ()) if b.function is function and b.kind == "assign"
                ]
                made = [b.statement for b in bindings if dotted(b.value) != "None"]
                found[f"{name}.{held}"] = Acquisition(f"{name}.{held}", [*made, *filled])
    return found


def _filled_by(plan: Plan, cls: Class, held: str, function: Function) -> list[Statement] | None:
    """The calls in a function of what fills an attribute later than the constructor; None where they stand elsewhere."""
    found: list[Statement] = []
    for binding in plan.flow.by_place.get(("a", plan.flow.family(cls), held), ()):
        if binding.function.name == "__init__" or dotted(binding.value) == "None":
            continue
        calls = plan.flow.callers.get(binding.function, [])
        here = [plan.tree.statement(call) for call in calls if plan.function_of(call) is function]
        if not here and not any(plan.function_of(call).name == "__init__" for call in calls):
            return None
        found += here
    return found


def _object_of(plan: Plan, call: cst.Call, method: Function) -> str | None:
    """The name of the object that a method is called on, or that a constructor makes."""
    if method.name != "__init__":
        return dotted(call.func.value) if isinstance(call.func, cst.Attribute) else None
    node = plan.tree.statement(call).node
    is_whole = isinstance(node, cst.Assign) and node.value is call and len(node.targets) == 1
    return dotted(node.targets[0].target) if is_whole and isinstance(node, cst.Assign) else None


def _made_here(plan: Plan, name: str, function: Function) -> bool:
    """Whether the object that an attribute belongs to is made in this very function."""
    place = plan.flow.variable(name.partition(".")[0], function)
    return any(b.function is function and b.kind == "assign" for b in plan.flow.by_place.get(place, ()))


def _passes_itself_on(plan: Plan, binding: Binding) -> bool:
    """``model = model.eval()``: the variable has had the value before."""
    inner = through(plan.roles, binding.value)
    wrapped = any(w.call is binding.value or w.call is inner for w in plan.roles.wraps)
    return not wrapped and binding.index is None and plan.flow.place(inner, binding.function) == binding.place


def _gives(plan: Plan, value: Node, index: int | None, function: Function, wanted: set[str]) -> bool:
    if index is None:
        return bool(plan.roles.of(value, function) & wanted)
    if evaluate_element(plan.roles, value, index, function) & wanted:
        return True
    return any(site.node is value and f"O{site.index}" in wanted for site in plan.roles.optimizers)


def _name_in(plan: Plan, place: tuple[str, int | str, str], function: Function) -> str | None:
    kind, owner, name = place
    if kind == "v":
        if plan.flow.variable(name, function) == place and _mentions(plan, function, name):
            return name
        return None
    if kind == "a":
        cls = function.class_seen
        if cls is not None and function.self_name is not None and plan.flow.family(cls) == owner:
            text = f"{function.self_name}.{name}"
            return text if _mentions(plan, function, text) else None
        return None
    if kind == "n":
        text = f"{owner}.{name}"
        return text if _mentions(plan, function, text) else None
    return None


def _mentions(plan: Plan, function: Function, text: str) -> bool:
    table: dict[Function, set[str]] = plan.facts.setdefault("mentions", {})
    names = table.get(function)
    if names is None:
        names = set(function.params)
        for statement in function.statements:
            if isinstance(statement.node, cst.FunctionDef | cst.ClassDef):
                continue
            for head in own_parts(statement.node):
                for sub in descendants(head):
                    if isinstance(sub, cst.Name | cst.Attribute):
                        dotted_text = dotted(sub)
                        if dotted_text is not None:
                            names.add(dotted_text)
        table[function] = names
    return text in names


def heads_of(node: Node) -> list[Node]:
    """The expressions in the head of a compound statement."""
    if isinstance(node, cst.If | cst.While):
        return [node.test]
    if isinstance(node, cst.For):
        return [node.target, node.iter]
    if isinstance(node, cst.With):
        return list(node.items)
    return []


def own_parts(node: Node) -> list[Node]:
    """What a statement itself evaluates: the head of a compound statement, all of any other."""
    return heads_of(node) if isinstance(node, cst.BaseCompoundStatement) else [node]
