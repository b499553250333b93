"""The type in which an autocast region computes: as its call says, or as a guess where that is known only later."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.entered_regions import autocast_origins
from dsmigrate.codemod.tree import Function, Node, Statement

_DTYPES = {
    "torch.float16": "float16", "torch.half": "float16", "torch.bfloat16": "bfloat16", "torch.float32": "float32",
    "torch.float": "float32",
}  # fmt: skip
_SETTERS = frozenset({"torch.set_autocast_dtype", "torch.set_autocast_gpu_dtype", "torch.set_autocast_cpu_dtype"})


def type_of(
    plan: Plan, node: Node | None, function: Function, *, device_text: str | None, on_cpu: bool
) -> tuple[str, bool] | None:
    """The type of a region, and whether that is source text; None if it is unknown where the engine is made."""
    if node is None:
        if any(plan.imports.names(call.func) & _SETTERS for call in plan.tree.calls):
            return None  # torch's default is another one then
        if device_text is not None:
            return '"float16" if torch.cuda.is_available() else "bfloat16"', True
        return "bfloat16" if on_cpu else "float16", False
    full = plan.imports.names(node) & set(_DTYPES)
    if full:
        return _DTYPES[full.pop()], False
    text = carry(plan, node, function)
    if text is None:
        return None
    return (_DTYPES[text], False) if text in _DTYPES else (f"str({text})", True)


def guessed_type(plan: Plan, regions: list[tuple[Node, Statement]]) -> str:
    """The likely type of regions that cannot be carried: what all of them name, or torch's own for their device."""
    calls = [
        origin
        for node, statement in regions
        for origin, _ in autocast_origins(plan, node, statement.function)
        if isinstance(origin, cst.Call)
    ]
    calls += [call for call in plan.tree.calls if plan.imports.names(call.func) & _SETTERS]
    found = {name for call in calls if (name := _named(plan, call)) is not None}
    if len(found) == 1:
        return found.pop()
    return "float16" if plan.facts.get("scaler_used") else "bfloat16"


def _named(plan: Plan, call: cst.Call) -> str | None:
    """The type that a call of autocast, or of a setter of its type, names or implies."""
    for arg in call.args:
        for name in plan.imports.names(arg.value):
            if name in _DTYPES:
                return _DTYPES[name]
    names = plan.imports.names(call.func)
    if names & _SETTERS or argument(call, 1, "dtype") is not None or any(arg.star for arg in call.args):
        return None
    if any(".cpu.amp." in name for name in names):
        return "bfloat16"
    device = None if any(".cuda.amp." in name for name in names) else argument(call, 0, "device_type")
    on_cpu = isinstance(device, cst.SimpleString) and device.evaluated_value == "cpu"
    return "bfloat16" if on_cpu else "float16"
