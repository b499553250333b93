"""Imports of the result: what the new code needs is added, what nothing uses any more goes."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from dsmigrate.codemod.names import Imports, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Statement


def add_needed(plan: Plan) -> None:
    """Insert missing imports and helper definitions after the last import at the top of the module."""
    lines = [
        statement for module, statement in sorted(plan.needed_imports.items()) if not _is_imported(plan.imports, plan, module)
    ]
    anchor = _anchor(plan)
    helpers: list[str] = []
    for helper in plan.helpers:
        helpers.extend(["", "", *helper.rstrip("\n").split("\n")])
    if anchor is None:
        first = plan.tree.top.statements[0] if plan.tree.top.statements else None
        if first is not None and (lines or helpers):
            plan.edits.insert_before(first.line_node, *lines, *helpers)
        return
    if lines:
        plan.edits.insert_after(anchor.line_node, *lines)
    if helpers:
        last = _last_import(plan) or anchor
        plan.edits.insert_after(last.line_node, *helpers)


def _is_imported(imports: Imports, plan: Plan, module: str) -> bool:
    """Whether a plain module name is bound at the top level of the file, for all functions to see."""
    for statement in plan.tree.top.statements:
        node = statement.node
        if statement.up is None and isinstance(node, cst.Import):
            for alias in node.names:
                if alias.asname is None and (dotted(alias.name) or "").partition(".")[0] == module:
                    return True
    return False


def _top_imports(plan: Plan) -> list[Statement]:
    return [
        s for s in plan.tree.top.statements if s.up is None and isinstance(s.node, cst.Import | cst.ImportFrom)
    ]


def _anchor(plan: Plan) -> Statement | None:
    """The import after which new ones go: the last ``import x`` of the first run of imports, torch's if there is one."""
    found = _top_imports(plan)
    if not found:
        return None
    run = [found[0]]
    for statement in found[1:]:
        if statement.line - run[-1].end_line > 6:
            break
        run.append(statement)
    for statement in run:
        node = statement.node
        if isinstance(node, cst.Import) and any((dotted(a.name) or "") == "torch" for a in node.names):
            return statement
    plain = [s for s in run if not (isinstance(s.node, cst.ImportFrom) and dotted(s.node.module) == "__future__")]
    return plain[-1] if plain else run[-1]


def _last_import(plan: Plan) -> Statement | None:
    found = _top_imports(plan)
    return found[-1] if found else None


class _DropNames(cst.CSTTransformer):
    """Removes imported names that are no longer used; visits nothing but statements."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names
        self.dropped: set[str] = set()

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:  # noqa: N802 - LibCST's naming
        return any(isinstance(item, cst.Import | cst.ImportFrom) for item in node.body)

    def leave_SimpleStatementLine(  # noqa: N802 - LibCST's naming
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        if not any(isinstance(item, cst.Import | cst.ImportFrom) for item in updated_node.body):
            return updated_node
        body = []
        for item in updated_node.body:
            kept = self._keep(item)
            if kept is not None:
                body.append(kept)
        if len(body) == len(updated_node.body) and all(a is b for a, b in zip(body, updated_node.body, strict=True)):
            return updated_node
        if not body:
            if any(line.comment for line in updated_node.leading_lines):
                return updated_node.with_changes(body=[cst.Pass()])
            return cst.RemovalSentinel.REMOVE
        return updated_node.with_changes(body=body)

    def _keep(self, item: cst.BaseSmallStatement) -> cst.BaseSmallStatement | None:
        if not isinstance(item, cst.Import | cst.ImportFrom) or isinstance(item.names, cst.ImportStar):
            return item
        kept = []
        for alias in item.names:
            local = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else dotted(alias.name)
            if local in self.names:
                self.dropped.add(str(local))
            else:
                kept.append(alias)
        if len(kept) == len(item.names):
            return item
        if not kept:
            return None
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return item.with_changes(names=kept)


def drop_unused(module: cst.Module, names: Iterable[str]) -> tuple[cst.Module, set[str]]:
    """Remove the imports of these local names; gives the module and the names that were really dropped.

    Only names that were used before the migration and are not used after it should be given.
    """
    wanted = {name for name in names if name}
    if not wanted:
        return module, set()
    visitor = _DropNames(wanted)
    return module.visit(visitor), visitor.dropped  # type: ignore[return-value]
