"""Objects that only hold values: data classes and named tuples, whose constructor nobody wrote, and plain namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.tree import Class, Node, Statement

if TYPE_CHECKING:
    from dsmigrate.codemod.flow import Flow, Place

_DECORATORS = frozenset(
    {"dataclasses.dataclass", "attr.s", "attr.attrs", "attr.dataclass", "attr.define", "attrs.define"}
)
_BASES = frozenset({"typing.NamedTuple", "pydantic.BaseModel"})
_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict"})


def filled(flow: Flow, call: cst.Call, statement: Statement) -> list[tuple[Place, Node]]:
    """The attributes that a call fills: fields of a record of the tree, or what a plain namespace is made with."""
    cls = flow.made_class(call, statement.function)
    if cls is not None:
        return [(("a", flow.family(cls), name), value) for name, value in _given(flow, call, cls)]
    node = statement.node
    if not isinstance(node, cst.Assign) or node.value is not call or len(node.targets) != 1:
        return []
    target = node.targets[0].target
    attributes = [(cst.Attribute(target, cst.Name(name)), value) for name, value in _named(flow, call)]
    places = [(flow.place(attribute, statement.function), value) for attribute, value in attributes]
    return [(place, value) for place, value in places if place is not None]


def _is_record(flow: Flow, cls: Class) -> bool:
    """Whether a class gets its constructor from its annotated fields."""
    if "__init__" in cls.methods:
        return False
    decorators = [d.decorator for d in cls.node.decorators]
    plain = [d.func if isinstance(d, cst.Call) else d for d in decorators]
    own = any(flow.imports.names(node) & _DECORATORS for node in plain)
    return own or any(flow.imports.names(base.value) & _BASES for base in cls.node.bases)


def _given(flow: Flow, call: cst.Call, cls: Class) -> Iterator[tuple[str, Node]]:
    """The fields that a call of a record's class fills, with their values; nothing behind a star."""
    if not _is_record(flow, cls):
        return
    names = _fields(flow, cls, 8)
    for position, arg in enumerate(call.args):
        if arg.star:
            return
        if arg.keyword is not None:
            yield arg.keyword.value, arg.value
        elif position < len(names):
            yield names[position], arg.value


def _named(flow: Flow, call: cst.Call) -> Iterator[tuple[str, Node]]:
    """The attributes that a call makes in a plain namespace, with their values."""
    if flow.imports.names(call.func) & _NAMESPACES:
        for arg in call.args:
            if arg.keyword is not None:
                yield arg.keyword.value, arg.value


def _fields(flow: Flow, cls: Class, depth: int) -> list[str]:
    """The annotated names of a class and its bases, in the order in which a constructor takes them."""
    found: list[str] = []
    for base in reversed(flow.bases(cls)) if depth else ():
        found.extend(name for name in _fields(flow, base, depth - 1) if name not in found)
    for line in cls.node.body.body:
        for node in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            name = dotted(node.target) if isinstance(node, cst.AnnAssign) else None
            if name is not None and name not in found and isinstance(node, cst.AnnAssign) and not _of_class(node):
                found.append(name)
    return found


def _of_class(node: cst.AnnAssign) -> bool:
    annotation = node.annotation.annotation
    head = annotation.value if isinstance(annotation, cst.Subscript) else annotation
    return (dotted(head) or "").rpartition(".")[2] == "ClassVar"
