"""What an expert answers in twenty situations; ``python -m tests.recommend.situations`` prints both answers."""

from __future__ import annotations

import json

import pytest

from dsmigrate.document import parse
from dsmigrate.recommend import Recommendation, recommend
from dsmigrate.rules import Facts, Settings, Severity, check
from dsmigrate.rules.known_bugs import KNOWN_BUG

from .situations import SITUATIONS, Situation


@pytest.fixture(scope="module")
def answers() -> dict[str, Recommendation]:
    """What is recommended in each."""
    return {one.name: recommend(one.request) for one in SITUATIONS}


def test_there_are_twenty_with_their_sources() -> None:
    assert len(SITUATIONS) >= 20
    assert all(one.expert and one.source.startswith("https://") for one in SITUATIONS)


@pytest.mark.parametrize("one", SITUATIONS, ids=lambda one: one.name)
def test_the_expert_is_agreed_with_or_it_is_said_why_not(answers: dict[str, Recommendation], one: Situation) -> None:
    assert one.agrees(answers[one.name]) is not bool(one.why)


def test_every_config_passes_the_check(answers: dict[str, Recommendation]) -> None:
    for one in answers.values():
        if one.chosen is not None:
            request = one.request
            facts = Facts(
                request.machine.ranks, request.machine.gpu, request.described.model.parameters, request.hardware
            )
            found = check(parse(json.dumps(one.chosen.config)), Settings(version=request.version, facts=facts))
            grave = [finding for finding in found if finding.severity in {Severity.ERROR, Severity.WARNING}]
            assert [(finding.code, finding.message) for finding in grave if finding.code != KNOWN_BUG] == []
