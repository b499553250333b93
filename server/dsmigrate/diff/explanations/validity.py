"""Rules that newly fire, or stop: what is wrong with the new config and was not with the old one."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff import findings
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.rules import Effect as RuleEffect
from dsmigrate.rules import Finding
from dsmigrate.rules import Severity as RuleSeverity

_EFFECTS = {RuleEffect.SLOW: Effect.SPEED, RuleEffect.MEMORY: Effect.MEMORY}


@explanation(
    "DF110",
    "new-finding",
    summary="A rule finds something in the new config that it does not find in the old one.",
    why=(
        "`dsmigrate check` knows what DeepSpeed refuses, drops, overrides or misreads. A change that brings such a"
        " finding is told with what the rule says; the code leads to its page."
    ),
    source=("docs/rules/README.md",),
    examples=(
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": true}}',
            '{"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": true}}',
            "This change makes the config invalid: ",
            effects=(Effect.VALIDITY,),
            severity=Severity.BREAKING,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "comm_overlap": true}}',
            "This change makes the config invalid: DeepSpeed has no key `comm_overlap`",
            paths=("zero_optimization.comm_overlap",),
            severity=Severity.BREAKING,
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 16}', ""),
    ),
    last=True,
)
def explain_new(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each finding that only the new side has."""
    for path, finding in findings.only(pair.new, pair.old):
        if not findings.matters(pair, path, finding):
            continue
        broken = finding.effect in findings.REJECTS and finding.severity is RuleSeverity.ERROR
        worse = broken and not pair.old.is_rejected
        lead = "New finding: "
        if broken:
            lead = (
                "This change makes the config invalid: "
                if worse
                else "Invalid, as the old config is for another reason: "
            )
        severity = Severity.BREAKING if worse else _severity(finding)
        yield pair.says(
            path,
            effects=(_EFFECTS.get(finding.effect, Effect.VALIDITY),),
            severity=severity,
            message=f"{lead}{_text(finding)}",
            brief=finding.message if worse else "",
            tally="" if worse else "New findings of the rules: {}",
        )


@explanation(
    "DF111",
    "finding-gone",
    summary="A rule finds something in the old config that it does not find in the new one.",
    why="What was refused, dropped or misread before is right now, or is no longer there.",
    source=("docs/rules/README.md",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "comm_overlap": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true}}',
            "No longer invalid: DeepSpeed has no key `comm_overlap`",
            paths=("zero_optimization.comm_overlap",),
            effects=(Effect.VALIDITY,),
            severity=Severity.INFO,
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 16}', ""),
    ),
    last=True,
)
def explain_gone(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each finding that only the old side has."""
    for path, finding in findings.only(pair.old, pair.new):
        if not findings.matters(pair, path, finding):
            continue
        broken = finding.effect in findings.REJECTS and finding.severity is RuleSeverity.ERROR
        fixed = broken and not pair.new.is_rejected
        lead = "No longer invalid: " if fixed else "Gone, with other errors left: " if broken else "No longer so: "
        yield pair.says(
            path,
            effects=(_EFFECTS.get(finding.effect, Effect.VALIDITY),),
            severity=Severity.INFO,
            message=f"{lead}{_text(finding)}",
            tally="No longer invalid" if fixed else "Findings gone: {}",
        )


def _text(finding: Finding) -> str:
    return f"{finding.message} ({finding.code})"


def _severity(finding: Finding) -> Severity:
    return Severity.INFO if finding.severity is RuleSeverity.INFO else Severity.WARNING
