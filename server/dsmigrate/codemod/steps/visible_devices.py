"""MG225: a script that chooses its GPUs by itself, below the import of deepspeed."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG225",
        "CUDA_VISIBLE_DEVICES that the script sets by itself",
        "Set behind `import deepspeed` the variable has no effect: other GPUs than those asked for are used.",
        "DeepSpeed asks torch.cuda.is_available() when it is imported, and CUDA reads the variable once, when it is first asked. "
        "Set it for the launcher: CUDA_VISIBLE_DEVICES=2,3 torchrun …, or deepspeed --include localhost:2,3.",
        "deepspeed/accelerator/real_accelerator.py, get_accelerator; torch/cuda/__init__.py, is_available",
        Kind.TODO,
    ),
)
_VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible_devices(plan: Plan) -> None:
    """Mark where the variable is set, but for places above the imports."""
    for statement in plan.tree.statements:
        if _sets(plan, statement) and not _is_above_torch(plan, statement):
            plan.todo("MG225", statement, f"set {_VARIABLE} for the launcher: here it has no effect any more",
                      "CUDA is asked for its devices when deepspeed is imported")  # fmt: skip


def _sets(plan: Plan, statement: Statement) -> bool:
    node = statement.node
    if isinstance(node, cst.Assign | cst.AugAssign):
        targets: list[Node] = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
        return any(isinstance(target, cst.Subscript) and _names(target.slice[0]) for target in targets)
    if not isinstance(node, cst.Expr) or not isinstance(node.value, cst.Call) or not node.value.args:
        return False
    called = plan.imports.names(node.value.func)
    return bool(called & {"os.putenv", "os.environ.setdefault", "os.environ.update"}) and any(
        map(_names, node.value.args)
    )


def _names(node: Node) -> bool:
    return any(
        isinstance(sub, cst.SimpleString) and sub.evaluated_value == _VARIABLE for sub in descendants(node)
    ) or any(
        isinstance(sub, cst.Arg) and sub.keyword is not None and sub.keyword.value == _VARIABLE
        for sub in descendants(node)
    )


def _is_above_torch(plan: Plan, statement: Statement) -> bool:
    """Whether a statement of the script itself stands above its first import of torch, where deepspeed is imported too.

    One of a module does not count: the script may import deepspeed before the module, wherever the module imports torch.
    """
    imports = [
        other.order
        for other in plan.tree.statements
        if isinstance(other.node, cst.Import | cst.ImportFrom) and other.function is statement.function
        and "torch" in plan.code(other.node)
    ]  # fmt: skip
    is_of_script = plan.part_of(statement) is plan.tree.parts[0] and statement.function.is_module
    return is_of_script and statement.order < min(imports, default=0)
