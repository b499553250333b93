"""The DDP idioms that still stand in a converted script, found without the codemod's own recogniser.

The process group, ``mp.spawn``, a scaler and its ``update`` are none: an engine works with them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_DDP_NAMES = {"DistributedDataParallel", "DDP"}
_APEX = {"initialize", "scale_loss", "master_params"}
_OPTIMIZER = re.compile(r"(^|_)(optim|optimizer|opt)s?(_|\d|$)|optimizer$|optim$", re.IGNORECASE)
_SCALER = re.compile(r"scaler\d?$", re.IGNORECASE)


def leftovers(source: str, tree: ast.Module | None = None) -> tuple[str, ...]:
    """Return one "line: idiom" entry for each DDP idiom in ``source``, or in its part ``tree``, in order of lines."""
    tree = ast.parse(source) if tree is None else tree
    aliases = set(_ddp_aliases(tree))
    inner = {id(node) for cls in _optimizer_classes(tree) for node in ast.walk(cls)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            idiom = _idiom_of_call(node, aliases)
            if idiom == "optimizer.step()" and id(node) in inner:
                continue  # an optimizer that wraps another one steps it, whoever steps the outer one
            if idiom:
                found.append((node.lineno, idiom))
        elif isinstance(node, ast.Attribute) and node.attr == "require_backward_grad_sync":
            found.append((node.lineno, node.attr))
    return tuple(f"{line}: {idiom}" for line, idiom in sorted(set(found)))


def _optimizer_classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(_name_of(base).endswith("Optimizer") for base in node.bases):
            yield node


def has_wrap(tree: ast.AST) -> bool:
    """Say whether the script calls a DistributedDataParallel class."""
    aliases = set(_ddp_aliases(tree))
    return any(isinstance(node, ast.Call) and _idiom_of_call(node, aliases) == "DDP wrap" for node in ast.walk(tree))


def has_backward(tree: ast.AST) -> bool:
    """Say whether the script calls any ``.backward(``."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
        for node in ast.walk(tree)
    )


def _ddp_aliases(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                if name.name in _DDP_NAMES:
                    yield name.asname or name.name


def _idiom_of_call(node: ast.Call, aliases: set[str]) -> str | None:
    dotted = _dotted(node.func)
    last = dotted[-1] if dotted else ""
    base = dotted[-2] if len(dotted) > 1 else ""
    if last == "DistributedDataParallel" or (len(dotted) == 1 and last in aliases) or dotted == ["apex", "DDP"]:
        return "DDP wrap"
    if base == "amp" and last in _APEX:
        return f"amp.{last}"
    if last == "no_sync":
        return "no_sync"
    if last == "clip_grad_norm_" or (last == "clip_grad_norm" and "utils" in dotted):
        emitted = bool(node.args) and ast.unparse(node.args[0]) == "engine.module.parameters()"
        measures = len(node.args) > 1 and ast.unparse(node.args[1]) == "float('inf')"
        return None if emitted or measures else last
    if isinstance(node.func, ast.Attribute):
        receiver = _name_of(node.func.value)
        if last == "backward" and not node.args:
            return "loss.backward()"
        if _SCALER.search(receiver) and last in {"scale", "unscale_", "step"}:
            emitted = bool(node.args) and ast.unparse(node.args[0]) == "engine.optimizer"
            return None if emitted else f"scaler.{last}"
        if last == "step" and _OPTIMIZER.search(receiver):
            return "optimizer.step()"
    return None


def _dotted(node: ast.expr) -> list[str]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names.append(node.id if isinstance(node, ast.Name) else "")
    return names[::-1]


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
