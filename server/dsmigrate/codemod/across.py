"""Converts a training that is spread over several files: the entry script and what it reaches, all of them or none."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

import libcst as cst

from dsmigrate.codemod import decide, launch, result
from dsmigrate.codemod.edit import Edits
from dsmigrate.codemod.model import Change, FileResult, Options, Status
from dsmigrate.codemod.names import Imports
from dsmigrate.codemod.plan import Plan, RefusedError
from dsmigrate.codemod.project.index import Index, Read
from dsmigrate.codemod.project.libraries import is_library
from dsmigrate.codemod.project.reach import Reached, reached
from dsmigrate.codemod.roles import recognise
from dsmigrate.codemod.shared_code import add_everywhere
from dsmigrate.codemod.starting import start_of
from dsmigrate.codemod.steps import odd_parameters
from dsmigrate.codemod.steps.file_tests import WIDER_TESTS
from dsmigrate.codemod.steps.library import bring_in, import_of
from dsmigrate.codemod.steps.reaching import under_no_grad
from dsmigrate.codemod.tree import LineMismatchError, Part, Tree
from dsmigrate.files import syntax
from dsmigrate.files.text import SourceError, SourceText


@dataclass(frozen=True, slots=True)
class SetResult:
    """What a migration of an entry script and its modules gives.

    ``entry`` is the script's own result, with the config and the launch commands. ``modules`` maps the path of every
    other file that changes, or that the report speaks of, relative to the project root, to its result. ``looked_at``
    are the paths of all files that were read as parts of the training; ``alters`` the top-level names, by path, whose
    behaviour changes for whoever calls them.
    """

    entry: FileResult
    modules: dict[str, FileResult] = field(default_factory=dict)
    looked_at: tuple[str, ...] = ()
    alters: dict[str, frozenset[str]] = field(default_factory=dict)


def migrate_set(read: Read, entry: str, *, shown: Callable[[str], str], options: Options) -> SetResult | None:
    """Convert an entry script together with the modules it reaches.

    ``entry`` and every path given to ``read`` are relative to the project root; ``shown`` makes the path that reports
    name. None where the training is in the entry script alone, which ``migrate_source`` converts.
    """
    index = Index(read, entry)
    try:
        found = reached(index)
    except SourceError:
        return None
    if not found.files and not found.quiet and not _has_scalars_elsewhere(index):
        return None
    return syntax.with_deep_stack(lambda: _migrate(index, found, shown, options))


def texts_beside(read: Read, entry: str) -> tuple[str, ...]:
    """The texts of all local files that a script imports, by whatever way, its own among them."""
    index = Index(read, entry)
    index.training_files()
    return tuple(index.imported_texts())


def _has_scalars_elsewhere(index: Index) -> bool:
    """Whether another file than the entry script, be it one of the model alone, makes parameters without dimensions."""
    file = index.file(index.entry)
    own = file.text.text if file is not None and file.text is not None else ""
    return not odd_parameters.has_scalars(own) and any(map(odd_parameters.has_scalars, index.imported_texts()))


def _migrate(index: Index, found: Reached, shown: Callable[[str], str], options: Options) -> SetResult | None:
    tree = _linked(index, found)
    if tree is None:
        return None
    looked_at = tuple(part.path for part in tree.parts if not is_library(part.path) and not part.is_quiet)
    path = shown(index.entry)
    imports = Imports(tree)
    plan = Plan(tree, imports, recognise(tree, imports), decide.with_stage_of(options), Edits(tree))
    plan.facts["texts"] = tuple(index.imported_texts())
    plan.facts["beside"] = lambda: plan.facts["texts"]
    try:
        if not decide.concerns_us(plan):
            return SetResult(FileResult(path, Status.UNCHANGED), looked_at=looked_at)
        decide.decide(plan)
        bring_in(plan)
        add_everywhere(plan)
        return _results(plan, index, shown)
    except RefusedError as refusal:
        change = refusal.change
        if refusal.path != index.entry and refusal.path:
            line = _line_of_import(plan, refusal.path)
            where = refusal.path.strip("<>") if is_library(refusal.path) else f"{shown(refusal.path)}:{change.line}"
            message = f"{where}: {change.message}"
            change = Change(change.code, change.kind, line, line, message, change.reason)
        return SetResult(FileResult(path, Status.REFUSED, (change,)), looked_at=looked_at)
    except result.AuditError as error:
        return SetResult(result.failed_audit(path, error), looked_at=looked_at)


def _linked(index: Index, found: Reached) -> Tree | None:
    """One tree of the entry script and the reached parts of the other files."""
    entry = _parsed(index, index.entry)
    if entry is None:
        return None
    python = index.files[index.entry]
    assert python is not None
    assert python.python is not None
    tree = Tree(entry, python.python, index.entry)
    by_path: dict[str, Part] = {index.entry: tree.parts[0]}
    for path, kept in (*found.files.items(), *found.quiet.items()):
        module = _parsed(index, path)
        file = index.files[path]
        if module is None or file is None or file.python is None:
            continue
        try:
            by_path[path] = tree.add(module, file.python, path, kept)
        except LineMismatchError:
            return None
        by_path[path].is_quiet = path in found.quiet
    known: dict[tuple[str, str], tuple[Part, str] | None] = {}

    def resolver(part: Part, text: str) -> tuple[Part, str] | None:
        key = (part.path, text)
        if key not in known:
            target = index.resolve(part.path, text)
            there = by_path.get(target[0]) if target is not None else None
            known[key] = (there, target[1]) if target is not None and there is not None else None
        return known[key]

    def find_module(part: Part, module: str, level: int) -> Part | None:
        found = index.module(part.path, module, level)
        return by_path.get(found) if found is not None else None

    tree.resolver = resolver
    tree.find_module = find_module
    return tree


def _parsed(index: Index, path: str) -> cst.Module | None:
    file = index.file(path)
    index.outline(path)
    if file is None or file.text is None or file.python is None:
        return None
    try:
        syntax.parse(file.text.text)
        return cst.parse_module(file.text.text)
    except (SourceError, cst.ParserSyntaxError):
        return None


def _results(plan: Plan, index: Index, shown: Callable[[str], str]) -> SetResult:
    modules: dict[str, FileResult] = {}
    alters: dict[str, frozenset[str]] = {}
    entry: FileResult | None = None
    parts = [part for part in plan.tree.parts if not is_library(part.path)]
    for part in parts:
        source = _source(index, part)
        code, changes = result.rewritten(plan, part, source)
        path = shown(part.path)
        if part is plan.tree.parts[0]:
            start = start_of(plan)
            commands = launch.commands(plan, path, start)
            entry = result.converted(path, source, code, changes, result.ordered(plan.config), commands, start)
            if code == source.text:
                entry = _as_it_is(entry)
            entry = result.with_placeholders(plan, entry)
        elif changes or code != source.text:
            found = result.converted(path, source, code, changes)
            modules[part.path] = found if code != source.text else _as_it_is(found)
            alters[part.path] = frozenset(_altered(plan, part, changes) & _rewritten(source.text, code))
    assert entry is not None
    written = {path for path, found in modules.items() if found.new_source is not None}
    looked_at = [part.path for part in parts if not part.is_quiet or part.path in written]
    return SetResult(entry, modules, tuple(looked_at), alters)


def _as_it_is(found: FileResult) -> FileResult:
    """The result of a file that takes part without being changed: its text stays, its decisions are told."""
    status = found.status if found.config is not None else Status.UNCHANGED
    return FileResult(found.path, status, found.changes, "", None, found.config, found.launch, found.notes,
                      found.start)  # fmt: skip


def _source(index: Index, part: Part) -> SourceText:
    file = index.files[part.path]
    assert file is not None
    assert file.text is not None
    return file.text


# What another script that calls the same function does not notice, or is served by as well; the last three are about
# the config alone.
_UNNOTICED = frozenset({"MG107", "MG201", "MG203", "MG204", "MG205", "MG206", "MG207", "MG301", "MG504", "MG601",
                        "MG604", "MG701"})  # fmt: skip
_BARE_FORWARD = "MG306"
"""The module instead of its wrapper: whoever trains through it in DDP would exchange no gradients any more."""


def _altered(plan: Plan, part: Part, changes: list[Change]) -> set[str]:
    """The top-level names of a file whose behaviour changes for a caller that has no engine."""
    found = set()
    for change in changes:
        if change.kind.value != "converted" or change.code in _UNNOTICED or change.message in WIDER_TESTS:
            continue
        if change.code == _BARE_FORWARD and _is_evaluation(plan, part, change.line):
            continue
        for statement in plan.tree.statements:
            if statement.up is None and plan.part_of(statement) is part and hasattr(statement.node, "body"):
                name = getattr(statement.node, "name", None)
                if name is not None and statement.line <= change.line <= statement.end_line:
                    found.add(str(name.value))
    return found


def _is_evaluation(plan: Plan, part: Part, line: int) -> bool:
    """Whether what stands on a line never runs with gradients, whoever calls it."""
    found = [s for s in plan.tree.statements if s.line == line and plan.part_of(s) is part]
    return any(under_no_grad(plan, statement) for statement in found)


def _rewritten(before: str, after: str) -> set[str]:
    """The top-level definitions whose code differs: a decision about the config, or a comment, is no other form."""
    old, new = _definitions(before), _definitions(after)
    return {name for name, text in old.items() if new.get(name) != text}


def _definitions(code: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.parse(code).body:
        name = getattr(node, "name", None)
        if isinstance(name, str):
            found[name] = found.get(name, "") + ast.dump(node)
    return found


def _line_of_import(plan: Plan, path: str) -> int:
    """The line of the entry script that imports a file, 1 where it does so through others."""
    statement = import_of(plan, path)
    return 1 if statement is None or plan.part_of(statement) is not plan.tree.parts[0] else statement.line
