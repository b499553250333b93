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
    Lib,
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
_TURNS = frozenset(["T", "mT", "H", "mH", "t", "permute", "transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "adjoint",
                    "rearrange"])  # fmt: skip
"""What gives other strides to the same numbers. Not ``expand``: DDP cannot send such a parameter either."""
_DENSE = frozenset(["contiguous", "view", "view_as", "reshape", "flatten", "ravel", "tensor", "cat", "concat", "stack", "matmul",
                    "mm", "bmm", "ascontiguousarray"])  # fmt: skip
"""What gives a contiguous tensor, of whatever it is given."""
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


_PLAIN = (NONE, Lib("torch.contiguous_format"), Lib("torch.preserve_format"))
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
    if name in {"data", "T", "mT", "H", "mH"}:
        return replace(of, detached=of.detached or name == "data", turned=of.turned or name in _TURNS)
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
        scalar = of.scalar and name not in _SHAPES
        turned = is_turned(of, name, given)
        return replace(of, detached=of.detached or name.startswith("detach"), scalar=scalar, turned=turned)
    if name == "register_hook":
        return NONE
    if name.endswith("_") and not name.startswith("__"):
        changed_in_place(run, of, node, name, given.all())
        return of
    others = [one for value in given.all() for one in run.things_in(value) if isinstance(one, Tensor)]
    made = joined_tensor([of, *others])
    return replace(made, turned=is_turned(made, name, given))


def is_turned(of: Tensor, name: str, given: Given) -> bool:
    """Whether what a method or a function of a library makes of a tensor may not be contiguous."""
    layout = given.named.get("memory_format")
    if layout is not None:
        return lays_out(layout) or (of.turned and layout != Lib("torch.contiguous_format"))
    name = name.rpartition(".")[2]
    return name in _TURNS or (of.turned and name not in _DENSE)


def lays_out(memory_format: Value) -> bool:
    """Whether a memory format may be another than the plain one."""
    return any(one not in _PLAIN for one in each(memory_format))


def may_be_turned(value: Value) -> bool:
    """Whether a tensor, read or not, may not be contiguous."""
    for one in each(value):
        match one:
            case Tensor():
                found = one.turned
            case Member(of=of, name=name) | Expr(op="field", args=(of, str(name))):
                found = name in _TURNS or may_be_turned(of)
            case Expr(op="unknown", args=(ast.Call() as call, *_)):
                found = _says_turned(call)
            case Expr(op="+" | "-" | "*" | "/", args=args):
                found = any(may_be_turned(part) for part in args if isinstance(part, Expr | Tensor | Member))
            case _:
                found = False
        if found:
            return True
    return False


def _says_turned(node: ast.expr) -> bool:
    """The same of a chain of attributes and methods of something that is not read."""
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Attribute):
            if node.attr in _TURNS:
                return True
            if node.attr not in _STAYS or node.attr in _DENSE:
                return False
            node = node.value
        else:
            node = node.func
    return False


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
        run.event(Happening.WEIGHT_WRITE, node, of=of, name=Const("data"), turned=Const(may_be_turned(value)))
    elif name == "data" and of.kind is TensorKind.GRADIENT:
        run.event(Happening.GRADIENT_WRITE, node, of=of, value=value)
    elif name == "requires_grad" and of.kind is TensorKind.PARAMETER:
        run.event(Happening.THAW, node, of=of, value=value)
