"""MG128: buffers that training writes, each rank from its own data, are rank 0's at the next forward, as under DDP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.reaching import calls_in
from dsmigrate.codemod.tree import Class, Function, Node, Statement, descendants

IDEAS = (
    Idea(
        "MG128",
        "Buffers that training writes are sent before each forward",
        "A running mean, a centre or a codebook in a buffer, which each rank writes from its own data: a hook on the engine sends "
        "rank 0's buffers to all ranks before each forward, as DDP did.",
        "The engine never sends buffers. BatchNorm does not read its own in training; a model that does would train with other "
        "values on each rank. Buffers that are written from gathered or reduced values are equal and need nothing.",
        "torch/nn/parallel/distributed.py, _pre_forward; measured on two CPU processes: losses differ without the hook, and are "
        "DDP's with it",
        Kind.CONVERTED,
    ),
)

SEND_BUFFERS = '''def send_buffers(model):
    """Send rank 0's buffers to all ranks before a forward that follows one with gradients, as DDP did."""
    due = [True]

    def before(*_):
        kinds = {}
        for buffer in model.buffers() if due[0] else ():
            kinds.setdefault((buffer.dtype, buffer.device), []).append(buffer.data)
        for buffers in kinds.values():
            sent = torch.cat([buffer.flatten() for buffer in buffers])
            torch.distributed.broadcast(sent, src=0)
            for buffer, part in zip(buffers, sent.split([buffer.numel() for buffer in buffers])):
                buffer.copy_(part.view_as(buffer))

    def after(*_):
        due[0] = torch.is_grad_enabled()

    model.register_forward_pre_hook(before)
    model.register_forward_hook(after)
'''
# For evaluations through the engine's module too: a hook there would go into copies, and run where one rank comes alone.
SEND_BUFFERS_BESIDE = (
    SEND_BUFFERS
    + """
    def send():
        before()
        after()

    model.send_buffers = send
"""
)
_COLLECTIVE = re.compile(
    r"all_?(gather|reduce)|gather_all|concat_all|(^|_)sync(ed)?(_|$)|dist_|broadcast_from", re.IGNORECASE
)
_MAKERS = ("__init__", "__new__", "__setstate__")
_SAME = ("torch", "math", "self", "cls", "True", "False", "None", "float", "int", "min", "max")
_DEPTH = 4


def run(plan: Plan) -> None:
    """Send the buffers where DDP did and where that makes a difference."""
    site, written = plan.site, written_buffer(plan)
    if site is None or written is None:
        return
    given = [argument(wrap.call, 4, "broadcast_buffers") for wrap in plan.wraps]
    chosen = [value for value in given if value is not None and dotted(value) not in ("True", "False")]
    if plan.facts.get("no_sync") or chosen:
        when = f"where {plan.code(chosen[0])} is true" if chosen else "before the first forward of a window"
        plan.todo("MG128", written, f"each rank writes this buffer from its own data; DDP sent rank 0's buffers to all ranks {when}, the "
                  "engine does not: broadcast them there", "the ranks train with different values of it")  # fmt: skip
        return
    plan.need("torch")
    plan.helpers.append(SEND_BUFFERS)
    plan.after_engine[:0] = [f"send_buffers({site.target})"]
    plan.converted("MG128", plan.wraps[0].statement, "rank 0's buffers are sent to all ranks before each forward, as under DDP",
                   f"each rank writes a buffer from its own data at {plan.part_of(written).path}:{written.line}")  # fmt: skip


def written_buffer(plan: Plan) -> Statement | None:
    """The first statement by which a model writes a buffer from a rank's own data, if DDP sent the buffers."""
    if "written_buffer" not in plan.facts:
        sent = [wrap for wrap in plan.wraps if not wrap.is_apex and not _is_off(wrap.call)]
        plan.facts["written_buffer"] = next(_writes(plan), None) if sent else None
    found: Statement | None = plan.facts["written_buffer"]
    return found


def _is_off(wrap: cst.Call) -> bool:
    value = argument(wrap, 4, "broadcast_buffers")
    return value is not None and dotted(value) == "False"


def _writes(plan: Plan) -> Iterator[Statement]:
    """Statements that write a buffer with values that may differ from rank to rank."""
    names: dict[str, set[str]] = {}
    for cls, name in registered(plan):
        names.setdefault(plan.flow.family(cls), set()).add(name)
    if not names:
        return
    for function in plan.tree.functions:
        owner = function.owner
        buffers = names.get(plan.flow.family(owner)) if owner is not None else None
        if not buffers or not _runs_in_training(plan, function):
            continue
        for statement in function.statements:
            values = list(_written_with(plan, statement, buffers))
            if values and not _are_same(plan, values, statement) and not _is_exchanged(plan, statement):
                yield statement


def registered(plan: Plan) -> Iterator[tuple[Class, str]]:
    """The buffers that classes register, by name."""
    for call in plan.tree.calls:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "register_buffer" and call.args:
            cls, name = plan.function_of(call).class_seen, argument(call, 0, "name")
            if cls is not None and isinstance(name, cst.SimpleString):
                yield cls, str(name.evaluated_value)


def _runs_in_training(plan: Plan, function: Function) -> bool:
    """``forward``, and the methods that anything but a constructor calls, be it on an object that is not known."""
    if function.name in _MAKERS or function.name == "forward":
        return function.name == "forward"
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == function.name
        and plan.function_of(call).name not in _MAKERS
        for call in plan.tree.calls
    )


def _written_with(plan: Plan, statement: Statement, buffers: set[str]) -> Iterator[Node]:
    """The values that a statement writes into a buffer."""
    node, owner = statement.node, statement.function.self_name
    if isinstance(node, cst.Assign):
        for target in node.targets:
            lefts = target.target.elements if isinstance(target.target, cst.Tuple | cst.List) else (target.target,)
            if any(_is_one_of(left.value if isinstance(left, cst.Element) else left, owner, buffers) for left in lefts):
                yield node.value
    elif isinstance(node, cst.AugAssign | cst.AnnAssign) and node.value is not None:
        if _is_one_of(node.target, owner, buffers):
            yield node.value
    if isinstance(node, cst.BaseCompoundStatement):
        return
    for call in descendants(node):
        if isinstance(call, cst.Call):
            yield from _written_by(plan, call, owner, buffers)


def _written_by(plan: Plan, call: cst.Call, owner: str | None, buffers: set[str]) -> Iterator[Node]:
    """``self.mean.mul_(0.9).add_(x)``, ``torch.add(x, y, out=self.mean)``, and a function that does so to its argument."""
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value.endswith("_") and not func.attr.value.endswith("__"):
        base: Node = func.value
        while isinstance(base, cst.Call) and isinstance(base.func, cst.Attribute):
            base = base.func.value
        if _is_one_of(base, owner, buffers):
            yield from (arg.value for arg in call.args)
    callee = plan.flow.callee(call)
    for arg in call.args:
        if not _is_one_of(arg.value, owner, buffers):
            continue
        name = None if callee is None else plan.flow.parameter_of(call, callee, arg)
        if (arg.keyword is not None and arg.keyword.value == "out") or (name is not None and _changes(callee, name)):
            yield from (other.value for other in call.args if other is not arg)


def _changes(function: Function | None, name: str) -> bool:
    """Whether a function changes the tensor that it gets as a parameter."""
    for statement in function.statements if function is not None else ():
        node = statement.node
        if isinstance(node, cst.BaseCompoundStatement):
            continue
        for sub in descendants(node):
            if isinstance(sub, cst.Call) and isinstance(sub.func, cst.Attribute) and sub.func.attr.value.endswith("_"):
                if (dotted(sub.func) or "").partition(".")[0] == name:
                    return True
        targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else []
        if any(isinstance(t, cst.Subscript) and (dotted(t.value) or "").partition(".")[0] == name for t in targets):
            return True
    return False


def _is_one_of(node: Node, owner: str | None, buffers: set[str]) -> bool:
    """``self.mean``, ``self.mean.data``, ``self.mean[i]``."""
    while isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value == "data"):
        node = node.value
    return (
        isinstance(node, cst.Attribute)
        and node.attr.value in buffers
        and owner is not None
        and dotted(node.value) == owner
    )


def _are_same(plan: Plan, values: Iterable[Node], statement: Statement) -> bool:
    """Whether values follow from numbers and attributes of the model alone: those are equal on all ranks."""
    random = any(re.search(r"rand|normal|dropout|bernoulli|multinomial", plan.code(value)) for value in values)
    same = {*_SAME, statement.function.self_name or "self"}
    return not random and _names(plan, values, statement.function, _DEPTH) <= same


def _names(plan: Plan, values: Iterable[Node], function: Function, depth: int) -> set[str]:
    """The names that values are made of; local variables stand for what they are made of."""
    found: set[str] = set()
    for value in values:
        parts = list(descendants(value))
        other = {part.attr for part in parts if isinstance(part, cst.Attribute)}
        other |= {part.keyword for part in parts if isinstance(part, cst.Arg) and part.keyword is not None}
        for part in parts:
            if isinstance(part, cst.Name) and part not in other:
                place = plan.flow.variable(part.value, function)
                bindings = [b for b in plan.flow.by_place.get(place, ()) if b.function is function]
                made = [b.value for b in bindings] if all(b.kind == "assign" for b in bindings) else []
                found |= _names(plan, made, function, depth - 1) - {part.value} if made and depth else {part.value}
    return found


def _is_exchanged(plan: Plan, statement: Statement) -> bool:
    """Whether what is written went through an exchange between the ranks in the same method."""
    function = statement.function
    own = _locals(plan, [statement.node], function, _DEPTH)
    for call in plan.tree.calls:
        other = plan.tree.statement(call)
        if other.function is function and _is_collective(plan, call, 2):
            node = other.node
            own_call = any(name.startswith("torch.distributed.") for name in plan.imports.names(call.func))
            results = (
                [target.target for target in node.targets] if isinstance(node, cst.Assign) and not own_call else [node]
            )
            if other is statement or own & _locals(plan, results, function, 0):
                return True
    return False


def _locals(plan: Plan, nodes: Iterable[Node], function: Function, depth: int) -> set[str]:
    """The local names in nodes, and those that their values are made of."""
    found: set[str] = set()
    for part in (part for node in nodes for part in descendants(node)):
        if isinstance(part, cst.Name) and part.value in function.local_names and part.value != function.self_name:
            place = plan.flow.variable(part.value, function)
            made = [b.value for b in plan.flow.by_place.get(place, ()) if b.function is function]
            found |= {part.value} | (_locals(plan, made, function, depth - 1) if depth else set())
    return found


def _is_collective(plan: Plan, call: cst.Call, depth: int) -> bool:
    """Whether a call exchanges tensors between the ranks, by itself or in a function of the tree."""
    if any(name.startswith("torch.distributed.") and "get_" not in name for name in plan.imports.names(call.func)):
        return True
    if _COLLECTIVE.search((dotted(call.func) or "").rpartition(".")[2]):
        return True
    callee = plan.flow.callee(call)
    if callee is None or depth == 0:
        return False
    return any(_is_collective(plan, inner, depth - 1) for inner in calls_in(plan).get(callee, ()))
