"""Imports of the result: what the new code needs is added, what nothing uses any more goes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.rewriting import close_gaps, placeholder
from dsmigrate.codemod.tree import Function, Part, Statement

_GAP = 6
"""Lines between two imports that still belong to one block."""


def add_needed(plan: Plan) -> None:
    """Insert missing imports, each into its own group, and helper definitions behind the imports."""
    add_to(plan, plan.tree.parts[0], plan.needed_imports, plan.helpers)


def add_to(plan: Plan, part: Part, needed: Mapping[str, str], definitions: Sequence[str]) -> None:
    """Insert imports (module name to statement) and definitions into one file."""
    top = part.top
    missing = [(module, text) for module, text in sorted(needed.items()) if not _is_imported(top, module)]
    missing.sort(key=lambda item: (item[0] not in sys.stdlib_module_names, item[0]))
    run = _first_run(top)
    first = top.statements[0] if top.statements else None
    for module, text in missing:
        if not run:
            if first is not None:
                plan.edits.insert_before(first.line_node, text)
            continue
        _insert(plan, run, module, text)
    helpers = [line for helper in definitions for line in ("", "", *helper.rstrip("\n").split("\n"))]
    if helpers and top.statements:
        target = _first_after_imports(plan, top)
        if target is not None:
            plan.edits.insert_before(target.line_node, *helpers)
        else:
            plan.edits.insert_after(_level(top)[-1].line_node, *helpers)


def _insert(plan: Plan, run: list[Statement], module: str, text: str) -> None:
    """Put one import where isort would: standard library in its block, others before ``import torch``."""
    standard = module in sys.stdlib_module_names
    group = [s for s in run if _is_standard(s) == standard and not _is_future(s)]
    plain = [s for s in group if isinstance(s.node, cst.Import)]
    earlier = [s for s in plain if _module_of(s) < module]
    if earlier:
        plan.edits.insert_after(earlier[-1].line_node, text)
    elif plain or group:
        plan.edits.insert_before((plain or group)[0].line_node, text)
    elif standard:
        after = [s for s in run if _is_future(s)]
        if after:
            plan.edits.insert_after(after[-1].line_node, text)
        else:
            lines = plan.edits.before.setdefault(run[0].line_node, [])
            lines.insert(lines.index("") if "" in lines else 0, text)
            if "" not in lines:
                lines.append("")  # a block of its own
    else:
        plan.edits.insert_after(run[-1].line_node, text)


def _module_of(statement: Statement) -> str:
    node = statement.node
    if isinstance(node, cst.Import):
        return dotted(node.names[0].name) or ""
    return (dotted(node.module) or "") if isinstance(node, cst.ImportFrom) else ""


def _is_standard(statement: Statement) -> bool:
    node = statement.node
    if isinstance(node, cst.ImportFrom) and node.relative:
        return False
    return _module_of(statement).partition(".")[0] in sys.stdlib_module_names


def _is_future(statement: Statement) -> bool:
    return _module_of(statement) == "__future__"


def _is_imported(top: Function, module: str) -> bool:
    """Whether a plain module name is bound at the top level of the file, for all functions to see."""
    for statement in top.statements:
        node = statement.node
        if statement.up is None and isinstance(node, cst.Import):
            for alias in node.names:
                if alias.asname is None and (dotted(alias.name) or "").partition(".")[0] == module:
                    return True
    return False


def _level(top: Function) -> list[Statement]:
    return [s for s in top.statements if s.up is None]


def _top_imports(top: Function) -> list[Statement]:
    return [s for s in _level(top) if isinstance(s.node, cst.Import | cst.ImportFrom)]


def _first_run(top: Function) -> list[Statement]:
    """The imports at the top of the file, up to the first other statement behind torch's import."""
    found = _top_imports(top)
    run: list[Statement] = []
    for statement in found:
        if run and statement.line - run[-1].end_line > _GAP:
            if any(_module_of(s).partition(".")[0] == "torch" for s in run):
                break
        run.append(statement)
    return run


def _first_after_imports(plan: Plan, top: Function) -> Statement | None:
    """The first top-level statement after the imports, those below changed code aside: it may need the definitions."""
    touched, level = plan.edits.touched(), _level(top)
    last = -1
    for statement in level:
        if isinstance(statement.node, cst.Import | cst.ImportFrom):
            last = statement.order
        elif statement.line_node in touched and not isinstance(statement.node, cst.FunctionDef | cst.ClassDef):
            break
    return next((s for s in level if s.order > last), None)


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
    ) -> cst.SimpleStatementLine:
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
            return placeholder(updated_node.leading_lines)
        return updated_node.with_changes(body=body)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:  # noqa: N802
        return close_gaps(updated_node)

    def leave_IndentedBlock(  # noqa: N802 - LibCST's naming
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return close_gaps(updated_node)

    def _keep(self, item: cst.BaseSmallStatement) -> cst.BaseSmallStatement | None:
        if not isinstance(item, cst.Import | cst.ImportFrom) or isinstance(item.names, cst.ImportStar):
            return item
        kept = []
        for alias in item.names:
            local = (
                alias.asname.name.value
                if alias.asname and isinstance(alias.asname.name, cst.Name)
                else dotted(alias.name)
            )
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
    return module.visit(visitor), visitor.dropped
