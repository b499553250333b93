"""What a tree is made of: statements with their lines, functions, classes, and the children of a node that carry meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TypeAlias

import libcst as cst

_SKIPPED_FIELDS = frozenset({
    "leading_lines", "lines_after_decorators", "header", "footer", "comma", "lpar", "rpar", "lbracket", "rbracket",
    "lbrace", "rbrace", "semicolon", "equal", "trailing_whitespace", "dot", "asynchronous", "indent", "encoding",
    "default_indent", "default_newline", "has_trailing_newline", "dots", "star_etc", "colon", "star", "arrow",
})  # fmt: skip

Node: TypeAlias = cst.CSTNode

# What a node type's meaningful fields are called, and whether a field of some type holds a node (1), several (2) or none.
_fields_of: dict[type[Node], tuple[str, ...]] = {}
_held_in: dict[type, int] = {}


def semantic_children(node: Node) -> list[Node]:
    """Child nodes that carry meaning, in source order; white space and punctuation are left out."""
    cls = type(node)
    names = _fields_of.get(cls)
    if names is None:
        names = _fields_of[cls] = _meaningful_fields(cls)
    found: list[Node] = []
    for name in names:
        value = getattr(node, name)
        held = _held_in.get(
            type(value)
        )  # isinstance() of LibCST's abstract classes is slow, and this is asked everywhere
        if held is None:
            held = _held_in[type(value)] = _held(type(value))
        if held == 1:
            found.append(value)
        elif held:
            found.extend(value)
    return found


def _held(cls: type) -> int:
    if issubclass(cls, cst.CSTNode):
        return 1
    return 2 if issubclass(cls, list | tuple) else 0


def _meaningful_fields(cls: type[Node]) -> tuple[str, ...]:
    if issubclass(cls, cst.Call):
        return ("func", "args")
    if issubclass(cls, cst.Parameters):
        return ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg")
    if issubclass(cls, cst.IfExp):
        return ("body", "test", "orelse")
    if issubclass(cls, cst.StarredElement | cst.StarredDictElement):
        return ("value",)
    if issubclass(cls, cst.FunctionDef):
        return ("decorators", "params", "returns", "body")
    if issubclass(cls, cst.ClassDef):
        return ("decorators", "bases", "keywords", "body")
    if issubclass(cls, cst.CompFor):
        return ("target", "iter", "ifs", "inner_for_in")
    names = (f.name for f in fields(cls))
    return tuple(name for name in names if name not in _SKIPPED_FIELDS and not name.startswith("white"))


def descendants(node: Node) -> Iterator[Node]:
    """The node and everything below it, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(semantic_children(current)[::-1])


@dataclass(slots=True, eq=False)
class Class:
    """A class of the file; ``bases`` are the dotted names it derives from, ``scope`` is where it stands.

    ``key`` is its name in the whole tree: classes of other modules may have the same ``name``.
    """

    name: str
    node: cst.ClassDef
    bases: tuple[str, ...]
    scope: Function
    key: str
    methods: dict[str, Function] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Function:
    """A function of the file, or the module itself (``node`` is then the module and ``parent`` None)."""

    name: str
    node: cst.FunctionDef | cst.Module
    parent: Function | None
    owner: Class | None
    params: tuple[str, ...] = ()
    local_names: set[str] = field(default_factory=set)
    imported_names: set[str] = field(default_factory=set)
    global_names: set[str] = field(default_factory=set)
    statements: list[Statement] = field(default_factory=list)
    inner: dict[str, Function] = field(default_factory=dict)

    @property
    def is_module(self) -> bool:
        """Whether this stands for the module's own statements."""
        return self.parent is None

    @property
    def top(self) -> Function:
        """The module that this stands in."""
        function = self
        while function.parent is not None:
            function = function.parent
        return function

    @property
    def self_name(self) -> str | None:
        """The name of the instance parameter of a method; an inner function of a method sees its method's.

        A method of the class has the class in its place; a static one has none.
        """
        function: Function | None = self
        while function is not None:
            if function.owner is not None:
                return function.params[0] if function.params and not function.is_static else None
            function = function.parent
        return None

    @property
    def is_static(self) -> bool:
        """Whether this is a static method: its first parameter is one like the others."""
        if not isinstance(self.node, cst.FunctionDef) or self.owner is None:
            return False
        names = [d.decorator.value for d in self.node.decorators if isinstance(d.decorator, cst.Name)]
        return "staticmethod" in names

    @property
    def class_seen(self) -> Class | None:
        """The class whose method this is, or is nested in."""
        function: Function | None = self
        while function is not None:
            if function.owner is not None:
                return function.owner
            function = function.parent
        return None


@dataclass(slots=True, eq=False)
class Statement:
    """One simple or compound statement.

    ``node`` is a small statement (``Assign``, ``Expr`` …) or a compound one; ``line_node`` the ``SimpleStatementLine``
    that holds a small statement, else ``node``. ``order`` is its place in source order over the file; ``up`` the
    enclosing compound statement; ``branch`` names the body of ``up`` it stands in (``body``, ``orelse`` …).
    """

    node: Node
    line_node: Node
    function: Function
    up: Statement | None
    branch: str
    block: Node
    order: int
    line: int = 0
    end_line: int = 0
    last_order: int = 0

    def enclosing(self) -> Iterator[Statement]:
        """The compound statements around this one, innermost first, not leaving its function."""
        outer = self.up
        while outer is not None and not isinstance(outer.node, cst.FunctionDef | cst.ClassDef):
            yield outer
            outer = outer.up


def number(node: Node) -> int | float | None:
    """The value of a written-out number, else None."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = number(node.expression)
        return None if inner is None else -inner
    if isinstance(node, cst.Integer | cst.Float):
        return node.evaluated_value
    return None
