"""MG409, MG410: code that reads or edits p.grad."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.acquiring import own_parts
from dsmigrate.codemod.steps.balance import excludes
from dsmigrate.codemod.steps.forwards_beside import paths_to
from dsmigrate.codemod.steps.grad_norm import norm_helpers
from dsmigrate.codemod.steps.sites import Sites, find_backward, find_steps, short
from dsmigrate.codemod.tree import Function, Statement, descendants

IDEAS = (
    Idea(
        "MG410",
        "Gradients are read after the step",
        "engine.step() has zeroed the gradients by then; under DDP they were still there.",
        "engine.get_global_grad_norm() gives the norm after the step; anything else has to be read before it, at ZeRO 0.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.TODO,
    ),
    Idea(
        "MG409",
        "Gradients are read or edited",
        "p.grad between backward and step holds the averaged gradient only at ZeRO 0.",
        "At ZeRO 1-3 p.grad is None after backward: an edit or a custom clip would silently do nothing. The config is "
        "given ZeRO stage 0, where the script's own code works as before.",
        "engine-semantics 7; ddp-idioms trap 6",
        Kind.KEPT,
    ),
)


def check_gradient_helpers(plan: Plan) -> None:
    """Look for hidden gradient work between backward and step; runs after clipping has taken its own calls away."""
    _gradient_helpers(plan, plan.facts["sites"])


def gradient_access(plan: Plan) -> None:
    """Reads and edits of ``p.grad`` work at ZeRO 0 only."""
    for statement in plan.tree.statements:
        node = statement.node
        if plan.edits.is_removed(node):
            continue
        if any(plan.edits.is_removed(outer.node) for outer in statement.enclosing()):
            continue
        if statement.function.class_seen is not None and _in_optimizer_class(statement.function):
            continue
        if statement.function in norm_helpers(plan):
            continue
        for sub in (sub for part in own_parts(node) for sub in descendants(part)):
            if isinstance(sub, cst.Attribute) and sub.attr.value == "grad" and not _is_module_grad(sub):
                late = [_late(plan, way) for way in paths_to(plan, statement)]
                for where, what in dict.fromkeys(found for found in late if found is not None):
                    plan.todo("MG410", where, what, "engine.step() zeroes the gradients")
                if None in late:
                    plan.needs_full_gradients(
                        "MG409",
                        statement,
                        "p.grad is read or changed here",
                        "p.grad is None after backward at ZeRO 1-3",
                    )
                break


_CLEARED = "p.grad is read after the step, which has cleared it: use the engine's gradient norm"
_ADDED = "p.grad is read after a backward behind the step: it had been added to the gradients of that step, which are cleared now"


def _late(plan: Plan, way: Sequence[Statement]) -> tuple[Statement, str] | None:
    """Where a way leads to a read of gradients behind a step of the loop, and what is another then."""
    own: Statement | None = None
    for statement in way:
        last = _last_mark(plan, statement)
        if last is not None and last[1] == "s":
            kept = own is None or not _is_zeroed(plan, (last[0], statement), own)
            return (statement, _CLEARED if own is None else _ADDED) if kept else None
        own = last[0] if last is not None and own is None else own
    return None


def _last_mark(plan: Plan, statement: Statement) -> tuple[Statement, str] | None:
    """The last thing that happened to the gradients before a statement of its function: a backward or a step."""
    marks = [(plan.tree.statement(call), "b") for call in find_backward(plan)]
    marks += [(plan.tree.statement(call), "s") for call in find_steps(plan)]
    before = [m for m in marks if m[0].order < statement.order and m[0].function is statement.function
              and not excludes(m[0], statement)]  # fmt: skip
    return max(before, key=lambda mark: mark[0].order, default=None)


def _is_zeroed(plan: Plan, gap: tuple[Statement, Statement], backward: Statement) -> bool:
    """Whether gradients are cleared between a step and a backward that comes behind it in a function of its own."""
    return any(
        (zero.function is backward.function and zero.order < backward.order)
        or (zero.function is gap[0].function and gap[0].order < zero.order < gap[1].order)
        for zero in plan.facts["sites"].zeroes
    )


def _gradient_helpers(plan: Plan, sites: Sites) -> None:
    """Calls between backward and step that are named for gradients, or are methods of the model: they may touch p.grad."""
    spans: list[tuple[Function, int, int]] = []
    for call in sites.steps:
        step = plan.tree.statement(call)
        before = [
            plan.tree.statement(c).order
            for c in sites.backward
            if plan.function_of(c) is step.function and plan.tree.statement(c).order < step.order
        ]
        if before:
            spans.append((step.function, max(before), step.order))
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if call in plan.handled or plan.edits.is_removed(statement.node) or statement.node in plan.edits.statements:
            continue
        ways = paths_to(plan, statement) if clears_part(plan, call) else [(statement,)]
        if not any(f is s.function and a < s.order < b for f, a, b in spans for way in ways for s in way):
            continue
        what = touches_gradients(plan, call)
        if what:
            plan.needs_full_gradients("MG409", statement, what, "p.grad is None after backward at ZeRO 1-3")


def touches_gradients(plan: Plan, call: cst.Call) -> str:
    """What a call between backward and step does to gradients, where it may do something; else empty."""
    func = call.func
    last = (dotted(func) or "").rpartition(".")[2]
    is_method = isinstance(func, cst.Attribute) and plan.is_ours(func.value)
    named = "grad" in last.lower() and last not in (
        "zero_grad",
        "no_grad",
        "set_grad_enabled",
        "enable_grad",
        "is_grad_enabled",
    )
    if clears_part(plan, call):
        return f"{short(plan.code(call))} clears the gradients of a part of the model before the step"
    if plan.flow.callee(call) is not None and named:
        return ""  # the helper is in this file: its own statements are looked at
    if named or (is_method and last not in _HARMLESS):
        return f"{short(dotted(func) or last)} runs between backward and step and may work on gradients"
    return ""


def clears_part(plan: Plan, call: cst.Call) -> bool:
    """``model.module.head.zero_grad()``: neither the optimizer's nor that of the whole model."""
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "zero_grad" or plan.flow.callee(call) is not None:
        return False
    return not plan.roles.is_optimizer(func.value) and not plan.is_ours(func.value)


_HARMLESS = frozenset({
    "train", "eval", "parameters", "named_parameters", "modules", "named_modules", "children", "state_dict", "item",
    "zero_grad", "module", "size", "log", "log_dict", "buffers", "backward", "step",
})  # fmt: skip


def _in_optimizer_class(function: Function) -> bool:
    cls = function.class_seen
    return cls is not None and any("Optim" in base or base in ("LARS", "SGD", "Adam", "AdamW") for base in cls.bases)


def _is_module_grad(node: cst.Attribute) -> bool:
    """``torch.autograd.grad`` and gradients of inputs (``x.grad`` of a tensor that requires grad) are other things."""
    return dotted(node.value) in ("torch.autograd", "autograd", "torch")
