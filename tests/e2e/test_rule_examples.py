"""What the rules' examples claim of DeepSpeed, and what it says: each text after its fix is loaded and trained a step.

An example without a verdict is one that the judge cannot have either, or one of ``BEYOND``, where its stand-ins for
kernels and processes let pass what may fail on the machine that the rule is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dsmigrate.derivation.index import UnreachableError
from dsmigrate.document import parse
from dsmigrate.rules import Example, check
from dsmigrate.rules.fixing import fix_all
from tests.rules.agreement import history, releases
from tests.rules.agreement.case import Case
from tests.rules.agreement.compare import settings
from tests.rules.agreement.generate import cases
from tests.rules.agreement.judging import ALONE, Answer, judge
from tests.rules.agreement.stated import answers, stated

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e]

COUNT = 300
_LAMB, _SWAP = "Lamb is a kernel of the GPU", "swapping is done by a compiled extension"
BEYOND = {
    "DS210": "takes eight processes",
    "DS220": "takes eight processes",
    "DS304": "needs the GPU that the example names",
    "DS439": "takes sixteen processes",
    "DS441": "the quantizer is a kernel of the GPU",
    "DS487": "takes four processes",
    "DS515": _SWAP,
    "DS520": _SWAP,
    "DS525": _SWAP,
    "DS530": _SWAP,
    "DS533": _SWAP,
    "DS535": _SWAP,
    "DS550": _LAMB,
    "DS560": _SWAP,
    "DS645": _LAMB,
    "DS660": _LAMB,
    "DS665": _LAMB,
    "DS805": _SWAP,
    "DS940": "the keys are read by zero.Init alone",
}
"""Rules with examples that the judge accepts, and that say nothing: why."""


def has_another_reader(example: Example) -> bool:
    """Return whether Lightning fills the config in, or the autotuner takes lists of it, before the engine sees it."""
    return example.facts.lightning or any("autotuning" in one.values for one in example.facts.arguments)


def wrong(example: Example, case: Case, answer: Answer) -> str:
    """Return how an example's claim differs from what DeepSpeed says; "" when it does not."""
    if example.accepted is None and has_another_reader(example):
        return ""
    said = f"{case.name}: says {example.accepted}, DeepSpeed says {answer}, of {case.written}"
    if answer.verdict == "unjudged":
        refused = example.accepted is False and answer.error and answer.reason != ALONE
        return "" if example.accepted is None or refused else said
    if example.accepted is None:
        accepted = answer.verdict == "accepted"
        return "" if accepted and case.name.partition("-")[0] in BEYOND else said
    return "" if example.accepted == (answer.verdict == "accepted") else said


def differing(judged: Sequence[tuple[Example, Case, Answer]]) -> list[str]:
    """Return every difference, in words."""
    return [said for example, case, answer in judged if (said := wrong(example, case, answer))]


def test_deepspeed_says_of_every_example_what_the_example_says() -> None:
    pairs = [(example, case) for example, case in stated() if example.version is None]
    given = answers([case for _, case in pairs])
    judged = [(example, case, answer) for (example, case), answer in zip(pairs, given, strict=True)]
    assert differing(judged) == []
    fixed = [(case.name, answer) for example, case, answer in judged if example.fixed is not None]
    assert len([name for name, answer in fixed if answer.verdict == "accepted"]) > len(fixed) * 0.9


def test_safe_fixes_leave_what_loads_loading() -> None:
    found = list(cases(COUNT, seed=31))
    before, after = judge(found), judge([mended(case) for case in found])
    pairs = list(zip(found, before, after, strict=True))
    lost = [case.name for case, one, other in pairs if (one.verdict, other.verdict != "accepted") == ("accepted", True)]
    assert lost == []
    assert len([case for case, one, other in pairs if one.refused and other.verdict == "accepted"]) > COUNT / 20


def mended(case: Case) -> Case:
    """Return a case with the text after every safe fix."""
    result = fix_all(parse(case.written), lambda document: check(document, settings(case)))
    return replace(case, config=None, text=result.document.text)


@pytest.mark.derivation
def test_earlier_releases_refuse_no_example_that_is_said_to_load() -> None:
    pairs = [(example, replace(case, config=case.data)) for example, case in stated() if example.version is not None]
    wrongly = []
    for version in sorted({str(example.version) for example, _ in pairs}):
        try:
            root = releases.sources().root(version)
        except UnreachableError as error:
            pytest.skip(str(error))
        here = [(example, case) for example, case in pairs if example.version == version]
        for (example, case), answer in zip(here, releases.judge(root, [case for _, case in here]), strict=True):
            if (answer.verdict == "accepted") is (example.accepted is False):
                wrongly.append(f"{case.name} in {version}: says {example.accepted}, DeepSpeed says {answer}")
    assert wrongly == [], "\n".join(wrongly)


@pytest.mark.derivation
@pytest.mark.parametrize("version", ["0.15.4"])
def test_no_rule_and_no_fix_contradicts_an_earlier_release(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        root = releases.sources().root(version)
    except UnreachableError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("DSMIGRATE_E2E_RELEASE", version)
    monkeypatch.setenv("DSMIGRATE_E2E_SOURCES", str(root))
    told = history.tell(list(history.examples(version))[::3])  # tests.benchmarks.rules_by_release takes all, of all
    assert [str(one) for one in told if one.outcome in history.WRONG] == []
    assert sum(one.outcome is history.Outcome.AGREES for one in told) > len(told) * 0.85
