"""The imports of a rewritten file: those that its new code needs; those that nothing uses any more go elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import libcst as cst
from libcst import matchers

from dsmigrate.codemod.program.edits import Import


def with_imports(tree: cst.Module, wanted: Sequence[Import]) -> cst.Module:
    """A module that imports what is wanted, each where a reader looks for it: among imports of its kind, in order."""
    for one in sorted({(item.source, item.name) for item in wanted}):
        tree = _with_import(tree, *one)
    return tree


def _with_import(tree: cst.Module, source: str, name: str) -> cst.Module:
    bound = name or source.partition(".")[0]
    head = next(
        (
            index
            for index, line in enumerate(tree.body)
            if isinstance(line, cst.BaseCompoundStatement) or (not _imported(line) and _reads(line, bound))
        ),
        len(tree.body),
    )
    existing = [
        (index, line)
        for index, line in enumerate(tree.body[:head])
        if isinstance(line, cst.SimpleStatementLine) and _imported(line)
    ]
    for index, line in existing:
        small = line.body[0]
        if (
            not name
            and isinstance(small, cst.Import)
            and any(_dotted(alias.name) == source and alias.asname is None for alias in small.names)
        ):
            return tree
        if (
            name
            and isinstance(small, cst.ImportFrom)
            and _dotted(small.module) == source
            and not small.relative
            and not isinstance(small.names, cst.ImportStar)
        ):
            if any(_dotted(alias.name) == name and alias.asname is None for alias in small.names):
                return tree
            return _with_name(tree, index, small, name)
    text = f"from {source} import {name}" if name else f"import {source}"
    made = cst.parse_statement(text)
    assert isinstance(made, cst.SimpleStatementLine)
    at = _place(tree, source, existing)
    body = list(tree.body)
    if at < len(body) and not existing:
        made = made.with_changes(leading_lines=list(getattr(body[at], "leading_lines", ())))
        body[at] = body[at].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    elif _is_standard(source) and any(index == at - 1 and _is_standard(_source_of(line)) for index, line in existing):
        pass  # the last of its group
    elif at < len(body) and any(at == index for index, _ in existing) and _first_of_group(tree, at):
        leading = list(body[at].leading_lines)
        made = made.with_changes(leading_lines=leading)
        apart = _is_standard(source) and not _is_standard(_source_of(body[at]))  # type: ignore[arg-type]
        body[at] = body[at].with_changes(leading_lines=[cst.EmptyLine(indent=False)] if apart else [])
    return tree.with_changes(body=[*body[:at], made, *body[at:]])


def _first_of_group(tree: cst.Module, at: int) -> bool:
    leading = getattr(tree.body[at], "leading_lines", ())
    return bool(leading)


def _with_name(tree: cst.Module, index: int, small: cst.ImportFrom, name: str) -> cst.Module:
    names = list(small.names)  # type: ignore[arg-type]
    last = names[-1]
    names[-1] = last.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    names.append(cst.ImportAlias(cst.Name(name), comma=last.comma))
    line = tree.body[index]
    assert isinstance(line, cst.SimpleStatementLine)
    body = list(tree.body)
    body[index] = line.with_changes(body=[small.with_changes(names=names), *line.body[1:]])
    return tree.with_changes(body=body)


def _reads(line: cst.CSTNode, name: str) -> bool:
    return bool(matchers.findall(line, matchers.Name(name)))


def _imported(line: cst.CSTNode) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Import | cst.ImportFrom)


def _dotted(node: cst.CSTNode | None) -> str:
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return ""


def _key(source: str) -> str:
    return source.lower()


def _place(tree: cst.Module, source: str, existing: Sequence[tuple[int, cst.CSTNode]]) -> int:
    """Where an import goes: before ``import torch`` and the like, or behind the last import."""
    plain = [
        (index, line)
        for index, line in existing
        if isinstance(line, cst.SimpleStatementLine) and not _is_future(line) and not _is_relative(line)
    ]
    names = [(index, _source_of(line)) for index, line in plain]
    if source.split(".", maxsplit=1)[0] in sys.stdlib_module_names:
        return _among_standard(names, tree)
    if source == "ds_compat" or source.endswith(".ds_compat"):
        return (names[-1][0] + 1) if names else _behind_docstring(tree)
    torch = next(
        (
            index
            for index, name in names
            if name.split(".")[0] in {"torch", "torchvision", "numpy"} and _key(name) > _key(source)
        ),
        None,
    )
    if torch is not None:
        return torch
    return (names[-1][0] + 1) if names else _behind_docstring(tree)


def _is_standard(source: str) -> bool:
    return source.split(".", maxsplit=1)[0] in sys.stdlib_module_names


def _among_standard(names: Sequence[tuple[int, str]], tree: cst.Module) -> int:
    """Where an import of the standard library goes: among those, before the first that comes behind it."""
    standard = [(index, name) for index, name in names if name.split(".")[0] in sys.stdlib_module_names]
    if not standard:
        return names[0][0] if names else _behind_docstring(tree)
    return standard[-1][0] + 1


def _source_of(line: cst.SimpleStatementLine) -> str:
    small = line.body[0]
    if isinstance(small, cst.ImportFrom):
        return _dotted(small.module)
    assert isinstance(small, cst.Import)
    return _dotted(small.names[0].name)


def _is_future(line: cst.SimpleStatementLine) -> bool:
    return isinstance(line.body[0], cst.ImportFrom) and _dotted(line.body[0].module) == "__future__"


def _is_relative(line: cst.SimpleStatementLine) -> bool:
    return isinstance(line.body[0], cst.ImportFrom) and bool(line.body[0].relative)


def _behind_docstring(tree: cst.Module) -> int:
    for index, line in enumerate(tree.body):
        if (
            isinstance(line, cst.SimpleStatementLine)
            and isinstance(line.body[0], cst.Expr)
            and isinstance(line.body[0].value, cst.SimpleString | cst.ConcatenatedString)
        ):
            continue
        if isinstance(line, cst.SimpleStatementLine) and _imported(line) and _is_future(line):
            continue
        return index
    return len(tree.body)


def without(tree: cst.Module, names: Collection[str]) -> cst.Module:
    """A module without some imports, named as pyflakes does: ``module.name``, ``module.name as local``, ``module``."""
    return tree.visit(_Without(names))


def code_of(tree: cst.Module, text: str) -> str:
    """The code of a tree that was made of a text; a carriage return at the end, which LibCST loses, is there again."""
    code = tree.code
    return f"{code}\r" if text.endswith("\r") and not code.endswith("\r") else code


def _ends_line(alias: cst.ImportAlias) -> bool:
    """Whether the name behind it stands in the next line."""
    return isinstance(alias.comma, cst.Comma) and isinstance(alias.comma.whitespace_after, cst.ParenthesizedWhitespace)


class _Without(cst.CSTTransformer):
    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def on_visit(self, node: cst.CSTNode) -> bool:
        return not isinstance(node, cst.BaseExpression | cst.Parameters | cst.BaseParenthesizableWhitespace)

    def _left(self, names: Sequence[cst.ImportAlias], prefix: str) -> list[cst.ImportAlias]:
        kept: list[cst.ImportAlias] = []
        for alias in names:
            if self._said(alias, prefix) not in self.names:
                kept.append(alias)
            elif kept and _ends_line(alias):
                kept[-1] = kept[-1].with_changes(comma=alias.comma)
        if kept and len(kept) < len(names):
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return kept

    def _said(self, alias: cst.ImportAlias, prefix: str) -> str:
        name = prefix + _dotted(alias.name)
        local = alias.asname.name if alias.asname is not None else None
        if isinstance(local, cst.Name) and local.value != _dotted(alias.name):
            return f"{name} as {local.value}"
        return name

    def leave_Import(  # noqa: N802
        self, original_node: cst.Import, updated_node: cst.Import
    ) -> cst.BaseSmallStatement | cst.RemovalSentinel:
        """Leave out the names that are not needed any more."""
        kept = self._left(updated_node.names, "")
        return updated_node.with_changes(names=kept) if kept else cst.RemoveFromParent()

    def leave_ImportFrom(  # noqa: N802
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.BaseSmallStatement | cst.RemovalSentinel:
        """Leave out the names that are not needed any more."""
        if isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        prefix = "." * len(updated_node.relative) + (
            _dotted(updated_node.module) + "." if updated_node.module is not None else ""
        )
        kept = self._left(list(updated_node.names), prefix)
        return updated_node.with_changes(names=kept) if kept else cst.RemoveFromParent()

    def leave_Try(self, original_node: cst.Try, updated_node: cst.Try) -> cst.BaseStatement | cst.RemovalSentinel:  # noqa: N802
        """An attempt to import what is not needed any more goes as a whole."""
        if updated_node.body.body or not original_node.body.body:
            return updated_node
        raises = all(_only_raises(handler.body) for handler in updated_node.handlers)
        if raises and updated_node.orelse is None and updated_node.finalbody is None:
            return cst.RemoveFromParent()
        return updated_node.with_changes(body=_PASS)

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.BaseStatement | cst.RemovalSentinel:  # noqa: N802
        if updated_node.body.body or not original_node.body.body:
            return updated_node
        if updated_node.orelse is None and not isinstance(updated_node.test, cst.Call):
            return cst.RemoveFromParent()
        return updated_node.with_changes(body=_PASS)


_PASS = cst.IndentedBlock([cst.SimpleStatementLine([cst.Pass()])])


def _only_raises(body: cst.BaseSuite) -> bool:
    lines = [line for line in body.body if isinstance(line, cst.SimpleStatementLine)]
    return len(lines) == len(body.body) and all(
        isinstance(one, cst.Raise | cst.Pass | cst.Expr) for line in lines for one in line.body
    )
