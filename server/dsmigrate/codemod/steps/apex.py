"""MG304: apex amp becomes torch autocast with a scaler."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod import targets
from dsmigrate.codemod.carrying import carry_branches
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.scaler import SCALER_CLASS, scaler_class
from dsmigrate.codemod.steps.sites import mark_twins
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG304",
        "apex amp becomes torch autocast",
        "amp.initialize and amp.scale_loss go; the engine runs the model under torch_autocast.",
        "DeepSpeed removed its amp section in 0.19.7. Opt level O1 is torch's autocast in spirit; the loss has to be "
        "computed inside an autocast region as well, which a person has to place.",
        "deepspeed/runtime/config.py, removed keys",
        Kind.TODO,
    ),
)


def detect_apex(plan: Plan) -> None:
    """Find apex amp before the loop is converted: with it the loss needs a scaler that the script does not have."""
    calls = [c for c in plan.tree.calls if any(n.endswith("amp.initialize") for n in plan.imports.names(c.func))]
    if not calls:
        return
    level = argument(calls[0], None, "opt_level")
    literal = level.evaluated_value if isinstance(level, cst.SimpleString) else None
    plan.facts["apex"] = calls
    plan.facts["apex_level"] = str(literal) if literal is not None else (None if level is not None else "O1")
    if plan.options.precision == "keep" and plan.facts["apex_level"] in (None, "O1"):
        plan.facts["amp_scaler"] = True


def apex(plan: Plan) -> None:
    """Take apex amp out: initialize, scale_loss, its state and the attempts to import it."""
    initialised: list[cst.Call] = plan.facts.get("apex", [])
    scaled = [
        statement
        for statement in plan.tree.withs
        if any(
            isinstance(item.item, cst.Call)
            and any(n.endswith("amp.scale_loss") for n in plan.imports.names(item.item.func))
            for item in statement.node.items  # type: ignore[attr-defined]
        )
    ]
    for statement in scaled:
        _dissolve_scale_loss(plan, statement)
    for call in initialised:
        _apex_initialize(plan, call, scaled)
    if initialised:
        _drop_import_attempts(plan)
        _amp_state(plan)


def _is_passed_on(plan: Plan, name: str) -> bool:
    """Whether a name is handed to a function or assigned as a value somewhere."""
    for call in plan.tree.calls:
        if any(dotted(arg.value) == name for arg in call.args):
            return True
    return any(dotted(binding.value) == name for binding in plan.flow.bindings)


def _amp_state(plan: Plan) -> None:
    """``amp.state_dict()`` and ``amp.load_state_dict(…)`` become those of the scaler that replaces apex."""
    for call in plan.tree.calls:
        func = call.func
        _handed_to_load(plan, call)
        if not any(n.startswith("apex.amp.") or n == "apex.amp" for n in plan.imports.names(func)):
            continue
        last = (dotted(func) or "").rpartition(".")[2]
        if last in ("initialize", "scale_loss", "master_params"):
            continue
        engine = plan.engine_in(call)
        if last in ("state_dict", "load_state_dict") and engine is not None and plan.facts.get("amp_scaler"):
            if not plan.is_before_engine(call):
                plan.edits.replace(func, f"{engine}.amp_scaler.{last}")
                plan.converted(
                    "MG304", call, f"amp.{last} → {engine}.amp_scaler.{last}", "the scaler replaces apex amp"
                )
                continue
        plan.todo("MG304", call, f"amp.{last} does nothing without amp.initialize", "apex amp is not used any more")


def _handed_to_load(plan: Plan, call: cst.Call) -> None:
    """Mark where apex amp itself is handed to a function that loads states into what it gets."""
    callee = plan.flow.callee(call)
    if callee is None or not any("apex.amp" in plan.imports.names(arg.value) for arg in call.args):
        return
    if "load_state_dict" in plan.code(callee.node):
        plan.todo("MG304", call, "hand on the engine's amp_scaler here: apex amp has no state to load without amp.initialize",
                  "apex amp is not used any more; what this function loads into it is the state of the scaler")  # fmt: skip


def _drop_import_attempts(plan: Plan) -> None:
    """``try: from apex import amp`` with nothing else in it goes as a whole."""
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.Try) or node.orelse is not None or node.finalbody is not None:
            continue
        inner = plan.tree.statements[statement.order + 1 : statement.last_order + 1]
        tried = [s for s in inner if s.branch == "body" and s.up is statement]
        if len(tried) != 1 or not isinstance(tried[0].node, cst.ImportFrom) or dotted(tried[0].node.module) != "apex":
            continue
        if _is_passed_on(plan, "amp"):
            continue
        others = [s.node for s in inner if s is not tried[0]]
        if all(
            isinstance(o, cst.Raise | cst.Pass) or (isinstance(o, cst.Expr) and isinstance(o.value, cst.Call))
            for o in others
        ):
            plan.edits.remove(node)
            plan.converted("MG304", statement, "the attempt to import apex removed", "apex amp is not used any more")
            for part in inner:
                plan.converted("MG304", part, "the attempt to import apex removed", "apex amp is not used any more")


def _apex_initialize(plan: Plan, call: cst.Call, scaled: list[Statement]) -> None:
    statement = plan.tree.statement(call)
    text = carry_branches(plan, statement)
    condition = f"bool({text})" if text is not None else None
    if isinstance(statement.node, cst.Assign | cst.Expr):
        plan.edits.remove(statement.node)
    plan.converted("MG304", statement, "amp.initialize removed", "DeepSpeed has no apex amp since 0.19.7")
    level = plan.facts["apex_level"]
    if level == "O0" or plan.options.precision != "keep":
        return
    node = argument(call, None, "opt_level")
    shown = plan.code(node) if node is not None else '"O1"'
    where = scaled[0] if scaled else statement
    if (
        where is not statement
        and where.up is not None
        and isinstance(where.up.node, cst.If)
        and where.up.node.orelse is not None
    ):
        where = where.up
    if level in ("O2", "O3"):
        plan.config["fp16"] = {"enabled": True, "auto_cast": True}
        if condition is not None:
            plan.set_at_run_time(("fp16", "enabled"), condition, statement)
        plan.todo("MG304", where, f"apex amp {shown} became DeepSpeed's fp16 section: compute the loss in float32",
                  "both keep fp32 master weights; their loss scales start and grow differently")  # fmt: skip
        return
    release = plan.options.target_version
    right = targets.holds("torch_autocast", release)
    if right:
        plan.config["torch_autocast"] = {"enabled": True, "dtype": "float16", "lower_precision_safe_modules": []}
    if condition is not None and right:
        plan.set_at_run_time(("torch_autocast", "enabled"), condition, statement)
    plan.need("torch")
    assert plan.site is not None
    made = ['"cuda"', *([f"enabled={condition}"] if condition is not None else [])]
    if plan.facts.get("scaler_used") and plan.roles.scalers:
        del made[0]  # there is a class for the script's own scaler already, and not every base of it takes a device
    else:
        plan.helpers.append(scaler_class("torch.amp.GradScaler"))
    plan.after_engine.append(f"{plan.site.target}.amp_scaler = {SCALER_CLASS}({', '.join(made)})")
    plan.todo(
        "MG304",
        where,
        f"apex amp ({shown}) became torch_autocast: compute the loss inside torch.autocast too"
        if right
        else f"DeepSpeed {release} has nothing like apex amp ({shown}): run model and loss inside torch.autocast, in bfloat16",
        "apex amp patched every torch function; the engine autocasts the model's forward only"
        if right
        else "torch_autocast is right from 0.17.6 on, a gradient scaler at every stage from 0.18.0 on",
    )


def _dissolve_scale_loss(plan: Plan, statement: Statement) -> None:
    node = statement.node
    assert isinstance(node, cst.With)
    item = next(i for i in node.items if isinstance(i.item, cst.Call))
    call = item.item
    assert isinstance(call, cst.Call)
    loss = call.args[0].value
    if item.asname is not None and isinstance(item.asname.name, cst.Name):
        scaled = item.asname.name.value
        inner = plan.tree.statements[statement.order + 1 : statement.last_order + 1]
        for stmt in inner:
            if isinstance(stmt.node, cst.BaseCompoundStatement):
                continue
            _rename(plan, stmt.node, scaled, loss)
    plan.edits.dissolve(node)
    mark_twins(plan, statement)
    plan.converted("MG304", statement, "amp.scale_loss removed", "the engine scales the loss where that is needed")


def _rename(plan: Plan, node: Node, old: str, new: Node) -> None:
    for sub in descendants(node):
        if isinstance(sub, cst.Name) and sub.value == old and not isinstance(plan.tree.parent.get(sub), cst.Attribute):
            plan.edits.replace(sub, lambda _: new)
        elif isinstance(sub, cst.Attribute) and isinstance(sub.value, cst.Name) and sub.value.value == old:
            plan.edits.replace(sub.value, lambda _: new)
