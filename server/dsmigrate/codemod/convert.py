"""Bytes in, results out: read the program, run it abstractly, let the idioms decide, settle, rewrite, validate."""

from __future__ import annotations

import ast

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dsmigrate.codemod.analysis.analysis import Analysis, analysed
from dsmigrate.codemod.analysis.conditions import forget
from dsmigrate.codemod.analysis.training import Training, trainings
from dsmigrate.codemod.audit import undefined_names
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.catalogue import IDIOMS, REFUSALS
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.idioms.refusals.unseen import do_not_meet, not_trained
from dsmigrate.codemod.launching import Launching, launching
from dsmigrate.codemod.model import Change, FileResult, Kind, Options, Status
from dsmigrate.codemod.program.edits import Edit, Import, line_range
from dsmigrate.codemod.program.module import Module
from dsmigrate.codemod.program.project import Cache, Project, Read
from dsmigrate.codemod.rewrite.apply import rewritten
from dsmigrate.codemod.settle import Settled, settled
from dsmigrate.codemod.validate import Difference, differences
from dsmigrate.files.diff import unified
from dsmigrate.files.text import encode


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion gives: results by path, the entry's with the config; the parts that ``ds_compat`` needs."""

    entry: str
    results: dict[str, FileResult]
    parts: frozenset[str] = frozenset()
    settled: tuple[Settled, ...] = ()
    looked_at: tuple[str, ...] = field(default=())


def convert(read: Read, entry: str, options: Options, *, shown: Callable[[str], str] = str, cache: Cache | None = None) -> Conversion:
    """Convert an entry script together with the modules that its training runs through."""
    forget()
    project = Project(read, entry, cache or Cache(), [""])
    analysis = analysed(project)
    found = trainings(analysis)
    if not found:
        return _not_trained(analysis, entry, shown(entry))
    all_settled: list[Settled] = []
    for training in found:
        facts = Facts(training, options, tuple(other for other in found if other is not training))
        refused = _refused(decision for idiom in REFUSALS for decision in idiom(training, facts))
        if refused is None and isinstance(training.site, str):
            refused = _change(do_not_meet(training))
        decisions = [] if refused is not None else [decision for idiom in IDIOMS for decision in idiom(training, facts)]
        refused = refused or _refused(decisions)
        if refused is not None:
            return Conversion(entry, {entry: FileResult(shown(entry), Status.REFUSED, (refused,))})
        all_settled.append(settled(training, facts, decisions))
    return _written(analysis, entry, all_settled, shown, launching(analysis, found, shown(entry)))


def _not_trained(analysis: Analysis, entry: str, shown: str) -> Conversion:
    """What is said of a script without a training that could be converted."""
    changes = tuple(_change(decision) for decision in not_trained(analysis))
    refused = any(change.kind is Kind.REFUSED for change in changes)
    return Conversion(entry, {entry: FileResult(shown, Status.REFUSED if refused else Status.UNCHANGED, changes)})


def _refused(decisions: Iterable[Decision]) -> Change | None:
    return next((_change(one) for one in decisions if one.kind is Kind.REFUSED), None)


def validated(read: Read, entry: str, training: Training, conversion: Conversion, cache: Cache) -> list[Difference]:
    """What the result of one training does otherwise than the script."""
    texts = {path: result.new_source for path, result in conversion.results.items() if result.new_source is not None}
    return differences(read, entry, training, conversion.settled[0], texts, cache)


def _written(analysis: Analysis, entry: str, found: list[Settled], shown: Callable[[str], str], launched: Launching) -> Conversion:
    edits: dict[str, list[Edit]] = defaultdict(list)
    imports: dict[str, list[Import]] = defaultdict(list)
    changes: dict[str, list[Change]] = defaultdict(list)
    modules: dict[str, Module] = {}
    for one in found:
        for decision in one.decisions:
            modules[decision.module.path] = decision.module
            for edit in decision.edits:
                modules[edit.module.path] = edit.module
                edits[edit.module.path].append(edit)
            for needed in decision.imports:
                modules[needed.module.path] = needed.module
                imports[needed.module.path].append(needed)
            changes[decision.module.path].append(_change(decision))
    results: dict[str, FileResult] = {}
    own = analysis.project.module(entry, "__main__")
    if own is not None:
        modules.setdefault(entry, own)
    for path, module in modules.items():
        before = module.source.text
        after = rewritten(module, _unique(edits[path]), imports[path])
        after = _without_unused(before, after)
        compile(after, path, "exec", dont_inherit=True)
        new = undefined_names(ast.parse(after)) - undefined_names(ast.parse(before))
        if new:
            raise AssertionError(f"{path}: undefined names {sorted(new)}")
        text = encode(after, module.source)
        todo = any(change.kind is Kind.TODO for change in changes[path])
        results[path] = FileResult(
            shown(path),
            Status.UNCHANGED if before == after and path != entry else Status.CONVERTED_WITH_TODOS if todo else Status.CONVERTED,
            tuple(sorted(changes[path], key=lambda change: (change.line, change.code))),
            unified(before, after, shown(path)),
            None if before == after else text,
            found[0].config if path == entry else None,
            launched.commands if path == entry else (),
            start=launched.start if path == entry else None,
            placeholders=launched.placeholders if path == entry else (),
        )
    return Conversion(entry, results, frozenset().union(*(one.parts for one in found)), tuple(found), tuple(modules))


def _unique(edits: list[Edit]) -> list[Edit]:
    found: list[Edit] = []
    for edit in edits:
        if edit not in found:
            found.append(edit)
    return found


def _change(decision: Decision) -> Change:
    first, last = decision.lines if decision.lines and decision.lines != (0, 0) else line_range(decision.node)
    return Change(decision.code, decision.kind, first, last, decision.message, decision.reason)


def _without_unused(before: str, after: str) -> str:
    """Without the imports that only the replaced code used."""
    from dsmigrate.codemod.audit import unused_imports
    from dsmigrate.codemod.rewrite.imports import without

    gone = unused_imports(ast.parse(after)) - unused_imports(ast.parse(before))
    return without(after, gone) if gone else after


