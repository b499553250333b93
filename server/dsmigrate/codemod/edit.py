"""Edits keyed by node, applied to the LibCST tree in one pass.

Only the paths that lead to an edit are visited; every other subtree is kept as the very same object, so untouched
lines stay byte for byte. A removed statement leaves its comments to its neighbour; a block that loses all its
statements gets a ``pass``, or goes with its header where the header does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from dsmigrate.codemod.rewriting import Rewriter
from dsmigrate.codemod.tree import Node, Part, Tree

ExpressionEdit = Callable[[Node], Node]


class Edits:
    """What to change, collected by the steps before anything is changed."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.module = tree.module
        self.expressions: dict[Node, ExpressionEdit] = {}
        self.statements: dict[Node, list[str]] = {}
        self.before: dict[Node, list[str]] = {}
        self.after: dict[Node, list[str]] = {}
        self.dissolved: dict[Node, str] = {}
        self.twins: set[Node] = set()
        self.comments: dict[Node, list[str]] = {}
        self.surrounded: dict[Node, str] = {}

    def __bool__(self) -> bool:
        return bool(self.expressions or self.statements or self.before or self.after or self.dissolved or self.comments)

    def replace(self, node: Node, edit: ExpressionEdit | str) -> None:
        """Replace an expression by what ``edit`` makes of it (its children already edited), or by source text."""
        if isinstance(edit, str):
            text = edit
            self.expressions[node] = lambda _: cst.parse_expression(text)
        else:
            self.expressions[node] = edit

    def remove(self, statement: Node) -> None:
        """Remove a small or compound statement; its comments stay."""
        self.statements[statement] = []

    def substitute(self, statement: Node, *lines: str) -> None:
        """Put other statements, given as source text, in the place of a small or compound statement."""
        self.statements[statement] = list(lines)

    def insert_before(self, line_node: Node, *lines: str) -> None:
        """Put statements before the line or compound statement."""
        self.before.setdefault(line_node, []).extend(lines)

    def insert_after(self, line_node: Node, *lines: str) -> None:
        """Put statements after the line or compound statement."""
        self.after.setdefault(line_node, []).extend(lines)

    def dissolve(self, compound: Node, branch: str = "body") -> None:
        """Put the statements of one branch in the place of a ``with`` or ``if``."""
        self.dissolved[compound] = branch

    def surround(self, line_node: Node, context: str) -> None:
        """Put a line or compound statement into a ``with`` block."""
        self.surrounded[line_node] = context

    def comment(self, line_node: Node, text: str) -> None:
        """Put a comment line above a line or compound statement."""
        lines = self.comments.setdefault(line_node, [])
        if text not in lines:
            lines.append(text)

    def is_removed(self, statement: Node) -> bool:
        """Whether a statement is going away without a substitute."""
        return self.statements.get(statement) == []

    def touched(self) -> set[Node]:
        """Every node on the way from the module to an edit."""
        keys: set[Node] = set()
        for table in (
            self.expressions,
            self.statements,
            self.before,
            self.after,
            self.dissolved,
            self.comments,
            self.surrounded,
        ):
            keys.update(table)
        keys |= self.twins
        found: set[Node] = set()
        for key in keys:
            node: Node | None = key
            while node is not None and node not in found:
                found.add(node)
                node = self.tree.parent.get(node)
        return found

    def apply(self, part: Part | None = None) -> cst.Module:
        """The edited module of a file, of the entry script by default."""
        self.module = self.tree.module if part is None else part.module
        return self.module.visit(Rewriter(self, self.touched()))

    def parse(self, lines: Sequence[str]) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
        """Statements from source text, in the file's own indentation and newline style."""
        if not lines:
            return []
        text = "\n".join(lines)
        indent = self.module.default_indent
        if indent != "    ":
            text = "\n".join(_reindent(line, indent) for line in text.split("\n"))
        parsed = cst.parse_module(text + "\n")
        body = list(parsed.body)
        if parsed.header and body:
            body[0] = body[0].with_changes(leading_lines=[*parsed.header, *body[0].leading_lines])
        return body


def _reindent(line: str, indent: str) -> str:
    stripped = line.lstrip(" ")
    depth = (len(line) - len(stripped)) // 4
    return indent * depth + stripped
