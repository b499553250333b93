"""MG209: a file that only defines things is started by another script, which no launch line here can name."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Statement

IDEAS = (
    Idea(
        "MG209",
        "The file starts no training by itself",
        "Nothing at the top level of the file calls anything: the script that imports it is what has to be launched.",
        "Run as it stands such a file defines its classes and functions, ends at once, and trains nothing, so that no launch "
        "line is given for it. A script that imports it and starts the processes itself has to be converted in its place: "
        "DeepSpeed needs the variables of a launcher, which its children lack.",
        "dsmigrate",
        Kind.KEPT,
    ),
)

# What modules call when they are imported, besides defining things.
_SETTING_UP = frozenset({
    "basicConfig", "filterwarnings", "simplefilter", "getLogger", "setLevel", "addHandler", "append", "insert", "setdefault",
    "manual_seed", "seed", "use", "set_start_method", "set_float32_matmul_precision", "set_verbosity_error", "register",
    "setrecursionlimit", "update",
})  # fmt: skip


def run(plan: Plan) -> None:
    """Say where a launch line would start nothing."""
    top = plan.tree.parts[0].top
    if plan.wraps and not any(_may_start(plan, statement) for statement in top.statements):
        plan.facts["starts_nothing"] = True
        plan.kept("MG209", plan.wraps[0].statement, "this file starts no training by itself: launch the script that imports it; if that "
                  "one starts the processes (mp.spawn, multiprocessing.Process), convert it instead: this file comes along",
                  "nothing at its top level calls what is defined here")  # fmt: skip


def _may_start(plan: Plan, statement: Statement) -> bool:
    """Whether a statement of the top level may do more than define and set up."""
    node = statement.node
    if isinstance(node, cst.If):
        return "__name__" in plan.code(node.test)
    if isinstance(node, cst.For | cst.While | cst.With):
        return True
    value = node.value if isinstance(node, cst.Expr | cst.Assign | cst.AnnAssign) else None
    if not isinstance(value, cst.Call):
        return False
    if plan.flow.callee(value) is not None:
        return True
    return isinstance(node, cst.Expr) and (dotted(value.func) or "").rpartition(".")[2] not in _SETTING_UP
