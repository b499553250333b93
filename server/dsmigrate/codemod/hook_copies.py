"""Functions of a script that are copies of DDP's own compression hooks, taken over from another release of torch."""

from __future__ import annotations

import ast
import textwrap
from functools import cache

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, descendants

# torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py, 1.8 to 2.7: what was renamed in between stands in braces.
_SOURCE = """
def hook(process_group, bucket):
    group_to_use = process_group if process_group is not None else dist.group.WORLD
    world_size = {size}
    compressed_tensor = bucket.{buffer}().to({format}).div_(world_size)
    fut = dist.all_reduce(compressed_tensor, group=group_to_use, async_op=True).get_future()

    def decompress(fut):
        decompressed_tensor = bucket.{buffer}()
        decompressed_tensor.copy_(fut.value()[0])
        return decompressed_tensor

    return fut.then(decompress)
"""
_SIZES = (
    "group_to_use.size()",
    "process_group.size() if process_group is not None else dist.get_world_size()",
)
_FORMATS = {"fp16": ("torch.float16", "torch.half"), "bf16": ("torch.bfloat16",)}
_MEANINGS = {"dist": "torch.distributed", "torch": "torch"}


def format_of(plan: Plan, function: Function) -> str | None:
    """The format in which a function of the script sends gradients, where it is such a copy; None where it is not."""
    if function.is_module or function.owner is not None:
        return None
    tree = ast.parse(textwrap.dedent(plan.tree.code(function.node))).body[0]
    if not isinstance(tree, ast.FunctionDef) or tree.decorator_list:
        return None
    meanings = {}
    for node in descendants(function.node):
        text = dotted(node)
        root = text.partition(".")[0] if text is not None else ""
        found = plan.imports.meanings(root, function)
        if len(found) == 1:
            meanings[root] = next(iter(found))
    return _known().get(_shape(tree, meanings))


@cache
def _known() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, formats in _FORMATS.items():
        for written in formats:
            for size in _SIZES:
                for buffer in ("buffer", "get_tensor"):
                    text = _SOURCE.format(size=size, buffer=buffer, format=written)
                    tree = ast.parse(text).body[0]
                    assert isinstance(tree, ast.FunctionDef)
                    found[_shape(tree, _MEANINGS)] = name
    return found


def _shape(function: ast.FunctionDef, meanings: dict[str, str]) -> str:
    """A function without its name, documentation and annotations, its own names numbered, imported ones written out."""
    numbers: dict[str, str] = {}
    return ast.dump(_Shape(meanings, numbers).visit(function))


class _Shape(ast.NodeTransformer):
    def __init__(self, meanings: dict[str, str], numbers: dict[str, str]) -> None:
        self.meanings = meanings
        self.numbers = numbers

    def _number(self, name: str) -> str:
        return self.numbers.setdefault(name, f"_{len(self.numbers)}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.name = self._number(f"def {node.name}") if not self.numbers else self._number(node.name)
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self._number(node.arg))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        text = self.meanings.get(node.id)
        return ast.Name(text if text is not None else self._number(node.id), ast.Load())
