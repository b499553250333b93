"""Applies edits to a LibCST tree in one pass, and closes the gaps that removed statements leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import libcst as cst

from dsmigrate.codemod.tree import Node, Tree, descendants

if TYPE_CHECKING:
    from dsmigrate.codemod.edit import Edits


_MARK = "__dsmigrate_removed__"


_BLANK = cst.EmptyLine(indent=False)


_Block = TypeVar("_Block", cst.Module, cst.IndentedBlock)


def placeholder(leading: Sequence[cst.EmptyLine]) -> cst.SimpleStatementLine:
    """What stands for a removed statement until ``close_gaps`` hands its comments on."""
    return cst.SimpleStatementLine([cst.Expr(cst.Name(_MARK))], leading_lines=leading)


def _is_placeholder(node: Node) -> bool:
    return (
        isinstance(node, cst.SimpleStatementLine)
        and len(node.body) == 1
        and isinstance(node.body[0], cst.Expr)
        and isinstance(node.body[0].value, cst.Name)
        and node.body[0].value.value == _MARK
    )


def _pass_line(leading: Sequence[cst.EmptyLine] = ()) -> cst.SimpleStatementLine:
    # The semicolon-free `pass` with the marker comment-free body is recognised by `_is_emptied`.
    return cst.SimpleStatementLine([_EmptiedPass()], leading_lines=leading)


class _EmptiedPass(cst.Pass):
    """A ``pass`` that stands where every statement of a block went away."""


def _is_emptied(body: Node) -> bool:
    if isinstance(body, cst.SimpleStatementSuite):
        return len(body.body) == 1 and isinstance(body.body[0], _EmptiedPass)
    if not isinstance(body, cst.IndentedBlock) or len(body.body) != 1:
        return False
    line = body.body[0]
    return isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and isinstance(line.body[0], _EmptiedPass)


# Calls that only ask: leaving them out changes nothing.
_QUESTIONS = frozenset({
    "device_count", "is_available", "is_initialized", "len", "hasattr", "getattr", "isinstance", "int", "bool", "get",
    "get_rank", "get_world_size", "is_bf16_supported", "min", "max", "is_distributed", "is_dist_avail_and_initialized",
})  # fmt: skip


def _is_pure(node: Node) -> bool:
    """Whether evaluating an expression can be left out: no call but a question, no await, no walrus."""
    for sub in descendants(node):
        if isinstance(sub, cst.Await | cst.NamedExpr | cst.Yield):
            return False
        if isinstance(sub, cst.Call):
            name = sub.func.attr.value if isinstance(sub.func, cst.Attribute) else getattr(sub.func, "value", "")
            if name not in _QUESTIONS:
                return False
    return True


def _comments(lines: Sequence[cst.EmptyLine]) -> bool:
    return any(line.comment is not None for line in lines)


def _carried_from(body: Node) -> list[cst.EmptyLine]:
    """Comments of an emptied block, to be kept above whatever follows."""
    if isinstance(body, cst.IndentedBlock) and len(body.body) == 1:
        line = body.body[0]
        found = [item for item in (*line.leading_lines, *body.footer) if item.comment is not None]  # type: ignore[attr-defined]
        return [cst.EmptyLine(indent=True, comment=item.comment, newline=item.newline) for item in found]
    return []


class Rewriter(cst.CSTTransformer):
    """Applies edits; visits only the nodes that lead to one."""

    def __init__(self, edits: Edits, touched: set[Node]) -> None:
        super().__init__()
        self.edits = edits
        self.touched = touched

    def on_visit(self, node: Node) -> bool:
        """Go down only where an edit is."""
        return node in self.touched

    def on_leave(self, original_node: Node, updated_node: Node) -> Node | cst.FlattenSentinel[Node]:  # type: ignore[override]
        """Put what the edits make of a node in its place."""
        if original_node not in self.touched:
            return updated_node
        edit = self.edits.expressions.get(original_node)
        if edit is not None:
            return edit(updated_node)
        if isinstance(updated_node, cst.IndentedBlock):
            return close_gaps(updated_node)
        if isinstance(updated_node, cst.Module):
            return close_gaps(updated_node)
        if isinstance(updated_node, cst.SimpleStatementSuite):
            return self._leave_suite(cast(cst.SimpleStatementSuite, original_node), updated_node)
        if isinstance(updated_node, cst.SimpleStatementLine):
            return self._leave_line(cast(cst.SimpleStatementLine, original_node), updated_node)
        if isinstance(updated_node, cst.BaseCompoundStatement):
            return self._leave_compound(original_node, updated_node)
        return updated_node

    def _leave_suite(self, original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite) -> Node:
        body = self._small(original.body, updated.body)
        if body is None:
            return updated
        if not body:
            return updated.with_changes(body=[_EmptiedPass()])
        if any(not isinstance(item, cst.SimpleStatementLine) for item in body if isinstance(item, cst.BaseStatement)):
            return cst.IndentedBlock([cast(cst.BaseStatement, _as_line(item)) for item in body])
        smalls: list[cst.BaseSmallStatement] = []
        for item in body:
            smalls.extend(item.body if isinstance(item, cst.SimpleStatementLine) else [item])  # type: ignore[list-item]
        return cst.IndentedBlock(
            [cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]) for small in smalls]
        )

    def _small(self, originals: Sequence[Node], updated: Sequence[Node]) -> list[Node] | None:
        """The small statements after editing, or None where none of them was replaced or removed."""
        if not any(item in self.edits.statements for item in originals):
            return None
        result: list[Node] = []
        for before, now in zip(originals, updated, strict=True):
            lines = self.edits.statements.get(before)
            if lines is None:
                result.append(now)
            else:
                result.extend(self.edits.parse(lines))
        return result

    def _leave_line(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> Node | cst.FlattenSentinel[Node]:
        items = self._small(original.body, updated.body)
        if items is None:
            lines: list[Node] = [updated]
        elif not items:
            lines = [placeholder(updated.leading_lines)]
        else:
            lines = []
            for item in items:
                lines.append(_as_line(item))
            first = lines[0]
            lines[0] = first.with_changes(leading_lines=[*updated.leading_lines, *first.leading_lines])  # type: ignore[attr-defined]
            last = lines[-1]
            if isinstance(last, cst.SimpleStatementLine) and updated.trailing_whitespace.comment is not None:
                lines[-1] = last.with_changes(trailing_whitespace=updated.trailing_whitespace)
        return self._with_neighbours(original, lines)

    def _with_neighbours(self, original: Node, lines: list[Node]) -> Node | cst.FlattenSentinel[Node]:
        before = self.edits.parse(self.edits.before.get(original, ()))
        after = self.edits.parse(self.edits.after.get(original, ()))
        comments = [cst.EmptyLine(comment=cst.Comment(f"# {text}")) for text in self.edits.comments.get(original, ())]
        if comments:
            lines[0] = lines[0].with_changes(leading_lines=[*lines[0].leading_lines, *comments])  # type: ignore[attr-defined]
        if before:
            # Comments above the statement stay with it; a blank line that opened the paragraph moves to its new start.
            head = lines[0]
            leading = list(head.leading_lines)  # type: ignore[attr-defined]
            blanks = []
            while leading and leading[0].comment is None:
                blanks.append(leading.pop(0))
            if isinstance(before[-1], cst.FunctionDef | cst.ClassDef):
                leading = [_BLANK, _BLANK, *leading]
            lines[0] = head.with_changes(leading_lines=leading)
            if before[0].leading_lines and before[0].leading_lines[0].comment is None:
                blanks = []
            before[0] = before[0].with_changes(leading_lines=[*blanks, *before[0].leading_lines])
        context = self.edits.surrounded.get(original)
        if context is not None:
            leading = lines[0].leading_lines  # type: ignore[attr-defined]
            lines[0] = lines[0].with_changes(leading_lines=[])
            item = cst.WithItem(cst.parse_expression(context))
            lines = [cst.With([item], cst.IndentedBlock(lines), leading_lines=leading)]  # type: ignore[arg-type]
        everything = [*before, *lines, *after]
        return everything[0] if len(everything) == 1 else cst.FlattenSentinel(everything)

    def _leave_compound(self, original: Node, updated: cst.BaseCompoundStatement) -> Node | cst.FlattenSentinel[Node]:
        lines = self.edits.statements.get(original)
        if lines is not None:
            new = [_as_line(item) for item in self.edits.parse(lines)]
            if new:
                new[0] = new[0].with_changes(leading_lines=[*updated.leading_lines, *new[0].leading_lines])  # type: ignore[attr-defined]
            return self._with_neighbours(original, new or [placeholder(updated.leading_lines)])
        if original in self.edits.dissolved:
            return self._with_neighbours(original, _branch(updated, self.edits.dissolved[original]))
        if isinstance(updated, cst.If):
            simplified = self._simplify_if(original, updated)
            if simplified is not updated:
                if isinstance(simplified, cst.If):
                    return self._with_neighbours(original, [simplified])
                return self._with_neighbours(original, simplified)
        if isinstance(updated, cst.With) and _is_emptied(updated.body):
            return self._with_neighbours(
                original, [placeholder([*updated.leading_lines, *_carried_from(updated.body)])]
            )
        return self._with_neighbours(original, [updated])

    def _simplify_if(self, original: Node, updated: cst.If) -> cst.If | list[Node]:
        orelse = updated.orelse
        if isinstance(orelse, cst.Else) and _is_emptied(orelse.body):
            carried = _carried_from(orelse.body)
            orelse = None
            body = updated.body
            if carried and isinstance(body, cst.IndentedBlock):
                body = body.with_changes(footer=[*body.footer, *carried])
            updated = updated.with_changes(orelse=None, body=body)
        elif (
            isinstance(orelse, cst.If) and _is_emptied(orelse.body) and orelse.orelse is None and _is_pure(orelse.test)
        ):
            updated = updated.with_changes(orelse=None)
            orelse = None
        if _is_emptied(updated.body) and orelse is None and _is_pure(updated.test):
            if isinstance(self.edits.tree.parent.get(original), cst.If) and _is_elif(self.edits.tree, original):
                return updated
            return [placeholder([*updated.leading_lines, *_carried_from(updated.body)])]
        if original in self.edits.twins and isinstance(updated.orelse, cst.Else) and _is_pure(updated.test):
            module = self.edits.tree.module
            if module.code_for_node(_bare(updated.body)) == module.code_for_node(_bare(updated.orelse.body)):
                return _branch(updated, "body")
        return updated


def _is_elif(tree: Tree, node: Node) -> bool:
    parent = tree.parent.get(node)
    return isinstance(parent, cst.If) and parent.orelse is node


def _bare(body: Node) -> Node:
    """A block without comments and blank lines, for comparison."""
    if isinstance(body, cst.SimpleStatementSuite):
        return cst.IndentedBlock([cst.SimpleStatementLine(body.body)])
    if isinstance(body, cst.IndentedBlock):
        return cst.IndentedBlock(
            [
                item.with_changes(leading_lines=[], trailing_whitespace=cst.TrailingWhitespace())
                if isinstance(item, cst.SimpleStatementLine)
                else item.with_changes(leading_lines=[])
                for item in body.body
            ]
        )
    return body


def _as_line(item: Node) -> Node:
    if isinstance(item, cst.BaseSmallStatement):
        return cst.SimpleStatementLine([item.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
    return item


def _branch(compound: Node, branch: str) -> list[Node]:
    """The statements of a branch of an ``if`` or ``with``, with the compound's leading lines and footer comments."""
    suite = compound.orelse.body if branch == "orelse" else compound.body  # type: ignore[attr-defined]
    header: list[cst.EmptyLine] = []
    if isinstance(suite, cst.SimpleStatementSuite):
        body: list[Node] = [cst.SimpleStatementLine(suite.body)]
        footer: list[cst.EmptyLine] = []
    else:
        body = list(suite.body)
        footer = [line for line in suite.footer if line.comment is not None]
        if suite.header.comment is not None:
            header = [cst.EmptyLine(comment=suite.header.comment)]
    leading = [*compound.leading_lines, *header]  # type: ignore[attr-defined]
    if not body or all(
        isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], _EmptiedPass) for line in body
    ):
        return [placeholder(leading)]
    first = body[0]
    body[0] = first.with_changes(leading_lines=[*leading, *first.leading_lines])  # type: ignore[attr-defined]
    if footer:
        body.append(placeholder(footer))
    return body


def close_gaps(block: _Block) -> _Block:
    """Drop the placeholders of removed statements; their comments go to the next statement or to the footer."""
    if not any(_is_placeholder(item) for item in block.body):
        return block
    kept: list[Any] = []
    carried: list[cst.EmptyLine] = []
    for found in block.body:
        item: Any = found
        if _is_placeholder(item):
            leading: Sequence[cst.EmptyLine] = item.leading_lines
            if _comments(leading) or (not carried and leading and any(line.comment is None for line in leading)):
                carried.extend(leading)
            continue
        if carried:
            own: list[cst.EmptyLine] = list(item.leading_lines)
            if _comments(carried):
                item = item.with_changes(leading_lines=[*carried, *own])
            elif not own:
                item = item.with_changes(leading_lines=carried)
            carried = []
        kept.append(item)
    comments: list[cst.EmptyLine] = [line for line in carried if line.comment is not None]
    if isinstance(block, cst.Module):
        return block.with_changes(body=kept, footer=[*comments, *block.footer])
    footer: list[cst.EmptyLine] = [
        cst.EmptyLine(indent=True, comment=line.comment, newline=line.newline) for line in comments
    ]
    if not kept:
        leading = [cst.EmptyLine(indent=True, comment=line.comment, newline=line.newline) for line in comments]
        return block.with_changes(body=[_pass_line(leading)])
    return block.with_changes(body=kept, footer=[*footer, *block.footer])
