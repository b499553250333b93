"""MG302, MG303: the script's gradient scaler drives the engine."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod import targets
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.acquiring import own_parts
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.sites import Sites, mark_twins
from dsmigrate.codemod.steps.zero_grad import is_twin
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG302",
        "The gradient scaler drives the engine",
        "The script's scaler keeps its scale, schedule and state, and lends them to the engine.",
        "DeepSpeed 0.19.8 scales fp16 torch_autocast losses by itself, but at ZeRO 1-3 its scale never falls after an "
        "overflow and clipping sees scaled gradients. With the script's own scaler the scale sequence, the skipped "
        "steps and the losses are those of DDP at every stage.",
        "measured against DeepSpeed 0.19.8, ZeRO 0-3",
        Kind.CONVERTED,
    ),
    Idea(
        "MG303",
        "scaler.update goes",
        "engine_step updates the scale.",
        "Updating twice would let the scale grow twice as fast. A scale that is read between step and update is read before "
        "the step: only the update changes it, and a comparison with the scale after it tells whether the step was skipped. "
        "A scale that the script sets by update(x) is marked.",
        "torch.amp.GradScaler.update",
        Kind.CONVERTED,
    ),
)


SCALER_CLASS = "EngineGradScaler"


def scalers(plan: Plan, *, has_regions: bool) -> None:
    """Let the script's gradient scaler drive the engine."""
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "update":
            continue
        if not (plan.roles.is_scaler(func.value) or (not call.args and "scaler" in (dotted(func.value) or "").lower())):
            continue
        if call.args:
            shown = plan.code(func.value)
            plan.todo("MG303", call, "engine_step has updated the scale already, and at ZeRO 1-3 update(…) finds none: set it by "
                      f'{shown}.load_state_dict({{**{shown}.state_dict(), "scale": …}})',
                      "torch keeps the scale on the device only once it has scaled a loss by itself")  # fmt: skip
            continue
        statement = plan.tree.statement(call)
        if isinstance(statement.node, cst.Expr):
            _scale_read_before_update(plan, func.value, statement)
            plan.edits.remove(statement.node)
            mark_twins(plan, statement)
            plan.converted("MG303", statement, "scaler.update removed", "engine_step updates the scale")
            _update_without_step(plan, statement)
    if not plan.roles.scalers:
        if plan.facts.get("scaler_used"):
            raise plan.refuse(
                "MG910", plan.facts.get("first_scaler", plan.wraps[0].statement),
                "the gradient scaler is made in another module", "it has to become an EngineGradScaler there",
            )  # fmt: skip
        return
    if not plan.facts.get("scaler_used") or plan.options.precision != "keep":
        return
    names = sorted(
        name for call in plan.roles.scalers for name in plan.imports.names(call.func) if name.startswith("torch.")
    )
    plan.need("torch")
    plan.helpers.append(scaler_class(names[0] if names else "torch.cuda.amp.GradScaler"))
    for call in plan.roles.scalers:
        plan.edits.replace(call.func, SCALER_CLASS)
        plan.converted("MG302", call, f"{plan.code(call.func)} → {SCALER_CLASS}, which lends its scale to the engine",
                       "DeepSpeed 0.19.8's own fp16 autocast scale never falls at ZeRO 1-3")  # fmt: skip
    if _marked_for_the_release(plan):
        return
    if not has_regions and any("autocast" in text for text in plan.facts["texts"]):
        plan.todo("MG302", plan.roles.scalers[0], "a gradient scaler is used, but no autocast region around the model was found: "
                  "if there is one, enable torch_autocast in the config",
                  "the engine switches a region around its forward off; the scaler itself works without")  # fmt: skip
        plan.config["torch_autocast"] = {"enabled": False, "dtype": "float16", "lower_precision_safe_modules": []}


def _update_without_step(plan: Plan, update: Statement) -> None:
    """Mark an update that the script also comes to where it takes no step, as for a norm that is not finite."""
    sites: Sites = plan.facts["sites"]
    steps = [plan.tree.statement(call) for call in sites.steps]
    steps = [step for step in steps if step.function is update.function]
    reached = {(_test(plan, node), branch) for node, branch in branches_to(update)}
    for step in steps:
        alone = [node for node, branch in branches_to(step) if (_test(plan, node), branch) not in reached]
        if step.order < update.order and all(isinstance(node, cst.If) and is_twin(plan, node, sites) for node in alone):
            return
    if steps:
        plan.todo("MG303", update, "the script updated its scale without a step, too; engine_step does so at a step only: "
                  "take the step in any case (one with gradients that are not finite is skipped)",
                  "the scale would not fall after an overflow, and the next unscale_ raises")  # fmt: skip


def _test(plan: Plan, node: Node) -> Node | str:
    """What stands for a branching statement: its question, of which several may ask the same."""
    return plan.code(node.test) if isinstance(node, cst.If) else node


def _scale_read_before_update(plan: Plan, scaler: cst.BaseExpression, update: Statement) -> None:
    """``scale = scaler.get_scale()`` between step and update goes in front of the step, which updates the scale now."""
    steps = [plan.tree.statement(call) for call in plan.facts["sites"].steps]
    before = [s for s in steps if s.function is update.function and s.order < update.order]
    step = max(before, key=lambda s: s.order, default=None)
    if step is None:
        return
    reads = [
        s
        for s in plan.statements_between(step, update)
        if s.function is update.function
        and not isinstance(s.node, cst.FunctionDef | cst.ClassDef)
        and any(_reads_scale(sub, dotted(scaler)) for head in own_parts(s.node) for sub in descendants(head))
    ]
    for read in reads:
        node = read.node
        if (
            read.block is step.block
            and isinstance(node, cst.Assign)
            and len(node.targets) == 1
            and _reads_scale(node.value, dotted(scaler))
        ):
            plan.edits.insert_before(step.line_node, plan.code(node))
            plan.edits.remove(node)
            plan.converted("MG303", read, "the scale is read before the step, which updates it now",
                           "scaler.step left it alone, and so did all that came before the update")  # fmt: skip
        else:
            plan.todo("MG303", read, "the scale is read here before the update: read it before the step, which updates it now",
                      "the step would look as if it were never skipped")  # fmt: skip


def _reads_scale(node: Node, scaler: str | None) -> bool:
    """``scaler.get_scale()``."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in ("get_scale", "state_dict")
        and dotted(node.func.value) == scaler
    )


def _marked_for_the_release(plan: Plan) -> bool:
    """Whether the release cannot be driven by a scaler, which is marked for the person."""
    release, where = plan.options.target_version, plan.roles.scalers[0]
    if not targets.holds("torch_autocast", release):
        plan.todo("MG302", where, f"DeepSpeed {release} may step where this scaler would skip, and ZeRO 0 ignores it: switch it off, or train in bfloat16",
                  "up to 0.17.1 ZeRO looks for overflows in half-precision parameters only; 0.18.0 is right at every stage")  # fmt: skip
        return True
    if not targets.holds("scaler_at_zero_0", release) and plan.options.zero_stage in (None, 0):
        plan.todo("MG302", where, f"in DeepSpeed {release} ZeRO 0 ignores this scaler: choose ZeRO stage 1, 2 or 3",
                  "engine.torch_autocast_z0_gradscaler is new in 0.18.0")  # fmt: skip
    return False


def scaler_class(base: str) -> str:
    """The source of the scaler class that the script gets, deriving from the scaler class it used."""
    return f'''class {SCALER_CLASS}({base}):
    """A gradient scaler that lends its scale to a DeepSpeed engine: the same steps are skipped at ZeRO 0-3."""

    def engine_backward(self, engine, loss, **kwargs):
        if engine.zero_optimization():
            engine.optimizer.torch_autocast_gradscaler = None
            engine.optimizer.override_loss_scale(self.get_scale())
        else:
            engine.torch_autocast_z0_gradscaler = self
        engine.backward(loss, **kwargs)

    def engine_step(self, engine):
        engine.step()
        if not engine.zero_optimization() or not self.is_enabled():
            return
        state = self.state_dict()
        if engine.optimizer.overflow:
            state["scale"] *= state["backoff_factor"]
            state["_growth_tracker"] = 0
        else:
            state["_growth_tracker"] += 1
            if state["_growth_tracker"] >= state["growth_interval"]:
                state["scale"] *= state["growth_factor"]
                state["_growth_tracker"] = 0
        self.load_state_dict(state)
'''
