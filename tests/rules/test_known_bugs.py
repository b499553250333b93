"""Every known bug by its own example: met in its releases alone, gone after its cure, told in one breath."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsmigrate.document import parse
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.knowledge.bugs import Bug, bugs_at, every_bug
from dsmigrate.knowledge.store import index
from dsmigrate.rules.context import Context
from dsmigrate.rules.fixing import fix_all
from dsmigrate.rules.known_bugs import met
from dsmigrate.rules.model import Finding, Fix, Severity
from dsmigrate.rules.run import Settings, check

RELEASES: list[str] = index()["releases"]
CURED = [bug for bug in every_bug() if bug.sets or bug.removes]


def names(text: str, version: str) -> set[str]:
    """Return the bugs that a config meets in a release."""
    return {bug.id for bug in met(Context(parse(text), knowledge(version)))}


def around(bug: Bug) -> tuple[list[str], list[str]]:
    """Return the first and last release with the bug, and those next to them without it."""
    first, last = RELEASES.index(bug.first), RELEASES.index(bug.last or RELEASES[-1])
    spared = [RELEASES[first - 1]] if first else []
    return [RELEASES[first], RELEASES[last]], [*spared, *RELEASES[last + 1 : last + 2]]


@pytest.mark.parametrize("bug", every_bug(), ids=lambda bug: bug.id)
def test_a_bug_is_met_from_its_first_release_to_its_last(bug: Bug) -> None:
    having, spared = around(bug)
    assert [bug.id in names(bug.example, version) for version in having] == [True, True]
    assert [bug.id in names(bug.example, version) for version in spared] == [False] * len(spared)


@pytest.mark.parametrize("bug", every_bug(), ids=lambda bug: bug.id)
def test_a_finding_names_the_bug_with_what_happens_and_its_severity(bug: Bug) -> None:
    found = check(parse(bug.example), Settings(version=bug.last, select=("DS970",)))
    assert len(found) == 1
    told = [found[0].message, *(other.message for other in found[0].related)]
    (ours,) = [one for one in told if f"(known bug `{bug.id}`)" in one]
    assert ours.startswith(bug.what)
    assert (bug.fixed is None) or f"fixed in {bug.fixed}" in ours
    order = [severity.value for severity in Severity]
    assert order.index(found[0].severity.value) <= order.index(bug.severity)
    assert ours is not told[0] or (found[0].severity.value, found[0].effect.value) == (bug.severity, bug.effect)


def test_a_precision_that_is_left_open_is_said_with_the_bug() -> None:
    text = '{"zero_optimization": {"stage": 0}, "bf16": {"enabled": "auto"}}'
    (found,) = check(parse(text), Settings("0.18.5", Consumer.TRANSFORMERS, select=("DS970",)))
    assert found.message.startswith("if `bf16.enabled` becomes true: ")
    assert "bf16-zero0" in found.message
    assert check(parse(text), Settings("0.19.8", Consumer.TRANSFORMERS, select=("DS970",))) == []


@pytest.mark.parametrize("bug", CURED, ids=lambda bug: bug.id)
def test_the_settings_that_avoid_a_bug_do(bug: Bug) -> None:
    def ours(document: object) -> list[object]:
        found = check(document, Settings(version=bug.last, select=("DS970",)))  # type: ignore[arg-type]
        return [replace(one, proposed=_of(bug, one)) for one in found]

    fixed = fix_all(parse(bug.example), ours, unsafe=True)  # type: ignore[arg-type]
    assert fixed.applied
    assert bug.id not in names(fixed.document.text, bug.last or RELEASES[-1])


def _of(bug: Bug, finding: Finding) -> tuple[Fix, ...]:
    """Return the fixes of a finding that write what avoids one bug."""
    return tuple(fix for fix in finding.proposed if fix.title == f"Write {bug.avoided}")


def test_a_release_without_known_bugs_has_none() -> None:
    assert bugs_at(RELEASES[-1]) == tuple(bug for bug in every_bug() if bug.affects(RELEASES[-1]))


def test_the_file_holds_what_is_promised() -> None:
    assert len(every_bug()) >= 80
    assert bugs_at("0.14.0") != bugs_at("0.18.0")


@pytest.mark.parametrize(
    ("text", "version", "bug", "expected"),
    [
        ('{"optimizer": {"type": "muon"}}', "0.19.0", "muon-zero0-is-sgd", True),
        ('{"optimizer": {"type": "Adam"}}', "0.19.0", "muon-zero0-is-sgd", False),
        ('{"zero_optimization": {"stage": "auto", "overlap_comm": true}}', "0.16.0", "overlap-comm-nan", False),
        ('{"zero_optimization": {"stage": 2, "overlap_comm": "auto"}}', "0.16.0", "overlap-comm-nan", False),
        ('{"bfloat16": {"enabled": true}}', "0.18.5", "bf16-zero0-keeps-gradients", True),
        ('{"zero_optimization": true, "bf16": {"enabled": true}}', "0.18.5", "bf16-zero0-keeps-gradients", False),
        (
            '{"gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2, "cpu_offload": true}}',
            "0.16.0",
            "zero2-offload-accumulation",
            True,
        ),
        (
            '{"gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2, "cpu_offload": true}}',
            "0.16.0",
            "zero2-offload-accumulation",
            False,
        ),
        (
            '{"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.1}}}',
            "0.19.0",
            "warmup-lr-first-group",
            False,
        ),
        ("[]", "0.18.5", "bf16-zero0-keeps-gradients", False),
    ],
)
def test_conditions_see_a_config_as_deepspeed_does(text: str, version: str, bug: str, expected: bool) -> None:
    assert (bug in names(text, version)) is expected
