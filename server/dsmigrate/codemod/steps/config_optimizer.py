"""MG606: ``--optimizer config`` moves the optimizer into the config."""

from __future__ import annotations

from typing import Any

import libcst as cst

from dsmigrate.codemod.makers import construction
from dsmigrate.codemod.model import Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import REDUNDANCY_NAMES
from dsmigrate.codemod.roles import OptimizerSite
from dsmigrate.codemod.values import resolve

# torch.optim class -> (config type, positional parameters after params, torch's defaults that differ from DeepSpeed's)
_TYPES: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "Adam": ("Adam", ("lr", "betas", "eps", "weight_decay"), {"lr": 1e-3, "weight_decay": 0.0, "adam_w_mode": False}),
    "AdamW": ("AdamW", ("lr", "betas", "eps", "weight_decay"), {"lr": 1e-3, "weight_decay": 0.01}),
    "SGD": ("SGD", ("lr", "momentum", "dampening", "weight_decay", "nesterov"), {"lr": 1e-3}),
    "Adagrad": ("Adagrad", ("lr", "lr_decay", "weight_decay"), {"lr": 1e-2}),
    "RMSprop": ("RMSprop", ("lr", "alpha", "eps", "weight_decay", "momentum"), {"lr": 1e-2}),
    "NAdam": ("NAdam", ("lr", "betas", "eps", "weight_decay"), {}),
    "RAdam": ("RAdam", ("lr", "betas", "eps", "weight_decay"), {}),
    "Adamax": ("Adamax", ("lr", "betas", "eps", "weight_decay"), {}),
}
_NOT_IN_CONFIG = {"foreach", "fused", "capturable", "differentiable", "maximize"}


def run(plan: Plan) -> None:
    """Write type and parameters to the config and give the engine the parameters; only where that is provable."""
    if plan.options.optimizer != "config":
        return
    assert plan.site is not None
    made = [s for s in plan.roles.optimizers if s.call is not None]
    reason = _obstacle(plan, made)
    if reason is not None:
        where = made[0].statement if made else plan.site.anchor
        plan.todo(
            "MG606",
            where,
            f"the optimizer stays in the script: {reason}",
            "--optimizer config needs one plain torch optimizer",
        )
        return
    site = made[0]
    call = site.call
    assert call is not None
    kind, positions, defaults = _TYPES[_class_of(plan, call) or ""]
    params: dict[str, Any] = dict(defaults)
    args = construction(plan.flow, call)[1]
    for index, arg in enumerate(args[1:]):
        name = arg.keyword.value if arg.keyword is not None else positions[index]
        if name in _NOT_IN_CONFIG:
            continue
        value = resolve(plan, arg.value, site.statement.function)
        if value.static is not None:
            params[name] = value.static
        if value.expression is not None:
            plan.set_at_run_time(("optimizer", "params", name), value.expression, site.statement)
    plan.config["optimizer"] = {"type": kind, "params": params}
    plan.config.pop("zero_allow_untested_optimizer", None)
    if kind not in ("Adam", "AdamW", "Adagrad"):
        plan.config["zero_allow_untested_optimizer"] = True
    parameters = plan.code(args[0].value)
    plan.edits.remove(site.statement.node)
    plan.facts["config_optimizer"] = parameters
    plan.note(
        "MG606", Kind.CONVERTED, site.statement, f"{kind} moved into the config", "asked for by --optimizer config"
    )


def _class_of(plan: Plan, call: cst.Call) -> str | None:
    for name in plan.imports.names(construction(plan.flow, call)[0]):
        head, _, last = name.rpartition(".")
        if head == "torch.optim" and last in _TYPES:
            return last
    return None


def _obstacle(plan: Plan, made: list[OptimizerSite]) -> str | None:
    """Why the optimizer cannot be moved, or None."""
    site = plan.site
    assert site is not None
    if len(made) != 1:
        return f"{len(made)} places make it"
    only = made[0]
    call = only.call
    assert call is not None
    if _class_of(plan, call) is None:
        return f"{dotted(call.func) or 'it'} has no config type"
    if not plan.imports.names(call.func) & REDUNDANCY_NAMES and construction(plan.flow, call)[0] is not call.func:
        return "it is made through functools.partial"
    args = construction(plan.flow, call)[1]
    if any(arg.star for arg in args) or not args or args[0].keyword is not None:
        return "its arguments cannot be read"
    if only.statement.function is not site.function or not isinstance(only.statement.node, cst.Assign):
        return "it is made in another function than the engine"
    positions = _TYPES[_class_of(plan, call) or ""][1]
    for index, arg in enumerate(args[1:]):
        if arg.keyword is None and index >= len(positions):
            return "it has more positional arguments than are known"
        if arg.keyword is not None and arg.keyword.value in _NOT_IN_CONFIG:
            continue
        value = resolve(plan, arg.value, only.statement.function)
        if value.expression is None and (not value.known or value.is_default):
            return f"{plan.code(arg)} is not known where the engine is made"
    for binding in plan.flow.bindings:
        if "S" in plan.roles.of(binding.value, binding.function) and binding.kind == "assign":
            if binding.statement.function is site.function and binding.statement.order <= site.order:
                return "a scheduler is built on it before the engine is made"
    return None
