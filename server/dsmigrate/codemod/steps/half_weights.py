"""MG311: weights in half precision that no ``.half()`` of the script shows, and weights in double precision."""

from __future__ import annotations

from typing import Protocol

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import PASS_METHODS
from dsmigrate.codemod.steps.complex_weights import complex_weights
from dsmigrate.codemod.steps.half import makes_model
from dsmigrate.codemod.steps.half_parts import LOADERS, is_made_with_dtype, is_part_of_model
from dsmigrate.codemod.steps.training_after import is_evaluation
from dsmigrate.codemod.tree import Function, Node, Statement

IDEAS = (
    Idea(
        "MG311",
        "Weights that are loaded or cast in half precision",
        "from_pretrained(torch_dtype=...), .to(torch.bfloat16), a layer's dtype or a default one may make half-precision weights, "
        "of the model or of a part of it: the config gets ZeRO stage 0.",
        "DDP's optimizer steps the half-precision weights themselves; ZeRO 1-3 step float32 copies of them, which is another "
        "training (1e-2 relative in the loss after 20 steps). Stage 0 trains as DDP did; for float32 master weights, choose "
        "a stage and the bf16 or fp16 section. Weights in float64 are marked, and complex ones: no stage trains them as DDP did.",
        "measured against DeepSpeed 0.19.8: AdamW on bfloat16 weights, stages 0 to 2 beside DDP",
        Kind.KEPT,
    ),
)

_HALF_TEXTS = frozenset({"auto", "bfloat16", "float16", "half", "bf16", "fp16"})
_DOUBLE_TEXTS = frozenset({"float64", "double"})
_TENSORS = {"HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "DoubleTensor": "float64"}
_DEFAULTS = frozenset({"torch.set_default_dtype", "torch.set_default_tensor_type"})
_DEPTH = 4


class _Judge(Protocol):
    """Whether an expression is a dtype of a kind; ``unknown``: what to think of one that comes from elsewhere."""

    def __call__(self, plan: Plan, node: Node, function: Function, *, unknown: bool) -> bool: ...


def half_weights(plan: Plan) -> None:
    """Choose ZeRO stage 0 where the trained weights are or may be half precision, unless the config has a section for them."""
    complex_weights(plan)
    if {"fp16", "bf16"} & plan.config.keys() or plan.options.precision != "keep":
        return
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if is_evaluation(plan, statement) or _is_behind_engine(plan, statement):
            continue
        if _is_for_weights(plan, call, _may_be_half) or _halves_part(plan, call):
            plan.needs_stage_zero("MG311", call, "the weights are or may be half precision",
                                  "DDP stepped these very weights; ZeRO 1-3 step float32 copies, which --precision bf16 asks for")  # fmt: skip
        elif _is_for_weights(plan, call, _is_double) or (_method(call) == "double" and _makes_trained(plan, call)):
            plan.todo("MG311", call, "the weights are float64: make them float32, or stay with DDP",
                      "ZeRO 1-3 step float32 copies of them, and stage 0 takes no float64 gradients")  # fmt: skip
        elif _leaves_it_to_the_file(plan, call) and _makes_trained(plan, call) and plan.zero_stage:
            plan.kept("MG311", call, "transformers 5 keeps the precision of the file: choose ZeRO stage 0 where that is bfloat16 or float16",
                      "DDP stepped these very weights; ZeRO 1-3 step float32 copies of them")  # fmt: skip


def _is_behind_engine(plan: Plan, statement: Statement) -> bool:
    return plan.site is not None and statement.function is plan.site.function and statement.order > plan.site.order


def _method(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _is_for_weights(plan: Plan, call: cst.Call, judge: _Judge) -> bool:
    """Whether a call makes, loads or moves the trained model, or sets the default, with a dtype that is judged so."""
    return _sets_default(plan, call, judge) or (_asks_for(plan, call, judge) and _makes_trained(plan, call))


def _halves_part(plan: Plan, call: cst.Call) -> bool:
    """Whether a call makes a part of the trained model in half precision: ``self.body = Body.from_pretrained(…)``."""
    asks = _method(call) in ("half", "bfloat16") and not call.args
    if is_made_with_dtype(plan, call):
        kinds = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "dtype"]
        asks = _may_be_half(plan, kinds[0], plan.function_of(call), unknown=False)
    else:
        asks = asks or _asks_for(plan, call, _may_be_half)
    return asks and not _made_float(plan) and is_part_of_model(plan, call)


def _sets_default(plan: Plan, call: cst.Call, judge: _Judge) -> bool:
    """``torch.set_default_dtype(torch.bfloat16)``, and its older form that takes a tensor type."""
    if not plan.imports.names(call.func) & _DEFAULTS or not call.args:
        return False
    return judge(plan, call.args[0].value, plan.function_of(call), unknown=False)


def _asks_for(plan: Plan, call: cst.Call, judge: _Judge) -> bool:
    """Whether a call takes a dtype that is judged so, for the weights of what it gives back."""
    function = plan.function_of(call)
    last = _method(call)
    for arg in call.args:
        name = arg.keyword.value if arg.keyword is not None else ""
        if name == "torch_dtype" or (name == "dtype" and last in LOADERS | {"to", "type"}):
            return judge(plan, arg.value, function, unknown=True)
        if not name and not arg.star and last in ("to", "type"):
            named = (dotted(arg.value) or "").lower().endswith("dtype")
            if judge(plan, arg.value, function, unknown=named):
                return True
    return False


def _leaves_it_to_the_file(plan: Plan, call: cst.Call) -> bool:
    """``AutoModel.from_pretrained(name)`` of transformers, which loads float32 before release 5 and what is there since."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "from_pretrained":
        return False
    given = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    known = any(name.startswith("transformers.") for name in plan.imports.names(call.func))
    return known and not given & {"torch_dtype", "dtype"}


def _may_be_half(plan: Plan, node: Node, function: Function, *, unknown: bool) -> bool:
    """Whether a dtype may be a half one; ``unknown``: what to think of one that comes from elsewhere."""
    found = _dtypes(plan, node, function, _DEPTH)
    return bool(found & _HALF_TEXTS) or (unknown and "?" in found)


def _is_double(plan: Plan, node: Node, function: Function, *, unknown: bool) -> bool:
    """Whether a dtype may be a double one, as far as the script shows."""
    del unknown
    return bool(_dtypes(plan, node, function, _DEPTH) & _DOUBLE_TEXTS)


def _dtypes(plan: Plan, node: Node, function: Function, depth: int) -> set[str]:
    """The dtypes that an expression may be, by their names in torch; "?" for what comes from elsewhere."""
    names = {name.removeprefix("torch.") for name in plan.imports.names(node) if name.startswith("torch.")}
    if isinstance(node, cst.SimpleString):
        names = {str(node.evaluated_value).removeprefix("torch.")}
    if names:
        return {_TENSORS.get(name.removeprefix("cuda."), name) for name in names}
    if dotted(node) == "None":
        return {"float32"}
    if isinstance(node, cst.IfExp):
        return _dtypes(plan, node.body, function, depth) | _dtypes(plan, node.orelse, function, depth)
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    values = [b for b in bindings if b.index is None and b.kind == "assign"]
    if not values or not depth:
        return {"?"}
    return {name for b in values for name in _dtypes(plan, b.value, b.function, depth - 1)}


def _makes_trained(plan: Plan, call: cst.Call) -> bool:
    """Whether the value of a call is the trained model, with nothing behind it that makes its weights float32 again."""
    node: Node = call
    while True:
        attribute = plan.tree.parent.get(node)
        above = plan.tree.parent.get(attribute) if attribute is not None else None
        if not isinstance(attribute, cst.Attribute) or not isinstance(above, cst.Call) or attribute.value is not node:
            break
        if attribute.attr.value not in PASS_METHODS:
            break
        if attribute.attr.value in ("float", "double"):
            return False
        node = above
    if not isinstance(call.func, cst.Name | cst.Attribute) or _made_float(plan):
        return False
    return makes_model(plan, call) or _is_part_of(plan, node)


def _is_part_of(plan: Plan, whole: Node) -> bool:
    """``pipeline = Pipeline.from_pretrained(…)`` and ``model = pipeline.transformer``: the model is a part of the value."""
    places = {binding.place for binding in plan.flow.bindings if binding.value is whole and binding.index is None}
    ours = {f"R{member}" for member in plan.group}
    for binding in plan.flow.bindings:
        base = binding.value.value if isinstance(binding.value, cst.Attribute) else None
        if base is not None and plan.roles.env.get(binding.place, set()) & ours:
            if plan.flow.place(base, binding.function) in places:
                return True
    return False


def _made_float(plan: Plan) -> bool:
    """Whether a statement of its own makes the trained model float32: ``model.float()``."""
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "float"
        and not call.args
        and plan.is_ours(call.func.value)
        and plan.is_before_engine(call)
        for call in plan.tree.calls
    )
