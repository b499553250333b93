"""Where the functions and imports of the conversion go when it spans several files.

A function with state of its own (the checkpoint requests) exists once, in a module that the others import already;
what has no state may stand in each file that uses it.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.imports_edit import add_to
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan, RefusedError
from dsmigrate.codemod.project.libraries import is_library
from dsmigrate.codemod.tree import Part, Statement


@dataclass(frozen=True, slots=True)
class _Helper:
    text: str
    names: frozenset[str]
    reads: frozenset[str]
    has_state: bool


def add_everywhere(plan: Plan) -> None:
    """Give every file of the set the imports and functions that its new text uses. Raises RefusedError."""
    parts = [part for part in plan.tree.parts if not is_library(part.path)]
    counts = {part: _counted(ast.parse(plan.edits.apply(part).code)) for part in parts}
    after = {part: set(counted) for part, counted in counts.items()}
    homes: dict[Part, list[_Helper]] = {}
    for helper in _users_first([_parsed(text) for text in plan.helpers]):
        users = [part for part in parts if after[part] & helper.names]
        home = _home(plan, users) if len(users) > 1 else None
        if len(users) > 1 and home is None and helper.has_state:
            raise RefusedError(
                "MG914", 1, 1, f"{', '.join(sorted(helper.names))} would have to be shared by "
                f"{', '.join(part.path for part in users)}, and none of them imports another",
                "the functions for checkpoints keep a list that all users must share",
            )  # fmt: skip
        for part in users:
            if home is None or part is home:
                homes.setdefault(part, []).append(helper)
                after[part] |= helper.reads
            else:
                _import(plan, part, home, sorted(after[part] & helper.names))
    for part in parts:
        own = homes.get(part, [])
        before = _counted(part.python)
        more = {name for name, count in counts[part].items() if count > before[name]}
        used = more.union(*(helper.reads for helper in own))
        needed = {module: text for module, text in plan.needed_imports.items() if module in used}
        add_to(plan, part, needed, [helper.text for helper in reversed(own)])


def _users_first(helpers: list[_Helper]) -> list[_Helper]:
    """Helpers before those that they read."""
    pending, found = list(reversed(helpers)), []
    while pending:
        free = next((h for h in pending if not any(h.names & o.reads for o in pending if o is not h)), pending[0])
        pending.remove(free)
        found.append(free)
    return found


def _parsed(text: str) -> _Helper:
    tree = ast.parse(text)
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    state = {
        t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    }
    return _Helper(text, frozenset(names | state), frozenset(_counted(tree)), bool(state))


def _counted(tree: ast.Module) -> Counter[str]:
    """How often each name is read in a module."""
    return Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


def _home(plan: Plan, users: list[Part]) -> Part | None:
    """The file that all other users import already, and that imports none of them."""
    for part in users:
        others = [other for other in users if other is not part]
        if all(_imports(plan, other, part) is not None for other in others):
            if all(_imports(plan, part, other) is None for other in others):
                return part
    return None


def _imports(plan: Plan, importer: Part, imported: Part) -> tuple[Statement, str] | None:
    """The top-level statement by which a file imports another, and the name of the module as it is known there."""
    find = plan.tree.find_module
    if find is None:
        return None
    for statement in importer.top.statements:
        node = statement.node
        if statement.up is not None:
            continue
        if isinstance(node, cst.Import):
            for alias in node.names:
                name = dotted(alias.name) or ""
                if find(importer, name, 0) is imported:
                    return statement, name
        elif isinstance(node, cst.ImportFrom):
            level, module = len(node.relative), dotted(node.module) or ""
            if find(importer, module, level) is imported:
                return statement, "." * level + module
            for alias in () if isinstance(node.names, cst.ImportStar) else node.names:
                inner = f"{module}.{dotted(alias.name)}" if module else str(dotted(alias.name))
                if find(importer, inner, level) is imported:
                    return statement, "." * level + inner
            way = _absolute(plan, importer, imported)
            if (
                importer is plan.tree.parts[0]
                and not level
                and way is not None
                and module
                and way.startswith(f"{module}.")
            ):
                return statement, way  # the package hands the module's names on; no module imports the entry script
    return None


def _absolute(plan: Plan, importer: Part, imported: Part) -> str | None:
    """The name by which a file can import another directly."""
    find = plan.tree.find_module
    names = imported.path.removesuffix(".py").removesuffix("/__init__").split("/")
    for start in range(len(names)):
        name = ".".join(names[start:])
        if find is not None and find(importer, name, 0) is imported:
            return name
    return None


def _import(plan: Plan, part: Part, home: Part, names: list[str]) -> None:
    found = _imports(plan, part, home)
    assert found is not None
    statement, module = found
    plan.edits.insert_after(statement.line_node, f"from {module} import {', '.join(names)}")
