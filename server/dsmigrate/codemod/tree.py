"""One cheap walk over LibCST trees: parents, statements with their lines, functions, calls and names.

A tree spans the entry script and, where the training is spread over several files, the parts of the other modules
that the training reaches; their statements form one list. LibCST's metadata providers cost more than its parser, so
this index is built by hand: it visits the nodes that carry meaning, skips white space, and takes line numbers from the
standard library's ``ast`` of the same text, statement by statement (both list the same statements in the same order).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.nodes import Class, Function, Node, Statement, descendants, semantic_children

__all__ = [
    "Class", "Function", "LineMismatchError", "ModuleFinder", "Node", "Part", "Resolver", "Statement", "Tree",
    "descendants", "semantic_children",
]  # fmt: skip


@dataclass(slots=True, eq=False)
class Part:
    """One file of a tree.

    ``path`` is relative to the project root. ``kept`` names the top-level functions and classes that belong to the
    training, None for all of them; the others are passed over, so that nothing is concluded from them or done to them.
    ``is_quiet``: the file speaks of no training, and is only looked at for what it writes.
    """

    path: str
    module: cst.Module
    python: ast.Module
    top: Function
    kept: frozenset[str] | None = None
    is_quiet: bool = False
    classes: dict[str, Class] = field(default_factory=dict)

    def passes_over(self, node: object) -> bool:
        """Whether a top-level definition is left out."""
        if self.kept is None or not isinstance(
            node, cst.FunctionDef | cst.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ):
            return False
        name = node.name if isinstance(node.name, str) else node.name.value
        return name not in self.kept


Resolver: TypeAlias = "Callable[[Part, str], tuple[Part, str] | None]"
"""From a dotted name as written in one file to the file of the tree that defines it, and its name there."""

ModuleFinder: TypeAlias = "Callable[[Part, str, int], Part | None]"
"""From a module's name as a file imports it, and its leading dots, to that module where it belongs to the tree."""


class Tree:
    """The index of one parsed file, or of several that train together."""

    def __init__(self, module: cst.Module, python: ast.Module, path: str = "") -> None:
        self.module = module
        self.parts: list[Part] = []
        self.part_of_top: dict[Function, Part] = {}
        self.resolver: Resolver | None = None
        self.find_module: ModuleFinder | None = None
        self.parent: dict[Node, Node] = {}
        self.statement_of: dict[Node, Statement] = {}
        self.statements: list[Statement] = []
        self.calls: list[cst.Call] = []
        self.withs: list[Statement] = []
        self.functions: list[Function] = []
        self.classes: dict[str, Class] = {}
        self.class_of_node: dict[Node, Class] = {}
        self.function_of_node: dict[Node, Function] = {}
        self.top = self.add(module, python, path).top

    def add(self, module: cst.Module, python: ast.Module, path: str, kept: frozenset[str] | None = None) -> Part:
        """Index one more file; the first one is the entry script. Raises LineMismatchError."""
        part = Part(path, module, python, Function("<module>", module, None, None), kept)
        self.parts.append(part)
        self.part_of_top[part.top] = part
        self.functions.append(part.top)
        first = len(self.statements)
        self._block(module, [node for node in module.body if not part.passes_over(node)], part.top, None, "body")
        self._lines(python, part, first)
        return part

    # -- building -------------------------------------------------------------------------------------------------

    def _statement(
        self, node: Node, line_node: Node, function: Function, up: Statement | None, branch: str, block: Node
    ) -> Statement:
        statement = Statement(node, line_node, function, up, branch, block, len(self.statements))
        self.statements.append(statement)
        function.statements.append(statement)
        self.statement_of[node] = statement
        self.statement_of.setdefault(line_node, statement)
        return statement

    def _block(self, block: Node, body: Sequence[Node], function: Function, up: Statement | None, branch: str) -> None:
        for item in body:
            self.parent[item] = block
            if isinstance(item, cst.SimpleStatementLine):
                for small in item.body:
                    self.parent[small] = item
                    statement = self._statement(small, item, function, up, branch, block)
                    self._simple(small, function, statement)
                    statement.last_order = statement.order
            elif isinstance(item, cst.BaseSmallStatement):  # one-line bodies: `if x: y = 1`
                statement = self._statement(item, item, function, up, branch, block)
                self._simple(item, function, statement)
                statement.last_order = statement.order
            else:
                statement = self._statement(item, item, function, up, branch, block)
                self._compound(item, function, statement)
                statement.last_order = len(self.statements) - 1

    def _suite(self, owner: Node, suite: Node, function: Function, up: Statement, branch: str) -> None:
        self.parent[suite] = owner
        self._block(suite, suite.body, function, up, branch)  # type: ignore[attr-defined]

    def _compound(self, node: Node, function: Function, statement: Statement) -> None:
        if isinstance(node, cst.FunctionDef):
            self._function(node, function, statement)
        elif isinstance(node, cst.ClassDef):
            self._class(node, function, statement)
        elif isinstance(node, cst.If):
            self._expression(node.test, node, function, statement)
            self._suite(node, node.body, function, statement, "body")
            self._orelse(node, node.orelse, function, statement)
        elif isinstance(node, cst.For | cst.While):
            if isinstance(node, cst.For):
                self._expression(node.iter, node, function, statement)
                self._expression(node.target, node, function, statement)
                self._bind(node.target, function)
            else:
                self._expression(node.test, node, function, statement)
            self._suite(node, node.body, function, statement, "body")
            self._orelse(node, node.orelse, function, statement)
        elif isinstance(node, cst.With):
            self.withs.append(statement)
            for item in node.items:
                self.parent[item] = node
                self._expression(item.item, item, function, statement)
                if item.asname is not None:
                    self.parent[item.asname] = item
                    self._expression(item.asname.name, item.asname, function, statement)
                    self._bind(item.asname.name, function)
            self._suite(node, node.body, function, statement, "body")
        elif isinstance(node, cst.Try | cst.TryStar):
            self._suite(node, node.body, function, statement, "body")
            for handler in node.handlers:
                self.parent[handler] = node
                if handler.type is not None:
                    self._expression(handler.type, handler, function, statement)
                if handler.name is not None:
                    self._bind(handler.name.name, function)
                self._suite(handler, handler.body, function, statement, "handler")
            self._orelse(node, node.orelse, function, statement)
            self._orelse(node, node.finalbody, function, statement)
        elif isinstance(node, cst.Match):
            self._expression(node.subject, node, function, statement)
            for case in node.cases:
                self.parent[case] = node
                self._expression(case.pattern, case, function, statement)
                for sub in descendants(case.pattern):
                    if isinstance(sub, cst.MatchAs | cst.MatchStar) and sub.name is not None:
                        function.local_names.add(sub.name.value)
                if case.guard is not None:
                    self._expression(case.guard, case, function, statement)
                self._suite(case, case.body, function, statement, "case")

    def _orelse(self, owner: Node, orelse: Node | None, function: Function, up: Statement) -> None:
        if orelse is None:
            return
        self.parent[orelse] = owner
        if isinstance(orelse, cst.If):
            statement = self._statement(orelse, orelse, function, up, "orelse", owner)
            self._compound(orelse, function, statement)
            statement.last_order = len(self.statements) - 1
        elif isinstance(orelse, cst.Else | cst.Finally):
            self._suite(orelse, orelse.body, function, up, "orelse" if isinstance(orelse, cst.Else) else "finally")

    def _function(self, node: cst.FunctionDef, outer: Function, statement: Statement) -> None:
        for decorator in node.decorators:
            self._expression(decorator, node, outer, statement)
        owner = None
        if statement.up is not None and isinstance(statement.up.node, cst.ClassDef):
            owner = self.class_of_node.get(statement.up.node)
        params = node.params
        names = [p.name.value for p in (*params.posonly_params, *params.params)]
        kwonly = [p.name.value for p in params.kwonly_params]
        function = Function(node.name.value, node, outer, owner, (*names, *kwonly))
        function.local_names.update(function.params)
        for star in (params.star_arg, params.star_kwarg):
            if isinstance(star, cst.Param):
                function.local_names.add(star.name.value)
        self.functions.append(function)
        self.function_of_node[node] = function
        if owner is not None:
            owner.methods[function.name] = function
        else:
            outer.inner[function.name] = function
            outer.local_names.add(function.name)
        self._expression(node.params, node, outer, statement)
        self._suite(node, node.body, function, statement, "body")

    def _class(self, node: cst.ClassDef, function: Function, statement: Statement) -> None:
        from dsmigrate.codemod.names import dotted

        bases = tuple(name for base in node.bases if (name := dotted(base.value)) is not None)
        name = node.name.value
        file = self.part_of_top[function.top]
        taken = name in self.classes and name not in file.classes
        key = f"{name} of {file.path}" if taken else name
        found = Class(name, node, bases, function, key)
        self.class_of_node[node] = found
        self.classes[key] = found
        file.classes[name] = found
        function.local_names.add(node.name.value)
        for part in (*node.decorators, *node.bases, *node.keywords):
            self._expression(part, node, function, statement)
        self._suite(node, node.body, function, statement, "body")

    def _simple(self, node: Node, function: Function, statement: Statement) -> None:
        if isinstance(node, cst.Assign):
            for target in node.targets:
                self._bind(target.target, function)
        elif isinstance(node, cst.AnnAssign | cst.AugAssign):
            self._bind(node.target, function)
        elif isinstance(node, cst.Global):
            function.global_names.update(item.name.value for item in node.names)
        elif isinstance(node, cst.Import | cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                name: Node = alias.asname.name if alias.asname is not None else alias.name
                while isinstance(name, cst.Attribute):
                    name = name.value
                if isinstance(name, cst.Name):
                    function.local_names.add(name.value)
                    function.imported_names.add(name.value)
        for child in semantic_children(node):
            self._expression(child, node, function, statement)

    def _expression(self, node: Node, parent: Node, function: Function, statement: Statement) -> None:
        self.parent[node] = parent
        self.statement_of[node] = statement
        if isinstance(node, cst.Call):
            self.calls.append(node)
        elif isinstance(node, cst.NamedExpr):
            self._bind(node.target, function)
        for child in semantic_children(node):
            self._expression(child, node, function, statement)

    def _bind(self, target: Node, function: Function) -> None:
        if isinstance(target, cst.Name):
            function.local_names.add(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value, function)
        elif isinstance(target, cst.StarredElement):
            self._bind(target.value, function)

    def _lines(self, python: ast.Module, part: Part, start: int) -> None:
        nodes = list(_ast_statements([node for node in python.body if not part.passes_over(node)]))
        statements = self.statements[start:]
        if len(nodes) != len(statements):
            raise LineMismatchError(len(nodes), len(statements))
        for statement, node in zip(statements, nodes, strict=True):
            first = min((d.lineno for d in getattr(node, "decorator_list", ())), default=node.lineno)
            statement.line, statement.end_line = first, node.end_lineno or first

    # -- asking ---------------------------------------------------------------------------------------------------

    def statement(self, node: Node) -> Statement:
        """The statement a node stands in."""
        return self.statement_of[node]

    def part(self, node: Node) -> Part:
        """The file that a node stands in; the entry script for a node that is no statement's."""
        statement = self.statement_of.get(node)
        return self.parts[0] if statement is None else self.part_of_top[statement.function.top]

    def resolve(self, text: str, function: Function) -> tuple[Part, str] | None:
        """The other file of the tree that defines what a dotted name of a function's file stands for, and its name there."""
        if self.resolver is None or len(self.parts) == 1:
            return None
        root = text.partition(".")[0]
        scope: Function | None = function
        while scope is not None:
            if root in scope.local_names:
                if root not in scope.imported_names:
                    return None
                break
            scope = scope.parent
        return self.resolver(self.part_of_top[function.top], text)

    def ancestors(self, node: Node) -> Iterator[Node]:
        """The nodes around a node, innermost first."""
        current = self.parent.get(node)
        while current is not None:
            yield current
            current = self.parent.get(current)

    def code(self, node: Node) -> str:
        """The source text of a node."""
        return self.module.code_for_node(node).strip()


class LineMismatchError(Exception):
    """LibCST and ast disagree on the statements of a file (never seen; the file is then left alone)."""


def _ast_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.Match):
            for case in node.cases:
                yield from _ast_statements(case.body)
            continue
        yield from _ast_statements(getattr(node, "body", ()))
        for handler in getattr(node, "handlers", ()):
            yield from _ast_statements(handler.body)
        yield from _ast_statements(getattr(node, "orelse", ()))
        yield from _ast_statements(getattr(node, "finalbody", ()))
