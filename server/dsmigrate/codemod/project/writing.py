"""Which definitions write what a model is made of: weights, buffers, requires_grad; by the standard library's parser.

Such a definition takes part in a training without a word of it: ZeRO undoes writes to weights, the engine sends no
buffers, and parameters that are thawed later are not partitioned. What is found here is only worth a closer look.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dsmigrate.codemod.project.growing import makes_late

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_MAY_WRITE = re.compile(
    r"\.data\b|[\"']data[\"']|\brequires_grad|\bregister_buffer\(|\bout\s*=|[a-z]_\(|\.(?:weight|bias)(?:\[|\s*[-+*/]=)"
    r"|\breset_parameters\(|\bvector_to_|\bparameters\(\)\s*:|_foreach_|\bis None:\s+self\.|\bnot hasattr\(self|\bregister_parameter\("
)
_BUFFER = re.compile(r"""\bregister_buffer\(\s*(?:name\s*=\s*)?["'](\w+)["']""")
_BEGINS = re.compile(r"^_*(?:init|reset|build|setup|make|create)|(?<![a-z])init", re.IGNORECASE)
_LIBRARIES = frozenset({"torch", "nn", "F", "functional", "dist", "np", "math", "einops", "super"})
_OF_A_LAYER = ("weight", "bias")
_FOREACH = re.compile(r"^_foreach_\w+_$")
_NO_WRITES = frozenset({"share_memory_", "detach_", "retain_grad_", "apply_"})


def may_write(text: str) -> bool:
    """Whether a file is worth being parsed for what its definitions write."""
    return bool(_MAY_WRITE.search(text))


def buffers(text: str) -> frozenset[str]:
    """The names under which a file registers buffers."""
    return frozenset(_BUFFER.findall(text))


def writes(definition: Definition, names: frozenset[str]) -> bool:
    """Whether a top-level definition writes weights, or buffers of these names, when it is not just made."""
    if not isinstance(definition, ast.ClassDef):
        return not _BEGINS.search(definition.name) and any(_writes(node, names, None) for node in ast.walk(definition))
    return makes_late(definition) or any(
        _writes(node, names, _owner(method))
        for method in definition.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and not _BEGINS.search(method.name)
        for node in ast.walk(method)
    )


def _owner(method: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    return method.args.args[0].arg if method.args.args else None


def _writes(node: ast.AST, names: frozenset[str], owner: str | None) -> bool:
    if isinstance(node, ast.Call):
        return _call_writes(node, names, owner)
    if isinstance(node, ast.Assign):
        return any(_is_written(target, names, owner) for each in node.targets for target in _each(each))
    if isinstance(node, ast.AugAssign):
        target = node.target
        return _is_written(target, names, owner) or (isinstance(target, ast.Attribute) and target.attr in _OF_A_LAYER)
    if isinstance(node, ast.AnnAssign):
        return node.value is not None and _is_written(node.target, names, owner)
    return isinstance(node, ast.For) and _steps_variable(node)


def _steps_variable(loop: ast.For) -> bool:
    """``for p in net.parameters(): p -= …``."""
    iterable = loop.iter
    if not isinstance(iterable, ast.Call) or not isinstance(iterable.func, ast.Attribute):
        return False
    if iterable.func.attr not in ("parameters", "named_parameters"):
        return False
    names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    stepped = [node.target for body in loop.body for node in ast.walk(body) if isinstance(node, ast.AugAssign)]
    return any(isinstance(target, ast.Name) and target.id in names for target in stepped)


def _each(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _each(element)
    else:
        yield target


def _is_written(target: ast.expr, names: frozenset[str], owner: str | None) -> bool:
    """``p.data = …``, ``p.data[i] = …``, ``p.requires_grad = …``, and buffers of the object itself."""
    inner = target
    while isinstance(inner, ast.Subscript):
        inner = inner.value
    if isinstance(inner, ast.Attribute) and inner.attr in ("data", "requires_grad"):
        return True
    if not isinstance(inner, ast.Attribute):
        return False
    if inner is not target and inner.attr in _OF_A_LAYER:
        return True
    return inner.attr in names and isinstance(inner.value, ast.Name) and inner.value.id == owner


def _call_writes(call: ast.Call, names: frozenset[str], owner: str | None) -> bool:
    """``p.data.clamp_(…)``, ``self.w.mul_(…)``, ``nn.init.zeros_(layer.weight)``, ``out=self.w``, ``update(self.mean, x)``."""
    if any(keyword.arg == "out" and _is_held(keyword.value, owner) for keyword in call.keywords):
        return True
    func = call.func
    if isinstance(func, ast.Name) and func.id == "setattr":
        return len(call.args) > 1 and ast.unparse(call.args[1]) == "'data'"
    if _root(func) not in _LIBRARIES and any(isinstance(arg, ast.Attribute) and arg.attr in names for arg in call.args):
        return True
    if not isinstance(func, ast.Attribute):
        return False
    if func.attr in ("requires_grad_", "reset_parameters", "vector_to_parameters") or _FOREACH.match(func.attr):
        return True
    if not func.attr.endswith("_") or func.attr.endswith("__") or func.attr in _NO_WRITES:
        return False
    if isinstance(func.value, ast.Attribute) and func.value.attr == "init":
        return any(_is_held(arg, owner) for arg in call.args[:1])
    return _is_held(func.value, owner)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_held(node: ast.expr, owner: str | None) -> bool:
    """Whether an expression leads through ``.data``, ``.weight`` or ``.bias``, or is an attribute of the object itself."""
    held = False
    while True:
        if isinstance(node, ast.Attribute):
            held = (
                held
                or node.attr in ("data", "weight", "bias")
                or (isinstance(node.value, ast.Name) and node.value.id == owner)
            )
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return held
