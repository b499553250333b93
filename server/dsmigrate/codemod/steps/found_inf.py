"""MG425: scripts that ask the scaler for the infinities which unscale_ has found, where unscale_ goes."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node

_FOUND_INF = frozenset({"_found_inf_per_device", "_check_inf_per_device"})


def asked_before(plan: Plan) -> None:
    """Mark where a script asks the scaler for what ``unscale_`` has found."""
    for call in plan.tree.calls:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in _FOUND_INF and _is_scaler(plan, func.value):
            scaler = plan.code(func.value)
            plan.todo("MG425", call, f"{func.attr.value} finds nothing before the step now: compare {scaler}.get_scale() before and after {scaler}.update()",
                      "the engine unscales in its step, and infinite gradients are found there")  # fmt: skip


def _is_scaler(plan: Plan, node: Node) -> bool:
    return plan.roles.is_scaler(node) or "scaler" in (dotted(node) or "").lower()
