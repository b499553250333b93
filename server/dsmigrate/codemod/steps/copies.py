"""MG506: copies of the model, and files of the whole model, leave the engine's hooks behind.

The engine hangs two local functions into the module's forward hooks, and ZeRO notes its process group on every parameter.
``pickle`` can store neither, in a copy no more than in the module itself; a bare copy has none of them.
"""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.edit import ExpressionEdit
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import PASS_METHODS
from dsmigrate.codemod.steps.checkpoint_facts import PARTITIONED, sources
from dsmigrate.codemod.steps.training_after import training_follows, trains_within
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG506",
        "Copies and averages take the module",
        "deepcopy, torch.jit.script and torch.save of the whole model take a bare copy of engine.module, files of its parts and "
        "parameters a deepcopy; EMA helpers get engine.module.",
        "The engine holds locks and process groups and cannot be copied or pickled, and the module carries its hooks, "
        "which cannot be pickled or compiled by torch.jit.script either, no more than its parameters at ZeRO 1 and 2; helpers of other modules unwrap by "
        "testing for DistributedDataParallel, which the engine is not.",
        "measured against DeepSpeed 0.19.8",
        Kind.CONVERTED,
    ),
)

SAVERS = frozenset({"torch.save", "torch.serialization.save", "pickle.dump", "pickle.dumps", "joblib.dump"})
# Methods that move or convert in place where they belong to a module, but make another tensor of a parameter.
MOVES = frozenset({"cpu", "cuda", "to", "float", "xpu", "npu"})

# What compiles a module together with its hooks; ``torch.jit.trace`` and the ONNX exporter only run them.
_READERS_OF_HOOKS = frozenset({"torch.jit.script", "torch.export.export"})

_KEEPERS = frozenset({"append", "add", "insert", "setattr", "update", "extend"})

_HELPER = '''def copy_of_module(module):
    """A copy of the model for files and averages: without the engine's hooks, which cannot be pickled."""
    copied = copy.deepcopy(module)
    for hooks in (copied._forward_pre_hooks, copied._forward_hooks):
        for key, hook in list(hooks.items()):
            if getattr(hook, "__qualname__", "").startswith("DeepSpeedEngine."):
                del hooks[key]
                copied._forward_pre_hooks_with_kwargs.pop(key, None)
    return copied
'''


def copies(plan: Plan, call: cst.Call, statement: Statement) -> None:
    """Make ``deepcopy(model)`` and ``torch.save`` of the whole model, alone or in a dictionary, work behind the engine."""
    if (dotted(call.func) or "").rpartition(".")[2] == "deepcopy":
        if call.args and _is_whole(plan, call.args[0].value):
            _take_module(plan, call.args[0].value)
            if plan.zero_stage != PARTITIONED:  # where deepcopy fails, which stage3 says
                plan.edits.replace(call.func, "copy_of_module")
                _helper(plan)
            _said(plan, statement, f"{plan.code(call.func)}({plan.code(call.args[0].value)})")
        return
    if plan.imports.names(call.func) & _READERS_OF_HOOKS:
        _scripted(plan, call, statement)
    if not plan.imports.names(call.func) & SAVERS:
        return
    for holder, value in saved(plan, argument(call, 0, "obj"), statement):
        piece = moved(value)
        inner = _behind_passing(piece)
        if holder in plan.edits.expressions or not _is_whole(plan, inner):
            continue
        if inner is not piece or inner is value:
            _take_module(plan, inner)
        if plan.zero_stage == PARTITIONED:
            plan.todo("MG705", holder, "the whole model cannot be copied or pickled at ZeRO stage 3: save gathered weights instead",
                      "its parameters are partitioned")  # fmt: skip
            continue
        if inner is value:
            plan.edits.replace(holder, _wrapped)
        elif inner is piece:
            module = f"{plan.code(piece)}.module" if plan.is_engine(piece) else plan.code(piece)
            plan.edits.replace(piece, f"copy_of_module({module})")
        else:
            plan.edits.replace(piece, given_to("copy_of_module"))
        _helper(plan)
        _said(plan, plan.tree.statement(holder), f"{plan.code(value)} in a file")


def _scripted(plan: Plan, call: cst.Call, statement: Statement) -> None:
    """``torch.jit.script(model.module)``: a copy where it is not kept for later, as a scripted module shares the weights."""
    value = call.args[0].value if call.args and call.args[0].keyword is None else None
    inner = _behind_passing(moved(value)) if value is not None else None
    if value is None or inner is None or not _is_whole(plan, inner):
        return
    name = plan.code(call.func)
    if plan.zero_stage == PARTITIONED or not _is_used_up(plan, call, statement):
        plan.todo("MG506", call, f"{name} stops at the hooks of the engine: give it a model of its own with the engine's state dict",
                  "it compiles the hooks too; a copy of the module has none, but does not follow the training")  # fmt: skip
        return
    _take_module(plan, inner)
    plan.edits.replace(call.args[0], _wrapped)
    _helper(plan)
    _said(plan, statement, f"{plan.code(value)} in {name}")


def _is_used_up(plan: Plan, call: cst.Call, statement: Statement) -> bool:
    """Whether what a call returns is gone before the next training step: saved at once, or held by a function that trains nothing."""
    if not training_follows(plan, statement):
        return True
    node = statement.node
    if isinstance(node, cst.Expr):
        outer = dotted(node.value.func) if isinstance(node.value, cst.Call) else None
        return (outer or "save").rpartition(".")[2] not in _KEEPERS
    local = isinstance(node, cst.Assign) and node.value is call and isinstance(node.targets[0].target, cst.Name)
    left = any(isinstance(s.node, cst.Return) and s.node.value is not None for s in statement.function.statements)
    return local and not left and not statement.function.is_module and not trains_within(plan, statement.function)


def saved(plan: Plan, node: Node | None, statement: Statement) -> list[tuple[Node, Node]]:
    """The values that go to a file, each with the node (argument, entry, assignment) that holds it."""
    if node is None:
        return []
    found: list[tuple[Node, Node]] = []
    for source, _ in sources(plan, node, statement.function, 6):
        if isinstance(source, cst.Dict):
            found += [(e, e.value) for e in source.elements if isinstance(e, cst.DictElement)]
        elif isinstance(source, cst.Call) and dotted(source.func) == "dict":
            found += [(arg, arg.value) for arg in source.args]
        elif isinstance(plan.tree.parent.get(source), cst.Assign | cst.Arg) and source is not node:
            if _is_item(plan.tree.parent[source]):
                found.append((plan.tree.parent[source], source))
    parent = plan.tree.parent.get(node)
    if isinstance(parent, cst.Arg):
        found.append((parent, node))
    return found


def given_to(function: str) -> ExpressionEdit:
    """The edit that hands an expression to a function."""
    return lambda updated: cst.Call(cst.parse_expression(function), [cst.Arg(updated)])  # type: ignore[arg-type]


def moved(node: Node) -> Node:
    """What is behind ``.cpu()`` and the like: the copy is made before it is moved."""
    return _behind(node, MOVES)


def _behind_passing(node: Node) -> Node:
    """The model of ``model.module.eval()``, which gives it back."""
    return _behind(node, PASS_METHODS)


def _behind(node: Node, methods: frozenset[str]) -> Node:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in methods:
        node = node.func.value
    return node


def _is_item(node: Node) -> bool:
    return isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Subscript)


def _wrapped(holder: Node) -> Node:
    value = holder.value  # type: ignore[attr-defined]
    return holder.with_changes(value=cst.Call(cst.Name("copy_of_module"), [cst.Arg(value)]))


def _is_whole(plan: Plan, node: Node) -> bool:
    """Whether an expression is the engine or the engine's module, and not a value made of it (a state dict)."""
    if isinstance(node, cst.IfExp):
        return _is_whole(plan, node.body) or _is_whole(plan, node.orelse)
    if isinstance(node, cst.Call):
        asked = dotted(node.func) == "getattr" and len(node.args) == 3 and '"module"' in plan.code(node.args[1])
        return asked and _is_whole(plan, node.args[0].value)
    if not isinstance(node, cst.Name | cst.Attribute) or "N" in plan.tags(node) or plan.is_before_engine(node):
        return False
    if isinstance(node, cst.Attribute) and node.attr.value == "module":
        return plan.is_engine(node.value)
    return plan.is_ours(node)


def _take_module(plan: Plan, node: Node) -> None:
    """``.module`` behind a plain name of the engine."""
    if isinstance(node, cst.Name | cst.Attribute) and plan.is_engine(node) and node not in plan.edits.expressions:
        plan.edits.replace(node, f"{plan.code(node)}.module")


def _helper(plan: Plan) -> None:
    plan.need("copy")
    if _HELPER not in plan.helpers:
        plan.helpers.append(_HELPER)


def _said(plan: Plan, statement: Statement, what: str) -> None:
    plan.converted("MG506", statement, f"{what} → a copy of the module without the engine's hooks",
                   "neither the engine nor its hooks can be copied or pickled")  # fmt: skip
