"""Whether a model may hold buffers: what the script itself does not show may."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Class, Function, Node, semantic_children

_DEPTH = 5
# Packages that make no layers with buffers, but for what is named below.
_WITHOUT = frozenset({"transformers", "peft", "accelerate", "diffusers"})  # of models without BatchNorm
_PLAIN = frozenset(
    {"torch", "apex", "math", "copy", "functools", "itertools", "collections", "numpy", "np", "os", "random"}
)
# Packages of models of which most have BatchNorm.
_ZOOS = frozenset(
    {"timm", "torchvision", "segmentation_models_pytorch", "efficientnet_pytorch", "pretrainedmodels", "mmcv", "mmdet", "mmseg",
     "mmengine", "detectron2", "monai", "ultralytics", "torchaudio"}
)  # fmt: skip
_BATCH_NORM = re.compile(r"batch_?norm|resnet", re.IGNORECASE)

# What may give a tensor that is not contiguous, in a file that registers buffers, and packages that have such buffers.
_TURNS = re.compile(
    r"\.t\(\)|\.m?[TH]\b|transpose|permute|swap(?:axes|dims)|move(?:axis|dim)|adjoint|\.unfold\(|::|\[:,"
)
_MAKES_TURNED = re.compile(r"^\s*(?:from|import) (?:torchaudio|e3nn|nnAudio|kornia)\b", re.MULTILINE)

Source: TypeAlias = "Callable[[str], bool]"
"""Whether a full name, ``timm.create_model``, is of the modules that are looked for."""


def _is_unseen(full: str) -> bool:
    return full.partition(".")[0] not in _PLAIN or full.startswith("torch.hub")


def _is_of_a_zoo(full: str) -> bool:
    root, _, rest = full.partition(".")
    return (root in _ZOOS and not rest.startswith(("transforms", "datasets", "data", "ops"))) or full.startswith(
        "torch.hub"
    )


def has_batch_norm(plan: Plan) -> bool:
    """BatchNorm in this file, or a model made elsewhere that may have it."""
    found: bool | None = plan.facts.get("batch_norm")
    if found is None:
        named = names_batch_norm(plan)
        unseen = not _model_is_here(plan) and not _is_language_model(plan)
        found = named or unseen or _model_is_elsewhere(plan) or _has_part(plan, _is_of_a_zoo)
        plan.facts["batch_norm"] = found
    return found


def names_batch_norm(plan: Plan) -> bool:
    """Whether the code that is seen makes BatchNorm, or asks for a model that has it by name."""
    return any(_BATCH_NORM.search(dotted(call.func) or "") for call in plan.tree.calls)


def _classes(plan: Plan) -> list[Class]:
    """The classes of files that are seen whole, as far as they are reached: not of those that are looked at in pieces."""
    return [cls for cls in plan.tree.classes.values() if not plan.tree.part_of_top[cls.scope.top].is_quiet]


def _model_is_here(plan: Plan) -> bool:
    """Whether the layers of the model can be seen in this file: a Module subclass, or layers of torch.nn put together."""
    if any(base.rpartition(".")[2] == "Module" for cls in _classes(plan) for base in cls.bases):
        return True
    for binding in plan.flow.bindings:
        if isinstance(binding.value, cst.Call) and plan.roles.env.get(binding.place, set()) & {
            f"R{k}" for k in plan.group
        }:
            names = plan.imports.names(binding.value.func)
            if any(
                name.startswith("torch.nn.") and "Parallel" not in name and "SyncBatchNorm" not in name
                for name in names
            ):
                return True
    return False


_LANGUAGE_MODEL = re.compile(
    r"transformers\.(?:\w+\.)*\w*(?:CausalLM|LMHeadModel|MaskedLM|Seq2SeqLM|MultipleChoice|TokenClassification)(?:\.from_\w+)?"
)


def _is_language_model(plan: Plan) -> bool:
    """Whether all that makes the model is a class of transformers for text, none of which has BatchNorm."""
    ours = {f"R{member}" for member in plan.group}
    wrapping = {*(wrap.call for wrap in plan.wraps), *plan.roles.data_parallel}
    made = False
    for binding in plan.flow.bindings:
        call = binding.value
        if not isinstance(call, cst.Call) or call in wrapping or not plan.roles.env.get(binding.place, set()) & ours:
            continue
        names = plan.imports.names(call.func)
        if any(_LANGUAGE_MODEL.fullmatch(name) for name in names):
            made = True
        elif plan.flow.callee(call) is None and not (
            isinstance(call.func, cst.Attribute) and plan.is_model_like(call.func.value)
        ):
            return False
    return made


def _model_is_elsewhere(plan: Plan) -> bool:
    """Whether the model itself is made by a library of layers, whatever other layers are seen here."""
    ours = {f"R{member}" for member in plan.group}
    return any(
        binding.index is None
        and plan.roles.env.get(binding.place, set()) & ours
        and _is_made_elsewhere(plan, binding.value, binding.function, 2)
        for binding in plan.flow.bindings
    )


def _is_made_elsewhere(plan: Plan, value: Node, function: Function, depth: int) -> bool:
    """Whether a value, or a layer that ``nn.Sequential`` gets, is a call into a library that makes models."""
    while (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and isinstance(value.func.value, cst.Call | cst.Subscript)
    ):
        value = value.func.value
    if not isinstance(value, cst.Call) or _is_seen(plan, plan.flow.callee(value)):
        return False
    name = dotted(value.func)
    if name is None:
        return isinstance(value.func, cst.Subscript)
    cls = plan.flow.class_named(name, function)
    if not plan.imports.meanings(name.partition(".")[0], function) or _is_seen(
        plan, None if cls is None else cls.scope
    ):
        return False
    names = plan.imports.names(value.func)
    if any(full.partition(".")[0] not in _PLAIN | _WITHOUT or full.startswith("torch.hub") for full in names):
        return True
    places = [plan.flow.place(arg.value, function) for arg in value.args if isinstance(arg.value, cst.Name)]
    parts = [
        b for place in places if place is not None for b in plan.flow.by_place.get(place, ()) if b.kind == "assign"
    ]
    return depth > 0 and any(_is_made_elsewhere(plan, b.value, b.function, depth - 1) for b in parts)


def _is_seen(plan: Plan, function: Function | None) -> bool:
    return function is not None and not plan.tree.part_of_top[function.top].is_quiet


def may_have_buffers(plan: Plan) -> bool:
    """Whether the model may hold buffers: registered here, in a BatchNorm, or in a part that another module makes."""
    if has_batch_norm(plan):
        return True
    if any((dotted(call.func) or "").endswith("register_buffer") for call in plan.tree.calls):
        return True
    return _has_part(plan, _is_unseen)


def _has_part(plan: Plan, source: Source) -> bool:
    """Whether a layer, a base class or the model itself comes from such a module."""
    for cls in _classes(plan):
        if not _is_model(plan, cls, _DEPTH):
            continue
        if any(_is_foreign_base(plan, base, cls.scope, source) for base in cls.bases):
            return True
        for method in cls.methods.values():
            if any(_is_foreign(plan, part, method, _DEPTH, source) for part in _parts(method)):
                return True
    if any(_is_foreign(plan, arg.value, w.function, _DEPTH, source) for w in plan.wraps for arg in w.call.args[:1]):
        return True
    ours = {f"R{member}" for member in plan.group}
    return any(
        plan.roles.env.get(binding.place, set()) & ours
        and _is_foreign(plan, binding.value, binding.function, _DEPTH, source)
        for binding in plan.flow.bindings
    )


def _is_model(plan: Plan, cls: Class, depth: int) -> bool:
    """Whether a class has a ``forward``, be it that of a base class of the tree."""
    bases = plan.flow.bases(cls) if depth else []
    return "forward" in cls.methods or any(_is_model(plan, base, depth - 1) for base in bases)


_ADDS = frozenset({"append", "extend", "insert", "add_module", "register_module", "setattr"})


def _parts(method: Function) -> Iterator[Node]:
    """What a method of a model keeps: values of attributes, one of several too, and what it puts into a container."""
    for statement in method.statements:
        node = statement.node
        if isinstance(node, cst.Assign):
            targets: list[Node] = [target.target for target in node.targets]
            targets += [e.value for t in targets if isinstance(t, cst.Tuple | cst.List) for e in t.elements]
            if any(isinstance(target, cst.Attribute) for target in targets):
                yield node.value
        elif isinstance(node, cst.AnnAssign) and node.value is not None and isinstance(node.target, cst.Attribute):
            yield node.value
        elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) and method.name != "forward":
            if (dotted(node.value.func) or "").rpartition(".")[2] in _ADDS:
                yield from (arg.value for arg in node.value.args)


def _is_foreign_base(plan: Plan, base: str, scope: Function, source: Source) -> bool:
    root = base.partition(".")[0]
    meanings = plan.imports.meanings(root, scope)
    torch = any(name.partition(".")[0] == "torch" for name in meanings)
    return bool(meanings) and not torch and any(source(f"{name}.") for name in meanings)


def _is_foreign(plan: Plan, node: Node, function: Function, depth: int, source: Source) -> bool:
    """Whether a value is made by a call into a module that cannot be seen, be it inside of a container of layers."""
    if depth == 0:
        return False
    if isinstance(node, cst.Name | cst.Attribute):
        place = plan.flow.place(node, function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        return any(_is_foreign(plan, b.value, b.function, depth - 1, source) for b in bindings if b.kind == "assign")
    if not isinstance(node, cst.Call):
        return any(_is_foreign(plan, child, function, depth, source) for child in semantic_children(node))
    return _calls_foreign(plan, node, function, depth, source)


def _calls_foreign(plan: Plan, call: cst.Call, function: Function, depth: int, source: Source) -> bool:
    name = dotted(call.func)
    cls = plan.flow.class_named(name, function) if name is not None else None
    if cls is not None:  # its parts are looked at, if its forward is seen
        return not _is_model(plan, cls, _DEPTH) and any(
            _is_foreign_base(plan, base, cls.scope, source) for base in cls.bases
        )
    callee = plan.flow.callee(call)
    if callee is not None:
        returned = plan.flow.by_place.get(plan.flow.returned(callee), ())
        return any(_is_foreign(plan, b.value, b.function, depth - 1, source) for b in returned)
    if name is None:  # `models.__dict__[name](…)`, `make(…)(…)`, `Net(…).cuda()`
        inner = call.func.value if isinstance(call.func, cst.Attribute | cst.Subscript) else None
        return isinstance(call.func, cst.Subscript) or (
            inner is not None and _is_foreign(plan, inner, function, depth, source)
        )
    meanings = plan.imports.meanings(name.partition(".")[0], function)
    if not meanings:
        base = call.func.value if isinstance(call.func, cst.Attribute) else None
        return base is not None and _is_foreign(plan, base, function, depth - 1, source)
    names = plan.imports.names(call.func)
    if any(source(full) for full in names):
        return True
    return any(_is_foreign(plan, arg.value, function, depth, source) for arg in call.args)


def sent_from_rank_0(plan: Plan, name: str) -> list[str]:
    """The body of a loop over tensors; NCCL takes only what is contiguous, which a buffer like ``basis.t()`` is not."""
    texts: tuple[str, ...] = plan.facts["texts"]
    if not any(("register_buffer" in text and _TURNS.search(text)) or _MAKES_TURNED.search(text) for text in texts):
        return [f"    torch.distributed.broadcast({name}.data, src=0)"]
    return [
        f"    {name}_data = {name}.data.contiguous()",
        f"    torch.distributed.broadcast({name}_data, src=0)",
        f"    {name}.data.copy_({name}_data)",
    ]
