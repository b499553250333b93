"""What the rules say beside what DeepSpeed says, and whose business every difference is."""

from __future__ import annotations

import copy
import itertools
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsmigrate.document import Document, parse
from dsmigrate.knowledge import Knowledge, knowledge
from dsmigrate.rules import Effect, Facts, Finding, Settings, Severity, check, every_rule
from dsmigrate.rules.fixing import fix_all

from .case import Case
from .judging import Answer, judge

AGREED, UNJUDGED = "agreed", "cannot be judged here"
MISSED = "rejected, and no rule says so"
ELSEWHERE = "rejected, and the error is on another key"
FALSE_ALARM = "accepted, and a rule says it is rejected"
ONLY_STEP = "fails at the first step, and a rule says it is rejected"
STEP_MISSED = "fails at the first step, and no rule says so"
STEP_PASSES = "said to crash, and the first step passes"
BEYOND = "said to crash where one step on a CPU does not come to"
CRASHED = "the rules crashed"
DISAGREEMENTS = (CRASHED, MISSED, ELSEWHERE, FALSE_ALARM)
NOTES = (ONLY_STEP, STEP_MISSED, STEP_PASSES)
"""Differences that do not count against the goal: the first step is trained on a tiny model."""
OUT_OF_REACH = {
    "autotuning": "the autotuner, started by its launcher",
    "compile": "engine.compile(), called by the script",
    "data_efficiency": "training data",
    "expert_parallel": "a model with experts",
    "pipeline": "a model in pipeline stages",
    "tensor_parallel": "several processes",
    "weight_quantization": "a model that is quantized while it is made",
}
"""Sections whose crashes take more than the tiny model, by what they take."""
OUT_OF_REACH_BY_RULE = {
    "DS458": "an update on the CPU, which ZenFlow puts off as long as the gradients allow",
    "DS479": OUT_OF_REACH["expert_parallel"],
    "DS510": "weights on a GPU",
    "DS550": "a compiled CUDA kernel",
}
Ask = Callable[[Sequence[Case]], list[Answer]]
WORD = re.compile(r"[A-Za-z_0-9]+")
FAMILIES = (
    ("types", r"must be a mapping|has no attribute '(?:get|keys|items|lower|upper)'|is not subscriptable"),
    ("keys", r"extra_forbidden|Extra inputs|has been removed|together$"),
    ("text", r"Duplicate keys|HjsonDecodeError"),
    ("batch", r"batch|[Gg]radient.accum|predivide|prescale|allreduce_op|communication_data"),
    ("precision", r"fp16|bf16|bfloat16|[Mm]aster.?[Ww]eights|autocast|DtypeEnum|_dtype|loss_scale|precision"),
    ("offload", r"[Oo]ffload|zenflow|nvme|aio"),
    ("scheduler", r"_lr\b|LR|schedul|cycle|warmup"),
    ("optimizer", r"optim|Optimizer|Adam|Lamb|Lion|Muon|AMSGrad|betas?|\beps\b|weight_decay"),
    ("zero", r"[Zz]e[Rr]O|zero_|reduce_scatter|allgather_bucket|[Ss]tage"),
)
"""The families of rules by words of DeepSpeed's errors."""


@dataclass(frozen=True, slots=True)
class Row:
    """A case, both opinions of it, the outcome, and the family of rules that a difference is for."""

    case: Case
    answer: Answer
    findings: tuple[Finding, ...]
    outcome: str
    family: str = ""
    what: str = ""
    """What differs, in words that are the same for cases of the same kind."""


def examine(cases: Sequence[Case], ask: Ask = judge) -> list[Row]:
    """Return a row per case; differences are judged again by fresh processes, which must say the same."""
    rows = [row(case, answer) for case, answer in zip(cases, ask(cases), strict=True)]
    doubtful = [index for index, row in enumerate(rows) if row.outcome in {*DISAGREEMENTS, *NOTES}]
    again = ask([rows[index].case for index in doubtful])
    for index, answer in zip(doubtful, again, strict=True):
        if answer != rows[index].answer:
            unsteady = Answer("unjudged", answer.error or rows[index].answer.error, "the judge contradicts itself")
            rows[index] = Row(rows[index].case, unsteady, rows[index].findings, UNJUDGED)
    return _by_trial(rows, ask)


def settings(case: Case) -> Settings:
    """Return what a case is checked for."""
    return Settings(version=case.version, consumer=case.consumer, facts=Facts(world_size=case.world))


def row(case: Case, answer: Answer) -> Row:
    """Return what the rules make of a case beside DeepSpeed's answer."""
    try:
        findings = tuple(check(parse(case.written), settings(case)))
    except Exception as problem:  # noqa: BLE001 - a crash is a result
        frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if "/rules/" in frame.filename]
        place = Path(frames[-1].filename)
        told_here = f"{type(problem).__name__}: {problem} ({place.name}, line {frames[-1].lineno})"
        return Row(case, answer, (), CRASHED, place.parent.name, told_here)
    known = knowledge(case.version)
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    rejecting = [finding for finding in errors if finding.effect is Effect.REJECTED]
    crashing = [finding for finding in findings if finding.effect is Effect.CRASH]
    certain = [finding for finding in crashing if finding.severity is Severity.ERROR]
    made = Row(case, answer, findings, AGREED)
    if answer.verdict == "unjudged":
        return replace(made, outcome=UNJUDGED, what=answer.reason)
    if answer.refused:
        if not errors:
            return replace(made, outcome=MISSED, family=owner(case, answer.error), what=told(answer.error))
        if not is_responsible(known, case, answer.error, errors):
            return replace(made, outcome=ELSEWHERE, family=owner(case, answer.error), what=told(answer.error))
        return made
    if rejecting:
        outcome = ONLY_STEP if answer.verdict == "step" else FALSE_ALARM
        return replace(made, outcome=outcome, family=family(rejecting[0].code), what=title(rejecting[0]))
    if answer.verdict == "step" and not (errors or crashing):
        return replace(made, outcome=STEP_MISSED, family=owner(case, answer.error), what=told(answer.error))
    if answer.verdict == "accepted" and certain:
        within = [finding for finding in certain if not takes_more(finding)]
        told_by = (within or certain)[0]
        outcome = STEP_PASSES if within else BEYOND
        return replace(made, outcome=outcome, family=family(told_by.code), what=takes_more(told_by) or title(told_by))
    return made


def takes_more(finding: Finding) -> str:
    """Return what a crash takes that the judge does not have; "" when the judge should see it."""
    return OUT_OF_REACH_BY_RULE.get(finding.code) or OUT_OF_REACH.get(str(finding.path[0] if finding.path else ""), "")


def is_responsible(known: Knowledge, case: Case, error: str, errors: Iterable[Finding]) -> bool:
    """Return whether an error is on a planted key, or on one that DeepSpeed's own error names.

    An error about a key that is missing has no place of its own: its message must name it.
    """
    planted = {known.canonical(path) for fault in case.planted for path in fault.paths}
    planted |= {path for fault in case.planted for path in fault.paths}
    named = set(WORD.findall(error))
    for finding in errors:
        path = ".".join(map(str, finding.path))
        key = known.key(finding.path) if finding.path else None
        names = {str(name) for name in finding.path[-1:]} | (named_in(finding) - (case.data or {}).keys())
        names |= {name for name in (key.name, key.field) if name} if key is not None else set()
        if path in planted or known.canonical(path) in planted or names & named:
            return True
        if finding.code.startswith("DS0") and case.text is not None:
            return True
    return False


def _by_trial(rows: Sequence[Row], ask: Ask) -> list[Row]:
    """Return the rows, with DeepSpeed asked again without the keys that carry errors, and with these mended.

    An error elsewhere was right after all when DeepSpeed's error goes away with its key, or with its fix. With several
    faults the error may be on one that DeepSpeed does not mind: then its error stays.
    """
    done = list(rows)
    asked = [index for index, row in enumerate(rows) if row.answer.refused and row.case.data is not None]
    asked = [
        index
        for index in asked
        if rows[index].outcome == ELSEWHERE or (rows[index].outcome == AGREED and len(rows[index].case.planted) > 1)
    ]
    for mend in (taken_out, mended):
        tried = [replace(rows[index].case, config=mend(rows[index]), text=None) for index in asked]
        stays = [answer.error == rows[index].answer.error for index, answer in zip(asked, ask(tried), strict=True)]
        gone = [index for index, still in zip(asked, stays, strict=True) if not still]
        for index in gone:
            done[index] = replace(rows[index], outcome=AGREED, family="", what="")
        asked = [index for index in asked if index not in gone and not _points_at_nothing(rows[index])]
    for index in asked:
        error = rows[index].answer.error
        done[index] = replace(rows[index], outcome=ELSEWHERE, family=owner(rows[index].case, error), what=told(error))
    return done


def mended(row: Row) -> Any:
    """Return the config after the fixes of every error."""

    def errors(document: Document) -> list[Finding]:
        return [finding for finding in check(document, settings(row.case)) if finding.severity is Severity.ERROR]

    root = fix_all(parse(row.case.written), errors, unsafe=True).document.root
    return root.value() if root is not None else None


def taken_out(row: Row) -> Any:
    """Return the config without the keys that carry an error; for something in a list, without the list."""
    config = copy.deepcopy(row.case.data)
    for finding in row.findings:
        names = [*itertools.takewhile(lambda name: isinstance(name, str), finding.path)]
        if finding.severity is Severity.ERROR and names:
            place: Any = config
            for name in names[:-1]:
                place = place.get(name) if isinstance(place, dict) else None
            if isinstance(place, dict):
                place.pop(names[-1], None)
    return config


def _points_at_nothing(row: Row) -> bool:
    """Return whether an error is about a key that is missing, or about the whole."""
    for finding in row.findings:
        if finding.severity is Severity.ERROR:
            place: Any = row.case.data
            for name in finding.path:
                place = place.get(name) if isinstance(place, dict) and name in place else None
            absent = named_in(finding) - {name for name, value in (row.case.data or {}).items() if value is not None}
            if place is None or not finding.path or absent & set(WORD.findall(row.answer.error)):
                return True
    return False


def named_in(finding: Finding) -> set[str]:
    """Return the keys that the message of a finding names."""
    return {name for quoted in re.findall(r"`([^`]+)`", finding.message) for name in WORD.findall(quoted)}


def owner(case: Case, error: str) -> str:
    """Return the family of rules that DeepSpeed's error belongs to, or those of the faults of a case."""
    by_error = next((family for family, pattern in FAMILIES if re.search(pattern, error)), "")
    return by_error or "/".join(sorted({fault.family for fault in case.planted})) or "types"


def family(code: str) -> str:
    """Return the family of a rule: the folder it lies in."""
    rule = next(rule for rule in every_rule() if rule.code == code)
    return rule.check.__module__.split(".")[2]


def title(finding: Finding) -> str:
    """Return code and name of a finding's rule."""
    return next(rule.title for rule in every_rule() if rule.code == finding.code)


def told(error: str) -> str:
    """Return an error without what differs from case to case."""
    short = re.sub(r"(?<![A-Za-z_])-?\d[\d.e+]*", "#", error)
    short = re.sub(r"\[type=.*|For further information.*", "", short)
    return short[:140]


def disagreements(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield what counts against the goal."""
    return (row for row in rows if row.outcome in DISAGREEMENTS)
