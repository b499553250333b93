"""Whatever is recommended fits, and nobody has anything against it."""

from __future__ import annotations

import json

import pytest

from dsmigrate.document import parse
from dsmigrate.knowledge import Consumer
from dsmigrate.memory.estimate import estimate
from dsmigrate.memory.variants import seen
from dsmigrate.recommend import Recommendation, recommend
from dsmigrate.recommend.reasons import advice, lacking, notes, reasons
from dsmigrate.rules import Facts, Settings, Severity, check
from dsmigrate.rules.known_bugs import KNOWN_BUG

from .grid import requests

pytestmark = pytest.mark.xdist_group("grid")


@pytest.fixture(scope="module")
def answers() -> list[Recommendation]:
    """What is recommended for the whole grid."""
    return [recommend(request) for request in requests()]


@pytest.mark.broad
@pytest.mark.slow
def test_what_is_recommended_fits_by_the_same_figures(answers: list[Recommendation]) -> None:
    assert len(answers) == 250
    chosen = [answer for answer in answers if answer.chosen is not None]
    assert len(chosen) > 150
    for answer in chosen:
        one, request = answer.chosen, answer.request
        assert one is not None
        view = seen(one.config, request.machine, request.described, version=request.version, consumer=request.consumer)
        again = estimate("again", view.context, request.described, request.machine, one.estimate.work)
        assert again is not None
        assert again.peak == one.estimate.peak
        assert again.fits is True
        most = again.largest_micro_batch
        assert most is not None
        assert most >= request.work.micro_batch


@pytest.mark.broad
@pytest.mark.slow
def test_the_rules_have_nothing_against_it(answers: list[Recommendation]) -> None:
    for answer in answers:
        request = answer.request
        if answer.chosen is not None:
            facts = Facts(
                request.machine.ranks, request.machine.gpu, request.described.model.parameters, request.hardware
            )
            settings = Settings(version=request.version, consumer=request.consumer, facts=facts)
            found = check(parse(json.dumps(answer.chosen.config)), settings)
            grave = [one for one in found if one.severity in {Severity.ERROR, Severity.WARNING}]
            said = [(one.code, one.message) for one in grave if one.code != KNOWN_BUG]
            assert said == []


@pytest.mark.broad
@pytest.mark.slow
def test_every_candidate_has_its_reason(answers: list[Recommendation]) -> None:
    for answer in answers[::7]:
        assert all(reasons(one) for one in answer.fitting)
        assert all(lacking(one).startswith("needs ") for one in answer.failing)
        names = [one.variant.name for one in (*answer.fitting, *answer.failing)]
        assert len(names) == len(set(names))
    for answer in answers[::49]:
        assert notes(answer)
        assert answer.chosen is not None or advice(answer)


@pytest.mark.broad
@pytest.mark.slow
def test_auto_is_for_those_who_fill_it(answers: list[Recommendation]) -> None:
    for answer in answers:
        if answer.chosen is not None:
            text = json.dumps(answer.chosen.config)
            assert ('"auto"' in text) is (answer.request.consumer is not Consumer.DEEPSPEED)
