"""MG201: a process group without a backend had gloo beside NCCL before torch 2.6, for tensors of the CPU."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node, Statement

_COLLECTIVES = {
    **dict.fromkeys(("all_reduce", "broadcast", "reduce", "send", "recv", "all_gather_into_tensor"), (0, "tensor")),
    **dict.fromkeys(("all_gather", "gather"), (1, "tensor")),
}
_ON_CPU = re.compile(
    r"torch\.(?:tensor|zeros|ones|empty|full|as_tensor|from_numpy|Tensor|(?:Float|Double|Int|Long)Tensor)\(.*\)|.*\.cpu\(\)",
    re.DOTALL,
)
_MOVED = re.compile(r"device|\.cuda\(|\.to\(|\.xpu\(|\.npu\(")
_MOVES_ALL = re.compile(r"set_default_(?:device|tensor_type)\(")


def say_no_gloo(plan: Plan, statement: Statement, backend: Node | None) -> None:
    """Say that collectives on tensors of the CPU need a backend of their own, where the script let torch choose."""
    if backend is not None and dotted(backend) != "None":
        return
    texts: tuple[str, ...] = plan.facts["texts"]
    call = next((call for call in plan.tree.calls if _is_on_cpu(plan, call)), None)
    if call is None or any(_MOVES_ALL.search(text) for text in texts):
        return
    plan.kept("MG201", call, 'with torch before 2.6 give init_distributed dist_backend="cpu:gloo,cuda:nccl": this tensor is on the CPU',
              f"init_process_group without a backend (line {statement.line}) had both there, and DeepSpeed takes NCCL alone on a GPU, as torch does since")  # fmt: skip


def _is_on_cpu(plan: Plan, call: cst.Call) -> bool:
    """Whether a collective gets a tensor that is made on the CPU and stays there."""
    name = next((n for n in plan.imports.names(call.func) if n.startswith("torch.distributed.")), "")
    place = _COLLECTIVES.get(name.removeprefix("torch.distributed."))
    tensor = argument(call, *place) if place is not None else None
    if tensor is None:
        return False
    found = plan.flow.place(tensor, plan.function_of(call)) if isinstance(tensor, cst.Name) else None
    bindings = plan.flow.by_place.get(found, ()) if found is not None else ()
    values = [b.value for b in bindings] or [tensor]
    texts = [plan.code(value) for value in values]
    return all(b.kind == "assign" and b.index is None for b in bindings) and all(
        _ON_CPU.fullmatch(text) and not _MOVED.search(text) for text in texts
    )
