"""Bytes in, results out: read the program, run it abstractly, let the idioms decide, settle, rewrite, validate."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dsmigrate.codemod.analysis.analysis import Analysis, analysed, static_value
from dsmigrate.codemod.analysis.conditions import forget
from dsmigrate.codemod.analysis.directories import Directories, uses_of
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.optimizers import given_by_name, makings
from dsmigrate.codemod.analysis.training import trainings
from dsmigrate.codemod.analysis.values import NONE, Obj
from dsmigrate.codemod.audit import audited
from dsmigrate.codemod.compat import NAME, Home, home_of, parts_in
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.catalogue import IDIOMS, REFUSALS, ideas
from dsmigrate.codemod.idioms.config.existing import with_stage_of
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.idioms.refusals.unseen import do_not_meet, not_trained
from dsmigrate.codemod.launching import launching
from dsmigrate.codemod.model import Accumulation, Change, FileResult, Kind, Options, Status
from dsmigrate.codemod.program.edits import Comment, Edit, Import, brings, line_range
from dsmigrate.codemod.program.module import Module, Parsed
from dsmigrate.codemod.program.project import Cache, Project, Read
from dsmigrate.codemod.rewrite.apply import rewritten
from dsmigrate.codemod.rewrite.imports import code_of, without
from dsmigrate.codemod.settle import Settled, settled
from dsmigrate.codemod.shared import Clash, Place, Sharing, place_of, places_run
from dsmigrate.codemod.validate import Difference, differences, result_of
from dsmigrate.files.diff import unified
from dsmigrate.files.text import decode, encode
from dsmigrate.languages import mark, retold, say

_UNMARKED = frozenset(idea.code for idea in ideas() if not idea.marked)

Shown = Callable[[str], str]
"""Gives a path as reports show it, by its path below the project's root."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A script to convert: its path below the project's root, and what the person asked for."""

    path: str
    options: Options


@dataclass(frozen=True, slots=True)
class Compat:
    """What the project needs of ``ds_compat.py``: where that goes, and the names that are used of it."""

    path: str
    parts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion gives: results by path, that of the file which makes the engine with the config.

    ``runs`` is what the script runs of the project, ``changes`` where it changes what is run, ``alters`` where the change
    does not suit all that run it. ``directories`` are the names of checkpoints that become directories, ``makers`` the
    functions that make its engines.
    """

    entry: str
    results: dict[str, FileResult]
    compat: Compat | None = None
    looked_at: tuple[str, ...] = ()
    runs: frozenset[Place] = frozenset()
    changes: frozenset[Place] = frozenset()
    alters: frozenset[Place] = frozenset()
    directories: frozenset[str] = frozenset()
    makers: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class Use:
    """A place of a script that does something with a file: the call as it is written there."""

    path: str
    line: int
    call: str
    place: Place


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to become of one entry: the decisions of its trainings, or why there are none."""

    entry: Entry
    analysis: Analysis
    runs: frozenset[Place]
    trainings: tuple[tuple[Facts, Settled], ...] = ()
    refused: Change | None = None
    said: tuple[Change, ...] = ()
    """What is said of a script without a training."""

    @property
    def decisions(self) -> Iterator[Decision]:
        for _, one in self.trainings:
            yield from one.decisions

    @property
    def changes(self) -> dict[Place, set[Edit]]:
        """The edits of each function."""
        found: dict[Place, set[Edit]] = defaultdict(set)
        for decision in self.decisions:
            for edit in decision.edits:
                found[place_of(edit.module, edit.node)].add(edit)
        return found


def convert(read: Read, entry: str, options: Options, *, shown: Shown = str, cache: Cache | None = None) -> Conversion:
    """Convert an entry script together with the modules that its training runs through."""
    return convert_together(read, [Entry(entry, options)], shown=shown, cache=cache)[0]


def convert_together(
    read: Read,
    entries: Sequence[Entry],
    others: Mapping[Place, str] = MappingProxyType({}),
    *,
    shown: Shown = str,
    cache: Cache | None = None,
) -> list[Conversion]:
    """Convert entry scripts that share modules; ``others`` is what scripts run of these that stay, with their names."""
    forget()
    files = cache or Cache()
    plans = [_planned(read, entry, files) for entry in entries]
    plans = [_fitted(plan, plans, others) for plan in plans]
    plans, written = _soundly(plans)
    checked = [_validated(read, plan, written.texts, files) for plan in plans]
    if any(new is not old for new, old in zip(checked, plans, strict=True)):
        plans, written = _soundly(checked)
    return [_conversion(plan, written, shown) for plan in plans]


def places(read: Read, entry: str, cache: Cache) -> frozenset[Place]:
    """What a script runs of the files of its project."""
    forget()
    return places_run(analysed(Project(read, entry, cache, [""])))


def uses(read: Read, entry: str, names: frozenset[str], cache: Cache) -> list[Use]:
    """Where a script, run from its entry, does something with files of some names."""
    forget()
    return [
        Use(event.module.path, event.line, ast.unparse(event.node), place_of(event.module, event.node))
        for event in uses_of(analysed(Project(read, entry, cache, [""])), names)
    ]


def _planned(read: Read, entry: Entry, cache: Cache) -> Planned:
    """Read a script and decide what becomes of it."""
    analysis = analysed(Project(read, entry.path, cache, [""]))
    runs = places_run(analysis)
    found = trainings(analysis)
    if not found:
        changes = tuple(_in_entry(decision, entry) for decision in not_trained(analysis))
        return Planned(entry, analysis, runs, refused=_refused(changes), said=changes)
    decided: list[tuple[Facts, Settled]] = []
    for training in found:
        facts = Facts(training, with_stage_of(entry.options), tuple(other for other in found if other is not training))
        decisions = [decision for idiom in REFUSALS for decision in idiom(training, facts)]
        if isinstance(training.site, str):
            decisions.append(do_not_meet(training))
        if not any(one.kind is Kind.REFUSED for one in decisions):
            decisions += [decision for idiom in IDIOMS for decision in idiom(training, facts)]
        refusal = next((one for one in decisions if one.kind is Kind.REFUSED), None)
        if refusal is not None:
            return Planned(entry, analysis, runs, refused=_in_entry(refusal, entry))
        decided.append((facts, settled(training, facts, decisions)))
    return Planned(entry, analysis, runs, tuple(decided))


def _in_entry(decision: Decision, entry: Entry) -> Change:
    """What is said of a script as a whole; of another file it names the line."""
    change = _change(decision)
    if decision.module.path == entry.path:
        return change
    return replace(change, line=1, end_line=1, message=f"{decision.module.path}:{change.line}: {change.message}")


def _refused(changes: Iterable[Change]) -> Change | None:
    return next((one for one in changes if one.kind is Kind.REFUSED), None)


def _fitted(plan: Planned, plans: Sequence[Planned], others: Mapping[Place, str]) -> Planned:
    """A plan whose changes suit all that run the same code; refused where they cannot."""
    theirs = set(others)
    own = plan.changes
    for other in plans:
        if other is plan:
            continue
        changed = other.changes
        theirs |= {
            place for place in other.runs if own.get(place) != changed.get(place) and place[0] != plan.entry.path
        }
    fitted = []
    for facts, one in plan.trainings:
        decisions = []
        for decision in Sharing(facts, theirs).fitted(one.decisions):
            if isinstance(decision, Clash):
                return replace(plan, trainings=(), refused=_clash(decision, plan, plans, others))
            decisions.append(decision)
        fitted.append((facts, replace(one, decisions=tuple(decisions))))
    return replace(plan, trainings=tuple(fitted))


def _clash(clash: Clash, own: Planned, plans: Sequence[Planned], others: Mapping[Place, str]) -> Change:
    given = [plan.entry.path for plan in plans if plan is not own and clash.place in plan.runs]
    users = ", ".join([*given, *([others[clash.place]] if clash.place in others else [])])
    place = f"{clash.place[0]}:{clash.decision.node.lineno}"  # type: ignore[attr-defined]
    message = say(
        "{what} ({place}) would break what other scripts run there", what=retold(clash.decision.message), place=place
    )
    return Change("MG914", Kind.REFUSED, 1, 1, message, say("also run by {users}", users=users))


def _validated(read: Read, plan: Planned, texts: Mapping[str, _Text], cache: Cache) -> Planned:
    """The plan with a mark at everything that the result does otherwise than the script, and of which nothing is said."""
    found = tuple(
        (facts, _marked(facts, one, differences)) for facts, one, differences in validation(read, plan, texts, cache)
    )
    return (
        replace(plan, trainings=found)
        if any(new[1] is not old[1] for new, old in zip(found, plan.trainings, strict=True))
        else plan
    )


def validation(
    read: Read, plan: Planned, texts: Mapping[str, _Text], cache: Cache
) -> Iterator[tuple[Facts, Settled, list[Difference]]]:
    """What the result does otherwise than the script, by training."""
    if not plan.trainings:
        return
    changed = {
        path: encode(text.after, text.module.source) for path, text in texts.items() if text.after != text.before
    }
    result = cache.changed({})
    result.trees.update((path, Parsed(data, decode(data), texts[path].tree)) for path, data in changed.items())
    after = result_of(read, plan.entry.path, changed, result)
    for facts, one in plan.trainings:
        beside = tuple(other for _, other in plan.trainings if other is not one)
        yield facts, one, differences(facts, after, one, beside)


def _marked(facts: Facts, one: Settled, found: list[Difference]) -> Settled:
    more = []
    for difference in found:
        event = difference.original.event if difference.original is not None else None
        module, node = (facts.site.module, facts.site.node) if event is None else (event.module, event.node)
        if not any(_speaks_of(decision, module, node) for decision in one.decisions):
            more.append(
                Decision("MG999", Kind.TODO, module, node, str(difference), mark("found by reading the result back"))
            )
    return replace(one, decisions=(*one.decisions, *more)) if more else one


def _speaks_of(decision: Decision, module: Module, node: ast.AST) -> bool:
    """Whether a decision leaves a place to the person, or says that it behaves differently."""
    if decision.module is not module or not (decision.kind is Kind.TODO or decision.differs):
        return False
    first, last = _lines(decision)
    return first <= int(getattr(node, "lineno", 0)) <= last


@dataclass(frozen=True, slots=True)
class _Text:
    """A changed file: its module, its text before and after, and the tree of that."""

    module: Module
    before: str
    after: str
    tree: ast.Module


@dataclass(frozen=True, slots=True)
class _Written:
    """The new texts of all files, the decisions about each, and where ``ds_compat.py`` goes; None where nothing uses it."""

    texts: dict[str, _Text]
    told: dict[str, list[Change]]
    home: Home | None


class _UnsoundError(Exception):
    """A file that cannot be written so that it runs."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


def _soundly(plans: list[Planned]) -> tuple[list[Planned], _Written]:
    """What is written for some plans; those whose files would not run are refused."""
    while True:
        try:
            return plans, _written(plans)
        except _UnsoundError as error:
            said = Change(
                "MG999",
                Kind.REFUSED,
                1,
                1,
                say("the converted {path} would not run: {why}", path=error.path, why=error.why),
                say("a gap in dsmigrate: say so in an issue"),
            )
            plans = [
                replace(plan, trainings=(), refused=said) if error.path in _edited(plan) else plan for plan in plans
            ]


def _edited(plan: Planned) -> set[str]:
    found = {one.module.path for one in plan.decisions}
    found.update(edit.module.path for one in plan.decisions for edit in one.edits)
    found.update(needed.module.path for one in plan.decisions for needed in one.imports)
    return found


def _written(plans: Sequence[Planned]) -> _Written:
    edits: dict[str, list[Edit]] = defaultdict(list)
    imports: dict[str, list[Import]] = defaultdict(list)
    told: dict[str, list[Change]] = defaultdict(list)
    modules: dict[str, Module] = {}
    for decision in (decision for plan in plans for decision in plan.decisions):
        modules[decision.module.path] = decision.module
        for edit in decision.edits:
            modules[edit.module.path] = edit.module
            if edit not in edits[edit.module.path]:
                edits[edit.module.path].append(edit)
        if decision.kind is Kind.TODO and decision.lines != (0, 0) and decision.code not in _UNMARKED:
            mark = Comment(decision.module, decision.node, f"TODO(dsmigrate {decision.code}): {decision.message}")
            if mark not in edits[decision.module.path]:
                edits[decision.module.path].append(mark)
        for needed in decision.imports:
            modules[needed.module.path] = needed.module
            imports[needed.module.path].append(needed)
        change = _change(decision)
        if change not in told[decision.module.path]:
            told[decision.module.path].append(change)
    users = {path: modules[path] for path, made in edits.items() if any(brings(edit, f"{NAME}.") for edit in made)}
    converted = [plan for plan in plans if plan.trainings]
    home = home_of(converted[0].analysis.project, users) if users else None
    for path, module in users.items():
        assert home is not None
        imports[path].append(home.imported(module))
    texts = {}
    for path, module in modules.items():
        try:
            tree = rewritten(module, edits[path], imports[path])
            after = code_of(tree, module.source.text)
            parsed = ast.parse(after)
            made = audited(parsed)
            said = audited(module.tree)
            gone = made.unused_imports - said.unused_imports
            if gone:
                after = code_of(without(tree, gone), module.source.text)
                parsed = ast.parse(after)
            compile(parsed, path, "exec", dont_inherit=True)
        except Exception as error:
            raise _UnsoundError(path, str(error).partition("\n")[0]) from error
        new = made.undefined_names - said.undefined_names
        if new:
            raise _UnsoundError(path, say("{names} would be bound nowhere", names=", ".join(sorted(new))))
        texts[path] = _Text(module, module.source.text, after, parsed)
    return _Written(texts, told, home)


def _conversion(plan: Planned, written: _Written, shown: Shown) -> Conversion:
    """What comes of one entry: its own file, the files of its training, the config."""
    entry = plan.entry.path
    looked_at = tuple(sorted({path for path, _ in plan.runs} | {entry}))
    if plan.refused is not None or not plan.trainings:
        status = Status.UNCHANGED if plan.refused is None else Status.REFUSED
        changes = plan.said if plan.refused is None else (plan.refused,)
        return Conversion(
            entry, {entry: FileResult(shown(entry), status, changes)}, looked_at=looked_at, runs=plan.runs
        )
    paths = dict.fromkeys([entry, *(edit.module.path for one in plan.decisions for edit in one.edits)])
    paths.update(dict.fromkeys(one.module.path for one in plan.decisions))
    notes = {_change(one) for one in plan.decisions if one.differs}
    launched = launching(plan.analysis, [facts.training for facts, _ in plan.trainings], shown(entry))
    results: dict[str, FileResult] = {}
    for path in paths:
        text = written.texts.get(path)
        changes = tuple(sorted(written.told.get(path, ()), key=lambda change: (change.line, change.code)))
        changed = text is not None and text.before != text.after
        todo = any(change.kind is Kind.TODO for change in changes)
        results[path] = FileResult(
            shown(path),
            Status.UNCHANGED
            if not changed and path != entry
            else Status.CONVERTED_WITH_TODOS
            if todo
            else Status.CONVERTED,
            changes,
            "" if text is None else unified(text.before, text.after, shown(path)),
            encode(text.after, text.module.source) if text is not None and changed else None,
            plan.trainings[0][1].config if path == plan.trainings[0][0].site.module.path else None,
            launch=launched.commands if path == entry else (),
            notes=tuple(change for change in changes if change in notes),
            training=_accumulation(*plan.trainings[0]) if path == entry else None,
            start=launched.start if path == entry else None,
            trial=launched.trial if path == entry else None,
            placeholders=launched.placeholders if path == entry else (),
        )
    parts = parts_in(written.texts[path].after for path in paths if path in written.texts)
    return Conversion(
        entry,
        results,
        Compat(written.home.path, parts) if written.home and parts else None,
        looked_at,
        plan.runs,
        frozenset(plan.changes),
        frozenset(
            place_of(edit.module, edit.node)
            for decision in plan.decisions
            if not decision.suits_all
            for edit in decision.edits
        ),
        frozenset().union(
            *(facts.directories.names for facts, _ in plan.trainings if isinstance(facts.directories, Directories))
        ),
        frozenset(place_of(facts.site.module, facts.site.node) for facts, _ in plan.trainings),
    )


def _accumulation(facts: Facts, settled: Settled) -> Accumulation:
    """What memory and traffic of a training depend on."""
    training = facts.training
    names = {one.made_by.rpartition(".")[2] for one in training.optimizers if isinstance(one, Obj) and one.made_by}
    given = {name: value for event in makings(training) for name, value in given_by_name(event).items()}
    params = {name: static_value(training.analysis, value) for name, value in given.items()}
    if params.get("momentum", 0) is None and given["momentum"] != NONE:
        params["momentum"] = True  # not known, but seldom given to be 0
    sends_each = not any(True for _ in training.events(Happening.SYNC))
    known = {name: value for name, value in params.items() if value is not None}
    name = names.pop() if len(names) == 1 else ""
    return Accumulation(name, known, facts.accumulates, None, sends_each, settled.stage_code)


def _lines(decision: Decision) -> tuple[int, int]:
    return decision.lines if decision.lines and decision.lines != (0, 0) else line_range(decision.node)


def _change(decision: Decision) -> Change:
    first, last = _lines(decision)
    return Change(decision.code, decision.kind, first, last, retold(decision.message), retold(decision.reason))


__all__ = ["Conversion", "Entry", "convert", "convert_together", "places"]
