"""MG202: ``mp.spawn`` makes room for the launcher."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.parents_work import runs_in_every_process
from dsmigrate.codemod.steps.spawn_count import counts_devices, launcher_counts
from dsmigrate.codemod.tree import Node, Statement, descendants

ON_NODES = (
    "on several nodes torchrun is started on each, with --nnodes and --rdzv_backend c10d --rdzv_endpoint HOST:PORT"
)
"""Without them every torchrun is a training of its own."""


def is_spawned(plan: Plan) -> bool:
    """Whether the script starts its processes by itself."""
    return any(plan.imports.names(call.func) & set(SPAWNERS) for call in plan.tree.calls)


def spawn_call(plan: Plan, call: cst.Call, init_names: frozenset[str]) -> None:
    """Replace ``mp.spawn(worker, …)`` by one call of the worker."""
    statement = plan.tree.statement(call)
    worker = argument(call, 0, "fn")
    packed = argument(call, 1, "args")
    processes = argument(call, 2, "nprocs")
    if worker is None or not isinstance(statement.node, cst.Expr) or statement.node.value is not call:
        raise plan.refuse(
            "MG913", statement, "the result of mp.spawn is used", "the launcher replaces spawn and returns no context"
        )
    multi_node = _is_multi_node(plan, worker, statement)
    size = 'int(os.environ["LOCAL_WORLD_SIZE"])' if multi_node else 'int(os.environ["WORLD_SIZE"])'
    texts = _given(plan, packed, processes, size)
    plan.need("os")
    arguments = ", ".join(['int(os.environ["LOCAL_RANK"])', *texts])
    plan.edits.replace(call, f"{plan.code(worker)}({arguments})")
    if multi_node:
        plan.edits.insert_before(
            statement.line_node,
            "# Set by torchrun; the deepspeed launcher calls it LOCAL_SIZE.",
            'os.environ.setdefault("LOCAL_WORLD_SIZE", os.environ.get("LOCAL_SIZE", "1"))',
        ) if size in texts else None
    plan.handled.add(call)
    plan.facts["spawned"] = True
    plan.facts["spawned_nodes"] = multi_node
    if processes is not None:
        launcher_counts(plan, processes, call, init_names)
    nodes = f"; {ON_NODES}" if multi_node else ""
    plan.converted("MG202", statement, "mp.spawn → one call per process of the launcher",
                   f"DeepSpeed needs the launcher's environment; the process index is LOCAL_RANK{nodes}")  # fmt: skip
    runs_in_every_process(plan, statement)


def _given(plan: Plan, packed: Node | None, processes: Node | None, size: str) -> list[str]:
    """The texts of the worker's arguments, in which the number of processes is the launcher's."""
    if not isinstance(packed, cst.Tuple | cst.List):
        return [] if packed is None else [f"*{plan.code(packed)}"]
    texts = []
    for element in packed.elements:
        text = plan.code(element.value)
        if processes is not None and (text == plan.code(processes) or counts_devices(processes)):
            text = text.replace(plan.code(processes), size)
        texts.append(f"*{text}" if isinstance(element, cst.StarredElement) else text)
    return texts


def _is_multi_node(plan: Plan, worker: Node, statement: Statement) -> bool:
    """Whether the worker works out its rank from a node rank (``rank = node_rank * gpus + gpu``)."""
    function = plan.flow.function_named(worker, statement.function)
    if function is None:
        return False
    index = plan.flow.positional(function)[:1]
    for inner in function.statements:
        node = inner.node
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.BinaryOperation):
            target = dotted(node.targets[0].target) or ""
            reads = {sub.value for sub in descendants(node.value) if isinstance(sub, cst.Name)}
            if (
                target.rpartition(".")[2].lower().endswith("rank")
                and isinstance(node.value.operator, cst.Add)
                and set(index) & reads
            ):
                return True
    return False
