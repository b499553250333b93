"""Rules that newly fire, or stop: what is wrong with the new config and was not with the old one."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff import findings
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import gist
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say
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
        if findings.is_of_releases(pair, finding) or not findings.matters(pair, path, finding):
            continue
        if finding in pair.found:
            continue
        broken = findings.rejects(finding)
        worse = broken and not pair.old.is_rejected
        lead = say("New finding: ")
        if broken:
            lead = (
                say("This change makes the config invalid: ")
                if worse
                else say("Invalid, as the old config is for another reason: ")
            )
        severity = Severity.BREAKING if worse else _severity(finding)
        yield pair.says(
            path,
            *(change.path for change in pair.below(path) if broken and pair.new.refuses(change.path)),
            *(named for named in pair.changes if broken and named != path and f"`{named}`" in finding.message),
            effects=(_EFFECTS.get(finding.effect, Effect.VALIDITY),),
            severity=severity,
            message=lead + _text(finding),
            brief=gist(finding.message)
            if worse
            else say("still invalid: {message}", message=gist(finding.message))
            if broken
            else "",
            tally="" if worse else say("New findings: {count}"),
            found=(finding,),
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
        if findings.is_of_releases(pair, finding) or not findings.matters(pair, path, finding):
            continue
        is_remark = finding.severity is RuleSeverity.INFO and path in pair.claimed  # what changes there is told
        if is_remark or finding in pair.found:
            continue
        broken = findings.rejects(finding)
        fixed = broken and not pair.new.is_rejected
        lead = (
            say("No longer invalid: ")
            if fixed
            else say("Gone, with other errors left: ")
            if broken
            else say("No longer a problem: ")
        )
        yield pair.says(
            path,
            *(change.path for change in pair.below(path) if broken and pair.old.refuses(change.path)),
            effects=(_EFFECTS.get(finding.effect, Effect.VALIDITY),),
            severity=Severity.INFO,
            message=lead + say("{message} ({code})", message=gist(finding.message), code=finding.code),
            tally=say("No longer invalid") if fixed else say("Findings fixed: {count}"),
        )


@explanation(
    "DF112",
    "still-invalid",
    summary="Neither config runs: a rule finds on both sides what DeepSpeed refuses, or what stops the engine.",
    why=(
        "What a change does is told as if both sides ran. Where neither does, for a reason that the change leaves in"
        " the file, that comes first."
    ),
    source=("docs/rules/README.md",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1, "comm_overlap": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "comm_overlap": true}}',
            "Neither config runs: DeepSpeed has no key `comm_overlap`",
            paths=("zero_optimization.comm_overlap",),
            effects=(Effect.VALIDITY,),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"loss_scale": 0, "initial_scale_power": 16}}',
            '{"train_batch_size": 8, "bf16": {"loss_scale": 0, "initial_scale_power": 10}}',
            "Neither config runs: `loss_scale` in `bf16`: DeepSpeed rejects the config for it",
            paths=("bf16.loss_scale", "bf16.initial_scale_power"),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"cpu_offload": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"offload_optimizer": {"device": "cpu"}}}',
            "",  # nothing changes
        ),
    ),
    last=True,
)
def explain_still(pair: Pair) -> Iterator[Explained]:
    """Yield one message about the errors of both sides, where something else changes or one of them does."""
    found = list(findings.both(pair.new, pair.old))
    paths = [path for path, _ in found]
    changed = (pair.changes[path] for path in paths if path in pair.changes)
    if not found or not (pair.acts or any(change.differs for change in changed)):
        return
    more = len(found) - 1
    rest = (
        say(
            ", and {more} more {en_errorsstay}",
            more=more,
            en_errorsstay=say("error stays") if more == 1 else say("errors stay"),
        )
        if more
        else ""
    )
    yield pair.says(
        *dict.fromkeys(paths),
        effects=(Effect.VALIDITY,),
        severity=Severity.WARNING,
        message=say("Neither config runs: {found}{rest}", found=_text(found[0][1]), rest=rest),
        brief=say("neither config runs: {message}", message=gist(found[0][1].message)),
        found=(found[0][1],),
    )


def _text(finding: Finding) -> str:
    return say("{message} ({code})", message=finding.message, code=finding.code)


def _severity(finding: Finding) -> Severity:
    return Severity.INFO if finding.severity is RuleSeverity.INFO else Severity.WARNING
