"""MG5xx: ``.module``, ``isinstance`` and other ways in which scripts look through the wrapper."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import DATA_PARALLEL_NAMES, is_ddp_class, qualifies
from dsmigrate.codemod.steps.acquiring import own_parts
from dsmigrate.codemod.steps.copies import copies
from dsmigrate.codemod.steps.inputs import LEFT_ALONE, UNUSED
from dsmigrate.codemod.steps.parts import parts
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG501",
        ".module before the engine exists",
        "The model is not wrapped yet at this point of the converted script; .module goes.",
        "The engine is made later than the wrap was, because it needs the optimizer.",
        "dsmigrate's placement of deepspeed.initialize (MG101)",
        Kind.CONVERTED,
    ),
    Idea(
        "MG502",
        "isinstance(model, DistributedDataParallel) asks for the engine",
        "Unwrap helpers that test for DDP, by its class, a constant or its name, test for deepspeed.DeepSpeedEngine.",
        "Left as it was the test would be false, and the engine itself would be taken for the raw model.",
        "ddp-idioms trap 10",
        Kind.CONVERTED,
    ),
    Idea(
        "MG503",
        "Unwrapping that depended on a flag",
        "`model.module if distributed else model` becomes `model.module`: the engine is there on both branches.",
        "DDP wrapped only distributed runs; the engine wraps every run.",
        "ddp-idioms trap 11",
        Kind.CONVERTED,
    ),
    Idea(
        "MG505",
        "Modes and private switches of the wrapper",
        "engine.train() and engine.eval() return nothing, engine.training is always True, DDP's private methods are gone.",
        "`model = model.eval()` would leave None in the variable.",
        "engine-semantics 11",
        Kind.CONVERTED,
    ),
    Idea(
        "MG504",
        ".module of a value that may or may not be wrapped",
        "getattr(model, 'module', model) works for the engine and for the plain module.",
        "The function is called with both.",
        "torch.nn.Module",
        Kind.CONVERTED,
    ),
)


def run(plan: Plan) -> None:
    """Make every look through the wrapper right for the engine."""
    _modes(plan)
    _branches(plan)
    for statement in plan.tree.statements:
        node = statement.node
        for head in own_parts(node):
            for sub in descendants(head):
                if isinstance(sub, cst.Call):
                    _isinstance(plan, sub, statement)
                    copies(plan, sub, statement)
                    parts(plan, sub, statement)
                    _averages(plan, sub, statement)
                    _already_wrapped(plan, sub, statement)
                elif isinstance(sub, cst.IfExp):
                    _choice(plan, sub, statement)
                elif isinstance(sub, cst.Attribute) and sub.attr.value == "module":
                    _module(plan, sub, statement)
                elif isinstance(sub, cst.Comparison):
                    _type_test(plan, sub, statement)


def _branches(plan: Plan) -> None:
    """``if distributed: raw = model.module`` (``else: raw = model``) behind the engine: it is there on both branches."""
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.If) or _asks_the_object(plan, node.test):
            continue
        inner = plan.tree.statements[statement.order + 1 : statement.last_order + 1]
        assigns = [s.node for s in inner]
        if not 1 <= len(inner) <= 2 or not all(isinstance(a, cst.Assign) and len(a.targets) == 1 for a in assigns):
            continue
        first = assigns[0]
        assert isinstance(first, cst.Assign)
        value = first.value
        if not isinstance(value, cst.Attribute) or value.attr.value != "module" or not plan.is_engine(value.value):
            continue
        target, model = plan.code(first.targets[0].target), plan.code(value.value)
        if len(assigns) == 2:
            other = assigns[1]
            assert isinstance(other, cst.Assign)
            if plan.code(other.targets[0].target) != target or plan.code(other.value) != model or node.orelse is None:
                continue
        elif node.orelse is not None:
            continue
        plan.edits.substitute(node, f"{target} = {model}.module")
        plan.handled.add(value)
        plan.converted(
            "MG503",
            statement,
            f"{target} = {model}.module, whatever the flag says",
            "the engine is there on both branches",
        )
        for part in inner:
            plan.converted("MG503", part, f"{target} = {model}.module", "the engine is there on both branches")


def _modes(plan: Plan) -> None:
    """``x = model.eval()`` would be None; ``model.training`` is always True; DDP's private switches are gone."""
    for statement in plan.tree.statements:
        node = statement.node
        if (
            isinstance(node, cst.Assign)
            and isinstance(node.value, cst.Call)
            and isinstance(node.value.func, cst.Attribute)
        ):
            func = node.value.func
            if func.attr.value in ("train", "eval") and plan.is_engine(func.value) and len(node.targets) == 1:
                target, base = plan.code(node.targets[0].target), plan.code(func.value)
                lines = [plan.code(node.value)] + ([] if target == base else [f"{target} = {base}"])
                plan.edits.substitute(node, *lines)
                plan.converted(
                    "MG505", statement, f"{func.attr.value}() of the engine returns nothing", "it returned the model"
                )
        elif (
            isinstance(node, cst.Expr)
            and isinstance(node.value, cst.Call)
            and isinstance(node.value.func, cst.Attribute)
        ):
            func = node.value.func
            if func.attr.value in ("_set_static_graph", "_sync_params", "_rebuild_buckets") and plan.is_ours(
                func.value
            ):
                plan.edits.remove(node)
                plan.converted("MG505", statement, f"{func.attr.value} removed", "it belongs to DDP's reducer")
                if func.attr.value == "_set_static_graph":
                    plan.kept("MG110", statement, UNUSED, LEFT_ALONE)
        for sub in (sub for part in own_parts(node) for sub in descendants(part)):
            if (
                isinstance(sub, cst.Attribute)
                and sub.attr.value == "training"
                and plan.is_engine(sub.value)
                and not _is_unwrapped(plan, sub.value, statement)
            ):
                base = plan.code(sub.value)
                plan.edits.replace(sub, f"{base}.module.training")
                plan.converted(
                    "MG505", statement, f"{base}.training → {base}.module.training", "engine.training is always True"
                )


def _is_unwrapped(plan: Plan, node: Node, statement: Statement) -> bool:
    """Whether a name was given ``x.module if … else x`` or its like: the engine's module by then."""
    place = plan.flow.place(node, statement.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return any(
        isinstance(binding.value, cst.IfExp)
        and any(
            dotted(one) and str(dotted(one)).endswith(".module") for one in (binding.value.body, binding.value.orelse)
        )
        for binding in bindings
    )


def _wrapper_classes(plan: Plan, node: Node) -> list[Node]:
    items = [e.value for e in node.elements] if isinstance(node, cst.Tuple | cst.List) else [node]
    return [
        item for item in items if is_ddp_class(plan.imports, item) or qualifies(plan.imports, item, DATA_PARALLEL_NAMES)
    ]


def _isinstance(plan: Plan, call: cst.Call, statement: Statement) -> None:
    if dotted(call.func) not in ("isinstance", "issubclass") or len(call.args) != 2:
        return
    tested = call.args[1].value
    hits = _wrapper_classes(plan, tested)
    if not any(is_ddp_class(plan.imports, item) for item in hits):
        return
    if _is_kept_model(plan, call.args[0].value):
        return
    plan.need("deepspeed")
    for item in hits:
        if is_ddp_class(plan.imports, item):
            plan.edits.replace(item, "deepspeed.DeepSpeedEngine")
    plan.converted("MG502", statement, "the unwrap test asks for deepspeed.DeepSpeedEngine",
                   "the engine is no DistributedDataParallel")  # fmt: skip


# Classes that average a model: timm's ModelEmaV2, torch's AveragedModel, EMA of many projects.
AVERAGE = re.compile(r"ema(?:v\d)?$|^ema|averaged?_?model|moving_?average", re.IGNORECASE)


def _averages(plan: Plan, call: cst.Call, statement: Statement) -> None:
    """Averaging helpers of other modules test for DDP by type, and want the module."""
    if not _is_average(plan, call) or plan.flow.callee(call) is not None:
        return
    last = (dotted(call.func) or "").rpartition(".")[2]
    for arg in call.args:
        value = arg.value
        if (
            isinstance(value, cst.Name | cst.Attribute)
            and plan.is_engine(value)
            and value not in plan.edits.expressions
            and "N" not in plan.tags(value)
        ):
            name = plan.code(value)
            plan.edits.replace(value, f"{name}.module")
            plan.converted(
                "MG506", statement, f"{last}({name}) → {name}.module", "helpers of other modules look for DDP"
            )


def _is_average(plan: Plan, call: cst.Call) -> bool:
    """Whether a call makes an averaged model or updates one."""
    name = dotted(call.func) or ""
    last = name.rpartition(".")[2]
    if last[:1].isupper() and AVERAGE.search(last):
        return True
    if last not in ("update", "update_parameters", "update_attr", "set", "step") or not isinstance(
        call.func, cst.Attribute
    ):
        return False
    return "ema" in name.lower() or "swa" in name.lower() or "N" in plan.tags(call.func.value)


def _already_wrapped(plan: Plan, call: cst.Call, statement: Statement) -> None:
    """``hasattr(model, "module")`` between the wrap and the engine was true: it is not wrapped there any more."""
    if dotted(call.func) != "hasattr" or len(call.args) != 2 or isinstance(plan.tree.parent.get(call), cst.IfExp):
        return
    name = call.args[1].value
    model = call.args[0].value
    if not isinstance(name, cst.SimpleString) or name.evaluated_value != "module":
        return
    wrapped = any(tag[0] == "E" and tag[1:] in plan.group for tag in plan.tags(model))
    own = any(w.function is statement.function for w in plan.wraps)
    if wrapped and own and plan.is_before_engine(model) and _after_wrap(plan, statement):
        plan.edits.replace(call, "True")
        plan.converted(
            "MG501", statement, f"{plan.code(call)} → True", "it was wrapped here, and is so again further down"
        )


def _is_kept_model(plan: Plan, node: Node) -> bool:
    tags = plan.tags(node)
    return (
        bool(tags)
        and all(tag[1:] not in plan.group for tag in tags if tag[0] in "ER")
        and any(tag[0] in "ER" for tag in tags)
    )


def _type_test(plan: Plan, node: cst.Comparison, statement: Statement) -> None:
    """``type(model) is DDP`` and ``type(model) == DDP``."""
    if len(node.comparisons) != 1 or not isinstance(node.left, cst.Call) or dotted(node.left.func) != "type":
        return
    other = node.comparisons[0].comparator
    for item in _wrapper_classes(plan, other):
        if is_ddp_class(plan.imports, item):
            plan.need("deepspeed")
            plan.edits.replace(item, "deepspeed.DeepSpeedEngine")
            plan.converted("MG502", statement, "the unwrap test asks for deepspeed.DeepSpeedEngine",
                           "the engine is no DistributedDataParallel")  # fmt: skip


def _choice(plan: Plan, node: cst.IfExp, statement: Statement) -> None:
    """``model.module if cond else model``, in either order."""
    body, orelse = node.body, node.orelse
    body_is_module = isinstance(body, cst.Attribute) and body.attr.value == "module"
    orelse_is_module = isinstance(orelse, cst.Attribute) and orelse.attr.value == "module"
    if body_is_module == orelse_is_module:
        return
    inner = body if body_is_module else orelse
    plain = orelse if body_is_module else body
    assert isinstance(inner, cst.Attribute)
    if plan.code(inner.value) != plan.code(plain) or not plan.is_ours(plain):
        return
    if _asks_the_object(plan, node.test):
        plan.handled.add(inner)
        return
    before = plan.is_before_engine(plain) or not any(tag[0] == "E" for tag in plan.tags(plain))
    text = plan.code(plain) if before else f"{plan.code(plain)}.module"
    if not before and _may_be_raw(plan, plain):
        text = f'getattr({plan.code(plain)}, "module", {plan.code(plain)})'
    plan.edits.replace(node, text)
    plan.handled.add(inner)
    plan.converted("MG503", statement, f"{plan.code(node)} → {text}", "the engine is there whatever the flag says")


def _asks_the_object(plan: Plan, test: Node) -> bool:
    """Whether a test looks at the object itself (``hasattr``, ``isinstance``) and so stays right."""
    return any(
        sub.attr.value == "__class__"
        if isinstance(sub, cst.Attribute)
        else isinstance(sub, cst.Call)
        and (dotted(sub.func) in ("hasattr", "isinstance", "type") or _test_of_this_file(plan, sub))
        for sub in descendants(test)
    )


def _test_of_this_file(plan: Plan, call: cst.Call) -> bool:
    """Whether a test such as is_parallel(model) is defined here, where it is made right for the engine."""
    return plan.flow.callee(call) is not None and any(plan.is_ours(arg.value) for arg in call.args)


def _module(plan: Plan, node: cst.Attribute, statement: Statement) -> None:
    if node in plan.handled or node in plan.edits.expressions:
        return
    base = node.value
    tags = plan.tags(base)
    if not any(tag[0] in "ER" and tag[1:] in plan.group for tag in tags):
        return
    wrapped = any(tag[0] == "E" and tag[1:] in plan.group for tag in tags)
    if wrapped and plan.is_before_engine(base) and _after_wrap(plan, statement):
        plan.edits.replace(node, lambda updated: updated.value)  # type: ignore[attr-defined]
        plan.handled.add(node)
        assign = statement.node
        if (
            isinstance(assign, cst.Assign)
            and assign.value is node
            and plan.code(assign.targets[0].target) == plan.code(base)
        ):
            plan.edits.remove(assign)
        plan.converted(
            "MG501", statement, f"{plan.code(node)} → {plan.code(base)}", "the model is not wrapped yet here"
        )
    elif _asked_around(plan, node, statement):
        return
    elif wrapped and _may_be_raw(plan, base):
        text = plan.code(base)
        plan.edits.replace(node, f'getattr({text}, "module", {text})')
        plan.handled.add(node)
        plan.converted("MG504", statement, f"{plan.code(node)} → getattr({text}, 'module', {text})",
                       "callers hand in the engine and the plain module")  # fmt: skip


def _after_wrap(plan: Plan, statement: Statement) -> bool:
    """Whether the original had wrapped the model by then (a ``.module`` before that is the model's own)."""
    wraps = [w for w in plan.wraps if w.function is statement.function]
    return not wraps or any(w.statement.order < statement.order for w in wraps)


def _may_be_raw(plan: Plan, node: Node) -> bool:
    """Whether a parameter receives the raw model in the converted script although it was wrapped before."""
    function = plan.function_of(node)
    if not isinstance(node, cst.Name) or node.value not in function.params or plan.site is None:
        return False
    for binding in plan.flow.by_place.get(("v", id(function), node.value), ()):
        if binding.kind == "argument" and plan.is_before_engine(binding.value):
            return True
    return False


def _asked_around(plan: Plan, node: cst.Attribute, statement: Statement) -> bool:
    """Whether the ``.module`` stands behind a test of the same object: ``if hasattr(model, "module"): …``."""
    base = plan.code(node.value)
    for outer in statement.enclosing():
        if (
            isinstance(outer.node, cst.If)
            and base in plan.code(outer.node.test)
            and _asks_the_object(plan, outer.node.test)
        ):
            return True
    for ancestor in plan.tree.ancestors(node):
        if isinstance(ancestor, cst.IfExp) and _asks_the_object(plan, ancestor.test):
            return True
        if isinstance(ancestor, cst.BaseStatement | cst.BaseSmallStatement):
            break
    return False
