"""Applies edits to a file: every byte that no edit speaks of stays."""

from __future__ import annotations

import ast
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import libcst as cst

from dsmigrate.codemod.program.edits import (
    AddArgument,
    AddParameter,
    Comment,
    Edit,
    Enclose,
    Import,
    Insert,
    Remove,
    RemoveArgument,
    Replace,
    ReplaceStatement,
    Template,
    Unwrap,
    templates,
)
from dsmigrate.codemod.program.module import Module
from dsmigrate.codemod.rewrite import locate
from dsmigrate.codemod.rewrite.imports import with_imports

_HOLE = "__hole_%d__"


@dataclass
class _Plan:
    """The edits of one file by LibCST's nodes. ``holes`` are the nodes that stand in templates."""

    expressions: dict[cst.CSTNode, Edit] = field(default_factory=dict)
    arguments: dict[cst.CSTNode, list[Edit]] = field(default_factory=lambda: defaultdict(list))
    parameters: dict[cst.CSTNode, list[AddParameter]] = field(default_factory=lambda: defaultdict(list))
    statements: dict[cst.CSTNode, Edit] = field(default_factory=dict)
    before: dict[cst.CSTNode, list[Insert]] = field(default_factory=lambda: defaultdict(list))
    after: dict[cst.CSTNode, list[Insert]] = field(default_factory=lambda: defaultdict(list))
    enclosed: dict[cst.CSTNode, str] = field(default_factory=dict)
    comments: dict[cst.CSTNode, list[Comment]] = field(default_factory=lambda: defaultdict(list))
    guards: dict[cst.CSTNode, str] = field(default_factory=dict)
    """Lines of which the old form stays, for where a test does not hold."""
    holes: dict[ast.AST, cst.CSTNode] = field(default_factory=dict)
    done: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    touched: set[cst.CSTNode] = field(default_factory=set)
    """Statements that an edit speaks of, and all around them; every other stays as it is."""


def rewritten(module: Module, edits: Iterable[Edit], imports: Iterable[Import]) -> cst.Module:
    """A file with its edits made and its imports added."""
    text = module.source.text
    tree = cst.parse_module(text)
    plan = _planned(module, tree, list(edits))
    changed = tree.visit(_Rewriter(plan, tree, text))
    return with_imports(changed, list(imports))


def _planned(module: Module, tree: cst.Module, edits: Sequence[Edit]) -> _Plan:
    plan = _Plan()
    wanted: set[ast.AST] = set()
    reached: set[ast.AST] = set()
    for edit in edits:
        reached.update(step.node for step in module.step(edit.node).around())
        if not isinstance(edit, Comment):
            wanted.add(edit.node)
        wanted.update(part for line in templates(edit) for part in line if not isinstance(part, str))
        if isinstance(edit, Remove):
            wanted.update(edit.keep)
    nodes: dict[ast.AST, cst.CSTNode] = {}
    lines: dict[ast.AST, cst.CSTNode] = {}
    by_statement: dict[ast.AST, list[ast.expr]] = defaultdict(list)
    for node in wanted:
        step = module.step(node)
        reached.update(one.node for one in step.around())
        if isinstance(node, ast.expr):
            by_statement[step.node].append(node)
    for python, line, small in locate.statements(module.tree.body, tree):
        lines[python], nodes[python] = line, small
        if python in reached:
            plan.touched |= {line, small}
        for expression in by_statement.get(python, ()):
            nodes[expression] = locate.expression(expression, python, small)
        for inner, elif_node in locate.elif_nodes(python, small):
            nodes[inner], lines[inner] = elif_node, line  # before which a comment can stand
            if inner in reached:
                plan.touched.add(elif_node)
            for expression in by_statement.get(inner, ()):
                nodes[expression] = locate.expression(expression, inner, elif_node)
    for edit in _outermost(module, edits):
        _note(plan, edit, nodes, lines)
        if edit.guard and not isinstance(edit, Insert | AddArgument | AddParameter):
            statement = module.step(edit.node).node
            if statement is edit.node or not hasattr(statement, "body"):
                plan.guards[lines[statement]] = edit.guard
    plan.holes = {node: nodes[node] for node in wanted if isinstance(node, ast.expr) and node in nodes}
    return plan


def _outermost(module: Module, edits: Sequence[Edit]) -> Iterator[Edit]:
    """The edits; those within a statement of which both forms stand are of its new form."""
    both = {edit.node for edit in edits if edit.guard and isinstance(edit, Remove | ReplaceStatement | Unwrap)}
    for edit in edits:
        around = (step.node for step in module.step(edit.node).around())
        yield (
            replace(edit, guard="")
            if edit.guard and any(node in both and node is not edit.node for node in around)
            else edit
        )


def _note(plan: _Plan, edit: Edit, nodes: dict[ast.AST, cst.CSTNode], lines: dict[ast.AST, cst.CSTNode]) -> None:
    if isinstance(edit, Comment):
        place = plan.comments[lines[edit.module.step(edit.node).node]]
        if edit not in place:
            place.append(edit)
        return
    node = nodes[edit.node]
    match edit:
        case Replace():
            plan.expressions[node] = edit
        case AddArgument():
            plan.arguments[node].append(edit)
        case RemoveArgument():
            plan.expressions[node] = edit
        case AddParameter():
            if not any(one.name == edit.name for one in plan.parameters[node]):
                plan.parameters[node].append(edit)
        case Remove() | ReplaceStatement() | Unwrap():
            plan.statements[node] = edit
        case Enclose():
            plan.enclosed[lines[edit.node]] = edit.header
        case Insert():
            beside = (plan.after if edit.after else plan.before)[lines[edit.node]]
            if edit not in beside:
                beside.append(edit)


class _Rewriter(cst.CSTTransformer):
    """Makes the edits from the inside out."""

    def __init__(self, plan: _Plan, tree: cst.Module, text: str) -> None:
        self.plan = plan
        self.tree = tree
        self.wanted = set(plan.holes.values())
        self.depth = 0
        self.limit = max(_SHORTEST, min(_LONGEST, max(map(len, text.splitlines()), default=0)))

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.depth += isinstance(node, cst.IndentedBlock)
        return not isinstance(node, cst.BaseStatement) or node in self.plan.touched

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        plan = self.plan
        result: cst.CSTNode = updated
        if original in plan.arguments:
            assert isinstance(result, cst.Call)
            result = self._with_arguments(result, plan.arguments[original])
        if (
            isinstance(original, cst.Call)
            and isinstance(result, cst.Call)
            and any(arg.value in plan.expressions for arg in original.args)
        ):
            gone = {
                index
                for index, arg in enumerate(original.args)
                if isinstance(plan.expressions.get(arg.value), RemoveArgument)
            }
            if gone:
                result = _without_arguments(result, gone)
        if original in plan.parameters:
            assert isinstance(result, cst.FunctionDef)
            result = _with_parameters(result, plan.parameters[original])
        if isinstance(original, cst.IfExp) and isinstance(result, cst.IfExp):
            result = _without_choice(original, result)
        edit = plan.expressions.get(original)
        if isinstance(edit, Replace):
            plan.done[original] = result  # the expression may stand in what takes its place
            result = self._built(self._in_header(edit), updated)
        if original in self.wanted:
            plan.done[original] = result
        if isinstance(original, cst.IndentedBlock | cst.Module):
            result = self._body(original, result)
            self.depth -= isinstance(original, cst.IndentedBlock)
        elif isinstance(original, cst.SimpleStatementSuite):
            result = self._suite(original, result)
        return result

    def _built(self, code: Template, updated: cst.CSTNode) -> cst.BaseExpression:
        found = cst.parse_expression(self._text(code), config=self.tree.config_for_parsing)
        made = self._filled(found, code)
        assert isinstance(made, cst.BaseExpression)
        if isinstance(updated, cst.BaseExpression) and updated.lpar and not made.lpar:
            made = made.with_changes(lpar=updated.lpar, rpar=updated.rpar)
        return made

    def _in_header(self, edit: Replace) -> Template:
        """The code of an edit; both forms where it stands in the head of a block and holds under a test only."""
        assert isinstance(edit.node, ast.expr)
        if not edit.guard or not hasattr(edit.module.step(edit.node).node, "body"):
            return edit.code
        return ("(", *edit.code, f" if {edit.guard} else ", edit.node, ")")

    def _text(self, code: Template) -> str:
        return "".join(part if isinstance(part, str) else _HOLE % index for index, part in enumerate(code))

    def _filled(self, node: cst.CSTNode, code: Template) -> cst.CSTNode:
        names = {
            _HOLE % index: self.plan.done[self.plan.holes[part]]
            for index, part in enumerate(code)
            if not isinstance(part, str)
        }
        return node if not names else node.visit(_Filler(names))  # type: ignore[return-value]

    def _with_arguments(self, node: cst.Call, edits: Sequence[Edit]) -> cst.Call:
        args = list(node.args)
        for edit in edits:
            assert isinstance(edit, AddArgument)
            if any(arg.keyword is not None and arg.keyword.value == edit.name for arg in args):
                continue
            value = self._filled(cst.parse_expression(self._text(edit.value)), edit.value)
            assert isinstance(value, cst.BaseExpression)
            plain = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            made = cst.Arg(value, keyword=cst.Name(edit.name), equal=plain)
            star = next((index for index, arg in enumerate(args) if arg.star == "**"), len(args))
            if star == len(args):
                args = _followed(args, made, node.whitespace_before_args)
            else:
                args.insert(star, made.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))))
        return node.with_changes(args=args)

    def _statements(self, code: Sequence[Template]) -> list[cst.BaseStatement]:
        """The statements of a template; each piece of it is numbered through all lines, so that holes are told apart."""
        flat: list[str | ast.expr] = []
        for index, line in enumerate(code):
            flat += [*line, *(["\n"] if index < len(code) - 1 else [])]
        module = cst.parse_module(self._text(tuple(flat)) + "\n", config=self.tree.config_for_parsing)
        filled = self._filled(module, tuple(flat))
        assert isinstance(filled, cst.Module)
        found = list(filled.body)
        if filled.header and found:
            first = found[0]
            found[0] = first.with_changes(leading_lines=[*filled.header, *first.leading_lines])
        return found  # type: ignore[return-value]

    def _broken(self, statement: cst.BaseStatement, deeper: int = 0) -> cst.BaseStatement:
        """A statement that is not too long: the arguments of its first call of ours stand on lines of their own."""
        if not isinstance(statement, cst.SimpleStatementLine):
            return statement
        indent = len(self.tree.default_indent) * (self.depth + deeper)
        text = self.tree.code_for_node(statement.with_changes(leading_lines=[])).rstrip()
        if "\n" in text or indent + len(text) <= self.limit:
            return statement
        return statement.visit(_Breaker(self.tree, indent, self.limit))  # type: ignore[return-value]

    def _inserted(self, edits: Sequence[Insert], guard: str = "") -> list[cst.BaseStatement]:
        """What is inserted at a line, in order; ``guard``: the test that it stands under already."""
        found: list[cst.BaseStatement] = []
        for edit in sorted(edits, key=lambda edit: edit.rank):
            made = self._statements(edit.code)
            found += made if edit.guard in {"", guard} else [self._either(edit.guard, made, [])]
        return found

    def _either(self, test: str, new: Sequence[cst.BaseStatement], old: Sequence[cst.BaseStatement]) -> cst.If:
        """Two forms of some lines, by a test."""
        found = cst.parse_expression(test if new else f"not {test}", config=self.tree.config_for_parsing)
        orelse = cst.Else(cst.IndentedBlock(list(old))) if new and old else None
        return cst.If(found, cst.IndentedBlock(list(new or old)), orelse)

    def _both_forms(self, test: str, new: list[cst.BaseStatement], old: list[cst.BaseStatement]) -> cst.If:
        """Two forms of some lines, by a test, with what stood before them before both."""
        leading = max(_leading(old[0]), _leading(new[0]) if new else [], key=len)
        for form in (new, old):
            if form:
                form[0] = form[0].with_changes(leading_lines=[])
        return self._either(test, new, old).with_changes(leading_lines=leading)

    def _body(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(original, cst.IndentedBlock | cst.Module)
        assert isinstance(updated, cst.IndentedBlock | cst.Module)
        plan = self.plan
        if not any(
            line in plan.before
            or line in plan.after
            or line in plan.guards
            or line in plan.comments
            or line in plan.enclosed
            or any(node in plan.statements for node in _small(line))
            or _emptied(now)
            for line, now in zip(original.body, updated.body, strict=True)
        ):
            return updated
        made: list[cst.BaseStatement] = []
        comments: list[cst.EmptyLine] = []
        guard, new, old = "", list[cst.BaseStatement](), list[cst.BaseStatement]()
        for line, new_line in zip(original.body, updated.body, strict=True):
            test = plan.guards.get(line, "")
            if guard and test != guard:
                made.append(self._both_forms(guard, new, old))
                new, old = [], []
            guard = test
            now = _commented(new_line, plan.comments.get(line, ()))
            before = self._inserted(plan.before.get(line, ()), guard)
            after = self._inserted(plan.after.get(line, ()), guard)
            kept = self._line(line, now)
            if line in plan.enclosed and kept:
                kept = [_enclosed(plan.enclosed[line], kept)]
            if guard:
                new += [self._broken(one, deeper=1) for one in (*before, *kept, *after)]
                old.append(line.deep_clone())
                continue
            if before and kept:
                leading = _leading(kept[0])
                before[0] = before[0].with_changes(leading_lines=[*leading, *_leading(before[0])])
                kept[0] = kept[0].with_changes(leading_lines=[])
            elif not kept:
                comments += _leading(line)
            found = [one if one is line else self._broken(one) for one in (*before, *kept, *after)]
            if found and comments:
                found[0] = _with_comments(found[0], comments)
                comments = []
            made += found
        if guard:
            made.append(self._both_forms(guard, new, old))
        if not made and isinstance(updated, cst.IndentedBlock):
            made = [cst.SimpleStatementLine([_MadePass()])]
        return updated.with_changes(body=made)

    def _line(self, line: cst.CSTNode, now: cst.CSTNode) -> list[cst.BaseStatement]:
        """What is left of a line of statements."""
        plan = self.plan
        if isinstance(line, cst.SimpleStatementLine) and isinstance(now, cst.SimpleStatementLine):
            if len(line.body) == 1 and isinstance(edit := plan.statements.get(line.body[0]), ReplaceStatement):
                found = self._statements(edit.code)
                if found:
                    found[0] = found[0].with_changes(leading_lines=[*line.leading_lines, *_leading(found[0])])
                return found
            left: list[cst.BaseSmallStatement] = []
            for small, small_now in zip(line.body, now.body, strict=True):
                edit = plan.statements.get(small)
                if edit is None:
                    left.append(small_now)
                elif isinstance(edit, Remove):
                    left += [cst.Expr(plan.done[plan.holes[part]]) for part in edit.keep]  # type: ignore[arg-type]
                elif isinstance(edit, ReplaceStatement):
                    for made in self._statements(edit.code):
                        assert isinstance(made, cst.SimpleStatementLine)
                        left += list(made.body)
            if len(left) == len(now.body) and all(a is b for a, b in zip(left, now.body, strict=True)):
                return [now]
            if not left:
                return []
            left[-1] = left[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            return [now.with_changes(body=left)]
        edit = plan.statements.get(line)
        if isinstance(edit, Remove):
            return []
        if isinstance(edit, ReplaceStatement):
            return self._statements(edit.code)
        if isinstance(edit, Unwrap):
            return _unwrapped(now, edit.arm)
        if _emptied(now):
            return _without_empty(now)
        return [now]  # type: ignore[list-item]

    def _suite(self, original: cst.SimpleStatementSuite, updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.SimpleStatementSuite)
        plan = self.plan
        around = (plan.before, plan.after, plan.comments)
        if not any(small in plan.statements for small in original.body) and not any(original in one for one in around):
            return updated
        made: list[cst.BaseStatement] = self._inserted(plan.before.get(original, ()))
        for small, now in zip(original.body, updated.body, strict=True):
            edit = plan.statements.get(small)
            if edit is None:
                made.append(cst.SimpleStatementLine([now.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]))
            elif isinstance(edit, ReplaceStatement):
                made += self._statements(edit.code)
        made += self._inserted(plan.after.get(original, ()))
        if not made:
            return cst.IndentedBlock([cst.SimpleStatementLine([_MadePass()])])
        made[0] = _commented(made[0], plan.comments.get(original, ()))
        return cst.IndentedBlock(made)


def _enclosed(header: str, body: list[cst.BaseStatement]) -> cst.BaseStatement:
    """Statements in a block with a header."""
    made = cst.parse_statement(f"{header}\n    pass\n")
    inner = [body[0].with_changes(leading_lines=[]), *body[1:]]
    return made.with_changes(body=cst.IndentedBlock(inner), leading_lines=_leading(body[0]))


_SHORTEST, _LONGEST = 88, 120


class _Breaker(cst.CSTTransformer):
    """Puts the arguments of calls of DeepSpeed's and of ``ds_compat`` on lines of their own, where a line is too long."""

    def __init__(self, tree: cst.Module, column: int, limit: int) -> None:
        self.tree = tree
        self.column = column
        self.limit = limit
        self.inside = 0

    def visit_Call(self, node: cst.Call) -> bool:  # noqa: N802
        self.inside += _is_ours(node)
        return not _is_ours(node) or self.inside == 1

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
        if not _is_ours(original_node):
            return updated_node
        self.inside -= 1
        return updated_node if self.inside else self._broken(updated_node, 0)

    def _broken(self, call: cst.Call, level: int) -> cst.Call:
        """A call with its arguments in a line of their own, or each in one."""
        room = self.limit - self.column - 4 * (level + 1)
        inner = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace("    " * (level + 1)))
        end = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace("    " * level))
        last = call.args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=end)
        if len(self.tree.code_for_node(call.with_changes(args=[*call.args[:-1], last])).partition("(")[2]) - 1 <= room:
            return call.with_changes(args=[*call.args[:-1], last], whitespace_before_args=inner)
        args = []
        for arg in call.args:
            value = arg.value
            if isinstance(value, cst.Call) and _is_ours(value) and len(self.tree.code_for_node(arg)) > room:
                value = self._broken(value, level + 1)
            args.append(arg.with_changes(value=value, comma=cst.Comma(whitespace_after=inner)))
        args[-1] = args[-1].with_changes(comma=cst.Comma(whitespace_after=end))
        return call.with_changes(args=args, whitespace_before_args=inner)


def _is_ours(call: cst.Call) -> bool:
    root: cst.CSTNode = call.func
    while isinstance(root, cst.Attribute):
        root = root.value
    return isinstance(root, cst.Name) and root.value in {"deepspeed", "ds_compat"} and bool(call.args)


class _Filler(cst.CSTTransformer):
    """Puts nodes in the place of holes."""

    def __init__(self, names: dict[str, cst.CSTNode]) -> None:
        self.names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:  # noqa: N802
        found = self.names.get(original_node.value)
        if found is None:
            return updated_node
        assert isinstance(found, cst.BaseExpression)
        return found.deep_clone()

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:  # noqa: N802
        """An argument needs no parentheses of its own, but for a generator and the like beside others."""
        value = updated_node.value
        if not isinstance(original_node.value, cst.Name) or original_node.value.value not in self.names:
            return updated_node
        if isinstance(value, cst.Tuple | cst.GeneratorExp | cst.NamedExpr | cst.Yield) or not value.lpar:
            return updated_node
        if any(isinstance(paren.whitespace_after, cst.ParenthesizedWhitespace) for paren in value.lpar):
            return updated_node
        return updated_node.with_changes(value=value.with_changes(lpar=value.lpar[1:], rpar=value.rpar[:-1]))


_WIDTH = 100

_Node = TypeVar("_Node", bound=cst.CSTNode)


def _commented(now: _Node, comments: Sequence[Comment]) -> _Node:
    """A statement behind its comments."""
    if not comments:
        return now
    made = [
        cst.EmptyLine(comment=cst.Comment(f"# {text}"))
        for comment in comments
        for text in textwrap.wrap(comment.text, _WIDTH, subsequent_indent="  ", break_long_words=False)
    ]
    return now.with_changes(leading_lines=[*_leading(now), *made])


def _small(line: cst.CSTNode) -> Sequence[cst.CSTNode]:
    return (line, *line.body) if isinstance(line, cst.SimpleStatementLine) else (line,)


def _leading(node: cst.CSTNode) -> list[cst.EmptyLine]:
    return list(getattr(node, "leading_lines", ()))


def _with_comments(node: cst.BaseStatement, gone: Sequence[cst.EmptyLine]) -> cst.BaseStatement:
    """A statement behind removed ones: a blank line that stood before those stays, comments about them go."""
    leading = _leading(node)
    blank = any(line.comment is None for line in gone)
    if blank and not any(line.comment is None for line in leading):
        leading = [cst.EmptyLine(indent=False), *leading]
    return node.with_changes(leading_lines=leading)


class _MadePass(cst.Pass):
    """What stands where everything else was removed."""


def _is_empty(suite: cst.CSTNode | None) -> bool:
    return isinstance(suite, cst.IndentedBlock) and len(suite.body) == 1 and _is_made_pass(suite.body[0])


def _is_made_pass(line: cst.CSTNode) -> bool:
    return (
        isinstance(line, cst.SimpleStatementLine)
        and len(line.body) == 1
        and isinstance(line.body[0], _MadePass)
        and not line.leading_lines
    )


def _emptied(now: cst.CSTNode) -> bool:
    """Whether all that stood in a compound statement has been removed."""
    if isinstance(now, cst.If):
        return (
            _is_empty(now.body)
            or (isinstance(now.orelse, cst.Else) and _is_empty(now.orelse.body))
            or (isinstance(now.orelse, cst.If) and _emptied(now.orelse))
        )
    return isinstance(now, cst.With | cst.For) and _is_empty(now.body) and not getattr(now, "orelse", None)


def _without_empty(now: cst.CSTNode) -> list[cst.BaseStatement]:
    """An ``if`` without the arms that hold nothing any more; nothing where no arm is left and its test does nothing."""
    if isinstance(now, cst.For | cst.With):
        return [] if isinstance(now, cst.With) else [now]
    assert isinstance(now, cst.If)
    orelse = now.orelse
    if isinstance(orelse, cst.Else) and _is_empty(orelse.body):
        orelse = None
    elif isinstance(orelse, cst.If) and _emptied(orelse):
        left = _without_empty(orelse)
        orelse = left[0] if left and isinstance(left[0], cst.If) else None
    if not _is_empty(now.body):
        return [now.with_changes(orelse=orelse)]
    if orelse is None:
        return (
            []
            if _is_pure(now.test)
            else [cst.SimpleStatementLine([cst.Expr(now.test)], leading_lines=now.leading_lines)]
        )
    if isinstance(orelse, cst.If):
        if not _is_pure(now.test) or not _excludes(now.test, orelse):
            return [now]
        orelse = orelse.with_changes(leading_lines=now.leading_lines)
        return _without_empty(orelse) if _emptied(orelse) else [orelse]
    opposite = _opposite(now.test)
    return [now.with_changes(test=opposite, body=orelse.body, orelse=None)]


def _excludes(test: cst.BaseExpression, chain: cst.If) -> bool:
    """Whether no arm of a chain runs where a test holds: all ask whether the same is equal to different literals."""
    tests = [test]
    arm: cst.If | cst.Else | None = chain
    while isinstance(arm, cst.If):
        tests.append(arm.test)
        arm = arm.orelse
    asked = [found for one in tests if (found := _equal_to(one)) is not None]
    return (
        arm is None
        and len(asked) == len(tests)
        and len({left for left, _ in asked if left}) == 1
        and len(set(asked)) == len(asked)
    )


def _equal_to(test: cst.BaseExpression) -> tuple[str, str] | None:
    """What is compared with which literal."""
    match test:
        case cst.Comparison(
            left=left,
            comparisons=[
                cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.SimpleString() | cst.Integer() as literal)
            ],
        ):
            return cst.Module([]).code_for_node(left), literal.value
    return None


_QUESTIONS = frozenset(
    {
        "is_available",
        "is_initialized",
        "device_count",
        "get_world_size",
        "get_rank",
        "isinstance",
        "hasattr",
        "len",
        "bool",
        "int",
    }
)
"""Calls that only ask."""


def _is_pure(test: cst.CSTNode) -> bool:
    found: list[cst.CSTNode] = []

    class Calls(cst.CSTVisitor):
        def visit_Call(self, node: cst.Call) -> None:  # noqa: N802
            name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
            if not isinstance(name, cst.Name) or name.value not in _QUESTIONS:
                found.append(node)

        def visit_NamedExpr(self, node: cst.NamedExpr) -> None:  # noqa: N802
            found.append(node)

    test.visit(Calls())
    return not found


def _without_choice(original: cst.IfExp, now: cst.IfExp) -> cst.BaseExpression:
    """What a conditional expression chooses, where both arms have become the same."""
    if original.body.deep_equals(original.orelse) or not now.body.deep_equals(now.orelse) or not _is_pure(now.test):
        return now
    return now.body.with_changes(lpar=[*now.lpar, *now.body.lpar], rpar=[*now.body.rpar, *now.rpar])


_OPPOSITES: dict[type[cst.BaseCompOp], Callable[[], cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.Is: cst.IsNot,
    cst.IsNot: cst.Is,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
}


def _opposite(test: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        other = _OPPOSITES.get(type(target.operator))
        if other is not None:
            return test.with_changes(comparisons=[target.with_changes(operator=other())])
    plain = isinstance(test, cst.Name | cst.Attribute | cst.Call | cst.Subscript) or bool(test.lpar)
    inner = test if plain else test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(cst.Not(), inner)


def _unwrapped(now: cst.CSTNode, arm: str) -> list[cst.BaseStatement]:
    """What is in a compound statement, in its place."""
    suite = now.body if arm == "body" else now.orelse.body  # type: ignore[attr-defined]
    if isinstance(suite, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(suite.body, leading_lines=_leading(now))]
    assert isinstance(suite, cst.IndentedBlock)
    found = [one for one in suite.body if not _is_made_pass(one)]
    if found:
        found[0] = found[0].with_changes(leading_lines=[*_leading(now), *_leading(found[0])])
    return found


def _without_arguments(node: cst.Call, gone: set[int]) -> cst.Call:
    args = [arg for index, arg in enumerate(node.args) if index not in gone]
    if args and len(node.args) - 1 in gone and not isinstance(node.args[-1].comma, cst.Comma):
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return node.with_changes(args=args)


_Item = TypeVar("_Item", cst.Arg, cst.Param)


def _followed(items: Sequence[_Item], made: _Item, opened: cst.BaseParenthesizableWhitespace) -> list[_Item]:
    """Arguments or parameters and one more, set as they are; ``opened`` stands before the first."""
    if not items:
        return [made]
    *before, last = items
    space = f"whitespace_after_{type(made).__name__.lower()}"
    ahead = before[-1].comma if before else None
    between = ahead.whitespace_after if isinstance(ahead, cst.Comma) else opened
    if isinstance(between, cst.SimpleWhitespace):
        between = cst.SimpleWhitespace(" ")
    former = last.with_changes(comma=cst.Comma(whitespace_after=between), **{space: cst.SimpleWhitespace("")})
    return [*before, former, made.with_changes(comma=last.comma, **{space: getattr(last, space)})]


def _with_parameters(node: cst.FunctionDef, edits: Sequence[AddParameter]) -> cst.FunctionDef:
    params = node.params
    for edit in edits:
        default = None if edit.default is None else cst.parse_expression(edit.default)
        equal = (
            cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            if default is not None
            else cst.MaybeSentinel.DEFAULT
        )
        made = cst.Param(cst.Name(edit.name), default=default, equal=equal)
        keywords_only = isinstance(params.star_arg, cst.Param | cst.ParamStar) or bool(params.kwonly_params)
        if keywords_only or (default is None and any(one.default is not None for one in params.params)):
            if isinstance(params.star_arg, cst.Param | cst.ParamStar):
                only = _followed(params.kwonly_params, made, node.whitespace_before_params)
                params = params.with_changes(kwonly_params=only)
            else:
                *others, last = _followed(params.params, made, node.whitespace_before_params)
                params = params.with_changes(params=others, star_arg=cst.ParamStar(), kwonly_params=[last])
        else:
            params = params.with_changes(params=_followed(params.params, made, node.whitespace_before_params))
    return node.with_changes(params=params)
