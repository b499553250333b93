"""Tensors: their attributes and methods, and what is done to parameters, gradients and buffers through them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from dsmigrate.codemod.analysis.events import BlockKind, Happening
from dsmigrate.codemod.analysis.machine import Given, Machine
from dsmigrate.codemod.analysis.norms import norm_method
from dsmigrate.codemod.analysis.values import (
    FALSE_VALUE,
    NONE,
    TRUE_VALUE,
    Const,
    Expr,
    Member,
    Obj,
    Tensor,
    TensorKind,
    Value,
    each,
    joined_tensor,
    may_vary,
)

_STAYS = frozenset(
    [
        "data",
        "detach",
        "detach_",
        "clone",
        "contiguous",
        "view",
        "view_as",
        "reshape",
        "flatten",
        "float",
        "double",
        "half",
        "bfloat16",
        "to",
        "cuda",
        "cpu",
        "type",
        "type_as",
        "requires_grad_",
        "squeeze",
        "unsqueeze",
        "permute",
        "transpose",
        "t",
        "T",
        "expand",
        "expand_as",
        "coalesce",
        "index_select",
    ]
)
"""What gives a tensor of the same content."""
_SHAPES = frozenset(["view", "reshape", "flatten", "unsqueeze", "expand", "expand_as", "view_as"])
_NUMBERS = frozenset(["item", "tolist", "numpy"])
_ABOUT = frozenset(
    [
        "shape",
        "size",
        "dim",
        "ndim",
        "numel",
        "nelement",
        "dtype",
        "device",
        "is_cuda",
        "requires_grad",
        "is_leaf",
        "layout",
        "stride",
        "is_sparse",
        "element_size",
        "is_floating_point",
        "names",
        "itemsize",
        "nbytes",
    ]
)
_ASKED = frozenset(["size", "dim", "numel", "nelement", "stride", "element_size", "is_floating_point"])
"""The methods among them."""
_HOOKS = frozenset(["register_hook", "register_post_accumulate_grad_hook", "retain_grad"])


_WITHOUT = frozenset({"torch.no_grad", "torch.inference_mode"})
_GRADIENT_REGIONS = _WITHOUT | {"torch.enable_grad", "torch.set_grad_enabled"}


def tensor_attribute(run: Machine, of: Tensor, name: str, node: ast.AST) -> Value:
    """An attribute of a tensor."""
    if name == "grad" and of.kind is TensorKind.PARAMETER:
        run.event(Happening.GRADIENT_READ, node, of=of)
        return Tensor(TensorKind.GRADIENT, of.of, varies=of.varies, picked=of.picked)
    if name in {"grad", "main_grad"}:
        return Tensor(TensorKind.GRADIENT, of.of, of.forwards)
    if name == "requires_grad" and not of.detached and any(one.model in run.wrappers for one in of.forwards):
        regions = (block.label for block in run.block.around() if block.kind is BlockKind.WITH)
        managers = [one for label in regions for one in each(label or NONE) if isinstance(one, Obj)]
        if not any(one.made_by in _GRADIENT_REGIONS for one in managers):
            return TRUE_VALUE
        if all(one.made_by in _WITHOUT for one in managers if one.made_by in _GRADIENT_REGIONS):
            return FALSE_VALUE
    if name in _ABOUT - _ASKED:
        return Expr("about", of.kind.value, name, node)
    if name in {"data", "T"}:
        return replace(of, detached=of.detached or name == "data")
    if name in {"grad_fn", "is_quantized"}:
        return run.unread(node, [of])
    if (
        of.forwards and name != "backward" and name not in _STAYS | _NUMBERS | _ASKED | _HOOKS
    ):  # a part of what a model gives: out.loss
        return of
    return Member(of, name)


def tensor_method(run: Machine, of: Tensor, name: str, given: Given, node: ast.AST) -> Value:
    """A method of a tensor, or of what a library made of tensors."""
    if name == "backward":
        run.event(Happening.BACKWARD, node, loss=of, **_backward_options(given))
        return NONE
    norm = norm_method(run, of, name, given)
    if norm is not None:
        return norm
    if name in _NUMBERS:
        return Expr("number", replace(of, kind=TensorKind.DATA), node, varies=of.varies, loops=frozenset(run.loops))
    if name in _ABOUT:
        return Expr("about", of.kind.value, name, node)
    if name in _HOOKS:
        run.event(Happening.HOOK, node, of=of, name=Const(name), hook=given.get(0, "hook", NONE))
        return NONE
    if name == "requires_grad_":
        run.event(Happening.THAW, node, of=of, value=given.get(0, "requires_grad", TRUE_VALUE))
        return of
    if name == "clone" and of.kind in {TensorKind.PARAMETER, TensorKind.WEIGHT, TensorKind.BUFFER}:
        return replace(of, kind=TensorKind.DATA, of=None)  # what is written there reaches no model
    if name in _STAYS:
        if name in {"to", "cuda"} and of.kind is TensorKind.DATA:
            run.event(Happening.MOVED, node, of=of)
            of = replace(of, batch=None)
        return replace(of, detached=of.detached or name.startswith("detach"), scalar=of.scalar and name not in _SHAPES)
    if name == "register_hook":
        return NONE
    if name.endswith("_") and not name.startswith("__"):
        changed_in_place(run, of, node, name, given.all())
        return of
    others = [one for value in given.all() for one in run.things_in(value) if isinstance(one, Tensor)]
    return joined_tensor([of, *others])


def _backward_options(given: Given) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for index, name in enumerate(("gradient", "retain_graph", "create_graph", "inputs")):
        value = given.get(index, name, NONE)
        if value != NONE:
            found[name] = value
    return found


def changed_in_place(run: Machine, of: Value, node: ast.AST, name: str = "", values: Sequence[Value] = ()) -> None:
    """Note that the content of a parameter, a gradient or a buffer is written."""
    for one in each(of):
        if isinstance(one, Tensor):
            match one.kind:
                case TensorKind.GRADIENT:
                    kind = Happening.ZERO_GRAD if name == "zero_" else Happening.GRADIENT_WRITE
                    run.event(kind, node, of=one, name=Const(name))
                case TensorKind.PARAMETER | TensorKind.WEIGHT if one.of is not None:
                    run.event(Happening.WEIGHT_WRITE, node, of=one, name=Const(name))
                case TensorKind.BUFFER:
                    run.event(
                        Happening.BUFFER_WRITE, node, of=one, name=Const(name), varies=Const(any(map(may_vary, values)))
                    )


def tensor_attribute_written(run: Machine, of: Tensor, name: str, value: Value, node: ast.AST) -> None:
    """Note ``p.grad = …``, ``p.data = …`` and ``p.requires_grad = …``."""
    if name == "grad":
        kind = Happening.ZERO_GRAD if value == NONE else Happening.GRADIENT_WRITE
        run.event(kind, node, of=of, value=value)
    elif name == "data" and of.kind is TensorKind.PARAMETER:
        run.event(Happening.WEIGHT_WRITE, node, of=of, name=Const("data"))
    elif name == "data" and of.kind is TensorKind.GRADIENT:
        run.event(Happening.GRADIENT_WRITE, node, of=of, value=value)
    elif name == "requires_grad" and of.kind is TensorKind.PARAMETER:
        run.event(Happening.THAW, node, of=of, value=value)
