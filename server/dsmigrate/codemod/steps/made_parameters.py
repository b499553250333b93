"""The parameters that the class of the trained model makes, as far as its constructor shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.modules import above, code_of, is_module
from dsmigrate.codemod.steps.picked import Known
from dsmigrate.codemod.tree import Class, Function, Node

_LAYERS = re.compile(r"^(?:torch\.)?nn\.(?:modules\.\w+\.)?(\w+)$")
_WEIGHTS: dict[str, int] = {
    "Linear": 2, "Conv1d": 3, "Conv2d": 4, "Conv3d": 5, "ConvTranspose1d": 3, "ConvTranspose2d": 4, "ConvTranspose3d": 5,
    "Embedding": 2, "EmbeddingBag": 2, "BatchNorm1d": 1, "BatchNorm2d": 1, "BatchNorm3d": 1, "SyncBatchNorm": 1,
    "GroupNorm": 1, "PReLU": 1,
}  # fmt: skip
_WITHOUT = re.compile(
    r"^(?:\w*ReLU6?|GELU|SiLU|ELU|SELU|Tanh|Sigmoid|Softmax\w*|LogSoftmax|Hard\w+|Mish|Identity|Flatten|Unflatten|\w*Dropout\w*"
    r"|\w*Pool\w*|\w*Pad\d?d?|Upsample\w*|PixelShuffle|\w+Loss|CosineSimilarity|Fold|Unfold|Softplus|Softsign)$"
)
_PLAIN = re.compile(
    r"^(?:int|float|len|str|bool|max|min|sum|abs|range|list|tuple|dict|set|math\.\w+|np\.\w+|numpy\.\w+|torch\.\w+)$"
)
_NO_BIAS = frozenset({"Embedding", "EmbeddingBag", "PReLU"})
_DEPTH = 4


def made_parameters(plan: Plan) -> list[Known] | None:
    """The parameters of the trained model, some by the beginning of their names only; None where its class is not seen."""
    classes = model_classes(plan)
    if len(classes) != 1:
        return None
    cls = next(iter(classes))
    return (
        list(_of_class(plan, cls, "", _DEPTH)) if is_module(plan, cls) and not _is_filled_otherwise(plan, cls) else None
    )


def model_classes(plan: Plan) -> set[Class]:
    """The classes of the tree that the trained model may be an object of."""
    known: set[Class] | None = plan.facts.get("model_classes")
    if known is None:
        known = {cls for wrap in plan.wraps for cls in _kinds(plan, wrap.model, wrap.function, _DEPTH)}
        plan.facts["model_classes"] = known
    return known


def _kinds(plan: Plan, node: Node | None, function: Function, depth: int) -> Iterator[Class]:
    while (
        isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in ("to", "cuda")
    ):
        node = node.func.value
    if node is None or not depth:
        return
    made = plan.flow.made_class(node, function) if isinstance(node, cst.Call) else None
    callee = plan.flow.callee(node) if isinstance(node, cst.Call) and made is None else None
    place = plan.flow.returned(callee) if callee is not None else plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None and made is None else ()
    yield from (made,) if made is not None else ()
    for binding in bindings:
        if binding.index is None and binding.kind in ("assign", "argument", "return"):
            yield from _kinds(plan, binding.value, binding.function, depth - 1)


def _is_filled_otherwise(plan: Plan, cls: Class) -> bool:
    """Whether bases from elsewhere may make parameters, or methods set attributes in ways that are not followed."""
    bases = [base for one in above(plan, cls) for base in one.bases if plan.flow.class_named(base, one.scope) is None]
    return not all(base.rpartition(".")[2] in ("Module", "object", "ABC") for base in bases)


def _of_class(plan: Plan, cls: Class, front: str, depth: int) -> Iterator[Known]:
    for one in above(plan, cls):
        for method in one.methods.values():
            for statement in method.statements:
                node = statement.node
                if not isinstance(node, cst.Assign) or len(node.targets) != 1:
                    continue
                target = node.targets[0].target
                if isinstance(target, cst.Attribute) and dotted(target.value) == method.self_name:
                    name = f"{front}{target.attr.value}"
                    sure = method.name == "__init__" and not any(True for _ in _branches(statement))
                    for known in _of_value(plan, node.value, name, method, depth):
                        yield known if sure else Known(f"{name}.", is_whole=False)


def _branches(statement: object) -> Iterator[Node]:
    """The ``if``, ``for`` and other blocks around a statement of a method."""
    for outer in statement.enclosing():  # type: ignore[attr-defined]
        if not isinstance(outer.node, cst.FunctionDef | cst.ClassDef):
            yield outer.node


def _of_value(plan: Plan, value: Node, name: str, function: Function, depth: int) -> Iterator[Known]:
    """The parameters of what is put into an attribute; of what is not known, the beginning of their names."""
    if isinstance(value, cst.Name | cst.Attribute | cst.Subscript | cst.IfExp):
        yield from (Known(f"{name}.", is_whole=False),) if _is_called(plan, function, name) else ()
    if not isinstance(value, cst.Call):
        return
    names = plan.imports.names(value.func)
    layer = next((found.group(1) for one in names if (found := _LAYERS.match(one))), None)
    cls = plan.flow.made_class(value, function)
    if layer == "Sequential" and value.args and all(isinstance(a.value, cst.Call) and not a.star for a in value.args):
        for index, arg in enumerate(value.args):
            yield from _of_value(plan, arg.value, f"{name}.{index}", function, depth)
    elif layer in _WEIGHTS:
        yield from _of_layer(value, name, layer)
    elif layer == "Parameter":
        frozen = argument(value, 1, "requires_grad")
        yield from (Known(name, is_whole=True),) if frozen is None else ()
    elif layer is not None and _WITHOUT.match(layer):
        return
    elif cls is not None and is_module(plan, cls) and depth and not _is_filled_otherwise(plan, cls):
        yield from _of_class(plan, cls, f"{name}.", depth - 1)
    elif (cls is None and not _PLAIN.match(dotted(value.func) or "")) or (cls is not None and is_module(plan, cls)):
        yield Known(f"{name}.", is_whole=False)


def _of_layer(call: cst.Call, name: str, layer: str) -> Iterator[Known]:
    """The weight of a layer, and its bias where nothing is said of it."""
    switches = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    if "affine" in switches or "_weight" in switches or any(arg.star for arg in call.args):
        return
    yield Known(f"{name}.weight", is_whole=True, rank=_WEIGHTS[layer])
    is_norm = _WEIGHTS[layer] == 1
    if layer not in _NO_BIAS and "bias" not in switches and (is_norm or len(call.args) <= 2):
        yield Known(f"{name}.bias", is_whole=True, rank=1)


def _is_called(plan: Plan, function: Function, name: str) -> bool:
    """Whether the class calls what is in an attribute, as one does with modules."""
    text = "" if function.owner is None else code_of(plan, function.owner)
    return f"{function.self_name}.{name.rpartition('.')[2]}(" in text
