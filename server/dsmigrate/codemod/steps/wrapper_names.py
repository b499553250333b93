"""Tests that ask for the wrapper by the name of its class: ``type(model).__name__ == "DistributedDataParallel"``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.bindings import bound_values
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import is_ddp_class
from dsmigrate.codemod.tree import Function, Node

_PATH = "torch.nn.parallel.distributed.DistributedDataParallel"
_NAMES = (_PATH.rpartition(".")[2], _PATH, f"<class '{_PATH}'>")
_OF_A_CLASS = re.compile(r"\btype\(|\.__class__\b|\._get_name\(\)|\.__(?:qual)?name__\b")
_IS_TEXT = re.compile(r"^(?:str|repr)\(|__(?:qual)?name__$|_get_name\(\)$|\.lower\(\)$")


def class_name_tests(plan: Plan) -> Iterator[tuple[Node, str]]:
    """Every test of a class's name that holds for DDP, with the text of a test that holds for the engine as well."""
    texts: list[str] = plan.facts["texts"]
    if not any(re.search(r"[\"'][\w.]*Parallel|\.__(?:qual)?name__", text) for text in texts):
        return
    for node, statement in list(plan.tree.statement_of.items()):
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            yield from _comparison(plan, node, statement.function)
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and len(node.args) == 1:
            if node.func.attr.value in ("endswith", "startswith"):
                word = _text(plan, node.args[0].value)
                fits = getattr(str, node.func.attr.value)
                if (
                    word
                    and any(fits(name, word) for name in _NAMES)
                    and _speaks(plan, node.func.value, statement.function)
                ):
                    yield node, _either(plan, node, node.func.value, is_true=True)


def _comparison(plan: Plan, node: cst.Comparison, function: Function) -> Iterator[tuple[Node, str]]:
    operator, right = node.comparisons[0].operator, node.comparisons[0].comparator
    is_true = isinstance(operator, cst.Equal | cst.In | cst.Is)
    if isinstance(operator, cst.Equal | cst.NotEqual | cst.Is | cst.IsNot):
        for named, asked in ((node.left, right), (right, node.left)):
            if _text(plan, named) in _NAMES and _speaks(plan, asked, function):
                yield node, _either(plan, node, asked, is_true=is_true)
                return
    elif isinstance(operator, cst.In | cst.NotIn):
        word = _text(plan, node.left)
        if word and "Parallel" in word and word in _NAMES[-1] and _speaks(plan, right, function):
            yield node, _either(plan, node, right, is_true=is_true)
        elif _lists(plan, right, function) and _speaks(plan, node.left, function):
            yield node, _either(plan, node, node.left, is_true=is_true)


def _text(plan: Plan, node: Node) -> str | None:
    """A literal, or ``DDP.__name__``."""
    if isinstance(node, cst.Attribute) and node.attr.value in ("__name__", "__qualname__"):
        return _NAMES[0] if is_ddp_class(plan.imports, node.value) else None
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None


def _lists(plan: Plan, node: Node, function: Function) -> bool:
    """Whether a collection of names, perhaps a constant, has the wrapper's."""
    if isinstance(node, cst.Tuple | cst.List | cst.Set):
        return any(_text(plan, element.value) in _NAMES for element in node.elements)
    values = bound_values(plan, node, function) if isinstance(node, cst.Name | cst.Attribute) else []
    return any(_lists(plan, value, where) for value, where in values if not isinstance(value, cst.Name | cst.Attribute))


def _speaks(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression is the name of an object's class."""
    if _OF_A_CLASS.search(plan.code(node)):
        return True
    values = bound_values(plan, node, function) if isinstance(node, cst.Name) else []
    return bool(values) and all(_OF_A_CLASS.search(plan.code(value)) for value, _ in values)


def _either(plan: Plan, test: Node, asked: Node, *, is_true: bool) -> str:
    text = plan.code(asked)
    shown = text if _IS_TEXT.search(text) or (dotted(asked) == text and "__class__" not in text) else f"str({text})"
    word, joint = ("in", "or") if is_true else ("not in", "and")
    return f'({plan.code(test)} {joint} "DeepSpeedEngine" {word} {shown})'
