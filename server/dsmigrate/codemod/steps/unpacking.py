"""What each variable of a loop runs over."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.tree import Node


def unpacked(target: Node, iterable: Node) -> Iterator[tuple[Node, Node, int | None]]:
    """What each variable of a loop runs over, and which element it is: ``i, (p, mask)`` of ``enumerate(zip(…))``."""
    if not isinstance(target, cst.Tuple):
        yield target, iterable, None
        return
    name, args = (dotted(iterable.func), iterable.args) if isinstance(iterable, cst.Call) else (None, ())
    elements = [element.value for element in target.elements]
    if name == "enumerate" and args and len(elements) == len(("index", "value")):
        yield from unpacked(elements[1], args[0].value)
    elif name == "zip":
        for element, arg in zip(elements, args, strict=False):
            yield from unpacked(element, arg.value)
    else:
        yield from ((element, iterable, index) for index, element in enumerate(elements))
