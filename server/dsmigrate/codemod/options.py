"""The command-line options of a training: every ``add_argument``, its name and its default."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from dsmigrate.codemod.bindings import UNKNOWN, literal_value
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.plan import Plan


def option_default(plan: Plan, name: str) -> Any:
    """The literal default of the command-line option that fills ``args.name``, or an unknown marker."""
    for call in option_calls(plan):
        if option_name(call) == name:
            value = argument(call, None, "default")
            if value is None:
                action = argument(call, None, "action")
                text = action.evaluated_value if isinstance(action, cst.SimpleString) else None
                return {"store_true": False, "store_false": True}.get(str(text), None if text is None else UNKNOWN)
            found = literal_value(value)
            if found is not UNKNOWN:
                return found
            try:
                return ast.literal_eval(plan.code(value))
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                return UNKNOWN
    return UNKNOWN


def option_calls(plan: Plan) -> list[cst.Call]:
    """Every ``add_argument`` call of the file."""
    found: list[cst.Call] | None = plan.facts.get("options")
    if found is None:
        found = [
            call
            for call in plan.tree.calls
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("add_argument", "add_arg")
        ]
        plan.facts["options"] = found
    return found


def option_name(call: cst.Call) -> str | None:
    """The attribute name that an ``add_argument`` call fills."""
    dest = argument(call, None, "dest")
    if isinstance(dest, cst.SimpleString):
        return str(dest.evaluated_value)
    spellings = [
        str(arg.value.evaluated_value)
        for arg in call.args
        if arg.keyword is None and isinstance(arg.value, cst.SimpleString)
    ]
    long = next((s for s in spellings if s.startswith("--")), spellings[0] if spellings else None)
    return long.lstrip("-").replace("-", "_") if long else None
