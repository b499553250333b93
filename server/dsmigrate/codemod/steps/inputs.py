"""MG108-MG110: what DDP did by the way: moving inputs to the device, spreading buffers, leaving unused parameters alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.roles import Wrap
from dsmigrate.codemod.steps.buffers import may_have_buffers, sent_from_rank_0
from dsmigrate.codemod.steps.early_copies import keeps_own_buffers
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG108",
        "Inputs are no longer moved to the device",
        "DDP with device_ids copied the inputs of forward to its device; the engine takes them where they are.",
        "A batch that is never moved by the script would meet a model on another device.",
        "torch/nn/parallel/distributed.py, _to_kwargs",
        Kind.TODO,
    ),
    Idea(
        "MG109",
        "Buffers are spread once",
        "DDP's constructor sent rank 0's buffers to all ranks; a loop after deepspeed.initialize does.",
        "initialize broadcasts parameters but not buffers. Buffers filled at random (a queue) or by rank 0 alone would differ. "
        "With broadcast_buffers=False DDP sends none (since torch 2.1), and none are sent.",
        "engine-semantics 15; torch/nn/parallel/distributed.py, init_sync_buffers",
        Kind.CONVERTED,
    ),
    Idea(
        "MG110",
        "Parameters that no rank uses get weight decay",
        "Under DDP with find_unused_parameters or static_graph such parameters keep no gradient and stay as they are.",
        "The engine's optimizer sees a zero gradient for them, so weight decay and momentum move them. Where the ranks use "
        "different parameters in one step, ZeRO 1 and 2 fill their buckets with different layers and average those with one "
        "another; ZeRO 0 puts zeros in the place of what is missing. The config gets it where a forward of the model chooses "
        "its parts by random numbers, or the loop so chooses how the model is called.",
        "engine-semantics 8; deepspeed/runtime/zero/stage_1_and_2.py, average_tensor",
        Kind.KEPT,
    ),
)
DIFFERENT = (
    "where the ranks use different ones in a step (layer drop, tasks or experts by random numbers or data of each rank), set "
    "ZeRO stage 0: 1 and 2 average gradients of different layers with one another"
)
UNUSED = (
    "parameters that no rank uses in a step now take it with a gradient of 0: weight decay, and the momentum of earlier "
    f"steps, move them; {DIFFERENT}"
)
LEFT_ALONE = "DDP with find_unused_parameters or a static graph left them alone"
_MOVES = re.compile(r"\.to\(|\.cuda\(|device|\.xpu\(|prefetch|collate|\.npu\(")
_MAKERS = frozenset(
    {"randn", "rand", "zeros", "ones", "randint", "tensor", "arange", "empty", "full", "as_tensor", "from_numpy"}
)


def run(plan: Plan) -> None:
    """Say or mend what DDP did beside averaging gradients."""
    _inputs(plan)
    _buffers(plan)
    _unused(plan)


def _moves_inputs(plan: Plan) -> bool:
    """Whether the wrap moved inputs: DDP with device_ids, or DataParallel."""
    return any(
        (ids := argument(wrap.call, 1, "device_ids")) is not None and dotted(ids) != "None" for wrap in plan.wraps
    ) or bool(plan.roles.data_parallel)


def _inputs(plan: Plan) -> None:
    if not _moves_inputs(plan):
        return
    training = {plan.function_of(call) for call in find_backward(plan)}
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if statement.function not in training or not isinstance(call.func, cst.Name | cst.Attribute):
            continue
        if not plan.is_engine(call.func):
            continue
        made = [arg for arg in call.args if _is_made_here(plan, arg.value)]
        for arg in made:
            engine = plan.code(call.func)
            plan.edits.replace(arg.value, f"{plan.code(arg.value)}.to({engine}.device)")
            plan.converted("MG108", statement, "the input is moved to the engine's device", "DDP moved it")
        left = [
            plan.code(arg.value)
            for arg in call.args
            if arg not in made and not arg.star and _stays(plan, arg.value, statement, 3)
        ]
        if left:
            plan.todo("MG108", statement, f"move {', '.join(left)} to {plan.code(call.func)}.device: DDP did, the engine does not",
                      "nothing in this function moves them")  # fmt: skip
            return


def _stays(plan: Plan, node: Node, statement: Statement, depth: int) -> bool:
    """Whether an input comes straight from a loop over a loader and nothing moves it; False where that is not certain."""
    if depth == 0 or _MOVES.search(plan.code(node)):
        return False
    base = node
    while isinstance(base, cst.Attribute | cst.Subscript):
        base = base.value
    if not isinstance(base, cst.Name):
        return False
    function = statement.function
    place = plan.flow.variable(base.value, function)
    bindings = plan.flow.by_place.get(place, ())
    if not bindings:
        return False
    for binding in bindings:
        if binding.kind == "for":
            if _MOVES.search(plan.code(binding.value)) or not _LOADER.search(plan.code(binding.value)):
                return False
        elif binding.kind == "argument":
            if not _stays(plan, binding.value, binding.statement, depth - 1):
                return False
        else:
            return False
    return not _moved_in_place(plan, base.value, statement)


_LOADER = re.compile(r"load|data|batch|enumerate|tqdm", re.IGNORECASE)


def _moved_in_place(plan: Plan, name: str, statement: Statement) -> bool:
    """Whether a loop or helper moves the parts of a batch: ``for k in batch: batch[k] = batch[k].to(device)``."""
    for other in statement.function.statements:
        node = other.node
        if isinstance(node, cst.BaseCompoundStatement):
            continue
        text = plan.code(node)
        if _MOVES.search(text) and re.search(rf"\b{re.escape(name)}\b", text):
            return True
    return False


def _is_made_here(plan: Plan, node: cst.CSTNode) -> bool:
    """``torch.randn(20, 10)`` without a device."""
    if not isinstance(node, cst.Call):
        return False
    names = plan.imports.names(node.func)
    made = any(name.startswith("torch.") and name.rpartition(".")[2] in _MAKERS for name in names)
    return made and argument(node, None, "device") is None


def _buffers(plan: Plan) -> None:
    site = plan.site
    if site is None or not may_have_buffers(plan):
        return
    if keeps_own_buffers(plan):
        plan.kept("MG109", plan.wraps[0].statement, "every rank keeps its own buffers, as under DDP with broadcast_buffers=False",
                  "since torch 2.1 DDP's constructor does not send them either, and deepspeed.initialize does not")  # fmt: skip
        return
    plan.need("torch")
    plan.after_engine[:0] = [f"for buffer in {site.target}.module.buffers():", *sent_from_rank_0(plan, "buffer")]
    plan.converted("MG109", plan.wraps[0].statement, "rank 0's buffers are sent to all ranks once, as DDP did when it was made",
                   "deepspeed.initialize broadcasts parameters only")  # fmt: skip


_ALLOW_UNUSED = ("find_unused_parameters", "static_graph")


def allowing_unused(plan: Plan) -> Iterator[tuple[Wrap, Node | None]]:
    """The wraps that allow unused parameters, or may do so by keywords from elsewhere, which are given with them."""
    for wrap in plan.wraps:
        values = [argument(wrap.call, None, name) for name in _ALLOW_UNUSED]
        starred = [arg.value for arg in wrap.call.args if arg.star == "**" and _may_allow_unused(plan, wrap, arg.value)]
        if any(value is not None and dotted(value) != "False" for value in values):
            yield wrap, None
        elif starred:
            yield wrap, starred[0]


def _unused(plan: Plan) -> None:
    for wrap, starred in allowing_unused(plan):
        if starred is None:
            plan.kept("MG110", wrap.statement, UNUSED, LEFT_ALONE)
        else:
            plan.kept("MG110", wrap.statement, "parameters that no rank uses in a step take it with a gradient of 0 now (weight decay and momentum move them), if "
                      f"**{plan.code(starred)} holds {' or '.join(_ALLOW_UNUSED)}; {DIFFERENT}", "DDP left them alone with either")  # fmt: skip


def _may_allow_unused(plan: Plan, wrap: Wrap, node: Node) -> bool:
    """Whether keywords from elsewhere may hold one that allows unused parameters: all but a dictionary written out here."""
    place = plan.flow.place(node, wrap.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    texts = [node] if isinstance(node, cst.Dict) else [binding.value for binding in bindings]
    if not texts or not all(isinstance(text, cst.Dict) and _is_closed(text) for text in texts):
        return True
    name = dotted(node)
    changed = name is not None and any(
        (isinstance(sub, cst.Subscript) and dotted(sub.value) == name)
        or (isinstance(sub, cst.Call) and dotted(sub.func) in (f"{name}.update", f"{name}.setdefault"))
        for statement in wrap.function.statements
        if not isinstance(statement.node, cst.BaseCompoundStatement)
        for sub in descendants(statement.node)
    )  # fmt: skip
    return changed or any(name in plan.code(text) for text in texts for name in _ALLOW_UNUSED)


def _is_closed(node: cst.Dict) -> bool:
    return all(isinstance(e, cst.DictElement) and isinstance(e.key, cst.SimpleString) for e in node.elements)
