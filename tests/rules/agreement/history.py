"""What every rule and every fix says of its examples for a release, beside what that release itself says.

The release runs as the newest one does for the examples: its config class, its engine and a first step on a tiny model,
with stand-ins for kernels. What it does with a config that it takes is not decided by that: there the code that the
rule names is compared with that of the newest release, for which the rule was written.
"""

from __future__ import annotations

import ast
import enum
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dsmigrate.derivation import known_bugs
from dsmigrate.document import Document, parse
from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.versions import order
from dsmigrate.rules import Effect, Example, Finding, Rule, Severity, check, every_rule
from dsmigrate.rules.fixing import fix_all
from dsmigrate.rules.run import check_with
from tests.rules.examples import marked, settings

from .case import Case
from .compare import takes_more
from .judging import Answer, judge
from .stated import case, refused

SIGNS = Path(__file__).with_name("signs.toml")
FAILS = frozenset({Effect.CRASH, Effect.REJECTED})


class Outcome(enum.Enum):
    """How what is said of an example and what the release says go together."""

    AGREES = "agrees"
    UNJUDGED = "cannot be judged here"
    FALSE_ALARM = "taken, and the rule says that it is refused"
    MISSED = "refused, and no rule says so"
    STEP_MISSED = "fails at the first step, and no rule says so"
    STEP_PASSES = "said to crash, and the first step passes"
    BAD_FIX = "refused after the fix, and no rule says so"
    SPOILT = "taken before the fix, and refused after it"


WRONG = frozenset(Outcome) - {Outcome.AGREES, Outcome.UNJUDGED}
KNOWN = {
    "DS022-1": "what a loss scale of NaN does in a step is up to torch",
    "DS487-2": "the hybrid engine takes gradients of its own layers alone, and the tiny model has none",
    "DS642-4": "torch before 2.6 takes betas of different types",
}
"""Examples that are judged wrongly here in some releases, and why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An example of a rule at a release: the text as it is and after the rule's fixes, and what is found in it."""

    rule: Rule
    case: Case
    findings: tuple[Finding, ...]
    """Of the rule alone."""
    fails: bool
    """Whether any rule says that it fails."""
    fixed: Case | None
    """None where the rule has no fix for it."""
    fails_fixed: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What came of an example."""

    asked: Asked
    answer: Answer
    after: Answer | None
    outcome: Outcome

    def __str__(self) -> str:
        is_fix = self.outcome in {Outcome.BAD_FIX, Outcome.SPOILT}
        one, answer = (self.asked.fixed, self.after) if is_fix else (self.asked.case, self.answer)
        written = "" if one is None else one.written.strip()
        return f"{self.asked.case.name} in {self.asked.case.version}: {self.outcome.value}: {answer}\n    {written}"


def examples(release: str, codes: tuple[str, ...] = ("DS",)) -> Iterator[Asked]:
    """Yield the examples of the rules, asked of a release: those for plain DeepSpeed that one process can judge."""
    for rule in every_rule():
        for number, example in enumerate(rule.examples):
            plain = example.consumer is Consumer.DEEPSPEED and example.facts.hardware is None
            if rule.code.startswith(codes) and plain and example.accepted is not None:
                yield _asked(rule, f"{rule.code}-{number}", replace(example, version=release))


def _asked(rule: Rule, name: str, example: Example) -> Asked:
    def alone(document: Document) -> list[Finding]:
        return check_with(document, settings(example), [rule])

    document = parse(marked(example.config).text)
    written = case(name, document.text, example)
    mended = fix_all(document, alone, unsafe=True)
    asked = Asked(rule, written, tuple(alone(document)), _fails(document, example), None)
    if not mended.applied:
        return asked
    fixed = case(name, mended.document.text, example)
    return replace(asked, fixed=fixed, fails_fixed=_fails(mended.document, example))


def _fails(document: Document, example: Example) -> bool:
    found = check(document, settings(example))
    return any(one.severity is Severity.ERROR or one.effect in FAILS for one in found)


def tell(asked: Sequence[Asked]) -> list[Told]:
    """Return what comes of the examples; equal texts are judged once, disagreements again by a process of their own."""
    cases = {_content(one): one for each in asked for one in (each.case, each.fixed) if one is not None}
    answers = dict(zip(cases, _answers(list(cases.values())), strict=True))
    told = []
    for one in asked:
        answered = _told(one, answers)
        if answered.outcome in WRONG:
            own = [case for case in (one.case, one.fixed) if case is not None]
            answered = _told(one, {_content(case): answer for case in own for answer in _answers([case])})
        known = answered.outcome in WRONG and one.case.name in KNOWN
        told.append(replace(answered, outcome=Outcome.UNJUDGED) if known else answered)
    return told


def _told(asked: Asked, answers: Mapping[tuple[str, int | None], Answer]) -> Told:
    before, after = answers[_content(asked.case)], None if asked.fixed is None else answers[_content(asked.fixed)]
    return Told(asked, before, after, _outcome(asked, before, after))


def _answers(cases: Sequence[Case]) -> Iterator[Answer]:
    for one, answer in zip(cases, judge(cases), strict=True):
        error = refused(one)
        yield Answer("config", error) if error else answer


def _content(one: Case) -> tuple[str, int | None]:
    return one.written, one.world


def _outcome(asked: Asked, before: Answer, after: Answer | None) -> Outcome:
    certain = [one for one in asked.findings if one.severity is Severity.ERROR]
    if before.verdict == "accepted":
        if any(one.effect is Effect.REJECTED for one in certain):
            return Outcome.FALSE_ALARM
        if any(one.effect is Effect.CRASH and not takes_more(one) for one in certain):
            return Outcome.STEP_PASSES
    elif before.verdict != "unjudged" and not asked.fails:
        return Outcome.MISSED if before.refused else Outcome.STEP_MISSED
    if after is not None and after.verdict not in {"accepted", "unjudged"}:
        if before.verdict == "accepted":
            return Outcome.SPOILT
        if not asked.fails_fixed:
            return Outcome.BAD_FIX
    return Outcome.UNJUDGED if before.verdict == "unjudged" else Outcome.AGREES


def signed(releases: Mapping[str, Path]) -> dict[str, set[str]]:
    """Return the rules of signs.toml with those releases, unpacked at the paths, whose sources have the lines."""
    ordered = sorted(releases, key=order)
    read = {code: {**entry, "first": ordered[0]} for code, entry in known_bugs.read(SIGNS).items()}
    return {one.name: set(one.signed) for one in known_bugs.verify(read, ordered, releases)}


def cell(told: Iterable[Told], same: bool | None, *, lines: bool = False) -> str:
    """Return what a table says of a rule at a release; ``same`` is whether the code that it names is that of today.

    ``x`` is a disagreement; ``R`` is judged by running: the release refuses or fails as said; ``s`` and ``d``: it takes
    what the rule speaks of, and the code named is that of the newest release, or another one; ``l``: another one, with
    the ``lines`` of signs.toml; ``-``: the rule says nothing there, and the release runs the examples as well as the
    others say; ``?``: not judged.
    """
    those = list(told)
    if any(one.outcome in WRONG for one in those):
        return "x"
    judged = [one for one in those if one.outcome is Outcome.AGREES]
    spoken = [one for one in judged if one.asked.findings]
    if any(finding.effect in FAILS for one in spoken for finding in one.asked.findings):
        return "R"
    if judged and not spoken and not any(one.asked.findings for one in those):
        return "-"
    return "s" if same else "l" if lines else "?" if same is None else "d"


def is_same(rule: Rule, root: Path, newest: Path) -> bool | None:
    """Return whether the code of DeepSpeed that a rule names is the same in two releases; None if it names none."""
    named = [source.partition(":") for source in rule.source if source.startswith("deepspeed/")]
    if not named:
        return None
    return all(_code(root / file, symbol) == _code(newest / file, symbol) for file, _, symbol in named)


@functools.lru_cache(maxsize=4096)
def _code(path: Path, symbol: str) -> str:
    """Return the code of a class or function, of a whole module for "", without comments and places; "" for none."""
    if not path.is_file():
        return ""
    tree = _tree(path)
    nodes: list[ast.AST] = [tree]
    for name in symbol.split(".") if symbol else ():
        nodes = [inner for node in nodes for inner in ast.walk(node) if _name(inner) == name]
    return "\n".join(ast.dump(node) for node in nodes)


@functools.lru_cache(maxsize=256)
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _name(node: ast.AST) -> str:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    first = node.targets[0] if isinstance(node, ast.Assign) else None
    return first.id if isinstance(first, ast.Name) else ""


def minors(releases: Sequence[str]) -> list[str]:
    """Return the last release of each minor version, the oldest first."""
    last = {order(release)[:2]: release for release in sorted(releases, key=order)}
    return list(last.values())
