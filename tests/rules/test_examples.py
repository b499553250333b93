"""Every rule's own examples: the places it points at, and what its fixes leave."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from dsmigrate.document import apply, parse
from dsmigrate.knowledge import knowledge
from dsmigrate.rules import Effect, Example, Finding, Rule, Severity, check, every_rule

from .examples import findings, fixed, marked, settings

CASES = [
    pytest.param(rule, example, id=f"{rule.code}-{number}")
    for rule in every_rule()
    for number, example in enumerate(rule.examples)
]


def codes(found: list[Finding]) -> Counter[str]:
    """Return how many findings there are of each rule."""
    return Counter(finding.code for finding in found)


def hints() -> set[str]:
    """Return the codes of advice, which may follow from a fix: at stage 3 there is more to say than at stage 2."""
    advice = {(Severity.HINT, effect) for effect in Effect} | {(Severity.INFO, Effect.RISKY)}
    return {rule.code for rule in every_rule() if (rule.severity, rule.effect) in advice}


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_a_rule_points_at_the_marked_places_and_at_no_others(rule: Rule, example: Example) -> None:
    found = findings(rule, example)
    assert sorted((finding.start, finding.end) for finding in found) == list(marked(example.config).ranges)
    assert {finding.code for finding in found} <= {rule.code}


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_fixes_leave_what_is_stated_and_nothing_to_find(rule: Rule, example: Example) -> None:
    result = fixed(rule, example)
    if example.fixed is None:
        assert result.applied == (), "a fix was applied, but the example states none"
        return
    assert result.document.text == example.fixed
    assert result.left == ()
    before = {finding.code for finding in check(parse(marked(example.config).text), settings(example))}
    after = {finding.code for finding in check(result.document, settings(example))}
    assert after <= before, f"the fix brings {after - before}"


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_each_fix_alone_mends_its_finding_and_brings_no_mistake(rule: Rule, example: Example) -> None:
    document = parse(marked(example.config).text)
    before = codes(check(document, settings(example)))
    for finding in findings(rule, example):
        for fix in finding.fixes:
            after = codes(check(parse(apply(document.text, fix.edits)), settings(example)))
            assert after[rule.code] < before[rule.code], f"{fix.title}: the finding stays"
            assert not (after - before).keys() - hints(), f"{fix.title}: brings {after - before}"


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: rule.code)
def test_a_rule_is_written_whole(rule: Rule) -> None:
    assert re.fullmatch(r"DS\d{3}", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.summary.endswith(".")
    assert len(rule.summary) <= 120
    assert rule.why.strip()
    assert rule.source
    assert any(marked(example.config).ranges for example in rule.examples), "no bad example"
    assert any(not marked(example.config).ranges for example in rule.examples), "no good example"
    assert [path for path in rule.keys if knowledge().key(path) is None] == []


def test_codes_and_names_are_used_once() -> None:
    rules = every_rule()
    assert len({rule.code for rule in rules}) == len({rule.name for rule in rules}) == len(rules)


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_messages_are_sentences_without_blame(rule: Rule, example: Example) -> None:
    for finding in findings(rule, example):
        assert finding.message
        assert not finding.message.endswith((".", "!"))
        assert "please" not in finding.message.lower()
        assert all(fix.title and not fix.title.endswith(".") for fix in finding.fixes)
