"""MG112: the converted form of a library's class comes into the script that uses it; the library stays as it is."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.project.libraries import is_library
from dsmigrate.codemod.tree import Function, Node, Part, Statement

IDEAS = (
    Idea(
        "MG112",
        "A library's scaler that runs backward and step gets the engine",
        "timm's NativeScaler and ApexScaler are replaced by classes of the script that do the same through the engine.",
        "Such an object calls backward and step by itself, in a file that is not the script's to change: under an engine "
        "these would go past it. What the class does is known, so that its converted form is written into the script.",
        "timm/utils/cuda.py, 0.3 to 1.0",
        Kind.CONVERTED,
    ),
)


def bring_in(plan: Plan) -> None:
    """Make helpers of the classes of libraries that take part, and let the scripts use these."""
    for part in plan.tree.parts:
        if not is_library(part.path):
            continue
        names = {name: f"Engine{name}" for name in part.classes}
        for node, statement, name in _uses(plan, part, names):
            plan.edits.replace(node, names[name])
            plan.converted("MG112", statement, f"{plan.code(node)} → {names[name]}, which has the engine to run it",
                           f"{part.path.strip('<>')}.{name} runs backward and step by itself")  # fmt: skip
        _tell(plan, part)
        module = plan.edits.apply(part)
        for item in module.body:
            if isinstance(item, cst.ClassDef) and item.name.value in names:
                named = item.with_changes(name=cst.Name(names[item.name.value]), leading_lines=[])
                plan.helpers.append(module.code_for_node(named))
            elif isinstance(item, cst.SimpleStatementLine):
                for small in item.body:
                    _need(plan, small, module)


def _uses(plan: Plan, part: Part, names: dict[str, str]) -> list[tuple[Node, Statement, str]]:
    """Where the scripts name a class of a library; annotations and imports are let alone."""
    found: list[tuple[Node, Statement, str]] = []
    for node, statement in plan.tree.statement_of.items():
        if not isinstance(node, cst.Name | cst.Attribute) or isinstance(statement.node, cst.Import | cst.ImportFrom):
            continue
        if isinstance(plan.tree.parent.get(node), cst.Attribute | cst.Annotation):
            continue
        text = dotted(node)
        if text is None or (text.rpartition(".")[2] not in names and not _is_renamed(plan, text, statement.function)):
            continue
        target = plan.tree.resolve(text, statement.function)
        if target is not None and target[0] is part and target[1] in names:
            found.append((node, statement, target[1]))
    return found


def _is_renamed(plan: Plan, text: str, function: Function) -> bool:
    return any(text != full.rpartition(".")[2] for full in plan.imports.meanings(text, function))


def _tell(plan: Plan, part: Part) -> None:
    """What was decided about a library's class is told at the import of it."""
    statement = import_of(plan, part.path)
    library = part.path.strip("<>")
    for change in plan.changes.pop(part, ()):
        if statement is not None and change.code not in ("MG111", "MG107"):
            told = replace(
                change, line=statement.line, end_line=statement.end_line, message=f"{library}: {change.message}"
            )
            changes = plan.changes.setdefault(plan.part_of(statement), [])
            if told not in changes:
                changes.append(told)


def import_of(plan: Plan, path: str) -> Statement | None:
    """The first statement that imports a file of the tree."""
    find = plan.tree.find_module
    for statement in plan.tree.statements if find is not None else ():
        node = statement.node
        importer = plan.part_of(statement)
        if not isinstance(node, cst.Import | cst.ImportFrom) or is_library(importer.path) or find is None:
            continue
        for module, level in modules(node):
            part = find(importer, module, level)
            if part is not None and part.path == path:
                return statement
    return None


def modules(node: cst.Import | cst.ImportFrom) -> list[tuple[str, int]]:
    """The modules that an import may read, each with its leading dots."""
    if isinstance(node, cst.Import):
        return [(dotted(alias.name) or "", 0) for alias in node.names]
    level, module = len(node.relative), dotted(node.module) or ""
    inner = () if isinstance(node.names, cst.ImportStar) else node.names
    return [(module, level), *((f"{module}.{dotted(a.name)}" if module else str(dotted(a.name)), level) for a in inner)]


def _need(plan: Plan, small: cst.BaseSmallStatement, module: cst.Module) -> None:
    if isinstance(small, cst.Import | cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
        for alias in small.names:
            plan.need((dotted(alias.name) or "").partition(".")[0], module.code_for_node(small))
